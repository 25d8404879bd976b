// Inputs and outputs bound once for many runs.
#include "sardonyx/binding.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>

namespace sardonyx {
namespace {

Model model_of(const std::string& graph) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph);
}

Model two_outputs() {
  return model_of(R"(g (float[n] x, float[n] h) => (float[n] y, float[n] z) {
    y = Add(x, h) z = Mul(x, h) })");
}

Tensor row(std::initializer_list<float> numbers) {
  return Tensor::of<float>(numbers, {static_cast<int64_t>(numbers.size())});
}

std::vector<float> numbers(const Value& value) {
  const auto elements = value.tensor().elements<float>();
  return {elements.begin(), elements.end()};
}

using Floats = std::vector<float>;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "nothing was thrown";
}

class BindingOf : public testing::TestWithParam<bool> {
 protected:
  Session session{two_outputs(), {.threads = 1, .reference = GetParam()}};
};

TEST_P(BindingOf, MemoryIsReadAndWrittenInEachRun) {
  std::array<float, 2> x{1, 2}, y{}, h{10, 20};
  Binding binding(session);
  binding.bind_input("x", TensorRef::of<float>(x, {2}));
  binding.bind_input("h", TensorRef::of<float>(h, {2}));
  binding.bind_output("y", MutableTensorRef::of<float>(y, {2}));
  EXPECT_EQ(binding.output("y").kind(), Value::Kind::none);
  binding.run();
  EXPECT_EQ(y[1], 22);
  EXPECT_EQ(numbers(binding.output("z")), (Floats{10, 40}));
  x = {3, 4};
  binding.run();
  EXPECT_EQ(y[0], 13);
  EXPECT_EQ(binding.outputs()[0].tensor().data(), y.data());
  EXPECT_EQ(numbers(binding.outputs()[1]), (Floats{30, 80}));
}

TEST_P(BindingOf, AnOutputThatSomebodyHoldsStays) {
  Binding binding(session);
  binding.bind_input("x", row({1, 2}));
  binding.bind_input("h", row({1, 1}));
  binding.run();
  const Value kept = binding.output("y");
  const void* const first = kept.tensor().data();
  binding.bind_input("x", row({5, 6}));
  binding.run();
  EXPECT_EQ(numbers(kept), (Floats{2, 3}));
  EXPECT_EQ(numbers(binding.output("y")), (Floats{6, 7}));
  EXPECT_NE(binding.output("y").tensor().data(), first);
}

TEST_P(BindingOf, StateIsCarriedFromRunToRun) {
  Binding binding(session);
  binding.bind_input("x", row({1, 2}));
  binding.bind_input("h", row({0, 0}));
  for (int i = 0; i < 5; ++i) {
    binding.run();
    binding.bind_input("h", binding.output("y"));
  }
  EXPECT_EQ(numbers(binding.output("y")), (Floats{5, 10}));
}

TEST_P(BindingOf, OtherSizesMakeOtherOutputs) {
  Binding binding(session);
  for (const int64_t n : {2, 3, 2, 0, 4}) {
    Tensor x(ElementType::float32, {n});
    std::ranges::fill(x.mutable_elements<float>(), 2.0f);
    binding.bind_input("x", x);
    binding.bind_input("h", x);
    binding.run();
    EXPECT_EQ(binding.output("y").tensor().shape(), Shape{n});
    EXPECT_EQ(numbers(binding.output("y")), Floats(static_cast<size_t>(n), 4));
  }
}

TEST_P(BindingOf, MemoryOfAnotherShapeOrTypeIsRefused) {
  std::array<float, 3> y{7, 7, 7};
  std::array<int32_t, 2> whole{};
  Binding binding(session);
  binding.bind_input("x", row({1, 2}));
  binding.bind_input("h", row({1, 1}));
  binding.bind_output("y", MutableTensorRef::of<float>(y, {3}));
  EXPECT_EQ(refusal([&] { binding.run(); }),
            "output 'y': is float[2], and is bound to memory for float[3]");
  EXPECT_EQ(binding.output("z").kind(), Value::Kind::none);
  EXPECT_EQ(y[0], 7);
  binding.bind_output("y", MutableTensorRef::of<float>(std::span(y).first(2), {1, 2}));
  EXPECT_EQ(refusal([&] { binding.run(); }),
            "output 'y': is float[2], and is bound to memory for float[1,2]");
  binding.bind_output("y", MutableTensorRef::of<int32_t>(whole, {2}));
  EXPECT_EQ(refusal([&] { binding.run(); }),
            "output 'y': is float[2], and is bound to memory for int32[2]");
  binding.bind_output("y");
  binding.run();
  EXPECT_EQ(numbers(binding.output("y")), (Floats{2, 3}));
}

