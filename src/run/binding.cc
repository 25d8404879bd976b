// Binding a context to the sizes of its inputs: shapes, memory, steps.
#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "ir/internal_domain.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/run_account.h"
#include "ops/step_memory.h"
#include "run/arena.h"
#include "run/context.h"
#include "run/input_match.h"

namespace sardonyx::run {
namespace {

void reserve(Bytes& block, int64_t bytes, eval::Environment& environment) {
  const auto size = static_cast<int64_t>(block.size());
  if (size >= bytes) return;
  environment.charge(bytes - size);
  block = {};
  block = Bytes::allocate(static_cast<size_t>(bytes));
}

}  // namespace

void Context::match(int index, std::span<const int64_t> shape) {
  const PlanValue& v = value(index);
  if (!v.has_rank()) return;
  const auto bound_by = [this](const ir::Symbol& symbol) {
    const auto input = [&](size_t i) -> const PlanValue& { return value(plan_.inputs()[i]); };
    return first_use(
        symbol, plan_.inputs().size(),
        [&](size_t i) -> const std::string& { return input(i).name; },
        [&](size_t i) -> const ir::ValueType& { return input(i).known.type; });
  };
  match_shape(v.name, v.known.type, shape, sizes_, bound_by);
  std::copy(shape.begin(), shape.end(), dims_of(index));
}

// Takes an input where it lies, or a copy where it does not lie as its type needs. Most addresses
// fit all types, which is seen at once.
void Context::take_input(size_t i, const Value& given, bool aligned) {
  const int index = plan_.inputs()[i];
  const PlanValue& v = value(index);
  ops::Slot& s = slot(index);
  match_kind(v.name, v.known.type, given);
  // What comes from a step of this run, as in each iteration of a loop, is as its type says.
  if (!aligned && !given.is_tensor()) match_held(v.name, v.known.type, given);
  const Value* taken = &given;
  constexpr uintptr_t strictest = 8;
  const bool fits = given.is_tensor()
                        ? reinterpret_cast<uintptr_t>(given.tensor().data()) % strictest == 0
                        : aligned;
  if (!fits && given.kind() != Value::Kind::none)
    taken = &held_inputs_.emplace_back(ir::aligned(given));
  if (!taken->is_tensor() || !v.known.type.is_tensor()) {
    s.value = *taken;
    if (!taken->is_tensor()) return;
  }
  const Tensor& tensor = taken->tensor();
  note_shape(tensor.shape());
  s.data = tensor.data();
  s.element = tensor.element_type();
  s.count = tensor.size();
  if (v.boxed) {
    s.value = *taken;
  } else if (s.value.kind() != Value::Kind::none) {
    s.value = Value();
  }
  if (!v.has_rank()) {
    s.dims = tensor.shape().data();
    s.rank = static_cast<int32_t>(tensor.rank());
  }
}

void Context::note_shape(std::span<const int64_t> shape) {
  given_shapes_.push_back(static_cast<int64_t>(shape.size()));
  given_shapes_.insert(given_shapes_.end(), shape.begin(), shape.end());
}

bool Context::take_inputs(std::span<const Value> inputs, std::span<ops::Slot* const> captured,
                          bool aligned) {
  given_shapes_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) take_input(i, inputs[i], aligned);
  for (size_t i = 0; i < captured.size(); ++i) {
    const int index = plan_.captured()[i];
    if (captured[i] == nullptr || value(index).source == PlanValue::Source::constant) continue;
    const ops::Slot& from = *captured[i];
    ops::Slot& s = slot(index);
    s.data = from.data;
    s.element = from.element;
    s.count = from.count;
    s.value = from.value;
    if (!value(index).has_rank()) {
      s.dims = from.dims;
      s.rank = from.rank;
    }
    if (from.element != ElementType::undefined) note_shape(from.shape());
  }
  if (given_shapes_ == input_shapes_ && segment_bound_[0]) return true;
  std::fill(sizes_.begin(), sizes_.end(), -1);
  std::fill(segment_bound_.begin(), segment_bound_.end(), 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_tensor()) match(plan_.inputs()[i], inputs[i].tensor().shape());
  }
  for (size_t i = 0; i < captured.size(); ++i) {
    if (captured[i] != nullptr && captured[i]->element != ElementType::undefined)
      match(plan_.captured()[i], captured[i]->shape());
  }
  input_shapes_ = given_shapes_;
  return false;
}

