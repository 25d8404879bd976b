// Einsum: operands are contracted from left to right, two at a time, as batched matrix products.
#include <algorithm>
#include <map>

#include "base/checked.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/move/strided.h"
#include "kernels/rows/reduce.h"
#include "ops/objections.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/einsum_equation.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace einsum_unit {
namespace {

using kernels::GemmBatch;
using Term = EinsumTerm;

constexpr int max_operands = 8;

// Where an input's rank is unknown: only "..." hides the output's.
void infer_from_equation(InferContext& ctx, const EinsumEquation& equation) {
  const Term& output = equation.output;
  const bool open =
      std::find(output.begin(), output.end(), EinsumEquation::ellipsis) != output.end();
  const ElementType type = ctx.element(0);
  ctx.set(0, open
                 ? ValueType::tensor(type)
                 : ValueType::tensor(type, ctx.unknown_shape(static_cast<int64_t>(output.size()))));
}

// A run broadcasts what ellipses stand for, however many dimensions each has.
void object_to_ellipses(const InferContext& ctx, const EinsumEquation& equation,
                        const std::vector<size_t>& ranks) {
  std::optional<size_t> before;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Term& term = equation.inputs[i];
    if (std::find(term.begin(), term.end(), EinsumEquation::ellipsis) == term.end()) continue;
    const size_t hidden = ranks[i] + 1 - term.size();
    if (before && *before != hidden)
      return object(ctx, "every '...' must stand for as many dimensions; here for {} and {}",
                    *before, hidden);
    before = hidden;
  }
}

void infer(InferContext& ctx) {
  const EinsumEquation equation = read_equation(ctx);
  std::vector<size_t> ranks;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.shape(i)) return infer_from_equation(ctx, equation);
    ranks.push_back(ctx.shape(i)->size());
  }
  const std::vector<Term> terms = equation.expand(ctx, ranks);
  object_to_ellipses(ctx, equation, ranks);
  std::map<int, Dim> sizes;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const Dim& dim = (*ctx.shape(static_cast<int>(i)))[d];
      const auto [found, fresh] = sizes.emplace(terms[i][d], dim);
      if (!fresh)
        found->second = ctx.broadcast(std::span(&found->second, 1), std::span(&dim, 1))[0];
    }
  }
  Dims y;
  for (const int label : equation.expand_output(terms)) y.push_back(sizes.at(label));
  ctx.set(0, ctx.element(0), std::move(y));
}

// A tensor with a label on every dimension, without those of size 1 and with repeated labels
// (diagonals) made one.
struct Labelled {
  Term labels;
  std::vector<int64_t> sizes, strides;

  bool has(int label) const {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  }
  size_t at(int label) const {
    return static_cast<size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
};

Labelled label(const Term& term, std::span<const int64_t> shape) {
  Labelled result;
  int64_t stride = count_of(shape);
  for (size_t i = 0; i < term.size(); ++i) {
    if (shape[i] == 0)
      stride = 0;
    else
      stride /= shape[i];
    if (shape[i] == 1) continue;
    if (!result.has(term[i])) {
      result.labels.push_back(term[i]), result.sizes.push_back(shape[i]),
          result.strides.push_back(stride);
      continue;
    }
    const size_t at = result.at(term[i]);
    if (result.sizes[at] != shape[i])
      throw Error(ErrorCode::run_failed, fmt::format("Einsum: a label stands for sizes {} and {}",
                                                     result.sizes[at], shape[i]));
    result.strides[at] += stride;
  }
  return result;
}

// One side of a product (or the only operand): where it is and what happens before it is used. What
// is summed need not be copied first where it is dense and keeps the order of its dimensions.
struct Operand {
  int32_t source = -1;  // an input, or -1: the result of the product before
  bool copied = false, summed = false;
  kernels::StridedCopy copy;
  kernels::ReducePlan sum;
  int64_t copied_at = 0, summed_at = 0;  // scratch
  int64_t outer = 0, inner = 1;          // strides of its matrices
};

struct Product {
  Operand a, b;
  GemmBatch batch;
  int64_t M = 1, N = 1, K = 1;
  int64_t result_at = 0, scratch = 0;
};

struct State {
  ConvertedArguments wide;
  int32_t products = 0;
  Product product[max_operands - 1];
  bool direct = false;  // the last product writes the output itself
  Operand last;
};

int64_t count_labels(const Labelled& x, const Term& labels) {
  int64_t count = 1;
  for (const int label : labels) count *= x.sizes[x.at(label)];
  return count;
}

// The stride with which these labels, taken in order, are walked as one dimension.
std::optional<int64_t> merged_stride(const Labelled& x, const Term& labels) {
  for (size_t i = 0; i + 1 < labels.size(); ++i) {
    const size_t outer = x.at(labels[i]), inner = x.at(labels[i + 1]);
    if (x.strides[outer] != x.strides[inner] * x.sizes[inner]) return std::nullopt;
  }
  return labels.empty() ? 1 : x.strides[x.at(labels.back())];
}

bool is_dense(const Labelled& x) {
  int64_t step = 1;
  for (size_t i = x.sizes.size(); i-- > 0; step *= x.sizes[i]) {
    if (x.strides[i] != step) return false;
  }
  return true;
}

bool in_order(const Labelled& x, const Term& labels) {
  for (size_t i = 0; i + 1 < labels.size(); ++i) {
    if (x.at(labels[i]) > x.at(labels[i + 1])) return false;
  }
  return true;
}

class Planner {
 public:
  Planner(ElementType compute, ScratchPlanner& layout, int threads)
      : compute_(compute), layout_(layout), threads_(threads) {}

