// sardonyx/files.h, inputs.h, outputs.h, compare.h, compare_runs.h, ranking.h, text.h, machine.h.
#include "sardonyx/files.h"

#include <cmath>
#include <filesystem>

#include "api/support.h"
#include "sardonyx/compare.h"
#include "sardonyx/compare_runs.h"
#include "sardonyx/inputs.h"
#include "sardonyx/machine.h"
#include "sardonyx/outputs.h"
#include "sardonyx/ranking.h"
#include "sardonyx/text.h"

namespace sardonyx {
namespace {

using test::expect_error;
using test::ScratchFolder;

const Tensor numbers = Tensor::of<float>({1, 2.5f, -3, 0}, {2, 2});

TEST(Files, HoldTensors) {
  const ScratchFolder folder;
  for (const char* name : {"x.npy", "x.pb", "x.json"}) {
    write_value(folder / name, numbers);
    const Value again = read_value(folder / name, ElementType::float32);
    EXPECT_TRUE(compare(again, numbers).agree) << name;
    EXPECT_EQ(again.tensor().element_type(), ElementType::float32);
    EXPECT_EQ(again.tensor().shape(), numbers.shape());
  }
  test::write_bytes(folder / "x.txt", "1, 2, 3");
  EXPECT_EQ(read_value(folder / "x.txt", ElementType::int32).tensor().elements<int32_t>()[2], 3);
  EXPECT_EQ(read_text(folder / "x.txt"), "1, 2, 3");
  test::write_bytes(folder / "x.txt", "P1 begins a PBM image");
  EXPECT_EQ(read_value(folder / "x.txt", ElementType::string).tensor().elements<std::string>()[0],
            "P1 begins a PBM image");
  test::write_bytes(folder / "x.csv",
                    "\xef\xbb\xbf"
                    "7,8\r\n");  // as spreadsheets write it
  EXPECT_EQ(read_value(folder / "x.csv").tensor().elements<int64_t>()[0], 7);
}

TEST(Files, HoldOtherValues) {
  const ScratchFolder folder;
  Sequence items;
  items.items = {numbers, numbers};
  const Value sequence(std::move(items));
  write_value(folder / "s.pb", sequence);
  write_value(folder / "s.json", sequence);
  EXPECT_EQ(test::bytes_of(folder / "s.json"), "[[[1.0,2.5],[-3.0,0.0]],[[1.0,2.5],[-3.0,0.0]]]\n");
  expect_error(ErrorCode::bad_input, "no array", [&] { write_value(folder / "s.npy", sequence); });
}

TEST(Files, RefuseWhatIsNoValue) {
  const ScratchFolder folder;
  expect_error(ErrorCode::bad_input, "no form", [&] { write_value(folder / "x.exe", numbers); });
  expect_error(ErrorCode::bad_input, "no value", [&] { write_value(folder / "x.npy", Value()); });
  expect_error(ErrorCode::unreadable, "none.npy", [&] { read_value(folder / "none.npy"); });
  expect_error(ErrorCode::unreadable, "", [&] { write_value(folder / "no/x.npy", numbers); });
  for (const char* name : {"b.npy", "b.npz", "b.json", "b.png"}) {
    test::write_bytes(folder / name, "\x93 this is nothing");
    expect_error(ErrorCode::bad_input, name, [&] { read_value(folder / name); });
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x.npy"));
}

TEST(Files, RefuseWhatTheirFormCannotSay) {
  const ScratchFolder folder;
  const Value bytes(Tensor::of<std::string>({"a", "\xff"}, {2}));
  const Value zero(Tensor::of<std::string>({std::string("a\0", 2)}, {1}));
  Sequence inner;
  inner.items = {bytes};
  expect_error(ErrorCode::bad_input, "not UTF-8", [&] { write_value(folder / "x.json", bytes); });
  expect_error(ErrorCode::bad_input, "not UTF-8",
               [&] { write_value(folder / "x.json", Value(std::move(inner))); });
  expect_error(ErrorCode::bad_input, "zero byte", [&] { write_value(folder / "x.npy", zero); });
  expect_error(ErrorCode::bad_input, "zero byte", [&] {
    write_npz(folder / "x.npz", {{"a", zero}});
  });
  Value deep = numbers;
  for (int i = 0; i < 34; ++i) {
    Sequence outer;
    outer.items = {deep};
    deep = Value(std::move(outer));
  }
  expect_error(ErrorCode::bad_input, "32 deep", [&] { write_value(folder / "x.json", deep); });
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
  write_value(folder / "x.npy", bytes);
  EXPECT_TRUE(compare(read_value(folder / "x.npy"), bytes).agree);
  write_value(folder / "x.json", zero);
  EXPECT_TRUE(compare(read_value(folder / "x.json"), zero).agree);
}

TEST(Files, HoldManyTensors) {
  const ScratchFolder folder;
  write_npz(folder / "all.npz", {{"a", numbers}, {"b", Tensor::scalar<int64_t>(7)}});
  const auto again = read_npz(folder / "all.npz");
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].first, "a");
  EXPECT_EQ(again[1].second.tensor().elements<int64_t>()[0], 7);
  expect_error(ErrorCode::bad_input, "2 arrays", [&] { read_value(folder / "all.npz"); });
  write_npz(folder / "one.npz", {{"a", numbers}});
  EXPECT_TRUE(compare(read_value(folder / "one.npz"), numbers).agree);
  expect_error(ErrorCode::bad_input, "twice", [&] {
    write_npz(folder / "n.npz", {{"a", numbers}, {"a", numbers}});
  });
  expect_error(ErrorCode::bad_input, "no name", [&] {
    write_npz(folder / "n.npz", {{"../a", numbers}});
  });
  expect_error(ErrorCode::bad_input, "no .npz file holds", [&] {
    write_npz(folder / "n.npz", {{"a", Value()}});
  });
  expect_error(ErrorCode::unreadable, "none", [&] { read_npz(folder / "none.npz"); });
}

TEST(Inputs, AreReadAndMadeUp) {
  const ScratchFolder folder;
  const Model model = test::example();
  const Session session(model);
  const ValueDescription& x = session.inputs()[0];
  std::vector<std::string> unset;
  EXPECT_EQ(shape_for(x, {}, &unset), (Shape{1, 3}));
  EXPECT_EQ(unset, std::vector<std::string>{"batch"});
  EXPECT_EQ(shape_for(x, {{"batch", 5}}), (Shape{5, 3}));
  const Value random = random_value(x, {5, 3}, 1);
  EXPECT_TRUE(compare(random, random_value(x, {5, 3}, 1)).agree);
  EXPECT_FALSE(compare(random, random_value(x, {5, 3}, 2)).agree);
  EXPECT_EQ(ones_value(x, {1, 3}).tensor().elements<float>()[2], 1);
  DimSizes sizes;
  learn_sizes(x, random, sizes);
  EXPECT_EQ(sizes.at("batch"), 5);
  EXPECT_EQ(value_from_text("[[1, 2, 3]]", x).tensor().shape(), (Shape{1, 3}));
  expect_error(ErrorCode::bad_input, "", [&] { value_from_text("[[1, 2], [3]]", x); });
  write_value(folder / "x.npy", random);
  EXPECT_TRUE(compare(read_value_file(folder / "x.npy", model, x), random).agree);
  EXPECT_TRUE(is_value_file_name("x.npy"));
  EXPECT_FALSE(is_value_file_name("x.exe"));
  expect_error(ErrorCode::bad_input, "none", [] {
    const std::vector<std::string> names = {"batch"};
    refuse_unknown_sizes({{"none", 1}}, names);
  });
}

TEST(Outputs, AreWrittenAndComparedAgain) {
  const ScratchFolder folder;
  const std::vector<Value> outputs = {numbers};
  const auto paths = write_output_folder(folder / "run", outputs);
  ASSERT_EQ(paths.size(), 1u);
  ValueDescription description;
  description.name = "output_0";
  write_output_npz(folder / "run.npz", std::span(&description, 1), outputs);
  const auto a = read_run(folder / "run"), b = read_run(folder / "run.npz");
  EXPECT_TRUE(compare_runs(a, b).agree());
  const auto other = compare_runs(a, {{"output_0", Tensor::of<float>({1, 2.5f, -3, 1}, {2, 2})}});
  ASSERT_NE(other.first_difference(), nullptr);
  EXPECT_EQ(other.first_difference()->difference.differing, 1);
  expect_error(ErrorCode::unreadable, "none", [&] { read_run(folder / "none.npz"); });
  const std::vector<Value> pair = {numbers, Tensor::scalar<int64_t>(7)};
  std::vector<ValueDescription> names(2);
  names[0].name = "../y", names[1].name = "output_0";
  write_output_npz(folder / "pair.npz", names, pair);
  const auto again = read_npz(folder / "pair.npz");
  EXPECT_EQ(again[0].first, "output_0_");
  EXPECT_EQ(again[1].first, "output_0");
  EXPECT_EQ(read_run(folder / "pair.npz", nullptr, names)[0].first, "../y");
  write_text(folder / "report.txt", "text");
  EXPECT_EQ(read_text(folder / "report.txt"), "text");
}

TEST(Values, ArePeoplesText) {
  EXPECT_EQ(type_text(numbers), "float[2,2]");
  EXPECT_EQ(preview(numbers, 2), "1, 2.5, …");
  EXPECT_EQ(to_json(numbers), "[[1.0,2.5],[-3.0,0.0]]");
  EXPECT_EQ(to_json(Tensor::scalar(std::nanf(""))), "\"NaN\"");
  EXPECT_EQ(to_json(Value()), "null");
  EXPECT_EQ(to_json(Tensor(ElementType::float32, {2, 0, 5})), "[[],[]]");
  EXPECT_THROW(to_json(Tensor(ElementType::float32, {INT64_MAX, 0})), Error);
  EXPECT_EQ(element_count(numbers), 4);
  EXPECT_EQ(printable("a\x1b[31m\xff"), "a\\x1b[31m\\xff");
  const Ranking ranking = rank_answers(Tensor::of<float>({0.25f, 0.75f}, {1, 2}), 1);
  ASSERT_EQ(ranking.rows.size(), 1u);
  EXPECT_EQ(ranking.rows[0][0].index, 1);
  EXPECT_GE(usable_processors(), 1);
}

TEST(Values, BadArgumentsAreErrors) {
  const Tensor strings = Tensor::of<std::string>({"a"}, {1});
  expect_error(ErrorCode::bad_input, "no scores", [&] { rank_answers(strings, 1); });
  expect_error(ErrorCode::bad_input, "no scores", [&] {
    rank_answers(Tensor(ElementType::float32, {2, 0}), 1);
  });
  EXPECT_TRUE(rank_answers(numbers, 1, -1).rows.empty());
  EXPECT_TRUE(rank_answers(numbers, -1).rows[0].empty());
  expect_error(ErrorCode::bad_input, "described", [] {
    const Value value(numbers);
    write_output_npz("never.npz", {}, std::span(&value, 1));
  });
  expect_error(ErrorCode::bad_input, "threads", [] { probe_machine(0); });
  expect_error(ErrorCode::bad_input, "threads", [] { measure_limits(-1); });
  EXPECT_FALSE(summarize(strings));
  EXPECT_EQ(summarize(numbers)->most, 2.5);
}

TEST(Values, AreOrderedAsTheyAreMade) {
  const Model model = test::example();
  ValueDescription y, sum;
  y.name = "y", sum.name = "sum";
  EXPECT_EQ(making_order(model, {y, sum}), (std::vector<size_t>{1, 0}));
}

}  // namespace
}  // namespace sardonyx
