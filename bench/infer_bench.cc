// Times inference inside one process: infer_bench types|write MODEL OUTPUT REPEAT.
// Prints {"ms": processor time of the median repetition, "mb": memory resident at most, "base_mb":
// before the first}.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "memory.h"
#include "sardonyx/infer.h"

namespace {

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

int run(const std::string& what, const std::string& model, const std::string& output, int repeat) {
  const double base = resident_mb();
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const double start = processor_ms();
    if (what == "types") {
      sardonyx::infer_types(model);
    } else {
      sardonyx::infer_file(model, output);
    }
    times.push_back(processor_ms() - start);
  }
  std::nth_element(times.begin(), times.begin() + repeat / 2, times.end());
  std::printf("{\"ms\": %.6f, \"mb\": %.1f, \"base_mb\": %.1f}\n", times[times.size() / 2],
              resident_mb(), base);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count == 5 ? words[1] : "";
  if (what != "types" && what != "write") {
    std::fprintf(stderr, "usage: infer_bench types|write MODEL OUTPUT REPEAT\n");
    return 2;
  }
  try {
    return run(what, words[2], words[3], std::max(1, std::atoi(words[4])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "infer_bench: %s\n", error.what());
    return 1;
  }
}
