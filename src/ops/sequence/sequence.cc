// The operators on sequences. A sequence shares its items: no element is copied but where a tensor
// would otherwise borrow the memory of a run.
#include <algorithm>

#include "base/checked.h"
#include "base/counted.h"
#include "ops/objections.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/held_count.h"
#include "ops/shared/memory.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace sequence_unit {
namespace {

using Kind = ir::TypeProto::Kind;

// What a size stays within whatever the run decides.
std::optional<Dim> bound_of(const Dim& size) {
  Dim bound = size;
  for (int round = 0; bound.depends_on_run(); ++round) {
    const ir::Symbol* symbol = bound.as_symbol();
    constexpr int most = 8;
    if (symbol == nullptr || !symbol->upper || round == most) return std::nullopt;
    bound = *symbol->upper;
  }
  return bound;
}

// The type of an item that may be either; sizes that differ are not said.
ValueType merged(InferContext& ctx, const ValueType& a, const ValueType& b) {
  if (!a.is_known()) return b;
  if (!b.is_known()) return a;
  ValueType type = a;
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    type.shape.reset();
    return type;
  }
  for (size_t i = 0; i < a.shape->size(); ++i) {
    const Dim &one = (*a.shape)[i], &other = (*b.shape)[i];
    if (one == other) continue;
    const auto a_bound = bound_of(one), b_bound = bound_of(other);
    (*type.shape)[i] = a_bound && b_bound ? ctx.unknown(max(*a_bound, *b_bound)) : ctx.unknown();
  }
  return type;
}

// An item's type as the type of one value. Sizes that the run decides may be others in each item;
// what a model declares of items has come in with such sizes for its names.
ValueType item_type(InferContext& ctx, const ValueType& sequence) {
  if (!sequence.nested) return {};
  ValueType type = *sequence.nested;
  if (!type.shape) return type;
  for (Dim& size : *type.shape) {
    if (size.depends_on_run()) size = ctx.unknown(bound_of(size));
  }
  return type;
}

void check_sequence(const InferContext& ctx) {
  const ValueType& type = ctx.type(0);
  if (type.is_known() && type.kind != Kind::sequence)
    ctx.fail("the input must be a sequence; it is {}", type.to_string());
}

// Position `given` among `count` items; one more is legal where something is inserted.
size_t position_of(int64_t given, size_t count, bool inserting) {
  const auto n = static_cast<int64_t>(count);
  const int64_t high = inserting ? n : n - 1;
  if (given < -n || given > high) {
    throw Error(ErrorCode::run_failed,
                fmt::format("position must be in [{}, {}] of a sequence of {}; got {}", -n, high, n,
                            given));
  }
  return static_cast<size_t>(given < 0 ? given + n : given);
}

// --- Making and changing ------------------------------------------------------------------------

void infer_construct(InferContext& ctx) {
  ValueType item;
  for (int i = 0; i < ctx.input_count(); ++i)
    item = i == 0 ? ctx.type(0) : merged(ctx, item, ctx.type(i));
  ctx.set_known(0, holding(ValueType::sequence_of(std::move(item)), Dim(ctx.input_count())));
}

std::unique_ptr<Step> prepare_construct(PrepareContext&) {
  return make_allocating_step("sequence.construct", [](RunContext& run) {
    Sequence sequence;
    for (int i = 0; i < run.input_count(); ++i) sequence.items.push_back(to_owned(run.in_value(i)));
    run.set_output(0, std::move(sequence));
  });
}

void infer_empty(InferContext& ctx) {
  const int64_t number = ctx.attr_int("dtype", static_cast<int64_t>(ElementType::float32));
  if (number <= 0 || number >= element_type_count)
    ctx.fail("dtype must be the number of an element type; got {}", number);
  const auto element = static_cast<ElementType>(number);
  ctx.set_known(0, holding(ValueType::sequence_of(ValueType::tensor(element)), Dim(0)));
}

