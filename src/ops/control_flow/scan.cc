// Scan: a body run along axes of its inputs, with carried state.
#include <algorithm>
#include <span>

#include "ops/shared/iteration.h"

namespace sardonyx::ops {
namespace scan_unit {
namespace {

struct Layout {
  size_t states = 0, scanned_in = 0, scanned_out = 0;
  std::vector<int64_t> in_axes, out_axes, in_directions, out_directions;
};

const ir::Graph& body_of(const NodeView& node) {
  const ir::Graph* body = node.attr_graph("body");
  if (body == nullptr) node.fail("attribute 'body' is required and absent; add the graph");
  return *body;
}

std::vector<int64_t> list(const NodeView& node, std::string_view name, size_t count) {
  auto values = node.attr_ints(name).value_or(std::vector<int64_t>(count, 0));
  if (values.empty()) values.assign(count, 0);
  if (values.size() != count)
    node.fail("{} must have {} entries; it has {}", name, count, values.size());
  return values;
}

Layout layout_of(const NodeView& node) {
  const ir::Graph& body = body_of(node);
  Layout layout;
  const int64_t scans = node.attr_int("num_scan_inputs");
  if (scans < 1 || scans > node.input_count())
    node.fail("num_scan_inputs must be in [1, {}]; got {}", node.input_count(), scans);
  layout.scanned_in = static_cast<size_t>(scans);
  layout.states = static_cast<size_t>(node.input_count()) - layout.scanned_in;
  if (body.inputs.size() != static_cast<size_t>(node.input_count())) {
    node.fail("the body must take {} inputs as the node does; it takes {}", node.input_count(),
              body.inputs.size());
  }
  if (body.outputs.size() < layout.states ||
      body.outputs.size() < static_cast<size_t>(node.output_count())) {
    node.fail("the body gives {} outputs; the node has {} states and names {} outputs",
              body.outputs.size(), layout.states, node.output_count());
  }
  layout.scanned_out = body.outputs.size() - layout.states;
  layout.in_axes = list(node, "scan_input_axes", layout.scanned_in);
  layout.in_directions = list(node, "scan_input_directions", layout.scanned_in);
  layout.out_axes = list(node, "scan_output_axes", layout.scanned_out);
  layout.out_directions = list(node, "scan_output_directions", layout.scanned_out);
  return layout;
}

// The standard asks states to have one shape in all iterations, which a run insists on.
template <class InferBody>
std::vector<ValueFacts> with_kept_shapes(std::vector<ValueFacts>& states,
                                         const InferBody& infer_body) {
  for (ValueFacts& state : states) state = ValueFacts::of(state.type);
  std::vector<ValueFacts> made = infer_body(states);
  for (size_t i = 0; i < states.size(); ++i) {
    if (!states[i].type.is_known() || (states[i].type.is_tensor() && !states[i].type.shape))
      states[i].type = made[i].type;
  }
  return made;
}

void infer(InferContext& ctx) {
  const ir::Graph& body = body_of(ctx);
  const Layout layout = layout_of(ctx);
  std::vector<ValueFacts> slices;
  std::optional<Dim> length;
  for (size_t i = 0; i < layout.scanned_in; ++i) {
    ValueType type = ctx.type(static_cast<int>(layout.states + i));
    if (type.shape) {
      const int64_t axis = ctx.normalized_axis(
          layout.in_axes[i], static_cast<int64_t>(type.shape->size()), "scan_input_axes");
      const Dim size = (*type.shape)[static_cast<size_t>(axis)];
      if (length)
        ctx.require_equal(*length, size, "all scan inputs must have one length");
      else
        length = size;
      type.shape->erase(type.shape->begin() + axis);
    }
    slices.push_back(ValueFacts::of(std::move(type)));
  }
  std::vector<ValueFacts> states;
  for (size_t i = 0; i < layout.states; ++i) states.push_back(ctx.known(static_cast<int>(i)));
  const auto infer_body = [&](std::span<const ValueFacts> carried) {
    std::vector<ValueFacts> inputs(carried.begin(), carried.end());
    inputs.insert(inputs.end(), slices.begin(), slices.end());
    return ctx.infer_subgraph(body, inputs);
  };
  const Dim trips = length ? *length : ctx.unknown();
  CarriedValues carried(ctx, states, 0);
  std::vector<ValueFacts> made;
  if (ctx.mode().symbolic_values) {
    made = with_kept_shapes(states, infer_body);
  } else {
    made = carried.settle(infer_body);
    for (size_t i = 0; i < layout.states; ++i) states[i] = carried.after(i, trips);
  }
  for (size_t i = 0; i < layout.states; ++i) ctx.set(static_cast<int>(i), states[i].type);
  for (size_t i = 0; i < layout.scanned_out; ++i) {
    ValueType type = carried.in_first(made[layout.states + i].type);
    if (type.shape) {
      const auto rank = static_cast<int64_t>(type.shape->size()) + 1;
      const int64_t axis = ctx.normalized_axis(layout.out_axes[i], rank, "scan_output_axes");
      type.shape->insert(type.shape->begin() + axis, trips);
    }
    ctx.set(static_cast<int>(layout.states + i), std::move(type));
  }
}

ValueType without_axis(ValueType type, int64_t axis) {
  if (!type.shape || type.shape->empty()) return type;
  if (axis < 0) axis += static_cast<int64_t>(type.shape->size());
  type.shape->erase(type.shape->begin() + axis);
  return type;
}

// What the body would be given by a scan that begins with these values.
std::vector<ValueFacts> first_inputs(std::span<const Value> values, std::span<const Tensor> scanned,
                                     std::span<const int64_t> axes) {
  std::vector<ValueFacts> inputs;
  for (const Value& state : values.first(values.size() - scanned.size()))
    inputs.push_back(ValueFacts::of(state));
  for (size_t i = 0; i < scanned.size(); ++i) {
    const Shape& shape = scanned[i].shape();
    inputs.push_back(ValueFacts::of(without_axis(
        ValueType::tensor(scanned[i].element_type(), {shape.begin(), shape.end()}), axes[i])));
  }
  return inputs;
}

// Inference, the standard's as ours, says of a state's last value what is known of its first.
void require_kept_shape(size_t i, const Value& before, const Value& after) {
  if (!before.is_tensor() || !after.is_tensor()) return;
  const Shape &had = before.tensor().shape(), &has = after.tensor().shape();
  if (had == has) return;
  throw Error(ErrorCode::run_failed,
              fmt::format("state {} comes into an iteration with shape {} and leaves it with {}; "
                          "states of Scan keep their shape, those of Loop may change it",
                          i, to_string(had), to_string(has)));
}

void run_scan(RunContext& run, const PreparedGraph& body, const Layout& layout,
              const ScanOutputs& stacks) {
  std::vector<Tensor> inputs;
  int64_t length = -1;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < layout.scanned_in; ++i) {
    inputs.push_back(run.in_value(static_cast<int>(layout.states + i)).tensor());
    const int64_t rank = inputs.back().rank();
    if (layout.in_axes[i] < -rank || layout.in_axes[i] >= rank) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("scan_input_axes[{}] is {}, the input has rank {}", i,
                              layout.in_axes[i], rank));
    }
    axes.push_back(layout.in_axes[i] < 0 ? layout.in_axes[i] + rank : layout.in_axes[i]);
    const int64_t size = inputs.back().shape()[static_cast<size_t>(axes[i])];
    if (length >= 0 && size != length) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("scan inputs have different lengths: {} and {}", length, size));
    }
    length = size;
  }
  std::vector<Value> values(layout.states + layout.scanned_in);
  for (size_t i = 0; i < layout.states; ++i) values[i] = run.in_value(static_cast<int>(i));
  std::vector<std::vector<Value>> scanned(layout.scanned_out);
  std::optional<HeldValues> held(std::in_place, run.environment(), layout.states);
  for (int64_t t = 0; t < length; ++t) {
    run.environment().check_cancelled();
    for (size_t i = 0; i < layout.scanned_in; ++i) {
      values[layout.states + i] =
          slice_at(inputs[i], axes[i], layout.in_directions[i] != 0 ? length - 1 - t : t);
    }
    std::vector<Value> made = body.run(run, values);
    for (size_t i = 0; i < layout.states; ++i) {
      require_kept_shape(i, values[i], made[i]);
      held->carry(i, made[i]);
      values[i] = std::move(made[i]);
    }
    for (size_t i = 0; i < layout.scanned_out; ++i) {
      held->add(made[layout.states + i]);
      scanned[i].push_back(std::move(made[layout.states + i]));
    }
  }
  held.reset();
  std::vector<ValueType> inferred;
  if (length == 0 && !scanned.empty()) {
    inferred = items_of_no_iteration(run, body, stacks,
                                     [&] { return first_inputs(values, inputs, axes); });
  }
  const std::vector<ValueType>& items = inferred.empty() ? stacks.items : inferred;
  for (int i = 0; i < run.output_count(); ++i) {
    if (!run.has_output(i)) continue;
    const auto at = static_cast<size_t>(i);
    if (at < layout.states) {
      set_made_output(run, i, to_owned(values[at]));
    } else {
      const size_t k = at - layout.states;
      run.set_output(i, stacked(run.environment(), scanned[k], layout.out_axes[k],
                                layout.out_directions[k] != 0, items[k]));
    }
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Layout layout = layout_of(ctx);
  ir::SymbolTable names;
  std::vector<ValueFacts> inputs = carried_inputs(ctx, 0, layout.states, names);
  for (size_t i = 0; i < layout.scanned_in; ++i) {
    inputs.push_back(ValueFacts::of(
        without_axis(ctx.in_type(static_cast<int>(layout.states + i)), layout.in_axes[i])));
  }
  ScanOutputs stacks{layout.states, layout.states, layout.out_axes, {}};
  for (size_t i = 0; i < layout.scanned_out; ++i) {
    stacks.items.push_back(
        without_axis(ctx.out_type(static_cast<int>(layout.states + i)), layout.out_axes[i]));
  }
  std::shared_ptr<PreparedGraph> body = ctx.prepare_graph(body_of(ctx), inputs);
  return make_allocating_step(
      "scan", [body, layout, stacks](RunContext& run) { run_scan(run, *body, layout, stacks); });
}

