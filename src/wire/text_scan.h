// Characters of the textual syntax to tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sardonyx::wire {

constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// True for what the syntax takes as a name without quotes.
bool is_identifier(std::string_view text);
// "inf", "infinity" or "nan" in any letter case: a number, not a name, where a value may stand.
bool is_float_word(std::string_view text);
// The nearest T (float or double) to a number's text. Underflow gives zero or a subnormal, overflow
// an infinity; nothing where the text is no number.
template <class T>
std::optional<T> nearest_number(std::string_view text);

// A cursor over a text. Tokens are separated by white space, comments ("#" to the end of the
// line) and the marker "#@", whose line other readers of the syntax skip.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() { return skip_space(), position_ >= text_.size(); }
  // The next character that is no space; '\0' at the end.
  char peek() { return at_end() ? '\0' : text_[position_]; }
  bool matches(char c);
  bool matches(std::string_view token);
  // Throws where the next character is not `c`; `where` completes "expected ')' …".
  void expect(char c, std::string_view where);
  void expect(std::string_view token, std::string_view where);

  // The identifier that comes next, left in place; empty where there is none.
  std::string_view peek_identifier();
  bool next_is_string();
  bool next_is_name() { return next_is_string() || !peek_identifier().empty(); }
  // True before "{ key :", which starts a record of annotations.
  bool next_is_record();

  std::string_view identifier(std::string_view what);
  std::string string(std::string_view what);
  std::string name(std::string_view what);  // an identifier or a string

  struct Number {
    std::string_view text;
    bool is_integer = false;
  };
  bool next_is_number();
  Number number(std::string_view what);
  int64_t integer(std::string_view what);
  uint64_t unsigned_integer(std::string_view what);
  // The number at this place as T (float or double); integers are taken, too.
  template <class T>
  T floating(std::string_view what);
  // The value of a token that number() gave before.
  int64_t integer_value(const Number& number, std::string_view what);
  template <class T>
  T float_value(const Number& number);

  size_t position() const { return position_; }
  void rewind(size_t position) { position_ = position; }

  // Throws Error located at the next token: "expected …; found '…'".
  [[noreturn]] void expected(std::string_view what);
  // Throws Error located at the token that started at `position`.
  [[noreturn]] void error_at(size_t position, std::string message) const;

 private:
  void skip_space();
  std::string plain_string(std::string_view what);
  std::string escaped_string(std::string_view what);
  char escape(std::string_view what);
  std::string found();
  std::string type_advice();

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace sardonyx::wire