std::unique_ptr<Step> prepare_empty(PrepareContext&) {
  return make_allocating_step("sequence.empty",
                              [](RunContext& run) { run.set_output(0, Sequence()); });
}

// The input with items of this type, `more` of them than before.
void set_changed(InferContext& ctx, ValueType item, int more) {
  ValueFacts made = ValueFacts::of(ValueType::sequence_of(std::move(item)));
  if (const Dim* count = held_count(ctx.known(0)))
    made = holding(std::move(made.type), max(*count + Dim(more), Dim(0)));
  ctx.set_known(0, std::move(made));
}

size_t item_count(const RunContext& run) {
  return run.input_slots()[0]->value.sequence().items.size();
}

// A step that makes a sequence of the one it is given, of the same items where it may.
template <class Run>
std::unique_ptr<Step> make_changing_step(std::string kernel, Run run) {
  auto step = make_allocating_step(std::move(kernel), std::move(run));
  step->traits().in_place = {{0, 0}};
  return step;
}

// Runs hold items of any types; the standard wants one, of a sequence that is empty, too.
void want_item_type(const InferContext& ctx) {
  const auto& item = ctx.type(0).nested;
  const ElementType held = item ? item->element : ElementType::undefined, given = ctx.element(1);
  if (held != ElementType::undefined && given != ElementType::undefined && held != given)
    object(ctx, "{} must be of the type of the sequence's items, {}; it is {}", ctx.input_name(1),
           name_of(held), name_of(given));
}

void infer_insert(InferContext& ctx) {
  check_sequence(ctx);
  require_one(ctx, 2);
  want_item_type(ctx);
  const ValueFacts& sequence = ctx.known(0);
  const bool first = !sequence.type.nested || is_surely_empty(sequence);
  set_changed(ctx, first ? ctx.type(1) : merged(ctx, *sequence.type.nested, ctx.type(1)), 1);
}

std::unique_ptr<Step> prepare_insert(PrepareContext&) {
  return make_changing_step("sequence.insert", [](RunContext& run) {
    const size_t count = item_count(run);
    const size_t at = run.has_input(2) ? position_of(integer_at(run, 2, 0), count, true) : count;
    Value item = to_owned(run.in_value(1));
    Sequence sequence = run.take_sequence(0);
    sequence.items.insert(sequence.items.begin() + static_cast<std::ptrdiff_t>(at),
                          std::move(item));
    run.set_output(0, std::move(sequence));
  });
}

void infer_erase(InferContext& ctx) {
  check_sequence(ctx);
  require_one(ctx, 1);
  if (!ctx.type(0).nested) return ctx.set(0, ctx.type(0));
  set_changed(ctx, *ctx.type(0).nested, -1);
}

std::unique_ptr<Step> prepare_erase(PrepareContext&) {
  return make_changing_step("sequence.erase", [](RunContext& run) {
    const int64_t given = run.has_input(1) ? integer_at(run, 1, 0) : -1;
    const size_t at = position_of(given, item_count(run), false);
    Sequence sequence = run.take_sequence(0);
    sequence.items.erase(sequence.items.begin() + static_cast<std::ptrdiff_t>(at));
    run.set_output(0, std::move(sequence));
  });
}

// --- Reading ------------------------------------------------------------------------------------

void infer_at(InferContext& ctx) {
  check_sequence(ctx);
  require_one(ctx, 1);
  ctx.set(0, item_type(ctx, ctx.type(0)));
}

std::unique_ptr<Step> prepare_at(PrepareContext&) {
  return make_allocating_step("sequence.at", [](RunContext& run) {
    const Value input = run.in_value(0);
    const auto& items = input.sequence().items;
    run.set_output(0, items[position_of(integer_at(run, 1, 0), items.size(), false)]);
  });
}

void infer_length(InferContext& ctx) {
  check_sequence(ctx);
  ctx.set(0, ElementType::int64, {});
  if (const Dim* count = held_count(ctx.known(0))) ctx.set_elements(0, {*count});
}