  // Makes `x` dense in the order of `labels` after summing `sums` away.
  void arrange(Operand& operand, const Labelled& x, const Term& labels, const Term& sums,
               bool to_output) {
    if (!sums.empty() && is_dense(x) && in_order(x, labels)) {
      std::vector<int64_t> axes;
      for (const int label : sums) axes.push_back(static_cast<int64_t>(x.at(label)));
      operand.summed = true;
      operand.sum = kernels::plan_reduce(x.sizes, axes);
      if (!to_output)
        operand.summed_at = layout_.take(byte_size(compute_, count_labels(x, labels)));
      return;
    }
    Term order = labels;
    order.insert(order.end(), sums.begin(), sums.end());
    std::vector<int64_t> dims, from, to(order.size());
    int64_t x_count = 1;
    for (const int label : order) {
      dims.push_back(x.sizes[x.at(label)]), from.push_back(x.strides[x.at(label)]);
      x_count += (dims.back() - 1) * from.back();
    }
    const int64_t count = count_of(dims), kept = count_labels(x, labels);
    int64_t step = 1;
    for (size_t i = order.size(); i-- > 0; step *= dims[i]) to[i] = step;
    operand.copied = true;
    operand.copy =
        kernels::plan_strided(dims, from, to, 0, 0, std::max<int64_t>(x_count, 0), count);
    operand.summed = !sums.empty();
    if (operand.summed || !to_output) operand.copied_at = layout_.take(byte_size(compute_, count));
    if (!operand.summed) return;
    const int64_t shape[] = {kept, count_labels(x, sums)}, axes[] = {1};
    operand.sum = kernels::plan_reduce(shape, axes);
    if (!to_output) operand.summed_at = layout_.take(byte_size(compute_, kept));
  }

  // a and b become one product; returns its result. `keep`: labels that are needed later.
  Labelled multiply(Product& product, const Labelled& a, const Labelled& b, const Term& keep) {
    Term batch, rows, columns, inner, a_sums, b_sums;
    const auto kept = [&](int label) {
      return std::find(keep.begin(), keep.end(), label) != keep.end();
    };
    for (const int label : a.labels) {
      if (b.has(label))
        (kept(label) ? batch : inner).push_back(label);
      else
        (kept(label) ? rows : a_sums).push_back(label);
    }
    for (const int label : b.labels) {
      if (!a.has(label)) (kept(label) ? columns : b_sums).push_back(label);
    }
    const auto by_output = [&](int x, int y) {
      return std::find(keep.begin(), keep.end(), x) < std::find(keep.begin(), keep.end(), y);
    };
    for (Term* term : {&batch, &rows, &columns})
      std::stable_sort(term->begin(), term->end(), by_output);
    for (const int label : batch) {
      if (a.sizes[a.at(label)] != b.sizes[b.at(label)])
        mismatch(a.sizes[a.at(label)], b.sizes[b.at(label)]);
    }
    for (const int label : inner) {
      if (a.sizes[a.at(label)] != b.sizes[b.at(label)])
        mismatch(a.sizes[a.at(label)], b.sizes[b.at(label)]);
    }
    product.M = count_labels(a, rows), product.N = count_labels(b, columns),
    product.K = count_labels(a, inner);
    Labelled result;
    for (const int label : batch)
      result.labels.push_back(label), result.sizes.push_back(a.sizes[a.at(label)]);
    for (const int label : rows)
      result.labels.push_back(label), result.sizes.push_back(a.sizes[a.at(label)]);
    for (const int label : columns)
      result.labels.push_back(label), result.sizes.push_back(b.sizes[b.at(label)]);
    result.strides.resize(result.labels.size());
    int64_t step = 1;
    for (size_t i = result.labels.size(); i-- > 0; step *= result.sizes[i])
      result.strides[i] = step;
    operands(product, a, b, {batch, rows, inner, columns, a_sums, b_sums}, result);
    return result;
  }