void Context::evaluate_dims(const Segment& segment) {
  for (const int index : segment.values) {
    const PlanValue& v = value(index);
    if (!v.has_rank() || v.source != PlanValue::Source::step) continue;
    int64_t* out = dims_of(index);
    int64_t count = 1;
    for (size_t d = 0; d < v.known.type.shape->size(); ++d) {
      const ir::Dim& dim = (*v.known.type.shape)[d];
      const auto size = dim.evaluate(sizes_);
      if (!size || *size < 0) {
        const int step = v.made_by;
        if (step >= 0) refuse_shapes(step);
        fail_at(step < 0 ? fmt::format("value '{}'", v.name) : ir::place_of(*this->step(step).node),
                ErrorCode::bad_input,
                "these input shapes leave dimension {} of '{}' ({}) without a sound size{}", d,
                v.name, dim.to_string(), size ? fmt::format(": {}", *size) : std::string());
      }
      out[d] = *size;
      if (*size == 0)
        count = 0;
      else if (count != 0 && __builtin_mul_overflow(count, *size, &count)) {
        fail_at(fmt::format("value '{}'", v.name), ErrorCode::bad_input,
                "its number of elements overflows");
      }
    }
    slot(index).count = count;
  }
}

namespace {

// Whether inference with numbers in place of expressions says of a step what plain evaluation says.
bool tells_shapes(const PlanStep& step) {
  return !ir::is_internal(*step.node) && !ir::has_graphs(*step.node);
}

}  // namespace

// Says what an operator has against the shapes at hand, where its inference does: it names both
// with their numbers, as plain evaluation does. Returns what it leaves to the run, of elements.
std::vector<ops::Constraint> Context::refuse_shapes(int index) {
  const PlanStep& step = this->step(index);
  if (!tells_shapes(step)) return {};
  ir::SymbolTable symbols;
  std::vector<ops::Constraint> constraints;
  const infer::InferenceContext inference{&symbols, &constraints, {}};
  const size_t own = step.node->inputs.size();
  std::vector<ValueFacts> known(own);
  std::vector<const ValueFacts*> pointers(own, nullptr);
  for (size_t i = 0; i < own; ++i) {
    const int input = step.inputs[i];
    if (input < 0) continue;
    known[i] = value(input).known;
    known[i].elements = nullptr;
    if (value(input).has_rank() && known[i].type.is_tensor()) {
      const int64_t* dims = dims_of(input);
      for (size_t d = 0; d < known[i].type.shape->size(); ++d)
        (*known[i].type.shape)[d] = ir::Dim(dims[d]);
    }
    pointers[i] = &known[i];
  }
  try {
    infer::infer_node(*step.node, step.binding, pointers, inference, nullptr);
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_input, error.message(),
                error.location().empty() ? ir::place_of(*step.node) : error.location());
  }
  return constraints;
}

