// What operators that move elements give, where they meet empty tensors, odd types and bad values.
#include <algorithm>
#include <numeric>

#include "graph_support.h"

namespace sardonyx::ops_test {
namespace {

Tensor counting(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  std::iota(tensor.mutable_elements<float>().begin(), tensor.mutable_elements<float>().end(), 0.0f);
  return tensor;
}

Tensor row(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::of<int64_t>(values, {n});
}

// The standard's slice of [0, size). It is Python's, but for a start before the first element where
// steps go back: that is clamped to the first one, which is taken.
std::vector<float> sliced(int64_t size, int64_t start, int64_t end, int64_t step) {
  const auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  std::vector<float> taken;
  if (step > 0) {
    for (int64_t i = clamp(start, 0, size); i < clamp(end, 0, size); i += step)
      taken.push_back(static_cast<float>(i));
  } else if (size > 0) {
    for (int64_t i = clamp(start, 0, size - 1); i > clamp(end, -1, size - 1); i += step)
      taken.push_back(static_cast<float>(i));
  }
  return taken;
}

TEST(Slice, ClampsAllBoundsAsTheStandardSays) {
  constexpr auto graph =
      "g (float[n] x, int64[1] s, int64[1] e, int64[1] a, int64[1] st) => (float[m] y) { y = Slice "
      "(x, s, e, a, st) }";
  for (int64_t size : {0, 1, 4}) {
    for (int64_t step : {-2, -1, 1, 3}) {
      for (int64_t start = -6; start <= 6; ++start) {
        for (int64_t end = -6; end <= 6; ++end) {
          const auto y =
              run(graph, {counting({size}), row({start}), row({end}), row({0}), row({step})});
          ASSERT_EQ(elements<float>(y[0]), sliced(size, start, end, step))
              << start << ":" << end << ":" << step << " of " << size;
        }
      }
    }
  }
}

TEST(Slice, ExtremeBoundsDoNotOverflow) {
  constexpr auto graph =
      "g (float[n] x, int64[1] s, int64[1] e, int64[1] a, int64[1] st) => (float[m] y) { y = Slice "
      "(x, s, e, a, st) }";
  const int64_t least = INT64_MIN, most = INT64_MAX;
  EXPECT_EQ(elements<float>(
                run(graph, {counting({3}), row({least}), row({most}), row({0}), row({1})})[0]),
            (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(elements<float>(
                run(graph, {counting({3}), row({most}), row({least}), row({0}), row({-1})})[0]),
            (std::vector<float>{2, 1, 0}));
  EXPECT_EQ(elements<float>(
                run(graph, {counting({3}), row({most}), row({least}), row({0}), row({least})})[0]),
            (std::vector<float>{2}));
  EXPECT_EQ(elements<float>(
                run(graph, {counting({3}), row({least}), row({most}), row({0}), row({most})})[0]),
            (std::vector<float>{0}));
  EXPECT_NE(error_of([&] {
              run(graph, {counting({3}), row({0}), row({1}), row({0}), row({0})});
            }).find("steps must not be 0"),
            std::string::npos);
}

TEST(Reshape, TeachesWhatIsWrong) {
  constexpr auto graph = "g (float[n] x, int64[k] s) => (float[m] y) { y = Reshape (x, s) }";
  const auto fails = [&](std::vector<int64_t> shape) {
    return error_of([&] { run(graph, {counting({6}), row(std::move(shape))}); });
  };
  EXPECT_NE(fails({-1, -1}).find("one -1"), std::string::npos);
  EXPECT_NE(fails({4}).find("as many elements"), std::string::npos);
  EXPECT_NE(fails({-2, 3}).find("must be -1, 0 or a size"), std::string::npos);
  EXPECT_NE(fails({4, -1}).find("without rest"), std::string::npos);
  EXPECT_NE(fails({6, 0}).find("copies that dimension"), std::string::npos);
  EXPECT_EQ(run(graph, {counting({6}), row({3, -1})})[0].tensor().shape(), (Shape{3, 2}));
}

TEST(Reshape, ZeroSizes) {
  constexpr auto keeps =
      "g (float[n, m] x, int64[k] s) => (float[a] y) { y = Reshape <allowzero = 1> (x, s) }";
  EXPECT_EQ(run(keeps, {counting({0, 3}), row({3, 0, 7})})[0].tensor().shape(), (Shape{3, 0, 7}));
  constexpr auto copies = "g (float[n, m] x, int64[k] s) => (float[a] y) { y = Reshape (x, s) }";
  EXPECT_EQ(run(copies, {counting({0, 3}), row({0, -1})})[0].tensor().shape(), (Shape{0, 3}));
}

TEST(Transpose, PackedElementsKeepTheirValues) {
  // 4-bit integers 0..5 as 2 x 3, two in a byte.
  Tensor x(ElementType::uint4, {2, 3});
  const uint8_t packed[] = {0x10, 0x32, 0x54};
  std::copy(std::begin(packed), std::end(packed), static_cast<uint8_t*>(x.mutable_data()));
  const auto y = run("g (uint4[2, 3] x) => (uint4[3, 2] y) { y = Transpose (x) }", {x});
  const auto* bytes = static_cast<const uint8_t*>(y[0].tensor().data());
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 3), (std::vector<uint8_t>{0x30, 0x41, 0x52}));
}

TEST(ConstantOfShape, PackedValueFillsEveryElement) {
  const auto y =
      run("g (int64[1] s) => (int4[n] y) { y = ConstantOfShape <value = int4[1] {-3}> (s) }",
          {row({3})});
  const auto* bytes = static_cast<const uint8_t*>(y[0].tensor().data());
  EXPECT_EQ(bytes[0], 0xdd);
  EXPECT_EQ(bytes[1], 0x0d);  // the bits after the last element are 0
}

// Of every width, in rows enough for two threads.
TEST(Concat, ShortPiecesOfManyRows) {
  constexpr int64_t rows = 9001, widths[] = {1, 2, 3, 4, 0, 5, 8, 9, 17};
  std::string formals, inputs;
  std::vector<Value> values;
  int64_t all = 0;
  for (const int64_t width : widths) {
    inputs += fmt::format("{}x{}", inputs.empty() ? "" : ", ", all);
    formals += fmt::format("{}float[n, {}] x{}", formals.empty() ? "" : ", ", width, all);
    inputs += width == 0 ? "e" : "";
    formals += width == 0 ? "e" : "";
    Tensor x(ElementType::float32, {rows, width});
    const auto to = x.mutable_elements<float>();
    for (size_t i = 0; i < to.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      to[i] = static_cast<float>(at / width * 100 + all + at % width);
    }
    values.emplace_back(std::move(x));
    all += width;
  }
  const auto y = run(
      fmt::format("g ({}) => (float[n, m] y) {{ y = Concat <axis = -1> ({}) }}", formals, inputs),
      std::move(values));
  const auto joined = elements<float>(y[0]);
  ASSERT_EQ(static_cast<int64_t>(joined.size()), rows * all);
  for (int64_t i = 0; i < rows * all; ++i)
    ASSERT_EQ(joined[static_cast<size_t>(i)], static_cast<float>(i / all * 100 + i % all));
}

TEST(Concat, StringsAndManyInputs) {
  std::string inputs = "x0";
  std::string formals = "string[n] x0";
  std::vector<Value> values{Tensor::of<std::string>({"a"}, {1})};
  for (int i = 1; i < 12; ++i) {
    inputs += fmt::format(", x{}", i);
    formals += fmt::format(", string[n{}] x{}", i, i);
    values.emplace_back(
        Tensor::of<std::string>({std::string(40, static_cast<char>('a' + i)), "-"}, {2}));
  }
  const auto y =
      run(fmt::format("g ({}) => (string[m] y) {{ y = Concat <axis = 0> ({}) }}", formals, inputs),
          std::move(values));
  const auto joined = elements<std::string>(y[0]);
  ASSERT_EQ(joined.size(), 23u);
  EXPECT_EQ(joined[0], "a");
  EXPECT_EQ(joined[21], std::string(40, 'l'));
}

TEST(Split, LeavesOutAbsentOutputs) {
  const auto y = run("g (float[5] x, int64[3] s) => (float[n] c) { , , c = Split (x, s) }",
                     {counting({5}), row({1, 2, 2})});
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{3, 4}));
}

