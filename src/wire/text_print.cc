#include "wire/text_print.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "wire/text_parse.h"
#include "wire/text_printer.h"
#include "wire/text_scan.h"

namespace sardonyx::wire {
namespace {

// Names the parser would take for something else where a value's name may stand.
bool is_word_of_syntax(std::string_view text) {
  for (const std::string_view word : {"seq", "map", "optional", "sparse_tensor", "opaque"}) {
    if (text == word) return true;
  }
  const auto type = element_type_named(text);
  return type.has_value() || is_float_word(text);
}

// Graphs that the text says: those of attributes of that kind which have a value.
bool shows_graphs(const ir::Node& node) {
  for (const ir::Attribute& attribute : node.attributes) {
    if (!attribute.ref_attr_name.empty()) continue;
    const ir::AttributeKind kind = attribute.effective_kind();
    if (kind == ir::AttributeKind::graph && attribute.g) return true;
    if (kind == ir::AttributeKind::graphs && !attribute.graphs.empty()) return true;
  }
  return false;
}

constexpr size_t indent_step = 3;

}  // namespace

TextPrinter& TextPrinter::Record::key(std::string_view name) {
  printer_.out_ += empty_ ? "{" : ", ";
  empty_ = false;
  printer_.out_ += name;
  printer_.out_ += ": ";
  return printer_;
}

void TextPrinter::Record::text(std::string_view name, std::string_view value) {
  if (!value.empty()) key(name).quoted(value);
}

void TextPrinter::Record::entries(std::string_view name,
                                  const std::vector<ir::StringEntry>& value) {
  if (!value.empty()) key(name).entries(value);
}

void TextPrinter::new_line() {
  out_ += '\n';
  out_.append(indent_, ' ');
}

// Annotations are put together apart and have to stay in one piece.
void TextPrinter::spill() {
  if (sink_ == nullptr || in_annotation_ || out_.size() < (1 << 20)) return;
  put_all();
}

void TextPrinter::put_all() {
  for (Piece& piece : waiting_) {
    if (piece.size > 0) sink_->put(piece.room.get(), std::exchange(piece.size, 0));
  }
  if (!out_.empty()) sink_->put(out_);
  out_.clear();
}

void TextPrinter::finish() {
  if (!out_.ends_with('\n')) out_ += '\n';
  put_all();
}

std::string TextPrinter::apart(const std::function<void()>& write) {
  std::string before;
  before.swap(out_);
  const bool outer = std::exchange(in_annotation_, true);
  write();
  in_annotation_ = outer;
  before.swap(out_);
  return before;
}

void TextPrinter::annotation_lines(std::string_view text) {
  if (in_annotation_) {
    out_ += text;
    return;
  }
  while (!text.empty()) {
    const size_t end = text.find('\n');
    new_line();
    out_ += "#@ ";
    out_ += text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  new_line();
}

void TextPrinter::annotate(const std::function<void(Record&)>& fill) {
  if (!options_.annotations) return;
  const std::string text = apart([&] {
    Record record(*this);
    fill(record);
    if (!record.empty()) record.close();
  });
  if (text.empty()) return;
  if (in_annotation_) out_ += ' ';
  annotation_lines(text);
}

// Line breaks and other control characters need an e"" string where the line is a comment to
// other readers; elsewhere they stand as they are.
void TextPrinter::quoted(std::string_view text) {
  bool has_control = false;
  for (const char c : text) has_control |= static_cast<unsigned char>(c) < 0x20;
  const bool escape = in_annotation_ && has_control;
  if (escape) out_ += 'e';
  out_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (escape && c == '\n') {
      out_ += "\\n";
    } else if (escape && static_cast<unsigned char>(c) < 0x20) {
      out_ += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out_ += c;
    }
  }
  out_ += '"';
}

void TextPrinter::bare_or_quoted(std::string_view text) {
  if (is_identifier(text)) {
    out_ += text;
  } else {
    quoted(text);
  }
}

void TextPrinter::name(std::string_view text) {
  if (is_word_of_syntax(text)) {
    quoted(text);
  } else {
    bare_or_quoted(text);
  }
}

void TextPrinter::names(const std::vector<std::string>& names) {
  list("", "", names, [&](const std::string& text) { name(text); });
}

void TextPrinter::integer(int64_t value) { out_ += std::to_string(value); }

// The shortest text that reads back as the same value.
template <class T>
void TextPrinter::number(T value) {
  if (std::isnan(value)) {
    out_ += std::signbit(value) ? "-nan" : "nan";
    return;
  }
  std::array<char, 40> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out_.append(buffer.data(), result.ptr);
}

template void TextPrinter::number<float>(float);
template void TextPrinter::number<double>(double);

// With a point or an exponent, so that it reads as a float without being told.
void TextPrinter::decimal(float value) {
  const size_t start = out_.size();
  number(value);
  if (out_.find_first_not_of("-0123456789", start) == out_.npos) out_ += ".0";
}

void TextPrinter::entries(const std::vector<ir::StringEntry>& entries) {
  list("[", "]", entries, [&](const ir::StringEntry& entry) {
    quoted(entry.key);
    out_ += ": ";
    quoted(entry.value);
  });
}

void TextPrinter::opset_imports(const std::vector<ir::OperatorSetId>& imports) {
  list("[", "]", imports, [&](const ir::OperatorSetId& import) {
    quoted(import.domain);
    out_ += " : ";
    integer(import.version);
  });
}

void TextPrinter::strings(const std::vector<std::string>& values) {
  list("[", "]", values, [&](const std::string& value) { quoted(value); });
}

void TextPrinter::header_key(bool& first, std::string_view key) {
  out_ += first ? "<\n   " : ",\n   ";
  first = false;
  out_ += key;
  out_ += ": ";
}

void TextPrinter::print(const ir::Model& model) {
  bool first = true;
  if (model.ir_version) {
    header_key(first, "ir_version");
    integer(*model.ir_version);
  }
  if (!model.opset_imports.empty()) {
    header_key(first, "opset_import");
    opset_imports(model.opset_imports);
  }
  const auto text = [&](std::string_view key, const std::string& value) {
    if (value.empty()) return;
    header_key(first, key);
    quoted(value);
  };
  text("producer_name", model.producer_name);
  text("producer_version", model.producer_version);
  text("domain", model.domain);
  if (model.model_version != 0 || first) {
    header_key(first, "model_version");
    integer(model.model_version);
  }
  if (options_.annotations) {
    text("doc_string", model.doc_string);
    if (!model.metadata_props.empty()) {
      header_key(first, "metadata_props");
      entries(model.metadata_props);
    }
    model_annotations(model);
  }
  out_ += "\n>\n";
  if (model.graph) print(*model.graph);
  out_ += '\n';
  for (const ir::Function& function : model.functions) {
    out_ += '\n';
    print(function);
    out_ += '\n';
  }
}

void TextPrinter::model_annotations(const ir::Model& model) {
  indent_ += indent_step;
  const auto annotation = [&](std::string_view key, const std::function<void()>& write) {
    const std::string text = apart([&] {
      out_ += fmt::format(", {}: ", key);
      write();
    });
    annotation_lines(text);
  };
  if (!model.configuration.empty()) {
    annotation("configuration", [&] {
      list("[", "]", model.configuration,
           [&](const ir::DeviceConfiguration& c) { device_configuration(c); });
    });
  }
  if (!model.training_info.empty()) {
    annotation("training_info", [&] {
      list("[", "]", model.training_info,
           [&](const ir::TrainingInfo& info) { training_info(info); });
    });
  }
  indent_ -= indent_step;
}

void TextPrinter::training_info(const ir::TrainingInfo& info) {
  Record record(*this);
  if (info.initialization) record.key("initialization").print(*info.initialization);
  record.entries("initialization_binding", info.initialization_binding);
  if (info.algorithm) record.key("algorithm").print(*info.algorithm);
  record.entries("update_binding", info.update_binding);
  if (record.empty()) out_ += '{';
  record.close();
}

void TextPrinter::print(const ir::Function& function) {
  bool first = true;
  header_key(first, "domain");
  quoted(function.domain);
  if (!function.overload.empty()) {
    header_key(first, "overload");
    quoted(function.overload);
  }
  if (!function.opset_imports.empty()) {
    header_key(first, "opset_import");
    opset_imports(function.opset_imports);
  }
  if (options_.annotations && !function.doc_string.empty()) {
    header_key(first, "doc_string");
    quoted(function.doc_string);
  }
  out_ += "\n>\n";
  bare_or_quoted(function.name);
  if (!function.attributes.empty() || !function.attribute_protos.empty()) {
    out_ += " <";
    list("", function.attribute_protos.empty() || function.attributes.empty() ? "" : ", ",
         function.attributes, [&](const std::string& text) { bare_or_quoted(text); });
    list("", ">", function.attribute_protos, [&](const ir::Attribute& a) { print(a); });
  }
  out_ += " (";
  names(function.inputs);
  out_ += ") => (";
  names(function.outputs);
  out_ += ")\n";
  if (!function.value_info.empty()) {
    list("<", ">\n", function.value_info, [&](const ir::ValueInfo& info) { value_info(info); });
  }
  nodes(function.nodes);
  annotate([&](Record& record) {
    record.entries("metadata_props", function.metadata_props);
    if (function.since_version) record.key("since_version").integer(*function.since_version);
    if (function.status) record.key("status").integer(*function.status);
  });
}

void TextPrinter::print(const ir::Graph& graph) {
  if (depth_ >= max_text_depth) {
    out_ += "...";
    return;
  }
  ++depth_;
  name(graph.name);
  list(" (", ")", graph.inputs, [&](const ir::ValueInfo& info) { value_info(info); });
  list(" => (", ") ", graph.outputs, [&](const ir::ValueInfo& info) { value_info(info); });
  values_and_initializers(graph);
  nodes(graph.nodes);
  annotate([&](Record& record) {
    record.text("doc_string", graph.doc_string);
    record.entries("metadata_props", graph.metadata_props);
    if (graph.quantization_annotation.empty()) return;
    record.key("quantization_annotation");
    list("[", "]", graph.quantization_annotation, [&](const ir::TensorAnnotation& annotation) {
      Record inner(*this);
      inner.key("tensor_name").quoted(annotation.tensor_name);
      inner.entries("quant_parameter_tensor_names", annotation.quant_parameter_tensor_names);
      inner.close();
    });
  });
  --depth_;
}

void TextPrinter::values_and_initializers(const ir::Graph& graph) {
  const size_t count =
      graph.initializers.size() + graph.sparse_initializers.size() + graph.value_info.size();
  if (count == 0) return;
  indent_ += indent_step;
  size_t written = 0;
  const auto next = [&] {
    new_line();
    out_ += written++ == 0 ? "<" : " ";
  };
  const auto after = [&] {
    if (written < count) out_ += ',';
  };
  for (const ir::TensorProto& initializer : graph.initializers) {
    next();
    tensor(initializer, initializer.name, true);
    after();
  }
  for (const ir::SparseTensorProto& initializer : graph.sparse_initializers) {
    next();
    sparse_tensor(initializer, true);
    after();
  }
  for (const ir::ValueInfo& info : graph.value_info) {
    next();
    value_info(info);
    after();
  }
  out_ += '>';
  indent_ -= indent_step;
  new_line();
}

void TextPrinter::value_info(const ir::ValueInfo& info) {
  if (info.type) {
    print(*info.type);
    out_ += ' ';
    bare_or_quoted(info.name);
  } else {
    name(info.name);
  }
  annotate([&](Record& record) {
    record.text("doc_string", info.doc_string);
    record.entries("metadata_props", info.metadata_props);
  });
}

void TextPrinter::nodes(const std::vector<ir::Node>& nodes) {
  out_ += '{';
  indent_ += indent_step;
  for (const ir::Node& node : nodes) {
    new_line();
    print(node);
  }
  indent_ -= indent_step;
  new_line();
  out_ += '}';
}

void TextPrinter::op_name(const ir::Node& node) {
  std::string_view rest = node.domain;
  bool dotted = !rest.empty();
  for (size_t start = 0; start <= rest.size() && dotted;) {
    const size_t end = std::min(rest.find('.', start), rest.size());
    dotted = is_identifier(rest.substr(start, end - start));
    start = end + 1;
  }
  if (dotted) {
    out_ += node.domain;
  } else if (!node.domain.empty()) {
    quoted(node.domain);
  }
  if (!node.domain.empty()) out_ += '.';
  bare_or_quoted(node.op_type);
  if (!node.overload.empty()) {
    out_ += ':';
    bare_or_quoted(node.overload);
  }
}

void TextPrinter::print(const ir::Node& node) {
  if (!node.name.empty()) {
    out_ += '[';
    bare_or_quoted(node.name);
    out_ += "] ";
  }
  names(node.outputs);
  out_ += node.outputs.empty() ? "= " : " = ";
  op_name(node);
  const bool has_graphs = shows_graphs(node);
  if (!has_graphs) attributes(node.attributes);
  out_ += " (";
  names(node.inputs);
  out_ += ')';
  if (has_graphs) attributes(node.attributes);
  annotate([&](Record& record) {
    record.text("doc_string", node.doc_string);
    record.entries("metadata_props", node.metadata_props);
    if (node.device_configurations.empty()) return;
    record.key("device_configurations");
    list("[", "]", node.device_configurations,
         [&](const ir::NodeDeviceConfiguration& c) { node_device_configuration(c); });
  });
}

void TextPrinter::attributes(const std::vector<ir::Attribute>& attributes) {
  if (attributes.empty()) return;
  list(" <", ">", attributes, [&](const ir::Attribute& attribute) { print(attribute); });
}

namespace {

template <class Write, class T>
std::string printed(const T& what, const PrintOptions& options, Write write) {
  TextPrinter printer(options);
  write(printer, what);
  return printer.take();
}

constexpr auto print_with = [](TextPrinter& printer, const auto& what) { printer.print(what); };

}  // namespace

std::string print(const ir::Model& model, const PrintOptions& options) {
  return printed(model, options, print_with);
}
void print(const ir::Model& model, Sink& sink, const PrintOptions& options) {
  TextPrinter printer(options, &sink);
  printer.print(model);
  printer.finish();
}
std::string print(const ir::Graph& graph, const PrintOptions& options) {
  return printed(graph, options, print_with);
}
std::string print(const ir::Function& function, const PrintOptions& options) {
  return printed(function, options, print_with);
}
std::string print(const ir::Node& node, const PrintOptions& options) {
  return printed(node, options, print_with);
}
std::string print(const ir::Attribute& attribute, const PrintOptions& options) {
  return printed(attribute, options, print_with);
}
std::string print(const ir::TypeProto& type) {
  const PrintOptions options;
  return printed(type, options, print_with);
}
std::string print(const ir::TensorProto& tensor, const PrintOptions& options) {
  return printed(tensor, options, print_with);
}

}  // namespace sardonyx::wire
