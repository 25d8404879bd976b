// Rules of scopes: what is defined where, once, and before it is used. One pass over a graph and
// all that is nested in it.
#include <algorithm>
#include <optional>

#include "base/name_map.h"
#include "check/context.h"
#include "check/cycles.h"
#include "ir/origin.h"

namespace sardonyx::check {
namespace {

constexpr size_t max_suggestions = 20;  // looking for similar names takes a while

enum class Origin { input, initializer, initialized_input, node };

// A use of a value that its graph defines later.
struct EarlyUse {
  std::string_view name;
  size_t user;      // the node of that graph that uses it, or holds the graph that does
  bool is_capture;  // used in a nested graph
};

// A graph that the pass is in.
struct Frame {
  const ir::WalkPlace* place;
  NameMap<Origin> defined;
  NameMap<size_t> producers;          // of its nodes' outputs, once looked for
  const ir::Node* pending = nullptr;  // its outputs are defined once what it holds is done
  size_t pending_index = 0;
  std::vector<EarlyUse> early;
  NameMap<bool> node_names;
};

class ScopePass {
 public:
  ScopePass(Context& context, const Unit& unit, const Outer& outer)
      : context_(context), report_(context.report), unit_(unit), outer_(outer) {}

  ir::WalkCallbacks callbacks() {
    return {[this](const ir::WalkPlace& place) { return enter(place); },
            [this](const ir::WalkPlace& place) { leave(place); },
            [this](const ir::WalkPlace& place, const ir::Node& node, size_t index) {
              this->node(place, node, index);
            }};
  }
  NameSet take_names() { return std::move(names_); }

 private:
  bool enter(const ir::WalkPlace& place);
  void leave(const ir::WalkPlace& place);
  void node(const ir::WalkPlace& place, const ir::Node& node, size_t index);

  static const std::vector<ir::Node>& nodes_of(const ir::WalkPlace& place) {
    return place.graph ? place.graph->nodes : place.function->nodes;
  }
  // The rule for a function's own body, or for graphs.
  bool in_body(const ir::WalkPlace& place) const { return place.graph == nullptr; }

  // About as many as the graph defines.
  static size_t names_in(const ir::WalkPlace& place) {
    const size_t nodes = nodes_of(place).size();
    if (!place.graph) return nodes + place.function->inputs.size();
    return nodes + place.graph->inputs.size() + place.graph->initializers.size();
  }
  static void find_producers(Frame& frame);

  void define_inputs(Frame& frame);
  void define_initializers(Frame& frame);
  void define_formals(Frame& frame);
  void define_pending(Frame& frame);
  void define_output(Frame& frame, const Where& where, const std::string& name);
  bool visible_outside(std::string_view name) const;
  void report_shadowing(const Where& where, std::string_view name, RuleId rule);
  void use(const Where& where, const std::string& name);
  void report_unknown(const Where& where, const std::string& name);
  void check_outputs(const Frame& frame);
  void check_value_info(const Frame& frame);
  void check_annotations(const Frame& frame);
  void report_early_uses(Frame& frame);

  Context& context_;
  Report& report_;
  const Unit& unit_;
  const Outer outer_;
  std::vector<Frame> frames_;
  NameSet names_;
  std::unordered_map<const ir::Graph*, int> visits_;
  size_t suggestions_ = 0;
  size_t odd_names_ = 0;
};

bool ScopePass::enter(const ir::WalkPlace& place) {
  const Where where{.graph = &place};
  if (place.depth > max_graph_depth) {
    report_("L-01", where, "", "graphs nest at most {} deep", max_graph_depth);
    return false;
  }
  // Attributes that a program built may share graphs; one in each of many would be visited as
  // often as there are ways to it.
  if (place.graph && ++visits_[place.graph] > max_visits) return false;
  Frame& frame = frames_.emplace_back();
  frame.place = &place;
  frame.defined.reserve(names_in(place));
  frame.node_names.reserve(nodes_of(place).size());
  if (place.graph) {
    check_interface(context_, place);
    if (place.outer) check_subgraph_arity(context_, unit_, place);
    define_inputs(frame);
    define_initializers(frame);
  } else {
    define_formals(frame);
  }
  return true;
}

void ScopePass::find_producers(Frame& frame) {
  if (frame.producers.size() != 0) return;
  const std::vector<ir::Node>& nodes = nodes_of(*frame.place);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) frame.producers.emplace(output, i);
  }
}

