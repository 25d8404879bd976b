// Checks many models in one process: tests/python/broken_models.py holds what is found against the
// reference checker.
//   check_runner [--standard] [--folder DIR] <MODELS
// MODELS are files one after the other, each after its length of 8 bytes, little endian. For each,
// a line: its number, the number of errors, and of each error the rule, the place and the message,
// all between tabs. External data lies in DIR.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "session/reading.h"
#include "tools/check_file.h"

using namespace sardonyx;

namespace {

std::string one_line(std::string text) {
  std::ranges::replace(text, '\t', ' ');
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool read_next(std::vector<char>& bytes) {
  uint8_t header[8];
  if (std::fread(header, 1, sizeof header, stdin) != sizeof header) return false;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | header[i];
  bytes.resize(length);
  return std::fread(bytes.data(), 1, length, stdin) == length;
}

std::string errors_of(const std::vector<char>& bytes, const std::string& folder,
                      const CheckFileOptions& options) {
  std::string text;
  size_t count = 0;
  const auto add = [&](std::string_view rule, const std::string& place,
                       const std::string& message) {
    ++count;
    text += fmt::format("\t{}\t{}\t{}", rule, one_line(place), one_line(message));
  };
  try {
    ir::Model model = read_model_bytes(Bytes::copy_of(std::as_bytes(std::span(bytes))), folder);
    for (const check::Diagnostic& finding : check_model(std::move(model), options)) {
      if (finding.severity == check::Severity::error)
        add(finding.rule, finding.place.to_string(), finding.message);
    }
  } catch (const Error& error) {
    add("file", error.location(), error.message());
  }
  return fmt::format("{}{}", count, text);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Checks many models in one process");
  bool standard = false;
  std::string folder = ".";
  app.add_flag("--standard", standard,
               "By the standard profile, with inference, instead of the strict one");
  app.add_option("--folder", folder, "Where external data lies");
  CLI11_PARSE(app, argc, argv);
  CheckFileOptions options;
  options.full = true;
  options.rules.profile = standard ? check::Profile::standard : check::Profile::strict;
  std::vector<char> bytes;
  for (size_t number = 0; read_next(bytes); ++number)
    fmt::print("{}\t{}\n", number, errors_of(bytes, folder, options));
  return 0;
}
