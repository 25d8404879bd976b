// RNN, GRU and LSTM.
#include "kernels/recurrent/recurrent.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"
#include "ops/shared/recurrent_shape.h"

namespace sardonyx::ops {
namespace {

using kernels::Gate;
using kernels::GateFunction;
using kernels::RecurrentKind;
using kernels::RecurrentShape;

struct NamedFunction {
  std::string_view name;
  GateFunction function;
  bool has_alpha, has_beta;
  float alpha, beta;  // defaults
};
constexpr NamedFunction functions[] = {
    {"relu", GateFunction::relu, false, false, 0, 0},
    {"tanh", GateFunction::tanh, false, false, 0, 0},
    {"sigmoid", GateFunction::sigmoid, false, false, 0, 0},
    {"affine", GateFunction::affine, true, true, 1, 0},
    {"linear", GateFunction::affine, true, true, 1, 0},  // the name of 1.1
    {"leakyrelu", GateFunction::leaky_relu, true, false, 0.01f, 0},
    {"thresholdedrelu", GateFunction::thresholded_relu, true, false, 1, 0},
    {"scaledtanh", GateFunction::scaled_tanh, true, true, 1, 1},
    {"hardsigmoid", GateFunction::hard_sigmoid, true, true, 0.2f, 0.5f},
    {"sigmoidhard", GateFunction::hard_sigmoid, true, true, 0.2f, 0.5f},
    {"elu", GateFunction::elu, true, false, 1, 0},
    {"softsign", GateFunction::softsign, false, false, 0, 0},
    {"softplus", GateFunction::softplus, false, false, 0, 0},
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

RecurrentKind kind_of(const NodeView& node) {
  if (node.node().op_type == "LSTM" || node.node().op_type == "DynamicQuantizeLSTM")
    return RecurrentKind::lstm;
  return node.node().op_type == "GRU" ? RecurrentKind::gru : RecurrentKind::rnn;
}

// Parameters are consumed in the order of the functions that take one.
void read_gates(const NodeView& node, RecurrentShape& shape) {
  const int each = shape.kind == RecurrentKind::lstm ? 3 : shape.kind == RecurrentKind::gru ? 2 : 1;
  const char* defaults[3] = {shape.kind == RecurrentKind::rnn ? "Tanh" : "Sigmoid", "Tanh", "Tanh"};
  const auto named = node.attr_strings("activations").value_or(std::vector<std::string>());
  const auto alphas = node.attr_floats("activation_alpha").value_or(std::vector<float>());
  const auto betas = node.attr_floats("activation_beta").value_or(std::vector<float>());
  const auto wanted = static_cast<size_t>(each * shape.directions);
  if (!named.empty() && named.size() < wanted)
    node.fail("activations must have {} entries; got {}", wanted, named.size());
  size_t alpha = 0, beta = 0;
  for (int d = 0; d < shape.directions; ++d) {
    for (int i = 0; i < each; ++i) {
      const std::string name =
          named.empty() ? defaults[i] : named[static_cast<size_t>(d * each + i)];
      const std::string key = lower(name);
      const auto found = std::find_if(std::begin(functions), std::end(functions),
                                      [&](const NamedFunction& f) { return f.name == key; });
      if (found == std::end(functions))
        node.fail("activation '{}' is not one of the standard's", name);
      Gate& gate = shape.gates[d][i];
      gate = {found->function, found->alpha, found->beta};
      if (found->has_alpha && alpha < alphas.size()) gate.alpha = alphas[alpha++];
      if (found->has_beta && beta < betas.size()) gate.beta = betas[beta++];
    }
  }
}

}  // namespace

RecurrentShape read_recurrent_shape(const NodeView& node) {
  RecurrentShape shape;
  shape.kind = kind_of(node);
  const std::string direction = node.attr_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    node.fail("direction must be forward, reverse or bidirectional; got '{}'", direction);
  }
  shape.directions = direction == "bidirectional" ? 2 : 1;
  shape.reverse = direction == "reverse";
  const int64_t layout = node.attr_int("layout", 0);
  if (layout != 0 && layout != 1) node.fail("layout must be 0 or 1; got {}", layout);
  shape.batch_first = layout == 1;
  shape.linear_before_reset = node.attr_int("linear_before_reset", 0) != 0;
  shape.input_forget = node.attr_int("input_forget", 0) != 0;
  shape.clip = node.attr_float("clip", 0);
  if (shape.clip < 0 || std::isnan(shape.clip))
    node.fail("clip must not be negative; got {}", shape.clip);
  read_gates(node, shape);
  return shape;
}

namespace {

// Fails where input i is known not to have this shape.
void require_shape(InferContext& ctx, int i, const Dims& wanted) {
  if (!ctx.has_input(i) || !ctx.shape(i)) return;
  const Dims& found = *ctx.shape(i);
  if (found == wanted) return;
  const std::string what = fmt::format("{} must have shape {}; found {}", ctx.input_name(i),
                                       ir::to_string(wanted), ir::to_string(found));
  if (found.size() != wanted.size()) ctx.fail("{}", what);
  for (size_t d = 0; d < found.size(); ++d) ctx.require_equal(found[d], wanted[d], what);
}

Dim hidden_size(InferContext& ctx) {
  if (ctx.has_attribute("hidden_size")) {
    const int64_t size = ctx.attr_int("hidden_size");
    if (size < 1) ctx.fail("hidden_size must be at least 1; got {}", size);
    return Dim(size);
  }
  const auto& r = ctx.shape(2);
  return r && r->size() == 3 ? (*r)[2] : ctx.unknown();
}

}  // namespace

void infer_recurrent(InferContext& ctx, bool rows_first) {
  const RecurrentShape settings = read_recurrent_shape(ctx);
  const int states = settings.kind == RecurrentKind::lstm ? 2 : 1;
  const auto& x = ctx.shape(0);
  if (x && x->size() != 3)
    ctx.fail("X must have three dimensions; its shape is {}", ir::to_string(*x));
  const Dim hidden = hidden_size(ctx), directions = settings.directions,
            gates = settings.gate_count();
  const Dim steps = x ? (*x)[settings.batch_first ? 1 : 0] : ctx.unknown(),
            batch = x ? (*x)[settings.batch_first ? 0 : 1] : ctx.unknown();
  const auto weights = [&](const Dim& rows) {
    return rows_first ? Dims{directions, rows, gates * hidden}
                      : Dims{directions, gates * hidden, rows};
  };
  if (x) require_shape(ctx, 1, weights((*x)[2]));
  require_shape(ctx, 2, weights(hidden));
  require_shape(ctx, 3, {directions, Dim(2) * gates * hidden});
  const Dims state =
      settings.batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  if (x) {
    require_shape(ctx, 4, {batch});
    for (int i = 0; i < states; ++i) require_shape(ctx, 5 + i, state);
  }
  if (settings.kind == RecurrentKind::lstm) require_shape(ctx, 7, {directions, Dim(3) * hidden});
  ctx.set(0, ctx.element(0),
          settings.batch_first ? Dims{batch, steps, directions, hidden}
                               : Dims{steps, directions, batch, hidden});
  for (int i = 0; i < states; ++i) ctx.set(1 + i, ctx.element(0), state);
}

const int32_t* sequence_lengths(const RunContext& run, int i, const RecurrentShape& shape) {
  if (!run.has_input(i)) return nullptr;
  const auto* lengths = run.in<int32_t>(i);
  for (int64_t b = 0; b < shape.batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > shape.steps)
      throw Error(ErrorCode::run_failed,
                  fmt::format("sequence_lens must be in [0, {}], the steps of X; element {} is {}",
                              shape.steps, b, lengths[b]));
  }
  return lengths;
}