void ScopePass::define_formals(Frame& frame) {
  for (const std::string& name : frame.place->function->inputs) {
    frame.defined.emplace(name, Origin::input);
  }
}

void ScopePass::define_inputs(Frame& frame) {
  for (const ir::ValueInfo& input : frame.place->graph->inputs) {
    const Where where = Where{.graph = frame.place}.in("input", input.name);
    if (input.name.empty()) continue;  // check_interface reports it
    if (!frame.defined.emplace(input.name, Origin::input).second) {
      report_("G-22", where, "rename one", "two inputs have this name");
    }
    check_utf8(context_, where, "value", input.name);
    report_shadowing(where, input.name, "S-05");
  }
}

void ScopePass::define_initializers(Frame& frame) {
  const auto define = [&](const std::string& name, bool sparse) {
    if (name.empty()) return;
    const auto [origin, is_new] = frame.defined.emplace(name, Origin::initializer);
    const bool says_nothing = is_new && frames_.size() == 1 && outer_.names == nullptr &&
                              !report_.wants("G-13") && is_c_identifier(name);
    if (says_nothing) return;
    const Where where =
        Where{.graph = frame.place}.in(sparse ? "sparse initializer" : "initializer", name);
    if (!is_new && *origin != Origin::input) {
      report_("G-10", where, "rename or remove one", "two initializers have this name");
      return;
    }
    if (!is_new) *origin = Origin::initialized_input;
    if (is_new) {
      check_utf8(context_, where, "value", name);
      report_("G-13", where, "list it among the inputs",
              "up to IR version 3 an initializer is a graph input, too");
      report_shadowing(where, name, "S-05");
    } else if (frame.place->outer) {
      report_("S-08", where, "remove it from the inputs",
              "an input of a nested graph cannot be an initializer");
    }
  };
  for (const ir::TensorProto& tensor : frame.place->graph->initializers) define(tensor.name, false);
  for (const ir::SparseTensorProto& tensor : frame.place->graph->sparse_initializers) {
    define(tensor.values.name, true);
  }
}

bool ScopePass::visible_outside(std::string_view name) const {
  for (size_t i = 0; i + 1 < frames_.size(); ++i) {
    if (frames_[i].defined.contains(name)) return true;
  }
  return false;
}

void ScopePass::report_shadowing(const Where& where, std::string_view name, RuleId rule) {
  if (report_.wants(rule) && visible_outside(name)) {
    report_(rule, where, "rename it", "the name is a value of an enclosing graph, too");
  }
  if (!outer_.may_define && frames_.size() == 1 && outer_.names->contains(name)) {
    report_("TR-14", where, "rename it", "the name is a value of the main graph, too");
  }
}

void ScopePass::define_pending(Frame& frame) {
  if (!frame.pending) return;
  const ir::Node& node = *std::exchange(frame.pending, nullptr);
  for (const std::string& output : node.outputs) {
    if (output.empty()) continue;
    define_output(frame, {.graph = frame.place, .node = &node, .node_index = frame.pending_index},
                  output);
  }
}

void ScopePass::define_output(Frame& frame, const Where& where, const std::string& name) {
  const auto [origin, is_new] = frame.defined.emplace(name, Origin::node);
  const auto place = [&] { return where.in("output", name); };
  if (!is_new) {
    const std::string_view what = *origin == Origin::node          ? "an output of another node"
                                  : *origin == Origin::initializer ? "an initializer"
                                                                   : "an input";
    const RuleId rule = in_body(*frame.place)     ? RuleId("F-08")
                        : *origin == Origin::node ? RuleId("G-21")
                                                  : RuleId("G-22");
    report_(rule, place(), "rename it", "a value is assigned once; the name is {}, too", what);
    return;
  }
  if (frames_.size() > 1 || outer_.names) report_shadowing(place(), name, "S-04");
  if (is_c_identifier(name)) return;
  ++odd_names_;
  if (!is_utf8(name)) check_utf8(context_, place(), "value", name);
}