 private:
  struct Groups {
    Term batch, rows, inner, columns, a_sums, b_sums;
  };

  [[noreturn]] static void mismatch(int64_t x, int64_t y) {
    throw Error(ErrorCode::run_failed,
                fmt::format("Einsum: a label stands for sizes {} and {}", x, y));
  }

  // Strides of one side where it can be used as it lies; false where it must be arranged.
  static bool as_it_lies(Operand& operand, const Labelled& x, const Term& outer, const Term& inner,
                         const Term& sums, bool few_batches) {
    const auto outer_stride = merged_stride(x, outer), inner_stride = merged_stride(x, inner);
    if (!sums.empty() || !few_batches || !outer_stride || !inner_stride) return false;
    operand.outer = outer.empty() ? std::max<int64_t>(1, count_labels(x, inner)) : *outer_stride;
    operand.inner = inner.empty() ? 1 : *inner_stride;
    return true;
  }

  void operands(Product& product, const Labelled& a, const Labelled& b, const Groups& g,
                const Labelled& result) {
    const bool few = g.batch.size() <= GemmBatch::max_rank;
    const auto join = [](std::initializer_list<const Term*> terms) {
      Term all;
      for (const Term* term : terms) all.insert(all.end(), term->begin(), term->end());
      return all;
    };
    const bool a_lies = as_it_lies(product.a, a, g.rows, g.inner, g.a_sums, few);
    const bool b_lies = as_it_lies(product.b, b, g.inner, g.columns, g.b_sums, few);
    if (!a_lies) {
      arrange(product.a, a, join({&g.batch, &g.rows, &g.inner}), g.a_sums, false);
      product.a.outer = product.K, product.a.inner = 1;
    }
    if (!b_lies) {
      arrange(product.b, b, join({&g.batch, &g.inner, &g.columns}), g.b_sums, false);
      product.b.outer = product.N, product.b.inner = 1;
    }
    GemmBatch& batch = product.batch;
    batch = {};
    if (!few) {
      batch.rank = 1, batch.size[0] = count_labels(a, g.batch);
      batch.a_stride[0] = product.M * product.K, batch.b_stride[0] = product.K * product.N,
      batch.c_stride[0] = product.M * product.N;
    } else {
      int64_t a_step = product.M * product.K, b_step = product.K * product.N;
      batch.rank = static_cast<int>(g.batch.size());
      for (size_t i = g.batch.size(); i-- > 0;) {
        const int64_t size = a.sizes[a.at(g.batch[i])];
        batch.size[i] = size;
        batch.a_stride[i] = a_lies ? a.strides[a.at(g.batch[i])] : a_step;
        batch.b_stride[i] = b_lies ? b.strides[b.at(g.batch[i])] : b_step;
        batch.c_stride[i] = result.strides[i];
        a_step *= size, b_step *= size;
      }
    }
    product.scratch = -1;
    if (compute_ == ElementType::float32) {
      product.scratch = layout_.take(kernels::batched_gemm_scratch_bytes(
          batch, product.M, product.N, product.K, {nullptr, product.a.outer, product.a.inner},
          {nullptr, product.b.outer, product.b.inner}, threads_));
    }
  }