TEST_P(BindingOf, AfterAnErrorRunsGoOn) {
  std::array<float, 2> y{};
  Binding binding(session);
  binding.bind_input("x", row({1, 2}));
  binding.bind_output("y", MutableTensorRef::of<float>(y, {2}));
  EXPECT_NE(refusal([&] { binding.run(); }).find("input 'h'"), std::string::npos);
  binding.bind_input("h", row({1, 1, 1}));
  EXPECT_THROW(binding.run(), Error);
  binding.bind_input("h", row({1, 1}));
  binding.run();
  EXPECT_EQ(y[1], 3);
  binding.unbind_input("h");
  EXPECT_THROW(binding.run(), Error);
}

INSTANTIATE_TEST_SUITE_P(PlannedAndPlain, BindingOf, testing::Bool(),
                         [](const auto& info) { return info.param ? "plain" : "planned"; });

TEST(Binding, RefusesWhatItCannotBind) {
  const Session session(two_outputs(), {.threads = 1});
  Binding binding(session);
  alignas(8) std::array<std::byte, 64> memory{};
  std::array<float, 8> floats{};
  EXPECT_EQ(refusal([&] { binding.bind_input("xx", row({1})); }),
            "input 'xx': the model has no input of this name; did you mean 'x'?");
  EXPECT_NE(refusal([&] { binding.bind_output("a_name"); }).find("no output of this name"),
            std::string::npos);
  EXPECT_THROW(binding.output("w"), Error);
  EXPECT_NE(refusal([&] {
              binding.bind_output("y", {{ElementType::float32, {2}, floats.data(), 16, {2}}});
            }).find("strides [2]"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              binding.bind_output("y", {{ElementType::float32, {2}, memory.data() + 1, 16}});
            }).find("no multiple of 4"),
            std::string::npos);
  EXPECT_THROW(binding.bind_output("y", {{ElementType::float32, {2}, floats.data(), 7}}), Error);
  EXPECT_THROW(binding.bind_output("y", {{ElementType::string, {2}, floats.data(), 16}}), Error);
  EXPECT_THROW(binding.bind_output("y", {{ElementType::float32, {2}, nullptr, 16}}), Error);
}

// What the caller sees is as if outputs were written when the run is over.
TEST(Binding, OutputsMayLieWhereInputsDo) {
  for (const bool plain : {false, true}) {
    const Session session(model_of(R"(g (float[3] x) => (float[2] y, float[3] z, float[3] w) {
      one = Constant<value_ints = [1]>() three = Constant<value_ints = [3]>()
      y = Slice(x, one, three) z = Add(x, x) w = Identity(x) })"),
                          {.threads = 1, .reference = plain});
    Binding binding(session);
    std::array<float, 3> shared{1, 2, 3};
    const std::span<float> all(shared);
    binding.bind_input("x", TensorRef::of<float>(all, {3}));
    binding.bind_output("y", MutableTensorRef::of<float>(all.first(2), {2}));
    binding.run();
    EXPECT_EQ(shared, (std::array<float, 3>{2, 3, 3}));
    EXPECT_EQ(numbers(binding.output("z")), (Floats{2, 4, 6}));
    EXPECT_EQ(numbers(binding.output("w")), (Floats{1, 2, 3}));
    binding.run();
    EXPECT_EQ(shared, (std::array<float, 3>{3, 3, 3}));
    std::array<float, 3> apart{5, 6, 7};
    binding.bind_input("x", TensorRef::of<float>(std::span<float>(apart), {3}));
    binding.run();
    EXPECT_EQ(shared, (std::array<float, 3>{6, 7, 3}));
    binding.bind_output("z", MutableTensorRef::of<float>(std::span<float>(apart), {3}));
    binding.bind_output("y", MutableTensorRef::of<float>(std::span<float>(apart).first(2), {2}));
    EXPECT_EQ(refusal([&] { binding.run(); }), "output 'z': is bound to memory of output 'y'");
  }
}

// The same of an input that holds tensors, one of which lies there, and of outputs that hand it on.
TEST(Binding, OutputsMayLieWhereItemsOfInputsDo) {
  for (const bool plain : {false, true}) {
    const Session session(model_of(R"(g (seq(float[2]) x) => (float[2] y, float[2] z,
                                        seq(float[2]) w) {
      first = Constant<value_int = 0>() second = Constant<value_int = 1>()
      a = SequenceAt(x, first) b = SequenceAt(x, second)
      y = Add(a, b) z = Sub(a, b) w = Identity(x) })"),
                          {.threads = 1, .reference = plain});
    const auto shared = std::make_shared<std::array<float, 2>>(std::array<float, 2>{1, 2});
    Binding binding(session);
    const Tensor item = Tensor::view(ElementType::float32, {2}, shared->data(), 8, shared);
    binding.bind_input("x", Value(Sequence{{item, row({10, 20})}}));
    binding.bind_output("y", MutableTensorRef::of<float>(std::span<float>(*shared), {2}));
    binding.run();
    EXPECT_EQ(*shared, (std::array<float, 2>{11, 22}));
    EXPECT_EQ(numbers(binding.output("z")), (Floats{-9, -18}));
    EXPECT_EQ(numbers(binding.output("w").sequence().items[0]), (Floats{1, 2}));
  }
}

