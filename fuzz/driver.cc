// Runs a fuzz target without libFuzzer: it mutates seeds, calls the target on the results, and
// keeps what went a way through the code that no input went before, to be mutated further.
//
//   fuzz_X [--stack KIB] FILE...        calls the target on each file once
//   fuzz_X [--seconds N] [--inputs N] --seed S --current FILE [--corpus FOLDER] [--stack KIB]
//          SEED...                      mutates, for so long (processor's time) or so many inputs
//
// What is kept is written to the corpus folder, and what stands there is read before the mutations
// begin. The ways are seen where the code was compiled with -fsanitize-coverage=trace-pc; without
// it mutations start from the seeds alone. The input under test stands in the file that --current
// names (eight bytes of length, then the input), in memory shared with it, so that it outlives a
// crash. An input that takes twenty seconds of the processor counts as a crash, too; the one that
// took longest is left beside it, with `.slowest` after its name. SIGINT and SIGTERM end a run
// early, with its figures.
//
// All of it happens on a thread with a stack of --stack KiB (3072 without it; sanitizers make
// frames up to five times as large as those that 512 KiB are promised to be enough for): a
// recursion without a bound ends there.
//
// Without seeds every other input is made of random bytes: for targets that draw what they test
// from them.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "target.h"

namespace {

using Input = std::vector<uint8_t>;
using Random = std::mt19937_64;

// Set by SIGINT and SIGTERM: the run ends as if its time were over.
volatile std::sig_atomic_t is_over = 0;

constexpr size_t largest_input = 1 << 20;
constexpr int longest_seconds = 20;

// How often each step from one block of code to another was taken by the input under test; steps
// that share a counter are few enough at this size.
constexpr size_t step_count = 1 << 18;
std::array<uint8_t, step_count> steps;
// The powers of two of such counts that any input has shown.
std::array<uint8_t, step_count> seen;
uintptr_t last_block = 0;

// Whether the input under test took a step never seen, or one far more often; begins the next
// input.
bool took_new_steps() {
  bool found = false;
  for (size_t at = 0; at < step_count; at += sizeof(uint64_t)) {
    uint64_t eight;
    std::memcpy(&eight, steps.data() + at, sizeof eight);
    if (eight == 0) continue;
    for (size_t i = at; i < at + sizeof eight; ++i) {
      if (steps[i] == 0) continue;
      const auto bit = static_cast<uint8_t>(1u << (31 - __builtin_clz(steps[i])));
      found |= (seen[i] & bit) == 0;
      seen[i] |= bit;
      steps[i] = 0;
    }
  }
  last_block = 0;
  return found;
}

size_t steps_seen() {
  return step_count - static_cast<size_t>(std::count(seen.begin(), seen.end(), uint8_t{0}));
}

Input read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(stream), {});
}

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

void change_bytes(Input& input, Random& random) {
  if (input.empty()) return;
  const size_t count = 1 + below(random, 4);
  for (size_t i = 0; i < count; ++i) {
    uint8_t& byte = input[below(random, input.size())];
    switch (below(random, 4)) {
      case 0: byte ^= static_cast<uint8_t>(1u << below(random, 8)); break;
      case 1: byte = static_cast<uint8_t>(random()); break;
      case 2: byte = static_cast<uint8_t>(byte + 1 - 2 * below(random, 2)); break;
      default: byte = below(random, 2) ? 0xff : 0x00; break;
    }
  }
}

void erase(Input& input, Random& random) {
  if (input.empty()) return;
  const size_t begin = below(random, input.size());
  const size_t length = 1 + below(random, std::min<size_t>(input.size() - begin, 64));
  const auto first = input.begin() + static_cast<std::ptrdiff_t>(begin);
  input.erase(first, first + static_cast<std::ptrdiff_t>(length));
}

