// com.microsoft: MatMulNBits and MatMulBnb4.
#include <algorithm>
#include <array>

#include "base/checked.h"
#include "kernels/gemm/nbits.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace contrib_matmul_nbits_unit {
namespace {

using kernels::NBitsMatrix;

bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// Sizes beyond this are no matrix that memory could hold, and their products might overflow.
void require_holdable(const NodeView& node, int64_t k, int64_t n) {
  const auto count = checked_mul(k, n);
  if (!count || *count > int64_t{1} << 44) node.fail("K {} times N {} is too large", k, n);
}

int64_t positive(const NodeView& node, std::string_view name) {
  const int64_t value = node.attr_int(name);
  if (value < 1 || value > (int64_t{1} << 40))
    node.fail("attribute '{}' must be at least 1 and at most 2^40; got {}", name, value);
  return value;
}

// What the attributes say of the matrix.
NBitsMatrix read_matrix(const NodeView& node) {
  NBitsMatrix b;
  b.k = positive(node, "K"), b.n = positive(node, "N"), b.block = positive(node, "block_size");
  const int64_t bits = node.attr_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) node.fail("bits must be 2, 4 or 8; got {}", bits);
  b.bits = static_cast<int>(bits);
  if (!is_power_of_two(b.block) || b.block < 16)
    node.fail("block_size must be a power of two from 16 on; got {}", b.block);
  if (b.block > int64_t{1} << 20) node.fail("block_size {} is too large", b.block);
  require_holdable(node, b.k, b.n);
  if (node.attr_int("weight_prepacked", 0) != 0)
    node.fail(ErrorCode::unsupported, "weights packed for a GPU (weight_prepacked)");
  return b;
}

void require_count(InferContext& ctx, int i, int64_t wanted) {
  if (const auto count = ctx.type(i).element_count(); ctx.has_input(i) && count)
    ctx.require_equal(*count, Dim(wanted),
                      fmt::format("{} must have {} elements for N, K, bits and block_size",
                                  ctx.input_name(i), wanted));
}

// A's last dimension becomes `columns`.
void infer_rows(InferContext& ctx, int64_t k, int64_t columns) {
  if (!ctx.shape(0)) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  Dims y = *ctx.shape(0);
  if (y.empty()) ctx.fail("{} must have a dimension or more", ctx.input_name(0));
  ctx.require_equal(y.back(), Dim(k), "the last dimension of A must be K");
  y.back() = Dim(columns);
  ctx.set(0, ctx.element(0), std::move(y));
}

int64_t zero_bytes(const NBitsMatrix& b) { return (b.blocks() * b.bits + 7) / 8; }

void infer_nbits(InferContext& ctx) {
  const NBitsMatrix b = read_matrix(ctx);
  require_count(ctx, 1, b.n * b.column_bytes());
  require_count(ctx, 2, b.n * b.blocks());
  const bool packed = ctx.element(3) == ElementType::uint8;
  require_count(ctx, 3, b.n * (packed ? zero_bytes(b) : b.blocks()));
  require_count(ctx, 5, b.n);
  if (const auto count = ctx.type(4).element_count(); ctx.has_input(4) && count) {
    ctx.require_at_least(*count, Dim(b.k), "g_idx must have one number for each of the K rows");
  }
  infer_rows(ctx, b.k, b.n);
}

// Packed zero points, one a byte.
void unpack_zeros(const NBitsMatrix& b, const uint8_t* packed, uint8_t* out, ThreadPool& pool) {
  const int64_t per_byte = 8 / b.bits, blocks = b.blocks(), row = zero_bytes(b);
  const int mask = (1 << b.bits) - 1;
  constexpr int64_t task = 16384;  // zero points
  pool.parallel_for(b.n, std::max<int64_t>(1, task / std::max<int64_t>(1, blocks)),
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t j = begin; j < end; ++j) {
                        for (int64_t i = 0; i < blocks; ++i) {
                          const int byte = packed[j * row + i / per_byte];
                          out[j * blocks + i] =
                              static_cast<uint8_t>(byte >> (i % per_byte * b.bits) & mask);
                        }
                      }
                    });
}

struct State {
  int64_t m = 0;
  int64_t scales = -1, zeros = -1, scratch = 0;
  ConvertedArguments wide;
};

struct Constants {
  std::shared_ptr<const Pack<Tensor>> zeros;  // unpacked
};

