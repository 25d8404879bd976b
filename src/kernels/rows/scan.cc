#include "kernels/rows/scan.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>

#include "base/fail.h"
#include "kernels/rows/column_scan.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/topk_filter.h"
#include "kernels/rows/values.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t block = 256;

// Columns [column, column + width) of one [n, inner] matrix beginning at element `base`.
template <class C>
void cumulate_columns(ScanOp op, ElementType type, const void* x, void* y, int64_t base, int64_t n,
                      int64_t inner, int64_t width, bool exclusive, bool reverse) {
  alignas(64) C total[block];
  std::fill_n(total, width, op == ScanOp::sum ? C{0} : C{1});
  const int64_t first = base + (reverse ? n - 1 : 0) * inner, stride = reverse ? -inner : inner;
  if (type == element_of<C>()) {
    return scan_columns(ColumnScan<C>{op, exclusive, static_cast<const C*>(x) + first,
                                      static_cast<C*>(y) + first, stride, n, total, width});
  }
  for (int64_t i = 0; i < n; ++i) {
    map_values<C>(type, x, y, first + i * stride, width,
                  [&](const C* v, C* to, int64_t at, int64_t some) {
                    scan_columns(ColumnScan<C>{op, exclusive, v, to, 0, 1, total + at, some});
                  });
  }
}

// One row of n elements side by side. In reverse the tiles come from the end.
template <class C>
void cumulate_row(ScanOp op, ElementType type, const void* x, void* y, int64_t base, int64_t n,
                  bool exclusive, bool reverse) {
  C total = op == ScanOp::sum ? C{0} : C{1};
  const auto step = [&](const C* v, C* to, int64_t j) {
    const C next = op == ScanOp::sum ? plus(total, v[j]) : times(total, v[j]);
    to[j] = exclusive ? total : next;
    total = next;
  };
  for (int64_t i = 0; i < n; i += value_tile) {
    const int64_t some = std::min(value_tile, n - i);
    const int64_t begin = base + (reverse ? n - i - some : i);
    map_values<C>(type, x, y, begin, some, [&](const C* v, C* to, int64_t, int64_t count) {
      if (reverse) {
        for (int64_t j = count; j-- > 0;) step(v, to, j);
      } else {
        for (int64_t j = 0; j < count; ++j) step(v, to, j);
      }
    });
  }
}

template <class C>
void cumulate_all(ScanOp op, ElementType type, const void* x, void* y, int64_t outer, int64_t n,
                  int64_t inner, bool exclusive, bool reverse, ThreadPool& pool) {
  if (inner == 1) {
    return for_rows_of(outer, 4 * n, pool, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        cumulate_row<C>(op, type, x, y, o * n, n, exclusive, reverse);
      }
    });
  }
  const int64_t blocks = (inner + block - 1) / block;
  for_rows_of(outer * blocks, 2 * n * std::min(inner, block), pool,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t column = i % blocks * block;
                  cumulate_columns<C>(op, type, x, y, i / blocks * n * inner + column, n, inner,
                                      std::min(block, inner - column), exclusive, reverse);
                }
              });
}

// An element and its place as one number, lower for better elements and, of equal ones, for those
// further in front: its upper half is the value, its lower half the place.
__extension__ typedef unsigned __int128 LongWord;

template <class C>
using KeyOf = std::conditional_t<std::is_same_v<C, float>, uint32_t, uint64_t>;

// NaN is above every number; both zeros are one.
template <class C>
KeyOf<C> key_of(C value, bool largest) {
  using Key = KeyOf<C>;
  constexpr Key sign = Key{1} << (sizeof(Key) * 8 - 1);
  Key key;
  if constexpr (std::is_floating_point_v<C>) {
    const Key bits = std::bit_cast<Key>(value == 0 ? C{0} : value);
    key = value != value ? ~Key{0} : (bits & sign) != 0 ? ~bits : bits | sign;
  } else {
    key = static_cast<Key>(value) ^ (std::is_signed_v<C> ? sign : Key{0});
  }
  return largest ? ~key : key;
}

template <class C>
C value_of_key(KeyOf<C> key, bool largest) {
  using Key = KeyOf<C>;
  constexpr Key sign = Key{1} << (sizeof(Key) * 8 - 1);
  if (largest) key = ~key;
  if constexpr (std::is_floating_point_v<C>) {
    if (key == ~Key{0}) return std::numeric_limits<C>::quiet_NaN();
    return std::bit_cast<C>((key & sign) != 0 ? key ^ sign : ~key);
  } else {
    return static_cast<C>(key ^ (std::is_signed_v<C> ? sign : Key{0}));
  }
}