  ElementType compute_;
  ScratchPlanner& layout_;
  int threads_;
};

// Labels that the output or an operand after `i` still needs.
Term needed_after(const std::vector<Term>& terms, const Term& output, size_t i) {
  Term needed = output;
  for (size_t later = i + 1; later < terms.size(); ++later)
    needed.insert(needed.end(), terms[later].begin(), terms[later].end());
  return needed;
}

void bind_contraction(BindContext& bind, State& s, const std::vector<Term>& terms,
                      const Term& output, ElementType compute) {
  ScratchPlanner layout;
  s.wide.plan(bind, compute, layout);
  Planner planner(compute, layout, bind.threads());
  Labelled current = label(terms[0], bind.in_shape(0));
  s.products = static_cast<int32_t>(terms.size()) - 1;
  s.direct = false;
  for (size_t i = 1; i < terms.size(); ++i) {
    Product& product = s.product[i - 1];
    product = {};
    product.a.source = i == 1 ? 0 : -1;
    product.b.source = static_cast<int32_t>(i);
    current =
        planner.multiply(product, current, label(terms[i], bind.in_shape(static_cast<int>(i))),
                         needed_after(terms, output, i));
    product.result_at = layout.take(byte_size(compute, count_of(current.sizes)));
  }
  Term labels, sums;
  for (const int l : output) {
    if (current.has(l)) labels.push_back(l);
  }
  for (const int l : current.labels) {
    if (std::find(output.begin(), output.end(), l) == output.end()) sums.push_back(l);
  }
  s.direct = s.products > 0 && labels == current.labels;
  s.last = {};
  s.last.source = s.products > 0 ? -1 : 0;
  if (!s.direct) planner.arrange(s.last, current, labels, sums, true);
  bind.need_scratch(layout.bytes());
}

// The operand's elements, arranged if need be; `target` is where they go in the end, or null.
const void* ready(const RunContext& run, const State& s, const Operand& operand, const void* before,
                  ElementType compute, void* target) {
  const void* x = operand.source < 0 ? before : s.wide.in_as(run, operand.source, compute);
  if (operand.copied) {
    void* copy = target && !operand.summed ? target : scratch_at(run, operand.copied_at);
    kernels::copy_strided(kernels::cell_of(compute), operand.copy, x, copy, run.pool());
    x = copy;
  }
  if (!operand.summed) return x;
  void* sum = target ? target : scratch_at(run, operand.summed_at);
  kernels::reduce(kernels::ReduceOp::sum, compute, operand.sum, x, sum, run.pool());
  return sum;
}

void multiply(const RunContext& run, const Product& p, const void* a, const void* b, void* c,
              ElementType compute) {
  if (compute == ElementType::float32) {
    return kernels::batched_gemm(
        p.batch, p.M, p.N, p.K, {static_cast<const float*>(a), p.a.outer, p.a.inner},
        {static_cast<const float*>(b), p.b.outer, p.b.inner}, static_cast<float*>(c), p.N, {},
        scratch_at(run, p.scratch), run.pool());
  }
  kernels::matmul_any(compute, p.batch, p.M, p.N, p.K, {a, p.a.outer, p.a.inner},
                      {b, p.b.outer, p.b.inner}, c, p.N, run.pool());
}

void run_contraction(RunContext& run, const State& s, ElementType compute) {
  void* y = s.wide.out_as(run, 0);
  const void* before = nullptr;
  for (int32_t i = 0; i < s.products; ++i) {
    const Product& p = s.product[i];
    void* result = s.direct && i + 1 == s.products ? y : scratch_at(run, p.result_at);
    const void* a = ready(run, s, p.a, before, compute, nullptr);
    const void* b = ready(run, s, p.b, nullptr, compute, nullptr);
    multiply(run, p, a, b, result, compute);
    before = result;
  }
  if (!s.direct) ready(run, s, s.last, before, compute, y);
  s.wide.finish_as(run, 0, compute);
}

ElementType contraction_type(ElementType type) {
  switch (type) {
    case ElementType::int8:
    case ElementType::int16: return ElementType::int32;
    case ElementType::uint8:
    case ElementType::uint16: return ElementType::uint32;
    default: return computes_in_float(type) ? ElementType::float32 : type;
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType compute = contraction_type(ctx.in_element(0));
  if (compute != ElementType::float32 && !kernels::supports_matmul_any(compute))
    ctx.fail(ErrorCode::unsupported, "no contraction of {}", name_of(compute));
  if (ctx.input_count() > max_operands)
    ctx.fail(ErrorCode::unsupported, "an Einsum of {} operands; at most {} are supported",
             ctx.input_count(), max_operands);
  const EinsumEquation equation = read_equation(ctx);
  return make_step<State>(
      "einsum.products",
      [equation, compute, node = ctx.node()](BindContext& bind, State& s) {
        std::vector<size_t> ranks;
        for (int i = 0; i < bind.input_count(); ++i) ranks.push_back(bind.in_shape(i).size());
        const std::vector<Term> terms = equation.expand(NodeView(node, nullptr), ranks);
        bind_contraction(bind, s, terms, equation.expand_output(terms), compute);
      },
      [compute](RunContext& run, const State& s) { run_contraction(run, s, compute); });
}

constexpr Operator operators[] = {{.name = "Einsum", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace einsum_unit

std::span<const Operator> einsum_operators() { return einsum_unit::operators; }

}  // namespace sardonyx::ops
