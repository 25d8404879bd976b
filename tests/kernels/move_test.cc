// Data movement against index arithmetic done element by element.
#include <algorithm>
#include <complex>
#include <functional>
#include <numeric>

#include "kernels/move/arrange.h"
#include "kernels/move/gather.h"
#include "kernels/move/pad.h"
#include "kernels/move/strided.h"
#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

using test::each_target;
using test::error_of;
using test::one_thread;
using test::two_threads;
using Shape = std::vector<int64_t>;

int64_t count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Shape index_of(const Shape& shape, int64_t at) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = at % shape[d];
    at /= shape[d];
  }
  return index;
}

int64_t offset_of(const Shape& shape, const Shape& index) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return at;
}

template <class T>
T element(int64_t i) {
  if constexpr (std::is_same_v<T, std::string>) {
    return "element " + std::to_string(i);
  } else {
    return static_cast<T>(i * 2654435761 + 12345);
  }
}

template <class T>
std::vector<T> elements(int64_t n) {
  std::vector<T> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(element<T>(i));
  return x;
}

// y[i] must be x[source(i)] for every cell and thread count; source < 0 leaves what was there.
using Source = std::function<int64_t(int64_t)>;

template <class T>
void check_cell(Cell cell, const StridedCopy& plan, int64_t x_count, int64_t y_count,
                const Source& source) {
  const auto x = elements<T>(x_count);
  std::vector<T> y(static_cast<size_t>(y_count), element<T>(-7)), z = y;
  copy_strided(cell, plan, x.data(), y.data(), one_thread());
  copy_strided(cell, plan, x.data(), z.data(), two_threads());
  ASSERT_TRUE(y == z);
  for (int64_t i = 0; i < y_count; ++i) {
    const int64_t from = source(i);
    const T expected = from < 0 ? element<T>(-7) : x[static_cast<size_t>(from)];
    ASSERT_TRUE(y[static_cast<size_t>(i)] == expected) << "element " << i;
  }
}

void check_copy(const StridedCopy& plan, int64_t x_count, int64_t y_count, const Source& source) {
  each_target([&] {
    check_cell<uint8_t>(Cell::bytes1, plan, x_count, y_count, source);
    check_cell<uint16_t>(Cell::bytes2, plan, x_count, y_count, source);
    check_cell<uint32_t>(Cell::bytes4, plan, x_count, y_count, source);
    check_cell<uint64_t>(Cell::bytes8, plan, x_count, y_count, source);
  });
  check_cell<__int128>(Cell::bytes16, plan, x_count, y_count, source);
  if (y_count < 20000) check_cell<std::string>(Cell::text, plan, x_count, y_count, source);
}

TEST(Strided, Transpose) {
  const std::pair<Shape, Shape> cases[] = {
      {{}, {}},
      {{5}, {0}},
      {{3, 4}, {1, 0}},
      {{33, 65}, {1, 0}},
      {{257, 300}, {1, 0}},
      {{2, 3, 4, 5}, {0, 2, 1, 3}},
      {{2, 3, 4, 5}, {3, 2, 1, 0}},
      {{2, 17, 19, 3}, {0, 3, 1, 2}},
      {{2, 3, 17, 19}, {0, 2, 3, 1}},
      {{7, 1, 9}, {2, 1, 0}},
      {{0, 3}, {1, 0}},
      {{2, 2, 2, 2, 2, 2}, {5, 3, 1, 4, 2, 0}},
      {{40, 3, 50, 11}, {2, 1, 0, 3}},
      {{2, 5001}, {1, 0}},
      {{5001, 2}, {1, 0}},
      {{2, 3, 1500}, {0, 2, 1}},
      {{2, 1500, 3}, {0, 2, 1}},
      {{2, 1100, 4}, {0, 2, 1}},
      {{7, 1100}, {1, 0}},
  };
  for (const auto& [shape, perm] : cases) {
    const auto& from_shape = shape;
    const auto& axes = perm;
    Shape out;
    for (const int64_t p : perm) out.push_back(shape[static_cast<size_t>(p)]);
    check_copy(plan_transpose(shape, perm), count(shape), count(out), [&](int64_t i) {
      const Shape index = index_of(out, i);
      Shape from(index.size());
      for (size_t d = 0; d < index.size(); ++d) from[static_cast<size_t>(axes[d])] = index[d];
      return offset_of(from_shape, from);
    });
  }
  EXPECT_TRUE(plan_transpose(Shape{1, 3, 1}, Shape{2, 1, 0}).is_plain());
  EXPECT_THROW(plan_transpose(Shape{2, 3}, Shape{0, 0}), Error);
  EXPECT_THROW(plan_transpose(Shape{2, 3}, Shape{0, 2}), Error);
  EXPECT_THROW(plan_transpose(Shape{2, 3}, Shape{0}), Error);
}

