#include "formats/npy_header.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/fail.h"

namespace sardonyx::formats {
namespace {

// The header is a Python dictionary of a string, a truth value and a tuple of numbers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        skip_space();
        if (!text_.empty() && text_.front() == '[')
          fail(ErrorCode::unsupported, "arrays of records (structured dtypes) are not read");
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = truth();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        unsound_npy(fmt::format("its header has the unknown key '{}'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape)
      unsound_npy("its header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  void skip_space() {
    const size_t next = text_.find_first_not_of(" \t\n\r");
    text_.remove_prefix(std::min(next, text_.size()));
  }
  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) unsound_npy(fmt::format("its header has no '{}' where one belongs", c));
  }
  std::string quoted() {
    skip_space();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"'))
      unsound_npy("its header lacks a quoted string");
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) unsound_npy("a string in its header does not end");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool truth() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    unsound_npy("fortran_order is neither True nor False");
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t dim = 0;
      const auto [stop, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc()) unsound_npy("its shape is not a tuple of 64-bit numbers");
      text_.remove_prefix(static_cast<size_t>(stop - text_.data()));
      if (!text_.empty() && text_.front() == 'L') text_.remove_prefix(1);  // Python 2
      shape.push_back(dim);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::string_view text_;
};

}  // namespace

[[noreturn]] void unsound_npy(std::string_view what) {
  fail(ErrorCode::unreadable, "not a sound .npy file: {}", what);
}

NpyHeader read_npy_header(std::string_view file) {
  if (!file.starts_with(npy_magic)) unsound_npy("it does not begin with '\\x93NUMPY'");
  if (file.size() < 10) unsound_npy("it is too short");
  const int version = static_cast<unsigned char>(file[6]);
  if (version < 1 || version > 3)
    unsound_npy(fmt::format("its version is {}; 1 to 3 are read", version));
  uint32_t length = 0;
  const size_t width = version == 1 ? 2 : 4;
  if (file.size() < 8 + width) unsound_npy("it is too short");
  std::memcpy(&length, file.data() + 8, width);
  const size_t start = 8 + width;
  if (length > file.size() - start) unsound_npy("its header is cut off");
  NpyHeader header = HeaderParser(file.substr(start, length)).parse();
  header.data_offset = start + length;
  return header;
}

}  // namespace sardonyx::formats
