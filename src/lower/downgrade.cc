#include "lower/downgrade.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "infer/infer.h"
#include "ir/instantiate.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "lower/callable_functions.h"
#include "lower/downgrade_rules.h"
#include "lower/fresh_names.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "schema/schema.h"

namespace sardonyx::lower {
namespace {

using std::string_view_literals::operator""sv;

bool same(const ir::Attribute& a, const ir::Attribute& b) {
  return a.kind == b.kind && a.f == b.f && a.i == b.i && a.s == b.s && a.floats == b.floats &&
         a.ints == b.ints && a.strings == b.strings && a.t == b.t && a.g == b.g;
}

bool same(const ir::Node& a, const ir::Node& b) {
  if (a.op_type != b.op_type || a.inputs != b.inputs || a.outputs != b.outputs ||
      a.attributes.size() != b.attributes.size())
    return false;
  return std::ranges::all_of(a.attributes, [&](const ir::Attribute& x) {
    const ir::Attribute* y = b.find(x.name);
    return y != nullptr && same(x, *y);
  });
}

bool is_default(const ir::Attribute& given, const schema::Attribute& declared) {
  if (!declared.has_default || given.kind != declared.kind || !given.ref_attr_name.empty())
    return false;
  switch (given.kind) {
    case ir::AttributeKind::int_: return given.i == declared.default_int;
    case ir::AttributeKind::float_: return given.f == declared.default_float;
    case ir::AttributeKind::string: return given.s == declared.default_string;
    default: return false;
  }
}

// Leaves out attributes that the older version lacks and that say what the newest means without
// them.
void drop_defaults(ir::Node& node, const schema::Signature& bound) {
  const schema::Signature* newest = schema::newest(node.domain, node.op_type);
  if (newest == nullptr) return;
  std::erase_if(node.attributes, [&](const ir::Attribute& attribute) {
    if (bound.attribute(attribute.name) != nullptr) return false;
    const schema::Attribute* declared = newest->attribute(attribute.name);
    return declared != nullptr && is_default(attribute, *declared);
  });
}

// Whether upgrading would leave a node of the newest form as it is: then it means the same in the
// older version.
bool means_the_same(const ir::Node& node, const schema::Signature& older) {
  const ops::Operator* op = ops::find_operator(node.domain, node.op_type);
  if (op == nullptr || op->upgrade == nullptr) return true;
  ir::Node copy = node;
  ops::UpgradeContext::Services services;
  services.fresh_name = [](std::string_view hint) { return std::string(hint); };
  ops::UpgradeContext context(copy, older.since, &older, services);
  try {
    op->upgrade(context);
  } catch (const Error&) {
    return false;
  }
  drop_defaults(copy, older);
  return !context.dropped() && context.take_before().empty() && context.take_after().empty() &&
         same(node, copy);
}

// Why the node does not fit the signature by what it has; empty where it does.
std::string misfit(const ir::Node& node, const schema::Signature& bound) {
  if (static_cast<int64_t>(node.inputs.size()) > bound.max_inputs)
    return fmt::format("it takes at most {} inputs there", bound.max_inputs);
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    const schema::Formal& formal = bound.inputs[i];
    if (formal.option == schema::FormalOption::single && !has_input(node, i))
      return fmt::format("it needs the input '{}' there", formal.name);
  }
  if (static_cast<int64_t>(node.outputs.size()) > bound.max_outputs)
    return fmt::format("it gives at most {} outputs there", bound.max_outputs);
  for (const ir::Attribute& attribute : node.attributes) {
    const schema::Attribute* declared = bound.attribute(attribute.name);
    if (declared == nullptr) return fmt::format("it has no attribute '{}' there", attribute.name);
    const ir::AttributeKind kind = attribute.effective_kind();
    if (kind != ir::AttributeKind::undefined && kind != declared->kind)
      return fmt::format("its attribute '{}' is of another kind there", attribute.name);
  }
  for (const schema::Attribute& declared : bound.attributes) {
    if (declared.required && node.find(declared.name) == nullptr)
      return fmt::format("it needs the attribute '{}' there", declared.name);
  }
  return {};
}

// Whether all of the type but its sizes is known.
bool is_whole(const ir::ValueType& type) {
  const ir::ValueType* layer = &type;
  while (layer->nested && layer->kind != ir::TypeProto::Kind::map) layer = layer->nested.get();
  return layer->is_tensor() && layer->element != ElementType::undefined;
}

// Absent inputs and outputs at the end may be more than the older version has.
void trim(std::vector<std::string>& names) {
  while (!names.empty() && names.back().empty()) names.pop_back();
}

// The version of a node's operator; null where the opset has none that is the standard's.
const schema::Signature* bound_to(const ir::Node& node, int64_t opset) {
  const schema::Signature* bound = schema::find(node.domain, node.op_type, opset);
  if (bound == nullptr || bound->deprecated) return nullptr;
  const bool is_newest = bound == schema::newest(node.domain, node.op_type);
  return bound->extra && !is_newest ? nullptr : bound;
}

class Downgrading {
 public:
  Downgrading(const ir::Model& model, int64_t opset)
      : opset_(opset), functions_(model), names_(model, false) {
    inference_.symbols = &symbols_;
    inference_.problem = [](const ir::Node&, const Error&) {};
    inference_.inferred = [this](const ir::Graph& graph, std::unique_ptr<infer::Scope> scope) {
      scopes_.insert_or_assign(&graph, std::move(scope));
    };
  }