// Every remainder of the blocks that are turned in registers.
TEST(Strided, TransposedBlocks) {
  test::each_target([] {
    for (int64_t rows = 1; rows < 12; ++rows) {
      for (int64_t columns = 1; columns < 40; ++columns) {
        check_copy(plan_transpose(Shape{2, rows, columns}, Shape{0, 2, 1}), 2 * rows * columns,
                   2 * rows * columns, [&](int64_t i) {
                     const int64_t at = i % (rows * columns);
                     return i - at + at % rows * columns + at / rows;
                   });
      }
    }
  });
}

TEST(Strided, SliceAndInsert) {
  struct Case {
    Shape shape, starts, steps, output;
  };
  const Case cases[] = {
      {{10}, {2}, {3}, {3}},
      {{10}, {9}, {-1}, {10}},
      {{6, 7}, {5, 1}, {-2, 2}, {3, 3}},
      {{4, 5, 6}, {0, 2, 0}, {1, 1, 1}, {4, 2, 6}},
      {{4, 300, 200}, {0, 7, 3}, {1, 2, 1}, {4, 100, 190}},
      {{3, 3}, {1, 1}, {1, 0}, {2, 1}},
      {{3, 3}, {0, 0}, {1, 1}, {0, 3}},
  };
  for (const Case& c : cases) {
    const auto source = [&](int64_t i) {
      Shape index = index_of(c.output, i);
      for (size_t d = 0; d < index.size(); ++d) index[d] = c.starts[d] + index[d] * c.steps[d];
      return offset_of(c.shape, index);
    };
    check_copy(plan_slice(c.shape, c.starts, c.steps, c.output), count(c.shape), count(c.output),
               source);
    std::vector<int64_t> inverse(static_cast<size_t>(count(c.shape)), -1);
    for (int64_t i = 0; i < count(c.output); ++i) inverse[static_cast<size_t>(source(i))] = i;
    check_copy(plan_insert(c.output, c.starts, c.steps, c.shape), count(c.output), count(c.shape),
               [&](int64_t i) { return inverse[static_cast<size_t>(i)]; });
  }
  EXPECT_THROW(plan_slice(Shape{10}, Shape{2}, Shape{3}, Shape{4}), Error);
  EXPECT_THROW(plan_slice(Shape{10}, Shape{2}, Shape{-1}, Shape{4}), Error);
  EXPECT_THROW(plan_slice(Shape{10}, Shape{2}, Shape{INT64_MAX}, Shape{3}), Error);
  EXPECT_THROW(plan_slice(Shape{10}, Shape{2}, Shape{0}, Shape{2}), Error);
  EXPECT_THROW(plan_slice(Shape{0}, Shape{0}, Shape{1}, Shape{1}), Error);
}

TEST(Strided, ExpandTileConcatSplit) {
  const Shape x{3, 1, 4}, wide{2, 3, 5, 4};
  check_copy(plan_expand(x, wide), 12, count(wide), [&](int64_t i) {
    const Shape index = index_of(wide, i);
    return offset_of(x, {index[1], 0, index[3]});
  });
  check_copy(plan_expand(Shape{}, Shape{300, 200}), 1, 60000, [](int64_t) { return 0; });
  EXPECT_THROW(plan_expand(Shape{2}, Shape{3}), Error);
  const Shape y{2, 3}, repeats{3, 2}, tiled{6, 6};
  check_copy(plan_tile(y, repeats), 6, 36, [&](int64_t i) {
    const Shape index = index_of(tiled, i);
    return offset_of(y, {index[0] % 2, index[1] % 3});
  });
  EXPECT_EQ(plan_tile(Shape{3}, Shape{0}).count, 0);
  EXPECT_THROW(plan_tile(Shape{3}, Shape{-1}), Error);
  EXPECT_THROW(plan_tile(Shape{1 << 20, 1 << 20}, Shape{1 << 20, 1 << 20}), Error);
  const Shape part{2, 3, 4}, whole{2, 7, 4};
  check_copy(plan_concat(part, whole, 1, 2), 24, 56, [&](int64_t i) {
    Shape index = index_of(whole, i);
    index[1] -= 2;
    return index[1] < 0 || index[1] >= 3 ? -1 : offset_of(part, index);
  });
  check_copy(plan_split(whole, 1, 2, 3), 56, 24, [&](int64_t i) {
    Shape index = index_of(part, i);
    index[1] += 2;
    return offset_of(whole, index);
  });
  EXPECT_THROW(plan_concat(part, whole, 1, 5), Error);
  EXPECT_THROW(plan_split(whole, 1, 6, 2), Error);
  EXPECT_THROW(plan_split(whole, 3, 0, 2), Error);
}

