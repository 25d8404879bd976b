// RNN, GRU and LSTM as the operators that they are differentiated through: a Scan for each
// direction, or, of an LSTM with the usual functions, an operator with kernels of its own.
#include <cmath>

#include "autodiff/bodies.h"
#include "base/fail.h"
#include "ops/internal/gradients.h"
#include "ops/internal/node.h"
#include "ops/shared/recurrent_shape.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {
namespace {

using kernels::Gate;
using kernels::GateFunction;
using kernels::RecurrentKind;
using kernels::RecurrentShape;
using ops::int_attribute;
using ops::ints_attribute;
using ops::internal::LSTMRecurrence;
using ops::internal::LSTMRecurrenceGradient;

std::string activation(NodeWriter& w, const Gate& gate, float clip, std::string x) {
  if (clip > 0) x = w.add("Clip", {x, w.number(-clip, x), w.number(clip, x)});
  const auto alpha = ops::float_attribute("alpha", gate.alpha);
  switch (gate.function) {
    case GateFunction::relu: return w.add("Relu", {x});
    case GateFunction::tanh: return w.add("Tanh", {x});
    case GateFunction::sigmoid: return w.add("Sigmoid", {x});
    case GateFunction::softsign: return w.add("Softsign", {x});
    case GateFunction::softplus: return w.add("Softplus", {x});
    case GateFunction::elu: return w.add("Elu", {x}, {alpha});
    case GateFunction::leaky_relu: return w.add("LeakyRelu", {x}, {alpha});
    case GateFunction::thresholded_relu: return w.add("ThresholdedRelu", {x}, {alpha});
    case GateFunction::hard_sigmoid:
      return w.add("HardSigmoid", {x}, {alpha, ops::float_attribute("beta", gate.beta)});
    case GateFunction::affine:
      return w.add("Add", {w.add("Mul", {x, w.number(gate.alpha, x)}), w.number(gate.beta, x)});
    case GateFunction::scaled_tanh:
      return w.add("Mul", {w.add("Tanh", {w.add("Mul", {x, w.number(gate.beta, x)})}),
                           w.number(gate.alpha, x)});
  }
  return x;
}

// What the iterations of one direction read: weights transposed, biases and peepholes cut.
struct Direction {
  const RecurrentShape* shape = nullptr;
  int index = 0;
  std::string r;       // [hidden, gates * hidden]
  Names r_gates;       // of GRU: of z and r, and of h
  std::string h_bias;  // of GRU with linear_before_reset: added before the reset
  Names peepholes;     // i o f
  std::string lengths, zero;
};

std::string sum(NodeWriter& w, const std::string& a, const std::string& b) {
  return b.empty() ? a : w.add("Add", {a, b});
}

// One iteration's new states, of the gates' sums `x` from the inputs.
Names iteration(NodeWriter& w, const Direction& d, const std::string& x, const Names& states) {
  const RecurrentShape& s = *d.shape;
  const Gate* gates = s.gates[d.index];
  const auto act = [&](int gate, const std::string& value) {
    return activation(w, gates[gate], s.clip, value);
  };
  const auto mul = [&](const std::string& a, const std::string& b) { return w.add("Mul", {a, b}); };
  const auto split = [&](const std::string& value, int64_t parts) {
    return w.add_many("Split", {value}, static_cast<size_t>(parts),
                      {int_attribute("axis", 1), int_attribute("num_outputs", parts)});
  };
  const std::string& h = states[0];
  if (s.kind == RecurrentKind::rnn) return {act(0, w.add("Add", {x, w.add("MatMul", {h, d.r})}))};
  if (s.kind == RecurrentKind::lstm) {
    const std::string& c = states[1];
    const Names sums = split(w.add("Add", {x, w.add("MatMul", {h, d.r})}), 4);
    const auto peep = [&](const std::string& value, size_t which, const std::string& cell) {
      return d.peepholes.empty() ? value : w.add("Add", {value, mul(d.peepholes[which], cell)});
    };
    const std::string i = act(0, peep(sums[0], 0, c));
    const std::string f =
        s.input_forget ? w.add("Sub", {w.number(1, i), i}) : act(0, peep(sums[2], 2, c));
    const std::string next = w.add("Add", {mul(f, c), mul(i, act(1, sums[3]))});
    const std::string o = act(0, peep(sums[1], 1, next));
    return {mul(o, act(2, next)), next};
  }
  const Names parts = split(x, 3);
  const Names mine = split(w.add("MatMul", {h, d.r_gates[0]}), 2);
  const std::string z = act(0, w.add("Add", {parts[0], mine[0]}));
  const std::string r = act(0, w.add("Add", {parts[1], mine[1]}));
  const std::string before = s.linear_before_reset
                                 ? mul(r, sum(w, w.add("MatMul", {h, d.r_gates[1]}), d.h_bias))
                                 : w.add("MatMul", {mul(r, h), d.r_gates[1]});
  const std::string candidate = act(1, w.add("Add", {parts[2], before}));
  const std::string kept = w.add("Sub", {w.number(1, z), z});
  return {w.add("Add", {mul(kept, candidate), mul(z, h)})};
}

// The body of the Scan: the states, with lengths the iteration's number, then a slice of the sums.
ir::Graph body_of(const GradientServices& services, const Direction& d) {
  NodeWriter w(services);
  const size_t count = d.shape->kind == RecurrentKind::lstm ? 2 : 1;
  ir::Graph body;
  body.name = "step";
  const auto input = [&](std::string_view hint) {
    return body.inputs.emplace_back().name = w.fresh(hint);
  };
  Names states;
  for (size_t i = 0; i < count; ++i) states.push_back(input("state"));
  const std::string number = d.lengths.empty() ? "" : input("number");
  const std::string x = input("sums");
  Names next = iteration(w, d, x, states);
  std::string y = next[0];
  if (!number.empty()) {
    const std::string alive = w.add("Unsqueeze", {w.add("Less", {number, d.lengths}), w.ints({1})});
    for (size_t i = 0; i < count; ++i) next[i] = w.add("Where", {alive, next[i], states[i]});
    y = w.add("Where", {alive, next[0], d.zero});
    next.push_back(w.add("Add", {number, w.constant(Tensor::scalar<int64_t>(1))}));
  }
  next.push_back(w.add("Identity", {y}));
  for (const std::string& name : next) body.outputs.emplace_back().name = name;
  body.nodes = w.take();
  return body;
}

class Recurrent {
 public:
  Recurrent(const ir::Node& node, GradientEmitter& e)
      : view_(node, schema::newest("", node.op_type)),
        shape_(ops::read_recurrent_shape(view_)),
        services_(e.services()),
        w_(services_) {}

