#include "ops/shared/iteration.h"

#include <algorithm>
#include <cstring>

#include "base/bits.h"
#include "base/checked.h"
#include "base/fail.h"
#include "ops/shared/fixed_point.h"
#include "ops/shared/held_count.h"
#include "ops/shared/memory.h"

namespace sardonyx::ops {
namespace {

// Elements of a tensor in blocks: the first one, and from one block to the next.
struct Blocks {
  int64_t first, stride;
};

// Copies `outer` blocks of `inner` elements.
void copy_blocks(ElementType type, const void* from, Blocks at, void* to, Blocks target,
                 int64_t outer, int64_t inner) {
  const int width = bit_width(type);
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t source = at.first + o * at.stride, place = target.first + o * target.stride;
    if (type == ElementType::string) {
      std::copy_n(static_cast<const std::string*>(from) + source, inner,
                  static_cast<std::string*>(to) + place);
    } else if (width % 8 == 0) {
      if (inner == 0) return;
      std::memcpy(static_cast<std::byte*>(to) + place * (width / 8),
                  static_cast<const std::byte*>(from) + source * (width / 8),
                  static_cast<size_t>(inner * (width / 8)));
    } else {  // elements that share bytes with their neighbours
      const auto* bytes = static_cast<const uint8_t*>(from);
      for (int64_t i = 0; i < inner; ++i) {
        put_element_bits(static_cast<uint8_t*>(to), static_cast<size_t>(place + i), width,
                         element_bits(bytes, static_cast<size_t>(source + i), width));
      }
    }
  }
}

// Elements that share bytes are put in one at a time: the others of a byte are 0 until then.
void clear_packed(Tensor& tensor) {
  if (bit_width(tensor.element_type()) % 8 != 0 && tensor.byte_size() != 0)
    std::memset(tensor.mutable_data(), 0, tensor.byte_size());
}

}  // namespace

CarriedValues::CarriedValues(InferContext& ctx, std::vector<ValueFacts> start, size_t first)
    : ctx_(ctx), start_(std::move(start)), first_(first), first_symbol_(ctx.symbols().size()) {
  for (ValueFacts& value : start_) value.constant.reset();
  within_ = start_;
  for (ValueFacts& value : within_) name_elements(value);
}

bool CarriedValues::is_of_loop(const Dim& dim) const {
  if (dim.is_constant()) return false;
  std::vector<int> ids;
  dim.collect_symbols(ids);
  return std::any_of(ids.begin(), ids.end(), [&](int id) { return id >= first_symbol_; });
}

void CarriedValues::starts_as(const Dim& symbol, const Dim& value) {
  starts_.emplace_back(symbol.as_symbol()->id, value);
}

// Elements that are known at first may be others later.
void CarriedValues::name_elements(ValueFacts& carried) {
  constexpr size_t most = 16;
  const auto known = std::exchange(carried.elements, nullptr);
  if (!known || known->size() > most) return;
  if (has_float_elements(carried.type.element)) return;  // what may be any float has no name
  Dims names;
  for (const Dim& element : *known) {
    names.push_back(
        Dim(carried.type.is_tensor() ? ctx_.symbols().unknown_value() : ctx_.symbols().unknown()));
    starts_as(names.back(), element);
  }
  carried.elements = std::make_shared<const Dims>(std::move(names));
}

bool CarriedValues::widen_sizes(Dims& sizes, const Dims& next) {
  bool stable = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const ir::Symbol* symbol = sizes[d].as_symbol();
    if (symbol != nullptr && symbol->id >= first_symbol_) continue;  // already left open
    if (sizes[d] == next[d]) continue;
    sizes[d] = ctx_.unknown();
    stable = false;
  }
  return stable;
}

