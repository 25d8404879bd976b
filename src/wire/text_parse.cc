#include "wire/text_parse.h"

#include "base/fail.h"
#include "wire/text_parser.h"

namespace sardonyx::wire {
TextParser::Deeper::Deeper(TextParser& parser) : parser_(parser) {
  if (++parser.depth_ > max_text_depth) {
    const size_t position = (parser.scan_.peek(), parser.scan_.position());
    --parser.depth_;
    parser.scan_.error_at(
        position, fmt::format("graphs or types nest deeper than {}; flatten them", max_text_depth));
  }
}

void TextParser::finish(std::string_view what) {
  if (!scan_.at_end()) scan_.expected(fmt::format("the end of the text after {}", what));
}

// Of a list that grows; larger ones count by themselves.
constexpr size_t smallest_item = growing * sizeof(int64_t);

void TextParser::list(char open, char close, std::string_view what,
                      const std::function<void()>& item) {
  scan_.expect(open, fmt::format("before {}", what));
  if (scan_.matches(close)) return;
  do {
    take_memory(smallest_item);
    item();
  } while (scan_.matches(','));
  scan_.expect(close, fmt::format("or ',' after an element of {}", what));
}

void TextParser::keys(char close, std::string_view what, const KeyParser& value) {
  if (scan_.matches(close)) return;
  do {
    const size_t start = (scan_.peek(), scan_.position());
    const std::string key(scan_.identifier(fmt::format("a key of {}", what)));
    scan_.expect(':', fmt::format("after the key '{}' of {}", key, what));
    if (!value(key)) scan_.error_at(start, fmt::format("'{}' is no key of {}", key, what));
  } while (scan_.matches(','));
  scan_.expect(close, fmt::format("or ',' after a value of {}", what));
}

void TextParser::record(std::string_view what, const KeyParser& value) {
  scan_.expect('{', fmt::format("before {}", what));
  keys('}', what, value);
}

std::vector<ir::StringEntry> TextParser::string_entries(std::string_view what) {
  std::vector<ir::StringEntry> entries;
  list('[', ']', what, [&] {
    ir::StringEntry& entry = entries.emplace_back();
    entry.key = scan_.string(fmt::format("a key of {}", what));
    scan_.expect(':', fmt::format("after a key of {}", what));
    entry.value = scan_.string(fmt::format("a value of {}", what));
  });
  return entries;
}

std::vector<ir::OperatorSetId> TextParser::opset_imports() {
  std::vector<ir::OperatorSetId> imports;
  list('[', ']', "opset_import", [&] {
    ir::OperatorSetId& import = imports.emplace_back();
    import.domain = scan_.string("a domain in opset_import");
    scan_.expect(':', "after a domain in opset_import");
    import.version = scan_.integer("the version of an operator set");
  });
  return imports;
}

std::vector<int64_t> TextParser::integers(std::string_view what) {
  std::vector<int64_t> values;
  list('[', ']', what, [&] { values.push_back(scan_.integer(what)); });
  return values;
}

std::vector<std::string> TextParser::strings(std::string_view what) {
  std::vector<std::string> values;
  list('[', ']', what, [&] { values.push_back(scan_.string(what)); });
  return values;
}

ir::Model TextParser::model() {
  ir::Model model;
  const bool has_header = scan_.matches('<');
  if (has_header) {
    keys('>', "the model's header", [&](std::string_view key) { return model_key(model, key); });
  }
  // After a header there may be no graph: the header of a function, or nothing.
  if (!has_header || !(scan_.at_end() || scan_.peek() == '<')) model.graph = graph();
  while (!scan_.at_end()) model.functions.push_back(function());
  return model;
}

bool TextParser::model_key(ir::Model& model, std::string_view key) {
  if (key == "ir_version") return model.ir_version = scan_.integer(key), true;
  if (key == "opset_import") {
    for (ir::OperatorSetId& import : opset_imports()) {
      model.opset_imports.push_back(std::move(import));
    }
    return true;
  }
  if (key == "producer_name") return model.producer_name = scan_.string(key), true;
  if (key == "producer_version") return model.producer_version = scan_.string(key), true;
  if (key == "domain") return model.domain = scan_.string(key), true;
  if (key == "model_version") return model.model_version = scan_.integer(key), true;
  if (key == "doc_string") return model.doc_string = scan_.string(key), true;
  if (key == "metadata_props") return model.metadata_props = string_entries(key), true;
  if (key == "training_info") {
    list('[', ']', key, [&] { model.training_info.push_back(training_info()); });
    return true;
  }
  if (key == "configuration") {
    list('[', ']', key, [&] { model.configuration.push_back(device_configuration()); });
    return true;
  }
  return false;
}

ir::TrainingInfo TextParser::training_info() {
  ir::TrainingInfo info;
  record("training_info", [&](std::string_view key) {
    if (key == "initialization") return info.initialization = graph(), true;
    if (key == "algorithm") return info.algorithm = graph(), true;
    if (key == "initialization_binding") {
      return info.initialization_binding = string_entries(key), true;
    }
    if (key == "update_binding") return info.update_binding = string_entries(key), true;
    return false;
  });
  return info;
}

ir::Function TextParser::function() {
  ir::Function function;
  if (scan_.matches('<')) {
    keys('>', "a function's header",
         [&](std::string_view key) { return function_key(function, key); });
  }
  function.name = scan_.name("the name of a function");
  function_parameters(function);
  function.inputs = function_values(function);
  scan_.expect("=>", "between the inputs and the outputs of a function");
  function.outputs = function_values(function);
  if (scan_.peek() == '<') {
    list('<', '>', "the value infos of a function",
         [&] { function.value_info.push_back(value_info()); });
  }
  function.nodes = nodes();
  optional_record("a function's annotations",
                  [&](std::string_view key) { return function_key(function, key); });
  return function;
}

bool TextParser::function_key(ir::Function& function, std::string_view key) {
  if (key == "opset_import") {
    for (ir::OperatorSetId& import : opset_imports()) {
      function.opset_imports.push_back(std::move(import));
    }
    return true;
  }
  if (key == "domain") return function.domain = scan_.string(key), true;
  if (key == "overload") return function.overload = scan_.string(key), true;
  if (key == "doc_string") return function.doc_string = scan_.string(key), true;
  if (key == "metadata_props") return function.metadata_props = string_entries(key), true;
  if (key == "since_version") return function.since_version = scan_.integer(key), true;
  if (key == "status") {
    return function.status = int32_value(scan_, key), true;
  }
  return false;
}

void TextParser::function_parameters(ir::Function& function) {
  if (scan_.peek() != '<') return;
  list('<', '>', "the attributes of a function", [&] {
    std::string name = scan_.name("the name of a function's attribute");
    const char next = scan_.peek();
    if (next == ':' || next == '=' || next == '{') {
      function.attribute_protos.push_back(attribute_named(std::move(name)));
    } else {
      function.attributes.push_back(std::move(name));
    }
  });
}

std::vector<std::string> TextParser::function_values(ir::Function& function) {
  std::vector<std::string> names;
  list('(', ')', "the inputs or outputs of a function", [&] {
    const bool typed = next_is_type();
    ir::ValueInfo info = value_info();
    names.push_back(info.name);
    if (typed) function.value_info.push_back(std::move(info));
  });
  return names;
}

ir::Graph TextParser::graph() { return graph_named(scan_.name("the name of a graph")); }

ir::Graph TextParser::graph_named(std::string name) {
  const Deeper deeper(*this);
  ir::Graph graph;
  graph.name = std::move(name);
  graph_inputs(graph);
  scan_.expect("=>", "between the inputs and the outputs of a graph");
  list('(', ')', "the outputs of a graph", [&] { graph.outputs.push_back(value_info()); });
  values_and_initializers(graph);
  graph.nodes = nodes();
  optional_record("a graph's annotations",
                  [&](std::string_view key) { return graph_key(graph, key); });
  return graph;
}

bool TextParser::graph_key(ir::Graph& graph, std::string_view key) {
  if (key == "doc_string") return graph.doc_string = scan_.string(key), true;
  if (key == "metadata_props") return graph.metadata_props = string_entries(key), true;
  if (key == "quantization_annotation") {
    list('[', ']', key, [&] { graph.quantization_annotation.push_back(tensor_annotation()); });
    return true;
  }
  return false;
}

ir::TensorAnnotation TextParser::tensor_annotation() {
  ir::TensorAnnotation annotation;
  record("a quantization annotation", [&](std::string_view key) {
    if (key == "tensor_name") return annotation.tensor_name = scan_.string(key), true;
    if (key == "quant_parameter_tensor_names") {
      return annotation.quant_parameter_tensor_names = string_entries(key), true;
    }
    return false;
  });
  return annotation;
}

void TextParser::graph_inputs(ir::Graph& graph) {
  if (scan_.peek() != '(') return;
  list('(', ')', "the inputs of a graph", [&] {
    const ir::ValueInfo& info = graph.inputs.emplace_back(value_info());
    if (scan_.matches('=')) initializer(graph, info);
  });
}

void TextParser::values_and_initializers(ir::Graph& graph) {
  if (scan_.peek() != '<') return;
  list('<', '>', "the value infos and initializers of a graph", [&] {
    ir::ValueInfo info = value_info();
    if (scan_.matches('=')) {
      initializer(graph, info);
    } else {
      graph.value_info.push_back(std::move(info));
    }
  });
}

void TextParser::initializer(ir::Graph& graph, const ir::ValueInfo& info) {
  if (!info.type) scan_.expected(fmt::format("a type before '{}', an initializer", info.name));
  if (info.type->kind == ir::TypeProto::Kind::sparse_tensor) {
    graph.sparse_initializers.push_back(sparse_tensor_of(*info.type, info.name));
  } else {
    graph.initializers.push_back(tensor_of(*info.type, info.name));
  }
}

ir::ValueInfo TextParser::value_info() {
  take_memory(growing * sizeof(ir::ValueInfo));
  ir::ValueInfo info;
  if (next_is_type()) info.type = type();
  info.name = scan_.name("the name of a value");
  optional_record("a value's annotations", [&](std::string_view key) {
    if (key == "doc_string") return info.doc_string = scan_.string(key), true;
    if (key == "metadata_props") return info.metadata_props = string_entries(key), true;
    return false;
  });
  return info;
}

std::vector<ir::Node> TextParser::nodes() {
  std::vector<ir::Node> nodes;
  scan_.expect('{', "before the nodes of a graph");
  while (!scan_.matches('}')) {
    if (scan_.at_end()) scan_.expected("'}' after the nodes of a graph");
    nodes.push_back(node());
  }
  return nodes;
}

// Names, which may be left out: "" or nothing before a comma. A trailing comma adds none.
std::vector<std::string> TextParser::operands() {
  std::vector<std::string> names;
  do {
    if (scan_.next_is_string()) {
      names.push_back(scan_.string("the name of a value"));
      continue;
    }
    std::string_view name = scan_.peek_identifier();
    take_memory(growing * sizeof(std::string) + name.size());
    if (!name.empty()) name = scan_.identifier("the name of a value");
    if (name.empty() && scan_.peek() != ',') break;
    names.emplace_back(name);
  } while (scan_.matches(','));
  return names;
}

ir::Node TextParser::node() {
  take_memory(growing * sizeof(ir::Node));
  ir::Node node;
  if (scan_.matches('[')) {
    if (scan_.next_is_name()) node.name = scan_.name("the name of a node");
    scan_.expect(']', "after the name of a node");
  }
  const size_t start = (scan_.peek(), scan_.position());
  node.outputs = operands();
  const char next = scan_.peek();
  if (node.outputs.size() == 1 && (next == '(' || next == '<' || next == '.' || next == ':')) {
    node.outputs.clear();  // that was the operator of a node without outputs
    scan_.rewind(start);
  } else {
    scan_.expect('=', "after the outputs of a node");
  }
  if (scan_.next_is_name()) node.op_type = scan_.name("the operator of a node");
  while (scan_.matches('.')) {
    if (!node.domain.empty()) node.domain += '.';
    node.domain += node.op_type;
    node.op_type = scan_.name("an operator or a part of its domain after '.'");
  }
  if (scan_.matches(':')) node.overload = scan_.name("the overload of a function after ':'");
  if (scan_.peek() == '<') node.attributes = attributes();
  scan_.expect('(', fmt::format("before the inputs of {}", node.op_type));
  node.inputs = operands();
  scan_.expect(')', fmt::format("or ',' after the inputs of {}", node.op_type));
  if (node.attributes.empty() && scan_.peek() == '<') node.attributes = attributes();
  optional_record("a node's annotations", [&](std::string_view key) {
    if (key == "doc_string") return node.doc_string = scan_.string(key), true;
    if (key == "metadata_props") return node.metadata_props = string_entries(key), true;
    if (key == "device_configurations") {
      list('[', ']', key,
           [&] { node.device_configurations.push_back(node_device_configuration()); });
      return true;
    }
    return false;
  });
  return node;
}

namespace {

template <class Result, class Parse>
Result whole(std::string_view text, std::string_view what, Parse parse) {
  TextParser parser(text);
  Result result = parse(parser);
  parser.finish(what);
  return result;
}

}  // namespace

ir::Model parse_model(std::string_view text) {
  return whole<ir::Model>(text, "a model", [](TextParser& p) { return p.model(); });
}
ir::Graph parse_graph(std::string_view text) {
  return whole<ir::Graph>(text, "a graph", [](TextParser& p) { return p.graph(); });
}
ir::Function parse_function(std::string_view text) {
  return whole<ir::Function>(text, "a function", [](TextParser& p) { return p.function(); });
}
ir::Node parse_node(std::string_view text) {
  return whole<ir::Node>(text, "a node", [](TextParser& p) { return p.node(); });
}
ir::Attribute parse_attribute(std::string_view text) {
  return whole<ir::Attribute>(text, "an attribute", [](TextParser& p) { return p.attribute(); });
}
ir::TypeProto parse_type(std::string_view text) {
  return whole<ir::TypeProto>(text, "a type", [](TextParser& p) { return p.type(); });
}
ir::TensorProto parse_tensor(std::string_view text) {
  return whole<ir::TensorProto>(text, "a tensor", [](TextParser& p) { return p.tensor(); });
}

}  // namespace sardonyx::wire