Constants read_constants(PrepareContext& ctx, const NBitsMatrix& b) {
  Constants constants;
  const Tensor* zeros = ctx.constant(3);
  if (zeros == nullptr || zeros->element_type() != ElementType::uint8) return constants;
  const int64_t count = b.n * b.blocks();
  const PackFormat format{.family = PackFamily::nbits_zero_points,
                          .from = ElementType::uint8,
                          .to = ElementType::uint8,
                          .shape = {b.n, b.blocks()},
                          .bits = b.bits};
  constants.zeros = ctx.packed<Tensor>(
      3, format, {{ElementType::uint8, count}}, [b, count, given = *zeros](ThreadPool& pool) {
        Tensor made(ElementType::uint8, Shape{count});
        unpack_zeros(b, static_cast<const uint8_t*>(given.data()),
                     static_cast<uint8_t*>(made.mutable_data()), pool);
        return made;
      });
  return constants;
}

void bind_nbits(BindContext& bind, State& s, NBitsMatrix b, bool zeros_ready) {
  ScratchPlanner layout;
  const int64_t sizes[] = {b.n * b.column_bytes(), b.n * b.blocks()};
  for (int i = 1; i < 3; ++i) {
    if (bind.in_size(i) != sizes[i - 1])
      throw Error(ErrorCode::run_failed,
                  "the weights or scales have another size than N, K, bits "
                  "and block_size say");
  }
  const bool packed = bind.has_input(3) && bind.in_type(3) == ElementType::uint8;
  if (bind.has_input(3) && bind.in_size(3) != (packed ? b.n * zero_bytes(b) : b.n * b.blocks()))
    throw Error(ErrorCode::run_failed, "the zero points have another size than the blocks need");
  if ((bind.has_input(4) && bind.in_size(4) < b.k) || (bind.has_input(5) && bind.in_size(5) != b.n))
    throw Error(ErrorCode::run_failed, "g_idx must have K elements and bias N");
  s.m = bind.in_size(0) / b.k;
  for (const int i : {0, 2, 5}) s.wide.plan_in(bind, i, ElementType::float32, layout);
  if (bind.has_input(3) && !packed) s.wide.plan_in(bind, 3, ElementType::float32, layout);
  s.wide.plan_out(bind, 0, ElementType::float32, layout);
  s.zeros = packed && !zeros_ready ? layout.take(b.n * b.blocks()) : -1;
  static constexpr int32_t grouped = 0;
  if (bind.has_input(4)) b.group = &grouped;
  s.scratch = layout.take(kernels::nbits_scratch_bytes(b, s.m, bind.threads()));
  bind.need_scratch(layout.bytes());
}

void check_groups(const NBitsMatrix& b) {
  for (int64_t i = 0; i < b.k; ++i) {
    if (b.group[i] < 0 || b.group[i] >= b.blocks())
      throw Error(ErrorCode::run_failed,
                  fmt::format("g_idx[{}] is {}; there are {} blocks", i, b.group[i], b.blocks()));
  }
}

std::unique_ptr<Step> prepare_nbits(PrepareContext& ctx) {
  const NBitsMatrix matrix = read_matrix(ctx);
  if (!computes_in_float(ctx.in_element(0)))
    ctx.fail(ErrorCode::unsupported, "no product of {} rows", name_of(ctx.in_element(0)));
  const Constants constants = read_constants(ctx, matrix);
  return make_step<State>(
      "matmul_nbits",
      [matrix, ready = constants.zeros != nullptr](BindContext& bind, State& s) {
        bind_nbits(bind, s, matrix, ready);
      },
      [matrix, constants, alone = std::make_shared<ThreadPool>(1)](RunContext& run,
                                                                   const State& s) {
        NBitsMatrix b = matrix;
        b.data = run.in<uint8_t>(1);
        b.scales = s.wide.in<float>(run, 2);
        if (constants.zeros) {
          b.zeros = static_cast<const uint8_t*>(constants.zeros->get(run.pool()).data());
        } else if (s.zeros >= 0) {
          auto* zeros = reinterpret_cast<uint8_t*>(scratch_at(run, s.zeros));
          unpack_zeros(b, run.in<uint8_t>(3), zeros, run.pool());
          b.zeros = zeros;
        } else if (run.has_input(3)) {
          b.float_zeros = s.wide.in<float>(run, 3);
        }
        if (run.has_input(4)) {
          b.group = run.in<int32_t>(4);
          check_groups(b);
        }
        kernels::nbits_product(b, s.m, s.wide.in<float>(run, 0), s.wide.in<float>(run, 5),
                               s.wide.out<float>(run, 0), scratch_at(run, s.scratch), *alone,
                               run.pool());
        s.wide.finish<float>(run, 0);
      });
}

