#include "kernels/random/draw.h"

#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/draw.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/loops-inl.h"
#include "kernels/random/philox.h"
#include "kernels/simd/double_math-inl.h"
#include "kernels/simd/trigonometry-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = sardonyx::HWY_NAMESPACE;

using Words = hn::ScalableTag<uint64_t>;
using Doubles = hn::ScalableTag<double>;
using Word = hn::Vec<Words>;
using Double = hn::Vec<Doubles>;

#if HWY_TARGET == HWY_SCALAR
void DrawBits(uint64_t key, uint64_t stream, uint64_t first, uint32_t* bits, int64_t n) {
  const Philox random(key, stream);
  for (int64_t i = 0; i < n / 4; ++i) {
    for (const uint32_t word : random(first + static_cast<uint64_t>(i))) *bits++ = word;
  }
}
#else
// What Philox::operator() says, of a vector of positions: 32 bits in each lane, and anything above.
void DrawBits(uint64_t key, uint64_t stream, uint64_t first, uint32_t* bits, int64_t n) {
  const Words d;
  const hn::Repartition<uint32_t, Words> halves;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto times = [&](Word v, uint64_t factor) HWY_ATTR {
    return hn::MulEven(hn::BitCast(halves, v), hn::BitCast(halves, hn::Set(d, factor)));
  };
  const Word lower = hn::Set(d, 0xFFFFFFFF);
  const auto together = [&](Word even, Word odd) HWY_ATTR {
    return hn::Or(hn::And(even, lower), hn::ShiftLeft<32>(odd));
  };
  uint64_t keys[Philox::rounds][2];
  for (uint64_t round = 0; round < Philox::rounds; ++round) {
    keys[round][0] = key + round * Philox::steps[0];
    keys[round][1] = (key >> 32) + round * Philox::steps[1];
  }
  Word position = hn::Iota(d, first);
  for (int64_t i = 0; i < n / 4; i += lanes) {
    Word c0 = position, c1 = hn::ShiftRight<32>(c0);
    position = hn::Add(position, hn::Set(d, static_cast<uint64_t>(lanes)));
    Word c2 = hn::Set(d, stream), c3 = hn::ShiftRight<32>(c2);
    for (const auto& [low, high] : keys) {
      const Word a = times(c0, Philox::factors[0]), b = times(c2, Philox::factors[1]);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1), hn::Set(d, low));
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3), hn::Set(d, high));
      c1 = b, c3 = a;
    }
    hn::StoreInterleaved2(together(c0, c1), together(c2, c3), d,
                          reinterpret_cast<uint64_t*>(bits + 4 * i));
  }
}
#endif

void UnitFloats(const uint32_t* bits, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>(static_cast<int32_t>(bits[i] >> 8)) * 0x1p-24f;
}

// Of words below 2^52.
HWY_INLINE Double ToDoubles(Word words) {
  const Doubles d;
  const Word biased = hn::Or(words, hn::Set(Words(), 0x4330000000000000));
  return hn::Sub(hn::BitCast(d, biased), hn::Set(d, 0x1p52));
}

void UnitDoubles(const uint32_t* bits, double* y, int64_t n) {
  const Words d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* words = reinterpret_cast<const uint64_t*>(bits);
  for (int64_t i = 0; i < n; i += lanes) {
    const Word w = hn::LoadU(d, words + i);
    // 32 bits from the first half, 21 from the second.
    const Word low = hn::And(w, hn::Set(d, 0xFFFFFFFF)), high = hn::ShiftRight<43>(w);
    const Double unit = hn::MulAdd(ToDoubles(low), hn::Set(Doubles(), 0x1p-32),
                                   hn::Mul(ToDoubles(high), hn::Set(Doubles(), 0x1p-53)));
    hn::StoreU(unit, Doubles(), y + i);
  }
}

