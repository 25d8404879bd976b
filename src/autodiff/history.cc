#include "autodiff/history.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/fail.h"
#include "ir/walk.h"

namespace sardonyx::autodiff {

using ops::int_attribute;

namespace {

bool is_dropout(const ir::Node& node) { return node.domain.empty() && node.op_type == "Dropout"; }

void require_names(const ir::Node& holder, const ir::Node& node) {
  ops::NodeView(holder, schema::newest(holder.domain, holder.op_type))
      .fail(ErrorCode::unsupported,
            "has no gradient: {} in its graph draws numbers, which only If, Loop and Scan can keep "
            "for the gradient; give the node that draws a seed",
            ir::describe(node));
}

ir::Node node_of(std::string_view op, Names inputs, Names outputs,
                 std::vector<ir::Attribute> attributes = {}) {
  ir::Node node;
  node.op_type = op;
  node.inputs = std::move(inputs), node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

void add_output(ir::Graph& graph, const std::string& name) {
  graph.outputs.emplace_back().name = name;
}

ir::Attribute* attribute_of(ir::Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &ir::Attribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

ir::Graph graph_in(ir::Node& node, std::string_view name) {
  const ir::Attribute* attribute = attribute_of(node, name);
  if (attribute == nullptr || !attribute->g)
    ops::NodeView(node, schema::newest(node.domain, node.op_type))
        .fail("attribute '{}' is required and absent; add the graph", name);
  return *attribute->g;
}
void put_graph(ir::Node& node, std::string_view name, ir::Graph graph) {
  attribute_of(node, name)->g = std::make_shared<const ir::Graph>(std::move(graph));
}

void lengthen(ir::Node& node, std::string_view name, size_t present, size_t more) {
  ir::Attribute* list = attribute_of(node, name);
  if (list == nullptr) return;  // zeros
  list->ints.resize(present, 0);
  list->ints.resize(present + more, 0);
}

bool is_iteration(const ir::Node& node) {
  return node.domain.empty() && (node.op_type == "Loop" || node.op_type == "Scan");
}
bool is_if(const ir::Node& node) { return node.domain.empty() && node.op_type == "If"; }

size_t states_of(ir::Node& node) {
  if (node.op_type == "Loop") return std::max<size_t>(node.inputs.size(), 2) - 2;
  const ir::Attribute* scanned = attribute_of(node, "num_scan_inputs");
  const auto count =
      static_cast<size_t>(scanned == nullptr ? 0 : std::max<int64_t>(0, scanned->i.value_or(0)));
  return node.inputs.size() - std::min(count, node.inputs.size());
}

// --- Keeping ------------------------------------------------------------------------------------

// A value that is kept, and where it is known, its shape: that of a value around the graph, or a
// list of sizes.
struct KeptDraw {
  std::string name, like;
  std::optional<std::vector<int64_t>> shape;
};

class Keeper {
 public:
  Keeper(const ir::Node& holder, const GradientServices& services)
      : holder_(holder), services_(services) {}

  Names keep(ir::Graph& graph) {
    Names names;
    for (const KeptDraw& kept : keep_in(graph)) names.push_back(kept.name);
    return names;
  }

 private:
  std::vector<KeptDraw> keep_in(ir::Graph& graph) {
    std::vector<KeptDraw> kept;
    std::vector<ir::Node> nodes;
    std::set<std::string> made;
    for (ir::Node& given : graph.nodes) {
      ir::Node node = std::move(given);
      std::optional<ir::Node> cast;
      if (draws_anew(node)) {
        kept.push_back(draw_of(node, made));
        const size_t at = is_dropout(node) ? 1 : 0;
        name_outputs(node, at + 1, services_);
        cast = node_of("Cast", {node.outputs[at]}, {kept.back().name}, {int_attribute("to", 11)});
      } else if (is_if(node)) {
        for (std::string& name : keep_branches(node)) kept.push_back({std::move(name), "", {}});
      } else if (is_iteration(node)) {
        for (std::string& name : keep_iterations(node)) kept.push_back({std::move(name), "", {}});
      } else if (has_graphs(node)) {
        ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
          ir::Graph copy = inner;
          if (!keep(copy).empty()) require_names(holder_, node);
        });
      }
      made.insert(node.outputs.begin(), node.outputs.end());
      nodes.push_back(std::move(node));
      if (cast) nodes.push_back(std::move(*cast));
    }
    graph.nodes = std::move(nodes);
    for (const KeptDraw& each : kept) add_output(graph, each.name);
    return kept;
  }

  KeptDraw draw_of(const ir::Node& node, const std::set<std::string>& made) const {
    KeptDraw draw{services_.fresh_name("drawn"), "", {}};
    const ir::Attribute* shape = node.find("shape");
    if (shape != nullptr)
      draw.shape = shape->ints;
    else if (node.op_type != "Multinomial" && !node.inputs.empty() &&
             !made.contains(node.inputs[0]))
      draw.like = node.inputs[0];
    return draw;
  }

  Names keep_iterations(ir::Node& node) {
    ir::Graph body = graph_in(node, "body");
    const size_t stacked =
        body.outputs.size() -
        std::min(body.outputs.size(), states_of(node) + (node.op_type == "Loop" ? 1 : 0));
    const Names inner = keep(body);
    if (inner.empty()) return {};
    name_outputs(node, states_of(node) + stacked, services_);
    for (const char* list : {"scan_output_axes", "scan_output_directions"})
      lengthen(node, list, stacked, inner.size());
    put_graph(node, "body", std::move(body));
    return extend(node, inner.size());
  }

  // Each branch hands out what it draws and, for the other's, nothing.
  Names keep_branches(ir::Node& node) {
    ir::Graph then = graph_in(node, "then_branch"), other = graph_in(node, "else_branch");
    const size_t given = then.outputs.size();
    if (other.outputs.size() != given) {
      ops::NodeView(node, schema::newest("", "If"))
          .fail("its branches must have as many outputs as each other; they have {} and {}", given,
                other.outputs.size());
    }
    const std::vector<KeptDraw> of_then = keep_in(then), of_else = keep_in(other);
    if (of_then.empty() && of_else.empty()) return {};
    Names fillers;
    for (const KeptDraw& draw : of_else) add_output(then, fill(then, draw));
    for (const KeptDraw& draw : of_then) fillers.push_back(fill(other, draw));
    auto at = other.outputs.begin() + static_cast<std::ptrdiff_t>(given);
    for (const std::string& name : fillers) {
      ir::ValueInfo info;
      info.name = name;
      at = other.outputs.insert(at, std::move(info)) + 1;
    }
    name_outputs(node, given, services_);
    put_graph(node, "then_branch", std::move(then));
    put_graph(node, "else_branch", std::move(other));
    return extend(node, of_then.size() + of_else.size());
  }

  // Zeros in place of what the other branch draws, of the same shape where that is known.
  std::string fill(ir::Graph& branch, const KeptDraw& draw) {
    const std::string name = services_.fresh_name("none");
    const auto constant = [&](const std::string& output, const Tensor& value) {
      branch.nodes.push_back(
          node_of("Constant", {}, {output}, {ops::tensor_attribute("value", value)}));
    };
    if (draw.like.empty() && !draw.shape) {
      constant(name, Tensor::of<double>({}, {0}));
      return name;
    }
    const std::string sizes = services_.fresh_name("sizes"), zero = services_.fresh_name("zero");
    if (draw.shape)
      constant(sizes, Tensor::of<int64_t>(*draw.shape, {static_cast<int64_t>(draw.shape->size())}));
    else
      branch.nodes.push_back(node_of("Shape", {draw.like}, {sizes}));
    constant(zero, Tensor::scalar<double>(0));
    branch.nodes.push_back(node_of("Expand", {zero, sizes}, {name}));
    return name;
  }

  Names extend(ir::Node& node, size_t count) {
    Names more;
    for (size_t i = 0; i < count; ++i) {
      more.push_back(services_.fresh_name("drawn"));
      node.outputs.push_back(more.back());
    }
    return more;
  }

  const ir::Node& holder_;
  const GradientServices& services_;
};

// --- Replaying ----------------------------------------------------------------------------------

class Replayer {
 public:
  explicit Replayer(const GradientServices& services) : services_(services) {}