// Every remainder of the vectors that take every second element, up to the end of the input.
TEST(Strided, EverySecond) {
  for (const int64_t columns : {16, 17, 31, 64, 65, 129, 500}) {
    for (const int64_t start : {0, 1}) {
      const Shape shape{3, 2 * columns - 1 + start}, part{3, columns};
      check_copy(plan_slice(shape, Shape{0, start}, Shape{1, 2}, part), count(shape), count(part),
                 [&](int64_t i) {
                   const Shape at = index_of(part, i);
                   return offset_of(shape, {at[0], start + 2 * at[1]});
                 });
    }
  }
}

TEST(Strided, DepthAndSpace) {
  const Shape deep{2, 12, 3, 5}, wide{2, 3, 6, 10};
  for (const bool dcr : {true, false}) {
    check_copy(plan_depth_to_space(deep, 2, dcr), 360, 360, [&](int64_t i) {
      const Shape at = index_of(wide, i);
      const int64_t block = at[2] % 2 * 2 + at[3] % 2;
      return offset_of(deep,
                       {at[0], dcr ? block * 3 + at[1] : at[1] * 4 + block, at[2] / 2, at[3] / 2});
    });
  }
  check_copy(plan_space_to_depth(wide, 2), 360, 360, [&](int64_t i) {
    const Shape at = index_of(deep, i);
    const int64_t block = at[1] / 3;
    return offset_of(wide, {at[0], at[1] % 3, at[2] * 2 + block / 2, at[3] * 2 + block % 2});
  });
  EXPECT_THROW(plan_depth_to_space(deep, 5, true), Error);
  EXPECT_THROW(plan_space_to_depth(deep, 0), Error);
}

TEST(Strided, RefusesWalksThatLeave) {
  EXPECT_THROW(plan_strided(Shape{4}, Shape{3}, Shape{1}, 0, 0, 9, 4), Error);
  EXPECT_THROW(plan_strided(Shape{4}, Shape{-1}, Shape{1}, 2, 0, 9, 4), Error);
  EXPECT_THROW(plan_strided(Shape{4}, Shape{INT64_MAX}, Shape{1}, 0, 0, 9, 4), Error);
  EXPECT_NO_THROW(plan_strided(Shape{4}, Shape{-1}, Shape{1}, 3, 0, 9, 4));
}

TEST(Fill, Strings) {
  std::vector<std::string> y(50000);
  const std::string value = "a value that is too long to be stored in place";
  fill(Cell::text, &value, y.data(), 50000, two_threads());
  EXPECT_TRUE(std::all_of(y.begin(), y.end(), [&](const std::string& s) { return s == value; }));
}

// ---- pad ----

int64_t pad_source(PadMode mode, int64_t dim, int64_t before, int64_t after, int64_t i) {
  if (mode == PadMode::constant) return i - before >= 0 && i - before < dim ? i - before : -1;
  const int64_t first = std::max<int64_t>(-before, 0);
  const int64_t kept = dim - first - std::max<int64_t>(-after, 0);
  int64_t at = i - std::max<int64_t>(before, 0);
  while (at < 0 || at >= kept) {
    if (mode == PadMode::edge) at = at < 0 ? 0 : kept - 1;
    if (mode == PadMode::wrap) at += at < 0 ? kept : -kept;
    if (mode == PadMode::reflect) at = kept == 1 ? 0 : at < 0 ? -at : 2 * (kept - 1) - at;
  }
  return first + at;
}

TEST(Pad, EveryMode) {
  struct Case {
    Shape shape, before, after;
  };
  const Case cases[] = {
      {{4}, {2}, {3}},
      {{3, 4}, {1, 0}, {0, 2}},
      {{3, 4}, {-1, 2}, {2, -1}},
      {{2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 2, 1}},
      {{2, 3, 4, 5}, {0, 1, 0, 0}, {0, 2, 0, 0}},
      {{3, 1, 2}, {2, 3, 9}, {1, 4, 11}},
      {{300, 200}, {1, 1}, {1, 1}},
      {{3, 3}, {0, 0}, {0, 0}},
  };
  for (const Case& c : cases) {
    Shape out;
    for (size_t d = 0; d < c.shape.size(); ++d) {
      out.push_back(c.shape[d] + c.before[d] + c.after[d]);
    }
    const auto x = elements<int32_t>(count(c.shape));
    const int32_t value = -42;
    for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::wrap}) {
      std::vector<int32_t> y(static_cast<size_t>(count(out))), z(y.size());
      pad(Cell::bytes4, mode, c.shape, c.before, c.after, &value, x.data(), y.data(), one_thread());
      pad(Cell::bytes4, mode, c.shape, c.before, c.after, &value, x.data(), z.data(),
          two_threads());
      EXPECT_EQ(y, z);
      for (int64_t i = 0; i < count(out); ++i) {
        const Shape index = index_of(out, i);
        Shape from(index.size());
        bool inside = true;
        for (size_t d = 0; d < index.size(); ++d) {
          from[d] = pad_source(mode, c.shape[d], c.before[d], c.after[d], index[d]);
          inside = inside && from[d] >= 0;
        }
        const int32_t expected = inside ? x[static_cast<size_t>(offset_of(c.shape, from))] : value;
        ASSERT_EQ(y[static_cast<size_t>(i)], expected) << "mode " << static_cast<int>(mode);
      }
    }
  }
}

