#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "os.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

// An empty name is refused, and "-" becomes the stream.
std::string resolve(std::string& path, const char* stream) {
  if (path.empty()) return "the name of a file is empty";
  if (path == "-") path = stream;
  return {};
}

Check model_file() {
  const auto check = [](std::string& given) {
    std::string problem = resolve(given, "/dev/stdin");
    return problem.empty() ? gather_pipe(given) : problem;
  };
  return check;
}

std::string range_text(int64_t least, int64_t most) {
  if (most != std::numeric_limits<int64_t>::max())
    return fmt::format("a whole number from {} to {}", least, most);
  if (least != std::numeric_limits<int64_t>::min())
    return fmt::format("a whole number from {} on", least);
  return "a whole number of at most 64 bits";
}

}  // namespace

std::string gather_pipe(const std::string& path) {
  const std::optional<int> descriptor = descriptor_named(path);
  if (!descriptor || !os::is_pipe(*descriptor) || os::gather(*descriptor)) return {};
  return fmt::format("cannot read {}: {}", path, std::strerror(errno));
}

void add_model_argument(const Options& command, const char* name, std::string& path,
                        const char* what) {
  command.add_option(name, path, what).required().transform(model_file());
}

void add_model_arguments(const Options& command, const char* name, std::vector<std::string>& paths,
                         const char* what) {
  command.add_option(name, paths, what).required().transform(model_file());
}

Check output_file() {
  const auto check = [](std::string& given) { return resolve(given, "/dev/stdout"); };
  return check;
}

Check operator_set_file() {
  const auto check = [](std::string& given) {
    const bool is_number = !given.empty() && given.find_first_not_of("0123456789") == given.npos;
    if (!is_number || os::exists(given)) return std::string();
    return fmt::format(
        "names a document of an operator set here, a file; got '{0}'. A model's own opset is "
        "raised by 'sardonyx convert MODEL OUTPUT --opset {0}'",
        given);
  };
  return check;
}

Check whole_number(int64_t least, int64_t most) {
  const auto check = [least, most](std::string& text) {
    int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, number);
    if (problem == std::errc() && stop == end && number >= least && number <= most)
      return std::string();
    return fmt::format("must be {}; got '{}'", range_text(least, most), text);
  };
  return check;
}

Check not_empty() {
  const auto check = [](std::string& text) {
    return text.empty() ? std::string("needs a name; got an empty one") : std::string();
  };
  return check;
}

Check one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    return fmt::format("must be one of {}; got '{}'", fmt::join(words, ", "), printable(text));
  };
  return check;
}

void tell_written(std::string_view path, std::string_view text) {
  if (descriptor_named(path) == os::standard_output) {
    say(text);
  } else {
    emit(text);
  }
}

void warn_of_old_name(std::string_view name, std::string_view old_name) {
  warn(fmt::format("{} is called {} now; the old name goes with the next version", old_name, name));
}

void add_renamed_flag(const Options& command, const std::string& name, const std::string& old_name,
                      bool& flag, const std::string& help) {
  command.add_flag(name, flag, help);
  const auto use_old = [&flag, name, old_name] {
    flag = true;
    warn_of_old_name(name, old_name);
  };
  command.add_flag(old_name, use_old, "The old name of " + name).group("");
}

void add_operator_sets(const Options& command, std::vector<std::string>& files) {
  command
      .add_option("--operator-set", files,
                  "A document of an operator set that the model imports; repeatable")
      .check(operator_set_file())
      .one_value_each()
      .type_name("FILE");
  const auto use_old = [&files](const std::vector<std::string>& given) {
    files.insert(files.end(), given.begin(), given.end());
    warn_of_old_name("--operator-set", "--opset");
  };
  const auto check_old = [check = operator_set_file()](std::string& given) {
    const std::string problem = check(given);
    return problem.empty() ? problem : "--opset " + problem;
  };
  command.add_list("--opset", use_old, "The old name of --operator-set")
      .check(check_old)
      .one_value_each()
      .type_name("FILE")
      .group("");
}

std::optional<int> descriptor_named(std::string_view path) {
  if (path == "/dev/stdin") return os::standard_input;
  if (path == "/dev/stdout") return os::standard_output;
  if (path == "/dev/stderr") return os::standard_error;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int descriptor = -1;
    const char* end = path.data() + path.size();
    const auto [stop, problem] = std::from_chars(path.data() + folder.size(), end, descriptor);
    if (problem == std::errc() && stop == end && descriptor >= 0) return descriptor;
  }
  return std::nullopt;
}

}  // namespace sardonyx::cli
