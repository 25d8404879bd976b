// The internal LookupTable.
#include "kernels/elementwise/lookup_table.h"
#include "ops/internal/checked.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/node.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace lookup_table_unit {
namespace {

using internal::LookupTable;

void infer(InferContext& ctx) {
  internal::from_node<LookupTable>(ctx.node());
  ValueType type = ctx.type(LookupTable::x);
  type.element = ctx.element(LookupTable::table);
  ctx.set(0, std::move(type));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const auto is_byte = [](ElementType type) {
    return type == ElementType::uint8 || type == ElementType::int8;
  };
  const Tensor* table = ctx.constant(LookupTable::table);
  if (table == nullptr || table->size() != kernels::lookup_table_size ||
      !is_byte(table->element_type()) || !is_byte(ctx.in_element(LookupTable::x)))
    ctx.fail(ErrorCode::internal, "needs bytes and a constant table of 256 of them");
  auto step = make_step("lookup_table", [](RunContext& run) {
    kernels::look_up_bytes(static_cast<const uint8_t*>(run.data(LookupTable::table)),
                           static_cast<const uint8_t*>(run.data(LookupTable::x)),
                           static_cast<uint8_t*>(run.out_data(0)), run.out_size(0), run.pool());
  });
  step->traits().in_place.push_back({0, LookupTable::x});
  return step;
}

constexpr Operator operators[] = {
    {.name = LookupTable::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<LookupTable, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace lookup_table_unit

std::span<const Operator> lookup_table_operators() { return lookup_table_unit::operators; }

}  // namespace sardonyx::ops
