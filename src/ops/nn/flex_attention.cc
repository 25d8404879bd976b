// FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through graphs.
#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/rows/softmax.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"

namespace sardonyx::ops {
namespace flex_attention_unit {
namespace {

// The type in which the softmax, and so what the graphs see, is computed.
ElementType precision_of(const NodeView& node, ElementType input) {
  if (!node.has_attribute("softmax_precision")) return compute_type(input);
  const int64_t number = node.attr_int("softmax_precision");
  for (const ElementType type :
       {ElementType::float32, ElementType::float64, ElementType::float16, ElementType::bfloat16}) {
    if (number == static_cast<int64_t>(type)) return type;
  }
  node.fail("softmax_precision must be the number of float, double, float16 or bfloat16; got {}",
            number);
}

const ir::Graph* modifier(const NodeView& node, std::string_view name) {
  const ir::Graph* graph = node.attr_graph(name);
  if (graph != nullptr && (graph->inputs.size() != 1 || graph->outputs.size() != 1)) {
    node.fail("{} must take one tensor and give one; it takes {} and gives {}", name,
              graph->inputs.size(), graph->outputs.size());
  }
  return graph;
}

void check_modifier(InferContext& ctx, std::string_view name, const ValueType& scores) {
  const ir::Graph* graph = modifier(ctx, name);
  if (graph == nullptr) return;
  const ValueFacts given = ValueFacts::of(scores);
  const std::vector<ValueFacts> made = ctx.infer_subgraph(*graph, {&given, 1});
  const ValueType& type = made[0].type;
  if (!type.is_known()) return;
  if (!type.is_tensor() || type.element != scores.element ||
      (type.shape && type.shape->size() != 4)) {
    ctx.fail("{} must give a tensor of the type and shape it takes, {}; it gives {}", name,
             scores.to_string(), type.to_string());
  }
  if (!type.shape) return;
  for (size_t d = 0; d < 4; ++d)
    ctx.require_equal((*type.shape)[d], (*scores.shape)[d],
                      "score_mod and prob_mod must keep the shape of what they take");
}

void infer(InferContext& ctx) {
  const ElementType precision = precision_of(ctx, ctx.element(0));
  for (int i = 0; i < 3; ++i) {
    if (ctx.shape(i) && ctx.shape(i)->size() != 4)
      ctx.fail("{} must have four dimensions; its shape is {}", ctx.input_name(i),
               ir::to_string(*ctx.shape(i)));
  }
  if (!ctx.shape(0) || !ctx.shape(1) || !ctx.shape(2)) {
    ctx.set(0, ctx.element(0), ctx.unknown_shape(4));
    return;
  }
  const auto &q = *ctx.shape(0), &k = *ctx.shape(1), &v = *ctx.shape(2);
  ctx.require_equal(q[0], k[0], "Q and K must have the same batch size");
  ctx.require_equal(q[0], v[0], "Q and V must have the same batch size");
  ctx.require_equal(k[1], v[1], "K and V must have the same number of heads");
  ctx.require_equal(k[2], v[2], "K and V must have the same length");
  ctx.require_equal(q[3], k[3], "Q and K must have the same head size");
  if (q[1].is_constant() && k[1].is_constant() &&
      (k[1] == 0 || *q[1].value() % *k[1].value() != 0)) {
    ctx.fail("the {} heads of Q must be a multiple of the {} heads of K", *q[1].value(),
             *k[1].value());
  }
  const ValueType scores = ValueType::tensor(precision, {q[0], q[1], q[2], k[2]});
  check_modifier(ctx, "score_mod", scores);
  check_modifier(ctx, "prob_mod", scores);
  ctx.set(0, ctx.element(0), {q[0], q[1], q[2], v[3]});
}

struct Settings {
  ElementType precision = ElementType::float32;
  bool has_scale = false;
  double scale = 1;
  std::shared_ptr<PreparedGraph> score_mod, prob_mod;
};

struct State {
  kernels::AttentionShape shape;
  ConvertedArguments wide;
  int64_t products = 0;  // scratch of the products
};

void read_sizes(const BindContext& bind, State& s, const Settings& settings) {
  const auto q = bind.in_shape(0), k = bind.in_shape(1), v = bind.in_shape(2);
  if (k[1] < 1 || q[1] % k[1] != 0) {
    throw Error(
        ErrorCode::run_failed,
        fmt::format("the {} heads of Q must be a multiple of the {} heads of K", q[1], k[1]));
  }
  kernels::AttentionShape& a = s.shape;
  a = {};
  a.batch = q[0], a.q_heads = q[1], a.q_length = q[2], a.head_size = q[3];
  a.kv_heads = k[1], a.kv_length = k[2], a.v_head_size = v[3];
  a.q = {q[1] * q[2] * q[3], q[2] * q[3], q[3]};
  a.k = {k[1] * k[2] * k[3], k[2] * k[3], k[3]};
  a.v = {v[1] * v[2] * v[3], v[2] * v[3], v[3]};
  a.y = {q[1] * q[2] * v[3], q[2] * v[3], v[3]};
  a.scale = settings.has_scale ? settings.scale : 1 / std::sqrt(static_cast<double>(a.head_size));
}

// --- Without graphs: the tiled kernel -----------------------------------------------------------

template <class T>
std::unique_ptr<Step> make_tiled(const Settings& settings) {
  return make_step<State>(
      "flex_attention.tiles",
      [settings](BindContext& bind, State& s) {
        read_sizes(bind, s, settings);
        ScratchPlanner layout;
        s.wide.plan(bind, element_type_of<T>::value, layout);
        s.products = layout.take(kernels::attention_scratch_bytes<T>(s.shape, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [alone = std::make_shared<ThreadPool>(1)](RunContext& run, const State& s) {
        kernels::AttentionData<T> data;
        data.q = s.wide.in<T>(run, 0), data.k = s.wide.in<T>(run, 1);
        data.v = s.wide.in<T>(run, 2), data.y = s.wide.out<T>(run, 0);
        kernels::attention<T>(s.shape, data, scratch_at(run, s.products), *alone, run.pool());
        s.wide.finish<T>(run, 0);
      });
}

// --- With graphs: all scores at once ------------------------------------------------------------

// Batch, heads of K, and the heads of Q that share one of them.
kernels::GemmBatch batch_of(const kernels::AttentionShape& a, const kernels::HeadStrides& left,
                            const kernels::HeadStrides& right, int64_t result) {
  const int64_t group = a.q_heads / a.kv_heads;
  kernels::GemmBatch batch;
  batch.rank = 3;
  batch.size[0] = a.batch, batch.size[1] = a.kv_heads, batch.size[2] = group;
  batch.a_stride[0] = left.batch, batch.a_stride[1] = group * left.head;
  batch.a_stride[2] = left.head;
  batch.b_stride[0] = right.batch, batch.b_stride[1] = right.head;
  batch.c_stride[0] = a.q_heads * result, batch.c_stride[1] = group * result;
  batch.c_stride[2] = result;
  return batch;
}

kernels::GemmBatch score_batch(const kernels::AttentionShape& a) {
  return batch_of(a, a.q, a.k, a.q_length * a.kv_length);
}
kernels::GemmBatch value_batch(const kernels::AttentionShape& a) {
  const int64_t each = a.q_length * a.kv_length;
  return batch_of(a, {a.q_heads * each, each, a.kv_length}, a.v, a.q_length * a.v_head_size);
}

int64_t product_bytes(const kernels::AttentionShape& a, int threads, float) {
  const kernels::StridedMatrix q{nullptr, a.head_size, 1}, k{nullptr, 1, a.head_size},
      p{nullptr, a.kv_length, 1}, v{nullptr, a.v_head_size, 1};
  return std::max(kernels::batched_gemm_scratch_bytes(score_batch(a), a.q_length, a.kv_length,
                                                      a.head_size, q, k, threads),
                  kernels::batched_gemm_scratch_bytes(value_batch(a), a.q_length, a.v_head_size,
                                                      a.kv_length, p, v, threads));
}
int64_t product_bytes(const kernels::AttentionShape&, int, double) { return 0; }

void multiply(const kernels::GemmBatch& batch, int64_t m, int64_t n, int64_t k, double alpha,
              const kernels::StridedMatrix& a, const kernels::StridedMatrix& b, float* c,
              void* scratch, ThreadPool& pool) {
  kernels::Epilogue epilogue;
  epilogue.alpha = static_cast<float>(alpha);
  kernels::batched_gemm(batch, m, n, k, a, b, c, n, epilogue, scratch, pool);
}
void multiply(const kernels::GemmBatch& batch, int64_t m, int64_t n, int64_t k, double alpha,
              const kernels::AnyMatrix& a, const kernels::AnyMatrix& b, double* c, void*,
              ThreadPool& pool) {
  kernels::matmul_any(ElementType::float64, batch, m, n, k, a, b, c, n, pool);
  const int64_t count = batch.count() * m * n;
  for (int64_t i = 0; i < count; ++i) c[i] *= alpha;
}

template <class T>
struct MatrixOf {
  using type = kernels::StridedMatrix;
};
template <>
struct MatrixOf<double> {
  using type = kernels::AnyMatrix;
};

// `scores` through a graph and back; rounded to the precision where that is not T.
template <class T>
Tensor through(const PreparedGraph* graph, Tensor scores, ElementType precision, RunContext& run,
               std::string_view name) {
  constexpr ElementType own = element_type_of<T>::value;
  const auto converted = [&](const Tensor& from, ElementType to) {
    if (from.element_type() == to) return from;
    Tensor made(to, from.shape());
    run.environment().charge(static_cast<int64_t>(made.byte_size()));
    kernels::cast(from.element_type(), to, from.data(), made.mutable_data(), from.size(), {},
                  run.pool());
    return made;
  };
  Tensor given = converted(scores, precision);
  if (graph != nullptr) {
    Value argument(given);
    const std::vector<Value> made = graph->run(run, {&argument, 1});
    const Tensor& result = made.at(0).tensor();
    if (result.element_type() != precision || result.shape() != given.shape()) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("{} must give {}{} as it takes; it gave {}{}", name,
                              name_of(precision), to_string(given.shape()),
                              name_of(result.element_type()), to_string(result.shape())));
    }
    given = result;
  }
  return converted(given, own);
}

template <class T>
void run_with_graphs(RunContext& run, const State& s, const Settings& settings) {
  using Matrix = typename MatrixOf<T>::type;
  constexpr ElementType own = element_type_of<T>::value;
  const kernels::AttentionShape& a = s.shape;
  Tensor scores(own, {a.batch, a.q_heads, a.q_length, a.kv_length});
  run.environment().charge(static_cast<int64_t>(scores.byte_size()));
  multiply(score_batch(a), a.q_length, a.kv_length, a.head_size, a.scale,
           Matrix{s.wide.in<T>(run, 0), a.head_size, 1},
           Matrix{s.wide.in<T>(run, 1), 1, a.head_size}, static_cast<T*>(scores.mutable_data()),
           scratch_at(run, s.products), run.pool());
  scores = through<T>(settings.score_mod.get(), scores, settings.precision, run, "score_mod");
  Tensor probabilities(own, scores.shape());
  run.environment().charge(static_cast<int64_t>(probabilities.byte_size()));
  kernels::softmax(own, scores.data(), probabilities.mutable_data(),
                   a.batch * a.q_heads * a.q_length, a.kv_length, 1, run.pool());
  probabilities =
      through<T>(settings.prob_mod.get(), probabilities, settings.precision, run, "prob_mod");
  multiply(value_batch(a), a.q_length, a.v_head_size, a.kv_length, 1,
           Matrix{static_cast<const T*>(probabilities.data()), a.kv_length, 1},
           Matrix{s.wide.in<T>(run, 2), a.v_head_size, 1}, s.wide.out<T>(run, 0),
           scratch_at(run, s.products), run.pool());
  s.wide.finish<T>(run, 0);
}

template <class T>
std::unique_ptr<Step> make_with_graphs(const Settings& settings) {
  return make_step<State>(
      "flex_attention.graphs",
      [settings](BindContext& bind, State& s) {
        read_sizes(bind, s, settings);
        ScratchPlanner layout;
        s.wide.plan(bind, element_type_of<T>::value, layout);
        s.products = layout.take(product_bytes(s.shape, bind.threads(), T{}));
        bind.need_scratch(layout.bytes());
      },
      [settings](RunContext& run, const State& s) { run_with_graphs<T>(run, s, settings); });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  Settings settings;
  settings.precision = precision_of(ctx, ctx.in_element(0));
  settings.has_scale = ctx.has_attribute("scale");
  if (settings.has_scale) settings.scale = ctx.attr_float("scale");
  const auto &q = ctx.in_type(0).shape, &k = ctx.in_type(1).shape;
  const ValueFacts scores =
      ValueFacts::of(ValueType::tensor(settings.precision, {(*q)[0], (*q)[1], (*q)[2], (*k)[2]}));
  if (const ir::Graph* graph = modifier(ctx, "score_mod"))
    settings.score_mod = ctx.prepare_graph(*graph, {&scores, 1});
  if (const ir::Graph* graph = modifier(ctx, "prob_mod"))
    settings.prob_mod = ctx.prepare_graph(*graph, {&scores, 1});
  const bool wide =
      ctx.in_element(0) == ElementType::float64 || settings.precision == ElementType::float64;
  const bool plain = !settings.score_mod && !settings.prob_mod &&
                     settings.precision == compute_type(settings.precision);
  if (plain) return wide ? make_tiled<double>(settings) : make_tiled<float>(settings);
  return wide ? make_with_graphs<double>(settings) : make_with_graphs<float>(settings);
}

constexpr Operator operators[] = {
    {.name = "FlexAttention", .domain = "ai.onnx.preview", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace flex_attention_unit

std::span<const Operator> flex_attention_operators() { return flex_attention_unit::operators; }

}  // namespace sardonyx::ops
