// Protobuf's JSON form: the writer and the cursor that named_writer.h and named_reader.h use.
// Internal to wire.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/sink.h"

namespace sardonyx::wire {

// Gathers small pieces before they go to a sink.
class FormBuffer {
 public:
  explicit FormBuffer(Sink& sink) : sink_(sink) {}
  void put(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= (1 << 16)) flush();
  }
  void put(char c) { buffer_ += c; }
  void flush() {
    sink_.put(buffer_);
    buffer_.clear();
  }

 private:
  Sink& sink_;
  std::string buffer_;
};

// The shortest text from which a reader gets the same float, be it by way of a double, which some
// refuse where it is beyond the largest float.
std::string text_of_float(float value);

class JsonWriter {
 public:
  explicit JsonWriter(Sink& sink) : out_(sink) {}

  void open();
  void close();
  void key(std::string_view name, bool is_message);
  void end_field() {}
  void open_list(std::string_view name, bool of_messages);
  void close_list();
  void item(std::string_view name);
  void end_item() {}
  void integer(int64_t value, bool wide);
  void integer(uint64_t value);
  void word(std::string_view word);
  void number(float value);
  void number(double value);
  void text(std::string_view text);
  void bytes(std::string_view bytes);
  void finish();

 private:
  struct Level {
    bool empty = true;
    bool lines = true;  // each element on a line of its own
  };
  void separate();
  void new_line();

  FormBuffer out_;
  std::vector<Level> levels_;
};

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  void open();
  // The next key of the message at hand, as the standard writes it; false, and the message is
  // closed, where there is none. Keys whose value is null are passed over.
  bool next_key(std::string& key);
  bool is_name(std::string_view key, std::string_view name) const { return key == name; }
  void each(const std::function<void()>& item);
  bool next_is_word();
  std::string word() { return string(); }
  int64_t integer();
  uint64_t unsigned_integer();
  template <class T>
  T number();
  std::string text();
  std::string bytes();
  void finish();
  [[noreturn]] void error(const std::string& message) const;

 private:
  char peek();
  void expect(char c, std::string_view where);
  bool matches(char c);
  std::string string();
  void escape(std::string& value);
  uint32_t hex4();
  std::string_view number_token(std::string& quoted);
  template <class T>
  T integer_as();

  std::string_view text_;
  size_t position_ = 0;
  size_t token_ = 0;  // where the token began that an error speaks of
  bool first_ = true;
};

}  // namespace sardonyx::wire
