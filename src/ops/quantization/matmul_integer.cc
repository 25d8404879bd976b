// MatMulInteger and QLinearMatMul.
#include <algorithm>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/gemm/integer.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/matmul_shape.h"

namespace sardonyx::ops {
namespace matmul_integer_unit {
namespace {

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

// Scales and zero points: one value, or one for each row of A (column of B).
enum class Each : int32_t { all, row, column };

Each parameter_kind(const BindContext& bind, int i, int64_t wanted, Each each) {
  const int64_t count = bind.in_size(i);
  if (count == 1) return Each::all;
  if (count == wanted) return each;
  throw Error(ErrorCode::unsupported,
              fmt::format("a scale or zero point of shape {}: one value or {} are supported",
                          to_string(bind.in_shape(i)), wanted));
}

void read_zero(const RunContext& run, int i, int32_t* to) {
  for (int64_t k = 0; k < run.in_size(i); ++k) {
    to[k] = run.in_type(i) == ElementType::int8 ? run.in<int8_t>(i)[k] : run.in<uint8_t>(i)[k];
  }
}

struct Operands {
  int a, b, a_zero, b_zero;
};
constexpr Operands plain{0, 1, 2, 3};
constexpr Operands scaled{0, 3, 2, 5};

struct State {
  MatMulPlan plan;
  Each a_zero = Each::all, b_zero = Each::all;
  Each a_scale = Each::all, b_scale = Each::all, y_scale = Each::all, y_zero = Each::all;
  int64_t rows = 0, panels = 0, sums = 0;                 // scratch
  int64_t zero_a = 0, zero_b = 0, zero_y = 0, scale = 0;  // scratch for parameters
};

void bind_product(BindContext& bind, State& s, const Operands& o, ScratchPlanner& layout,
                  bool panels_packed) {
  s.plan = plan_matmul(bind.in_shape(o.a), bind.in_shape(o.b));
  const MatMulPlan& p = s.plan;
  const auto zero = [&](int i, int64_t wanted, Each each, int64_t& at) {
    if (!bind.has_input(i)) return Each::all;
    at = layout.take(bind.in_size(i) * 4);
    return parameter_kind(bind, i, wanted, each);
  };
  s.a_zero = zero(o.a_zero, p.M, Each::row, s.zero_a);
  s.b_zero = zero(o.b_zero, p.N, Each::column, s.zero_b);
  s.rows = layout.take(kernels::integer_rows_size(p.M, p.K) * 2);
  s.panels = panels_packed ? -1 : layout.take(kernels::integer_panels_size(p.N, p.K) * 2);
}

// Where the matrices of one product of the batch begin, in elements.
struct Offsets {
  int64_t a = 0, b = 0, c = 0;
};
Offsets offsets_of(const kernels::GemmBatch& batch, int64_t i) {
  Offsets offsets;
  for (int d = batch.rank - 1; d >= 0; --d) {
    const int64_t at = i % batch.size[d];
    i /= batch.size[d];
    offsets.a += at * batch.a_stride[d], offsets.b += at * batch.b_stride[d],
        offsets.c += at * batch.c_stride[d];
  }
  return offsets;
}

// Calls finish(sums, offset of the output) for each product. `packed`: the panels of a constant B.
template <class Sums, class Finish>
void multiply(RunContext& run, const State& s, const Operands& o, const int16_t* packed,
              Sums&& sums_at, Finish&& finish) {
  const MatMulPlan& p = s.plan;
  auto* rows = reinterpret_cast<int16_t*>(scratch_at(run, s.rows));
  auto* a_zero = reinterpret_cast<int32_t*>(scratch_at(run, s.zero_a));
  auto* b_zero = reinterpret_cast<int32_t*>(scratch_at(run, s.zero_b));
  if (run.has_input(o.a_zero))
    read_zero(run, o.a_zero, a_zero);
  else
    a_zero = nullptr;
  if (run.has_input(o.b_zero) && !packed)
    read_zero(run, o.b_zero, b_zero);
  else
    b_zero = nullptr;
  for (int64_t i = 0; i < p.batch.count(); ++i) {
    const Offsets at = offsets_of(p.batch, i);
    kernels::pack_integer_rows(run.in_type(o.a), run.in<uint8_t>(o.a) + at.a, p.K, 1, p.M, p.K,
                               a_zero, s.a_zero == Each::row, rows, run.pool());
    const int16_t* panels = packed;
    if (!packed) {
      auto* made = reinterpret_cast<int16_t*>(scratch_at(run, s.panels));
      kernels::pack_integer_panels(run.in_type(o.b), run.in<uint8_t>(o.b) + at.b, p.N, 1, p.K, p.N,
                                   b_zero, s.b_zero == Each::column, made, run.pool());
      panels = made;
    }
    int32_t* sums = sums_at(at.c);
    kernels::integer_product(rows, p.M, p.K, panels, p.N, sums, p.N, run.pool());
    finish(sums, at.c);
  }
}

using Packed = std::shared_ptr<const Pack<Tensor>>;

// The panels of a constant matrix whose zero point is constant too.
Packed pack_constant(PrepareContext& ctx, const Operands& o) {
  const Tensor* b = ctx.constant(o.b);
  const Tensor* zero = ctx.constant(o.b_zero);
  if (b == nullptr || b->rank() != 2 || (ctx.has_input(o.b_zero) && zero == nullptr))
    return nullptr;
  const int64_t K = b->shape()[0], N = b->shape()[1];
  if (zero && zero->size() != 1 && zero->size() != N) return nullptr;
  std::vector<int32_t> zeros;
  for (int64_t i = 0; zero && i < zero->size(); ++i) {
    zeros.push_back(zero->element_type() == ElementType::int8
                        ? static_cast<const int8_t*>(zero->data())[i]
                        : static_cast<const uint8_t*>(zero->data())[i]);
  }
  const PackFormat format{.family = PackFamily::integer_matrix,
                          .from = b->element_type(),
                          .to = ElementType::int16,
                          .shape = b->shape(),
                          .parameters = parameters_of(zeros)};
  const int64_t size = kernels::integer_panels_size(N, K);
  return ctx.packed<Tensor>(o.b, format, {{ElementType::int16, size}},
                            [matrix = *b, zeros, K, N, size](ThreadPool& pool) {
                              Tensor made(ElementType::int16, Shape{size});
                              kernels::pack_integer_panels(
                                  matrix.element_type(), matrix.data(), N, 1, K, N,
                                  zeros.empty() ? nullptr : zeros.data(), zeros.size() > 1,
                                  static_cast<int16_t*>(made.mutable_data()), pool);
                              return made;
                            });
}

const int16_t* panels_of(const RunContext& run, const Packed& packed) {
  return packed ? static_cast<const int16_t*>(packed->get(run.pool()).data()) : nullptr;
}

void infer_plain(InferContext& ctx) {
  auto shape = matmul_output(ctx, 0, 1);
  if (!shape) return ctx.set(0, ValueType::tensor(ElementType::int32));
  ctx.set(0, ElementType::int32, std::move(*shape));
}

std::unique_ptr<Step> prepare_plain(PrepareContext& ctx) {
  const Packed packed = pack_constant(ctx, plain);
  auto step = make_step<State>(
      "matmul_integer",
      [has = packed != nullptr](BindContext& bind, State& s) {
        ScratchPlanner layout;
        bind_product(bind, s, plain, layout, has);
        bind.need_scratch(layout.bytes());
      },
      [packed](RunContext& run, const State& s) {
        multiply(
            run, s, plain, panels_of(run, packed),
            [&](int64_t at) { return run.out<int32_t>(0) + at; }, [](int32_t*, int64_t) {});
      });
  if (packed) step->traits().unread_inputs = {1};
  return step;
}

void infer_scaled(InferContext& ctx) {
  auto shape = matmul_output(ctx, 0, 3);
  if (!shape) return ctx.set(0, ValueType::tensor(ctx.element(7)));
  ctx.set(0, ctx.element(7), std::move(*shape));
}

// scale[i][j] = a_scale * b_scale / y_scale, one row of columns for each row that needs its own.
float scale_at(const RunContext& run, int i, int64_t k) {
  float value;
  kernels::to_floats(run.in_type(i),
                     static_cast<const std::byte*>(run.data(i)) + byte_size(run.in_type(i), k),
                     &value, 1);
  return value;
}

void requantize_all(const RunContext& run, const State& s, const int32_t* sums, int64_t offset) {
  const MatMulPlan& p = s.plan;
  auto* scale = reinterpret_cast<float*>(scratch_at(run, s.scale));
  auto* zero = reinterpret_cast<int32_t*>(scratch_at(run, s.zero_y));
  read_zero(run, 7, zero);
  const bool by_column = s.b_scale == Each::column;
  const int64_t columns = by_column ? p.N : 1;
  for (int64_t i = 0; i < p.M; ++i) {
    const bool same_row = i > 0 && s.a_scale == Each::all && s.y_scale == Each::all;
    if (!same_row) {
      const float a = scale_at(run, 1, s.a_scale == Each::row ? i : 0),
                  y = scale_at(run, 6, s.y_scale == Each::row ? i : 0);
      for (int64_t j = 0; j < columns; ++j) scale[j] = a * scale_at(run, 4, j) / y;
    }
    kernels::Requantize how;
    how.scale = scale, how.scale_column = by_column ? 1 : 0;
    how.zero = zero + (s.y_zero == Each::row ? i : 0);
    kernels::requantize(run.out_type(0), how, sums + i * p.N, p.N, 1, p.N,
                        run.out<uint8_t>(0) + offset + i * p.N, p.N);
  }
}

void bind_scaled(BindContext& bind, State& s, bool has) {
  ScratchPlanner layout;
  bind_product(bind, s, scaled, layout, has);
  const MatMulPlan& p = s.plan;
  s.a_scale = parameter_kind(bind, 1, p.M, Each::row);
  s.b_scale = parameter_kind(bind, 4, p.N, Each::column);
  s.y_scale = parameter_kind(bind, 6, p.M, Each::row);
  s.y_zero = parameter_kind(bind, 7, p.M, Each::row);
  s.zero_y = layout.take(bind.in_size(7) * 4);
  s.scale = layout.take(p.N * 4);
  s.sums = layout.take(p.M * p.N * 4);
  bind.need_scratch(layout.bytes());
}

// float8 operands: (a - zero) * (b - zero) in float, then the scales.
struct FloatState {
  MatMulPlan plan;
  int64_t a = 0, b = 0, sums = 0, scratch = 0;
};

void load_floats(const RunContext& run, int i, int zero, float* to) {
  kernels::cast(run.in_type(i), ElementType::float32, run.data(i), to, run.in_size(i), {},
                run.pool());
  const float offset = scale_at(run, zero, 0);
  for (int64_t k = 0; offset != 0 && k < run.in_size(i); ++k) to[k] -= offset;
}

std::unique_ptr<Step> prepare_float8() {
  return make_step<FloatState>(
      "matmul_scaled.float8",
      [](BindContext& bind, FloatState& s) {
        for (const int i : {1, 2, 4, 5, 6, 7}) {
          if (bind.in_size(i) != 1)
            throw Error(ErrorCode::unsupported, "float8 products with scales by row or column");
        }
        ScratchPlanner layout;
        s.plan = plan_matmul(bind.in_shape(0), bind.in_shape(3));
        const MatMulPlan& p = s.plan;
        s.a = layout.take(bind.in_size(0) * 4), s.b = layout.take(bind.in_size(3) * 4),
        s.sums = layout.take(bind.out_size(0) * 4);
        s.scratch = layout.take(kernels::batched_gemm_scratch_bytes(
            p.batch, p.M, p.N, p.K, {nullptr, p.lda, 1}, {nullptr, p.ldb, 1}, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const FloatState& s) {
        const MatMulPlan& p = s.plan;
        const auto at = [&](int64_t offset) {
          return reinterpret_cast<float*>(scratch_at(run, offset));
        };
        load_floats(run, 0, 2, at(s.a));
        load_floats(run, 3, 5, at(s.b));
        kernels::Epilogue epilogue;
        epilogue.alpha = scale_at(run, 1, 0) * scale_at(run, 4, 0) / scale_at(run, 6, 0);
        kernels::batched_gemm(p.batch, p.M, p.N, p.K, {at(s.a), p.lda, 1}, {at(s.b), p.ldb, 1},
                              at(s.sums), p.N, epilogue, at(s.scratch), run.pool());
        const float zero = scale_at(run, 7, 0);
        for (int64_t i = 0; zero != 0 && i < run.out_size(0); ++i) at(s.sums)[i] += zero;
        kernels::cast(ElementType::float32, run.out_type(0), at(s.sums), run.out_data(0),
                      run.out_size(0), {}, run.pool());
      });
}

std::unique_ptr<Step> prepare_scaled(PrepareContext& ctx) {
  if (!is_byte(ctx.in_element(0)) || !is_byte(ctx.in_element(3)) || !is_byte(ctx.out_element(0)))
    return prepare_float8();
  const Packed packed = pack_constant(ctx, scaled);
  auto step = make_step<State>(
      "matmul_scaled",
      [has = packed != nullptr](BindContext& bind, State& s) { bind_scaled(bind, s, has); },
      [packed](RunContext& run, const State& s) {
        multiply(
            run, s, scaled, panels_of(run, packed),
            [&](int64_t) { return reinterpret_cast<int32_t*>(scratch_at(run, s.sums)); },
            [&](const int32_t* sums, int64_t offset) { requantize_all(run, s, sums, offset); });
      });
  if (packed) step->traits().unread_inputs = {3};
  return step;
}

constexpr Operator operators[] = {
    {.name = "MatMulInteger", .infer = infer_plain, .prepare = prepare_plain},
    {.name = "QLinearMatMul", .infer = infer_scaled, .prepare = prepare_scaled},
};

}  // namespace
}  // namespace matmul_integer_unit

std::span<const Operator> matmul_integer_operators() { return matmul_integer_unit::operators; }

}  // namespace sardonyx::ops