// A piece of one input put into another: a different message where one is expected.
void splice(Input& input, const Input& other, Random& random) {
  if (other.empty()) return;
  const size_t begin = below(random, other.size());
  const size_t length = 1 + below(random, std::min<size_t>(other.size() - begin, 256));
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(below(random, input.size() + 1));
  const auto first = other.begin() + static_cast<std::ptrdiff_t>(begin);
  input.insert(place, first, first + static_cast<std::ptrdiff_t>(length));
}

// A number written over the input as protobuf writes it: lengths and sizes at their limits.
void write_number(Input& input, Random& random) {
  static constexpr uint64_t numbers[] = {0,
                                         1,
                                         127,
                                         128,
                                         65535,
                                         0x7fffffff,
                                         0xffffffff,
                                         0x100000000,
                                         0x7fffffffffffffff,
                                         0xffffffffffffffff};
  if (input.empty()) return;
  uint64_t number = numbers[below(random, std::size(numbers))];
  for (size_t at = below(random, input.size()); at < input.size(); ++at) {
    input[at] = static_cast<uint8_t>((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
    number >>= 7;
    if (number == 0) return;
  }
}

// A field that no message of the standard has: a model stays what it is, and what a target draws
// from its bytes becomes something else.
void add_unknown_field(Input& input, Random& random) {
  for (const uint8_t byte : {0x80, 0xe8, 0x07}) input.push_back(byte);  // field 16,000, a number
  for (int i = 0; i < 8; ++i) input.push_back(static_cast<uint8_t>(random() | 0x80));
  input.push_back(0);
}

// Half of the time one of those found last: they are where new ways begin.
const Input& choose(const std::vector<Input>& inputs, Random& random) {
  const size_t recent = std::min<size_t>(inputs.size(), 1 + inputs.size() / 16);
  return below(random, 2) == 0 ? inputs[below(random, inputs.size())]
                               : inputs[inputs.size() - 1 - below(random, recent)];
}

Input mutate(const std::vector<Input>& inputs, Random& random) {
  Input input = choose(inputs, random);
  if (below(random, 4) == 0 && input.size() + 16 < largest_input) {
    add_unknown_field(input, random);
    return input;
  }
  const size_t count = 1 + below(random, 6);
  for (size_t i = 0; i < count; ++i) {
    switch (below(random, 6)) {
      case 0: erase(input, random); break;
      case 1: splice(input, inputs[below(random, inputs.size())], random); break;
      case 2: splice(input, Input(input), random); break;
      case 3: write_number(input, random); break;
      default: change_bytes(input, random); break;
    }
  }
  if (input.size() > largest_input) input.resize(largest_input);
  return input;
}

Input random_bytes(Random& random) {
  Input input(64 + below(random, 700));
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  return input;
}

uint8_t* share(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ftruncate(file, largest_input + 8) != 0) return nullptr;
  void* memory = mmap(nullptr, largest_input + 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

// Of the processor, not of the clock: the machine may have other work.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// SIGPROF ends the program.
void limit_seconds(int seconds) {
  const itimerval limit = {.it_interval = {}, .it_value = {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void keep(const std::filesystem::path& corpus, const Input& input) {
  if (corpus.empty()) return;
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : input) hash = (hash ^ byte) * 0x100000001b3;
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  std::ofstream(corpus / name, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()),
             static_cast<std::streamsize>(input.size()));
}

// The input that took the processor longest, kept in a file.
class Slowest {
 public:
  explicit Slowest(std::string path) : path_(std::move(path)) {}
  void consider(const Input& input, double seconds) {
    if (seconds <= seconds_) return;
    seconds_ = seconds;
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(input.data()),
               static_cast<std::streamsize>(input.size()));
  }
  double seconds() const { return seconds_; }

 private:
  std::string path_;
  double seconds_ = 0;
};

// When fuzzing ends: whichever comes first.
struct End {
  uint64_t inputs = UINT64_MAX;
  double seconds = std::numeric_limits<double>::infinity();  // of the processor
};

int fuzz(std::vector<Input> inputs, uint64_t seed, const End& end, uint8_t* current,
         Slowest slowest, const std::filesystem::path& corpus) {
  Random random(seed);
  const size_t seeds = inputs.size();
  uint64_t count = 0;
  for (; is_over == 0 && count < end.inputs && processor_seconds() < end.seconds; ++count) {
    const bool is_seed = count < seeds;
    const bool is_random = seeds == 0 && (inputs.empty() || count % 2 == 0);
    Input input = is_seed     ? inputs[count]
                  : is_random ? random_bytes(random)
                              : mutate(inputs, random);
    const uint64_t size = input.size();
    std::memcpy(current, &size, sizeof size);
    std::copy(input.begin(), input.end(), current + 8);
    limit_seconds(longest_seconds);
    took_new_steps();
    const double begin = processor_seconds();
    LLVMFuzzerTestOneInput(input.data(), input.size());
    slowest.consider(input, processor_seconds() - begin);
    if (took_new_steps() && !is_seed) {
      keep(corpus, input);
      inputs.push_back(std::move(input));
    }
  }
  limit_seconds(0);
  std::printf(
      "%llu inputs in %.0f s of the processor, the slowest in %.2f s; %zu seeds, %zu found, "
      "%zu steps\n",
      static_cast<unsigned long long>(count), processor_seconds(), slowest.seconds(), seeds,
      inputs.size() - seeds, steps_seen());
  return 0;
}

// What `body` returns, on a thread with a small stack.
template <class Body>
int on_small_stack(size_t bytes, Body body) {
  struct Call {
    Body* body;
    int result = 2;
  } call{&body};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  const auto start = [](void* given) -> void* {
    auto* made = static_cast<Call*>(given);
    made->result = (*made->body)();
    return nullptr;
  };
  if (pthread_attr_setstacksize(&attributes, bytes) != 0 ||
      pthread_create(&thread, &attributes, start, &call) != 0) {
    std::fprintf(stderr, "fuzz: there is no thread with a stack of %zu bytes\n", bytes);
    return 2;
  }
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return call.result;
}

}  // namespace

// Called at the begin of every block of instrumented code.
extern "C" __attribute__((visibility("default"))) void __sanitizer_cov_trace_pc() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) -
                    reinterpret_cast<uintptr_t>(&LLVMFuzzerTestOneInput);
  const uintptr_t block = here * 0x9e3779b97f4a7c15 >> 32;
  uint8_t& step = steps[(block ^ last_block) % step_count];
  if (step != 255) ++step;
  last_block = block >> 1;
}