bool Context::has_wrong_shapes(int index) {
  try {
    refuse_shapes(index);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// The step whose inference asks for it; null where that was inside a graph of a step.
const PlanStep* Context::step_of(const Segment& segment, const ops::Constraint& constraint,
                                 int& index) const {
  for (index = segment.begin; index < segment.end; ++index) {
    const PlanStep& step = this->step(index);
    if (constraint.message.starts_with(ir::place_of(*step.node) + ": ")) return &step;
  }
  return nullptr;
}

// A condition on expressions too large to be kept holds where inference with the numbers
// themselves has nothing left to ask of the node.
void Context::check_by_numbers(const Segment& segment, const ops::Constraint& constraint) {
  int index = 0;
  const PlanStep* step = step_of(segment, constraint, index);
  if (step == nullptr || !tells_shapes(*step) || !refuse_shapes(index).empty()) {
    fail(ErrorCode::unsupported, "{}: the sizes are too large or too intricate to tell",
         constraint.message);
  }
}

namespace {

std::string size_text(const ir::Dim& dim, int64_t size) {
  return dim.is_constant() ? std::to_string(size) : fmt::format("{} is {}", dim.to_string(), size);
}

}  // namespace

void Context::check_constraints(const Segment& segment) {
  for (const ops::Constraint& c : segment.constraints) {
    if (c.a.is_indefinite() || c.b.is_indefinite()) {
      check_by_numbers(segment, c);
      continue;
    }
    const auto a = c.a.evaluate(sizes_), b = c.b.evaluate(sizes_);
    if (!a || !b) continue;  // decided by the run: the step that learns it checks again
    bool holds = true;
    switch (c.kind) {
      case ops::Constraint::Kind::equal: holds = *a == *b; break;
      case ops::Constraint::Kind::at_least: holds = *a >= *b; break;
      case ops::Constraint::Kind::broadcast: holds = *a == *b || *a == 1 || *b == 1; break;
    }
    if (holds) continue;
    int index = 0;
    if (step_of(segment, c, index) != nullptr) refuse_shapes(index);
    fail(ErrorCode::bad_input, "{}: {}, {}", c.message, size_text(c.a, *a), size_text(c.b, *b));
  }
}

int64_t Context::place(const Segment& segment, std::span<const int64_t> counts,
                       std::vector<int64_t>& offsets) const {
  ArenaLayout layout;
  struct Block {
    int64_t offset, bytes, exact;
  };
  std::vector<std::vector<Block>> dying(static_cast<size_t>(segment.end - segment.begin));
  for (int s = segment.begin; s < segment.end; ++s) {
    const PlanStep& step = this->step(s);
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const int v = step.outputs[o];
      if (!is_in_arena(v)) continue;
      const int64_t exact = byte_size(value(v).known.type.element, counts[static_cast<size_t>(v)]);
      const int64_t bytes = ArenaLayout::rounded(exact);
      int64_t offset = -1;
      for (const auto& pair : step.in_place) {
        if (pair.output != static_cast<int>(o)) continue;
        const int root = value(step.inputs[static_cast<size_t>(pair.input)]).root;
        auto& ends = dying[static_cast<size_t>(s - segment.begin)];
        const auto same = std::find_if(ends.begin(), ends.end(), [&](const Block& b) {
          return b.offset == offsets[static_cast<size_t>(root)] && b.exact == exact;
        });
        if (value(root).made_by < segment.begin || same == ends.end()) continue;
        offset = same->offset;  // the output takes the input's block over
        ends.erase(same);
        break;
      }
      if (offset < 0) offset = layout.take(bytes);
      offsets[static_cast<size_t>(v)] = offset;
      const int last = value(v).last_use;
      if (last < segment.end)
        dying[static_cast<size_t>(last - segment.begin)].push_back({offset, bytes, exact});
    }
    for (const Block& block : dying[static_cast<size_t>(s - segment.begin)])
      layout.give(block.offset, block.bytes);
  }
  return layout.end();
}

namespace {

// Bytes that one value after the other takes, and the steps during which they are taken.
struct LivingBlock {
  int64_t bytes = 0, exact = 0;
  int first = 0, last = 0;
  std::vector<int> values;
  int64_t offset = -1;
};

// Where each block goes; how much they take.
int64_t place_largest_first(std::vector<LivingBlock>& blocks) {
  std::vector<LivingBlock*> order;
  for (LivingBlock& block : blocks) order.push_back(&block);
  std::ranges::stable_sort(order, std::greater(), [](const LivingBlock* b) { return b->bytes; });
  std::vector<const LivingBlock*> placed;  // by offset
  int64_t end = 0;
  for (LivingBlock* block : order) {
    int64_t at = 0;
    for (const LivingBlock* other : placed) {
      if (other->first > block->last || block->first > other->last) continue;
      if (other->offset - at >= block->bytes) break;
      at = std::max(at, other->offset + other->bytes);
    }
    block->offset = at;
    const auto before = std::ranges::upper_bound(placed, at, {}, &LivingBlock::offset);
    placed.insert(before, block);
    if (__builtin_add_overflow(at, block->bytes, &at))
      fail(ErrorCode::out_of_memory, "the run's working memory overflows");
    end = std::max(end, at);
  }
  return end;
}

}  // namespace

int64_t Context::place_by_size(const Segment& segment, std::span<const int64_t> counts,
                               std::vector<int64_t>& offsets) const {
  std::vector<LivingBlock> blocks;
  std::vector<int> block_of(offsets.size(), -1);
  for (int s = segment.begin; s < segment.end; ++s) {
    const PlanStep& step = this->step(s);
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const int v = step.outputs[o];
      if (!is_in_arena(v)) continue;
      const int64_t exact = byte_size(value(v).known.type.element, counts[static_cast<size_t>(v)]);
      int at = -1;
      for (const auto& pair : step.in_place) {
        if (pair.output != static_cast<int>(o)) continue;
        const int root = value(step.inputs[static_cast<size_t>(pair.input)]).root;
        const int block =
            value(root).made_by < segment.begin ? -1 : block_of[static_cast<size_t>(root)];
        if (block < 0) continue;
        const LivingBlock& taken = blocks[static_cast<size_t>(block)];
        // It ends here, and no other output of this step has taken it over.
        if (taken.last != s || taken.exact != exact || taken.values.back() != root) continue;
        at = block;
        break;
      }
      if (at < 0) {
        at = static_cast<int>(blocks.size());
        blocks.push_back({ArenaLayout::rounded(exact), exact, s, s, {}, -1});
      }
      LivingBlock& block = blocks[static_cast<size_t>(at)];
      block.values.push_back(v);
      block.last = std::max(s, value(v).last_use);
      block_of[static_cast<size_t>(v)] = at;
    }
  }
  const int64_t bytes = place_largest_first(blocks);
  for (const LivingBlock& block : blocks)
    for (const int v : block.values) offsets[static_cast<size_t>(v)] = block.offset;
  return bytes;
}