  std::vector<ir::Node> make() {
    if (!std::isfinite(shape_.clip)) shape_.clip = 0;
    x_ = input(0);
    if (shape_.batch_first) x_ = w_.add("Transpose", {x_}, {ints_attribute("perm", {1, 0, 2})});
    if (view_.has_input(4)) {
      lengths_ = w_.add("Cast", {input(4)}, {int_attribute("to", 7)});
      // Only how many elements are transposed counts; one stays where it is.
      transposed_ = w_.add("Max", {lengths_, w_.constant(Tensor::scalar<int64_t>(1))});
    }
    Names ys, hs, cs;
    for (int d = 0; d < shape_.directions; ++d) run(d, ys, hs, cs);
    give(0, ys, 1, {2, 0, 1, 3});
    give(1, hs, 0, {1, 0, 2});
    give(2, cs, 0, {1, 0, 2});
    return w_.take();
  }

 private:
  std::string input(int i) const { return view_.node().inputs[static_cast<size_t>(i)]; }

  // The part of an input that belongs to a direction; "" where it is absent.
  std::string part(int i, int d, int64_t axis = 0) {
    if (!view_.has_input(i)) return "";
    const int64_t both = shape_.directions;
    const std::string one =
        both == 1 ? input(i)
                  : w_.add_many("Split", {input(i)}, static_cast<size_t>(both),
                                {int_attribute("axis", axis),
                                 int_attribute("num_outputs", both)})[static_cast<size_t>(d)];
    return w_.add("Squeeze", {one, w_.ints({axis})});
  }
  Names cut(const std::string& value, int64_t parts, int64_t axis) {
    return w_.add_many("Split", {value}, static_cast<size_t>(parts),
                       {int_attribute("axis", axis), int_attribute("num_outputs", parts)});
  }

