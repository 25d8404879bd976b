// The options and arguments of a command. CLI11 parses them; its headers take seconds to compile,
// so that only options.cc and what parses and describes the whole command line see them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sardonyx::cli {

// Looks at the text of a value, and may put another in its place; returns what is wrong with it, ""
// where nothing is.
using Check = std::function<std::string(std::string&)>;

// One option or argument of a command. A handle: copies mean the same one.
class Option {
 public:
  Option() = default;
  explicit Option(CLI::Option* option) : option_(option) {}

  // How often the command line has given it.
  size_t count() const;

  Option required(bool is_required = true) const;
  // Refuses values; those that are changed stay changed. Checks go in the order they were added.
  Option check(Check check) const;
  // The same, before all checks.
  Option transform(Check change) const;
  // What help shows for its value: "FILE", "N", "{one,other}".
  Option type_name(const std::string& name) const;
  // The heading that help lists it under; "": it isn't listed.
  Option group(const std::string& name) const;
  // It makes sense only beside the other one, or only without it.
  Option needs(Option other) const;
  Option excludes(Option other) const;
  // What separates several values in one text.
  Option delimiter(char separator) const;
  // Each use takes one value; more of them are more uses. Lists take all that follows otherwise.
  Option one_value_each() const;

 private:
  CLI::Option* option_ = nullptr;
};

// All of a command's. A handle, too.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(&app) {}

  // The command `name` of the program that this stands for.
  Options add_command(const std::string& name, const std::string& help) const;
  // Called when the command line has chosen this command, after its values were set.
  void on_chosen(std::function<void()> call) const;

  // `names` is "-o,--output", or "MODEL" for an argument; `value` gets what the command line gives,
  // and must live as long as the program parses. Values are of the types that options.cc names at
  // its end.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help) const;
  Option add_flag(const std::string& names, bool& value, const std::string& help) const;
  // Calls `use` instead of setting anything.
  Option add_list(const std::string& names,
                  std::function<void(const std::vector<std::string>&)> use,
                  const std::string& help) const;
  Option add_flag(const std::string& names, std::function<void()> use,
                  const std::string& help) const;

  // The one of this name, which there is.
  Option option(const std::string& name) const;
  void remove_option(const std::string& name) const;

 private:
  CLI::App* app_;
};

}  // namespace sardonyx::cli