// Working memory of a segment whose sizes the run has decided, were they as large as their bounds
// allow; nullopt where something has none.
std::optional<int64_t> Context::max_bytes(const Segment& segment) const {
  // It looks at all sizes and values of the plan, for each of its segments.
  constexpr size_t max_looks = size_t{1} << 18;
  if ((sizes_.size() + slots_.size()) * plan_.segments().size() > max_looks) return std::nullopt;
  std::vector<int64_t> sizes = sizes_;
  for (int id = 0; id < plan_.symbols().size(); ++id) {
    const ir::Symbol& symbol = plan_.symbols()[id];
    if (!symbol.decided_by_run || sizes[static_cast<size_t>(id)] < 0 || !symbol.upper) continue;
    const auto most = symbol.upper->evaluate(sizes);
    if (most && *most > sizes[static_cast<size_t>(id)]) sizes[static_cast<size_t>(id)] = *most;
  }
  std::vector<int64_t> counts(slots_.size(), 0);
  for (const int v : segment.values) {
    if (!is_in_arena(v)) continue;
    int64_t& count = counts[static_cast<size_t>(v)];
    count = 1;
    for (const ir::Dim& dim : *value(v).known.type.shape) {
      const auto size = dim.evaluate(sizes);
      if (!size || *size < 0 || __builtin_mul_overflow(count, *size, &count)) return std::nullopt;
    }
    constexpr int64_t largest = int64_t{1} << 56;  // its bytes are a number
    if (count > largest) return std::nullopt;
    count = std::max(count, slots_[static_cast<size_t>(v)].count);
  }
  std::vector<int64_t> offsets(offsets_);
  return place(segment, counts, offsets);
}

bool Context::is_in_arena(int v) const {
  return v >= 0 && value(v).root == v && !value(v).boxed && value(v).output_storage < 0;
}

