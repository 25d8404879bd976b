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

constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

constexpr int32_t exponent_bias = 127;

// The leaves that remain of one word, of some rows or trees side by side in `vectors` vectors.
template <int vectors>
struct Remaining {
  Set left[vectors];

  HWY_INLINE void reset() {
    for (int v = 0; v < vectors; ++v) left[v] = hn::Set(Sets(), ~0u);
  }

  template <class Mask>
  HWY_INLINE void keep(int v, const Mask& passed, Set kept) {
    left[v] = hn::IfThenElse(hn::RebindMask(Sets(), passed), hn::And(left[v], kept), left[v]);
  }

  // places[v] = the first leaf of each set, from bases[v] + exponent_bias on, where one remains.
  HWY_INLINE void first(const hn::Vec<Ints>* bases, hn::Vec<Ints>* places) const {
    const Ints di;
    for (int v = 0; v < vectors; ++v) {
      const auto set = hn::BitCast(di, left[v]);
      const auto lowest = hn::And(set, hn::Neg(set));
      // A power of two as a float: its exponent, whatever the sign.
      const auto bits = hn::BitCast(Sets(), hn::ConvertTo(Floats(), lowest));
      const auto exponent = hn::And(hn::ShiftRight<23>(bits), hn::Set(Sets(), 0xff));
      const auto leaf = hn::Add(hn::BitCast(di, exponent), bases[v]);
      places[v] = hn::IfThenElse(hn::Eq(set, hn::Zero(di)), places[v], leaf);
    }
  }
};

// --- Rows side by side

template <int vectors>
HWY_INLINE void PlacesOf(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
                         const float* block, int32_t* places) {
  const Ints di;
  const Floats d;
  hn::Vec<Ints> found[vectors], bases[vectors];
  for (int v = 0; v < vectors; ++v) found[v] = hn::Zero(di);
  // From the last word on, so that the first one that holds a leaf has the last say.
  for (int32_t w = tree.words - 1; w >= 0; --w) {
    const LeafWord& word = words[tree.first_word + w];
    int32_t i = w > 0 ? words[tree.first_word + w - 1].end : tree.first_test;
    Remaining<vectors> rows;
    rows.reset();
    const auto test_all = [&](int32_t end, auto passes) HWY_ATTR {
      for (; i < end; ++i) {
        const LeafTest& test = tests[i];
        const auto bound = hn::Set(d, test.bound);
        const auto kept = hn::Set(Sets(), test.kept);
        for (int v = 0; v < vectors; ++v)
          rows.keep(v, passes(hn::LoadU(d, block + test.place + v * lanes), bound), kept);
      }
    };
    test_all(word.at_most_end, [](auto x, auto bound) HWY_ATTR { return hn::Le(x, bound); });
    test_all(word.end, [](auto x, auto bound) HWY_ATTR { return hn::Ge(x, bound); });
    for (int v = 0; v < vectors; ++v)
      bases[v] = hn::Set(di, tree.first_leaf + 32 * w - exponent_bias);
    rows.first(bases, found);
  }
  for (int v = 0; v < vectors; ++v) hn::StoreU(found[v], di, places + v * lanes);
}

void FindPlaces(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
                const float* block, int64_t rows, int32_t* places) {
  constexpr int few = 16 / lanes, many = rows_together / lanes;
  int64_t r = 0;
  for (; r + 16 < rows; r += rows_together)
    PlacesOf<many>(tree, words, tests, block + r, places + r);
  if (r < rows) PlacesOf<few>(tree, words, tests, block + r, places + r);
}

// --- Trees side by side

// A row's features, `vectors` vectors of them, looked up by their numbers.
template <int vectors>
HWY_INLINE hn::Vec<Floats> FeaturesOf(const float* row, hn::Vec<Ints> numbers) {
  const Floats d;
  const Ints di;
  const auto vector = [&](int v) HWY_ATTR { return hn::Load(d, row + v * lanes); };
  if constexpr (vectors == 1)
    return hn::TableLookupLanes(vector(0), hn::IndicesFromVec(d, numbers));
  const auto of_pair = [&](int v) HWY_ATTR {
#if HWY_TARGET == HWY_AVX3
    return hn::Vec<Floats>{_mm512_permutex2var_ps(vector(v).raw, numbers.raw, vector(v + 1).raw)};
#else
    const auto low = hn::And(numbers, hn::Set(di, static_cast<int32_t>(lanes - 1)));
    const auto is_low =
        hn::Eq(hn::And(numbers, hn::Set(di, static_cast<int32_t>(lanes))), hn::Zero(di));
    const auto indices = hn::IndicesFromVec(d, low);
    return hn::IfThenElse(hn::RebindMask(d, is_low), hn::TableLookupLanes(vector(v), indices),
                          hn::TableLookupLanes(vector(v + 1), indices));
#endif
  };
  auto found = of_pair(0);
  for (int v = 2; v < vectors; v += 2) {
    const auto inside = hn::Gt(numbers, hn::Set(di, static_cast<int32_t>(v * lanes - 1)));
    found = hn::IfThenElse(hn::RebindMask(d, inside), of_pair(v), found);
  }
  return found;
}

