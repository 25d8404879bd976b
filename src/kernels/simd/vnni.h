// For functions of AVX-512 with dot products of bytes (VNNI), by the compiler's own intrinsics.
// They are marked SARDONYX_VNNI and called only where has_avx512_vnni(). Included where __x86_64__
// is defined.
#pragma once

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 finds it in its own intrinsics
#endif
#include <immintrin.h>

#define SARDONYX_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,bmi2,fma")))