TEST(Pad, StringsAndRefusals) {
  const std::vector<std::string> x{"a", "b"};
  std::vector<std::string> y(4);
  pad(Cell::text, PadMode::constant, Shape{2}, Shape{1}, Shape{1}, nullptr, x.data(), y.data(),
      one_thread());
  EXPECT_EQ(y, (std::vector<std::string>{"", "a", "b", ""}));
  const auto refused = [&](PadMode mode, Shape shape, Shape before, Shape after) {
    return error_of([&] {
      pad(Cell::bytes1, mode, shape, before, after, nullptr, nullptr, nullptr, one_thread());
    });
  };
  EXPECT_NE(refused(PadMode::constant, {2}, {-3}, {0}), "");
  EXPECT_NE(refused(PadMode::reflect, {2}, {-3}, {4}), "");
  EXPECT_NE(refused(PadMode::edge, {0}, {1}, {1}), "");
  EXPECT_NE(refused(PadMode::constant, {2}, {INT64_MAX}, {0}), "");
  EXPECT_NE(refused(PadMode::constant, {2, 2}, {1}, {0}), "");
  // Cropping to nothing writes nothing.
  EXPECT_EQ(refused(PadMode::constant, {2}, {-1}, {-1}), "");
}

// ---- gather and scatter ----

TEST(Gather, AlongAnAxis) {
  const Shape x_shape{3, 5, 4};
  const auto x = elements<int32_t>(60);
  const std::vector<int32_t> indices{4, -1, 0, -5, 2};
  std::vector<int32_t> y(60);
  gather(Cell::bytes4, 3, 5, 4, x.data(), Indices(indices.data(), 5), y.data(), two_threads());
  for (int64_t i = 0; i < 60; ++i) {
    Shape at = index_of({3, 5, 4}, i);
    at[1] = (indices[static_cast<size_t>(at[1])] + 5) % 5;
    EXPECT_EQ(y[static_cast<size_t>(i)], x[static_cast<size_t>(offset_of(x_shape, at))]);
  }
  const std::vector<std::string> words{"a", "b"};
  std::vector<std::string> chosen(1);
  const int64_t last = -1;
  gather(Cell::text, 1, 2, 1, words.data(), Indices(&last, 1), chosen.data(), one_thread());
  EXPECT_EQ(chosen[0], "b");
}

// The same few columns of every row.
TEST(Gather, ColumnsOfManyRows) {
  constexpr int64_t rows = 9001, columns = 7;
  const auto x = elements<int32_t>(rows * columns);
  for (const std::vector<int64_t>& indices :
       {std::vector<int64_t>{3}, std::vector<int64_t>{6, -7, 2},
        std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 6, 5}}) {
    const auto n = static_cast<int64_t>(indices.size());
    std::vector<int32_t> y(static_cast<size_t>(rows * n));
    gather(Cell::bytes4, rows, columns, 1, x.data(), Indices(indices.data(), n), y.data(),
           two_threads());
    for (int64_t i = 0; i < rows * n; ++i) {
      const int64_t column = (indices[static_cast<size_t>(i % n)] + columns) % columns;
      ASSERT_EQ(y[static_cast<size_t>(i)], x[static_cast<size_t>(i / n * columns + column)]);
    }
  }
}

TEST(Gather, BadIndicesAreNamed) {
  const auto x = elements<int32_t>(60);
  std::vector<int32_t> y(60);
  for (const int64_t bad : {int64_t{5}, int64_t{-6}, INT64_MAX, INT64_MIN}) {
    const auto message = error_of(
        [&] { gather(Cell::bytes4, 1, 5, 4, x.data(), Indices(&bad, 1), y.data(), one_thread()); });
    EXPECT_NE(message.find(std::to_string(bad)), std::string::npos) << message;
    EXPECT_NE(message.find("[-5, 4]"), std::string::npos) << message;
    EXPECT_THROW(gather_elements(Cell::bytes4, Shape{5}, 0, x.data(), Shape{1}, Indices(&bad, 1),
                                 y.data(), one_thread()),
                 Error);
    EXPECT_THROW(gather_nd(Cell::bytes4, Shape{5}, 0, x.data(), Shape{1}, Indices(&bad, 1),
                           y.data(), one_thread()),
                 Error);
    EXPECT_THROW(scatter_elements(ElementType::int32, ScatterReduction::none, Shape{5}, 0, Shape{1},
                                  Indices(&bad, 1), x.data(), y.data(), one_thread()),
                 Error);
    EXPECT_THROW(scatter_nd(ElementType::int32, ScatterReduction::add, Shape{5}, Shape{1},
                            Indices(&bad, 1), x.data(), y.data(), one_thread()),
                 Error);
  }
  EXPECT_THROW(Indices(ElementType::float32, nullptr, 0), Error);
}