int main(int argc, char** argv) {
  bool is_replay = true;
  End end;
  uint64_t seed = 1;
  size_t stack = 3072;
  std::string current;
  std::filesystem::path corpus;
  std::vector<Input> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value) {
      end.seconds = std::atof(argv[++i]);
      is_replay = false;
    } else if (word == "--inputs" && has_value) {
      end.inputs = std::strtoull(argv[++i], nullptr, 10);
      is_replay = false;
    } else if (word == "--seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--stack" && has_value) {
      stack = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--current" && has_value) {
      current = argv[++i];
    } else if (word == "--corpus" && has_value) {
      corpus = argv[++i];
    } else {
      inputs.push_back(read(word));
    }
  }
  std::erase_if(inputs, [](const Input& input) { return input.size() > largest_input; });
  if (is_replay) {
    return on_small_stack(stack << 10, [&] {
      for (const Input& input : inputs) LLVMFuzzerTestOneInput(input.data(), input.size());
      return 0;
    });
  }
  if (!corpus.empty()) {
    std::filesystem::create_directories(corpus);
    for (const auto& file : std::filesystem::directory_iterator(corpus))
      inputs.push_back(read(file.path()));
  }
  uint8_t* memory = share(current);
  if (memory == nullptr) {
    std::fprintf(stderr, "fuzz: cannot write '%s'\n", current.c_str());
    return 2;
  }
  std::signal(SIGINT, [](int) { is_over = 1; });
  std::signal(SIGTERM, [](int) { is_over = 1; });
  return on_small_stack(stack << 10, [&] {
    return fuzz(std::move(inputs), seed, end, memory, Slowest(current + ".slowest"), corpus);
  });
}
