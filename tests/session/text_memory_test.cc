// The texts of strings against a run's memory limit.
#include <gtest/gtest.h>

#include <string>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

constexpr int64_t limit = int64_t{8} << 20;
constexpr int64_t long_text = 10'000;

// The error of a run whose texts alone would pass the limit, or none.
std::string error_of(const std::string& graph, int64_t repeats, bool plain) {
  SessionOptions options;
  options.threads = 1;
  options.reference = plain;
  const Session session(Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph),
                        options);
  RunOptions run;
  run.memory_limit = limit;
  const Tensor text = Tensor::of<std::string>({std::string(long_text, 'x')}, {1});
  try {
    session.run({{"x", text}, {"n", Tensor::of<int64_t>({repeats}, {1})}}, run);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    EXPECT_NE(error.location(), "") << error.what();
    return error.what();
  }
  return {};
}

void expect_limit(const std::string& graph) {
  for (const bool plain : {false, true}) {
    EXPECT_NE(error_of(graph, 5'000, plain), "") << graph << (plain ? " plain" : "");
    EXPECT_EQ(error_of(graph, 50, plain), "") << graph << (plain ? " plain" : "");
  }
}

TEST(TextMemory, OfRepeatedStringsCounts) {
  expect_limit("g (string[1] x, int64[1] n) => (string[N] y) { y = Expand(x, n) }");
  expect_limit("g (string[1] x, int64[1] n) => (string[N] y) { y = Tile(x, n) }");
}

TEST(TextMemory, OfChosenStringsCounts) {
  expect_limit(R"(g (string[1] x, int64[1] n) => (string[N] y) {
    zero = Constant<value = int64[1] {0}>()
    at = Expand(zero, n)
    y = Gather(x, at)
  })");
}

TEST(TextMemory, OfSequencesCounts) {
  expect_limit(R"(g (string[1] x, int64[1] n) => (string[N] y) {
    many = Tile(x, n)
    sequence = SequenceConstruct(many, many)
    y = ConcatFromSequence<axis = 0>(sequence)
  })");
}

TEST(TextMemory, OfStringsThatAreOnlyMovedIsExact) {
  // 90 long texts of the limit's 800, and many short ones, each of which might be a long one.
  EXPECT_EQ(error_of(R"(g (string[1] x, int64[1] n) => (string[N] y) {
    short = Constant<value_string = "a">()
    thousands = Constant<value = int64[1] {5000}>()
    shorts = Expand(short, thousands)
    many = Tile(x, n)
    y = Concat<axis = 0>(many, shorts)
  })",
                     90, false),
            "");
}

}  // namespace
}  // namespace sardonyx