// So few are kept in order; of more, some too many are gathered and the worst dropped then.
constexpr int64_t few = 32;
int64_t gathered(int64_t n, int64_t k) { return k <= few ? k : std::min(n, 2 * k + 1024); }

// The k best elements of a row that is looked at part after part.
template <class C, class Word>
class Best {
 public:
  // `words` has room for gathered(n, k).
  Best(Word* words, int64_t n, int64_t k, bool largest)
      : words_(words), k_(k), room_(gathered(n, k)), largest_(largest) {}

  void look_at(const C* x, int64_t at, int64_t n) {
    int64_t i = 0;
    for (; i < n && !full_; ++i) take(word_of(x[i], at + i));
    // The first parts are short: what is good enough changes fast.
    while (i < n) {
      int32_t places[max_together];
      const int64_t some = std::min(together_, n - i);
      together_ = std::min(2 * together_, max_together);
      const int64_t found = filter_topk(x + i, some, worst_, largest_, places);
      for (int64_t j = 0; j < found; ++j) {
        const int64_t place = i + places[j];
        const Word word = word_of(x[place], at + place);
        if (word < last_) take(word);
      }
      i += some;
    }
  }

  // They stand in order then.
  void finish() {
    if (k_ <= few) return;
    if (count_ > k_) std::nth_element(words_, words_ + k_, words_ + count_);
    std::sort(words_, words_ + k_);
  }
  int64_t position(int64_t i) const { return static_cast<int64_t>(words_[i] & low_half); }

 private:
  static constexpr int half = sizeof(Word) * 4;
  static constexpr Word low_half = (Word{1} << half) - 1;
  static constexpr int64_t max_together = 1024;

  Word word_of(C value, int64_t position) const {
    return Word{key_of(value, largest_)} << half | static_cast<Word>(position);
  }
  void take(Word word) {
    if (k_ <= few) return insert(word);
    words_[count_++] = word;
    if (count_ < room_) return;
    std::nth_element(words_, words_ + (k_ - 1), words_ + count_);
    count_ = k_;
    limit(words_[k_ - 1]);
  }
  // Among very few, moving all costs less than a guess of how far.
  void insert(Word word) {
    int64_t at = full_ ? k_ - 1 : count_++;
    if (k_ <= 8) {
      for (int64_t j = 0; j < at; ++j) {
        const Word kept = words_[j];
        const bool first = word < kept;
        words_[j] = first ? word : kept;
        word = first ? kept : word;
      }
      words_[at] = word;
    } else {
      for (; at > 0 && word < words_[at - 1]; --at) words_[at] = words_[at - 1];
      words_[at] = word;
    }
    if (count_ == k_) limit(words_[k_ - 1]);
  }
  void limit(Word last) {
    full_ = true;
    last_ = last;
    worst_ = value_of_key<C>(static_cast<KeyOf<C>>(last >> half), largest_);
  }

  Word* words_;
  int64_t k_, room_, count_ = 0, together_ = 16;
  bool largest_, full_ = false;
  Word last_{};  // of the k that are kept, once there are so many
  C worst_{};    // its value
};

// y and positions are those of one row's best; elements as bytes.
template <class T, class B>
void put_best(const B& best, const T* x, T* y, int64_t* positions, int64_t inner, int64_t k) {
  for (int64_t i = 0; i < k; ++i) {
    const int64_t position = best.position(i);
    y[i * inner] = x[position * inner];
    positions[i * inner] = position;
  }
}

template <class B>
void put_best(const B& best, ElementType type, const void* x, int64_t base, void* y,
              int64_t* positions, int64_t out_base, int64_t inner, int64_t k) {
  const auto as = [&](auto zero) {
    using T = decltype(zero);
    put_best(best, static_cast<const T*>(x) + base, static_cast<T*>(y) + out_base,
             positions + out_base, inner, k);
  };
  switch (bit_width(type)) {
    case 8: return as(uint8_t{});
    case 16: return as(uint16_t{});
    case 32: return as(uint32_t{});
    default: return as(uint64_t{});
  }
}

// So many columns are walked together where the elements of one lie apart.
constexpr int64_t columns_together = 16;

template <class C, class Word>
struct TopK {
  ElementType type;
  const void* x;
  void* y;
  int64_t* positions;
  int64_t n, inner, k;
  bool largest;

