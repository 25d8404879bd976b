// The functions behind the command line.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>

#include "sardonyx/compare.h"
#include "sardonyx/elements.h"
#include "sardonyx/inputs.h"
#include "sardonyx/outputs.h"
#include "sardonyx/ranking.h"
#include "sardonyx/text.h"
#include "scratch_folder.h"
#include "tools/numbers.h"

namespace sardonyx {
namespace {

constexpr float nan = NAN, infinity = INFINITY;

ValueDescription float_input(std::string name, std::vector<ValueDescription::Dimension> shape) {
  ValueDescription description;
  description.name = std::move(name);
  description.element_type = ElementType::float32;
  description.shape = std::move(shape);
  return description;
}

TEST(Compare, ElementsWithinToleranceAgree) {
  const Value expected = Tensor::of<float>({1, -2, 3}, {3});
  EXPECT_TRUE(compare(Tensor::of<float>({1.0005f, -2, 3}, {3}), expected).agree);
  const Difference wrong = compare(Tensor::of<float>({1, -2.5f, 3.2f}, {3}), expected);
  EXPECT_FALSE(wrong.agree);
  EXPECT_EQ(wrong.differing, 2);
  EXPECT_NEAR(wrong.largest, 0.5, 1e-6);
  EXPECT_NE(wrong.reason.find("element 1"), std::string::npos) << wrong.reason;
  Tolerance wide;
  wide.absolute = 1;
  EXPECT_TRUE(compare(Tensor::of<float>({1, -2.5f, 3.2f}, {3}), expected, wide).agree);
}

TEST(Compare, NumbersWhoseSquaresAreInfiniteDiffer) {
  const Value expected = Tensor::of<double>({1e200, 1}, {2});
  EXPECT_TRUE(compare(expected, expected).agree);
  const Difference found = compare(Tensor::of<double>({2e200, 1}, {2}), expected);
  EXPECT_EQ(found.differing, 1);
  EXPECT_NEAR(found.share_of_rms, std::sqrt(2), 1e-9);
}

TEST(Compare, NanAndInfinityAgreeWithThemselvesOnly) {
  const Value odd = Tensor::of<float>({nan, infinity, -infinity}, {3});
  EXPECT_TRUE(compare(odd, odd).agree);
  EXPECT_EQ(compare(Tensor::of<float>({0, -infinity, -infinity}, {3}), odd).differing, 2);
}

TEST(Compare, IntegersAreEqualOrNot) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const Value expected = Tensor::of<int64_t>({large}, {1});
  EXPECT_TRUE(compare(expected, expected).agree);
  EXPECT_FALSE(compare(Tensor::of<int64_t>({large - 1}, {1}), expected).agree);
  const Difference both = compare(Tensor::of<int64_t>({large - 1, 7, large - 2}, {3}),
                                  Tensor::of<int64_t>({large, 8, large}, {3}));
  EXPECT_EQ(both.differing, 3);
  EXPECT_EQ(both.largest, 2);
  EXPECT_NE(both.reason.find("element 2 is 9007199254740991, expected 9007199254740993"),
            std::string::npos)
      << both.reason;
  EXPECT_EQ(
      compare(Tensor::of<uint64_t>({UINT64_MAX}, {1}), Tensor::of<uint64_t>({0}, {1})).largest,
      0x1p64);
  EXPECT_FALSE(compare(Tensor::of<int32_t>({1}, {1}), Tensor::of<int64_t>({1}, {1})).agree);
  EXPECT_FALSE(compare(Tensor::of<int32_t>({1}, {1}), Tensor::of<int32_t>({1}, {})).agree);
}

TEST(Compare, ReasonsShowWhatDiffers) {
  const Difference whole =
      compare(Tensor::of<int32_t>({2147483646}, {1}), Tensor::of<int32_t>({2147483647}, {1}));
  EXPECT_NE(whole.reason.find("is 2147483646, expected 2147483647"), std::string::npos)
      << whole.reason;
  Tolerance none;
  none.relative = none.absolute = 0;
  const Difference close =
      compare(Tensor::of<double>({1 + 1e-12}, {1}), Tensor::of<double>({1}, {1}), none);
  EXPECT_NE(close.reason.find("is 1.0000000000010001, expected 1"), std::string::npos)
      << close.reason;
}

TEST(Compare, AComplexElementIsOne) {
  const Value expected = Tensor::of<std::complex<float>>({{1, 2}, {3, 4}}, {2});
  const Difference found =
      compare(Tensor::of<std::complex<float>>({{1, 2}, {5, 9}}, {2}), expected);
  EXPECT_EQ(found.differing, 1);
  EXPECT_NE(
      found.reason.find("1 of 2 elements differ; element 1's imaginary part is 9, expected 4"),
      std::string::npos)
      << found.reason;
}

TEST(Compare, StringsAndSequences) {
  const Value strings = Tensor::of<std::string>({"a", "b"}, {2});
  EXPECT_FALSE(compare(Tensor::of<std::string>({"a", "c"}, {2}), strings).agree);
  const Value sequence = Sequence{{strings, Tensor::of<float>({1}, {1})}};
  EXPECT_TRUE(compare(sequence, sequence).agree);
  const Difference shorter = compare(Sequence{{strings}}, sequence);
  EXPECT_FALSE(shorter.agree);
  EXPECT_NE(shorter.reason.find("1 items, expected 2"), std::string::npos) << shorter.reason;
  EXPECT_FALSE(compare(strings, sequence).agree);
}

TEST(Compare, MapsHaveNoOrder) {
  const auto map = [](std::vector<int64_t> keys, std::vector<float> values) {
    Map made{Tensor::of<int64_t>(keys, {static_cast<int64_t>(keys.size())}), {}};
    for (const float value : values) made.values.emplace_back(Tensor::scalar<float>(value));
    return Value(std::move(made));
  };
  EXPECT_TRUE(compare(map({2, 1}, {0.25f, 0.75f}), map({1, 2}, {0.75f, 0.25f})).agree);
  EXPECT_FALSE(compare(map({2, 1}, {0.25f, 0.75f}), map({1, 2}, {0.25f, 0.75f})).agree);
  EXPECT_FALSE(compare(map({1, 2}, {0.25f, 0.75f}), map({1, 3}, {0.25f, 0.75f})).agree);
  EXPECT_FALSE(compare(map({1}, {0.25f}), map({1, 2}, {0.25f, 0.75f})).agree);
  EXPECT_TRUE(compare(map({}, {}), map({}, {})).agree);
}

TEST(Compare, SparseTensorsHaveAShape) {
  const SparseTensor sparse{Tensor::of<float>({1}, {1}), Tensor::of<int64_t>({2}, {1}), {3}};
  SparseTensor longer = sparse;
  longer.shape = {4};
  EXPECT_TRUE(compare(sparse, sparse).agree);
  const Difference found = compare(longer, sparse);
  EXPECT_FALSE(found.agree);
  EXPECT_NE(found.reason.find("[4]"), std::string::npos) << found.reason;
}

TEST(Compare, LooksAtEveryElementOfALargeTensor) {
  Tensor ours(ElementType::float32, {10001}), theirs(ElementType::float32, {10001});
  for (auto* tensor : {&ours, &theirs}) {
    for (float& element : tensor->mutable_elements<float>()) element = 1;
  }
  EXPECT_TRUE(compare(ours, theirs).agree);
  ours.mutable_elements<float>()[10000] = 2;
  EXPECT_EQ(compare(ours, theirs).differing, 1);
}

TEST(Print, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\033[31mb\n"), "a\\x1b[31mb\\x0a");
  EXPECT_EQ(printable("gr\u00fc\u00df \u6f22"), "gr\u00fc\u00df \u6f22");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\u202e"), "\\xe2\\x80\\xae");  // turns the direction of writing round
  EXPECT_EQ(printable("\u009b"), "\\xc2\\x9b");       // a control sequence in one character
}

TEST(Print, ShowsTheFirstElements) {
  EXPECT_EQ(preview(Tensor::of<float>({1, 2.5f, nan}, {3}), 8), "1, 2.5, NaN");
  EXPECT_EQ(preview(Tensor::of<int64_t>({1, 2, 3}, {3}), 2), "1, 2, …");
  EXPECT_EQ(preview(Tensor::of<std::string>({"a\n"}, {1}), 2), "\"a\\x0a\"");
  EXPECT_EQ(preview(Sequence{{Tensor::scalar<float>(1), Tensor::scalar<float>(2)}}, 1), "[1], …");
  EXPECT_EQ(preview(Value(), 2), "none");
}

TEST(Print, NestsValuesNoDeeperThanItReads) {
  Value value = Tensor::scalar<float>(1);
  for (int i = 0; i < 1000; ++i) value = Sequence{{value}};
  EXPECT_LT(preview(value, 1).size(), 1000u);
  EXPECT_NE(to_json(value), "null");
}

TEST(Rank, ProbabilitiesAndScores) {
  const Ranking given = rank_answers(Tensor::of<float>({0.1f, 0.7f, 0.2f}, {1, 3}), 2);
  EXPECT_TRUE(given.given);
  ASSERT_EQ(given.rows.size(), 1u);
  EXPECT_EQ(given.rows[0][0].index, 1);
  EXPECT_EQ(given.rows[0][1].index, 2);
  const Ranking scores = rank_answers(Tensor::of<float>({3, 1, nan, 5, 5, 5}, {2, 3}), 5);
  EXPECT_FALSE(scores.given);
  EXPECT_EQ(scores.rows[0][0].index, 0);
  EXPECT_NEAR(scores.rows[1][2].probability, 1.0 / 3, 1e-9);
  EXPECT_THROW(rank_answers(Tensor(ElementType::float32, {2, 0}), 1), Error);
}

TEST(Input, ShapesAndSizes) {
  const auto wanted = float_input("x", {{{}, "batch"}, {3, ""}, {{}, ""}});
  DimSizes sizes;
  EXPECT_EQ(shape_for(wanted, sizes), (Shape{1, 3, 1}));
  learn_sizes(wanted, Tensor(ElementType::float32, {4, 3, 2}), sizes);
  EXPECT_EQ(shape_for(wanted, sizes), (Shape{4, 3, 1}));
  ValueDescription open = wanted;
  open.shape.reset();
  EXPECT_THROW(shape_for(open, sizes), Error);
}

TEST(Input, RandomValuesDependOnSeedAndName) {
  const auto x = float_input("x", {}), y = float_input("y", {});
  const auto numbers = [](const Value& value) {
    const auto span = value.tensor().elements<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  const auto first = numbers(random_value(x, {100}, 0));
  EXPECT_EQ(first, numbers(random_value(x, {100}, 0)));
  EXPECT_NE(first, numbers(random_value(x, {100}, 1)));
  EXPECT_NE(first, numbers(random_value(y, {100}, 0)));
  for (const float number : first) EXPECT_LE(std::abs(number), 1);
  for (const float number : numbers(random_value(x, {100}, 0, RandomRange{5, 6}))) {
    EXPECT_GE(number, 5);
    EXPECT_LE(number, 6);
  }
}

TEST(Input, RandomNumbersFitTheirType) {
  const auto fits = [](ElementType type, double low, double high) {
    auto wanted = float_input("x", {});
    wanted.element_type = type;
    try {
      const Tensor made = random_value(wanted, {200}, 0, RandomRange{low, high}).tensor();
      double values[200];
      read_numbers(made, 0, values);
      for (const double value : values) EXPECT_TRUE(low <= value && value <= high) << value;
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return false;
    }
  };
  EXPECT_TRUE(fits(ElementType::uint8, 0, 256));
  EXPECT_FALSE(fits(ElementType::uint8, 0, 257));
  EXPECT_FALSE(fits(ElementType::uint8, -1, 5));
  EXPECT_TRUE(fits(ElementType::int4, -8, 8));
  EXPECT_FALSE(fits(ElementType::int4, -8, 9));
  EXPECT_FALSE(fits(ElementType::boolean, 0, 3));
  EXPECT_FALSE(fits(ElementType::int64, 0, 1e300));
  EXPECT_TRUE(fits(ElementType::float16, -65000, 65000));
  EXPECT_FALSE(fits(ElementType::float16, 0, 1e300));
  EXPECT_FALSE(fits(ElementType::float8e4m3fn, 0, 1000));
}

TEST(Input, OnesOfEveryNumberType) {
  for (int32_t number = 1; number < element_type_count; ++number) {
    auto wanted = float_input("x", {});
    wanted.element_type = static_cast<ElementType>(number);
    if (wanted.element_type == ElementType::complex64 ||
        wanted.element_type == ElementType::complex128)
      continue;
    const Tensor ones = ones_value(wanted, {3}).tensor();
    EXPECT_EQ(ones.element_type(), wanted.element_type);
    if (wanted.element_type == ElementType::string) continue;
    double values[3];
    read_numbers(ones, 0, values);
    EXPECT_EQ(values[2], 1) << name_of(wanted.element_type);
  }
}

TEST(Output, LeavesNothingHalf) {
  const test::ScratchFolder scratch;
  const std::filesystem::path folder = scratch / "output";
  const std::vector<Value> values = {Tensor::of<float>({1}, {1}), Value(),
                                     Sequence{{Tensor::of<float>({1}, {1})}}};
  const auto files = write_output_folder(folder.string(), values);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_TRUE(files[0].ends_with("output_0.npy"));
  EXPECT_EQ(files[1], "");
  EXPECT_TRUE(files[2].ends_with("output_2.pb"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(write_output_folder((folder / "file").string(), values), Error);
  const std::vector<ValueDescription> descriptions(3);
  EXPECT_THROW(write_output_npz((folder / "all.npz").string(), descriptions, values), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "all.npz"));
}

}  // namespace
}  // namespace sardonyx