namespace recurrent_unit {
namespace {

void infer(InferContext& ctx) { infer_recurrent(ctx, false); }

struct State {
  RecurrentShape shape;
  ConvertedArguments wide;
  int64_t packed_w = -1, packed_r = -1;
  int64_t scratch = 0;
};

using Packed = std::shared_ptr<const Pack<Tensor>>;

// Float weights that never change are packed once; others in each run.
Packed pack_constant(PrepareContext& ctx, int i, const RecurrentShape& settings) {
  const Tensor* tensor = ctx.constant(i);
  if (tensor == nullptr || tensor->rank() != 3) return nullptr;
  RecurrentShape shape = settings;
  shape.hidden = tensor->shape()[1] / shape.gate_count();
  shape.input = tensor->shape()[2];
  const PackFormat format{
      .family = i == 1 ? PackFamily::recurrent_input : PackFamily::recurrent_state,
      .from = tensor->element_type(),
      .to = ElementType::float32,
      .shape = tensor->shape(),
      .linear_before_reset = shape.linear_before_reset,
      .gates = static_cast<int32_t>(shape.gate_count())};
  const int64_t bytes = i == 1 ? kernels::recurrent_input_pack_bytes<float>(shape)
                               : kernels::recurrent_state_pack_bytes<float>(shape);
  return ctx.packed<Tensor>(
      i, format, {{ElementType::uint8, bytes}},
      [weights = *tensor, shape, i, bytes](ThreadPool& pool) {
        const Tensor values = as_floats(weights, pool);
        Tensor made(ElementType::uint8, Shape{bytes});
        const auto* from = static_cast<const float*>(values.data());
        if (i == 1)
          kernels::pack_recurrent_input(shape, from, made.mutable_data(), &pool);
        else
          kernels::pack_recurrent_state(shape, from, made.mutable_data(), &pool);
        return made;
      });
}

template <class T>
void bind_layer(BindContext& bind, State& s, const RecurrentShape& settings, bool w_packed,
                bool r_packed) {
  constexpr ElementType compute = element_type_of<T>::value;
  ScratchPlanner layout;
  const auto x = bind.in_shape(0), w = bind.in_shape(1), r = bind.in_shape(2);
  s.shape = settings;
  s.shape.steps = x[settings.batch_first ? 1 : 0], s.shape.batch = x[settings.batch_first ? 0 : 1];
  s.shape.input = x[2], s.shape.hidden = r[2];
  if (w[0] != settings.directions || w[1] != s.shape.gate_columns() || w[2] != x[2] ||
      r[0] != settings.directions || r[1] != s.shape.gate_columns()) {
    throw Error(ErrorCode::run_failed,
                fmt::format("weights of shapes {} and {} do not fit X of shape {}", to_string(w),
                            to_string(r), to_string(x)));
  }
  for (const int i : {0, 1, 2, 3, 5, 6, 7}) {
    if (!(i == 1 && w_packed) && !(i == 2 && r_packed)) s.wide.plan_in(bind, i, compute, layout);
  }
  for (int i = 0; i < 3; ++i) s.wide.plan_out(bind, i, compute, layout);
  s.packed_w = w_packed ? -1 : layout.take(kernels::recurrent_input_pack_bytes<T>(s.shape));
  s.packed_r = r_packed ? -1 : layout.take(kernels::recurrent_state_pack_bytes<T>(s.shape));
  s.scratch = layout.take(kernels::recurrent_scratch_bytes<T>(s.shape, bind.threads()));
  bind.need_scratch(layout.bytes());
}

template <class T>
void run_layer(RunContext& run, const State& s, const Packed& w, const Packed& r) {
  kernels::RecurrentData<T> data;
  data.x = s.wide.in<T>(run, 0);
  data.w = w ? w->get(run.pool()).data() : scratch_at(run, s.packed_w);
  data.r = r ? r->get(run.pool()).data() : scratch_at(run, s.packed_r);
  if (!w)
    kernels::pack_recurrent_input(s.shape, s.wide.in<T>(run, 1), scratch_at(run, s.packed_w),
                                  &run.pool());
  if (!r)
    kernels::pack_recurrent_state(s.shape, s.wide.in<T>(run, 2), scratch_at(run, s.packed_r),
                                  &run.pool());
  data.bias = s.wide.in<T>(run, 3);
  data.lengths = sequence_lengths(run, 4, s.shape);
  data.h0 = s.wide.in<T>(run, 5);
  data.c0 = s.wide.in<T>(run, 6);
  data.peephole = s.wide.in<T>(run, 7);
  data.y = s.wide.out<T>(run, 0);
  data.y_h = s.wide.out<T>(run, 1);
  data.y_c = s.wide.out<T>(run, 2);
  kernels::run_recurrent(s.shape, data, scratch_at(run, s.scratch), run.pool());
  for (int i = 0; i < 3; ++i) s.wide.finish<T>(run, i);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const RecurrentShape settings = read_recurrent_shape(ctx);
  const ElementType type = ctx.in_element(0);
  if (type == ElementType::float64) {
    return make_step<State>(
        "recurrent.double",
        [settings](BindContext& bind, State& s) {
          bind_layer<double>(bind, s, settings, false, false);
        },
        [](RunContext& run, const State& s) { run_layer<double>(run, s, nullptr, nullptr); });
  }
  if (!computes_in_float(type))
    ctx.fail(ErrorCode::unsupported, "no recurrent layer of {}", name_of(type));
  const Packed w = pack_constant(ctx, 1, settings), r = pack_constant(ctx, 2, settings);
  auto step = make_step<State>(
      "recurrent.float",
      [settings, pw = w != nullptr, pr = r != nullptr](BindContext& bind, State& s) {
        bind_layer<float>(bind, s, settings, pw, pr);
      },
      [w, r](RunContext& run, const State& s) { run_layer<float>(run, s, w, r); });
  if (w) step->traits().unread_inputs.push_back(1);
  if (r) step->traits().unread_inputs.push_back(2);
  return step;
}

// output_sequence said whether Y is wanted; the first GRU misspelt its default direction.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 7) return;
  ctx.remove_attribute("output_sequence");
  const std::string direction = ctx.old().attr_string("direction", "forward");
  if (direction == "foward" || direction.empty())
    ctx.set_attribute("direction", std::string_view("forward"));
}

constexpr Operator operators[] = {
    {.name = "GRU", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 7},
    {.name = "LSTM", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 7},
    {.name = "RNN", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 7},
};

}  // namespace
}  // namespace recurrent_unit

std::span<const Operator> recurrent_operators() { return recurrent_unit::operators; }

}  // namespace sardonyx::ops