TEST(Gather, RefusesIndicesOutOfRange) {
  constexpr auto graph = "g (float[3] x, int64[n] i) => (float[n] y) { y = Gather (x, i) }";
  EXPECT_EQ(elements<float>(run(graph, {counting({3}), row({-1, 0})})[0]),
            (std::vector<float>{2, 0}));
  EXPECT_NE(error_of([&] { run(graph, {counting({3}), row({3})}); }).find("3"), std::string::npos);
  EXPECT_NE(error_of([&] {
              run(graph, {counting({3}), row({-4})});
            }).find("-4"),
            std::string::npos);
}

TEST(Scatter, RepeatedIndicesAddUp) {
  constexpr auto graph =
      R"(g (float[4] x, int64[n] i, float[n] u) => (float[4] y) { y = ScatterElements <reduction = "add"> (x, i, u) })";
  const Value x = Tensor::of<float>({0, 0, 0, 0}, {4});
  const auto y = run(graph, {x, row({1, -3, 3}), Tensor::of<float>({1, 2, 5}, {3})});
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{0, 3, 0, 5}));
  EXPECT_EQ(elements<float>(x), (std::vector<float>{0, 0, 0, 0}));  // the input stays as it was
}

TEST(Pad, CropsAndFillsStrings) {
  constexpr auto graph =
      R"(g (string[3] x, int64[2] p, string v) => (string[n] y) { y = Pad (x, p, v) })";
  const Value x = Tensor::of<std::string>({"a", "b", "c"}, {3});
  EXPECT_EQ(
      elements<std::string>(run(graph, {x, row({-1, 2}), Tensor::scalar<std::string>("*")})[0]),
      (std::vector<std::string>{"b", "c", "*", "*"}));
  EXPECT_NE(error_of([&] {
              run(graph, {x, row({-2, -2}), Tensor::scalar<std::string>("*")});
            }).find("dimension 0"),
            std::string::npos);
}

