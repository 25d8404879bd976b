// Times one operation on a model file: format_bench load|check|print|show|save MODEL OUTPUT REPEAT.
// `print` makes the text, `show` also writes it to a file. `save` takes turns with a raw write of
// the same bytes. Prints {"s": the least seconds, "cpu": the least time of the processor, "mb":
// memory resident at most, "base_mb": before the first}; `save` also medians of both.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "memory.h"
#include "session/reading.h"
#include "tools/check_file.h"
#include "tools/saving.h"

namespace {

// All of the text passes by once.
void print(const std::string& model) {
  size_t size = 0;
  sardonyx::Model(model, {.load_external_data = false}).write_text([&](std::string_view text) {
    size += text.size();
  });
  if (size == 0) throw std::runtime_error("no text");
}

// As `sardonyx show MODEL > OUTPUT` does.
void show(const std::string& model, const std::string& output) {
  std::FILE* file = std::fopen(output.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot write " + output);
  sardonyx::Model(model, {.load_external_data = false}).write_text([&](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), file);
  });
  std::fclose(file);
}

// Wall clock and processor, in seconds.
struct Times {
  std::vector<double> wall, processor;

  void add(const std::function<void()>& operation) {
    const auto start = std::chrono::steady_clock::now();
    const double before = processor_now();
    operation();
    processor.push_back(processor_now() - before);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    wall.push_back(taken.count());
  }

 private:
  static double processor_now() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
};

double least(const std::vector<double>& times) { return *std::ranges::min_element(times); }

double median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// What a save cannot do without: bytes out of memory into a new file, until the disk has them.
void write_raw(const sardonyx::Bytes& bytes, const std::string& output) {
  const std::string name = output + ".raw";
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) throw std::runtime_error("cannot create " + name);
  for (size_t done = 0; done < bytes.size();) {
    const size_t piece = std::min(bytes.size() - done, size_t{1} << 30);
    const ssize_t written = write(file, bytes.data() + done, piece);
    if (written < 0) throw std::runtime_error("cannot write " + name);
    done += static_cast<size_t>(written);
  }
  if (fsync(file) != 0) throw std::runtime_error("cannot sync " + name);
  close(file);
  std::rename(name.c_str(), (output + ".written").c_str());
}

void print_times(const Times& times, double peak, double base) {
  std::printf("{\"s\": %.9f, \"cpu\": %.9f, \"mb\": %.1f, \"base_mb\": %.1f", least(times.wall),
              least(times.processor), peak, base);
}

int time_save(const std::string& model, const std::string& output, int repeat) {
  Times save, raw;
  const double base = resident_mb();
  sardonyx::convert_model(model, output, {});
  const double peak = resident_mb();  // the raw write holds all bytes
  const sardonyx::Bytes bytes = sardonyx::read_file(model);
  for (int i = 0; i < repeat; ++i) {
    raw.add([&] { write_raw(bytes, output); });
    save.add([&] { sardonyx::convert_model(model, output, {}); });
  }
  print_times(save, peak, base);
  std::printf(", \"median_s\": %.9f, \"median_cpu\": %.9f, \"raw_s\": %.9f, \"raw_cpu\": %.9f}\n",
              median(save.wall), median(save.processor), median(raw.wall), median(raw.processor));
  return 0;
}

int run(const std::string& what, const std::string& model, const std::string& output, int repeat) {
  using namespace sardonyx;
  if (what == "save") return time_save(model, output, repeat);
  const std::map<std::string, std::function<void()>> operations = {
      {"load", [&] { read_model_file(model); }},
      {"check", [&] { check_model_file(model, {}); }},
      {"print", [&] { print(model); }},
      {"show", [&] { show(model, output + ".onnxtxt"); }}};
  const auto operation = operations.find(what);
  if (operation == operations.end()) return 2;
  Times times;
  const double base = resident_mb();
  for (int i = 0; i < repeat; ++i) times.add(operation->second);
  print_times(times, resident_mb(), base);
  std::printf("}\n");
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
