#include "kernels/elementwise/lookup_table.h"

#include "base/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/lookup_table.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#if HWY_ARCH_X86 && defined(__x86_64__)
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void LookUp(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET == HWY_NEON
  // Lookups in quarters of the table. An index beyond its quarter leaves what others have found.
  uint8x16x4_t part[4];
  for (int k = 0; k < 4; ++k) part[k] = vld1q_u8_x4(table + k * 64);
  for (; i + 16 <= n; i += 16) {
    const uint8x16_t v = vld1q_u8(x + i);
    uint8x16_t found = vqtbl4q_u8(part[0], v);
    found = vqtbx4q_u8(found, part[1], vsubq_u8(v, vdupq_n_u8(64)));
    found = vqtbx4q_u8(found, part[2], vsubq_u8(v, vdupq_n_u8(128)));
    found = vqtbx4q_u8(found, part[3], vsubq_u8(v, vdupq_n_u8(192)));
    vst1q_u8(y + i, found);
  }
#elif HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  // A row of the table has 16 entries. With a row's number in the upper half of a byte taken off,
  // its own bytes are below 16; 0x70 more leaves the upper bit of those alone clear, and a lookup
  // by the others gives 0.
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto above = hn::Set(d, 0x70);
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    auto found = hn::Zero(d);
    for (int row = 0; row < 16; ++row) {
      const auto at =
          hn::SaturatedAdd(hn::Xor(v, hn::Set(d, static_cast<uint8_t>(row << 4))), above);
      found = hn::Or(found, hn::TableLookupBytesOr0(hn::LoadDup128(d, table + row * 16), at));
    }
    hn::StoreU(found, d, y + i);
  }
#endif
  for (; i < n; ++i) y[i] = table[x[i]];
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(LookUp);

#if HWY_ARCH_X86 && defined(__x86_64__)
// Two lookups in halves of the table, of 128 entries each; the upper bit of a byte tells which
// half.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void look_up_by_permutations(
    const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  __m512i part[4];
  for (int k = 0; k < 4; ++k) part[k] = _mm512_loadu_si512(table + k * 64);
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 inside = n - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (n - i)) - 1;
    const __m512i v = _mm512_maskz_loadu_epi8(inside, x + i);
    const __m512i low = _mm512_permutex2var_epi8(part[0], v, part[1]);
    const __m512i high = _mm512_permutex2var_epi8(part[2], v, part[3]);
    _mm512_mask_storeu_epi8(y + i, inside,
                            _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
  }
}
#endif

void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
#if HWY_ARCH_X86 && defined(__x86_64__)
  if (has_avx512_vbmi()) return look_up_by_permutations(table, x, y, n);
#endif
  HWY_DYNAMIC_DISPATCH(LookUp)(table, x, y, n);
}

}  // namespace

void look_up_bytes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n,
                   ThreadPool& pool) {
  constexpr int64_t grain = int64_t{1} << 17;
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
    look_up(table, x + begin, y + begin, end - begin);
  });
}

}  // namespace sardonyx::kernels
#endif
