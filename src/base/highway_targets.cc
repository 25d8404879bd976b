// What Highway's dispatch tables ask its library for. That library calibrates timers while it is
// loaded, which takes longer than all else that a start does; nothing else of it is used, so the
// answers are given here and it is not linked. They are weak: who links it besides gets its own.
#include <hwy/targets.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#if HWY_ARCH_X86_64

#include <cpuid.h>

#ifdef _WIN32  // whose linker does not look for weak symbols in archives
#define SARDONYX_WEAK
#else
#define SARDONYX_WEAK [[gnu::weak]]
#endif

namespace {

// Features that not all compilers have a name for.
bool has_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & 1u << 5) != 0;
}

bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & 1u << 29) != 0;
}

bool has_vaes() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & 1u << 9) != 0;
}

// `__builtin_cpu_supports` also asks whether the system saves the registers.
int64_t targets_of_machine() {
  __builtin_cpu_init();
  const auto all = [](auto... has) { return (... && (has != 0)); };
  int64_t targets = HWY_ENABLED_BASELINE;
  if (all(__builtin_cpu_supports("ssse3"))) targets |= HWY_SSSE3;
  if (!all(__builtin_cpu_supports("ssse3"), __builtin_cpu_supports("sse4.1"),
           __builtin_cpu_supports("sse4.2"), __builtin_cpu_supports("pclmul"),
           __builtin_cpu_supports("aes"))) {
    return targets;
  }
  targets |= HWY_SSE4;
  if (!all(__builtin_cpu_supports("avx"), __builtin_cpu_supports("avx2"), has_lzcnt(),
           __builtin_cpu_supports("bmi"), __builtin_cpu_supports("bmi2"),
           __builtin_cpu_supports("fma"), has_f16c())) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (!all(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512vl"),
           __builtin_cpu_supports("avx512dq"), __builtin_cpu_supports("avx512bw"),
           __builtin_cpu_supports("avx512cd"))) {
    return targets;
  }
  targets |= HWY_AVX3;
  if (all(__builtin_cpu_supports("avx512vnni"), __builtin_cpu_supports("vpclmulqdq"),
          __builtin_cpu_supports("avx512vbmi"), __builtin_cpu_supports("avx512vbmi2"), has_vaes(),
          __builtin_cpu_supports("avx512vpopcntdq"), __builtin_cpu_supports("avx512bitalg"),
          __builtin_cpu_supports("gfni"))) {
    targets |= HWY_AVX3_DL;
  }
  return targets;
}

std::atomic<int64_t>& instead_of_the_machines() {
  static std::atomic<int64_t> targets{0};
  return targets;
}

}  // namespace

namespace hwy {

SARDONYX_WEAK ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

SARDONYX_WEAK int64_t SupportedTargets() {
  static const int64_t found = targets_of_machine();
  const int64_t wanted = instead_of_the_machines().load();
  return wanted != 0 ? wanted : found;
}

// 0: those of the machine again.
SARDONYX_WEAK void SetSupportedTargetsForTest(int64_t targets) {
  instead_of_the_machines().store(targets);
  GetChosenTarget().DeInit();
}

// Its assertions, which only builds without optimisation and with sanitizers have.
SARDONYX_WEAK void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy

#endif  // HWY_ARCH_X86_64
