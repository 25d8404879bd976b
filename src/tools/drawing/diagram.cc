#include "tools/drawing/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/walk.h"
#include "sardonyx/error.h"
#include "sardonyx/text.h"
#include "wire/tensor.h"
#include "wire/text_print.h"

namespace sardonyx::drawing {
namespace {

constexpr size_t line_length = 46;
constexpr size_t max_lines = 8;  // of one sort in a box
constexpr int max_levels = 24;   // of bodies in bodies
constexpr int64_t shown_elements = 4;

size_t skip(std::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}

// Printable, and with its middle left out where it is long: names differ at their ends.
std::string shortened(std::string_view given) {
  const std::string text = printable(given.substr(0, 4096));
  const size_t length = character_count(text);
  if (length <= line_length) return text;
  const size_t front = line_length / 3, back = length - (line_length - front - 1);
  size_t at = 0, begin = 0, end = 0;
  for (size_t i = 0; i < back; ++i) {
    if (i == front) begin = at;
    at = skip(text, at);
  }
  end = at;
  return text.substr(0, begin) + "…" + text.substr(end);
}

std::string numbers_text(const auto& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size() && text.size() < 2 * line_length; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", numbers[i]);
  return text;
}

std::string attribute_text(const ir::Attribute& attribute) {
  using Kind = ir::AttributeKind;
  if (!attribute.ref_attr_name.empty()) return "@" + attribute.ref_attr_name;
  switch (attribute.effective_kind()) {
    case Kind::float_: return fmt::format("{}", attribute.f.value_or(0));
    case Kind::int_: return fmt::format("{}", attribute.i.value_or(0));
    case Kind::string: return fmt::format("\"{}\"", attribute.s.value_or("").substr(0, 256));
    case Kind::floats: return numbers_text(attribute.floats);
    case Kind::ints: return numbers_text(attribute.ints);
    case Kind::strings: return fmt::format("{} strings", attribute.strings.size());
    case Kind::tensor: return "a tensor";
    case Kind::type_proto: return attribute.tp ? wire::print(*attribute.tp) : "";
    default: return "…";
  }
}

// "float[64,3]", with its elements where they are few.
std::string tensor_text(const ir::TensorProto& tensor) {
  ir::TypeProto type;
  type.kind = ir::TypeProto::Kind::tensor;
  type.elem_type = tensor.data_type;
  type.shape.emplace();
  int64_t count = 1;
  for (const int64_t dim : tensor.dims) {
    type.shape->dims.emplace_back().value = dim;
    count = dim < 0 || dim > shown_elements || count > shown_elements ? INT32_MAX : count * dim;
  }
  std::string text = wire::print(type);
  if (count > shown_elements || count == 0 || tensor.is_external()) return text;
  try {
    text += " = " + preview(wire::to_tensor(tensor), static_cast<size_t>(shown_elements));
  } catch (const Error&) {  // the rules say what is wrong with it
  }
  return text;
}

class Lines {
 public:
  explicit Lines(std::vector<std::string>& lines) : lines_(lines) {}
  ~Lines() {
    if (count_ > max_lines) lines_.push_back(fmt::format("… and {} more", count_ - max_lines));
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void add(std::string_view text) {
    if (++count_ <= max_lines) lines_.push_back(shortened(text));
  }

 private:
  std::vector<std::string>& lines_;
  size_t count_ = 0;
};

// The values that nodes of one graph can name.
struct Names {
  const Names* outer = nullptr;
  std::unordered_map<std::string_view, int> boxes;              // that make them
  std::unordered_map<std::string_view, std::string> constants;  // and their types
};

struct Body {
  std::string title;
  const std::vector<ir::ValueInfo>*inputs = nullptr, *outputs = nullptr;
  const std::vector<ir::ValueInfo>* value_info = nullptr;
  const std::vector<std::string>*input_names = nullptr, *output_names = nullptr;  // of a function
  const std::vector<ir::Node>* nodes = nullptr;
  const ir::Graph* graph = nullptr;  // null: a function
};

Body body_of(const ir::Graph& graph, std::string title) {
  return {std::move(title), &graph.inputs, &graph.outputs, &graph.value_info,
          nullptr,          nullptr,       &graph.nodes,   &graph};
}

class Builder {
 public:
  explicit Builder(const ir::Model& model) {
    for (const ir::Function& function : model.functions)
      functions_.insert(key(function.domain, function.name));
  }