TEST(Unique, TreatsAllNaNAlike) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y =
      run("g (float[n] x) => (float[m] y, int64[m] i, int64[n] v, int64[m] c) { y, i, v, c = "
          "Unique (x) }",
          {Tensor::of<float>({nan, 2, nan, 1, 2}, {5})});
  ASSERT_EQ(y[0].tensor().size(), 3);
  EXPECT_EQ(elements<float>(y[0])[0], 1);
  EXPECT_EQ(elements<int64_t>(y[1]), (std::vector<int64_t>{3, 1, 0}));
  EXPECT_EQ(elements<int64_t>(y[2]), (std::vector<int64_t>{2, 1, 2, 0, 1}));
  EXPECT_EQ(elements<int64_t>(y[3]), (std::vector<int64_t>{1, 2, 2}));
}

template <class T>
void expect_groups(const char* type, const std::vector<T>& x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<T> firsts, values;
  for (const T v : x) {
    if (std::find(firsts.begin(), firsts.end(), v) == firsts.end()) firsts.push_back(v);
  }
  values = firsts;
  std::sort(values.begin(), values.end());
  for (const bool sorted : {false, true}) {
    const auto y =
        run(fmt::format("g ({}[n] x) => ({}[m] y, int64[m] i, int64[n] v, int64[m] c) {{ "
                        "y, i, v, c = Unique <sorted = {}> (x) }}",
                        type, type, sorted ? 1 : 0),
            {Tensor::of<T>(x, {n})});
    const auto found = elements<T>(y[0]);
    EXPECT_EQ(found, sorted ? values : firsts);
    const auto place = elements<int64_t>(y[1]), group = elements<int64_t>(y[2]),
               count = elements<int64_t>(y[3]);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(found[static_cast<size_t>(group[i])], x[i]);
    for (size_t k = 0; k < found.size(); ++k) {
      const auto at = std::find(x.begin(), x.end(), found[k]) - x.begin();
      ASSERT_EQ(place[k], at);
      ASSERT_EQ(count[k], std::count(x.begin(), x.end(), found[k]));
    }
  }
}

TEST(Unique, ManyAndFewValues) {
  for (const int64_t modulus : {3, 700, 100000}) {
    std::vector<int64_t> x;
    std::vector<float> f;
    std::vector<uint8_t> u;
    for (int64_t i = 0; i < 3000; ++i) {
      x.push_back(i * i * 7919 % modulus - modulus / 2);
      f.push_back(static_cast<float>(x.back()) * (i % 2 == 0 ? 0.5f : -0.5f));
      u.push_back(static_cast<uint8_t>(x.back()));
    }
    expect_groups("int64", x);
    expect_groups("float", f);
    expect_groups("uint8", u);
  }
  // All of these have one hash.
  uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9e3779b97f4a7c15u * inverse;
  std::vector<int64_t> same;
  for (uint64_t i = 0; i < 2000; ++i) same.push_back(static_cast<int64_t>(i % 1500 * inverse));
  expect_groups("int64", same);
}

