#include "ops/shared/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sardonyx::ops {
namespace {

// Scientific digits ("1.25e-07") in the notation that fits the exponent.
std::string arranged(double value, std::string scientific) {
  const size_t mark = scientific.find('e');
  int exponent = 0;
  const char* digits_end = scientific.data() + scientific.size();
  const char* begin = scientific.data() + mark + 1 + (scientific[mark + 1] == '+' ? 1 : 0);
  std::from_chars(begin, digits_end, exponent);
  if (value != 0 && (exponent < -4 || exponent >= 16)) return scientific;
  std::string digits, text;
  for (const char c : std::string_view(scientific).substr(0, mark)) {
    if (c == '-') {
      text.push_back(c);
    } else if (c != '.') {
      digits.push_back(c);
    }
  }
  if (exponent < 0) {
    text.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
    return text;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    text.append(digits).append(whole - digits.size(), '0').append(".0");
  } else {
    text.append(digits, 0, whole).append(".").append(digits, whole);
  }
  return text;
}

template <class T>
std::string special(T value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

template <class T>
std::string shortest(T value) {
  if (!std::isfinite(value)) return special(value);
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  return arranged(value, std::string(buffer, end));
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_word(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

// Whether a number without a sign, which is not 0, lies below 1: its exponent and the place of its
// first digit tell.
bool is_below_one(std::string_view text) {
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, mark);
  const auto first = static_cast<int64_t>(digits.find_first_of("123456789")),
             point = static_cast<int64_t>(std::min(digits.find('.'), digits.size()));
  const int64_t place = first < point ? point - first - 1 : point - first;
  if (mark == text.size()) return place < 0;
  std::string_view power = text.substr(mark + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  int32_t exponent = 0;
  const auto error = std::from_chars(power.data(), power.data() + power.size(), exponent).ec;
  if (error == std::errc::result_out_of_range) return power.starts_with('-');
  return place + exponent < 0;
}

template <class T>
std::optional<T> parse_floating(std::string_view text) {
  text = trimmed(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  T value = 0;
  if (is_word(text, "inf") || is_word(text, "infinity")) {
    value = std::numeric_limits<T>::infinity();
  } else if (is_word(text, "nan")) {
    value = std::numeric_limits<T>::quiet_NaN();
  } else {
    if (text.empty() || (text.front() != '.' && (text.front() < '0' || text.front() > '9')))
      return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      value = is_below_one(text) ? 0 : std::numeric_limits<T>::infinity();
    }
  }
  return negative ? -value : value;
}

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  const auto real = parse_floating<double>(text);
  if (!real) return std::nullopt;
  if (std::isnan(*real)) return T{0};
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  if (*real <= static_cast<double>(low)) return low;
  if (*real >= static_cast<double>(high)) return high;
  return static_cast<T>(*real);
}

}  // namespace

std::string text_of(float value) { return shortest(value); }
std::string text_of(double value) { return shortest(value); }

std::string text_of_narrow(float value, int significant_bits) {
  if (!std::isfinite(value)) return special(value);
  // The fewest digits that stay within half a unit of the narrow format, and towards 0 from a power
  // of two, where the units are halves, within a quarter.
  int exponent = 0;
  const bool is_power = std::fabs(std::frexp(value, &exponent)) == 0.5f;
  const double unit = value == 0 ? 1 : std::ldexp(1.0, exponent - significant_bits);
  char buffer[64];
  for (int digits = 0; digits < 9; ++digits) {
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, digits)
            .ptr;
    double back = 0;
    std::from_chars(buffer, end, back);
    const double given = std::fabs(static_cast<double>(value)), found = std::fabs(back);
    const double most = is_power && found < given ? unit / 4 : unit / 2;
    if (std::fabs(found - given) >= most && value != 0) continue;
    std::string text(buffer, end);
    // Trailing zeros of the mantissa say nothing.
    size_t mark = text.find('e');
    while (text.find('.') < mark && (text[mark - 1] == '0' || text[mark - 1] == '.')) {
      const bool point = text[mark - 1] == '.';
      text.erase(--mark, 1);
      if (point) break;
    }
    return arranged(value, text);
  }
  return shortest(value);
}

std::optional<double> parse_double(std::string_view text) { return parse_floating<double>(text); }
std::optional<float> parse_float(std::string_view text) { return parse_floating<float>(text); }
std::optional<int64_t> parse_int64(std::string_view text) { return parse_whole<int64_t>(text); }
std::optional<uint64_t> parse_uint64(std::string_view text) { return parse_whole<uint64_t>(text); }

}  // namespace sardonyx::ops
