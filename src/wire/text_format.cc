#include "wire/text_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/fail.h"
#include "wire/text_scan.h"
#include "wire/utf.h"

namespace sardonyx::wire {

void TextFormatWriter::open() {
  out_.put("{\n");
  ++depth_;
}

void TextFormatWriter::close() {
  --depth_;
  out_.put(std::string(2 * depth_, ' '));
  out_.put('}');
}

void TextFormatWriter::key(std::string_view name, bool is_message) {
  out_.put(std::string(2 * depth_, ' '));
  out_.put(name);
  out_.put(is_message ? " " : ": ");
}

void TextFormatWriter::open_list(std::string_view name, bool of_messages) {
  of_messages_.push_back(of_messages);
  if (of_messages) return;
  key(name, false);
  out_.put('[');
  first_item_ = true;
}

void TextFormatWriter::close_list() {
  if (!of_messages_.back()) out_.put("]\n");
  of_messages_.pop_back();
}

void TextFormatWriter::item(std::string_view name) {
  if (of_messages_.back()) return key(name, true);
  if (!first_item_) out_.put(", ");
  first_item_ = false;
}

void TextFormatWriter::end_item() {
  if (of_messages_.back()) out_.put('\n');
}

void TextFormatWriter::integer(int64_t value, bool) { out_.put(fmt::format("{}", value)); }
void TextFormatWriter::integer(uint64_t value) { out_.put(fmt::format("{}", value)); }
void TextFormatWriter::number(float value) { out_.put(text_of_float(value)); }
void TextFormatWriter::number(double value) { out_.put(fmt::format("{}", value)); }

void TextFormatWriter::bytes(std::string_view bytes) {
  out_.put('"');
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"': out_.put("\\\""); break;
      case '\\': out_.put("\\\\"); break;
      case '\n': out_.put("\\n"); break;
      case '\r': out_.put("\\r"); break;
      case '\t': out_.put("\\t"); break;
      default:
        if (byte < 0x20 || byte >= 0x7f) {
          const char octal[4] = {'\\', static_cast<char>('0' + (byte >> 6)),
                                 static_cast<char>('0' + (byte >> 3 & 7)),
                                 static_cast<char>('0' + (byte & 7))};
          out_.put(std::string_view(octal, 4));
        } else {
          out_.put(std::string_view(&c, 1));
        }
    }
  }
  out_.put('"');
}

void TextFormatCursor::error(const std::string& message) const {
  Scanner(text_).error_at(token_, message);
}

char TextFormatCursor::peek() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f') {
      ++position_;
    } else {
      break;
    }
  }
  token_ = position_;
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool TextFormatCursor::matches(char c) {
  if (peek() != c || position_ >= text_.size()) return false;
  ++position_;
  return true;
}

void TextFormatCursor::colon() { matches(':'); }

void TextFormatCursor::open() {
  colon();
  if (matches('{')) {
    closers_ += '}';
  } else if (matches('<')) {
    closers_ += '>';
  } else {
    error("expected '{' that begins a message");
  }
}

bool TextFormatCursor::next_key(std::string& key) {
  while (matches(',') || matches(';')) {
  }
  if (closers_.empty() ? peek() == '\0' : matches(closers_.back())) {
    if (!closers_.empty()) closers_.pop_back();
    return false;
  }
  if (peek() == '[') error("extensions are no part of the standard's messages");
  if (!is_letter(peek())) {
    error(closers_.empty() ? std::string("expected the name of a field")
                           : fmt::format("expected the name of a field or '{}'", closers_.back()));
  }
  key = std::string(token());
  return true;
}

void TextFormatCursor::each(const std::function<void()>& item) {
  colon();
  if (!matches('[')) return item();
  if (matches(']')) return;
  do {
    item();
  } while (matches(','));
  if (!matches(']')) error("expected ']' or ',' in a list");
}

