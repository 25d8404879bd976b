#include "base/float_control.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sardonyx {
namespace {

#if defined(__x86_64__)
constexpr uint64_t operands = 1u << 6, results = 1u << 15, rounding = 3u << 13;
constexpr uint64_t flushed = operands | results;
uint64_t read() { return _mm_getcsr(); }
void write(uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
constexpr uint64_t rounding = 3u << 22, halves = 1u << 19;
constexpr uint64_t flushed = 1u << 24 | halves;
uint64_t read() {
  uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void write(uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
constexpr uint64_t rounding = 0, flushed = 0;
uint64_t read() { return 0; }
void write(uint64_t) {}
#endif

constexpr uint64_t control = rounding | flushed;

}  // namespace

FloatControl FloatControl::current() { return FloatControl(read() & control); }

FloatControl FloatControl::standard() { return FloatControl(0); }

FloatControl FloatControl::with_flushed_denormals() const { return FloatControl(bits_ | flushed); }

void FloatControl::take() const { write((read() & ~control) | bits_); }

}  // namespace sardonyx