// Of what a sequence or an optional holds.
bool CarriedValues::widen_held(ValueType& type, const ValueType& next) {
  if (!next.is_known()) return true;
  if (!type.is_known()) {
    type = next;
    type.shape.reset();
    return false;
  }
  if (next.nested && !type.nested && type.kind != ir::TypeProto::Kind::tensor) {
    type.nested = std::make_shared<const ValueType>();
  }
  if (type.nested && next.nested) {
    ValueType held = *type.nested;
    const bool stable = widen_held(held, *next.nested);
    if (!stable) type.nested = std::make_shared<const ValueType>(std::move(held));
    return stable;
  }
  if (!type.shape) return true;
  if (next.shape && next.shape->size() == type.shape->size())
    return widen_sizes(*type.shape, *next.shape);
  type.shape.reset();
  return false;
}

// True where `made` can stand for `carried` in the next iteration; widens `carried` otherwise.
bool CarriedValues::widen(ValueFacts& carried, const ValueFacts& made) {
  ValueType& type = carried.type;
  const ValueType& next = made.type;
  if (!next.is_known() || !type.is_known()) {
    const bool stable = !type.is_known();
    carried = {};
    return stable;
  }
  if (type.kind != next.kind &&
      (type.kind == ir::TypeProto::Kind::optional || next.kind == ir::TypeProto::Kind::optional)) {
    carried = {};  // present in some iterations, perhaps absent in others
    return false;
  }
  if (type.kind != next.kind || (type.is_tensor() && type.element != next.element)) {
    ctx_.fail("a carried value starts as {} and comes out of the body as {}", type.to_string(),
              next.to_string());
  }
  if (!type.is_tensor()) return widen_held(type, next);
  if (!type.shape) return true;
  if (next.shape && next.shape->size() == type.shape->size()) {
    const bool stable = widen_sizes(*type.shape, *next.shape);
    if (!stable && !type.concrete_shape()) carried.elements = nullptr;
    return stable;
  }
  type.shape.reset();
  carried.elements = nullptr;
  return false;
}

// What begins as an empty sequence or optional holds what the body puts into it.
void CarriedValues::fill_empty(const InferBody& infer_body) {
  if (std::none_of(start_.begin(), start_.end(), is_surely_empty)) return;
  std::vector<ValueFacts> first_values = within_;
  for (size_t i = 0; i < start_.size(); ++i) {
    if (is_surely_empty(start_[i])) first_values[i] = start_[i];
  }
  std::vector<ValueFacts> made;
  try {
    made = infer_body(first_values);
  } catch (const Error&) {
    return;  // a body that takes from what is empty: it may do so in no iteration at all
  }
  for (size_t i = 0; i < start_.size() && first_ + i < made.size(); ++i) {
    const ValueType& next = made[first_ + i].type;
    if (is_surely_empty(start_[i]) && next.kind == start_[i].type.kind && next.nested)
      within_[i].type = next;
  }
}

const std::vector<ValueFacts>& CarriedValues::settle(const InferBody& infer_body) {
  if (!ctx_.is_over_budget()) fill_empty(infer_body);
  for (;;) {                      // every round opens at least one size, rank or type
    if (ctx_.is_over_budget()) {  // any type a body could give
      for (ValueFacts& value : within_) {
        value = ValueFacts::of(value.type.is_tensor() ? ValueType::tensor(value.type.element)
                                                      : ValueType());
      }
      return made_ = infer_body(within_);
    }
    made_ = infer_body(within_);
    bool stable = true;
    for (size_t i = 0; i < within_.size() && first_ + i < made_.size(); ++i)
      stable &= widen(within_[i], made_[first_ + i]);
    if (!stable) continue;
    for (size_t i = 0; i < within_.size(); ++i) {
      if (!within_[i].type.is_tensor() || !within_[i].type.shape) continue;
      const auto &sizes = *within_[i].type.shape, &before = *start_[i].type.shape;
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] != before[d]) starts_as(sizes[d], before[d]);
      }
    }
    return made_;
  }
}

