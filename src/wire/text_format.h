// Protobuf's text format: the writer and the cursor that named_writer.h and named_reader.h use.
// Internal to wire.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/json_form.h"
#include "wire/sink.h"

namespace sardonyx::wire {

class TextFormatWriter {
 public:
  explicit TextFormatWriter(Sink& sink) : out_(sink) {}

  void open();
  void close();
  void key(std::string_view name, bool is_message);
  void end_field() { out_.put('\n'); }
  void open_list(std::string_view name, bool of_messages);
  void close_list();
  void item(std::string_view name);
  void end_item();
  void integer(int64_t value, bool wide);
  void integer(uint64_t value);
  void word(std::string_view word) { out_.put(word); }
  void number(float value);
  void number(double value);
  void text(std::string_view text) { bytes(text); }
  void bytes(std::string_view bytes);
  void finish() { out_.flush(); }

 private:
  FormBuffer out_;
  size_t depth_ = 0;
  // Lists of messages repeat their name; lists of scalars stand in brackets. Nested lists lie in
  // messages, so that a list of scalars never holds another.
  std::vector<bool> of_messages_;
  bool first_item_ = true;
};

class TextFormatCursor {
 public:
  explicit TextFormatCursor(std::string_view text) : text_(text) {}

  void open();
  bool next_key(std::string& key);
  bool is_name(std::string_view key, std::string_view name) const { return key == name; }
  void each(const std::function<void()>& item);
  bool next_is_word();
  std::string word();
  int64_t integer();
  uint64_t unsigned_integer();
  template <class T>
  T number();
  std::string text() { return bytes(); }
  std::string bytes();
  void finish();
  [[noreturn]] void error(const std::string& message) const;

 private:
  char peek();
  bool matches(char c);
  void colon();
  void piece(std::string& value);
  void escape(std::string& value);
  uint32_t digits(size_t most, unsigned base);
  std::string_view token();

  std::string_view text_;
  size_t position_ = 0;
  size_t token_ = 0;
  std::string closers_;  // of the open messages
};

}  // namespace sardonyx::wire