  // `captured`: what it reads from around it.
  Diagram build(const Body& body, const Names* outer, std::vector<std::string>& captured,
                int level) {
    Diagram diagram;
    diagram.title = shortened(body.title);
    Names names{outer, {}, {}};
    Types types = types_of(body);
    add_constants(body, names);
    add_inputs(body, types, names, diagram);
    std::vector<int> box_of(body.nodes->size(), -1);
    for (size_t i = 0; i < body.nodes->size(); ++i) {
      if (is_folded(body, (*body.nodes)[i], names)) continue;
      box_of[i] = static_cast<int>(diagram.boxes.size());
      diagram.boxes.push_back(box((*body.nodes)[i]));
      for (const std::string& output : (*body.nodes)[i].outputs) {
        if (!output.empty()) names.boxes.try_emplace(output, box_of[i]);
      }
    }
    Captures captures{captured, {}};
    for (size_t i = 0; i < body.nodes->size(); ++i) {
      if (box_of[i] >= 0) fill((*body.nodes)[i], box_of[i], types, names, diagram, captures, level);
    }
    add_outputs(body, types, names, diagram, captures);
    return diagram;
  }

 private:
  using Types = std::unordered_map<std::string_view, std::string>;
  struct Captures {
    std::vector<std::string>& names;
    std::unordered_set<std::string> seen;

    void add(const std::string& name) {
      if (seen.insert(name).second) names.push_back(name);
    }
  };

  static std::string key(std::string_view domain, std::string_view name) {
    return fmt::format("{}\n{}", domain, name);
  }

  static Types types_of(const Body& body) {
    Types types;
    for (const auto* list : {body.inputs, body.outputs, body.value_info}) {
      if (list == nullptr) continue;
      for (const ir::ValueInfo& info : *list) {
        if (info.type) types.try_emplace(info.name, wire::print(*info.type));
      }
    }
    return types;
  }

  static void add_constants(const Body& body, Names& names) {
    if (body.graph != nullptr) {
      for (const ir::TensorProto& tensor : body.graph->initializers)
        names.constants.try_emplace(tensor.name, tensor_text(tensor));
      for (const ir::SparseTensorProto& tensor : body.graph->sparse_initializers)
        names.constants.try_emplace(tensor.values.name, "sparse tensor");
    }
    std::unordered_set<std::string_view> outputs;
    if (body.outputs != nullptr) {
      for (const ir::ValueInfo& output : *body.outputs) outputs.insert(output.name);
    } else {
      outputs.insert(body.output_names->begin(), body.output_names->end());
    }
    for (const ir::Node& node : *body.nodes) {
      if (node.op_type != "Constant" || !ir::canonical_domain(node.domain).empty() ||
          node.outputs.size() != 1 || outputs.contains(node.outputs[0]) ||
          node.attributes.size() != 1)
        continue;
      const ir::Attribute& value = node.attributes[0];
      names.constants.try_emplace(node.outputs[0], value.t != nullptr
                                                       ? tensor_text(*value.t)
                                                       : "= " + attribute_text(value));
    }
  }

  // Constants are told where they are read.
  static bool is_folded(const Body& body, const ir::Node& node, const Names& names) {
    return node.op_type == "Constant" && node.outputs.size() == 1 &&
           ir::canonical_domain(node.domain).empty() && node.attributes.size() == 1 &&
           names.constants.contains(node.outputs[0]) && body.nodes != nullptr;
  }

  static void add_inputs(const Body& body, const Types& types, Names& names, Diagram& diagram) {
    const auto add = [&](const std::string& name) {
      if (name.empty() || names.constants.contains(name)) return;  // an initializer: its default
      if (!names.boxes.try_emplace(name, static_cast<int>(diagram.boxes.size())).second) return;
      DiagramBox& box = diagram.boxes.emplace_back();
      box.kind = DiagramBox::Kind::input;
      box.title = shortened(name);
      if (const auto type = types.find(name); type != types.end())
        box.lines.push_back(shortened(type->second));
    };
    if (body.inputs != nullptr) {
      for (const ir::ValueInfo& input : *body.inputs) add(input.name);
    } else {
      for (const std::string& input : *body.input_names) add(input);
    }
  }

  DiagramBox box(const ir::Node& node) const {
    DiagramBox box;
    const std::string_view domain = ir::canonical_domain(node.domain);
    box.title =
        shortened(domain.empty() ? node.op_type : fmt::format("{}.{}", domain, node.op_type));
    box.name = shortened(node.name);
    if (functions_.contains(key(node.domain, node.op_type))) box.kind = DiagramBox::Kind::call;
    return box;
  }