TEST(Gather, Elements) {
  const Shape shape{4, 3, 5}, index_shape{2, 3, 70};
  const auto x = elements<uint16_t>(60);
  std::vector<int64_t> indices(420);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i * 7 % 10) - 5;
  std::vector<uint16_t> y(420);
  gather_elements(Cell::bytes2, shape, 2, x.data(), index_shape, Indices(indices.data(), 420),
                  y.data(), two_threads());
  for (int64_t i = 0; i < 420; ++i) {
    Shape at = index_of(index_shape, i);
    at[2] = (indices[static_cast<size_t>(i)] + 5) % 5;
    EXPECT_EQ(y[static_cast<size_t>(i)], x[static_cast<size_t>(offset_of(shape, at))]);
  }
  EXPECT_THROW(gather_elements(Cell::bytes2, shape, 2, x.data(), Shape{5, 3, 1},
                               Indices(indices.data(), 15), y.data(), one_thread()),
               Error);
}

// Runs along every axis, whole and cut, with dimensions of one and such as walk alike.
TEST(Gather, ElementsAlongEveryAxis) {
  const std::pair<Shape, Shape> cases[] = {{{300}, {40}},
                                           {{7, 33}, {7, 33}},
                                           {{7, 33}, {5, 21}},
                                           {{40, 1, 50, 3}, {33, 1, 50, 3}},
                                           {{4, 6, 1, 9}, {4, 1, 1, 9}},
                                           {{3, 4, 5, 6}, {3, 4, 5, 6}},
                                           {{200, 90}, {200, 90}}};
  for (const auto& [shape, index_shape] : cases) {
    const auto x = elements<uint32_t>(count(shape));
    const int64_t many = count(index_shape);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      std::vector<int32_t> indices(static_cast<size_t>(many));
      const int64_t dim = shape[axis];
      for (size_t i = 0; i < indices.size(); ++i)
        indices[i] = static_cast<int32_t>(static_cast<int64_t>(i) * 7 % (2 * dim) - dim);
      const std::vector<int64_t> wide(indices.begin(), indices.end());
      std::vector<uint32_t> y(indices.size()), z(indices.size());
      const auto along = static_cast<int64_t>(axis);
      gather_elements(Cell::bytes4, shape, along, x.data(), index_shape,
                      Indices(indices.data(), many), y.data(), two_threads());
      gather_elements(Cell::bytes4, shape, along, x.data(), index_shape, Indices(wide.data(), many),
                      z.data(), one_thread());
      EXPECT_EQ(y, z);
      for (int64_t i = 0; i < many; ++i) {
        Shape at = index_of(index_shape, i);
        at[axis] = (wide[static_cast<size_t>(i)] + dim) % dim;
        ASSERT_EQ(y[static_cast<size_t>(i)], x[static_cast<size_t>(offset_of(shape, at))]);
      }
    }
  }
}

TEST(Gather, Nd) {
  const Shape shape{2, 3, 4, 5};
  const auto x = elements<int64_t>(120);
  const std::vector<int64_t> indices{0, 1, -1, -1, 2, 0, 1, 3};  // [2, 2, 2]
  std::vector<int64_t> y(2 * 2 * 5);
  gather_nd(Cell::bytes8, shape, 1, x.data(), Shape{2, 2, 2}, Indices(indices.data(), 8), y.data(),
            one_thread());
  for (int64_t i = 0; i < 20; ++i) {
    const Shape at = index_of({2, 2, 5}, i);
    const auto tuple = static_cast<size_t>((at[0] * 2 + at[1]) * 2);
    const Shape from{at[0], (indices[tuple] + 3) % 3, (indices[tuple + 1] + 4) % 4, at[2]};
    EXPECT_EQ(y[static_cast<size_t>(i)], x[static_cast<size_t>(offset_of(shape, from))]);
  }
  EXPECT_THROW(gather_nd(Cell::bytes8, shape, 1, x.data(), Shape{3, 2, 2},
                         Indices(indices.data(), 12), y.data(), one_thread()),
               Error);
  EXPECT_THROW(gather_nd(Cell::bytes8, shape, 0, x.data(), Shape{1, 5}, Indices(indices.data(), 5),
                         y.data(), one_thread()),
               Error);
}

