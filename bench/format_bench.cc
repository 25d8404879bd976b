// Times one operation on a model file: format_bench load|check|print|show|save MODEL OUTPUT REPEAT.
// `print` makes the text, `show` also writes it to a file.
// Prints {"s": the least seconds, "mb": memory resident at most, "base_mb": before the first}.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "memory.h"
#include "session/check_file.h"
#include "session/reading.h"
#include "session/saving.h"
#include "session/show.h"

namespace {

// All of the text passes by once.
void print(const std::string& model) {
  size_t size = 0;
  sardonyx::show_model(model, {}, [&](std::string_view text) { size += text.size(); });
  if (size == 0) throw std::runtime_error("no text");
}

// As `sardonyx show MODEL > OUTPUT` does.
void show(const std::string& model, const std::string& output) {
  std::FILE* file = std::fopen(output.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot write " + output);
  sardonyx::show_model(
      model, {}, [&](std::string_view text) { std::fwrite(text.data(), 1, text.size(), file); });
  std::fclose(file);
}

int run(const std::string& what, const std::string& model, const std::string& output, int repeat) {
  using namespace sardonyx;
  const std::map<std::string, std::function<void()>> operations = {
      {"load", [&] { read_model_file(model); }},
      {"check", [&] { check_model_file(model, {}); }},
      {"print", [&] { print(model); }},
      {"show", [&] { show(model, output + ".onnxtxt"); }},
      {"save", [&] { convert_model(model, output, {}); }}};
  const auto operation = operations.find(what);
  if (operation == operations.end()) return 2;
  const double base = resident_mb();
  double best = 1e9;
  for (int i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    operation->second();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  std::printf("{\"s\": %.9f, \"mb\": %.1f, \"base_mb\": %.1f}\n", best, resident_mb(), base);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: format_bench load|check|print|show|save MODEL OUTPUT REPEAT\n");
    return 2;
  }
  try {
    return run(words[1], words[2], words[3], std::max(1, std::atoi(words[4])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "format_bench: %s\n", error.what());
    return 1;
  }
}