  std::string initial(int i, int d, const std::string& r) {
    if (const std::string given = part(i, d, shape_.batch_first ? 1 : 0); !given.empty())
      return given;
    const std::string batch =
        w_.add("Gather", {w_.add("Shape", {x_}), w_.ints({1})}, {int_attribute("axis", 0)});
    const std::string hidden =
        w_.add("Gather", {w_.add("Shape", {r}), w_.ints({1})}, {int_attribute("axis", 0)});
    const std::string sizes = w_.add("Concat", {batch, hidden}, {int_attribute("axis", 0)});
    return w_.add("Expand", {w_.number(0, x_), sizes});
  }

  void run(int index, Names& ys, Names& hs, Names& cs) {
    const bool backwards = shape_.reverse || index == 1;
    const bool gru = shape_.kind == RecurrentKind::gru, lstm = shape_.kind == RecurrentKind::lstm;
    const std::string w = part(1, index), r = part(2, index), b = part(3, index);
    Direction d;
    d.shape = &shape_, d.index = index;
    std::string bias;
    if (!b.empty()) {
      const Names halves = cut(b, 2, 0);
      if (gru && shape_.linear_before_reset) {
        const Names mine = cut(halves[1], 3, 0);
        d.h_bias = mine[2];
        const std::string none = w_.add("Mul", {mine[2], w_.number(0, mine[2])});
        bias = w_.add("Add", {halves[0], w_.add("Concat", {mine[0], mine[1], none},
                                                {int_attribute("axis", 0)})});
      } else {
        bias = w_.add("Add", {halves[0], halves[1]});
      }
    }
    const auto transposed = [&](const std::string& value) {
      return w_.add("Transpose", {value}, {ints_attribute("perm", {1, 0})});
    };
    if (gru) {
      const Names gates = cut(r, 3, 0);
      d.r_gates = {transposed(w_.add("Concat", {gates[0], gates[1]}, {int_attribute("axis", 0)})),
                   transposed(gates[2])};
    } else {
      d.r = transposed(r);
    }
    if (lstm && view_.has_input(7)) d.peepholes = cut(part(7, index), 3, 0);
    d.lengths = lengths_, d.zero = w_.number(0, x_);

    const bool turns = backwards && !lengths_.empty();
    const std::string sums =
        sum(w_, w_.add("MatMul", {turns ? reversed(x_) : x_, transposed(w)}), bias);
    if (lstm && has_kernel(index)) {
      LSTMRecurrence made;
      made.reverse = backwards && !turns;
      Names results;
      for (const char* hint : {"states", "last", "cell", "gates", "cells"})
        results.push_back(w_.fresh(hint));
      w_.append({to_node(made, "",
                         {{LSTMRecurrence::sums, sums},
                          {LSTMRecurrence::r, r},
                          {LSTMRecurrence::initial_h, initial(5, index, r)},
                          {LSTMRecurrence::initial_c, initial(6, index, r)},
                          {LSTMRecurrence::lengths, lengths_}},
                         results)});
      ys.push_back(turns ? reversed(results[0]) : results[0]);
      hs.push_back(results[1]), cs.push_back(results[2]);
      return;
    }
    Names inputs{initial(5, index, r)};
    if (lstm) inputs.push_back(initial(6, index, r));
    if (!lengths_.empty()) inputs.push_back(w_.constant(Tensor::scalar<int64_t>(0)));
    const size_t states = inputs.size();
    inputs.push_back(sums);
    const int64_t way = backwards && !turns ? 1 : 0;
    const Names results = w_.add_many(
        "Scan", inputs, states + 1,
        {ops::graph_attribute("body", body_of(services_, d)), int_attribute("num_scan_inputs", 1),
         ints_attribute("scan_input_directions", {way}),
         ints_attribute("scan_output_directions", {way})});
    ys.push_back(turns ? reversed(results[states]) : results[states]);
    hs.push_back(results[0]);
    if (lstm) cs.push_back(results[1]);
  }