std::unique_ptr<Step> prepare_length(PrepareContext&) {
  return make_step("sequence.length", [](RunContext& run) {
    *run.out<int64_t>(0) = static_cast<int64_t>(run.in_value(0).sequence().items.size());
  });
}

// --- SplitToSequence ----------------------------------------------------------------------------

// The size that all parts of a dimension have, where they have one.
std::optional<Dim> common_part(const InferContext& ctx, const Dim& size) {
  const auto split = ctx.integers(1);
  if (!split || split->empty()) return std::nullopt;
  const Dim part((*split)[0]);
  if (ctx.rank(1) == 0) return exact_div(size, part) ? std::optional(part) : std::nullopt;
  const bool equal =
      std::all_of(split->begin(), split->end(), [&](int64_t other) { return part == other; });
  return equal ? std::optional(part) : std::nullopt;
}

// How many parts there are.
std::optional<Dim> part_count(const InferContext& ctx) {
  const auto& shape = ctx.shape(0);
  if (!shape) return std::nullopt;
  const auto at = static_cast<size_t>(
      ctx.normalized_axis(ctx.attr_int("axis"), static_cast<int64_t>(shape->size())));
  if (!ctx.has_input(1)) return (*shape)[at];
  if (ctx.rank(1) == 1) return (*ctx.shape(1))[0];
  const auto* split = ctx.elements(1);
  if (ctx.rank(1) != 0 || !split || split->size() != 1) return std::nullopt;
  if (split->front().upper().value_or(1) < 1) return std::nullopt;  // the run refuses it
  return ceil_div((*shape)[at], split->front());
}

// What no part is larger than: the whole, and the largest number in `split`. Items keep no bound
// that the run decides.
Dim largest_part(const InferContext& ctx, const Dim& whole) {
  const auto* split = ctx.elements(1);
  if (split == nullptr || split->empty()) return whole;
  Dim largest = split->front();
  for (const Dim& part : *split) largest = max(largest, part);
  const Dim bound = min(whole, largest);
  return bound.is_indefinite() || bound.depends_on_run() ? whole : bound;
}

// What the run refuses, or the standard alone.
void object_to_parts(const InferContext& ctx) {
  const auto split = ctx.integers(1);
  if (!split) return;
  if (split->empty()) return object(ctx, "split must not be empty");
  if (ctx.rank(1).value_or(0) > 1) object(ctx, "split must be one number or a list of them");
  const bool one = ctx.rank(1) == 0;
  const int64_t least = *std::ranges::min_element(*split);
  if (one && least < 1) object(ctx, "split must be 1 or more; got {}", least);
  const auto& shape = ctx.shape(0);
  if (!one && shape && !shape->empty()) {
    Dim sum(0);
    for (const int64_t part : *split) sum = sum + Dim(part);
    const auto axis = ctx.normalized_axis(ctx.attr_int("axis"), *ctx.rank(0));
    const Dim& whole = (*shape)[static_cast<size_t>(axis)];
    if (whole.is_constant() && !(sum == whole))
      object(ctx, "the sizes in split must add up to the dimension, {}", whole.to_string());
  }
  if (!one && least < 0) object(ctx, "sizes in split must not be negative; got {}", least);
}

