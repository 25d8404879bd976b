// A processor without AVX-512, for libraries whose `cpuid` instructions bench/avx2.py has replaced.
#pragma once

namespace driver {

// From now on the undefined instruction 0F 04 does what `cpuid` does, and leaves out AVX-512,
// AVX-VNNI, matrix tiles and AVX10. To be called before libraries are loaded that have it.
void answer_for_avx2(bool has_vnni);

}  // namespace driver