void ScopePass::node(const ir::WalkPlace& place, const ir::Node& node, size_t index) {
  Frame& frame = frames_.back();
  define_pending(frame);
  const Where where{.graph = &place, .node = &node, .node_index = index};
  for (const std::string& input : node.inputs) {
    if (!input.empty()) use(where, input);
  }
  if (!node.name.empty() && !frame.node_names.emplace(node.name, true).second) {
    report_("N-05", where, "", "another node of the graph has this name");
  }
  check_utf8(context_, where, "node", node.name);
  check_node(context_, unit_, where);
  frame.pending = &node;
  frame.pending_index = index;
}

void ScopePass::use(const Where& where, const std::string& name) {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (frame->defined.contains(name)) return;
  }
  if (outer_.names && outer_.names->contains(name)) return;
  for (size_t i = frames_.size(); i-- > 0;) {
    Frame& frame = frames_[i];
    find_producers(frame);
    const size_t* producer = frame.producers.find(name);
    if (producer == nullptr) continue;
    const bool is_capture = i + 1 < frames_.size();
    const size_t user = is_capture ? frames_[i + 1].place->holder_index : where.node_index;
    frame.early.push_back({name, user, is_capture});
    return;
  }
  report_unknown(where, name);
}

void ScopePass::report_unknown(const Where& where, const std::string& name) {
  std::string advice;
  if (suggestions_++ < max_suggestions) {
    std::vector<std::string_view> names;
    for (const Frame& frame : frames_) {
      frame.defined.for_each([&](std::string_view known, Origin) { names.push_back(known); });
    }
    std::ranges::sort(names);  // the same advice on every machine
    advice = did_you_mean(closest(name, names));
  }
  const Where place = where.in("input", name);
  if (unit_.function) {
    report_("F-09", place, advice, "no value of the function has this name");
  } else {
    report_("D-08", place, advice, "no input, initializer or node output has this name");
  }
}

void ScopePass::leave(const ir::WalkPlace& place) {
  Frame& frame = frames_.back();
  define_pending(frame);
  report_early_uses(frame);
  if (place.graph) {
    check_outputs(frame);
    check_annotations(frame);
  }
  check_value_info(frame);
  if (!place.outer) {
    if (!context_.model.training_info.empty()) {
      frame.defined.for_each([&](std::string_view name, Origin) { names_.insert(name); });
    }
    if (odd_names_ > 0) {
      report_("N-01", {.graph = &place}, "",
              "names should be C identifiers; {} of the nodes' outputs are none", odd_names_);
    }
  }
  frames_.pop_back();
}

void ScopePass::check_outputs(const Frame& frame) {
  std::unordered_set<std::string_view> seen;
  for (const ir::ValueInfo& output : frame.place->graph->outputs) {
    if (output.name.empty()) continue;
    const Where where = Where{.graph = frame.place}.in("output", output.name);
    if (!seen.insert(output.name).second) {
      report_("G-25", where, "", "two outputs have this name");
    }
    if (frame.defined.contains(output.name)) continue;
    if (outer_.names && outer_.names->contains(output.name)) continue;
    if (visible_outside(output.name)) {
      report_("S-07", where, "return it through an Identity node",
              "an output of a nested graph is a value of it; this is of an enclosing graph");
    } else {
      report_("G-23", where, "", "no node output, input or initializer has this name");
    }
  }
}

