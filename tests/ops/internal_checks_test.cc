// Nodes of internal operators that no pass makes, but that a file of an optimised graph may hold:
// each ends in an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "eval/eval.h"
#include "graph_support.h"
#include "wire/text_parse.h"

namespace sardonyx::ops_test {
namespace {

Value floats(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  std::ranges::fill(tensor.mutable_elements<float>(), 1.0f);
  return tensor;
}

Value bytes(Shape shape) {
  Tensor tensor(ElementType::uint8, std::move(shape));
  std::ranges::fill(tensor.mutable_elements<uint8_t>(), uint8_t{1});
  return tensor;
}

std::vector<Value> run_internal(std::string_view text, std::vector<Value> inputs) {
  ThreadPool pool(1);
  eval::Environment environment(pool);
  return eval::run_node(wire::parse_node(text), inputs, eval::Frame(), environment);
}

struct Wrong {
  std::string node;
  std::vector<Value> inputs;
  std::string message;  // a part of it
};

void expect_refused(const std::vector<Wrong>& list) {
  for (const Wrong& wrong : list) {
    SCOPED_TRACE(wrong.node);
    const std::string error = error_of([&] { run_internal(wrong.node, wrong.inputs); });
    EXPECT_NE(error.find(wrong.message), error.npos) << error;
  }
}

TEST(InternalChecks, RefuseElementsThatKernelsDoNotTake) {
  const Value x = floats({1, 4, 4, 8});
  expect_refused({
      {"y = sardonyx.Conv <nhwc = 1> (x, w)", {x, bytes({8, 8, 1, 1})}, "must not be of uint8"},
      {"y = sardonyx.Conv <nhwc = 1> (x, w)",
       {bytes({1, 4, 4, 8}), floats({8, 8, 1, 1})},
       "must not be of uint8"},
      {"y = sardonyx.ScaleShift (x, a, b)", {x, bytes({8}), floats({8})}, "must not be of uint8"},
      {"y = sardonyx.LRN <size = 3> (x)", {bytes({1, 4, 4, 8})}, "must not be of uint8"},
      {"y = sardonyx.AveragePool <kernel_shape = [2, 2]> (x)",
       {bytes({1, 4, 4, 8})},
       "must not be of uint8"},
      {"y = sardonyx.InterleavedConcat <groups = 2> (a, b)",
       {x, bytes({1, 4, 4, 8})},
       "must not be of uint8"},
      {"y = sardonyx.QuantizedMatMul (a, s, \"\", b, t)",
       {floats({2, 4}), floats({}), Value(), bytes({4, 2}), floats({})},
       "must not be of float"},
      {"y = sardonyx.FusedElementwise <steps = 1, operators = [\"relu\"], a = [\"x0\"], "
       "to = [\"y\"], extents = [\"whole\"]> (x)",
       {bytes({16})},
       "must not be of uint8"},
      {"y = sardonyx.ScaleShift (x, a, b)",
       {x, Value(Sequence()), floats({8})},
       "must be a tensor"},
  });
}

TEST(InternalChecks, RefuseSizesThatKernelsDoNotLookAt) {
  const Value x = floats({1, 4, 4, 8});
  expect_refused({
      {"y = sardonyx.Conv <nhwc = 1> (x, w, \"\", r)",
       {x, floats({8, 8, 1, 1}), Value(), floats({1, 4, 2, 8})},
       "must have shape [1,4,4,8]"},
      {"y = sardonyx.Conv <nhwc = 1> (x, w, \"\", \"\", \"\", f)",
       {x, floats({8, 8, 1, 1}), Value(), Value(), Value(), floats({1, 1, 1, 4})},
       "must have shape [1,1,1,8]"},
      {"y = sardonyx.Conv <nhwc = 1> (x, w)", {x, floats({5, 8, 0, 1})}, "do not suit"},
      {"y = sardonyx.MatMul (a, b, \"\", r)",
       {floats({3, 4}), floats({4, 5}), Value(), floats({5})},
       "must have shape [3,5]"},
      {"y = sardonyx.ScaleShift (x, a, b)",
       {x, floats({1, 4}), floats({8})},
       "must have shape [8]"},
      {"y = sardonyx.LRN <size = 3> (x)", {floats({})}, "at least 2 dimensions"},
      {"y = sardonyx.Attention (q, k, v, m)",
       {floats({1, 2, 3, 4}), floats({1, 2, 3, 4}), floats({1, 2, 3, 4}), floats({})},
       "at least 1 dimensions"},
      {"y = sardonyx.InterleavedConcat <groups = 2> (a, \"\", b)", {x, Value(), x}, "is absent"},
      {"x1, v1, h1 = sardonyx.AdamW (r, x, g, v, h)",
       {floats({}), floats({8}), floats({2}), floats({8}), floats({8})},
       "must have shape [8]"},
  });
}

TEST(InternalChecks, RefuseAttributesThatNoPassWrites) {
  const Value x = floats({1, 4, 4, 8});
  const Value heads = floats({1, 3, 4});
  expect_refused({
      {"y = sardonyx.Conv <nhwc = 1, strides = [0, 1]> (x, w)",
       {x, floats({8, 8, 1, 1})},
       "'strides'"},
      {"y = sardonyx.Conv <nhwc = 1, group = 0> (x, w)", {x, floats({8, 8, 1, 1})}, "group"},
      {"y = sardonyx.Conv <nhwc = 1, input_shuffle = 3> (x, w)",
       {x, floats({8, 8, 1, 1})},
       "do not suit"},
      {"y = sardonyx.Conv <nhwc = 1, group = 2, shuffles_output = 1, pads = [1, 1, 1, 1]> (x, w)",
       {x, floats({8, 4, 1, 1})},
       "do not suit"},
      {"y = sardonyx.ConvTranspose <group = 0> (x, w)", {x, floats({4, 8, 1, 1})}, "group"},
      {"y = sardonyx.MaxPool <kernel_shape = [2, 2], strides = [1, 0]> (x)", {x}, "'strides'"},
      {"y = sardonyx.GroupNormalization <num_groups = -2> (x, s, b)",
       {x, floats({8}), floats({8})},
       "num_groups"},
      {"y = sardonyx.DepthToSpace <blocksize = 0> (x)", {x}, "blocksize"},
      {"y = sardonyx.SpaceToDepth <blocksize = 0> (x)", {x}, "blocksize"},
      {"y = sardonyx.Attention <inner = [0]> (q, k, v, m)",
       {floats({1, 2, 3, 4}), floats({1, 2, 3, 4}), floats({1, 2, 3, 4}), floats({1, 1, 3, 3})},
       "at least 1 batch"},
      {"y = sardonyx.Attention <q_num_heads = 4, kv_num_heads = 1, transposed = [1, 1, 1, 1]> "
       "(q, k, v)",
       {heads, heads, heads},
       "one head"},
      {"y = sardonyx.MaxPoolGradient <kernel_shape = [1, 1], strides = [1]> (x, dy)",
       {x, x},
       "'strides'"},
      {"dx = sardonyx.LayerNormalizationGradient <axis = 9> (x, s, dy)",
       {x, floats({8}), x},
       "axis"},
      {"dw = sardonyx.ConvWeightGradient <group = 0, weights_shape = [4, 4, 1, 1]> (x, dy)",
       {x, x},
       "group"},
  });
}

// A program with the given columns for its steps.
std::string program(const std::string& columns, const std::string& extents, size_t inputs) {
  std::string names = "x0";
  for (size_t i = 1; i < inputs; ++i) names += ", x" + std::to_string(i);
  return "y = sardonyx.FusedElementwise <" + columns + ", extents = [" + extents + "]> (" + names +
         ")";
}

TEST(InternalChecks, RefuseProgramsThatReadWhatIsNotThere) {
  const std::string whole = "\"whole\"", relu = "steps = 1, operators = [\"relu\"], ";
  const Value x = floats({40});
  expect_refused({
      {program(relu + "a = [\"x7\"], to = [\"y\"]", whole, 1), {x}, "no program"},
      {program(relu + "a = [\"t0\"], to = [\"y\"]", whole, 1), {x}, "no program"},
      {program(relu + "a = [\"x0\"], to = [\"t99\"]", whole, 1), {x}, "no program"},
      {program(relu + "a = [\"x1\"], to = [\"y\"]", "\"whole\", \"single\"", 2),
       {x, floats({1})},
       "no program"},
      {program(relu + "a = [\"x0\"], to = [\"y\"]", "\"row\"", 1), {x}, "no program"},
      {program("steps = 1, operators = [\"add\"], a = [\"x0\"], b = [\"x1\"], to = [\"y\"]",
               "\"whole\", \"row\"", 2),
       {x, floats({4})},
       "must have 40 elements"},
      {program("steps = 1, operators = [\"add\"], a = [\"x0\"], b = [\"x1\"], to = [\"y\"]",
               "\"whole\", \"whole\"", 2),
       {x, floats({4})},
       "must have shape [40]"},
      {program("steps = 1, operators = [\"add\"], a = [\"x0\"], b = [\"x1\"], to = [\"y\"]",
               "\"whole\", \"single\"", 2),
       {x, floats({0})},
       "must have 1 elements"},
  });
}

TEST(InternalChecks, RefuseChainsThatAreNone) {
  const Value x = floats({1, 6, 6, 8}), w = floats({8, 1, 3, 3});
  const std::string pads = "pads = [1, 1, 1, 1], ";
  expect_refused({
      {"y = sardonyx.FusedConvChain <parts = 1, depthwise = 0> (x, w)",
       {x, floats({8, 8, 1, 1})},
       "make no chain"},
      {"y = sardonyx.FusedConvChain <parts = 1, depthwise = 0, strides = [0, 0], group = [8]> "
       "(x, w)",
       {x, w},
       "'strides'"},
      {"y = sardonyx.FusedConvChain <parts = 1, depthwise = 0, " + pads + "group = [8]> (x, w, b)",
       {x, w, floats({2})},
       "must have shape [8]"},
      {"y = sardonyx.FusedConvChain <parts = 1, depthwise = 0, " + pads +
           "group = [8]> (x, w, \"\", \"\", r)",
       {x, w, Value(), Value(), floats({8})},
       "must have shape [1,6,6,8]"},
  });
}

TEST(InternalChecks, RefuseScalesThatNoByteHas) {
  const Value one = floats({}), zero = bytes({}), signed_zero = Tensor::scalar<int8_t>(0);
  expect_refused({
      {"y = sardonyx.QLinearConv <summands = 3, zero = [0, 1000, 0]> (x, a, b, w, c, d, e, f, "
       "\"\", g)",
       {bytes({1, 2, 2, 4}), one, zero, bytes({4, 4, 1, 1}), one, zero, one, zero, Value(),
        bytes({1, 2, 2, 4})},
       "zero point 1000"},
      {"y = sardonyx.QLinearConv <group = 0> (x, a, b, w, c, d, e, f)",
       {bytes({1, 2, 2, 4}), one, zero, bytes({4, 4, 1, 1}), one, zero, one, zero},
       "group"},
      {"y = sardonyx.QLinearConv (x, a, b, w, c, d, e, f)",
       {bytes({1, 2, 2, 4}), one, zero, bytes({4, 4, 1, 1}), one, signed_zero, one, zero},
       "must be of"},
      {"y = sardonyx.QuantizedConv (x, a, b, w, c)",
       {bytes({1, 4, 2, 2}), one, signed_zero, bytes({4, 4, 1, 1}), one},
       "must be of"},
      {"y = sardonyx.QuantizedConv <activation = \"sigmoid\"> (x, a, b, w, c)",
       {bytes({1, 4, 2, 2}), one, zero, bytes({4, 4, 1, 1}), one},
       "activation"},
      {"y = sardonyx.QuantizedMatMul (a, s, z, b, t)",
       {bytes({2, 4}), one, signed_zero, bytes({4, 3}), one},
       "must be of"},
  });
}

TEST(InternalChecks, LetThroughWhatPassesMake) {
  const Value x = floats({1, 4, 4, 8});
  EXPECT_EQ(
      elements<float>(run_internal("y = sardonyx.Conv <nhwc = 1> (x, w, \"\", r)",
                                   {x, floats({8, 8, 1, 1}), Value(), floats({1, 4, 4, 8})})[0]),
      std::vector<float>(128, 9));
  EXPECT_EQ(elements<float>(run_internal("y = sardonyx.ScaleShift (x, a, b)",
                                         {x, floats({8}), floats({8})})[0]),
            std::vector<float>(128, 2));
  // Of no columns, each with a scale and a bias of its own.
  EXPECT_EQ(run_internal("y = sardonyx.QuantizedMatMul (a, s, \"\", b, t, \"\", bias)",
                         {bytes({2, 4}), floats({}), Value(), bytes({4, 0}), floats({0}), Value(),
                          floats({0})})[0]
                .tensor()
                .shape(),
            (Shape{2, 0}));
}

}  // namespace
}  // namespace sardonyx::ops_test