void infer_split(InferContext& ctx) {
  object_to_parts(ctx);
  ValueType item = ctx.type(0);
  if (item.shape) {
    const auto at = static_cast<size_t>(
        ctx.normalized_axis(ctx.attr_int("axis"), static_cast<int64_t>(item.shape->size())));
    if (!ctx.has_input(1)) {
      if (ctx.attr_int("keepdims") != 0)
        (*item.shape)[at] = Dim(1);
      else
        item.shape->erase(item.shape->begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      Dim& size = (*item.shape)[at];
      const auto part = common_part(ctx, size);
      size = part ? *part : ctx.unknown(largest_part(ctx, size));
    }
  }
  ValueFacts made = ValueFacts::of(ValueType::sequence_of(std::move(item)));
  if (const auto count = part_count(ctx)) made = holding(std::move(made.type), *count);
  ctx.set_known(0, std::move(made));
}

// About what a tensor in a sequence takes beside its elements.
constexpr int64_t item_memory = 256;

// The sizes of the parts: ones, equal ones and a rest, or as given.
CountedVector<int64_t> part_sizes(const RunContext& run, int64_t dim) {
  if (!run.has_input(1)) return CountedVector<int64_t>(static_cast<size_t>(dim), 1);
  CountedVector<int64_t> sizes;
  if (run.in_shape(1).empty()) {
    const int64_t each = integer_at(run, 1, 0);
    if (each < 1)
      throw Error(ErrorCode::run_failed, fmt::format("split must be 1 or more; got {}", each));
    for (int64_t at = 0; at < dim; at += std::min(each, dim - at))
      sizes.push_back(std::min(each, dim - at));
    return sizes;
  }
  int64_t rest = dim;
  for (int64_t i = 0; i < run.in_size(1); ++i) {
    sizes.push_back(integer_at(run, 1, i));
    if (sizes.back() < 0 || sizes.back() > rest) {
      throw Error(
          ErrorCode::run_failed,
          fmt::format(
              "the sizes in split must not be negative and add up to {}; got {} where {} is left",
              dim, sizes.back(), rest));
    }
    rest -= sizes.back();
  }
  if (rest != 0)
    throw Error(
        ErrorCode::run_failed,
        fmt::format("the sizes in split must add up to {}; they add up to {}", dim, dim - rest));
  return sizes;
}

std::unique_ptr<Step> prepare_split(PrepareContext& ctx) {
  const int64_t given_axis = ctx.attr_int("axis");
  const bool drops = !ctx.has_input(1) && ctx.attr_int("keepdims") == 0;
  return make_allocating_step(
      "sequence.split", [=, cell = kernels::cell_of(ctx.in_element(0))](RunContext& run) {
        const auto shape = run.in_shape(0);
        const int64_t axis =
            given_axis < 0 ? given_axis + static_cast<int64_t>(shape.size()) : given_axis;
        const auto at = static_cast<size_t>(axis);
        Sequence sequence;
        int64_t position = 0;
        const auto sizes = part_sizes(run, shape[at]);
        run.environment().charge(std::ssize(sizes) * item_memory);
        for (const int64_t size : sizes) {
          Shape part(shape.begin(), shape.end());
          part[at] = size;
          Tensor tensor = charged_tensor(run.environment(), run.in_type(0), part);
          kernels::copy_strided(cell, kernels::plan_split(shape, axis, position, size), run.data(0),
                                tensor.mutable_data(), run.pool());
          if (drops) part.erase(part.begin() + axis);
          sequence.items.emplace_back(drops ? tensor.reshaped(std::move(part)) : std::move(tensor));
          position += size;
        }
        run.set_output(0, std::move(sequence));
      });
}

// --- ConcatFromSequence -------------------------------------------------------------------------

// The sizes of all items added up.
Dim joined_size(InferContext& ctx, const Dim& item, const Dim* count) {
  if (count == nullptr) return ctx.unknown();
  if (*count == 1 || !item.depends_on_run()) return *count * item;
  const auto bound = bound_of(item);  // may be another in each item
  return bound ? ctx.unknown(*count * *bound) : ctx.unknown();
}

void infer_concat(InferContext& ctx) {
  check_sequence(ctx);
  const ValueType item = item_type(ctx, ctx.type(0));
  const bool stacks = ctx.attr_int("new_axis") != 0;
  if (!item.shape) {
    ctx.set(0, ValueType::tensor(item.element));
    return;
  }
  const int64_t rank = static_cast<int64_t>(item.shape->size()) + (stacks ? 1 : 0);
  const int64_t axis = ctx.normalized_axis(ctx.attr_int("axis"), rank);
  Dims out = *item.shape;
  const Dim* count = held_count(ctx.known(0));
  if (stacks) {
    out.insert(out.begin() + axis, count ? *count : ctx.unknown());
  } else {
    out[static_cast<size_t>(axis)] = joined_size(ctx, out[static_cast<size_t>(axis)], count);
  }
  ctx.set(0, item.element, std::move(out));
}

// The shape of all items joined; checks that they agree in everything but the axis.
Shape joined_shape(const std::vector<Value>& items, int64_t given_axis, bool stacks, size_t& axis) {
  if (items.empty())
    throw Error(ErrorCode::run_failed, "the sequence is empty: there is nothing to concatenate");
  const Tensor& first = items.front().tensor();
  const int64_t rank = first.rank() + (stacks ? 1 : 0);
  if (given_axis < -rank || given_axis >= rank)
    throw Error(ErrorCode::invalid_model,
                fmt::format("axis must be in [{}, {}]; got {}", -rank, rank - 1, given_axis));
  axis = static_cast<size_t>(given_axis < 0 ? given_axis + rank : given_axis);
  Shape out = first.shape();
  if (stacks)
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  else
    out[axis] = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const Tensor& item = items[i].tensor();
    Shape expected = first.shape();
    if (!stacks && item.rank() == first.rank()) expected[axis] = item.shape()[axis];
    if (item.shape() != expected || item.element_type() != first.element_type()) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("item {} is {}{} and does not fit the first, {}{}, at axis {}", i,
                              name_of(item.element_type()), to_string(item.shape()),
                              name_of(first.element_type()), to_string(first.shape()), axis));
    }
    const auto sum = checked_add(out[axis], stacks ? 1 : item.shape()[axis]);
    out[axis] = sum.value_or(-1);
  }
  return out;
}

