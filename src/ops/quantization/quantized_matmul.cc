// The internal QuantizedMatMul.
#include <algorithm>

#include "base/checked.h"
#include "kernels/gemm/gemm_int8.h"
#include "ops/internal/checked.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/matmul_shape.h"

namespace sardonyx::ops {
namespace quantized_matmul_unit {
namespace {

using internal::QuantizedMatMul;
using enum QuantizedMatMul::Input;

bool is_transposed(const NodeView& node) {
  return internal::from_node<QuantizedMatMul>(node.node()).trans_b;
}

ElementType result_type(const InferContext& ctx) {
  if (!ctx.has_input(y_scale)) return ElementType::float32;
  return ctx.has_input(y_zero) ? ctx.element(y_zero) : ElementType::uint8;
}

void infer(InferContext& ctx) {
  const ElementType type = result_type(ctx);
  internal::require_same_element(ctx, a_zero, a);
  internal::require_same_element(ctx, b_zero, b);
  if (!is_transposed(ctx)) {
    auto shape = matmul_output(ctx, a, b);
    if (!shape) return ctx.set(0, ValueType::tensor(type));
    return ctx.set(0, type, std::move(*shape));
  }
  if (!ctx.shape(a) || !ctx.shape(b)) return ctx.set(0, ValueType::tensor(type));
  Dims y = *ctx.shape(a);
  const Dims& matrix = *ctx.shape(b);
  if (y.empty() || matrix.size() != 2)
    ctx.fail("a transposed B must be a matrix, A at least a vector");
  ctx.require_equal(y.back(), matrix[1], "the inner dimensions of A and B must agree");
  y.back() = matrix[0];
  ctx.set(0, type, std::move(y));
}

struct Packed {
  Tensor panels, sums;

