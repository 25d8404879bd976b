// Gemm, and its internal form.
#include "kernels/gemm/gemm.h"
#include "base/checked.h"
#include "kernels/gemm/matmul_any.h"
#include "ops/internal/checked.h"
#include "ops/internal/products.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace gemm_unit {
namespace {

using internal::Gemm;

void infer(InferContext& ctx) {
  const Gemm gemm = internal::gemm_of(ctx);
  const auto& a = ctx.shape(Gemm::a);
  const auto& b = ctx.shape(Gemm::b);
  for (int i = 0; i < 2; ++i) {
    if (ctx.shape(i) && *ctx.rank(i) != 2)
      ctx.fail("{} must be a matrix; its shape is {}", ctx.input_name(i),
               ir::to_string(*ctx.shape(i)));
  }
  const size_t trans_a = gemm.trans_a, trans_b = gemm.trans_b;
  if (a && b)
    ctx.require_equal((*a)[1 - trans_a], (*b)[trans_b],
                      "the inner dimensions of A and B must agree");
  const Dim rows = a ? (*a)[trans_a] : ctx.unknown(),
            columns = b ? (*b)[1 - trans_b] : ctx.unknown();
  if (ctx.has_input(Gemm::c) && ctx.shape(Gemm::c) && a && b) {
    const auto& c = *ctx.shape(Gemm::c);
    const Dims output{rows, columns};
    if (c.size() > 2)
      ctx.fail("C must have at most two dimensions; its shape is {}", ir::to_string(c));
    for (size_t back = 1; back <= c.size(); ++back) {
      const Dim& dim = c[c.size() - back];
      if (dim == 1) continue;
      ctx.broadcast(output, c);
      if (dim.is_constant())
        ctx.require_equal(dim, output[2 - back], "C must broadcast to the product's shape");
    }
  }
  ctx.set(0, ctx.element(0), {rows, columns});
}

// How C meets the product.
enum class Addend : int32_t { none, scalar, per_column, per_row, full };

struct State {
  int64_t M = 0, N = 0, K = 0;
  int64_t a_row = 0, a_column = 1, b_row = 0, b_column = 1;
  Addend addend = Addend::none;
  int64_t c_row = 0, c_column = 0;
  int64_t spread = -1;  // scratch for a scalar C, repeated along the columns
  int64_t scratch = 0;
  ConvertedArguments wide;
};

void bind_sizes(BindContext& bind, State& s, const Gemm& settings) {
  const auto a = bind.in_shape(Gemm::a), b = bind.in_shape(Gemm::b);
  s.M = a[settings.trans_a ? 1 : 0], s.K = a[settings.trans_a ? 0 : 1],
  s.N = b[settings.trans_b ? 0 : 1];
  s.a_row = settings.trans_a ? 1 : s.K, s.a_column = settings.trans_a ? s.M : 1;
  s.b_row = settings.trans_b ? 1 : s.N, s.b_column = settings.trans_b ? s.K : 1;
  s.addend = Addend::none;
  if (!bind.has_input(Gemm::c) || settings.beta == 0) return;
  const auto c = bind.in_shape(Gemm::c);
  const int64_t rows = c.size() > 1 ? c[0] : 1, columns = c.empty() ? 1 : c.back();
  if ((rows != 1 && rows != s.M) || (columns != 1 && columns != s.N)) {
    throw Error(ErrorCode::bad_input,
                fmt::format("C of shape {} does not broadcast to [{},{}]", to_string(c), s.M, s.N));
  }
  s.c_row = rows == 1 ? 0 : columns, s.c_column = columns == 1 ? 0 : 1;
  if (columns == s.N) {
    s.addend = rows == 1 ? Addend::per_column : Addend::full;
  } else {
    s.addend = rows == s.M ? Addend::per_row : Addend::scalar;
  }
}

// Scratch the epilogue needs beside the product's own.
void bind_epilogue(BindContext& bind, State& s, ScratchPlanner& layout) {
  s.wide.plan_in(bind, Gemm::a, ElementType::float32, layout);
  s.wide.plan_in(bind, Gemm::c, ElementType::float32, layout);
  s.wide.plan_out(bind, 0, ElementType::float32, layout);
  if (s.addend == Addend::scalar) s.spread = layout.take(s.N * 4);
}

kernels::Epilogue at_run(const RunContext& run, const State& s, const Gemm& settings) {
  kernels::Epilogue epilogue = settings.activation.epilogue();
  epilogue.alpha = settings.alpha, epilogue.beta = settings.beta;
  if (s.addend == Addend::none) return epilogue;
  const float* c = s.wide.in<float>(run, Gemm::c);
  if (s.addend == Addend::full) {
    epilogue.residual = c, epilogue.residual_stride = s.N;
    return epilogue;
  }
  epilogue.bias_axis =
      s.addend == Addend::per_row ? kernels::BiasAxis::row : kernels::BiasAxis::column;
  epilogue.bias = c;
  if (s.addend == Addend::scalar) {
    float* spread = reinterpret_cast<float*>(scratch_at(run, s.spread));
    for (int64_t i = 0; i < s.N; ++i) spread[i] = c[0];
    epilogue.bias = spread;
  }
  return epilogue;
}

std::unique_ptr<Step> prepare_packed(PrepareContext& ctx, const Gemm& settings) {
  const Tensor& b = *ctx.constant(Gemm::b);
  const int64_t K = b.shape()[settings.trans_b ? 1 : 0], N = b.shape()[settings.trans_b ? 0 : 1];
  const auto packed = pack_matrix(ctx, Gemm::b, K, N, settings.trans_b);
  const ElementType type = packed_type(b.element_type());
  auto step = make_step<State>(
      "gemm.packed",
      [settings, type](BindContext& bind, State& s) {
        ScratchPlanner layout;
        bind_sizes(bind, s, settings);
        bind_epilogue(bind, s, layout);
        s.scratch = layout.take(
            kernels::gemm_packed_b_scratch_bytes(s.M, s.N, s.K, s.a_row, bind.threads(), type));
        bind.need_scratch(layout.bytes());
      },
      [packed, type, settings](RunContext& run, const State& s) {
        kernels::gemm_packed_b(s.M, s.N, s.K, s.wide.in<float>(run, Gemm::a), s.a_row,
                               {packed->get(run.pool()).data(), type}, s.wide.out<float>(run, 0),
                               s.N, at_run(run, s, settings), scratch_at(run, s.scratch),
                               run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {Gemm::b};
  return step;
}

// The product of few rows reads B once, as it lies in the file: packing would only cost memory.
bool reads_in_place(const PrepareContext& ctx, const Gemm& settings) {
  constexpr int64_t few_rows = 4;
  const Tensor& b = *ctx.constant(Gemm::b);
  const auto& a = ctx.in_type(Gemm::a).shape;
  const auto rows = a && !a->empty() ? a->front().value() : std::nullopt;
  return settings.trans_b && rows && *rows <= few_rows &&
         b.element_type() == ElementType::float32 &&
         ctx.in_element(Gemm::a) == ElementType::float32;
}

std::unique_ptr<Step> prepare_in_place(PrepareContext& ctx, const Gemm& settings) {
  auto step = make_step<State>(
      "gemm.in_place",
      [settings](BindContext& bind, State& s) {
        ScratchPlanner layout;
        bind_sizes(bind, s, settings);
        bind_epilogue(bind, s, layout);
        s.scratch = layout.take(
            kernels::gemm_scratch_bytes(s.M, s.N, s.K, {nullptr, s.a_row, s.a_column},
                                        {nullptr, s.b_row, s.b_column}, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [weights = *ctx.constant(Gemm::b), settings](RunContext& run, const State& s) {
        kernels::gemm(s.M, s.N, s.K, {s.wide.in<float>(run, Gemm::a), s.a_row, s.a_column},
                      {static_cast<const float*>(weights.data()), s.b_row, s.b_column},
                      s.wide.out<float>(run, 0), s.N, at_run(run, s, settings),
                      scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
  step->traits().unread_inputs = {Gemm::b};
  return step;
}

std::unique_ptr<Step> prepare_float(const Gemm& settings) {
  return make_step<State>(
      "gemm.float",
      [settings](BindContext& bind, State& s) {
        ScratchPlanner layout;
        bind_sizes(bind, s, settings);
        bind_epilogue(bind, s, layout);
        s.wide.plan_in(bind, Gemm::b, ElementType::float32, layout);
        s.scratch = layout.take(
            kernels::gemm_scratch_bytes(s.M, s.N, s.K, {nullptr, s.a_row, s.a_column},
                                        {nullptr, s.b_row, s.b_column}, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [settings](RunContext& run, const State& s) {
        kernels::gemm(s.M, s.N, s.K, {s.wide.in<float>(run, Gemm::a), s.a_row, s.a_column},
                      {s.wide.in<float>(run, Gemm::b), s.b_row, s.b_column},
                      s.wide.out<float>(run, 0), s.N, at_run(run, s, settings),
                      scratch_at(run, s.scratch), run.pool());
        s.wide.finish<float>(run, 0);
      });
}

std::unique_ptr<Step> prepare_any(PrepareContext& ctx, const Gemm& settings) {
  const ElementType type = ctx.in_element(Gemm::a);
  if (!kernels::supports_matmul_any(type))
    ctx.fail(ErrorCode::unsupported, "no product of {} matrices", name_of(type));
  if (!settings.activation.is_none()) {
    ctx.fail(ErrorCode::unsupported, "no fused activation for {}", name_of(type));
  }
  return make_step<State>(
      "gemm.any", [settings](BindContext& bind, State& s) { bind_sizes(bind, s, settings); },
      [type, settings](RunContext& run, const State& s) {
        kernels::matmul_any(type, {}, s.M, s.N, s.K, {run.data(Gemm::a), s.a_row, s.a_column},
                            {run.data(Gemm::b), s.b_row, s.b_column}, run.out_data(0), s.N,
                            run.pool());
        const void* c = s.addend == Addend::none ? nullptr : run.data(Gemm::c);
        kernels::scale_and_add(type, s.M, s.N, settings.alpha, settings.beta, c, s.c_row,
                               s.c_column, run.out_data(0), run.pool());
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Gemm settings = internal::gemm_of(ctx);
  if (!computes_in_float(ctx.in_element(Gemm::a))) return prepare_any(ctx, settings);
  const Tensor* b = ctx.constant(Gemm::b);
  if (b != nullptr && b->rank() == 2 && b->size() > 0 && !settings.trans_a) {
    return reads_in_place(ctx, settings) ? prepare_in_place(ctx, settings)
                                         : prepare_packed(ctx, settings);
  }
  ctx.refuse("gemm.packed", settings.trans_a ? "A is transposed" : "B is not constant");
  return prepare_float(settings);
}

// Up to version 6 an attribute said whether C broadcasts; numpy's rule includes what it meant.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() < 7) ctx.remove_attribute("broadcast");
}

constexpr Operator operators[] = {
    {.name = Gemm::name, .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 7},
    {.name = Gemm::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<Gemm, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace gemm_unit

std::span<const Operator> gemm_operators() { return gemm_unit::operators; }

}  // namespace sardonyx::ops
