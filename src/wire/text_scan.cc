#include "wire/text_scan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "base/fail.h"
#include "wire/type_names.h"

namespace sardonyx::wire {
namespace {

constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r';
}

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

}  // namespace

bool is_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return false;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c)) return false;
  }
  return true;
}

bool is_float_word(std::string_view text) {
  if (text.size() > 8) return false;
  std::string word;
  for (const char c : text) word += lower(c);
  return word == "inf" || word == "infinity" || word == "nan";
}

template <class T>
std::optional<T> nearest_number(std::string_view text) {
  const char *begin = text.data(), *end = begin + text.size();
  T value = 0;
  const auto result = std::from_chars(begin, end, value);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return std::nullopt;
  if (result.ec == std::errc{}) return value;
  const T sign = text.front() == '-' ? T{-1} : T{1};
  long double wide = 0;
  if (std::from_chars(begin, end, wide).ec == std::errc{})
    return std::fabs(wide) < 1 ? static_cast<T>(wide) : sign * std::numeric_limits<T>::infinity();
  const bool underflow = text.find("e-") != text.npos || text.find("E-") != text.npos;
  return underflow ? sign * T{0} : sign * std::numeric_limits<T>::infinity();
}

template std::optional<float> nearest_number<float>(std::string_view);
template std::optional<double> nearest_number<double>(std::string_view);

void Scanner::skip_space() {
  while (position_ < text_.size()) {
    if (is_space(text_[position_])) {
      ++position_;
    } else if (text_.substr(position_, 2) == "#@") {
      position_ += 2;
    } else if (text_[position_] == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else {
      return;
    }
  }
}

bool Scanner::matches(char c) {
  if (at_end() || text_[position_] != c) return false;
  ++position_;
  return true;
}

bool Scanner::matches(std::string_view token) {
  if (at_end() || text_.substr(position_, token.size()) != token) return false;
  position_ += token.size();
  return true;
}

void Scanner::expect(char c, std::string_view where) { expect(std::string_view(&c, 1), where); }

void Scanner::expect(std::string_view token, std::string_view where) {
  if (!matches(token)) expected(fmt::format("'{}' {}", token, where));
}

std::string_view Scanner::peek_identifier() {
  if (at_end() || !is_letter(text_[position_])) return {};
  size_t end = position_ + 1;
  while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
  return text_.substr(position_, end - position_);
}

bool Scanner::next_is_string() {
  const char c = peek();
  return c == '"' || (c == 'e' && text_.substr(position_, 2) == "e\"");
}

bool Scanner::next_is_record() {
  const size_t start = position_;
  bool record = false;
  if (matches('{')) {
    const std::string_view key = peek_identifier();
    position_ += key.size();
    record = !key.empty() && matches(':');
  }
  position_ = start;
  return record;
}

std::string_view Scanner::identifier(std::string_view what) {
  const std::string_view id = peek_identifier();
  if (id.empty()) expected(what);
  position_ += id.size();
  return id;
}

std::string Scanner::name(std::string_view what) {
  return next_is_string() ? string(what) : std::string(identifier(what));
}

std::string Scanner::string(std::string_view what) {
  if (!next_is_string()) expected(fmt::format("{}, a string in quotes", what));
  return text_[position_] == 'e' ? escaped_string(what) : plain_string(what);
}

// A backslash makes the next character literal, whatever it is; there are no other escapes.
std::string Scanner::plain_string(std::string_view what) {
  const size_t start = position_++;
  std::string value;
  while (position_ < text_.size() && text_[position_] != '"') {
    if (text_[position_] == '\\') ++position_;
    if (position_ < text_.size()) value += text_[position_++];
  }
  if (position_ >= text_.size()) {
    error_at(start,
             fmt::format("expected the closing '\"' of {}; found the end of the text", what));
  }
  ++position_;
  return value;
}

std::string Scanner::escaped_string(std::string_view what) {
  const size_t start = position_;
  position_ += 2;
  std::string value;
  while (position_ < text_.size() && text_[position_] != '"') {
    value += text_[position_] == '\\' ? escape(what) : text_[position_++];
  }
  if (position_ >= text_.size()) {
    error_at(start,
             fmt::format("expected the closing '\"' of {}; found the end of the text", what));
  }
  ++position_;
  return value;
}

char Scanner::escape(std::string_view what) {
  const size_t start = position_++;
  const char c = position_ < text_.size() ? text_[position_++] : '\0';
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '"': return '"';
    case '\\': return '\\';
    case 'x':
      if (position_ + 1 < text_.size()) {
        const int high = hex_digit(text_[position_]), low = hex_digit(text_[position_ + 1]);
        position_ += 2;
        if (high >= 0 && low >= 0) return static_cast<char>(high * 16 + low);
      }
      break;
    default: break;
  }
  error_at(start, fmt::format("{} has an unknown escape; an e\"\" string knows \\n \\t \\r \\\" "
                              "\\\\ and \\xHH",
                              what));
}

bool Scanner::next_is_number() {
  const char c = peek();
  return is_digit(c) || c == '-' || is_float_word(peek_identifier());
}

