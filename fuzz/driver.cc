// Runs a fuzz target without libFuzzer: it mutates seeds and calls the target on the results.
//
//   fuzz_X FILE...                      calls the target on each file once
//   fuzz_X --seconds N --seed S --current FILE SEED...
//
// Without seeds every input is made of random bytes: for targets that draw what they test from
// them.
//
// The input under test stands in the file that --current names (eight bytes of length, then the
// input), in memory shared with it, so that it outlives a crash. An input that takes longer than
// twenty seconds counts as a crash, too.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "target.h"

namespace {

using Input = std::vector<uint8_t>;
using Random = std::mt19937_64;

constexpr size_t largest_input = 1 << 20;
constexpr unsigned longest_seconds = 20;

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

Input mutate(const std::vector<Input>& seeds, Random& random) {
  Input input = seeds[below(random, seeds.size())];
  const size_t count = 1 + below(random, 6);
  for (size_t i = 0; i < count; ++i) {
    switch (below(random, 6)) {
      case 0: erase(input, random); break;
      case 1: splice(input, seeds[below(random, seeds.size())], random); break;
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

int fuzz(const std::vector<Input>& seeds, uint64_t seed, int seconds, uint8_t* current) {
  Random random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  uint64_t count = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) {
    const Input input = seeds.empty()          ? random_bytes(random)
                        : count < seeds.size() ? seeds[count]
                                               : mutate(seeds, random);
    const uint64_t size = input.size();
    std::memcpy(current, &size, sizeof size);
    std::copy(input.begin(), input.end(), current + 8);
    alarm(longest_seconds);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  alarm(0);
  std::printf("%llu inputs\n", static_cast<unsigned long long>(count));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int seconds = 0;
  uint64_t seed = 1;
  std::string current;
  std::vector<Input> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value) {
      seconds = std::atoi(argv[++i]);
    } else if (word == "--seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--current" && has_value) {
      current = argv[++i];
    } else {
      inputs.push_back(read(word));
    }
  }
  std::erase_if(inputs, [](const Input& input) { return input.size() > largest_input; });
  if (seconds == 0) {
    for (const Input& input : inputs) LLVMFuzzerTestOneInput(input.data(), input.size());
    return 0;
  }
  uint8_t* memory = share(current);
  if (memory == nullptr) {
    std::fprintf(stderr, "fuzz: cannot write '%s'\n", current.c_str());
    return 2;
  }
  return fuzz(inputs, seed, seconds, memory);
}
