#include "base/cpu.h"

#include <hwy/highway.h>
#include <hwy/targets.h>
#include <algorithm>
#include <cstdlib>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sardonyx {
namespace {

#if HWY_ARCH_X86
// Tiles of bytes and of bfloat16, which the system lets this process use.
bool detect_amx() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned wanted = 1u << 22 | 1u << 24 | 1u << 25;  // bfloat16, tiles, bytes
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & wanted) != wanted) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

bool detect_avx_vnni() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
#else
  return false;
#endif
}
#endif

#if HWY_ARCH_X86
InstructionSet detect() {
  const int64_t targets = hwy::SupportedTargets();
  auto widest = InstructionSet::baseline;
  const bool vnni = detect_avx_vnni();
  if (targets & HWY_AVX2) widest = vnni ? InstructionSet::avx_vnni : InstructionSet::avx2;
  if (targets & HWY_AVX3) widest = detect_amx() ? InstructionSet::amx : InstructionSet::avx512;
  const char* wish = std::getenv("SARDONYX_CPU");
  if (wish == nullptr) return widest;
  auto chosen = widest;
  for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx_vnni,
                         InstructionSet::avx512}) {
    if (wish == name_of(set)) chosen = std::min(set, widest);
  }
  if (chosen == InstructionSet::avx_vnni && !vnni) chosen = InstructionSet::avx2;
  int64_t kept = targets;
  if (chosen < InstructionSet::avx512) kept &= ~int64_t{HWY_AVX3 | HWY_AVX3_DL};
  if (chosen < InstructionSet::avx2) kept &= ~int64_t{HWY_AVX2};
  hwy::SetSupportedTargetsForTest(kept);
  return chosen;
}
#elif defined(__aarch64__)
// The vectors are there in any case: they are what the compiler takes the processor to have.
InstructionSet detect() {
#if defined(__linux__) && defined(SARDONYX_NEON_DOT)
  const bool dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  const bool dot = false;
#endif
  const char* wish = std::getenv("SARDONYX_CPU");
  const bool lowered = wish != nullptr && wish == name_of(InstructionSet::neon);
  return dot && !lowered ? InstructionSet::neon_dot : InstructionSet::neon;
}
#else
InstructionSet detect() { return InstructionSet::baseline; }
#endif

// Decided while the library is loaded, so that every dispatch table sees it.
const InstructionSet chosen_set = detect();

// Whether vectors of AVX-512 are taken and know the instructions of that bit (leaf 7, ecx).
bool has_avx512_part([[maybe_unused]] unsigned bit) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return chosen_set >= InstructionSet::avx512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (c & (1u << bit)) != 0;
#else
  return false;
#endif
}

}  // namespace

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::amx: return "amx";
    case InstructionSet::avx512: return "avx512";
    case InstructionSet::avx_vnni: return "avx_vnni";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::neon: return "neon";
    case InstructionSet::neon_dot: return "neon_dot";
    default: return "baseline";
  }
}

InstructionSet instruction_set() { return chosen_set; }

bool has_avx512_vnni() {
  static const bool found = has_avx512_part(11);
  return found;
}

bool has_avx512_vbmi() {
  static const bool found = has_avx512_part(1);
  return found;
}

bool halves_wide_vectors() {
#if defined(__x86_64__)
  static const bool found = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (chosen_set < InstructionSet::avx512 || __get_cpuid(0, &a, &b, &c, &d) == 0) return false;
    const bool is_amd = b == signature_AMD_ebx && d == signature_AMD_edx && c == signature_AMD_ecx;
    if (!is_amd || __get_cpuid(1, &a, &b, &c, &d) == 0) return false;
    constexpr unsigned zen4 = 0x19;
    return (a >> 8 & 0xf) + (a >> 20 & 0xff) == zen4;
  }();
  return found;
#else
  return false;
#endif
}

}  // namespace sardonyx