// `start` after as many steps from `within` to `made`.
Dim CarriedValues::size_after(const Dim& start, const Dim& within, const Dim* made,
                              const Dim& trips) const {
  if (made == nullptr) return ctx_.unknown();
  const Dim growth = *made - within;
  if (!growth.is_indefinite() && !is_of_loop(growth) && growth.lower().value_or(-1) >= 0) {
    const Dim after = start + trips * growth;
    return ctx_.mode().symbolic_values || !after.depends_on_run() ? after : ctx_.unknown(after);
  }
  if (surely_at_least(within, *made)) return ctx_.unknown(start);
  const auto most = max_growth(growth);
  return most ? ctx_.unknown(start + trips * *most) : ctx_.unknown();
}

// The most that `growth` can be, told without what iterations decide: where it rises evenly with
// sizes that have bounds.
std::optional<Dim> CarriedValues::max_growth(Dim growth) const {
  if (growth.is_indefinite() || growth.lower().value_or(-1) < 0) return std::nullopt;
  constexpr int most = 8;
  for (int round = 0; round < most; ++round) {
    std::vector<int> ids;
    growth.collect_symbols(ids);
    const auto found =
        std::find_if(ids.begin(), ids.end(), [&](int id) { return id >= first_symbol_; });
    if (found == ids.end()) return growth;
    const ir::Symbol& symbol = ctx_.symbols()[*found];
    if (!symbol.upper) return std::nullopt;
    const Dim rest = growth.substitute(symbol.id, Dim(0));
    const Dim slope = growth.substitute(symbol.id, Dim(1)) - rest;
    if (slope.is_indefinite() || slope.lower().value_or(-1) < 0) return std::nullopt;
    if (growth != rest + slope * Dim(&symbol)) return std::nullopt;
    growth = rest + slope * *symbol.upper;
    if (growth.is_indefinite()) return std::nullopt;
  }
  return std::nullopt;
}

void CarriedValues::bound(const Dim& trips, const InferBody& infer_body) {
  if (!ctx_.mode().symbolic_values || ctx_.is_over_budget()) return;
  std::vector<ValueFacts> bounded = within_;
  bool any = false;
  for (size_t i = 0; i < within_.size() && first_ + i < made_.size(); ++i) {
    const ValueType& made = made_[first_ + i].type;
    if (!within_[i].type.is_tensor() || within_[i].type.rank() != made.rank()) continue;
    for (size_t d = 0; within_[i].type.shape && d < within_[i].type.shape->size(); ++d) {
      const Dim &size = (*within_[i].type.shape)[d], &start = (*start_[i].type.shape)[d];
      const ir::Symbol* symbol = size.as_symbol();
      if (!is_of_loop(size) || symbol == nullptr || symbol->upper) continue;
      const Dim growth = (*made.shape)[d] - size;
      const auto most =
          surely_at_least(size, (*made.shape)[d]) ? std::optional(Dim(0)) : max_growth(growth);
      if (!most) continue;
      const Dim with_bound = ctx_.unknown(start + trips * *most);
      (*bounded[i].type.shape)[d] = with_bound;
      starts_as(with_bound, start);
      any = true;
    }
  }
  if (!any) return;
  within_ = std::move(bounded);
  made_ = infer_body(within_);
}

std::shared_ptr<const Dims> CarriedValues::elements_after(size_t i, const Dim& trips) const {
  const auto &names = within_[i].elements, &start = start_[i].elements;
  if (!names || first_ + i >= made_.size()) return nullptr;
  const auto& made = made_[first_ + i].elements;
  if (!made || made->size() != names->size()) return nullptr;
  Dims elements;
  for (size_t k = 0; k < names->size(); ++k) {
    const Dim growth = (*made)[k] - (*names)[k];
    const bool even = !growth.is_indefinite() && !is_of_loop(growth);
    const Dim after = even ? (*start)[k] + trips * growth : Dim(0);
    if (even && (ctx_.mode().symbolic_values || !after.depends_on_run())) {
      elements.push_back(after);
    } else if (const auto unknown = ctx_.unknown_element()) {
      elements.push_back(within_[i].type.is_tensor() ? *unknown : ctx_.unknown());
    } else {
      return nullptr;
    }
  }
  return std::make_shared<const Dims>(std::move(elements));
}