  ir::Graph run(const ir::Graph& graph) {
    infer::Scope scope;
    infer::enter(graph, scope, inference_);
    infer::enter_initializers(graph, scope, inference_);  // inputs keep the values they have
    ir::Graph made = carried(graph, scope);
    std::ranges::move(hoisted_, std::back_inserter(made.initializers));
    leave_out_released(made);
    return made;
  }

 private:
  static constexpr int max_depth = 32;  // of what stands for a node

  struct Place {
    infer::Scope& scope;
    infer::Walk& walk;
    std::vector<ir::Node>& out;
  };

  // The graph with its nodes carried down. What is known of its inputs is in `scope`.
  ir::Graph carried(const ir::Graph& graph, infer::Scope& scope) {
    ir::Graph made = ir::interface_of(graph);
    infer::Walk walk(graph, scope, inference_);
    Place place{scope, walk, made.nodes};
    for (const ir::Node& node : graph.nodes) {
      at_ = &node;
      add(node, place, 0);
    }
    return made;
  }

  // Adds a node of the newest version, or what stands for it.
  void add(ir::Node node, Place& place, int depth) {
    place.walk.step(node);
    if (ops::internal::is<ops::internal::InRange>(node)) {
      node.inputs.resize(ops::internal::InRange::x + 1);
      node.domain.clear(), node.op_type = "Identity";
      node.attributes.clear();
    }
    carry_subgraphs(node, place);
    if (!ir::canonical_domain(node.domain).empty()) return place.out.push_back(std::move(node));
    const std::string reason = carry(node, place, depth);
    if (!reason.empty()) refuse(node, reason, place);
  }

  // Where no form is found: why.
  std::string carry(const ir::Node& node, Place& place, int depth) {
    if (depth > max_depth) return "what stands for it there nests too deep";
    const schema::Signature* bound = bound_to(node, opset_);
    ir::Node plain = node;
    trim(plain.inputs), trim(plain.outputs);
    if (bound != nullptr) drop_defaults(plain, *bound);
    count_axes_from_the_start(plain, place);
    std::string reason = why_not(plain, bound, place);
    if (reason.empty()) {
      place.out.push_back(std::move(plain));
      return {};
    }
    if (const DowngradeRule rule = downgrade_rule(node.op_type)) {
      std::string cannot = apply(rule, node, bound, place, depth);
      if (cannot.empty()) return {};
      reason = bound != nullptr ? std::move(cannot)
                                : fmt::format("that has no such operator, and {}", cannot);
    }
    if (const ir::Function* body = functions_.standard(node)) {
      const auto fresh = [this](std::string_view hint) { return names_.make(hint); };
      release(node.inputs);
      for (ir::Node& inner : ir::instantiate(*body, node, fresh)) {
        inner.origin = fmt::format("from {}", node.op_type);
        add(std::move(inner), place, depth + 1);
      }
      return {};
    }
    return reason;
  }

  // Why a node of the newest form cannot be one of `bound`; null: there is no such operator.
  std::string why_not(const ir::Node& node, const schema::Signature* bound, const Place& place) {
    if (std::string reason = obstacle(node, opset_); !reason.empty()) return reason;
    return why_not_by_values(node, *bound, place);
  }