void ScopePass::check_value_info(const Frame& frame) {
  const ir::WalkPlace& place = *frame.place;
  const RuleId rule = in_body(place) ? RuleId("F-21") : RuleId("G-19");
  const auto& infos = place.graph ? place.graph->value_info : place.function->value_info;
  if (infos.empty()) return;
  std::unordered_set<std::string_view> interface, seen;
  if (place.graph) {
    for (const ir::ValueInfo& info : place.graph->inputs) interface.insert(info.name);
    for (const ir::ValueInfo& info : place.graph->outputs) interface.insert(info.name);
  }
  for (const ir::ValueInfo& info : infos) {
    const Where where = Where{.graph = &place}.in("value_info", info.name);
    if (info.name.empty()) {
      report_("T-15", where, "", "an entry has a name; it is empty");
      continue;
    }
    if (!seen.insert(info.name).second) {
      report_(rule, where, "remove one", "the value has two entries");
    } else if (interface.contains(info.name)) {
      report_(rule, where, "remove it", "the value is an input or output, which says its type");
    } else if (!frame.defined.contains(info.name)) {
      report_(rule, where, "remove it", "no value has this name");
    }
    if (info.type) check_type(context_, where, *info.type, false);
  }
}

void ScopePass::check_annotations(const Frame& frame) {
  for (const ir::TensorAnnotation& annotation : frame.place->graph->quantization_annotation) {
    const Where where =
        Where{.graph = frame.place}.in("quantization annotation", annotation.tensor_name);
    if (!frame.defined.contains(annotation.tensor_name)) {
      report_("G-28", where, "", "no value has this name");
    }
    std::unordered_set<std::string_view> keys;
    for (const ir::StringEntry& entry : annotation.quant_parameter_tensor_names) {
      if (entry.key != "SCALE_TENSOR" && entry.key != "ZERO_POINT_TENSOR") {
        report_("G-28", where, "", "keys are SCALE_TENSOR and ZERO_POINT_TENSOR; found '{}'",
                entry.key);
      } else if (!keys.insert(entry.key).second) {
        report_("G-28", where, "", "the key {} occurs twice", entry.key);
      }
      if (!frame.defined.contains(entry.value)) {
        report_("G-28", where, "", "no value has the name '{}'", entry.value);
      }
    }
  }
}

void ScopePass::report_early_uses(Frame& frame) {
  if (frame.early.empty()) return;
  const std::vector<ir::Node>& nodes = nodes_of(*frame.place);
  const Cycles cycles = find_cycles(nodes, frame.producers);
  for (const std::vector<size_t>& cycle : cycles.paths) {
    constexpr size_t shown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(cycle.size(), shown); ++i) {
      text += fmt::format("node {} {} -> ", cycle[i], ir::identify(nodes[cycle[i]]));
    }
    if (cycle.size() > shown) text += fmt::format("{} more -> ", cycle.size() - shown);
    report_("G-02", {.graph = frame.place, .node = &nodes[cycle[0]], .node_index = cycle[0]},
            "break it; loops are written with Loop or Scan", "nodes form no cycle; found {}node {}",
            text, cycle[0]);
  }
  for (const EarlyUse& early : frame.early) {
    const size_t producer = *frame.producers.find(early.name);
    if (cycles.component[producer] == cycles.component[early.user]) continue;
    const RuleId rule = early.is_capture        ? RuleId("S-03")
                        : in_body(*frame.place) ? RuleId("F-07")
                        : frame.place->outer    ? RuleId("G-04")
                                                : RuleId("G-03");
    const Where where =
        Where{.graph = frame.place, .node = &nodes[early.user], .node_index = early.user}.in(
            fmt::format("{} '{}'", early.is_capture ? "captured value" : "input", early.name));
    report_(rule, where, "sort the nodes topologically",
            "a value is computed before it is used; node {} {} computes it later", producer,
            ir::identify(nodes[producer]));
  }
}

}  // namespace

NameSet check_graph(Context& context, const Unit& unit, const ir::Graph& graph,
                    std::string_view root, const Outer& outer) {
  ScopePass pass(context, unit, outer);
  ir::walk(graph, root, pass.callbacks());
  return pass.take_names();
}

void check_body(Context& context, const Unit& unit, const ir::Function& function) {
  ScopePass pass(context, unit, {});
  ir::walk(function, pass.callbacks());
}

}  // namespace sardonyx::check
