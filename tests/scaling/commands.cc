// What each command does with model files, for callgrind to count (tests/python/test_scaling.py).
//   scaling_commands MODEL…
// Prints "MODEL COMMAND BYTES" after each: the most memory that it had in use beyond what was there
// before it. Only what runs inside sardonyx_measured counts as instructions.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocations/failing_new.h"
#include "sardonyx/infer.h"
#include "sardonyx/info.h"
#include "sardonyx/inputs.h"
#include "sardonyx/session.h"
#include "tools/check_file.h"
#include "tools/convert.h"
#include "tools/saving.h"

#if defined(__clang__)
#define SARDONYX_AS_IT_IS noinline
#else
#define SARDONYX_AS_IT_IS noipa  // no clone of it with another name
#endif

extern "C" __attribute__((SARDONYX_AS_IT_IS)) void sardonyx_measured(
    const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception&) {  // models may be wrong: refusing them costs as well
  }
  __asm__ volatile("" ::: "memory");  // no tail call: leaving it ends a count
}

namespace {

using namespace sardonyx;

void run(const std::string& path, bool plain) {
  SessionOptions options;
  options.threads = 1;
  options.reference = plain;
  const Session session(path, options);
  std::vector<NamedValue> inputs;
  for (const ValueDescription& input : session.inputs()) {
    if (!input.optional) inputs.emplace_back(input.name, ones_value(input, shape_for(input, {})));
  }
  session.run(inputs);
}

void check(const std::string& path, bool full) {
  CheckFileOptions options;
  options.full = full;
  check_model_file(path, options);
}

void show(const std::string& path) {
  size_t bytes = 0;
  Model(path, {.load_external_data = false}).write_text([&](std::string_view text) {
    bytes += text.size();
  });
}

void convert_up(const std::string& path) {
  ConvertOptions options;
  options.opset = 22;
  save_model(convert(Model(path), options), path + ".converted.onnx", {});
}

using Command = std::pair<const char*, void (*)(const std::string&)>;
constexpr Command commands[] = {
    {"check", [](const std::string& path) { check(path, false); }},
    {"check --full", [](const std::string& path) { check(path, true); }},
    {"infer", [](const std::string& path) { infer_types(path); }},
    {"infer -o", [](const std::string& path) { infer_file(path, path + ".inferred.onnx"); }},
    {"info", [](const std::string& path) { model_info(path); }},
    {"show", show},
    {"convert", convert_up},
    {"run", [](const std::string& path) { run(path, false); }},
    {"run --reference", [](const std::string& path) { run(path, true); }},
};

void measure(const std::string& path) {
  for (const auto& [name, work] : commands) {
    const long before = failing_new::in_use;
    failing_new::max_in_use = before;
    sardonyx_measured([&, work = work] { work(path); });
    fmt::print("{}\t{}\t{}\n", path, name, failing_new::max_in_use - before);
  }
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) measure(arguments[i]);
  return 0;
}
