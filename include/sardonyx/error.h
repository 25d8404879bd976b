// How Sardonyx reports what went wrong.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// What kind of thing went wrong. The command line turns each into its exit code.
enum class ErrorCode {
  unreadable,     // a file is missing, not readable, or not what its name says
  invalid_model,  // the model breaks a rule that running or reading needs
  unsupported,    // the model is legal but asks for something Sardonyx does not do
  bad_input,      // the caller passed a wrong name, shape, type or value
  run_failed,     // a node could not be computed with the values it met
  cancelled,      // the caller cancelled the run or its deadline passed
  out_of_memory,  // a memory limit was reached
  internal,       // a defect of Sardonyx itself
};

std::string_view name_of(ErrorCode code);  // "unreadable"

// The one exception of the public C++ interface. `what()` is "location: message" on one line; where
// a text can't be parsed, two more show the place.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, std::string location = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // Where in the model or file: "graph 'main', node 3 Softmax 'probs'", or empty.
  const std::string& location() const { return location_; }
  const char* what() const noexcept override { return what_.c_str(); }

  // The same error with `outer` put before its location.
  Error within(std::string_view outer) const;

 private:
  ErrorCode code_;
  std::string message_;
  std::string location_;
  std::string what_;
};

}  // namespace sardonyx

#pragma GCC visibility pop