  // Takes as many of `kept` as the graph draws, from `next` on.
  void replay(ir::Graph& graph, const Names& kept, size_t& next) {
    std::vector<ir::Node> nodes;
    for (ir::Node& given : graph.nodes) {
      ir::Node node = std::move(given);
      if (draws_anew(node)) {
        put_back(node, kept.at(next++), nodes);
        continue;
      }
      if (is_if(node)) {
        for (const char* which : {"then_branch", "else_branch"}) {
          ir::Graph branch = graph_in(node, which);
          replay(branch, kept, next);
          put_graph(node, which, std::move(branch));
        }
      } else if (is_iteration(node)) {
        replay_iterations(node, kept, next);
      }
      nodes.push_back(std::move(node));
    }
    graph.nodes = std::move(nodes);
  }

 private:
  static size_t draws_of(const ir::Graph& graph) {
    size_t count = 0;
    for (const ir::Node& node : graph.nodes) {
      if (draws_anew(node)) ++count;
      ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
        count += draws_of(inner);
      });
    }
    return count;
  }

  void replay_iterations(ir::Node& node, const Names& kept, size_t& next) {
    ir::Graph body = graph_in(node, "body");
    const size_t count = draws_of(body);
    if (count == 0) return;
    if (node.op_type == "Loop" && body.inputs.empty())
      ops::NodeView(node, schema::newest("", "Loop")).fail("its body has no inputs");
    Names slices;
    std::vector<ir::Node> taken;
    for (size_t i = 0; i < count; ++i) {
      slices.push_back(services_.fresh_name("drawn"));
      const std::string& stack = kept.at(next++);
      if (node.op_type == "Loop") {
        taken.push_back(node_of("Gather", {stack, body.inputs.at(0).name}, {slices.back()},
                                {int_attribute("axis", 0)}));
      } else {
        node.inputs.push_back(stack);
        body.inputs.emplace_back().name = slices.back();
      }
    }
    if (node.op_type == "Scan") {
      ir::Attribute* scanned = attribute_of(node, "num_scan_inputs");
      if (scanned == nullptr)
        ops::NodeView(node, schema::newest("", "Scan"))
            .fail("attribute 'num_scan_inputs' is required and absent");
      const auto before = static_cast<size_t>(std::max<int64_t>(0, scanned->i.value_or(0)));
      scanned->i = static_cast<int64_t>(before + count);
      for (const char* list : {"scan_input_axes", "scan_input_directions"})
        lengthen(node, list, before, count);
    }
    size_t inner = 0;
    replay(body, slices, inner);
    body.nodes.insert(body.nodes.begin(), std::make_move_iterator(taken.begin()),
                      std::make_move_iterator(taken.end()));
    put_graph(node, "body", std::move(body));
  }