template <int feature_vectors>
HWY_INLINE void PlacesOfRow(const TreeGroup& group, const int32_t* ends, const SideTests* tests,
                            const float* row, int32_t* places) {
  const Ints di;
  const Floats d;
  const Sets ds;
  const hn::Rebind<uint8_t, Ints> bytes;
  constexpr int vectors = trees_together / lanes;
  hn::Vec<Ints> found[vectors], bases[vectors];
  for (int v = 0; v < vectors; ++v) found[v] = hn::Zero(di);
  for (int32_t w = group.words - 1; w >= 0; --w) {
    const int32_t end = ends[group.first_word + w];
    int32_t i = w > 0 ? ends[group.first_word + w - 1] : group.first_test;
    Remaining<vectors> trees;
    trees.reset();
    for (; i < end; ++i) {
      const SideTests& side = tests[i];
      for (int k = 0; k < tests_together; ++k) {
        for (int v = 0; v < vectors; ++v) {
          const auto numbers = hn::PromoteTo(di, hn::LoadU(bytes, side.features[k] + v * lanes));
          const auto x = FeaturesOf<feature_vectors>(row, numbers);
          const auto bound = hn::Load(d, side.bounds[k] + v * lanes);
          trees.keep(v, hn::Le(x, bound), hn::Load(ds, side.kept[k] + v * lanes));
        }
      }
    }
    for (int v = 0; v < vectors; ++v)
      bases[v] = hn::Add(hn::LoadU(di, group.first_leaves + v * lanes),
                         hn::Set(di, 32 * w - exponent_bias));
    trees.first(bases, found);
  }
  for (int v = 0; v < vectors; ++v) hn::StoreU(found[v], di, places + v * lanes);
}

template <int feature_vectors>
void PlacesInGroups(std::span<const TreeGroup> groups, const int32_t* ends, const SideTests* tests,
                    const float* row, int32_t* places) {
  for (const TreeGroup& group : groups) {
    PlacesOfRow<feature_vectors>(group, ends, tests, row, places);
    places += trees_together;
  }
}

// Vectors that hold a row's features: a power of two, each of which has a kernel.
int64_t FeatureVectors(size_t features) {
  int64_t vectors = 1;
  while (vectors * lanes < static_cast<int64_t>(features)) vectors *= 2;
  return vectors;
}

// As measured on Zen 4.
double SideTestCycles(size_t features) {
  const auto vectors = static_cast<double>(FeatureVectors(features));
  return lanes == 16 ? 3.5 + vectors : 3 + 2.25 * vectors;
}

int VectorLanes() { return static_cast<int>(lanes); }

void FindPlacesOfRow(std::span<const TreeGroup> groups, const int32_t* ends, const SideTests* tests,
                     const float* row, size_t features, int32_t* places) {
  if constexpr (lanes >= min_lanes) {
    switch (FeatureVectors(features)) {
      case 1: return PlacesInGroups<1>(groups, ends, tests, row, places);
      case 2: return PlacesInGroups<2>(groups, ends, tests, row, places);
      case 4: return PlacesInGroups<4>(groups, ends, tests, row, places);
      case 8: return PlacesInGroups<8>(groups, ends, tests, row, places);
      default: return PlacesInGroups<max_vectors>(groups, ends, tests, row, places);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindPlaces);
void find_places(const LeafTree& tree, const LeafWord* words, const LeafTest* tests,
                 const float* block, int64_t rows, int32_t* places) {
  HWY_DYNAMIC_DISPATCH(FindPlaces)(tree, words, tests, block, rows, places);
}

HWY_EXPORT(VectorLanes);
int vector_lanes() { return HWY_DYNAMIC_DISPATCH(VectorLanes)(); }

HWY_EXPORT(SideTestCycles);
double side_test_cycles(size_t features) { return HWY_DYNAMIC_DISPATCH(SideTestCycles)(features); }

HWY_EXPORT(FindPlacesOfRow);
void find_places_of_row(std::span<const TreeGroup> groups, const int32_t* word_ends,
                        const SideTests* tests, const float* row, size_t features,
                        int32_t* places) {
  HWY_DYNAMIC_DISPATCH(FindPlacesOfRow)(groups, word_ends, tests, row, features, places);
}

}  // namespace sardonyx::kernels
#endif