  std::vector<Tensor> parts() const { return {panels, sums}; }
  static Packed of_parts(std::vector<Tensor> parts) {
    return {std::move(parts.at(0)), std::move(parts.at(1))};
  }
};

int64_t padded(int64_t columns) {
  return (columns + kernels::byte_panel_columns - 1) / kernels::byte_panel_columns *
         kernels::byte_panel_columns;
}

std::shared_ptr<const Pack<Packed>> pack_constant(PrepareContext& ctx, bool transposed) {
  const Tensor* matrix = ctx.constant(b);
  if (matrix == nullptr || matrix->rank() != 2) return nullptr;
  const int64_t K = matrix->shape()[transposed ? 1 : 0], N = matrix->shape()[transposed ? 0 : 1];
  const PackFormat format{.family = PackFamily::byte_matrix,
                          .from = matrix->element_type(),
                          .to = ElementType::int8,
                          .shape = matrix->shape(),
                          .transposed = transposed};
  return ctx.packed<Packed>(
      b, format,
      {{ElementType::int8, kernels::byte_panels_size(N, K)}, {ElementType::int32, padded(N)}},
      [given = *matrix, transposed, K, N](ThreadPool& pool) {
        Packed made{Tensor(ElementType::int8, Shape{kernels::byte_panels_size(N, K)}),
                    Tensor(ElementType::int32, Shape{padded(N)})};
        kernels::pack_byte_panels(given.element_type(), given.data(), transposed ? 1 : N,
                                  transposed ? K : 1, K, N,
                                  static_cast<int8_t*>(made.panels.mutable_data()),
                                  static_cast<int32_t*>(made.sums.mutable_data()), pool);
        return made;
      });
}

struct State {
  MatMulPlan plan;
  int64_t rows = 0, row_sums = 0;         // scratch: A
  int64_t panels = -1, column_sums = -1;  // and B, where it is no constant
  int64_t term = 0, factor = 0, scale = 0, bias = 0;
};

// `columns`: -1 where there may be one value only.
void require_count(const BindContext& bind, int i, int64_t columns, std::string_view what) {
  if (!bind.has_input(i) || bind.in_size(i) == 1 || bind.in_size(i) == columns) return;
  throw Error(ErrorCode::run_failed, fmt::format("{} must have one value{}; its shape is {}", what,
                                                 columns >= 0 ? " or one for each column" : "",
                                                 to_string(bind.in_shape(i))));
}

void bind_product(BindContext& bind, State& s, bool transposed, bool packed) {
  Shape matrix(bind.in_shape(b).begin(), bind.in_shape(b).end());
  if (transposed) std::swap(matrix.at(0), matrix.at(1));
  s.plan = plan_matmul(bind.in_shape(a), matrix);
  const int64_t M = s.plan.M, N = s.plan.N, K = s.plan.K;
  for (const int i : {a_scale, a_zero, y_scale, y_zero})
    require_count(bind, i, -1, "A's and Y's scales and zero points");
  for (const int i : {b_scale, b_zero, bias})
    require_count(bind, i, N, "B's scale and zero point and the bias");
  ScratchPlanner layout;
  s.rows = layout.take(M * 4 * kernels::vnni_groups(K));
  s.row_sums = layout.take(M * 4);
  s.panels = packed ? -1 : layout.take(kernels::byte_panels_size(N, K));
  s.column_sums = packed ? -1 : layout.take(padded(N) * 4);
  for (int64_t* at : {&s.term, &s.factor, &s.scale, &s.bias}) *at = layout.take(padded(N) * 4);
  bind.need_scratch(layout.bytes());
}

int32_t byte_at(const RunContext& run, int i, int64_t k) {
  if (!run.has_input(i)) return 0;
  if (run.in_size(i) == 1) k = 0;
  return run.in_type(i) == ElementType::int8 ? run.in<int8_t>(i)[k] : run.in<uint8_t>(i)[k];
}
float float_at(const RunContext& run, int i, int64_t k) {
  return run.in<float>(i)[run.in_size(i) == 1 ? 0 : k];
}

template <class T>
T* memory(const RunContext& run, int64_t at) {
  return reinterpret_cast<T*>(scratch_at(run, at));
}

// Everything but what depends on the matrix itself; sums of the columns make the terms.
kernels::ByteFinish plan_finish(const RunContext& run, const State& s, const int32_t* sums) {
  const int64_t N = s.plan.N;
  auto* term = memory<int32_t>(run, s.term);
  auto* factor = memory<int32_t>(run, s.factor);
  auto* scale = memory<float>(run, s.scale);
  auto* added = memory<float>(run, s.bias);
  const bool quantizes = run.has_input(y_scale);
  const float step = quantizes ? *run.in<float>(y_scale) : 1.0f;
  const int32_t zero = byte_at(run, a_zero, 0) + kernels::sign_offset(run.in_type(a), false);
  const int32_t offset = kernels::sign_offset(run.in_type(b), true);
  bool factors = false;
  for (int64_t j = 0; j < padded(N); ++j) {
    const int64_t at = std::min(j, N - 1);
    factor[j] = byte_at(run, b_zero, at) + offset;
    factors |= factor[j] != 0;
    const auto product = static_cast<uint32_t>(s.plan.K) * static_cast<uint32_t>(factor[j]);
    term[j] = static_cast<int32_t>(static_cast<uint32_t>(zero) *
                                   (product - static_cast<uint32_t>(sums[at])));
    scale[j] = *run.in<float>(a_scale) * float_at(run, b_scale, at) / step;
    if (run.has_input(bias)) added[j] = float_at(run, bias, at) / step;
  }
  kernels::ByteFinish how;
  how.term = term, how.factor = factors ? factor : nullptr, how.scale = scale;
  how.bias = run.has_input(bias) ? added : nullptr;
  how.each = true;
  how.type = run.out_type(0), how.zero = byte_at(run, y_zero, 0);
  return how;
}

void run_product(RunContext& run, const State& s, const Packed* packed, bool transposed) {
  const MatMulPlan& p = s.plan;
  if (p.M == 0 || p.N == 0) return;
  auto* rows = memory<uint8_t>(run, s.rows);
  auto* row_sums = memory<int32_t>(run, s.row_sums);
  const int64_t size = byte_size(run.out_type(0), 1);
  bool factors = kernels::sign_offset(run.in_type(b), true) != 0;
  for (int64_t j = 0; run.has_input(b_zero) && j < run.in_size(b_zero); ++j)
    factors |= byte_at(run, b_zero, j) != 0;
  for (int64_t i = 0; i < p.batch.count(); ++i) {
    int64_t rest = i, at_a = 0, at_b = 0, at_y = 0;
    for (int d = p.batch.rank - 1; d >= 0; --d) {
      const int64_t at = rest % p.batch.size[d];
      rest /= p.batch.size[d];
      at_a += at * p.batch.a_stride[d], at_b += at * p.batch.b_stride[d],
          at_y += at * p.batch.c_stride[d];
    }
    kernels::pack_byte_rows(run.in_type(a), run.in<uint8_t>(a) + at_a, p.M, p.K, rows,
                            factors ? row_sums : nullptr, run.pool());
    const int8_t* panels = packed ? static_cast<const int8_t*>(packed->panels.data()) : nullptr;
    const int32_t* sums = packed ? static_cast<const int32_t*>(packed->sums.data()) : nullptr;
    if (!packed) {
      auto* made = memory<int8_t>(run, s.panels);
      auto* made_sums = memory<int32_t>(run, s.column_sums);
      kernels::pack_byte_panels(run.in_type(b), run.in<uint8_t>(b) + at_b, transposed ? 1 : p.N,
                                transposed ? p.K : 1, p.K, p.N, made, made_sums, run.pool());
      panels = made, sums = made_sums;
    }
    const kernels::ByteFinish how = plan_finish(run, s, sums);
    kernels::byte_product(rows, row_sums, p.M, p.N, p.K, panels, how,
                          static_cast<std::byte*>(run.out_data(0)) + at_y * size, run.pool());
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const bool transposed = is_transposed(ctx);
  const auto packed = pack_constant(ctx, transposed);
  auto step = make_step<State>(
      packed ? "quantized_matmul.packed" : "quantized_matmul",
      [transposed, has = packed != nullptr](BindContext& bind, State& s) {
        bind_product(bind, s, transposed, has);
      },
      [packed, transposed](RunContext& run, const State& s) {
        run_product(run, s, packed ? &packed->get(run.pool()) : nullptr, transposed);
      });
  if (packed) step->traits().unread_inputs = {b};
  return step;
}

constexpr Operator operators[] = {{.name = QuantizedMatMul::name,
                                   .domain = internal::domain,
                                   .infer = internal::infer_checked<QuantizedMatMul, infer>,
                                   .prepare = prepare}};

}  // namespace
}  // namespace quantized_matmul_unit

std::span<const Operator> quantized_matmul_operators() { return quantized_matmul_unit::operators; }

}  // namespace sardonyx::ops