namespace {

// Sizes inside a type with what `change` makes of them.
void change_sizes(ValueType& type, const std::function<Dim(const Dim&)>& change) {
  if (type.shape) {
    for (Dim& size : *type.shape) size = change(size);
  }
  if (!type.nested) return;
  ValueType held = *type.nested;
  change_sizes(held, change);
  type.nested = std::make_shared<const ValueType>(std::move(held));
}

}  // namespace

ValueFacts CarriedValues::after(size_t i, const Dim& trips) const {
  ValueFacts known = ValueFacts::of(within_[i].type);
  if (!known.type.is_tensor()) {  // what is held stays open, by names of its own
    change_sizes(known.type,
                 [&](const Dim& size) { return is_of_loop(size) ? ctx_.unknown() : size; });
  } else if (known.type.shape) {
    const ValueFacts* made = first_ + i < made_.size() ? &made_[first_ + i] : nullptr;
    const bool same_rank = made && made->type.rank() == known.type.rank();
    for (size_t d = 0; d < known.type.shape->size(); ++d) {
      Dim& size = (*known.type.shape)[d];
      if (!is_of_loop(size)) continue;
      size = size_after((*start_[i].type.shape)[d], size,
                        same_rank ? &(*made->type.shape)[d] : nullptr, trips);
    }
  }
  known.elements = elements_after(i, trips);
  return known;
}

ValueType CarriedValues::in_first(ValueType type) const {
  const auto value = [&](const ir::Symbol& symbol) -> const Dim* {
    for (const auto& [id, start] : starts_) {
      if (id == symbol.id) return &start;
    }
    return nullptr;
  };
  change_sizes(type, [&](const Dim& size) { return size.substitute(value); });
  return type;
}

std::string made_by(const NodeView& view) {
  const auto& outputs = view.node().outputs;
  const auto first = std::ranges::find_if(outputs, [](const auto& name) { return !name.empty(); });
  return first == outputs.end() ? std::string() : *first;
}

std::vector<ValueFacts> carried_inputs(const PrepareContext& ctx, int input, size_t count,
                                       ir::SymbolTable& names) {
  std::vector<ValueFacts> inputs;
  const std::string of = made_by(ctx);
  for (size_t i = 0; i < count; ++i) {
    const int at = static_cast<int>(i);
    ValueType type = ctx.out_type(at);
    const ValueType& before = ctx.in_type(input + at);
    for (size_t d = 0; type.is_tensor() && type.shape && d < type.shape->size(); ++d) {
      Dim& size = (*type.shape)[d];
      if (before.rank() == type.rank() && (*before.shape)[d] == size) continue;
      size = Dim(names.named(fmt::format("carried {}.{} of {}", i, d, of)));
    }
    inputs.push_back(ValueFacts::of(std::move(type)));
  }
  return inputs;
}

Tensor slice_at(const Tensor& tensor, int64_t axis, int64_t index) {
  Shape shape = tensor.shape();
  const auto at = static_cast<size_t>(axis);
  const int64_t length = shape[at];
  const int64_t inner = count_of(std::span(shape).subspan(at + 1)),
                outer = count_of(std::span(shape).first(at));
  shape.erase(shape.begin() + axis);
  const ElementType type = tensor.element_type();
  if (axis == 0 && type != ElementType::string && inner * bit_width(type) % 8 == 0) {
    const int64_t bytes = byte_size(type, inner);
    return Tensor::view(type, shape, static_cast<const std::byte*>(tensor.data()) + index * bytes,
                        static_cast<size_t>(bytes), tensor.owner());
  }
  Tensor slice(type, shape);
  clear_packed(slice);
  copy_blocks(type, tensor.data(), {index * inner, length * inner}, slice.mutable_data(),
              {0, inner}, outer, inner);
  return slice;
}

void HeldValues::carry(size_t i, const Value& value) {
  if (environment_.memory_limit == INT64_MAX) return;  // adding up a long sequence takes its time
  environment_.release(carried_[i]);
  carried_[i] = 0;
  const int64_t bytes = owned_bytes(value);
  environment_.charge(bytes);
  carried_[i] = bytes;
}

