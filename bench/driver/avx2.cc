#include "avx2.h"

#include <stdexcept>
#if defined(__x86_64__)
#include <cpuid.h>
#include <ucontext.h>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace driver {
namespace {

constexpr uint32_t bits(std::initializer_list<int> places) {
  uint32_t mask = 0;
  for (const int place : places) mask |= uint32_t{1} << place;
  return mask;
}

// Leaf 7: foundation, doublewords, multiply-add of 52 bits, prefetch, exponentials, conflicts,
// bytes, lengths; then permutations, dot products and counts; then tiles, float16 and the rest.
constexpr uint32_t hidden_7_ebx = bits({16, 17, 21, 26, 27, 28, 30, 31}),
                   hidden_7_ecx = bits({1, 6, 11, 12, 14}),
                   hidden_7_edx = bits({2, 3, 8, 22, 23, 24, 25});
// Its second part: AVX-VNNI and what came with and after it.
constexpr uint32_t hidden_7_1_eax = bits({0, 1, 2, 4, 5, 21, 23}),
                   hidden_7_1_edx = bits({4, 5, 8, 10, 19, 21});

bool shows_vnni = false;

void on_undefined(int signal, siginfo_t*, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  if (code[0] != 0x0f || code[1] != 0x04) {  // an error like any other
    std::signal(signal, SIG_DFL);
    return;
  }
  const auto leaf = static_cast<uint32_t>(registers[REG_RAX]);
  const auto part = static_cast<uint32_t>(registers[REG_RCX]);
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  __cpuid_count(leaf, part, eax, ebx, ecx, edx);
  if (leaf == 7 && part == 0) {
    ebx &= ~hidden_7_ebx, ecx &= ~hidden_7_ecx, edx &= ~hidden_7_edx;
  } else if (leaf == 7 && part == 1) {
    const uint32_t shown = shows_vnni ? bits({4}) : 0;
    eax &= ~hidden_7_1_eax | shown, edx &= ~hidden_7_1_edx;
  }
  registers[REG_RAX] = eax, registers[REG_RBX] = ebx;
  registers[REG_RCX] = ecx, registers[REG_RDX] = edx;
  registers[REG_RIP] += 2;
}

}  // namespace

void answer_for_avx2(bool has_vnni) {
  shows_vnni = has_vnni;
  struct sigaction action {};
  action.sa_sigaction = on_undefined;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGILL, &action, nullptr) != 0) throw std::runtime_error("no handler of SIGILL");
}

}  // namespace driver
#else
namespace driver {

void answer_for_avx2(bool) { throw std::runtime_error("only processors of x86-64 can stand in"); }

}  // namespace driver
#endif
