// What a session tells besides results and errors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// How much a message matters, from least to most.
enum class LogLevel : uint8_t {
  debug = 1,    // what a session does: a plan was made for new sizes
  info = 2,     // what makes a difference to time or memory: a file of packed weights is stale
  warning = 3,  // what is not as asked for, or may be a mistake: fewer threads than were asked for
  error = 4,    // what is lost and nobody else is told of: an exception of a callback
};
// "debug", "info", "warning", "error"
std::string_view name_of(LogLevel level);

// Texts are for people, and may change with every version.
struct LogMessage {
  LogLevel level = LogLevel::info;
  std::string rule = {};     // of the checker (docs/checker.md): "G-20"; mostly empty
  std::string place = {};    // "session", "input 'x'", the path of a file
  std::string message = {};  // what was found or done
  std::string advice = {};   // what was made of it, or what to do; may be empty
  // "warning: session: 64 threads were asked for; …; raise the limit … [G-20]"
  std::string to_string() const;
};

// Called on the thread that finds what it tells: one that makes a session, one that runs it, or one
// of run_async(); by several at a time where several run. It may be called while locks of the
// session are held: it must not use the session, its bindings or its model, nor make or destroy
// sessions of that model, and should return soon. What it throws is dropped.
using Log = std::function<void(const LogMessage&)>;

}  // namespace sardonyx

#pragma GCC visibility pop