// Letters, digits and what else numbers and words are made of.
std::string_view TextFormatCursor::token() {
  const size_t start = (peek(), position_);
  while (position_ < text_.size()) {
    const char c = text_[position_];
    const bool exponent_sign = (c == '+' || c == '-') && position_ > start &&
                               (text_[position_ - 1] == 'e' || text_[position_ - 1] == 'E');
    if (!is_letter(c) && !is_digit(c) && c != '.' && !exponent_sign) break;
    ++position_;
  }
  return text_.substr(start, position_ - start);
}

bool TextFormatCursor::next_is_word() {
  colon();
  return is_letter(peek());
}

std::string TextFormatCursor::word() { return std::string(token()); }

uint64_t TextFormatCursor::unsigned_integer() {
  colon();
  std::string_view word = token();
  const size_t at = token_;
  int base = 10;
  if (word.starts_with("0x") || word.starts_with("0X")) {
    word.remove_prefix(2);
    base = 16;
  } else if (word.size() > 1 && word.front() == '0') {
    base = 8;
  }
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  token_ = at;
  if (problem != std::errc() || end != word.data() + word.size() || word.empty())
    error("expected an integer of 64 bits");
  return value;
}

int64_t TextFormatCursor::integer() {
  colon();
  const bool negative = matches('-');
  const uint64_t size = unsigned_integer();
  if (size > uint64_t{1} << 63 || (!negative && size == uint64_t{1} << 63))
    error("the integer does not fit 64 bits");
  return negative ? static_cast<int64_t>(-size) : static_cast<int64_t>(size);
}

template <class T>
T TextFormatCursor::number() {
  colon();
  const bool negative = matches('-');
  std::string word(token());
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (word.ends_with('f') && word != "inf") word.pop_back();
  const std::optional<T> value = nearest_number<T>(word);
  if (!value) error("expected a number");
  return negative ? -*value : *value;
}

template float TextFormatCursor::number<float>();
template double TextFormatCursor::number<double>();

// Up to `most` digits of a base, at least one.
uint32_t TextFormatCursor::digits(size_t most, unsigned base) {
  const std::string_view rest = text_.substr(position_, most);
  uint32_t value = 0;
  const auto [end, problem] =
      std::from_chars(rest.data(), rest.data() + rest.size(), value, static_cast<int>(base));
  if (problem != std::errc()) error("a string has an escape without digits");
  position_ += static_cast<size_t>(end - rest.data());
  return value;
}

void TextFormatCursor::escape(std::string& value) {
  const char c = position_ < text_.size() ? text_[position_++] : '\0';
  static constexpr std::string_view letters = "abfnrtv\\'\"?", meanings = "\a\b\f\n\r\t\v\\'\"?";
  if (const size_t at = letters.find(c); c != '\0' && at != std::string_view::npos) {
    value += meanings[at];
  } else if (c >= '0' && c <= '7') {
    --position_;
    const uint32_t byte = digits(3, 8);
    if (byte > 0xff) error("a string has an escape beyond \\377");
    value += static_cast<char>(byte);
  } else if (c == 'x' || c == 'X') {
    value += static_cast<char>(digits(2, 16));
  } else if (c == 'u' || c == 'U') {
    if (!append_utf8(digits(c == 'u' ? 4 : 8, 16), value)) error("\\u names no character");
  } else {
    error("a string has an unknown escape");
  }
}

void TextFormatCursor::piece(std::string& value) {
  const size_t start = position_;
  const char quote = text_[position_++];
  while (position_ < text_.size() && text_[position_] != quote) {
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
}

std::string TextFormatCursor::bytes() {
  colon();
  if (peek() != '"' && peek() != '\'') error("expected a string");
  std::string value;
  while (peek() == '"' || peek() == '\'') piece(value);
  return value;
}

void TextFormatCursor::finish() {
  peek();
  if (position_ < text_.size()) error("expected the end of the text");
}

}  // namespace sardonyx::wire
