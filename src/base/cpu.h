// What the processor can do, and which instruction set the kernels take.
#pragma once

#include <cstdint>
#include <string_view>

namespace sardonyx {

// x86-64: `avx_vnni` has the vectors of avx2, and dot products of bytes; `amx` the vectors of
// avx512, and matrix tiles for bytes and bfloat16. Arm: `neon`, and `neon_dot` with dot products of
// bytes. Files of packed weights hold the numbers.
enum class InstructionSet { baseline, avx2, avx_vnni, avx512, amx, neon, neon_dot };

std::string_view name_of(InstructionSet set);

// The widest instruction set this machine has, lowered by the environment variable SARDONYX_CPU
// (their names) when it is set. Decided once, before the first kernel runs;
// Highway's dispatch is held to the same choice. Kernels that are not written with Highway ask
// this.
InstructionSet instruction_set();

inline bool has_amx() { return instruction_set() == InstructionSet::amx; }
// Dot products of bytes on vectors of AVX2. False on processors with AVX-512, which has its own.
inline bool has_avx_vnni() { return instruction_set() == InstructionSet::avx_vnni; }

// Marks functions that take the dot products of bytes of Arm processors, and are called only where
// has_neon_dot(). Clang before 16 has these intrinsics only for whole files, so does without them.
#if defined(__aarch64__) && defined(__clang__) && __clang_major__ >= 16
#define SARDONYX_NEON_DOT __attribute__((target("dotprod")))
#elif defined(__aarch64__) && !defined(__clang__)
#define SARDONYX_NEON_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

// Dot products of bytes on vectors of Arm.
inline bool has_neon_dot() { return instruction_set() == InstructionSet::neon_dot; }

// Dot products of bytes on vectors of AVX-512 (VNNI). False where SARDONYX_CPU lowers the set.
bool has_avx512_vnni();
// Permutations of bytes across vectors of AVX-512 (VBMI). False where SARDONYX_CPU lowers the set.
bool has_avx512_vbmi();

// Whether vectors of AVX-512 are computed half by half, as AMD's fourth Zen generation does: its
// arithmetic then takes twice as long beside what memory takes.
bool halves_wide_vectors();

}  // namespace sardonyx