TEST(Unique, EmptyInput) {
  const auto y =
      run("g (float[n] x) => (float[m] y, int64[m] i, int64[n] v, int64[m] c) { y, i, v, c = "
          "Unique <sorted = 0> (x) }",
          {counting({0})});
  EXPECT_EQ(y[0].tensor().shape(), Shape{0});
  EXPECT_EQ(y[3].tensor().shape(), Shape{0});
}

TEST(Constant, SparseValueIsSpread) {
  ir::Node node;
  node.op_type = "Constant";
  node.outputs = {"y"};
  auto sparse = std::make_shared<ir::SparseTensorProto>();
  sparse->values = ops::tensor_proto(Tensor::of<float>({5, 7}, {2}));
  sparse->indices = ops::tensor_proto(Tensor::of<int64_t>({0, 1, 1, 2}, {2, 2}));
  sparse->dims = {2, 3};
  ir::Attribute& attribute = node.attributes.emplace_back();
  attribute.name = "sparse_value";
  attribute.kind = ir::AttributeKind::sparse_tensor;
  attribute.sparse_tensor = sparse;
  EXPECT_EQ(elements<float>(run(Upgraded{{node}}, {}, "y")),
            (std::vector<float>{0, 5, 0, 0, 0, 7}));
  sparse->indices = ops::tensor_proto(Tensor::of<int64_t>({0, 1, 2, 2}, {2, 2}));
  EXPECT_NE(error_of([&] { run(Upgraded{{node}}, {}, "y"); }).find("index 2"), std::string::npos);
}

TEST(CenterCropPad, OddRestsAndEmptyResults) {
  constexpr auto graph = "g (float[n] x, int64[1] s) => (float[m] y) { y = CenterCropPad (x, s) }";
  EXPECT_EQ(elements<float>(run(graph, {counting({5}), row({2})})[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(run(graph, {counting({2}), row({5})})[0]),
            (std::vector<float>{0, 0, 1, 0, 0}));
  EXPECT_EQ(run(graph, {counting({2}), row({0})})[0].tensor().size(), 0);
  EXPECT_EQ(elements<float>(run(graph, {counting({0}), row({2})})[0]), (std::vector<float>{0, 0}));
}

TEST(Resize, SizesOfARunAndEmptyScales) {
  constexpr auto graph =
      "g (float[n] x, float[0] roi, float[0] scales, int64[1] sizes) => (float[m] y) { y = Resize "
      "(x, roi, scales, sizes) }";
  const auto y = run(graph, {counting({2}), Tensor(ElementType::float32, {0}),
                             Tensor(ElementType::float32, {0}), row({4})});
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{0, 0, 1, 1}));
}

TEST(Cast, TextOfNumbersReadsBack) {
  const auto y =
      run("g (float[n] x) => (string[n] y) { y = Cast <to = 8> (x) }",
          {Tensor::of<float>(
              {0.1f, 3, -1e-7f, 1e20f, std::numeric_limits<float>::infinity(), 1234567}, {6})});
  EXPECT_EQ(elements<std::string>(y[0]),
            (std::vector<std::string>{"0.1", "3.0", "-1e-07", "1e+20", "inf", "1234567.0"}));
  constexpr auto back = "g (string[n] x) => (int64[n] y) { y = Cast <to = 7> (x) }";
  EXPECT_EQ(
      elements<int64_t>(run(
          back, {Tensor::of<std::string>({"-7", " 2.9", "1e3", "9223372036854775807"}, {4})})[0]),
      (std::vector<int64_t>{-7, 2, 1000, INT64_MAX}));
  EXPECT_NE(error_of([&] { run(back, {Tensor::of<std::string>({"seven"}, {1})}); }).find("'seven'"),
            std::string::npos);
}