TEST(Binding, RefusesMemoryThatIsBoundTwice) {
  const Session session(two_outputs(), {.threads = 1});
  Binding binding(session);
  std::array<float, 4> shared{1, 2, 3, 4};
  const std::span<float> all(shared);
  binding.bind_input("x", TensorRef::of<float>(all.first(2), {2}));
  binding.bind_input("h", row({1, 1}));
  binding.bind_output("y", MutableTensorRef::of<float>(all.subspan(2), {2}));
  binding.run();
  binding.bind_output("z", MutableTensorRef::of<float>(all.subspan(3), {1}));
  EXPECT_EQ(refusal([&] { binding.run(); }), "output 'z': is bound to memory of output 'y'");
}

TEST(Binding, StridedInputsAreCopiedWhenBound) {
  const Session session(two_outputs(), {.threads = 1});
  Binding binding(session);
  std::array<float, 4> pairs{1, -1, 2, -2};
  binding.bind_input("x", TensorRef{{ElementType::float32, {2}, pairs.data(), 16, {2}}});
  binding.bind_input("h", row({1, 1}));
  binding.run();
  EXPECT_EQ(numbers(binding.output("y")), (Floats{2, 3}));
}

// What a run hands on is not its own: neither constants nor inputs may be written to afterwards.
TEST(Binding, OutputsThatAreConstantsOrInputsAreNotWrittenTo) {
  for (const bool plain : {false, true}) {
    const Session session(
        model_of(R"(g (float[2] x, bool c) => (float[2] y, float[2] w) <float[2] w = {5, 6}> {
          y = If(c) <then_branch = t () => (a) { a = Identity(x) },
                     else_branch = e () => (b) { b = Add(x, w) }> })"),
        {.threads = 1, .reference = plain});
    Binding binding(session);
    auto given = std::make_shared<std::array<float, 2>>(std::array<float, 2>{1, 2});
    binding.bind_input("x", Tensor::view(ElementType::float32, {2}, given->data(), 8, given));
    binding.bind_input("c", Tensor::scalar(true));
    binding.run();
    EXPECT_EQ(numbers(binding.output("y")), (Floats{1, 2}));
    binding.bind_input("x", row({10, 20}));
    binding.bind_input("c", Tensor::scalar(false));
    binding.run();
    EXPECT_EQ(numbers(binding.output("y")), (Floats{15, 26}));
    EXPECT_EQ((*given)[0], 1);
    EXPECT_EQ((*given)[1], 2);
    EXPECT_EQ(numbers(binding.output("w")), (Floats{5, 6}));
  }
}

TEST(Binding, SizesThatOnlyTheRunDecides) {
  const Session session(model_of("g (float[n] x) => (int64[1, m] y) { y = NonZero(x) }"),
                        {.threads = 1});
  std::array<int64_t, 2> places{};
  Binding binding(session);
  binding.bind_input("x", row({0, 1, 1}));
  binding.bind_output("y", MutableTensorRef::of<int64_t>(places, {1, 2}));
  binding.run();
  EXPECT_EQ(places[1], 2);
  binding.bind_input("x", row({1, 1, 1}));
  EXPECT_EQ(refusal([&] { binding.run(); }),
            "output 'y': is int64[1,3], and is bound to memory for int64[1,2]");
}

TEST(Binding, StringsAndSequences) {
  const Session session(model_of(R"(g (string[n] s, float[n] x) => (string[n] t, seq(float[n]) q) {
    t = Identity(s) q = SequenceConstruct(x, x) })"),
                        {.threads = 1});
  Binding binding(session);
  binding.bind_input("x", row({0, 1}));
  for (const char* text : {"one", "two"}) {
    binding.bind_input("s", Tensor::of<std::string>({text, "and"}, {2}));
    binding.run();
    EXPECT_EQ(binding.output("t").tensor().elements<std::string>()[0], text);
    EXPECT_EQ(binding.output("q").sequence().items.size(), 2u);
  }
}

TEST(Binding, OutlivesTheSession) {
  std::optional<Session> session(std::in_place, two_outputs(), SessionOptions{.threads = 1});
  Binding binding(*session);
  session.reset();
  binding.bind_input("x", row({1, 2}));
  binding.bind_input("h", row({1, 1}));
  binding.run();
  EXPECT_EQ(numbers(binding.output("y")), (Floats{2, 3}));
  Binding moved = std::move(binding);
  moved.run();
  EXPECT_EQ(numbers(moved.output("z")), (Floats{1, 2}));
}

}  // namespace
}  // namespace sardonyx