// The two code books of MatMulBnb4, element 0 first.
constexpr std::array<float, 16> fp4_values{
    0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr std::array<float, 16> nf4_values{-1.0f,
                                           -0.6961928009986877f,
                                           -0.5250730514526367f,
                                           -0.39491748809814453f,
                                           -0.28444138169288635f,
                                           -0.18477343022823334f,
                                           -0.09105003625154495f,
                                           0.0f,
                                           0.07958029955625534f,
                                           0.16093020141124725f,
                                           0.24611230194568634f,
                                           0.33791524171829224f,
                                           0.44070982933044434f,
                                           0.5626170039176941f,
                                           0.7229568362236023f,
                                           1.0f};

struct CodedMatrix {
  int64_t k = 0, n = 0, block = 0;
  const std::array<float, 16>* values = nullptr;
  bool transposed = true;  // the product is with [n, k] transposed; otherwise with it as it lies

  int64_t rows() const { return transposed ? k : n; }
  int64_t columns() const { return transposed ? n : k; }
  int64_t blocks_of(int64_t count) const { return count / block + (count % block != 0 ? 1 : 0); }
};

CodedMatrix read_coded(const NodeView& node) {
  CodedMatrix b;
  b.k = positive(node, "K"), b.n = positive(node, "N"), b.block = positive(node, "block_size");
  if (!is_power_of_two(b.block) || b.block < 16)
    node.fail("block_size must be a power of two from 16 on; got {}", b.block);
  require_holdable(node, b.k, b.n);
  const int64_t type = node.attr_int("quant_type");
  if (type != 0 && type != 1) node.fail("quant_type must be 0 (FP4) or 1 (NF4); got {}", type);
  b.values = type == 0 ? &fp4_values : &nf4_values;
  b.transposed = node.attr_int("transB", 1) != 0;
  return b;
}

void infer_coded(InferContext& ctx) {
  const CodedMatrix b = read_coded(ctx);
  const int64_t count = b.n * b.k;
  require_count(ctx, 1, (count + 1) / 2);
  require_count(ctx, 2, b.blocks_of(count));
  infer_rows(ctx, b.rows(), b.columns());
}

class CodedColumns : public kernels::ColumnSource {
 public:
  CodedColumns(const CodedMatrix& b, const uint8_t* data, const float* scales)
      : b_(b), data_(data), scales_(scales) {}

  void columns(int64_t begin, int64_t end, float* out) const override {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < b_.rows(); ++i)
        *out++ = value(b_.transposed ? j * b_.k + i : i * b_.k + j);
    }
  }

 private:
  // The first of two elements is in the high bits.
  float value(int64_t at) const {
    const int code = data_[at / 2] >> (at % 2 == 0 ? 4 : 0) & 15;
    return (*b_.values)[static_cast<size_t>(code)] * scales_[at / b_.block];
  }

  const CodedMatrix& b_;
  const uint8_t* data_;
  const float* scales_;
};

std::unique_ptr<Step> prepare_coded(PrepareContext& ctx) {
  const CodedMatrix b = read_coded(ctx);
  if (!computes_in_float(ctx.in_element(0)))
    ctx.fail(ErrorCode::unsupported, "no product of {} rows", name_of(ctx.in_element(0)));
  return make_step<State>(
      "matmul_bnb4",
      [b](BindContext& bind, State& s) {
        ScratchPlanner layout;
        const int64_t count = b.n * b.k;
        if (bind.in_size(1) != (count + 1) / 2 || bind.in_size(2) != b.blocks_of(count))
          throw Error(ErrorCode::run_failed,
                      "the weights or absmax have another size than N, K and "
                      "block_size say");
        s.m = bind.in_size(0) / b.rows();
        for (const int i : {0, 2}) s.wide.plan_in(bind, i, ElementType::float32, layout);
        s.wide.plan_out(bind, 0, ElementType::float32, layout);
        s.scratch =
            layout.take(kernels::sliced_scratch_bytes(s.m, b.columns(), b.rows(), bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [b, alone = std::make_shared<ThreadPool>(1)](RunContext& run, const State& s) {
        const CodedColumns columns(b, run.in<uint8_t>(1), s.wide.in<float>(run, 2));
        kernels::sliced_product(columns, s.m, b.columns(), b.rows(), s.wide.in<float>(run, 0),
                                nullptr, s.wide.out<float>(run, 0), scratch_at(run, s.scratch),
                                *alone, run.pool());
        s.wide.finish<float>(run, 0);
      });
}

constexpr Operator operators[] = {
    {.name = "MatMulBnb4",
     .domain = "com.microsoft",
     .infer = infer_coded,
     .prepare = prepare_coded},
    {.name = "MatMulNBits",
     .domain = "com.microsoft",
     .infer = infer_nbits,
     .prepare = prepare_nbits},
};

}  // namespace
}  // namespace contrib_matmul_nbits_unit

std::span<const Operator> contrib_matmul_nbits_operators() {
  return contrib_matmul_nbits_unit::operators;
}

}  // namespace sardonyx::ops
