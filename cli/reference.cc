#include "reference.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "program.h"
#include "sardonyx/passes.h"

namespace sardonyx::cli {
namespace {

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// "{a,b}" in the name of a type is a list of what may be given, and so is CLI::IsMember's.
std::vector<std::string> choices_of(const std::string& type) {
  if (type == "PASS") {
    std::vector<std::string> names;
    for (const PassDescription& pass : optimizer_passes()) names.push_back(pass.name);
    return names;
  }
  if (type == "NAME=WHAT") return {"random", "ones"};
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (end == std::string::npos) return {};
  return parts_of(std::string_view(type).substr(begin + 1, end - begin - 1), ',');
}

ValueKind kind_of(const std::string& type, const std::vector<std::string>& choices) {
  if (type == "NAME=WHAT") return ValueKind::named_file;
  if (!choices.empty()) return ValueKind::choice;
  bool folder = false;
  for (const std::string& part : parts_of(type, '|')) {
    if (part.starts_with("FILE") || part == "NPZ") return ValueKind::file;
    folder |= part == "DIR" || part == "FOLDER";
  }
  return folder ? ValueKind::folder : ValueKind::other;
}

OptionReference reference_of(const CLI::Option& option) {
  OptionReference made;
  made.help = on_one_line(option.get_description());
  made.required = option.get_required();
  made.repeatable = option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
  const std::string type = option.get_type_name();
  made.choices = choices_of(type);
  if (option.get_positional()) {
    made.names = {option.get_name(true, false)};
    made.value = made.names[0];
    made.kind = made.choices.empty() ? ValueKind::file : ValueKind::choice;
    return made;
  }
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  if (option.get_items_expected_max() == 0) return made;  // a flag
  const size_t list = made.choices.empty() ? std::string::npos : type.find(":{");
  made.value = list == std::string::npos ? type : type.substr(list + 1);
  made.kind = kind_of(type, made.choices);
  return made;
}

std::vector<OptionReference> options_of(const CLI::App& app, bool positional) {
  std::vector<OptionReference> made;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() == positional && (positional || !option->get_group().empty()))
      made.push_back(reference_of(*option));
  }
  return made;
}

}  // namespace

ProgramReference program_reference() {
  CLI::App app;
  Action unused;
  std::string limit;
  define_program(app, unused, limit);
  ProgramReference program{options_of(app, false), {}};
  for (const CLI::App* command : app.get_subcommands({})) {
    program.commands.push_back({command->get_name(), command->get_description(),
                                options_of(*command, true), options_of(*command, false)});
  }
  return program;
}

}  // namespace sardonyx::cli
