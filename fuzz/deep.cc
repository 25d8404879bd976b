// What nests, far deeper than anybody writes it: models, types, values and texts in all forms,
// drawn from the bytes. The driver gives it a small stack, so that whatever recurses without a
// bound ends there. Each costs an error, or is read, checked, inferred, run, converted and written.
#include <array>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "check/check.h"
#include "formats/json_tensor.h"
#include "formats/npy.h"
#include "sardonyx/session.h"
#include "target.h"
#include "tools/convert.h"
#include "tools/inferred_model.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace {

using namespace sardonyx;
using std::string;
using std::string_view;

// An Error is an answer, too, but not one that blames Sardonyx itself.
template <class Body>
void answer(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    require(error.code() != ErrorCode::internal, error.what());
  }
}

Bytes borrowed(string_view text) {
  return Bytes(nullptr, reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// --- What is done with a model ------------------------------------------------------------------

void run(const Model& model, bool plain) {
  SessionOptions options;
  options.threads = 1;
  options.reference = plain;
  RunOptions limits;
  limits.memory_limit = 64 << 20;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const Session session(model, options);
  std::vector<NamedValue> inputs;
  for (const ValueDescription& input : session.inputs()) {
    Tensor tensor(input.element_type, Shape(input.shape ? input.shape->size() : 0, 1));
    std::fill_n(static_cast<std::byte*>(tensor.mutable_data()), tensor.byte_size(), std::byte{1});
    inputs.emplace_back(input.name, tensor);
  }
  (void)session.run(inputs, limits);
}

void use_bytes(const string& bytes) {
  for (const auto profile : {check::Profile::runnable, check::Profile::strict}) {
    answer([&] {
      check::Options options;
      options.profile = profile;
      (void)check::check(wire::read_model(borrowed(bytes)), options);
    });
  }
  answer([&] {
    InferredModel made;
    infer_model(wire::read_model(borrowed(bytes)), {}, {}, made);
  });
  for (const bool plain : {false, true})
    answer([&] { run(Model(bytes.data(), bytes.size()), plain); });
  answer([&] { (void)convert(Model(bytes.data(), bytes.size())); });
}

void use(const ir::Model& model) {
  answer([&] { (void)wire::parse_model(wire::print(model)); });
  for (const auto form : {wire::NamedForm::json, wire::NamedForm::textproto}) {
    answer([&] { (void)wire::read_named_model(wire::named_text(model, form), form); });
  }
  string bytes;
  answer([&] { bytes = wire::write_model(model); });
  if (!bytes.empty()) use_bytes(bytes);
}

void use_text(const string& text) {
  answer([&] { use(wire::parse_model(text)); });
}

// --- What nests ---------------------------------------------------------------------------------

string repeated(string_view part, size_t count) {
  string all;
  all.reserve(part.size() * count);
  for (size_t i = 0; i < count; ++i) all += part;
  return all;
}

constexpr string_view header =
    "<ir_version: 10, opset_import: [\"\" : 21, \"f\" : 1, \"ai.onnx.ml\" : 3]>\n";

string in_header(const string& graph) { return string(header) + graph; }

void nested_types(size_t depth) {
  for (const string_view kind : {"seq(", "optional("}) {
    const string type = repeated(kind, depth) + "float" + string(depth, ')');
    use_text(in_header("g (" + type + " x) => (y) { y = Identity(x) }"));
  }
}

void nested_graphs(size_t depth, string_view op) {
  const bool is_if = op == "If";
  string text = "g (bool c, float x) => (float r) {\n";
  for (size_t i = 0; i < depth; ++i) {
    text += is_if
                ? "r = If(c) <then_branch = a () => (float r) {\n"
                : "r = Loop(, c, x) <body = b (int64 i, bool c, float x) => (bool c, float r) {\n";
  }
  text += "r = Identity(x)\n";
  for (size_t i = 0; i < depth; ++i) {
    text += is_if ? "}, else_branch = e () => (float r) { r = Identity(x) }>\n" : "}>\n";
  }
  use_text(in_header(text + "}"));
}

// Each function calls the next; the last one calls the first where they go round.
void chained_functions(size_t depth, bool round) {
  string text = in_header("g (float x) => (y) { y = f.f0(x) }\n");
  for (size_t i = 0; i < depth; ++i) {
    const string next = i + 1 < depth ? "f.f" + std::to_string(i + 1) : round ? "f.f0" : "Identity";
    text += "<domain: \"f\", opset_import: [\"\" : 21, \"f\" : 1]> f" + std::to_string(i) +
            " (x) => (y) { y = " + next + "(x) }\n";
  }
  use_text(text);
}

// Written from the last node to the first where they stand in no order.
void chained_nodes(size_t depth, string_view op, bool sorted) {
  string text = "g (float x0) => (x" + std::to_string(depth) + ") {\n";
  for (size_t i = 0; i < depth; ++i) {
    const size_t at = sorted ? i : depth - 1 - i;
    text.append("x" + std::to_string(at + 1) + " = ").append(op);
    text += "(x" + std::to_string(at) + ")\n";
  }
  use_text(in_header(text + "}"));
}

void chained_sizes(size_t depth, string_view op) {
  string text =
      "g (float[n, m] x) => (y) { s0 = Shape<start = 0, end = 1>(x)\n"
      "t = Shape<start = 1, end = 2>(x)\n";
  for (size_t i = 0; i < depth; ++i) {
    text.append("s" + std::to_string(i + 1) + " = ").append(op);
    text += "(s" + std::to_string(i) + ", t)\n";
  }
  use_text(in_header(text + "y = ConstantOfShape(s" + std::to_string(depth) + ") }"));
}

void chained_tree(size_t depth) {
  string ids, falses, modes, values, zeros;
  for (size_t i = 0; i <= depth; ++i) {
    const string comma = i == 0 ? "" : ", ";
    ids += comma + std::to_string(i);
    falses += comma + std::to_string(i < depth ? i + 1 : 0);
    modes += comma + (i < depth ? "\"BRANCH_LEQ\"" : "\"LEAF\"");
    values += comma + "0.5";
    zeros += comma + "0";
  }
  use_text(in_header(
      "g (float[1, 1] x) => (y) { y = ai.onnx.ml.TreeEnsembleRegressor<nodes_nodeids = [" + ids +
      "], nodes_falsenodeids = [" + falses + "], nodes_truenodeids = [" + falses +
      "], nodes_modes = [" + modes + "], nodes_values = [" + values + "], nodes_featureids = [" +
      zeros + "], nodes_treeids = [" + zeros + "], target_ids = [0], target_nodeids = [" +
      std::to_string(depth) + "], target_treeids = [0], target_weights = [1.0]>(x) }"));
}

void dimension_text(size_t depth) {
  for (const string& name : {repeated("(", depth) + "n" + string(depth, ')'),
                             "n" + repeated("+n", depth), "n" + repeated("*(n-1", depth)}) {
    ir::Model model = wire::parse_model(in_header("g (float[n] x) => (y) { y = Identity(x) }"));
    model.graph->inputs[0].type->shape->dims[0].param = name;
    use(model);
  }
}

void patterns(size_t depth) {
  const string pattern = repeated("(a", depth) + string(depth, ')');
  use_text(in_header("g () => (y) <string[1] x = {\"a\"}> { y = RegexFullMatch<pattern = \"" +
                     pattern + "\">(x) }"));
  use_text(in_header("g (float x) => (y) { y = Einsum<equation = \"" + repeated("a,", depth) +
                     "->\">(x) }"));
}

// The fields of messages that hold messages: graph, node, attribute and its graph; type, sequence,
// elem_type; and groups, which nothing reads.
void nested_messages(size_t depth, bool closed) {
  const auto wrapped = [&](std::span<const int> fields) {
    string inside;
    for (size_t i = depth; i-- > 0;) {
      string outer(1, static_cast<char>(fields[i % fields.size()] << 3 | 2));
      for (size_t n = inside.size();; n >>= 7) {
        outer += static_cast<char>(n > 127 ? (n & 127) | 128 : n);
        if (n <= 127) break;
      }
      inside = outer + inside;
      if (inside.size() > size_t{1} << 16) break;  // each level copies all within
    }
    return inside;
  };
  constexpr std::array graphs = {7, 1, 5, 6}, types = {7, 11, 2, 4};
  for (const string& bytes : {wrapped(graphs), wrapped(types),
                              string(depth, '\x7b') + (closed ? string(depth, '\x7c') : "")}) {
    answer([&] { use(wire::read_model(borrowed(bytes))); });
    for (const auto kind : {ir::TypeProto::Kind::sequence, ir::TypeProto::Kind::optional}) {
      ir::TypeProto type;
      type.kind = kind;
      answer([&] { (void)wire::write_value(wire::read_value(borrowed(bytes), type)); });
    }
  }
  constexpr std::array values = {4, 4}, optionals = {6, 6};
  for (const string& bytes : {wrapped(values), wrapped(optionals)}) {
    for (const auto kind : {ir::TypeProto::Kind::sequence, ir::TypeProto::Kind::optional}) {
      ir::TypeProto type;
      type.kind = kind;
      answer([&] { (void)wire::write_value(wire::read_value(borrowed(bytes), type)); });
    }
  }
}

void nested_texts(size_t depth, bool closed) {
  const auto close = [&](string_view end) { return closed ? repeated(end, depth) : string(); };
  const string lists = repeated("[", depth) + "1" + close("]");
  answer([&] { (void)formats::json_from_tensor(formats::tensor_from_text(lists)); });
  const string objects = repeated("{\"a\":", depth) + "1" + close("}");
  answer([&] { (void)formats::tensor_from_text(objects); });
  constexpr auto json = wire::NamedForm::json, textproto = wire::NamedForm::textproto;
  for (const string& text :
       {lists, objects, "{\"graph\":" + lists + "}", "{\"unknown\":" + objects + "}",
        "{\"graph\":" + repeated("{\"node\":[{\"attribute\":[{\"g\":", depth) + "{}" +
            close("}]}]}") + "}"}) {
    answer([&] { use(wire::read_named_model(text, json)); });
  }
  for (const string& text :
       {repeated("graph{node{attribute{g{", depth) + close("}}}}"),
        "graph{" + repeated("node{attribute{g{", depth) + close("}}}") + "}",
        repeated("unknown{", depth) + close("}"), repeated("unknown:[", depth) + close("]"),
        repeated("a<", depth) + close(">")}) {
    answer([&] { use(wire::read_named_model(text, textproto)); });
  }
  const string tuple = repeated("(", depth) + close(")");
  string array = "\x93NUMPY\x02";
  array += '\0';
  const string head = "{'descr': '<f4', 'fortran_order': False, 'shape': " + tuple + "}\n";
  for (int byte = 0; byte < 4; ++byte) array += static_cast<char>(head.size() >> 8 * byte & 255);
  answer([&] { (void)formats::read_npy(borrowed(array + head)); });
}

// Depths near the limits that readers have, and far beyond.
size_t drawn_depth(const uint8_t* data, size_t size) {
  const size_t a = size > 1 ? data[1] : 0, b = size > 2 ? data[2] : 0;
  switch (a % 4) {
    case 0: return b % 64;
    case 1: return 60 + b;
    case 2: return 16 * b;
    default: return 400 * b;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const size_t depth = drawn_depth(data, size);
  const size_t kind = size > 0 ? data[0] : 0;
  const bool flag = size > 3 && (data[3] & 1) != 0;
  const size_t few = std::min<size_t>(depth, 3000);  // what grows faster than its depth
  constexpr string_view unary[] = {"Identity", "Neg", "Relu", "Softplus"},
                        binary[] = {"Add", "Mul", "Sub", "Div", "Max", "Min", "Mod"};
  const std::function<void()> kinds[] = {
      [&] { nested_types(depth); },
      [&] { nested_graphs(few, "If"); },
      [&] { nested_graphs(few, "Loop"); },
      [&] { chained_functions(few, flag); },
      [&] { chained_nodes(depth / 8, unary[kind / 16 % 4], flag); },
      [&] { chained_sizes(few, binary[kind / 16 % 7]); },
      [&] { chained_tree(few); },
      [&] { dimension_text(depth); },
      [&] { patterns(depth); },
      [&] { nested_messages(depth, flag); },
      [&] { nested_texts(depth, flag); },
  };
  kinds[kind % std::size(kinds)]();
  return 0;
}
