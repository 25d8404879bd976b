// RandomUniform, RandomNormal, their Like forms, Bernoulli and Multinomial.
//
// With a seed every run gives the same numbers. Without one, a run goes on where the last one
// stopped, beginning with the session's seed: the k-th run of a step is the same in every session.
#include <bit>
#include <cstring>
#include <memory>

#include "kernels/convert/cast.h"
#include "kernels/random/philox.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace random_unit {
namespace {

using kernels::Philox;

// Where a step's numbers come from.
class Source {
 public:
  // Steps without a seed are distinguished by the name of their output.
  explicit Source(const PrepareContext& ctx) : seeded_(ctx.has_attribute("seed")) {
    if (seeded_) {
      key_ = std::bit_cast<uint32_t>(ctx.attr_float("seed"));
    } else if (ctx.has_output(0)) {
      key_ = RandomStreams::step_number(ctx.node().outputs[0]);
    }
  }
  Philox next(const RunContext& run) const {
    if (seeded_) return Philox(key_, 0);
    const auto [key, turn] = run.environment().random().next(key_);
    return Philox(key, turn + 1);
  }

 private:
  bool seeded_;
  uint64_t key_ = 0;
};

std::shared_ptr<const Source> source_of(const PrepareContext& ctx) {
  return std::make_shared<const Source>(ctx);
}

ElementType type_attribute(const NodeView& node, ElementType fallback) {
  const int64_t number = node.attr_int("dtype", static_cast<int64_t>(fallback));
  const auto type = static_cast<ElementType>(number);
  if (number < 0 || number >= element_type_count || !is_known(type))
    node.fail("dtype must be the number of an element type; got {}", number);
  return type;
}

bool is_like(const NodeView& node) { return node.node().op_type.ends_with("Like"); }

void infer_random(InferContext& ctx) {
  if (is_like(ctx)) {
    ValueType type = ctx.type(0);
    type.kind = ir::TypeProto::Kind::tensor;
    type.element = ctx.has_attribute("dtype") || type.element != ElementType::undefined
                       ? type_attribute(ctx, type.element)
                       : type.element;
    ctx.set(0, std::move(type));
    return;
  }
  const auto shape = ctx.attr_ints("shape");
  if (!shape) ctx.fail("attribute 'shape' is required and absent; add it to the node");
  for (const int64_t size : *shape) {
    if (size < 0) ctx.fail("a size in shape must not be negative; got {}", size);
  }
  ctx.set(0, type_attribute(ctx, ElementType::float32), {shape->begin(), shape->end()});
}

std::unique_ptr<Step> without_reading(std::unique_ptr<Step> step, const PrepareContext& ctx) {
  if (is_like(ctx)) step->traits().unread_inputs = {0};
  return step;
}

void check_floating(const PrepareContext& ctx, ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::float64:
    case ElementType::float16:
    case ElementType::bfloat16: return;
    default: ctx.fail("random numbers must be of a floating type; dtype says {}", name_of(type));
  }
}

std::unique_ptr<Step> prepare_uniform(PrepareContext& ctx) {
  const double low = ctx.attr_float("low", 0.0f), high = ctx.attr_float("high", 1.0f);
  const ElementType type = ctx.out_element(0);
  check_floating(ctx, type);
  auto step = make_step("random.uniform", [=, source = source_of(ctx)](RunContext& run) {
    kernels::fill_uniform(type, source->next(run), low, high, run.out_data(0), run.out_size(0),
                          run.pool());
  });
  return without_reading(std::move(step), ctx);
}

std::unique_ptr<Step> prepare_normal(PrepareContext& ctx) {
  const double mean = ctx.attr_float("mean", 0.0f), scale = ctx.attr_float("scale", 1.0f);
  const ElementType type = ctx.out_element(0);
  check_floating(ctx, type);
  auto step = make_step("random.normal", [=, source = source_of(ctx)](RunContext& run) {
    kernels::fill_normal(type, source->next(run), mean, scale, run.out_data(0), run.out_size(0),
                         run.pool());
  });
  return without_reading(std::move(step), ctx);
}