TEST(Scatter, ElementsWithEveryReduction) {
  const std::vector<int64_t> indices{1, 1, -3};
  const auto run = [&](ScatterReduction reduction) {
    std::vector<float> y{1, 2, 3};
    const std::vector<float> updates{5, 7, -4};
    scatter_elements(ElementType::float32, reduction, Shape{3}, 0, Shape{3},
                     Indices(indices.data(), 3), updates.data(), y.data(), one_thread());
    return y;
  };
  using V = std::vector<float>;
  EXPECT_EQ(run(ScatterReduction::none), (V{-4, 7, 3}));
  EXPECT_EQ(run(ScatterReduction::add), (V{-3, 14, 3}));
  EXPECT_EQ(run(ScatterReduction::mul), (V{-4, 70, 3}));
  EXPECT_EQ(run(ScatterReduction::max), (V{1, 7, 3}));
  EXPECT_EQ(run(ScatterReduction::min), (V{-4, 2, 3}));
}

template <class T>
void expect_scattered_along_every_axis(ElementType type, bool rows_of_one_index) {
  const std::pair<Shape, Shape> cases[] = {{{300}, {40}},
                                           {{7, 33}, {5, 21}},
                                           {{40, 1, 50, 3}, {33, 1, 50, 3}},
                                           {{70, 2000}, {70, 2000}},
                                           {{200, 90}, {200, 90}}};
  const ScatterReduction reductions[] = {ScatterReduction::none, ScatterReduction::add,
                                         ScatterReduction::mul, ScatterReduction::max,
                                         ScatterReduction::min};
  for (const auto& [shape, index_shape] : cases) {
    const auto data = elements<T>(count(shape));
    const auto updates = elements<T>(count(index_shape));
    const int64_t many = count(index_shape), last = index_shape.back();
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      std::vector<int64_t> indices(static_cast<size_t>(many));
      const int64_t dim = shape[axis];
      for (int64_t i = 0; i < many; ++i)
        indices[static_cast<size_t>(i)] = (rows_of_one_index ? i / last : i) * 7 % (2 * dim) - dim;
      for (const ScatterReduction reduction : reductions) {
        auto want = data, y = data;
        scatter_elements(type, reduction, shape, static_cast<int64_t>(axis), index_shape,
                         Indices(indices.data(), many), updates.data(), y.data(), two_threads());
        for (int64_t i = 0; i < many; ++i) {
          Shape at = index_of(index_shape, i);
          at[axis] = (indices[static_cast<size_t>(i)] + dim) % dim;
          T& old = want[static_cast<size_t>(offset_of(shape, at))];
          const T update = updates[static_cast<size_t>(i)];
          switch (reduction) {
            case ScatterReduction::add: old = static_cast<T>(old + update); break;
            case ScatterReduction::mul: old = static_cast<T>(old * update); break;
            case ScatterReduction::max: old = std::max(old, update); break;
            case ScatterReduction::min: old = std::min(old, update); break;
            default: old = update;
          }
        }
        ASSERT_EQ(y, want) << "axis " << axis << ", reduction " << static_cast<int>(reduction);
      }
    }
  }
}

// Runs along every axis, shared between threads; with the indices of an Expand, too.
TEST(Scatter, ElementsAlongEveryAxis) {
  for (const bool rows_of_one_index : {false, true}) {
    expect_scattered_along_every_axis<float>(ElementType::float32, rows_of_one_index);
    expect_scattered_along_every_axis<uint8_t>(ElementType::uint8, rows_of_one_index);
    expect_scattered_along_every_axis<uint32_t>(ElementType::uint32, rows_of_one_index);
  }
}

// Long runs go to the loops of the element-wise operators, short ones do not.
TEST(Scatter, LongRunsOfEveryKind) {
  const std::vector<int64_t> rows{2, 0, 2, -3};
  for (const int64_t inner : {int64_t{3}, int64_t{100}, int64_t{3000}}) {
    const auto many = static_cast<size_t>(3 * inner), more = static_cast<size_t>(4 * inner);
    const auto run = [&](ElementType type, ScatterReduction reduction, auto y, auto updates) {
      y.resize(many, y[0]);
      updates.resize(more, updates[0]);
      scatter_nd(type, reduction, Shape{3, inner}, Shape{4, 1}, Indices(rows.data(), 4),
                 updates.data(), y.data(), two_threads());
      const auto row = [&](int64_t r) {
        const auto from = y.begin() + r * inner;
        EXPECT_EQ(std::count(from, from + inner, *from), inner);
        return *from;
      };
      return std::vector{row(0), row(1), row(2)};
    };
    using enum ScatterReduction;
    using Halves = std::vector<uint16_t>;
    EXPECT_EQ(run(ElementType::float16, add, Halves{0x3c00}, Halves{0x4000}),  // 1 and 2
              (Halves{0x4500, 0x3c00, 0x4500}));
    EXPECT_EQ(run(ElementType::bfloat16, mul, Halves{0x3f80}, Halves{0x4000}),
              (Halves{0x4080, 0x3f80, 0x4080}));
    using Bytes = std::vector<uint8_t>;
    EXPECT_EQ(run(ElementType::boolean, add, Bytes{0}, Bytes{1}), (Bytes{1, 0, 1}));
    EXPECT_EQ(run(ElementType::boolean, mul, Bytes{1}, Bytes{0}), (Bytes{0, 1, 0}));
    EXPECT_EQ(run(ElementType::boolean, max, Bytes{0}, Bytes{1}), (Bytes{1, 0, 1}));
    EXPECT_EQ(run(ElementType::boolean, min, Bytes{1}, Bytes{0}), (Bytes{0, 1, 0}));
    using Complex = std::vector<std::complex<float>>;
    EXPECT_EQ(run(ElementType::complex64, mul, Complex{{1, 1}}, Complex{{0, 1}}),
              (Complex{{-1, -1}, {1, 1}, {-1, -1}}));
    using Doubles = std::vector<double>;
    EXPECT_EQ(run(ElementType::float64, min, Doubles{1}, Doubles{-2}), (Doubles{-2, 1, -2}));
    using Longs = std::vector<int64_t>;
    EXPECT_EQ(run(ElementType::int64, max, Longs{-5}, Longs{1}), (Longs{1, -5, 1}));
  }
}