template <class T>
HWY_INLINE void Stretch(T* y, T low, T span, int64_t n) {
  MapRow(y, y, n,
         [=](auto d, auto v) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, span), hn::Set(d, low)); });
}
void StretchFloats(float* y, float low, float span, int64_t n) { Stretch(y, low, span, n); }
void StretchDoubles(double* y, double low, double span, int64_t n) { Stretch(y, low, span, n); }

struct Normals {
  Double even, odd;
};

// Of 1 - u in (0, 1] and v in [0, 1).
HWY_INLINE Normals NormalsOf(Double rest, Double v, double mean, double deviation) {
  const Doubles d;
  const Double logs = hn::Mul(hn::Set(d, -2.0), sm::Log(d, rest));
  const Double radius = hn::Mul(hn::Set(d, deviation), hn::Sqrt(logs));
  const Double angle = hn::Mul(v, hn::Set(d, 2 * std::numbers::pi));
  const Double middle = hn::Set(d, mean);
  return {hn::MulAdd(radius, sm::Cos(d, angle), middle),
          hn::MulAdd(radius, sm::Sin(d, angle), middle)};
}

void NormalFloats(const uint32_t* bits, double mean, double deviation, float* y, int64_t n) {
  const Words d;
  const Doubles df;
  const hn::Rebind<float, Doubles> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* pairs = reinterpret_cast<const uint64_t*>(bits);
  for (int64_t i = 0; i < n / 2; i += lanes) {
    const Word w = hn::LoadU(d, pairs + i);
    const Double u = ToDoubles(hn::And(w, hn::Set(d, 0xFFFFFFFF)));
    const Double v = hn::Mul(ToDoubles(hn::ShiftRight<32>(w)), hn::Set(df, 0x1p-32));
    const Double rest = hn::Mul(hn::Sub(hn::Set(df, 0x1p32), u), hn::Set(df, 0x1p-32));
    const Normals two = NormalsOf(rest, v, mean, deviation);
    hn::StoreInterleaved2(hn::DemoteTo(narrow, two.even), hn::DemoteTo(narrow, two.odd), narrow,
                          y + 2 * i);
  }
}

void NormalDoubles(const double* unit, double mean, double deviation, double* y, int64_t n) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += 2 * lanes) {
    Double u, v;
    hn::LoadInterleaved2(d, unit + i, u, v);
    const Normals two = NormalsOf(hn::Sub(hn::Set(d, 1.0), u), v, mean, deviation);
    hn::StoreInterleaved2(two.even, two.odd, d, y + i);
  }
}

void FlipCoins(const double* unit, const double* chance, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = unit[i] < chance[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DrawBits);
HWY_EXPORT(UnitFloats);
HWY_EXPORT(UnitDoubles);
HWY_EXPORT(StretchFloats);
HWY_EXPORT(StretchDoubles);
HWY_EXPORT(NormalFloats);
HWY_EXPORT(NormalDoubles);
HWY_EXPORT(FlipCoins);

void draw_bits(uint64_t key, uint64_t stream, uint64_t first, uint32_t* bits, int64_t n) {
  HWY_DYNAMIC_DISPATCH(DrawBits)(key, stream, first, bits, n);
}

void unit_floats(const uint32_t* bits, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(UnitFloats)(bits, y, n);
}

void unit_doubles(const uint32_t* bits, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(UnitDoubles)(bits, y, n);
}

void stretch(float* y, float low, float span, int64_t n) {
  HWY_DYNAMIC_DISPATCH(StretchFloats)(y, low, span, n);
}

void stretch(double* y, double low, double span, int64_t n) {
  HWY_DYNAMIC_DISPATCH(StretchDoubles)(y, low, span, n);
}

void normal_floats(const uint32_t* bits, double mean, double deviation, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(NormalFloats)(bits, mean, deviation, y, n);
}

void normal_doubles(const double* unit, double mean, double deviation, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(NormalDoubles)(unit, mean, deviation, y, n);
}

void flip_coins(const double* unit, const double* chance, uint8_t* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FlipCoins)(unit, chance, y, n);
}

}  // namespace sardonyx::kernels
#endif
