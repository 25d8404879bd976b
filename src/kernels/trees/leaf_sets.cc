#include "kernels/trees/leaf_sets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/trees/leaf_sets.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Sets = hn::RebindToUnsigned<Floats>;
using Ints = hn::RebindToSigned<Floats>;
using Set = hn::Vec<Sets>;

// Some rows side by side, in `vectors` vectors.
template <int vectors>
struct Rows {
  Set left[vectors];  // the leaves that remain of a word

  HWY_INLINE void reset() {
    for (int v = 0; v < vectors; ++v) left[v] = hn::Set(Sets(), ~0u);
  }

  template <class Passes>
  HWY_INLINE void test(const LeafTest& test, const float* block, const Passes& passes) {
    const Floats d;
    const auto bound = hn::Set(d, test.bound);
    const auto kept = hn::Set(Sets(), test.kept);
    for (int v = 0; v < vectors; ++v) {
      const auto x = hn::LoadU(d, block + test.place + v * static_cast<int64_t>(hn::Lanes(d)));
      const auto passed = hn::RebindMask(Sets(), passes(x, bound));
      left[v] = hn::IfThenElse(passed, hn::And(left[v], kept), left[v]);
    }
  }

  // The first leaf of each set, from `base` on, where one remains.
  HWY_INLINE void first(int32_t base, hn::Vec<Ints>* exits) const {
    const Ints di;
    for (int v = 0; v < vectors; ++v) {
      const auto set = hn::BitCast(di, left[v]);
      const auto lowest = hn::And(set, hn::Neg(set));
      // A power of two as a float: its exponent, whatever the sign.
      const auto bits = hn::BitCast(Sets(), hn::ConvertTo(Floats(), lowest));
      const auto exponent = hn::And(hn::ShiftRight<23>(bits), hn::Set(Sets(), 0xff));
      const auto leaf = hn::Add(hn::BitCast(di, exponent), hn::Set(di, base - 127));
      exits[v] = hn::IfThenElse(hn::Eq(set, hn::Zero(di)), exits[v], leaf);
    }
  }
};

template <int vectors>
HWY_INLINE void ExitsOf(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
                        const float* block, int32_t* exits) {
  const Ints di;
  const auto at_most = [](auto x, auto bound) HWY_ATTR { return hn::Le(x, bound); };
  const auto at_least = [](auto x, auto bound) HWY_ATTR { return hn::Ge(x, bound); };
  hn::Vec<Ints> found[vectors];
  for (int v = 0; v < vectors; ++v) found[v] = hn::Zero(di);
  // From the last word on, so that the first one that holds a leaf has the last say.
  for (int32_t w = tree.words - 1; w >= 0; --w) {
    const LeafWord& word = words[tree.first_word + w];
    int32_t i = w > 0 ? words[tree.first_word + w - 1].end : tree.first_test;
    Rows<vectors> rows;
    rows.reset();
    for (; i < word.at_most_end; ++i) rows.test(tests[i], block, at_most);
    for (; i < word.end; ++i) rows.test(tests[i], block, at_least);
    rows.first(32 * w, found);
  }
  for (int v = 0; v < vectors; ++v)
    hn::StoreU(found[v], di, exits + v * static_cast<int64_t>(hn::Lanes(di)));
}

void FindExits(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
               const float* block, int64_t rows, int32_t* exits) {
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(Floats()));
  constexpr int few = 16 / lanes, many = rows_together / lanes;
  int64_t r = 0;
  for (; r + 16 < rows; r += rows_together) ExitsOf<many>(tree, words, tests, block + r, exits + r);
  if (r < rows) ExitsOf<few>(tree, words, tests, block + r, exits + r);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindExits);
void find_exits(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
                const float* block, int64_t rows, int32_t* exits) {
  HWY_DYNAMIC_DISPATCH(FindExits)(tree, words, tests, block, rows, exits);
}

}  // namespace sardonyx::kernels
#endif