  void connect(const std::string& name, int box, bool is_captured, Names& names, Diagram& diagram,
               Captures& captures, Lines& constants) {
    if (name.empty()) return;
    for (const Names* at = &names; at != nullptr; at = at->outer) {
      if (const auto found = at->constants.find(name); found != at->constants.end()) {
        if (!is_captured) constants.add(fmt::format("{} {}", name, found->second));
        return;
      }
      const auto found = at->boxes.find(name);
      if (found == at->boxes.end()) continue;
      if (at == &names) {
        diagram.edges.push_back({found->second, box, shortened(name), is_captured});
        return;
      }
      if (!is_captured) constants.add(fmt::format("{} from around", name));
      captures.add(name);
      return;
    }
    if (!is_captured) constants.add(fmt::format("{} (nothing makes it)", name));
  }

  void fill(const ir::Node& node, int at, const Types& types, Names& names, Diagram& diagram,
            Captures& captures, int level) {
    std::vector<std::string> lines;
    {
      Lines attributes(lines);
      for (const ir::Attribute& attribute : node.attributes) {
        if (ir::has_graphs(attribute)) continue;
        attributes.add(fmt::format("{} = {}", attribute.name, attribute_text(attribute)));
      }
    }
    {
      Lines constants(lines);
      for (const std::string& input : node.inputs)
        connect(input, at, false, names, diagram, captures, constants);
    }
    std::vector<Diagram> bodies = bodies_of(node, at, lines, names, diagram, captures, level);
    {
      Lines made(lines);
      for (const std::string& output : node.outputs) {
        if (output.empty()) continue;
        const auto type = types.find(output);
        made.add(fmt::format("→ {}{}{}", output, type == types.end() ? "" : " ",
                             type == types.end() ? "" : type->second));
      }
    }
    DiagramBox& box = diagram.boxes[static_cast<size_t>(at)];
    box.lines = std::move(lines);
    box.bodies = std::move(bodies);
  }

  std::vector<Diagram> bodies_of(const ir::Node& node, int at, std::vector<std::string>& lines,
                                 Names& names, Diagram& diagram, Captures& captures, int level) {
    std::vector<Diagram> bodies;
    if (!ir::has_graphs(node)) return bodies;
    if (level >= max_levels) {
      lines.emplace_back("its bodies lie too deep to be drawn");
      return bodies;
    }
    std::vector<std::string> read;
    ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute& of, int index) {
      const std::string title = index < 0 ? of.name : fmt::format("{}[{}]", of.name, index);
      bodies.push_back(build(body_of(graph, title), &names, read, level + 1));
    });
    std::unordered_set<std::string_view> seen;
    std::vector<std::string> unused;
    Lines constants(unused);
    for (const std::string& name : read) {
      if (seen.insert(name).second) connect(name, at, true, names, diagram, captures, constants);
    }
    return bodies;
  }

  static void add_outputs(const Body& body, const Types& types, Names& names, Diagram& diagram,
                          Captures& captures) {
    const auto add = [&](const std::string& name) {
      const auto box = static_cast<int>(diagram.boxes.size());
      DiagramBox& output = diagram.boxes.emplace_back();
      output.kind = DiagramBox::Kind::output;
      output.title = shortened(name);
      if (const auto type = types.find(name); type != types.end())
        output.lines.push_back(shortened(type->second));
      if (const auto found = names.boxes.find(name); found != names.boxes.end()) {
        diagram.edges.push_back({found->second, box, shortened(name), false});
      } else if (const auto constant = names.constants.find(name);
                 constant != names.constants.end()) {
        output.lines.push_back(shortened(constant->second));
      } else {
        for (const Names* at = names.outer; at != nullptr; at = at->outer) {
          if (!at->boxes.contains(name)) continue;
          output.lines.emplace_back("from around");
          captures.add(name);
          break;
        }
      }
    };
    if (body.outputs != nullptr) {
      for (const ir::ValueInfo& output : *body.outputs) add(output.name);
    } else {
      for (const std::string& output : *body.output_names) add(output);
    }
  }

  std::unordered_set<std::string> functions_;
};

}  // namespace

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::vector<Diagram> diagrams_of(const ir::Model& model) {
  std::vector<Diagram> diagrams;
  Builder builder(model);
  std::vector<std::string> captured;
  if (model.graph)
    diagrams.push_back(
        builder.build(body_of(*model.graph, model.graph->name), nullptr, captured, 0));
  for (const ir::Function& function : model.functions) {
    Body body;
    body.title = fmt::format("function {}{}{}", function.domain, function.domain.empty() ? "" : ".",
                             function.name);
    body.value_info = &function.value_info;
    body.input_names = &function.inputs;
    body.output_names = &function.outputs;
    body.nodes = &function.nodes;
    diagrams.push_back(builder.build(body, nullptr, captured, 0));
  }
  return diagrams;
}

}  // namespace sardonyx::drawing
