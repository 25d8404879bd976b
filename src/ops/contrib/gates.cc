// com.microsoft: gates, branches and normalisations of recent language models. All compute in
// float32 and round at the end, or where the operator says.
#include <cmath>

#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_gates_unit {
namespace {

bool is_float(const Body& body, size_t i) {
  return body.context().element(i) == ElementType::float32;
}

std::string wide(Body& body, size_t i) {
  return is_float(body, i) ? body.input(i) : body.cast(body.input(i), ElementType::float32);
}

// A float32 value in the type of an input.
std::string narrow(Body& body, const std::string& value, size_t like) {
  return is_float(body, like) ? value : body.op("CastLike", {value, body.input(like)});
}

void give_narrow(Body& body, size_t output, const std::string& value, size_t like) {
  if (is_float(body, like)) return body.give(output, "Identity", {value});
  body.give(output, "CastLike", {value, body.input(like)});
}

std::string floating(Body& body, float value) {
  return body.context().constant(Tensor::scalar<float>(value), "number");
}

std::string like_shape(Body& body, const std::string& value, size_t like) {
  return body.op("Reshape", {value, body.op("Shape", {body.input(like)})},
                 {int_attribute("allowzero", 1)});
}

// Fails where two inputs surely have different shapes, but for the last `but` dimensions.
void require_alike(const Body& body, size_t a, size_t b, size_t but = 0) {
  const ValueType *x = body.context().type(a), *y = body.context().type(b);
  if (x == nullptr || y == nullptr || !x->shape || !y->shape) return;
  bool alike = x->shape->size() == y->shape->size() && x->shape->size() >= but;
  for (size_t i = 0; alike && i + but < x->shape->size(); ++i) {
    const auto m = (*x->shape)[i].value(), n = (*y->shape)[i].value();
    alike = !m || !n || *m == *n;
  }
  if (!alike)
    body.context().fail(ErrorCode::invalid_model, "{} and {} have shapes that do not fit: {}, {}",
                        body.node().input_name(static_cast<int>(a)),
                        body.node().input_name(static_cast<int>(b)), ir::to_string(*x->shape),
                        ir::to_string(*y->shape));
}

std::string root_mean_square(Body& body, const std::string& x, const std::string& scale,
                             float epsilon) {
  return body.op("RMSNormalization", {x, scale},
                 {int_attribute("axis", -1), float_attribute("epsilon", epsilon)});
}

std::string last_size(Body& body, const std::string& value) {
  return body.op("Shape", {value}, {int_attribute("start", -1)});
}

// The last dimension of a value in two, of which one is known as a vector of one.
std::string cut_last(Body& body, const std::string& value, const std::string& known,
                     bool known_first) {
  const std::string shape = body.op("Shape", {value});
  const std::string other = body.op("Div", {last_size(body, value), known});
  const std::string before =
      body.op("Slice", {shape, body.ints({0}), body.ints({-1}), body.ints({0})});
  const std::string sizes =
      body.op("Concat", {before, known_first ? known : other, known_first ? other : known},
              {int_attribute("axis", 0)});
  return body.op("Reshape", {value, sizes}, {int_attribute("allowzero", 1)});
}

// --- element by element -------------------------------------------------------------------------

void scaled_silu(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string scale = body.has(1) ? body.op("Reshape", {wide(body, 1), body.ints({})})
                                        : floating(body, ctx.old().attr_float("alpha", 1));
  const std::string z = narrow(body, body.op("Mul", {wide(body, 0), scale}), 0);
  body.give(0, "Mul", {z, body.op("Sigmoid", {z})});
}

void gated_add(UpgradeContext& ctx) {
  Body body(ctx);
  require_alike(body, 0, 1);
  require_alike(body, 0, 2, 1);
  if (const ValueType* gate = ctx.type(2); gate != nullptr && gate->shape) {
    const auto last =
        gate->shape->empty() ? std::optional<int64_t>(0) : gate->shape->back().value();
    if (last && *last != 1)
      ctx.fail(ErrorCode::invalid_model, "the last dimension of gate must be 1; its shape is {}",
               ir::to_string(*gate->shape));
  }
  body.give(0, "Add", {body.input(0), body.op("Mul", {body.input(1), body.input(2)})});
}

void linear_attention_gate(UpgradeContext& ctx) {
  Body body(ctx);
  if (body.wants(1) && !body.has(3))
    ctx.fail(ErrorCode::invalid_model, "the output beta needs the input b");
  const std::string sum = body.op("Add", {wide(body, 0), body.input(1)});
  const std::string decay = body.op("Mul", {body.op("Softplus", {sum}), body.input(2)});
  give_narrow(body, 0, decay, 0);
  body.give(1, "Sigmoid", {body.input(3)});
}

// --- normalisations -----------------------------------------------------------------------------

void gated_norm(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string activation = ctx.old().attr_string("activation", "silu");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    ctx.fail(ErrorCode::invalid_model, "activation must be silu, swish or sigmoid; got '{}'",
             activation);
  require_alike(body, 0, 2);
  if (body.rank(1) != 1) ctx.fail(ErrorCode::invalid_model, "scale must have one dimension");
  const std::string groups =
      cut_last(body, wide(body, 0), body.op("Shape", {body.input(1)}), false);
  const float epsilon = ctx.old().attr_float("epsilon", 1e-5f);
  const std::string normal =
      like_shape(body, root_mean_square(body, groups, wide(body, 1), epsilon), 0);
  const std::string gate = wide(body, 2);
  const std::string open = body.op(activation == "sigmoid" ? "Sigmoid" : "Swish", {gate});
  give_narrow(body, 0, body.op("Mul", {normal, open}), 0);
}

int64_t branches(const UpgradeContext& ctx) {
  const int64_t count = ctx.old().attr_int("num_branches", 0);
  if (count < 0)
    ctx.fail(ErrorCode::invalid_model, "num_branches must be 0 or more; got {}", count);
  return count;
}

// Input i as [..., branches, features] in float32.
std::string grouped(Body& body, size_t i, int64_t count) {
  const int64_t least = count == 0 ? 2 : 1, rank = body.rank(i);
  if (rank < least)
    body.context().fail(ErrorCode::invalid_model, "{} has {} dimension; {}",
                        body.node().input_name(static_cast<int>(i)), rank == 0 ? "no" : "one",
                        count == 0 ? "without num_branches it has those of the branches and the "
                                     "features"
                                   : "the features of all branches lie along its last one");
  return count == 0 ? wide(body, i) : cut_last(body, wide(body, i), body.ints({count}), true);
}

void branchwise_norm(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string x = grouped(body, 0, branches(ctx));
  const std::string one = ctx.constant(Tensor::of<float>({1.0f}, {1}), "one");
  std::string y = root_mean_square(body, x, one, ctx.old().attr_float("epsilon", 1e-5f));
  if (body.has(1)) {
    // One row of features for all branches, or one for each.
    const std::string features = last_size(body, x);
    const std::string size = body.op("Reshape", {body.op("Size", {body.input(1)}), body.ints({1})});
    const std::string rows = body.op("Div", {size, body.op("Max", {features, body.ints({1})})});
    const std::string sizes = body.op("Concat", {rows, features}, {int_attribute("axis", 0)});
    y = body.op("Mul",
                {y, body.op("Reshape", {wide(body, 1), sizes}, {int_attribute("allowzero", 1)})});
  }
  give_narrow(body, 0, like_shape(body, y, 0), 0);
}

// --- hyper-connections --------------------------------------------------------------------------

// Gates as [..., branches, features or 1] in float32.
std::string gates(Body& body, size_t i, int64_t count) {
  const int64_t rank = body.rank(0), own = body.rank(i);
  if (own != rank && own != rank + (count == 0 ? -1 : 1))
    body.context().fail(ErrorCode::invalid_model, "{} has {} dimensions, which do not fit {} of {}",
                        body.node().input_name(static_cast<int>(i)), own, rank,
                        body.node().input_name(0));
  if (count == 0) return own == rank ? wide(body, i) : body.unsqueeze(wide(body, i), {-1});
  return own == rank ? cut_last(body, wide(body, i), body.ints({count}), true) : wide(body, i);
}

void pre_mix(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t count = branches(ctx);
  const std::string x = grouped(body, 0, count);
  const std::string sum =
      body.op("ReduceSum", {body.op("Mul", {x, gates(body, 1, count)}), body.ints({-2})},
              {int_attribute("keepdims", 0)});
  const float scale = ctx.old().attr_float("reduction_scale", 1);
  give_narrow(body, 0, scale == 1 ? sum : body.op("Mul", {sum, floating(body, scale)}), 0);
}

void post_mix(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t count = branches(ctx);
  std::string x = grouped(body, 0, count);
  if (body.has(3)) {
    std::vector<int64_t> order;
    const int64_t rank = body.rank(3);
    if (rank != body.rank(0) + (count == 0 ? 0 : 1))
      ctx.fail(ErrorCode::invalid_model,
               "stream_mix must have the dimensions of streams before the branches, and twice the "
               "branches; it has {} dimensions",
               rank);
    for (int64_t i = 0; i < rank; ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    x = body.op("MatMul", {body.transpose(wide(body, 3), order), x});
  }
  const std::string block = body.unsqueeze(wide(body, 1), {-2});
  const std::string added = body.op("Mul", {gates(body, 2, count), block});
  give_narrow(body, 0, like_shape(body, body.op("Add", {x, added}), 0), 0);
}

void engram_gate(UpgradeContext& ctx) {
  Body body(ctx);
  require_alike(body, 0, 1);
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
    if (body.rank(i) != (i == 2 ? 3 : 4))
      ctx.fail(ErrorCode::invalid_model,
               "key and query must be [batch, length, branches, hidden] and value [batch, length, "
               "hidden]");
  }
  if (body.wants(1) && !body.has(5))
    ctx.fail(ErrorCode::invalid_model, "gated_value_normed needs conv_norm_scale");
  const float epsilon = ctx.old().attr_float("epsilon", 1e-5f);
  const std::string one = ctx.constant(Tensor::of<float>({1.0f}, {1}), "one");
  const auto normal = [&](const std::string& x, size_t scale) {
    return body.op("Mul", {root_mean_square(body, x, one, epsilon), wide(body, scale)});
  };
  const std::string products = body.op("Mul", {normal(wide(body, 0), 3), normal(wide(body, 1), 4)});
  const std::string hidden =
      body.op("Sqrt", {body.cast(body.size_of(body.input(0), 3), ElementType::float32)});
  const std::string dot =
      body.op("Div", {body.op("ReduceSum", {products, body.ints({-1})}), hidden});
  const std::string size =
      body.op("Sqrt", {body.op("Max", {body.op("Abs", {dot}), floating(body, 1e-6f)})});
  const std::string gate = body.op("Sigmoid", {body.op("Mul", {body.op("Sign", {dot}), size})});
  const std::string y =
      like_shape(body, body.op("Mul", {gate, body.unsqueeze(wide(body, 2), {2})}), 0);
  give_narrow(body, 0, y, 0);
  if (body.wants(1)) give_narrow(body, 1, normal(y, 5), 0);
}

constexpr Operator operators[] = {
    {.name = "BranchwiseRMSNorm", .domain = "com.microsoft", .upgrade = branchwise_norm},
    {.name = "EngramGate", .domain = "com.microsoft", .upgrade = engram_gate},
    {.name = "GatedAdd", .domain = "com.microsoft", .upgrade = gated_add},
    {.name = "GatedRMSNorm", .domain = "com.microsoft", .upgrade = gated_norm},
    {.name = "HyperConnectionPostMix", .domain = "com.microsoft", .upgrade = post_mix},
    {.name = "HyperConnectionPreMix", .domain = "com.microsoft", .upgrade = pre_mix},
    {.name = "LinearAttentionGate", .domain = "com.microsoft", .upgrade = linear_attention_gate},
    {.name = "ScaledSiLU", .domain = "com.microsoft", .upgrade = scaled_silu},
};

}  // namespace
}  // namespace contrib_gates_unit

std::span<const Operator> contrib_gates_operators() { return contrib_gates_unit::operators; }

}  // namespace sardonyx::ops