  std::string why_not_by_values(const ir::Node& node, const schema::Signature& bound,
                                const Place& place) {
    if (std::string reason = unknown_value(node, opset_); !reason.empty()) return reason;
    const auto wrong = [&](const std::string& name, const schema::Formal* formal,
                           std::string_view what) -> std::string {
      const ops::ValueFacts* known = name.empty() ? nullptr : place.scope.find(name);
      if (known == nullptr || formal == nullptr) return {};
      const ir::ValueType& type = known->type;
      if (!is_whole(type) || schema::allows(*formal, schema::type_id(type))) return {};
      return fmt::format("its {} '{}' must not be {} there", what, formal->name,
                         to_string(schema::type_id(type)));
    };
    if (std::string reason = broadcasts(node, place); !reason.empty()) return reason;
    if (node.op_type == "Mod" && opset_ < 28 && divides_floats(node, place))
      return "floating-point numbers need fmod = 1 there";
    if (node.op_type == "GridSample" && opset_ < 20 && !is_image(node, place))
      return "its input is no image of two dimensions, as all are there";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (std::string reason = wrong(node.inputs[i], bound.input(i), "input"); !reason.empty())
        return reason;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (std::string reason = wrong(node.outputs[i], bound.output(i), "output"); !reason.empty())
        return reason;
    }
    return mixes_types(node, bound, place);
  }

  // Types that the newest version lets differ.
  static std::string mixes_types(const ir::Node& node, const schema::Signature& bound,
                                 const Place& place) {
    if (&bound == schema::newest(node.domain, node.op_type)) return {};
    struct First {
      schema::TypeId type;
      std::string_view name;  // of the formal
    };
    std::vector<std::optional<First>> first(bound.constraints.size());
    const auto other = [&](const std::string& name, const schema::Formal* formal) -> const First* {
      if (name.empty() || formal == nullptr || formal->constraint < 0 || !formal->homogeneous)
        return nullptr;
      const ops::ValueFacts* known = place.scope.find(name);
      if (known == nullptr || !is_whole(known->type)) return nullptr;
      std::optional<First>& seen = first[static_cast<size_t>(formal->constraint)];
      const schema::TypeId type = schema::type_id(known->type);
      if (!seen) seen = First{type, formal->name};
      return seen->type == type ? nullptr : &*seen;
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (const First* same = other(node.inputs[i], bound.input(i)))
        return fmt::format("its input '{}' must have the type of its '{}' there",
                           bound.input(i)->name, same->name);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (const First* same = other(node.outputs[i], bound.output(i)))
        return fmt::format("its output '{}' must have the type of its '{}' there",
                           bound.output(i)->name, same->name);
    }
    return {};
  }

  static bool is_image(const ir::Node& node, const Place& place) {
    const ops::ValueFacts* known = node.inputs.empty() ? nullptr : place.scope.find(node.inputs[0]);
    return known == nullptr || !known->type.shape || known->type.shape->size() == 4;
  }

  static bool divides_floats(const ir::Node& node, const Place& place) {
    const ir::Attribute* fmod = node.find("fmod");
    const ops::ValueFacts* known = node.inputs.empty() ? nullptr : place.scope.find(node.inputs[0]);
    return (fmod == nullptr || fmod->i.value_or(0) == 0) && known != nullptr &&
           known->type.is_tensor() && is_floating(known->type.element);
  }