TEST(Sequences, InsertEraseAndStack) {
  const auto y = run(R"(g (float[2] a, float[2] b) => (float[n, m] y, int64 count) {
    one = SequenceConstruct (a)
    first = Constant <value_int = 0> ()
    two = SequenceInsert (one, b, first)
    three = SequenceInsert (two, a)
    less = SequenceErase (three)
    count = SequenceLength (less)
    y = ConcatFromSequence <axis = -1, new_axis = 1> (less)
  })",
                     {counting({2}), Tensor::of<float>({5, 6}, {2})});
  EXPECT_EQ(y[0].tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{5, 0, 6, 1}));
  EXPECT_EQ(elements<int64_t>(y[1]), (std::vector<int64_t>{2}));
}

TEST(Sequences, PositionsAreChecked) {
  const auto message = error_of([] {
    run(R"(g (float[2] a, int64 p) => (float[n] y) {
      s = SequenceConstruct (a)
      y = SequenceAt (s, p)
    })",
        {counting({2}), Tensor::scalar<int64_t>(1)});
  });
  EXPECT_NE(message.find("position must be in [-1, 0]"), std::string::npos) << message;
}

TEST(Random, SameNumbersWhateverTheThreads) {
  constexpr auto graph = R"(g () => (float[a] y, float16[b] z) {
    y = RandomNormal <shape = [40000], seed = 3.0> ()
    z = RandomUniform <shape = [1001], dtype = 10, low = 2.0, high = 3.0> ()
  })";
  const auto one = run(graph, {}, 1, 7), four = run(graph, {}, 4, 7), other = run(graph, {}, 1, 8);
  EXPECT_EQ(elements<float>(one[0]), elements<float>(four[0]));
  EXPECT_EQ(
      std::memcmp(one[1].tensor().data(), four[1].tensor().data(), one[1].tensor().byte_size()), 0);
  EXPECT_EQ(elements<float>(one[0]), elements<float>(other[0]));  // its own seed decides
  EXPECT_NE(
      std::memcmp(one[1].tensor().data(), other[1].tensor().data(), one[1].tensor().byte_size()),
      0);
}

TEST(Random, MomentsAreThoseAskedFor) {
  const auto y = run(R"(g () => (float[a] n, double[b] u, int32[c] m) {
    n = RandomNormal <shape = [100000], seed = 1.0, mean = 2.0, scale = 3.0> ()
    u = RandomUniform <shape = [100000], seed = 1.0, dtype = 11> ()
    logits = Constant <value = float[1, 3] {0.0, 1.0986123, -1000.0}> ()
    m = Multinomial <sample_size = 100000, seed = 5.0> (logits)
  })",
                     {});
  double sum = 0, squares = 0, uniform = 0, ones = 0;
  for (const float v : elements<float>(y[0])) sum += v, squares += static_cast<double>(v) * v;
  for (const double v : elements<double>(y[1])) uniform += v;
  for (const int32_t v : elements<int32_t>(y[2])) {
    ASSERT_LT(v, 2);
    ones += v;
  }
  EXPECT_NEAR(sum / 1e5, 2, 0.05);
  EXPECT_NEAR(squares / 1e5 - 4, 9, 0.2);
  EXPECT_NEAR(uniform / 1e5, 0.5, 0.01);
  EXPECT_NEAR(ones / 1e5, 0.75, 0.01);
}

TEST(Strings, UnicodeCaseAndRegularExpressions) {
  const auto y = run(R"(g (string[n] x) => (string[m] y, bool[n] z) {
    y = StringNormalizer <case_change_action = "UPPER", stopwords = ["ÄRGER"], is_case_sensitive = 0> (x)
    z = RegexFullMatch <pattern = "[a-zä]+"> (x)
  })",
                     {Tensor::of<std::string>({"ärger", "žluť", "straße", "ωμέγα", "мир"}, {5})});
  EXPECT_EQ(elements<std::string>(y[0]),
            (std::vector<std::string>{"ŽLUŤ", "STRASSE", "ΩΜΈΓΑ", "МИР"}));
  EXPECT_EQ(static_cast<const uint8_t*>(y[1].tensor().data())[0], 1);
  EXPECT_NE(error_of([] {
              run(R"(g (string[n] x) => (bool[n] z) { z = RegexFullMatch <pattern = "("> (x) })",
                  {Tensor::of<std::string>({"a"}, {1})});
            }).find("RE2"),
            std::string::npos);
}

}  // namespace
}  // namespace sardonyx::ops_test
