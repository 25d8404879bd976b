// What the processor can do, and which instruction set the kernels take.
#pragma once

#include <cstdint>
#include <string_view>

namespace sardonyx {

enum class InstructionSet { baseline, avx2, avx512 };

std::string_view name_of(InstructionSet set);

// The widest instruction set this machine has, lowered by the environment variable SARDONYX_CPU
// (baseline, avx2 or avx512) when it is set. Decided once, before the first kernel runs; Highway's
// dispatch is held to the same choice. Kernels that are not written with Highway ask this.
InstructionSet instruction_set();

// Dot products of bytes on vectors of AVX-512 (VNNI). False where SARDONYX_CPU lowers the set.
bool has_avx512_vnni();

}  // namespace sardonyx