// --- Version 8 ----------------------------------------------------------------------------------

// Names that nothing else has: made from that of an output, which is the model's only one.
class Names {
 public:
  explicit Names(const ir::Node& node) {
    for (const std::string& output : node.outputs) {
      if (prefix_.empty()) prefix_ = output;
    }
  }
  std::string operator()(std::string_view hint) {
    return fmt::format("{}__{}_{}", prefix_, hint, count_++);
  }

 private:
  std::string prefix_;
  int count_ = 0;
};

ir::Node helper(std::string op, std::vector<std::string> inputs, std::string output,
                std::vector<ir::Attribute> attributes = {}) {
  ir::Node node;
  node.op_type = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = {std::move(output)};
  node.attributes = std::move(attributes);
  return node;
}

void add_value(std::vector<ir::ValueInfo>& list, const std::string& name) {
  list.emplace_back().name = name;
}

// The body of a sequence that may end before the scan does: what it carries stands still from
// position `length` on.
ir::Graph until(Names& fresh_name, const ir::Graph& body, size_t states,
                const std::string& length) {
  ir::Graph bounded = body;
  const std::string position = fresh_name("position"), inside = fresh_name("inside");
  add_value(bounded.inputs, position);
  bounded.nodes.push_back(helper("Less", {position, length}, inside));
  for (size_t i = 0; i < states && i < body.inputs.size() && i < body.outputs.size(); ++i) {
    const std::string next = fresh_name(body.outputs[i].name);
    bounded.nodes.push_back(
        helper("Where", {inside, body.outputs[i].name, body.inputs[i].name}, next));
    bounded.outputs[i].name = next;
  }
  return bounded;
}