void set_made_output(RunContext& run, int i, Value value) {
  if (!value.is_tensor()) run.environment().charge(owned_bytes(value));
  run.set_output(i, std::move(value));
}

namespace {

// Puts what is told of the stacked output in the place of the sizes that `item` leaves open; false
// where some stay so.
bool take_told(ValueType& item, int64_t axis, std::span<const int64_t> told) {
  if (!item.shape) return false;
  const auto rank = static_cast<int64_t>(item.shape->size());
  const int64_t at = axis < 0 ? axis + rank + 1 : axis;
  bool all = true;
  for (int64_t d = 0; d < rank; ++d) {
    Dim& size = (*item.shape)[static_cast<size_t>(d)];
    const auto position = static_cast<size_t>(d < at ? d : d + 1);
    if (!size.is_constant() && position < told.size() && told[position] >= 0)
      size = Dim(told[position]);
    all &= size.is_constant();
  }
  return all;
}

void complete(ValueType& item, const ValueType& made) {
  if (!made.is_tensor()) return;
  if (item.element == ElementType::undefined) item = ValueType::tensor(made.element);
  if (!item.shape) item.shape = made.shape;
  if (item.rank() != made.rank()) return;
  for (size_t d = 0; item.shape && d < item.shape->size(); ++d) {
    Dim& size = (*item.shape)[d];
    if (!size.is_constant()) size = (*made.shape)[d];
  }
}

}  // namespace

std::vector<ValueType> items_of_no_iteration(
    RunContext& run, const PreparedGraph& body, const ScanOutputs& outputs,
    const std::function<std::vector<ValueFacts>()>& inputs) {
  std::vector<ValueType> items = outputs.items;
  bool all = true;
  for (size_t i = 0; i < items.size(); ++i) {
    const int output = static_cast<int>(outputs.first + i);
    if (run.has_output(output)) all &= take_told(items[i], outputs.axes[i], run.out_shape(output));
  }
  if (all) return items;
  std::vector<ValueFacts> made;
  try {
    made = body.infer_outputs(run, inputs());
  } catch (const Error&) {
    return items;  // an iteration would fail: none has to succeed
  }
  for (size_t i = 0; i < items.size(); ++i) complete(items[i], made[outputs.first_made + i].type);
  return items;
}

Tensor stacked(const RunEnvironment& environment, std::span<const Value> items, int64_t axis,
               bool reverse, const ValueType& item_type) {
  Shape shape;
  ElementType type = item_type.element;
  if (!items.empty()) {
    shape = items[0].tensor().shape();
    type = items[0].tensor().element_type();
  } else if (item_type.shape) {
    for (const Dim& size : *item_type.shape) shape.push_back(size.value().value_or(0));
  }
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank - 1 || axis > rank)
    fail(ErrorCode::invalid_model, "a scan output axis must be in [{}, {}]; got {}", -rank - 1,
         rank, axis);
  if (axis < 0) axis += rank + 1;
  const auto count = static_cast<int64_t>(items.size());
  const int64_t inner = count_of(std::span(shape).subspan(static_cast<size_t>(axis)));
  const int64_t outer = count_of(std::span(shape).first(static_cast<size_t>(axis)));
  Shape whole = shape;
  whole.insert(whole.begin() + axis, count);
  if (const auto elements = checked_count(whole)) environment.require(memory_of(type, *elements));
  Tensor result(type, whole);
  clear_packed(result);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& item = items[static_cast<size_t>(reverse ? count - 1 - i : i)].tensor();
    if (item.shape() != shape || item.element_type() != type) {
      fail(ErrorCode::run_failed, "scan outputs of iterations differ: {} of {} and {} of {}",
           name_of(type), to_string(shape), name_of(item.element_type()), to_string(item.shape()));
    }
    copy_blocks(type, item.data(), {0, inner}, result.mutable_data(), {i * inner, count * inner},
                outer, inner);
  }
  return result;
}

}  // namespace sardonyx::ops