  void put_back(const ir::Node& node, const std::string& kept, std::vector<ir::Node>& nodes) {
    if (node.outputs.empty()) return;
    if (is_dropout(node)) return drop_again(node, kept, nodes);
    const ir::Attribute* type = node.find("dtype");
    const std::string& output = node.outputs.at(0);
    if (type != nullptr && type->i)
      nodes.push_back(node_of("Cast", {kept}, {output}, {int_attribute("to", *type->i)}));
    else if (node.op_type == "Multinomial" || node.inputs.empty())
      nodes.push_back(node_of("Cast", {kept}, {output},
                              {int_attribute("to", node.op_type == "Multinomial" ? 6 : 1)}));
    else
      nodes.push_back(node_of("CastLike", {kept, node.inputs[0]}, {output}));
  }

  // What the mask keeps, scaled up, where the node was told to train.
  void drop_again(const ir::Node& node, const std::string& kept, std::vector<ir::Node>& nodes) {
    const auto op = [&](std::string_view name, Names inputs,
                        std::vector<ir::Attribute> attributes = {}) {
      const std::string output = services_.fresh_name(name);
      nodes.push_back(node_of(name, std::move(inputs), {output}, std::move(attributes)));
      return output;
    };
    const auto number = [&](float value) {
      return op("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<float>(value))});
    };
    const std::string& data = node.inputs.at(0);
    const bool has_ratio = node.inputs.size() > 1 && !node.inputs[1].empty();
    const std::string ratio = op("CastLike", {has_ratio ? node.inputs[1] : number(0.5f), data});
    const std::string rest = op("Sub", {op("CastLike", {number(1), data}), ratio});
    const std::string mask = op("CastLike", {kept, data});
    // A ratio of one keeps nothing.
    const std::string none = op("CastLike", {number(0), data}),
                      one = op("CastLike", {number(1), data});
    const std::string divisor = op("Where", {op("Greater", {rest, none}), rest, one});
    const std::string trained = op("Mul", {data, op("Div", {mask, divisor})});
    nodes.push_back(node_of("Where", {node.inputs.at(2), trained, data}, {node.outputs.at(0)}));
    if (node.outputs.size() > 1 && !node.outputs[1].empty())
      nodes.push_back(node_of("Cast", {kept}, {node.outputs[1]}, {int_attribute("to", 9)}));
  }

  const GradientServices& services_;
};

}  // namespace

bool draws_anew(const ir::Node& node) {
  const schema::Signature* signature = schema::newest(node.domain, node.op_type);
  if (signature == nullptr || !signature->nondeterministic || node.find("seed") != nullptr ||
      signature->attribute("seed") == nullptr)
    return false;
  // Dropout only drops where it is told to train.
  return node.op_type != "Dropout" || (node.inputs.size() > 2 && !node.inputs[2].empty());
}

Names keep_draws(ir::Graph& graph, const ir::Node& holder, const GradientServices& services) {
  return Keeper(holder, services).keep(graph);
}

void replay_draws(ir::Graph& graph, const Names& kept, const GradientServices& services) {
  size_t next = 0;
  Replayer(services).replay(graph, kept, next);
}

void name_outputs(ir::Node& node, size_t count, const GradientServices& services) {
  if (node.outputs.size() < count) node.outputs.resize(count);
  for (std::string& output : node.outputs) {
    if (output.empty()) output = services.fresh_name("output");
  }
}

}  // namespace sardonyx::autodiff