// Adds what feeds the bounded body with its positions: 0, 1 … of the first scan input. A scan input
// in reverse begins with the last element of its sequence: what lies before `length` is transposed
// around, what lies after stays.
void scan_positions(Names& fresh_name, ir::Node& inner, ir::Graph& around, size_t states,
                    const std::string& length, std::span<const int64_t> directions) {
  const std::string& first_scan = inner.inputs[states];
  const auto constant = [&](int64_t value, Shape shape) {
    std::string name = fresh_name("constant");
    const Tensor tensor = Tensor::of<int64_t>({value}, std::move(shape));
    around.nodes.push_back(helper("Constant", {}, name, {tensor_attribute("value", tensor)}));
    return name;
  };
  const std::string size = fresh_name("size"), count = fresh_name("count");
  around.nodes.push_back(
      helper("Shape", {first_scan}, size, {int_attribute("start", 0), int_attribute("end", 1)}));
  around.nodes.push_back(helper("Squeeze", {size, constant(0, {1})}, count));
  const std::string positions = fresh_name("positions");
  around.nodes.push_back(helper("Range", {constant(0, {}), count, constant(1, {})}, positions));
  inner.inputs.push_back(positions);
  std::string transposed;
  for (size_t i = 0; i < directions.size(); ++i) {
    if (directions[i] == 0) continue;
    if (transposed.empty()) {
      const std::string inside = fresh_name("inside"), last = fresh_name("last"),
                        mirrored = fresh_name("mirrored");
      transposed = fresh_name("transposed");
      around.nodes.push_back(helper("Less", {positions, length}, inside));
      around.nodes.push_back(helper("Sub", {length, constant(1, {})}, last));
      around.nodes.push_back(helper("Sub", {last, positions}, mirrored));
      around.nodes.push_back(helper("Where", {inside, mirrored, positions}, transposed));
    }
    std::string& input = inner.inputs[states + i];
    const std::string backward = fresh_name("backward");
    around.nodes.push_back(helper("Gather", {input, transposed}, backward));
    input = backward;
  }
}