// The step that makes the largest value of those in the segment's arena.
const PlanStep& Context::largest_in(const Segment& segment) {
  int64_t most = -1;
  int found = segment.begin;
  for (int s = segment.begin; s < segment.end; ++s) {
    for (const int v : step(s).outputs) {
      if (!is_in_arena(v)) continue;
      const int64_t bytes = byte_size(value(v).known.type.element, slot(v).count);
      if (bytes > most) found = s;
      most = std::max(most, bytes);
    }
  }
  return step(found);
}

void Context::lay_out(const Segment& segment, size_t index, eval::Environment& environment) {
  for (const int v : segment.values) counts_[static_cast<size_t>(v)] = slot(v).count;
  int64_t needed = place(segment, counts_, offsets_);
  constexpr int max_compact_steps = 8192;
  if (plan_.is_compact() && segment.end - segment.begin <= max_compact_steps) {
    std::vector<int64_t> offsets(offsets_);
    const int64_t smaller = place_by_size(segment, counts_, offsets);
    if (smaller < needed) needed = smaller, offsets_ = std::move(offsets);
  }
  for (const int v : segment.values) counts_[static_cast<size_t>(v)] = 0;
  Bytes& arena = arenas_[index];
  // A burst of large sizes does not keep its memory once sizes are small again.
  const auto is_burst = [&](int64_t bytes) { return bytes > 4 * needed + (int64_t{16} << 20); };
  if (is_burst(static_cast<int64_t>(arena.size()))) {
    environment.release(static_cast<int64_t>(arena.size()));
    arena = {};
  }
  // Memory that grows takes what the bounds of its sizes allow, so that the next run, which may
  // find more, does not ask for it again.
  if (index > 0 && needed > static_cast<int64_t>(arena.size())) {
    const auto most = max_bytes(segment);
    const int64_t room = environment.memory_limit - environment.charged();
    if (most && *most > needed && !is_burst(*most) && *most <= room) needed = *most;
  }
  try {
    reserve(arena, needed, environment);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), ir::place_of(*largest_in(segment).node));
  }
  for (int s = segment.begin; s < segment.end; ++s) {
    for (const int v : step(s).outputs) {
      if (is_in_arena(v)) slot(v).data = arena.data() + offsets_[static_cast<size_t>(v)];
    }
  }
}

void Context::bind_step(int index, eval::Environment& environment) {
  const PlanStep& step = this->step(index);
  const StepSlots& at = step_slots_[static_cast<size_t>(index)];
  std::byte* state = state_.mutable_data() + step.state_offset;
  ops::BindContext bind(pointers_.data() + at.inputs, static_cast<int>(step.inputs.size()),
                        pointers_.data() + at.outputs, static_cast<int>(step.outputs.size()), state,
                        threads_);
  std::memset(state, 0, static_cast<size_t>(step.step->traits().state_bytes));
  ops::within_run_limit(environment, *step.node, [&] { step.step->bind(bind); });
  reserve(step.mode == PlanStep::Mode::planned ? scratch_ : late_scratch_, bind.scratch(),
          environment);
}

void Context::bind_segment(size_t index, eval::Environment& environment) {
  const Segment& segment = plan_.segments()[index];
  evaluate_dims(segment);
  check_constraints(segment);
  lay_out(segment, index, environment);
  for (int s = segment.begin; s < segment.end; ++s) {
    const PlanStep& step = this->step(s);
    if (step.mode != PlanStep::Mode::planned) continue;
    try {
      if (step.step->traits().view_of_input >= 0) {
        check_view(step);
      } else {
        bind_step(s, environment);
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::run_failed) refuse_shapes(s);
      if (!error.location().empty()) throw;
      throw Error(error.code(), error.message(), ir::place_of(*step.node));
    } catch (const std::bad_alloc&) {
      ops::fail_for_memory(*step.node);
    } catch (const std::length_error&) {
      ops::fail_for_memory(*step.node);
    }
  }
  segment_bound_[index] = 1;
  bound_at_[index] = changes_;
}

}  // namespace sardonyx::run
