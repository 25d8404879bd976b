#include "wire/json_form.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/fail.h"
#include "wire/named_fields.h"
#include "wire/text_scan.h"
#include "wire/utf.h"

namespace sardonyx::wire {
namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

template <class T>
std::string number_text(T value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  if (value == 0 && std::signbit(value)) return "-0.0";  // -0 is an integer to some
  if constexpr (std::is_same_v<T, float>) {
    return text_of_float(value);
  } else {
    return fmt::format("{}", value);
  }
}

int base64_value(char c) {
  if (c == '-') return 62;
  if (c == '_') return 63;
  const size_t at = base64_digits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::string text_of_float(float value) {
  std::string text = fmt::format("{}", value);
  double by_double = 0;
  std::from_chars(text.data(), text.data() + text.size(), by_double);
  const bool is_same = static_cast<float>(by_double) == value &&
                       std::abs(by_double) <= std::numeric_limits<float>::max();
  return is_same || !std::isfinite(value) ? text : fmt::format("{}", static_cast<double>(value));
}

void JsonWriter::separate() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.empty) out_.put(level.lines ? "," : ", ");
  level.empty = false;
  if (level.lines) new_line();
}

void JsonWriter::new_line() {
  out_.put('\n');
  out_.put(std::string(2 * levels_.size(), ' '));
}

void JsonWriter::open() {
  out_.put('{');
  levels_.emplace_back();
}

void JsonWriter::close() {
  const bool empty = levels_.back().empty;
  levels_.pop_back();
  if (!empty) new_line();
  out_.put('}');
}

void JsonWriter::key(std::string_view name, bool) {
  separate();
  out_.put('"');
  out_.put(camel_case(name));
  out_.put("\": ");
}

void JsonWriter::open_list(std::string_view name, bool of_messages) {
  key(name, of_messages);
  out_.put('[');
  levels_.push_back({true, of_messages});
}

void JsonWriter::close_list() {
  const bool lines = levels_.back().lines;
  levels_.pop_back();
  if (lines) new_line();
  out_.put(']');
}

void JsonWriter::item(std::string_view) { separate(); }

void JsonWriter::integer(int64_t value, bool wide) {
  out_.put(wide ? fmt::format("\"{}\"", value) : fmt::format("{}", value));
}
void JsonWriter::integer(uint64_t value) { out_.put(fmt::format("\"{}\"", value)); }
void JsonWriter::word(std::string_view word) { out_.put(fmt::format("\"{}\"", word)); }
void JsonWriter::number(float value) { out_.put(number_text(value)); }
void JsonWriter::number(double value) { out_.put(number_text(value)); }

void JsonWriter::text(std::string_view text) {
  if (!code_points(text))
    fail(ErrorCode::unsupported,
         "a string of the model is not UTF-8, which JSON cannot say; write it as .textproto");
  out_.put('"');
  for (const char c : text) {
    switch (c) {
      case '"': out_.put("\\\""); break;
      case '\\': out_.put("\\\\"); break;
      case '\n': out_.put("\\n"); break;
      case '\r': out_.put("\\r"); break;
      case '\t': out_.put("\\t"); break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out_.put(fmt::format("\\u{:04x}", static_cast<unsigned char>(c)));
        } else {
          out_.put(c);
        }
    }
  }
  out_.put('"');
}

void JsonWriter::bytes(std::string_view bytes) {
  out_.put('"');
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    std::array<char, 4> digits;
    for (size_t i = 0; i < 4; ++i)
      digits[i] = i <= count ? base64_digits[group >> (18 - 6 * i) & 63] : '=';
    out_.put(std::string_view(digits.data(), digits.size()));
  }
  out_.put('"');
}

void JsonWriter::finish() {
  out_.put('\n');
  out_.flush();
}

void JsonCursor::error(const std::string& message) const {
  Scanner(text_).error_at(token_, message);
}