  void row(int64_t o, Word* words) const {
    Best<C, Word> best(words, n, k, largest);
    visit_values<C>(type, x, o * n, n,
                    [&](const C* v, int64_t at, int64_t some) { best.look_at(v, at, some); });
    best.finish();
    put_best(best, type, x, o * n, y, positions, o * k, 1, k);
  }

  // Columns [column, column + width) of matrix o: parts of them are put side by side.
  void columns(int64_t o, int64_t column, int64_t width, Word* words) const {
    constexpr int64_t rows = 128;
    alignas(64) C parts[columns_together * rows];
    const int64_t base = o * n * inner + column, room = gathered(n, k);
    using One = Best<C, Word>;
    alignas(One) std::byte kept[columns_together * sizeof(One)];
    One* best = reinterpret_cast<One*>(kept);
    for (int64_t c = 0; c < width; ++c) new (best + c) One(words + c * room, n, k, largest);
    for (int64_t i = 0; i < n; i += rows) {
      const int64_t some = std::min(rows, n - i);
      for (int64_t r = 0; r < some; ++r) {
        visit_values<C>(type, x, base + (i + r) * inner, width,
                        [&](const C* v, int64_t at, int64_t count) {
                          for (int64_t c = 0; c < count; ++c) parts[(at + c) * rows + r] = v[c];
                        });
      }
      for (int64_t c = 0; c < width; ++c) best[c].look_at(parts + c * rows, i, some);
    }
    for (int64_t c = 0; c < width; ++c) {
      best[c].finish();
      put_best(best[c], type, x, base + c, y, positions, o * k * inner + column + c, inner, k);
    }
  }

  void all(int64_t outer, void* scratch, ThreadPool& pool) const {
    // Long lists take the scratch that one column has.
    const int64_t width = inner == 1 || k > few ? 1 : columns_together;
    const int64_t blocks = (inner + width - 1) / width;
    const int64_t grain = std::max<int64_t>(1, row_grain / (8 * n * width));
    pool.parallel_for(outer * blocks, grain, [&](int64_t begin, int64_t end, int worker) {
      Word shorts[columns_together * few];
      Word* words =
          k <= few ? shorts : reinterpret_cast<Word*>(static_cast<LongWord*>(scratch) + worker * n);
      for (int64_t u = begin; u < end; ++u) {
        if (inner == 1) {
          row(u, words);
        } else {
          const int64_t column = u % blocks * width;
          columns(u / blocks, column, std::min(width, inner - column), words);
        }
      }
    });
  }
};

template <class Call>
void by_value_type(const char* op, ElementType type, Call&& call) {
  if (is_floating(type) && bit_width(type) >= 8) {
    return type == ElementType::float64 ? call(double{}) : call(float{});
  }
  if (is_integer(type) && bit_width(type) >= 8) {
    return type == ElementType::uint64 ? call(uint64_t{}) : call(int64_t{});
  }
  fail(ErrorCode::unsupported, "{} does not take {}", op, name_of(type));
}

}  // namespace

void cumulate(ScanOp op, ElementType type, const void* x, void* y, int64_t outer, int64_t n,
              int64_t inner, bool exclusive, bool reverse, ThreadPool& pool) {
  by_value_type(op == ScanOp::sum ? "CumSum" : "CumProd", type, [&](auto zero) {
    cumulate_all<decltype(zero)>(op, type, x, y, outer, n, inner, exclusive, reverse, pool);
  });
}

int64_t topk_scratch_bytes(int64_t n, int threads) {
  int64_t bytes;
  if (__builtin_mul_overflow(n, threads * static_cast<int64_t>(sizeof(LongWord)), &bytes)) {
    fail(ErrorCode::out_of_memory, "TopK over {} elements needs too much memory", n);
  }
  return bytes;
}

void topk(ElementType type, const void* x, void* y, int64_t* positions, int64_t outer, int64_t n,
          int64_t inner, int64_t k, bool largest, void* scratch, ThreadPool& pool) {
  if (k < 0 || k > n) {
    fail(ErrorCode::run_failed, "TopK: k must be in [0, {}], the size of the axis; got {}", n, k);
  }
  if (k == 0 || outer == 0 || inner == 0) return;
  by_value_type("TopK", type, [&](auto zero) {
    using C = decltype(zero);
    const auto with = [&](auto word) {
      const TopK<C, decltype(word)> task{type, x, y, positions, n, inner, k, largest};
      task.all(outer, scratch, pool);
    };
    if constexpr (std::is_same_v<C, float>) {
      if (n <= std::numeric_limits<uint32_t>::max()) return with(uint64_t{});
    }
    with(LongWord{});
  });
}

}  // namespace sardonyx::kernels