std::unique_ptr<Step> prepare_concat(PrepareContext& ctx) {
  const int64_t given_axis = ctx.attr_int("axis");
  const bool stacks = ctx.attr_int("new_axis") != 0;
  return make_allocating_step("sequence.concat", [=](RunContext& run) {
    const Value input = run.in_value(0);
    const auto& items = input.sequence().items;
    size_t axis = 0;
    const Shape out = joined_shape(items, given_axis, stacks, axis);
    const ElementType type = items.front().tensor().element_type();
    run.environment().require(memory_of(type, count_of(out)));
    Tensor result(type, out);
    int64_t position = 0;
    for (const Value& item : items) {
      const Tensor& tensor = item.tensor();
      Shape part = tensor.shape();
      if (stacks) part.insert(part.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      const auto copy = kernels::plan_concat(part, out, static_cast<int64_t>(axis), position);
      kernels::copy_strided(kernels::cell_of(type), copy, tensor.data(), result.mutable_data(),
                            run.pool());
      position += part[axis];
    }
    run.set_output(0, std::move(result));
  });
}

constexpr Operator operators[] = {
    {.name = "SequenceConstruct", .infer = infer_construct, .prepare = prepare_construct},
    {.name = "SequenceEmpty", .infer = infer_empty, .prepare = prepare_empty},
    {.name = "SequenceInsert", .infer = infer_insert, .prepare = prepare_insert},
    {.name = "SequenceErase", .infer = infer_erase, .prepare = prepare_erase},
    {.name = "SequenceAt", .infer = infer_at, .prepare = prepare_at},
    {.name = "SequenceLength", .infer = infer_length, .prepare = prepare_length},
    {.name = "SplitToSequence", .infer = infer_split, .prepare = prepare_split},
    {.name = "ConcatFromSequence", .infer = infer_concat, .prepare = prepare_concat},
};

}  // namespace
}  // namespace sequence_unit

std::span<const Operator> sequence_operators() { return sequence_unit::operators; }

}  // namespace sardonyx::ops
