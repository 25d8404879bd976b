// LookupTable (internal, domain "sardonyx"): bytes X and a constant table of 256 bytes, as many as
// X can have values, counted as unsigned; Y is what stands there for each, of the table's type.
#include "kernels/elementwise/lookup_table.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

void infer(InferContext& ctx) {
  ValueType type = ctx.type(0);
  type.element = ctx.element(1);
  ctx.set(0, std::move(type));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const auto is_byte = [](ElementType type) {
    return type == ElementType::uint8 || type == ElementType::int8;
  };
  const Tensor* table = ctx.constant(1);
  if (table == nullptr || table->size() != kernels::lookup_table_size ||
      !is_byte(table->element_type()) || !is_byte(ctx.in_element(0)))
    ctx.fail(ErrorCode::internal, "needs bytes and a constant table of 256 of them");
  auto step = make_step("lookup_table", [](RunContext& run) {
    kernels::look_up_bytes(static_cast<const uint8_t*>(run.data(1)),
                           static_cast<const uint8_t*>(run.data(0)),
                           static_cast<uint8_t*>(run.out_data(0)), run.out_size(0), run.pool());
  });
  step->traits().in_place.push_back({0, 0});
  return step;
}

constexpr Operator operators[] = {
    {.name = "LookupTable", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> lookup_table_operators() { return operators; }

}  // namespace sardonyx::ops