char JsonCursor::peek() {
  while (position_ < text_.size() &&
         std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos)
    ++position_;
  token_ = position_;
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool JsonCursor::matches(char c) {
  if (peek() != c) return false;
  ++position_;
  return true;
}

void JsonCursor::expect(char c, std::string_view where) {
  if (!matches(c)) error(fmt::format("expected '{}' {}", c, where));
}

void JsonCursor::open() {
  expect('{', "that begins a message");
  first_ = true;
}

bool JsonCursor::next_key(std::string& key) {
  for (;;) {
    if (matches('}')) {
      first_ = false;
      return false;
    }
    if (!first_) expect(',', "or '}' after a field");
    first_ = false;
    const std::string written = string();
    expect(':', "after the name of a field");
    if (peek() == 'n' && text_.substr(position_, 4) == "null") {
      position_ += 4;
      continue;
    }
    key.clear();
    for (const char c : written) {
      if (c >= 'A' && c <= 'Z') {
        key += '_';
        key += static_cast<char>(c + 32);
      } else {
        key += c;
      }
    }
    return true;
  }
}

void JsonCursor::each(const std::function<void()>& item) {
  expect('[', "that begins a list");
  if (matches(']')) return;
  do {
    item();
  } while (matches(','));
  expect(']', "or ',' in a list");
}

bool JsonCursor::next_is_word() { return peek() == '"'; }

uint32_t JsonCursor::hex4() {
  uint32_t value = 0;
  const std::string_view digits = text_.substr(std::min(position_, text_.size()), 4);
  const auto [end, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (problem != std::errc() || end != digits.data() + 4)
    error("\\u needs four hexadecimal digits");
  position_ += 4;
  return value;
}

void JsonCursor::escape(std::string& value) {
  const char c = position_ < text_.size() ? text_[position_++] : '\0';
  switch (c) {
    case '"':
    case '\\':
    case '/': value += c; return;
    case 'b': value += '\b'; return;
    case 'f': value += '\f'; return;
    case 'n': value += '\n'; return;
    case 'r': value += '\r'; return;
    case 't': value += '\t'; return;
    case 'u': {
      uint32_t point = hex4();
      if (point >= 0xd800 && point < 0xdc00 && text_.substr(position_, 2) == "\\u") {
        position_ += 2;
        const uint32_t low = hex4();
        if (low < 0xdc00 || low > 0xdfff) error("\\u has half of a surrogate pair");
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
      }
      if (!append_utf8(point, value)) error("\\u names no character");
      return;
    }
    default: error("a string has an unknown escape");
  }
}

std::string JsonCursor::string() {
  expect('"', "that begins a string");
  const size_t start = token_;
  std::string value;
  while (position_ < text_.size() && text_[position_] != '"') {
    const char c = text_[position_++];
    if (c == '\\') {
      escape(value);
    } else {
      value += c;
    }
  }
  token_ = start;
  if (position_ >= text_.size()) error("the string does not end");
  ++position_;
  return value;
}

std::string JsonCursor::text() {
  std::string value = string();
  if (!code_points(value)) error("a string is not UTF-8");
  return value;
}

std::string JsonCursor::bytes() {
  const std::string digits = string();
  const size_t start = token_;
  std::string value;
  value.reserve(digits.size() / 4 * 3);
  uint32_t group = 0;
  int bits = 0;
  for (const char c : digits) {
    if (c == '=') break;
    const int digit = base64_value(c);
    token_ = start;
    if (digit < 0) error("bytes are written in base64");
    group = group << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    value += static_cast<char>(group >> bits & 0xff);
  }
  return value;
}

// The characters of a number, which may stand in a string.
std::string_view JsonCursor::number_token(std::string& quoted) {
  if (peek() == '"') return quoted = string();
  const size_t start = position_;
  while (position_ < text_.size() &&
         std::string_view("+-.0123456789eE").find(text_[position_]) != std::string_view::npos)
    ++position_;
  token_ = start;
  return text_.substr(start, position_ - start);
}

template <class T>
T JsonCursor::integer_as() {
  std::string quoted;
  const std::string_view token = number_token(quoted);
  T value = 0;
  const auto [end, problem] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (problem == std::errc() && end == token.data() + token.size()) return value;
  // A point or an exponent may be there, too.
  const std::optional<double> number = nearest_number<double>(token);
  constexpr double most = 0x1p53, least = std::is_signed_v<T> ? -most : 0;
  if (!number || !(*number >= least && *number <= most) || *number != std::floor(*number))
    error(fmt::format("expected an integer of {} bits; found '{}'", 8 * sizeof(T), token));
  return static_cast<T>(*number);
}

int64_t JsonCursor::integer() { return integer_as<int64_t>(); }
uint64_t JsonCursor::unsigned_integer() { return integer_as<uint64_t>(); }

template <class T>
T JsonCursor::number() {
  std::string quoted;
  const std::string_view token = number_token(quoted);
  if (token == "NaN") return std::numeric_limits<T>::quiet_NaN();
  if (token == "Infinity") return std::numeric_limits<T>::infinity();
  if (token == "-Infinity") return -std::numeric_limits<T>::infinity();
  const bool is_word = !token.empty() && is_letter(token.back());
  const std::optional<T> value = is_word ? std::nullopt : nearest_number<T>(token);
  if (!value) error(fmt::format("expected a number; found '{}'", token));
  if (std::isinf(*value)) error(fmt::format("{} is too large for {} bits", token, 8 * sizeof(T)));
  return *value;
}

template float JsonCursor::number<float>();
template double JsonCursor::number<double>();

void JsonCursor::finish() {
  if (peek() != '\0' || position_ < text_.size()) error("expected the end of the text");
}

}  // namespace sardonyx::wire
