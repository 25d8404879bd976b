// Optional, OptionalGetElement and OptionalHasElement.
#include <algorithm>

#include "ops/operator.h"
#include "ops/shared/held_count.h"

namespace sardonyx::ops {
namespace optional_unit {
namespace {

using Kind = ir::TypeProto::Kind;

void infer_optional(InferContext& ctx) {
  if (ctx.has_input(0)) {
    const ValueFacts& held = ctx.known(0);
    if (held.type.kind == Kind::optional)
      ctx.fail("{} must be a tensor or a sequence; it is {}", ctx.input_name(0),
               held.type.to_string());
    Dims counts = {Dim(1)};
    if (held_count(held)) counts.insert(counts.end(), held.elements->begin(), held.elements->end());
    ctx.set(0, ValueType::optional_of(held.type));
    return ctx.set_elements(0, std::move(counts));
  }
  const ir::TypeProto* type = ctx.attr_type("type");
  if (type == nullptr) ctx.fail("needs an input, or attribute 'type' for an empty optional");
  ctx.set_known(0, holding(ValueType::optional_of(ir::value_type(*type, ctx.symbols())), Dim(0)));
}

std::unique_ptr<Step> prepare_optional(PrepareContext&) {
  return make_allocating_step("optional.wrap", [](RunContext& run) {
    Optional optional;
    if (run.has_input(0)) optional.held = std::make_unique<Value>(to_owned(run.in_value(0)));
    run.set_output(0, std::move(optional));
  });
}

void set_counts_of_held(InferContext& ctx) {
  const Dims& counts = *ctx.elements(0);
  Dims held(counts.begin() + 1, counts.end());
  const auto is_open = [&](const Dim& count) {
    return !ctx.mode().symbolic_values && count.depends_on_run();
  };
  if (!held.empty() && std::ranges::none_of(held, is_open)) ctx.set_elements(0, std::move(held));
}

void infer_get(InferContext& ctx) {
  const ValueType& type = ctx.type(0);
  if (type.kind != Kind::optional) {
    ctx.set_known(0, ctx.known(0));
  } else if (type.nested) {
    // For a plan, sizes that the run decides are known once the optional is opened.
    ValueType held = *type.nested;
    for (size_t i = 0; held.shape && i < held.shape->size(); ++i) {
      Dim& size = (*held.shape)[i];
      if (!ctx.mode().symbolic_values && size.depends_on_run()) size = ctx.unknown();
    }
    const bool counted = is_container(held) && held_count(ctx.known(0));
    ctx.set(0, std::move(held));
    if (counted) set_counts_of_held(ctx);
  }
}

std::unique_ptr<Step> prepare_get(PrepareContext& ctx) {
  if (ctx.in_type(0).is_tensor()) return make_view_step("optional.view");
  return make_allocating_step("optional.get", [](RunContext& run) {
    const Value value = run.in_value(0);
    if (value.kind() != Value::Kind::optional) {
      run.set_output(0, value);
      return;
    }
    if (!value.optional().held)
      throw Error(ErrorCode::run_failed,
                  "the optional is empty; test it with OptionalHasElement first");
    run.set_output(0, *value.optional().held);
  });
}

void infer_has(InferContext& ctx) {
  ctx.set(0, ElementType::boolean, {});
  const ValueType& type = ctx.type(0);
  if (!ctx.has_input(0)) {
    ctx.set_elements(0, {Dim(0)});
  } else if (type.is_known() && type.kind != Kind::optional) {
    ctx.set_elements(0, {Dim(1)});
  } else if (const Dim* count = held_count(ctx.known(0))) {
    ctx.set_elements(0, {*count});
  }
}

std::unique_ptr<Step> prepare_has(PrepareContext&) {
  return make_step("optional.has", [](RunContext& run) {
    bool has = run.has_input(0);
    if (has) {
      const Value value = run.in_value(0);
      has = value.kind() != Value::Kind::optional || value.optional().held != nullptr;
    }
    *run.out<bool>(0) = has;
  });
}

constexpr Operator operators[] = {
    {.name = "Optional", .infer = infer_optional, .prepare = prepare_optional},
    {.name = "OptionalGetElement", .infer = infer_get, .prepare = prepare_get},
    {.name = "OptionalHasElement", .infer = infer_has, .prepare = prepare_has},
};

}  // namespace
}  // namespace optional_unit

std::span<const Operator> optional_operators() { return optional_unit::operators; }

}  // namespace sardonyx::ops