  // LSTMRecurrence has neither peepholes nor bounds, and its functions are the usual ones.
  bool has_kernel(int index) const {
    const Gate* gates = shape_.gates[index];
    return !view_.has_input(7) && !shape_.input_forget && !(shape_.clip > 0) &&
           gates[0].function == GateFunction::sigmoid && gates[1].function == GateFunction::tanh &&
           gates[2].function == GateFunction::tanh;
  }

  std::string reversed(const std::string& value) {
    return w_.add("ReverseSequence", {value, transposed_},
                  {int_attribute("time_axis", 0), int_attribute("batch_axis", 1)});
  }

  // An output of both directions, in the layout that is asked for.
  void give(size_t output, const Names& parts, int64_t axis, std::vector<int64_t> batch_first) {
    const Names& outputs = view_.node().outputs;
    if (output >= outputs.size() || outputs[output].empty()) return;
    Names wider;
    for (const std::string& part : parts)
      wider.push_back(w_.add("Unsqueeze", {part, w_.ints({axis})}));
    const std::string joined = w_.add("Concat", wider, {int_attribute("axis", axis)});
    if (shape_.batch_first)
      w_.add_to({outputs[output]}, "Transpose", {joined}, {ints_attribute("perm", batch_first)});
    else
      w_.add_to({outputs[output]}, "Identity", {joined});
  }

  ops::NodeView view_;
  RecurrentShape shape_;
  const GradientServices& services_;
  NodeWriter w_;
  std::string x_, lengths_, transposed_;
};

// What LSTMRecurrenceGradient computes, as a Scan from the last step to the first.
class RecurrenceGradient {
 public:
  RecurrenceGradient(const ir::Node& node, GradientEmitter& e)
      : node_(node), services_(e.services()), w_(services_) {}

  std::vector<ir::Node> make() {
    const bool reverse = ops::internal::from_node<LSTMRecurrenceGradient>(node_).reverse;
    const std::string cells = in(Op::cells), c = in(Op::initial_c);
    const std::string none = w_.add("Mul", {c, w_.number(0, c)});
    const auto given = [&](int i) { return in(i).empty() ? none : in(i); };
    Names inputs{given(Op::dy_h), given(Op::dy_c)};
    if (has(Op::lengths)) {  // counts the steps down
      const std::string steps = w_.add("Shape", {cells}, {int_attribute("end", 1)});
      inputs.push_back(w_.add("Squeeze", {steps}));
    }
    const size_t states = inputs.size();
    inputs.insert(inputs.end(), {in(Op::gates), cells, earlier(cells, c, reverse)});
    for (const int i : {Op::dy, Op::dgates, Op::dcells})
      if (has(i)) inputs.push_back(in(i));
    const auto count = static_cast<int64_t>(inputs.size() - states);
    const int64_t way = reverse ? 0 : 1;
    const Names results = w_.add_many(
        "Scan", inputs, states + 1,
        {ops::graph_attribute("body", body()), int_attribute("num_scan_inputs", count),
         ints_attribute("scan_input_directions", std::vector<int64_t>(inputs.size() - states, way)),
         ints_attribute("scan_output_directions", {way})});
    give(Op::dsums, results[states]);
    give(Op::dinitial_h, results[0]);
    give(Op::dinitial_c, results[1]);
    return w_.take();
  }