  // Shapes that differ are new to most operators in opset 7, to those of many inputs in opset 8.
  std::string broadcasts(const ir::Node& node, const Place& place) const {
    constexpr std::array of_many = {"Max"sv, "Mean"sv, "Min"sv, "Sum"sv};
    constexpr std::array of_two = {"Add"sv, "And"sv, "Div"sv,   "Equal"sv, "Greater"sv, "Less"sv,
                                   "Mul"sv, "Or"sv,  "PRelu"sv, "Pow"sv,   "Sub"sv,     "Xor"sv};
    const bool is_concerned =
        (opset_ < 8 && std::ranges::find(of_many, node.op_type) != of_many.end()) ||
        (opset_ < 7 && std::ranges::find(of_two, node.op_type) != of_two.end());
    if (opset_ < 7 && node.op_type == "Gemm" && node.find("broadcast") == nullptr) {
      const ops::ValueFacts* added =
          has_input(node, 2) ? place.scope.find(node.inputs[2]) : nullptr;
      const ops::ValueFacts* made = place.scope.find(node.outputs[0]);
      if (added == nullptr || made == nullptr || !added->type.shape ||
          added->type.shape != made->type.shape)
        return "what it adds must have the shape of its output there";
      return {};
    }
    if (!is_concerned || node.inputs.empty()) return {};
    const ops::ValueFacts* first = place.scope.find(node.inputs[0]);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const ops::ValueFacts* known = place.scope.find(node.inputs[i]);
      if (first == nullptr || known == nullptr || !first->type.shape ||
          first->type.shape != known->type.shape)
        return "its inputs must have one shape there";
    }
    return {};
  }

  // An attribute `axis` below 0 is new in opset 11, but for operators whose default it was.
  void count_axes_from_the_start(ir::Node& node, const Place& place) const {
    if (opset_ >= 11 || node.op_type == "TopK" || node.op_type == "OneHot" || node.inputs.empty())
      return;
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.name != "axis" || attribute.i.value_or(0) >= 0) continue;
      const ops::ValueFacts* known = place.scope.find(node.inputs[0]);
      if (known == nullptr || !known->type.shape) continue;
      attribute.i = *attribute.i + static_cast<int64_t>(known->type.shape->size());
    }
  }

  // Constants of opsets up to 8 are floating-point numbers; initializers of the main graph are of
  // any type.
  void hoist(ir::Node&& node, Place& place) {
    ir::TensorProto tensor = *node.find("value")->t;
    tensor.name = names_.make(node.outputs[0]);
    node.op_type = "Identity";
    node.attributes.clear();
    node.inputs = {tensor.name};
    hoisted_.push_back(std::move(tensor));
    place.out.push_back(std::move(node));
  }

  std::string apply(DowngradeRule rule, const ir::Node& node, const schema::Signature* bound,
                    Place& place, int depth) {
    ops::UpgradeContext::Services services;
    services.fresh_name = [this](std::string_view hint) { return names_.make(hint); };
    services.known = [&](std::string_view name) { return place.scope.find(name); };
    ir::Node changed = node;
    DowngradeContext context(changed, bound, opset_, services);
    try {
      rule(context);
    } catch (const CannotSay& cannot) {
      return cannot.reason;
    }
    const bool is_same = changed.op_type == node.op_type;
    if (!context.dropped() && bound == nullptr && is_same)
      return "nothing else there does its work";
    std::vector<ir::Node> before = context.take_before(), after = context.take_after();
    // An operator that the newest opset no longer has is one of the older version, too.
    const schema::Signature* newest = schema::newest("", changed.op_type);
    const bool is_final =
        !context.dropped() && (is_same || (newest != nullptr && newest->deprecated));
    if (!is_same) bound = bound_to(changed, opset_);
    if (is_final && bound == nullptr) return "nothing else there does its work";
    if (is_final && changed.op_type == "Constant" && bound->since < 9) {
      hoist(std::move(changed), place);
      return {};
    }
    if (is_final) {
      drop_defaults(changed, *bound);
      trim(changed.inputs), trim(changed.outputs);
      count_axes_from_the_start(changed, place);
      std::string reason = misfit(changed, *bound);
      if (reason.empty()) reason = why_not_by_values(changed, *bound, place);
      if (!reason.empty()) return reason;
    }
    release(node.inputs);
    const auto note = [&](ir::Node& helper) {
      helper.origin = fmt::format("from {}", node.op_type);
      if (helper.name.empty()) helper.name = node.name;
    };
    for (ir::Node& helper : before) {
      note(helper);
      add(std::move(helper), place, depth + 1);
    }
    if (is_final) {
      for (size_t i = 0; i < changed.outputs.size(); ++i) {
        const std::string& name = changed.outputs[i];
        if (name.empty() || i >= node.outputs.size() || place.scope.find(name) != nullptr) continue;
        // Of another shape, perhaps.
        const ops::ValueFacts* known = place.scope.find(node.outputs[i]);
        if (known != nullptr && known->type.is_tensor())
          place.scope.set(name, ops::ValueFacts::of(ir::ValueType::tensor(known->type.element)));
      }
      place.out.push_back(std::move(changed));
    } else if (!context.dropped()) {
      add(std::move(changed), place, depth + 1);
    }
    for (ir::Node& helper : after) {
      note(helper);
      add(std::move(helper), place, depth + 1);
    }
    return {};
  }

  void carry_subgraphs(ir::Node& node, Place& place) {
    const auto inside = [&](std::shared_ptr<const ir::Graph>& held) {
      infer::Scope scope(&place.scope);
      if (const auto found = scopes_.extract(held.get()); !found.empty()) {
        found.mapped()->for_each_here(
            [&](std::string_view name, const ops::ValueFacts& known) { scope.set(name, known); });
      } else {
        infer::enter(*held, scope, inference_);
      }
      const ir::Node* around = at_;
      held = std::make_shared<const ir::Graph>(carried(*held, scope));
      at_ = around;
    };
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.g) inside(attribute.g);
      for (auto& graph : attribute.graphs) inside(graph);
    }
  }

  [[noreturn]] void refuse(const ir::Node& node, const std::string& reason, const Place& place) {
    if (probing_) fail(ErrorCode::bad_input, "{}", reason);
    int64_t least = 0;
    for (int64_t version = opset_ + 1; version <= schema::latest_opset("") && least == 0;
         ++version) {
      if (can_say(node, version, place)) least = version;
    }
    fail_at(
        ir::identify(*at_), ErrorCode::bad_input, "cannot be said in opset {}: {}{}; {}", opset_,
        node.op_type == at_->op_type ? "" : fmt::format("of the {} that it takes, ", node.op_type),
        reason,
        least > 0 ? fmt::format("opset {} is the least that can say it", least) : "no opset can");
  }

  // Whether another opset has a form for the node, but for what its helpers need.
  bool can_say(const ir::Node& node, int64_t opset, const Place& place) {
    const int64_t own = std::exchange(opset_, opset);
    probing_ = true;
    infer::Scope scope(&place.scope);
    std::vector<ir::Node> out;
    infer::Walk walk(nothing_, scope, inference_);
    Place inside{scope, walk, out};
    bool can = false;
    try {
      can = carry(node, inside, 0).empty();
    } catch (const Error&) {
      can = false;
    }
    opset_ = own;
    probing_ = false;
    return can;
  }

  void release(const std::vector<std::string>& inputs) {
    released_.insert(inputs.begin(), inputs.end());
  }

  static void collect_uses(const ir::Graph& graph, std::unordered_set<std::string>& used) {
    for (const ir::ValueInfo& output : graph.outputs) used.insert(output.name);
    for (const ir::Node& node : graph.nodes) {
      used.insert(node.inputs.begin(), node.inputs.end());
      ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
        collect_uses(inner, used);
      });
    }
  }

  // Constants that were inputs of nodes and that nothing reads any more.
  void leave_out_released(ir::Graph& graph) {
    if (released_.empty()) return;
    std::unordered_set<std::string> used;
    collect_uses(graph, used);
    const auto is_idle = [&](const std::string& name) {
      return released_.contains(name) && !used.contains(name);
    };
    std::erase_if(graph.inputs, [&](const ir::ValueInfo& input) {
      return is_idle(input.name) &&
             std::ranges::find(graph.initializers, input.name, &ir::TensorProto::name) !=
                 graph.initializers.end();
    });
    const std::function<void(ir::Graph&)> clear = [&](ir::Graph& inside) {
      std::erase_if(inside.initializers,
                    [&](const ir::TensorProto& tensor) { return is_idle(tensor.name); });
      std::erase_if(inside.nodes, [&](const ir::Node& node) {
        return node.op_type == "Constant" && node.outputs.size() == 1 && is_idle(node.outputs[0]);
      });
      for (ir::Node& node : inside.nodes) {
        for (ir::Attribute& attribute : node.attributes) {
          const auto change = [&](std::shared_ptr<const ir::Graph>& held) {
            auto copy = std::make_shared<ir::Graph>(*held);
            clear(*copy);
            held = std::move(copy);
          };
          if (attribute.g) change(attribute.g);
          for (auto& held : attribute.graphs) change(held);
        }
      }
    };
    clear(graph);
  }

  int64_t opset_;
  bool probing_ = false;  // other opsets are asked, too
  CallableFunctions functions_;
  FreshNames names_;
  ir::SymbolTable symbols_;
  infer::InferenceContext inference_;
  std::unordered_map<const ir::Graph*, std::unique_ptr<infer::Scope>> scopes_;
  std::vector<ir::TensorProto> hoisted_;      // initializers that were constants
  std::unordered_set<std::string> released_;  // inputs of nodes that other nodes stand for
  const ir::Node* at_ = nullptr;              // of the graph that is given
  const ir::Graph nothing_;
};

}  // namespace

std::string obstacle(const ir::Node& node, int64_t version) {
  if (!schema::is_standard_domain(node.domain)) return {};
  const schema::Signature* bound = schema::find(node.domain, node.op_type, version);
  if (bound == nullptr) return "that has no such operator";
  if (bound->deprecated) return "there the operator is deprecated";
  if (bound == schema::newest(node.domain, node.op_type)) return {};
  if (bound->extra && node.domain.empty()) return "that has no such operator";
  if (std::string reason = misfit(node, *bound); !reason.empty()) return reason;
  if (std::string reason = unknown_value(node, version); !reason.empty()) return reason;
  if (!means_the_same(node, *bound)) return "the same node means something else there";
  return {};
}

void downgrade(ir::Model& model, int64_t opset) {
  *model.graph = Downgrading(model, opset).run(*model.graph);
}

}  // namespace sardonyx::lower