Scanner::Number Scanner::number(std::string_view what) {
  if (at_end()) expected(what);
  const size_t start = position_;
  const auto digits = [&] {
    const size_t from = position_;
    while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
    return position_ > from;
  };
  const auto next = [&] { return position_ < text_.size() ? text_[position_] : '\0'; };
  if (next() == '-') ++position_;
  if (is_letter(next())) {
    const std::string_view word = peek_identifier();
    if (is_float_word(word)) {
      position_ += word.size();
      return {text_.substr(start, position_ - start), false};
    }
  } else if (digits()) {
    bool is_integer = true;
    if (next() == '.') {
      is_integer = false;
      ++position_;
      digits();
    }
    if (next() == 'e' || next() == 'E') {
      is_integer = false;
      ++position_;
      if (next() == '+' || next() == '-') ++position_;
      if (!digits()) error_at(start, fmt::format("{} has an exponent without digits", what));
    }
    return {text_.substr(start, position_ - start), is_integer};
  }
  position_ = start;
  expected(what);
}

int64_t Scanner::integer_value(const Number& number, std::string_view what) {
  int64_t value = 0;
  const char* end = number.text.data() + number.text.size();
  const auto result = std::from_chars(number.text.data(), end, value);
  const size_t at = static_cast<size_t>(number.text.data() - text_.data());
  if (!number.is_integer || result.ptr != end) {
    error_at(at, fmt::format("expected {}, an integer; found '{}'", what, number.text));
  }
  if (result.ec != std::errc{}) {
    error_at(at, fmt::format("{} does not fit 64 bits: {}", what, number.text));
  }
  return value;
}

int64_t Scanner::integer(std::string_view what) { return integer_value(number(what), what); }

uint64_t Scanner::unsigned_integer(std::string_view what) {
  const Number token = number(what);
  uint64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto result = std::from_chars(token.text.data(), end, value);
  if (!token.is_integer || result.ec != std::errc{} || result.ptr != end) {
    error_at(static_cast<size_t>(token.text.data() - text_.data()),
             fmt::format("expected {}, an integer in [0, 2^64); found '{}'", what, token.text));
  }
  return value;
}

// Overflow is an error.
template <class T>
T Scanner::float_value(const Number& number) {
  const std::optional<T> value = nearest_number<T>(number.text);
  const bool is_word = is_letter(number.text.back());
  if (!value || (std::isinf(*value) && !is_word)) {
    error_at(static_cast<size_t>(number.text.data() - text_.data()),
             fmt::format("{} is too large for {} bits", number.text, sizeof(T) * 8));
  }
  return *value;
}

template <class T>
T Scanner::floating(std::string_view what) {
  return float_value<T>(number(what));
}

template float Scanner::float_value<float>(const Number&);
template double Scanner::float_value<double>(const Number&);
template float Scanner::floating<float>(std::string_view);
template double Scanner::floating<double>(std::string_view);

std::string Scanner::found() {
  if (at_end()) return "the end of the text";
  const std::string_view id = peek_identifier();
  if (!id.empty()) return fmt::format("'{}'", id.substr(0, 40));
  const auto byte = static_cast<unsigned char>(text_[position_]);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("the byte 0x{:02x}", byte);
  if (!is_digit(text_[position_])) return fmt::format("'{}'", text_[position_]);
  size_t end = position_;
  while (end < text_.size() && end < position_ + 40 && is_digit(text_[end])) ++end;
  return fmt::format("'{}'", text_.substr(position_, end - position_));
}

void Scanner::expected(std::string_view what) {
  const std::string seen = found();  // moves to the token
  error_at(position_, fmt::format("expected {}; found {}{}", what, seen, type_advice()));
}

// Types by names that the syntax does not have, at the token or just before it: they are read as
// names of something else, and what follows them then makes no sense.
std::string Scanner::type_advice() {
  size_t begin = position_;
  while (begin > 0 && is_space(text_[begin - 1])) --begin;
  const size_t end = begin;
  while (begin > 0 && (is_letter(text_[begin - 1]) || is_digit(text_[begin - 1]))) --begin;
  size_t before = begin;
  while (before > 0 && is_space(text_[before - 1])) --before;
  // Behind ':' stands the kind of an attribute.
  const bool is_kind = before > 0 && text_[before - 1] == ':';
  for (const std::string_view word :
       {peek_identifier(), is_kind ? std::string_view() : text_.substr(begin, end - begin)}) {
    const std::string_view meant = type_meant_by(word);
    if (!meant.empty()) return fmt::format("; the type '{}' is written '{}' here", word, meant);
  }
  return {};
}

namespace {

// The line around a position of the text and, below it, a caret: two lines, each after a new line.
std::string excerpt(std::string_view text, size_t line_start, size_t position) {
  constexpr size_t shown_before = 60, shown_after = 30;
  const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  const size_t end = std::min(text.find('\n', line_start), text.size());
  position = std::min(position, end);
  size_t begin = position - std::min(position - line_start, shown_before);
  size_t last = std::min(end, position + shown_after);
  while (begin > line_start && is_inside(text[begin])) --begin;
  while (last < end && is_inside(text[last])) ++last;
  std::string shown = begin > line_start ? "..." : "";
  std::string below(shown.size(), ' ');
  for (size_t i = begin; i < last; ++i) {
    const bool is_control = static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f;
    shown += is_control ? ' ' : text[i];
    if (i < position && !is_inside(text[i])) below += ' ';
  }
  if (last < end) shown += "...";
  return fmt::format("\n    {}\n    {}^", shown, below);
}

}  // namespace

void Scanner::error_at(size_t position, std::string message) const {
  size_t line = 1, start = 0;
  for (size_t i = 0; i < position && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line;
      start = i + 1;
    }
  }
  message += excerpt(text_, start, position);
  throw Error(ErrorCode::invalid_model, std::move(message),
              fmt::format("line {}, column {}", line, position - start + 1));
}

}  // namespace sardonyx::wire