 private:
  using Op = LSTMRecurrenceGradient;

  std::string in(int i) const {
    return static_cast<size_t>(i) < node_.inputs.size() ? node_.inputs[static_cast<size_t>(i)] : "";
  }
  bool has(int i) const { return !in(i).empty(); }
  void give(size_t output, const std::string& value) {
    if (output < node_.outputs.size() && !node_.outputs[output].empty())
      w_.add_to({node_.outputs[output]}, "Identity", {value});
  }
  // The state before each step.
  std::string earlier(const std::string& states, const std::string& initial, bool reverse) {
    const std::string first = w_.add("Unsqueeze", {initial, w_.ints({0})});
    const std::string all = w_.add("Concat", reverse ? Names{states, first} : Names{first, states},
                                   {int_attribute("axis", 0)});
    const std::string end = w_.ints({reverse ? INT64_MAX : -1});
    return w_.add("Slice", {all, w_.ints({reverse ? 1 : 0}), end, w_.ints({0})});
  }

  ir::Graph body() {
    NodeWriter w(services_);
    ir::Graph graph;
    graph.name = "step";
    const auto input = [&](std::string_view hint) {
      return graph.inputs.emplace_back().name = w.fresh(hint);
    };
    const auto mul = [&](const std::string& a, const std::string& b) {
      return w.add("Mul", {a, b});
    };
    const auto add = [&](const std::string& a, const std::string& b) {
      return b.empty() ? a : w.add("Add", {a, b});
    };
    const auto less_than_one = [&](const std::string& x) {
      return w.add("Sub", {w.number(1, x), x});
    };
    const std::string dh = input("dh"), dc = input("dc");
    const std::string number = has(Op::lengths) ? input("number") : "";
    const std::string gates = input("gates"), cell = input("cell"), before = input("before");
    const std::string dy = has(Op::dy) ? input("dy") : "",
                      dgates = has(Op::dgates) ? input("dgates") : "",
                      dcell = has(Op::dcells) ? input("dcell") : "";
    const auto cut = [&](const std::string& value) {
      return w.add_many("Split", {value}, 4,
                        {int_attribute("axis", 1), int_attribute("num_outputs", 4)});
    };
    const Names gate = cut(gates), more = dgates.empty() ? Names(4) : cut(dgates);
    const std::string along = w.add("Tanh", {cell}), h = add(dh, dy);
    const auto flat = [&](const std::string& x) { return less_than_one(mul(x, x)); };
    const std::string c = add(add(dc, mul(mul(h, gate[1]), flat(along))), dcell);
    const auto slope = [&](const std::string& x) { return mul(x, less_than_one(x)); };
    const Names parts{mul(add(mul(c, gate[3]), more[0]), slope(gate[0])),
                      mul(add(mul(h, along), more[1]), slope(gate[1])),
                      mul(add(mul(c, before), more[2]), slope(gate[2])),
                      mul(add(mul(c, gate[0]), more[3]), flat(gate[3]))};
    std::string sums = w.add("Concat", parts, {int_attribute("axis", 1)});
    Names next{w.add("MatMul", {sums, in(Op::r)}), mul(c, gate[2])};
    if (!number.empty()) {
      const std::string step = w.add("Sub", {number, w.constant(Tensor::scalar<int64_t>(1))});
      const std::string alive =
          w.add("Unsqueeze", {w.add("Less", {step, in(Op::lengths)}), w.ints({1})});
      next = {w.add("Where", {alive, next[0], dh}),
              w.add("Where", {alive, next[1], add(dc, dcell)}), step};
      sums = w.add("Where", {alive, sums, w.number(0, sums)});
    }
    next.push_back(w.add("Identity", {sums}));
    for (const std::string& name : next) graph.outputs.emplace_back().name = name;
    graph.nodes = w.take();
    return graph;
  }

