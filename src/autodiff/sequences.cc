// CausalConvWithState and LinearAttention with operators that have gradients.
#include "autodiff/bodies.h"
#include "base/fail.h"

namespace sardonyx::autodiff {
namespace {

using ops::int_attribute;
using ops::ints_attribute;

std::string given(const ir::Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : "";
}

// Gives a value as output i, where the node has that one.
void give(NodeWriter& w, const ir::Node& node, size_t i, std::string_view op, Names inputs) {
  if (i < node.outputs.size() && !node.outputs[i].empty())
    w.add_to({node.outputs[i]}, op, std::move(inputs));
}

// Both operators compute in float32, whatever the types of their inputs.
std::string as_float(NodeWriter& w, const std::string& value) {
  return w.add("Cast", {value}, {int_attribute("to", 1)});
}

}  // namespace

// One convolution over what was before and what is new.
std::vector<ir::Node> causal_conv_body(const ir::Node& node, GradientEmitter& e) {
  const ops::NodeView view(node, schema::newest(node.domain, node.op_type));
  const auto shape = e.shape(node.inputs[0]), kernel = e.shape(node.inputs[1]);
  if (!shape || !kernel || shape->size() != 3 || kernel->size() != 3) {
    view.fail(ErrorCode::unsupported,
              "has no gradient where sizes are open; give the graph's inputs their sizes");
  }
  NodeWriter w(e.services());
  const std::string x = as_float(w, node.inputs[0]);
  const std::string before =
      given(node, 3).empty()
          ? w.add("Expand", {w.constant(Tensor::scalar<float>(0)),
                             w.ints({(*shape)[0], (*shape)[1], (*kernel)[2] - 1})})
          : as_float(w, node.inputs[3]);
  const std::string joined = w.add("Concat", {before, x}, {int_attribute("axis", 2)});
  Names operands{joined, as_float(w, node.inputs[1])};
  if (!given(node, 2).empty()) operands.push_back(as_float(w, node.inputs[2]));
  std::string y = w.add("Conv", operands, {int_attribute("group", (*shape)[1])});
  if (view.attr_string("activation", "none") != "none")
    y = w.add("Mul", {y, w.add("Sigmoid", {y})});
  give(w, node, 0, "CastLike", {y, node.inputs[0]});
  const std::string last = w.add(
      "Slice", {joined, w.ints({(*shape)[2]}), w.ints({(*shape)[2] + (*kernel)[2]}), w.ints({2})});
  give(w, node, 1, "CastLike", {last, node.inputs[0]});
  return w.take();
}

namespace {

// LinearAttention as a Scan: a token's rows change the state of each head of keys, and the heads of
// queries that share it read it.
class LinearAttention {
 public:
  LinearAttention(const ir::Node& node, GradientEmitter& e)
      : node_(node),
        view_(node, schema::newest(node.domain, node.op_type)),
        services_(e.services()),
        w_(services_) {}

  std::vector<ir::Node> make() {
    const int64_t heads = view_.attr_int("kv_num_heads");
    if (heads < 1) view_.fail("kv_num_heads must be positive; it is {}", heads);
    const std::string q = parted(0, {0, 0, heads, view_.attr_int("q_num_heads") / heads, -1}),
                      k = parted(1, {0, 0, heads, -1}), v = parted(2, {0, 0, heads, -1});
    const bool has_past = !given(node_, 3).empty();
    Names inputs{has_past ? as_float(w_, node_.inputs[3]) : nothing(k, v), q, k, v};
    if (!given(node_, 4).empty()) inputs.push_back(parted(4, {0, 0, heads, -1}));
    if (!given(node_, 5).empty()) inputs.push_back(parted(5, {0, 0, -1, 1}));
    const auto count = static_cast<int64_t>(inputs.size()) - 1;
    const Names results = w_.add_many(
        "Scan", inputs, 2,
        {ops::graph_attribute("body", token(scale(k))), int_attribute("num_scan_inputs", count),
         ints_attribute("scan_input_axes", std::vector<int64_t>(static_cast<size_t>(count), 1)),
         ints_attribute("scan_output_axes", {1})});
    give(w_, node_, 0, "CastLike",
         {w_.add("Reshape", {results[1], w_.ints({0, 0, -1})}), node_.inputs[0]});
    give(w_, node_, 1, "CastLike", {results[0], node_.inputs[has_past ? 3 : 0]});
    return w_.take();
  }

 private:
  // [batch, tokens, heads, …] of an input that has its heads in the last dimension.
  std::string parted(size_t i, const std::vector<int64_t>& shape) {
    return w_.add("Reshape", {as_float(w_, node_.inputs[i]), w_.ints(shape)});
  }

  std::string sizes(const std::string& value, const std::vector<int64_t>& axes) {
    return w_.add("Gather", {w_.add("Shape", {value}), w_.ints(axes)}, {int_attribute("axis", 0)});
  }

  std::string nothing(const std::string& k, const std::string& v) {
    const std::string shape =
        w_.add("Concat", {sizes(k, {0, 2, 3}), sizes(v, {3})}, {int_attribute("axis", 0)});
    return w_.add("Expand", {w_.constant(Tensor::scalar<float>(0)), shape});
  }

  std::string scale(const std::string& k) {
    const float factor = view_.attr_float("scale", 0);
    if (factor != 0) return w_.constant(Tensor::scalar<float>(factor));
    return w_.add("Reciprocal", {w_.add("Sqrt", {as_float(w_, sizes(k, {3}))})});
  }

  // The body: state [batch, heads, keys' size, values' size], then the rows of one token.
  ir::Graph token(const std::string& factor) const {
    NodeWriter w(services_);
    ir::Graph body;
    body.name = "token";
    const auto input = [&](std::string_view hint) {
      return body.inputs.emplace_back().name = w.fresh(hint);
    };
    const auto wider = [&](const std::string& value, int64_t axis) {
      return w.add("Unsqueeze", {value, w.ints({axis})});
    };
    std::string state = input("state");
    const std::string q = input("q"), k = input("k"), v = input("v");
    if (!given(node_, 4).empty())
      state = w.add("Mul", {state, wider(w.add("Exp", {input("decay")}), -1)});
    std::string added = wider(v, -2);
    if (!given(node_, 5).empty()) {
      const std::string held = w.add("MatMul", {wider(k, -2), state});
      added = w.add("Mul", {w.add("Sub", {added, held}), wider(input("beta"), -1)});
    }
    const std::string next = w.add("Add", {state, w.add("MatMul", {wider(k, -1), added})});
    const std::string y = w.add("Mul", {w.add("MatMul", {q, next}), factor});
    for (const std::string& name : {next, y}) body.outputs.emplace_back().name = name;
    body.nodes = w.take();
    return body;
  }

  const ir::Node& node_;
  ops::NodeView view_;
  const GradientServices& services_;
  NodeWriter w_;
};

}  // namespace

std::vector<ir::Node> linear_attention_body(const ir::Node& node, GradientEmitter& e) {
  return LinearAttention(node, e).make();
}

}  // namespace sardonyx::autodiff