TEST(Scatter, NdAndOtherTypes) {
  std::vector<std::string> words{"a", "b", "c", "d"};
  const std::vector<int32_t> rows{1};
  const std::vector<std::string> updates{"x", "y"};
  scatter_nd(ElementType::string, ScatterReduction::none, Shape{2, 2}, Shape{1, 1},
             Indices(rows.data(), 1), updates.data(), words.data(), one_thread());
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b", "x", "y"}));
  std::vector<uint8_t> fold_predicates{0, 1};
  const std::vector<uint8_t> more{1, 0};
  const std::vector<int32_t> both{0, 1};
  scatter_nd(ElementType::boolean, ScatterReduction::mul, Shape{2}, Shape{2, 1},
             Indices(both.data(), 2), more.data(), fold_predicates.data(), one_thread());
  EXPECT_EQ(fold_predicates, (std::vector<uint8_t>{0, 0}));
  std::vector<uint16_t> halves{0x3c00};  // 1 in float16
  scatter_nd(ElementType::float16, ScatterReduction::add, Shape{1}, Shape{1, 1},
             Indices(both.data(), 1), halves.data(), halves.data(), one_thread());
  EXPECT_EQ(halves[0], 0x4000);
  EXPECT_THROW(scatter_nd(ElementType::string, ScatterReduction::add, Shape{2, 2}, Shape{1, 1},
                          Indices(rows.data(), 1), updates.data(), words.data(), one_thread()),
               Error);
}

// Shapes without elements can name any number of index tuples.
TEST(Scatter, NothingManyTimes) {
  scatter_nd(ElementType::float32, ScatterReduction::add, Shape{0}, Shape{INT64_MAX, 0}, Indices(),
             nullptr, nullptr, one_thread());
}

// ---- arrange ----

TEST(Arrange, Trilu) {
  const auto x = elements<int32_t>(2 * 4 * 5);
  for (const bool upper : {true, false}) {
    for (const int64_t k :
         {INT64_MIN, int64_t{-9}, int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{9}, INT64_MAX}) {
      std::vector<int32_t> y(x.size());
      trilu(Cell::bytes4, 2, 4, 5, k, upper, x.data(), y.data(), two_threads());
      for (int64_t i = 0; i < 40; ++i) {
        const auto distance = static_cast<__int128>(i % 5) - i / 5 % 4;
        const bool kept = upper ? distance >= k : distance <= k;
        ASSERT_EQ(y[static_cast<size_t>(i)], kept ? x[static_cast<size_t>(i)] : 0) << k;
      }
    }
  }
}

TEST(Arrange, Eye) {
  for (const int64_t k : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{2}, INT64_MAX}) {
    std::vector<uint16_t> y(12, 9);
    eye(ElementType::bfloat16, 3, 4, k, y.data(), one_thread());
    for (int64_t i = 0; i < 12; ++i) {
      const bool hot = k > -9 && k < 9 && i % 4 - i / 4 == k;
      EXPECT_EQ(y[static_cast<size_t>(i)], hot ? 0x3f80 : 0);
    }
  }
}

TEST(Arrange, ReverseSequence) {
  const auto x = elements<int32_t>(4 * 3 * 2);
  const std::vector<int64_t> lengths{0, 2, 4};
  std::vector<int32_t> y(24);
  reverse_sequence(Cell::bytes4, 4, 3, 2, 1, lengths.data(), x.data(), y.data(), one_thread());
  for (int64_t i = 0; i < 24; ++i) {
    const Shape at = index_of({4, 3, 2}, i);
    const int64_t n = lengths[static_cast<size_t>(at[1])];
    const int64_t t = at[0] < n ? n - 1 - at[0] : at[0];
    EXPECT_EQ(y[static_cast<size_t>(i)],
              x[static_cast<size_t>(offset_of({4, 3, 2}, {t, at[1], at[2]}))]);
  }
  const std::vector<int64_t> bad{0, 2, 5};
  EXPECT_THROW(
      reverse_sequence(Cell::bytes4, 4, 3, 2, 1, bad.data(), x.data(), y.data(), one_thread()),
      Error);
}

