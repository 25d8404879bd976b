// Cases whose expected outputs cannot all be met, as tests/conformance/exceptions.txt lists them.
// tools/conformance_exceptions.py describes the format and reads the same.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx::conformance {

using Release = std::array<int, 3>;  // 1.17.0

// What is not a number counts as 0.
Release parse_release(std::string_view text);

struct Exception {
  enum class Kind {
    superseded,  // a later release expects something else, or the file is wrong
    random,      // the elements are drawn
    broken,      // the model or its data contradict themselves: to be refused
  };
  Kind kind;
  std::string reason;
  Release first, last;
  std::string name;
};

class Exceptions {
 public:
  Exceptions() = default;
  // Throws Error (bad_input) with the line where the text is no such list.
  explicit Exceptions(std::string_view text);

  // Null where the case is to be met in full.
  const Exception* find(const Release& release, std::string_view name) const;

 private:
  std::vector<Exception> all_;
};

}  // namespace sardonyx::conformance