  const ir::Node& node_;
  const GradientServices& services_;
  NodeWriter w_;
};

}  // namespace

std::vector<ir::Node> recurrent_body(const ir::Node& node, GradientEmitter& e) {
  return Recurrent(node, e).make();
}

std::vector<ir::Node> recurrence_gradient_body(const ir::Node& node, GradientEmitter& e) {
  return RecurrenceGradient(node, e).make();
}

// One product over all steps for R; what flows into the sums is handed on.
void recurrence_gradient(const GradientCall& call, GradientEmitter& e) {
  using Back = LSTMRecurrenceGradient;
  const Names &inputs = call.node.inputs, &outputs = call.node.outputs;
  const auto at = [](const auto& names, int i) {
    return static_cast<size_t>(i) < names.size() ? names[static_cast<size_t>(i)] : std::string();
  };
  const auto wanted = [&](int i) {
    return static_cast<size_t>(i) < call.wanted.size() && call.wanted[static_cast<size_t>(i)];
  };
  const bool reverse = ops::internal::from_node<LSTMRecurrence>(call.node).reverse;
  Back made;
  made.reverse = reverse;
  const auto fresh = [&](bool asked, std::string_view hint) {
    return asked ? e.services().fresh_name(hint) : std::string();
  };
  const Names results{fresh(true, "dsums"), fresh(wanted(LSTMRecurrence::initial_h), "dinitial_h"),
                      fresh(wanted(LSTMRecurrence::initial_c), "dinitial_c")};
  const auto flow = [&](int output) { return at(call.of_outputs, output); };
  e.emit(to_node(made, "",
                 {{Back::r, inputs[LSTMRecurrence::r]},
                  {Back::gates, outputs[LSTMRecurrence::gates]},
                  {Back::cells, outputs[LSTMRecurrence::cells]},
                  {Back::initial_c, inputs[LSTMRecurrence::initial_c]},
                  {Back::lengths, at(inputs, LSTMRecurrence::lengths)},
                  {Back::dy, flow(LSTMRecurrence::y)},
                  {Back::dy_h, flow(LSTMRecurrence::y_h)},
                  {Back::dy_c, flow(LSTMRecurrence::y_c)},
                  {Back::dgates, flow(LSTMRecurrence::gates)},
                  {Back::dcells, flow(LSTMRecurrence::cells)}},
                 results),
         newest_imports());
  if (wanted(LSTMRecurrence::sums)) call.of_inputs[LSTMRecurrence::sums] = results[0];
  if (wanted(LSTMRecurrence::initial_h)) call.of_inputs[LSTMRecurrence::initial_h] = results[1];
  if (wanted(LSTMRecurrence::initial_c)) call.of_inputs[LSTMRecurrence::initial_c] = results[2];
  if (!wanted(LSTMRecurrence::r)) return;
  const std::string first = e.emit("Unsqueeze", {inputs[LSTMRecurrence::initial_h], e.ints({0})}),
                    &y = outputs[LSTMRecurrence::y];
  const std::string all =
      e.emit("Concat", reverse ? Names{y, first} : Names{first, y}, {int_attribute("axis", 0)});
  const std::string before = e.emit(
      "Slice", {all, e.ints({reverse ? 1 : 0}), e.ints({reverse ? INT64_MAX : -1}), e.ints({0})});
  const auto rows = [&](const std::string& value, const std::string& like, int64_t axis) {
    const std::string width =
        e.emit("Shape", {like}, {int_attribute("start", axis), int_attribute("end", axis + 1)});
    return e.emit("Reshape",
                  {value, e.emit("Concat", {e.ints({-1}), width}, {int_attribute("axis", 0)})});
  };
  const std::string& r = inputs[LSTMRecurrence::r];
  call.of_inputs[LSTMRecurrence::r] =
      e.emit("Gemm", {rows(results[0], r, 0), rows(before, r, 1)}, {int_attribute("transA", 1)});
}

}  // namespace sardonyx::autodiff