TEST(Arrange, NonzeroAndCompress) {
  const std::vector<float> x{0, 1, -0.0f, 2, NAN, 0};
  EXPECT_EQ(count_nonzero(ElementType::float32, x.data(), 6), 3);
  std::vector<int64_t> y(6);
  nonzero(ElementType::float32, Shape{2, 3}, x.data(), 3, y.data());
  EXPECT_EQ(y, (std::vector<int64_t>{0, 1, 1, 1, 0, 1}));
  const bool chosen[] = {false, true, true};
  std::vector<float> z(4);
  compress(Cell::bytes4, 2, 3, 1, chosen, 3, x.data(), z.data(), one_thread());
  EXPECT_EQ(z[0], 1);
  EXPECT_EQ(z[1], 0);
  EXPECT_TRUE(std::isnan(z[2]));
  EXPECT_EQ(z[3], 0);
  const auto table = elements<int32_t>(2 * 40 * 3);
  std::vector<int32_t> picked, wanted;
  std::vector<uint8_t> some;
  for (int i = 0; i < 37; ++i) some.push_back(i % 5 != 0 && i % 11 < 8);
  for (size_t o = 0; o < 2; ++o) {
    for (size_t i = 0; i < some.size(); ++i) {
      for (size_t k = 0; some[i] != 0 && k < 3; ++k) wanted.push_back(table[(o * 40 + i) * 3 + k]);
    }
  }
  picked.resize(wanted.size());
  compress(Cell::bytes4, 2, 40, 3, reinterpret_cast<const bool*>(some.data()), 37, table.data(),
           picked.data(), one_thread());
  EXPECT_EQ(picked, wanted);
  EXPECT_THROW(compress(Cell::bytes4, 3, 2, 1, chosen, 3, x.data(), z.data(), one_thread()), Error);
}

TEST(Arrange, Range) {
  const int32_t start = 10, limit = 1, delta = -3;
  ASSERT_EQ(range_count(ElementType::int32, &start, &limit, &delta), 3);
  std::vector<int32_t> y(3);
  range(ElementType::int32, &start, &delta, y.data(), 3);
  EXPECT_EQ(y, (std::vector<int32_t>{10, 7, 4}));
  const int64_t from = INT64_MAX - 70, by = 7;
  for (const int64_t n : {1, 15, 16, 17, 100}) {
    std::vector<int64_t> long_y(static_cast<size_t>(n));
    range(ElementType::int64, &from, &by, long_y.data(), n);
    std::vector<int16_t> short_y(static_cast<size_t>(n));
    const int16_t low_start = -300, low_step = 9;
    range(ElementType::int16, &low_start, &low_step, short_y.data(), n);
    std::vector<double> double_y(static_cast<size_t>(n));
    const double half = 0.5, third = 1.0 / 3;
    range(ElementType::float64, &half, &third, double_y.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(static_cast<uint64_t>(long_y[at]),
                static_cast<uint64_t>(from) + static_cast<uint64_t>(7 * i));
      ASSERT_EQ(short_y[at], -300 + 9 * i);
      ASSERT_NEAR(double_y[at], half + static_cast<double>(i) * third, 1e-12);
    }
  }
  const float a = 1, b = 5, c = 1.5f, none = 0;
  ASSERT_EQ(range_count(ElementType::float32, &a, &b, &c), 3);
  std::vector<float> z(3);
  range(ElementType::float32, &a, &c, z.data(), 3);
  EXPECT_EQ(z, (std::vector<float>{1, 2.5f, 4}));
  EXPECT_THROW(range_count(ElementType::float32, &a, &b, &none), Error);
  const int64_t low = INT64_MIN, high = INT64_MAX, one = 1;
  EXPECT_THROW(range_count(ElementType::int64, &low, &high, &one), Error);
  EXPECT_EQ(range_count(ElementType::int64, &high, &low, &one), 0);
  EXPECT_EQ(range_count(ElementType::int64, &low, &high, &high), 3);
}

TEST(Arrange, OneHot) {
  const std::vector<float> indices{1, -1, 7, -3.0f, NAN, 0.5f};  // [2, 3], depth 3
  const std::vector<int8_t> values{-1, 4};
  std::vector<int8_t> y(18);
  one_hot(Cell::bytes1, ElementType::float32, 2, 3, 3, indices.data(), values.data(), y.data(),
          two_threads());
  const std::vector<int8_t> expected{-1, -1, -1, 4,  -1, -1, -1, 4,  -1,
                                     4,  -1, 4,  -1, -1, -1, -1, -1, -1};
  EXPECT_EQ(y, expected);
}

}  // namespace
}  // namespace sardonyx::kernels