// --- Bernoulli ----------------------------------------------------------------------------------

void infer_bernoulli(InferContext& ctx) {
  ValueType type = ctx.type(0);
  type.kind = ir::TypeProto::Kind::tensor;
  if (ctx.has_attribute("dtype") || type.element != ElementType::undefined)
    type.element = type_attribute(ctx, type.element);
  ctx.set(0, std::move(type));
}

std::unique_ptr<Step> prepare_bernoulli(PrepareContext& ctx) {
  struct Nothing {};
  const ElementType from = ctx.in_element(0), to = ctx.out_element(0);
  if (!kernels::supports_cast(ElementType::uint8, to))
    ctx.fail(ErrorCode::unsupported, "no random numbers of type {}", name_of(to));
  return make_step<Nothing>(
      "random.bernoulli", [](BindContext& bind, Nothing&) { bind.need_scratch(bind.in_size(0)); },
      [=, source = source_of(ctx)](RunContext& run, const Nothing&) {
        auto* drawn = static_cast<uint8_t*>(run.scratch());
        kernels::bernoulli(from, source->next(run), run.data(0), drawn, run.in_size(0), run.pool());
        kernels::cast(ElementType::uint8, to, drawn, run.out_data(0), run.in_size(0), {},
                      run.pool());
      });
}

// --- Multinomial --------------------------------------------------------------------------------

void infer_multinomial(InferContext& ctx) {
  const int64_t samples = ctx.attr_int("sample_size");
  if (samples < 0) ctx.fail("sample_size must not be negative; got {}", samples);
  const auto& in = ctx.shape(0);
  if (in && in->size() != 2)
    ctx.fail("the input must have rank 2, batch x classes; it has {}", in->size());
  const ElementType type = type_attribute(ctx, ElementType::int32);
  if (type != ElementType::int32 && type != ElementType::int64)
    ctx.fail("dtype must be int32 or int64; got {}", name_of(type));
  ctx.set(0, type, {in ? (*in)[0] : ctx.unknown(), Dim(samples)});
}

std::unique_ptr<Step> prepare_multinomial(PrepareContext& ctx) {
  struct Nothing {};
  const ElementType from = ctx.in_element(0), to = ctx.out_element(0);
  return make_step<Nothing>(
      "random.multinomial",
      [to](BindContext& bind, Nothing&) {
        bind.need_scratch(
            to == ElementType::int64 ? 0 : byte_size(ElementType::int64, bind.out_size(0)));
      },
      [=, source = source_of(ctx)](RunContext& run, const Nothing&) {
        const bool narrow = to != ElementType::int64;
        auto* drawn = narrow ? static_cast<int64_t*>(run.scratch()) : run.out<int64_t>(0);
        const auto shape = run.in_shape(0);
        kernels::multinomial(from, source->next(run), run.data(0), shape[0], shape[1],
                             run.out_shape(0)[1], drawn, run.pool());
        if (narrow)
          kernels::cast(ElementType::int64, to, drawn, run.out_data(0), run.out_size(0), {},
                        run.pool());
      });
}

constexpr Operator operators[] = {
    {.name = "RandomUniform", .infer = infer_random, .prepare = prepare_uniform},
    {.name = "RandomUniformLike", .infer = infer_random, .prepare = prepare_uniform},
    {.name = "RandomNormal", .infer = infer_random, .prepare = prepare_normal},
    {.name = "RandomNormalLike", .infer = infer_random, .prepare = prepare_normal},
    {.name = "Bernoulli", .infer = infer_bernoulli, .prepare = prepare_bernoulli},
    {.name = "Multinomial", .infer = infer_multinomial, .prepare = prepare_multinomial},
};

}  // namespace
}  // namespace random_unit

std::span<const Operator> random_operators() { return random_unit::operators; }

}  // namespace sardonyx::ops