// What version 8 says, checked.
struct Batched {
  size_t operands = 0, scans = 0;
  bool bounded = false;  // by sequence_lens
  std::vector<int64_t> directions;
};

Batched read_batched(const UpgradeContext& ctx, const NodeView& old) {
  Batched batched;
  const int64_t scans = old.attr_int("num_scan_inputs");
  const int64_t operands = std::max<int64_t>(old.input_count() - 1, 0);
  if (scans < 1 || scans > operands) {
    ctx.fail(ErrorCode::invalid_model, "num_scan_inputs must be in [1, {}]; got {}", operands,
             scans);
  }
  batched.operands = static_cast<size_t>(operands);
  batched.scans = static_cast<size_t>(scans);
  batched.bounded = ctx.has_input(0);
  batched.directions = old.attr_ints("directions").value_or(std::vector<int64_t>());
  if (!batched.directions.empty() && batched.directions.size() != batched.scans) {
    ctx.fail(ErrorCode::invalid_model, "directions must have {} entries; it has {}", batched.scans,
             batched.directions.size());
  }
  return batched;
}

// The batch dimension: an outer Scan over the batch runs an inner one over the sequence.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 9) return;
  const ir::Graph& body = body_of(ctx.old());
  Batched old = read_batched(ctx, ctx.old());
  Names fresh_name(ctx.node());
  ir::Graph over_batch;
  over_batch.name = body.name + "_batch";
  ir::Node inner;
  inner.op_type = "Scan";
  inner.name = ctx.node().name;
  for (size_t i = 0; i < old.operands; ++i) {
    inner.inputs.push_back(fresh_name("operand"));
    add_value(over_batch.inputs, inner.inputs.back());
  }
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    inner.outputs.push_back(fresh_name("result"));
    add_value(over_batch.outputs, inner.outputs.back());
  }
  auto& inputs = ctx.node().inputs;
  std::rotate(inputs.begin(), inputs.begin() + 1, inputs.end());  // sequence_lens goes last
  auto scans = static_cast<int64_t>(old.scans);
  if (old.bounded) {
    const size_t states = old.operands - old.scans;
    const std::string length = fresh_name("length");
    add_value(over_batch.inputs, length);
    scan_positions(fresh_name, inner, over_batch, states, length, old.directions);
    inner.attributes = {graph_attribute("body", until(fresh_name, body, states, length))};
    ++scans;
  } else {
    inputs.pop_back();
    inner.attributes = {graph_attribute("body", body)};
    if (!old.directions.empty())
      inner.attributes.push_back(
          ints_attribute("scan_input_directions", std::move(old.directions)));
  }
  inner.attributes.push_back(int_attribute("num_scan_inputs", scans));
  over_batch.nodes.push_back(std::move(inner));
  ctx.node().attributes = {int_attribute("num_scan_inputs", static_cast<int64_t>(inputs.size())),
                           graph_attribute("body", std::move(over_batch))};
}

constexpr Operator operators[] = {
    {.name = "Scan", .infer = infer, .prepare = prepare, .upgrade = upgrade}};

}  // namespace
}  // namespace scan_unit

std::span<const Operator> scan_operators() { return scan_unit::operators; }

}  // namespace sardonyx::ops
