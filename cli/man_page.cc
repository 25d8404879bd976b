// The manual page, in the macros of man(7).
#include <fmt/format.h>

#include <cctype>
#include <cstdint>

#include "program.h"
#include "reference.h"
#include "sardonyx/about.h"

namespace sardonyx::cli {
namespace {

// The code point that begins at text[at], and where the next one begins. Texts are the program's
// own: UTF-8.
uint32_t code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  uint32_t point = more == 0 ? first : first & (0x3Fu >> more);
  for (int i = 0; i < more && at < text.size(); ++i) point = point << 6 | (byte(at++) & 0x3Fu);
  return point;
}

// Text as roff shows it as it is: minus signs that can be copied, no requests, no escapes.
std::string roff(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const uint32_t point = code_point(text, at);
    if (point == '\\') {
      made += "\\e";
    } else if (point == '-') {
      made += "\\-";
    } else if (point == '\'') {
      made += "\\(aq";
    } else if (point == '^') {
      made += "\\(ha";
    } else if (point == '~') {
      made += "\\(ti";
    } else if (point == '`') {
      made += "\\(ga";
    } else if (point > 0x7E) {
      made += fmt::format("\\[u{:04X}]", point);
    } else {
      made += static_cast<char>(point);
    }
  }
  if (made.starts_with('.')) made.insert(0, "\\&");
  return made;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

// What an option's value is called; lists of words stand as they are typed.
std::string value_text(const OptionReference& option) {
  return option.value.starts_with('{') ? roff(option.value) : italic(option.value);
}

std::string synopsis(const CommandReference& command) {
  std::string text = ".B sardonyx " + roff(command.name) + "\n[\\fIOPTIONS\\fR]";
  for (const OptionReference& argument : command.arguments) {
    const std::string name =
        italic(argument.names[0]) + (argument.repeatable ? " \\&.\\|.\\|." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

std::string option_entry(const OptionReference& option) {
  std::string text = ".TP\n";
  for (size_t i = 0; i < option.names.size(); ++i)
    text += (i == 0 ? "" : ", ") + bold(option.names[i]);
  if (option.kind != ValueKind::none) text += " " + value_text(option);
  text += "\n" + roff(option.help);
  if (!option.help.ends_with('.')) text += ".";
  if (option.required) text += " Required.";
  return text + "\n";
}

std::string sentence(std::string_view text) {
  std::string made(text);
  made[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(made[0])));
  return roff(made) + ".";
}

std::string command_section(const CommandReference& command) {
  std::string text = fmt::format(".SS \"{}\"\n", roff(command.name));
  text += synopsis(command) + ".PP\n" + roff(command.help) + ".\n";
  for (const OptionReference& argument : command.arguments) {
    text += fmt::format(".TP\n{}\n{}.\n", italic(argument.names[0]), roff(argument.help));
  }
  for (const OptionReference& option : command.options) text += option_entry(option);
  return text;
}

std::string paragraph(std::string_view text) { return ".PP\n" + roff(text) + "\n"; }

}  // namespace

std::string man_page(const ProgramReference& program) {
  std::string page =
      fmt::format(".TH SARDONYX 1 \"\" \"sardonyx {}\" \"User Commands\"\n", about().version);
  page += ".SH NAME\nsardonyx \\- read, check, explain, run and train ONNX models\n";
  page += ".SH SYNOPSIS\n.B sardonyx\n.I COMMAND\n[\\fIOPTIONS\\fR] \\fIMODEL\\fR\n";
  page += ".SH DESCRIPTION\n" + roff(program_summary) + "\n";
  page += paragraph(
      "A model's name says where it is another form than ONNX's binary one: .onnxtxt for ONNX's "
      "textual syntax, .json and .textproto for protobuf's readable forms. The name - is standard "
      "input.");
  page += paragraph(
      "Results go to standard output, errors to standard error. An error says where, what was "
      "found, what was expected and what to do.");
  page += ".SH COMMANDS\n";
  for (const CommandReference& command : program.commands) page += command_section(command);
  page += ".SH OPTIONS\nBefore a command:\n";
  for (const OptionReference& option : program.options) page += option_entry(option);
  page += ".SH \"EXIT STATUS\"\n";
  for (const ExitMeaning& exit : exit_meanings())
    page += fmt::format(".TP\n.B {}\n{}\n", exit.code, sentence(exit.meaning));
  page += ".SH ENVIRONMENT\n.TP\n.B SARDONYX_CPU\n";
  page += roff(
      "avx512, avx_vnni, avx2 or baseline; on Arm neon: kernels use no wider instructions than "
      "these. Without it they use all that the processor has.");
  page += "\n.SH EXAMPLES\n";
  for (const Example& example : examples()) {
    page += ".TP\n" + bold(fmt::format("sardonyx {}", example.command)) + "\n";
    page += sentence(example.effect) + "\n";
  }
  return page;
}

}  // namespace sardonyx::cli
