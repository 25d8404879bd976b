// Operators that kernels of the caller's call: each a model of one node, prepared when values of
// its types first come.
#include <algorithm>
#include <cstring>

#include "ort_api/kernels.h"
#include "sardonyx/signatures.h"
#include "wire/write.h"

namespace sardonyx::ort_api {

struct OrtOp {
  std::string domain, type;
  int version = 0;
  std::vector<OrtOpAttr> attributes;
  // By the types of the inputs (undefined: absent) and which outputs are wanted.
  using Key = std::pair<std::vector<ElementType>, std::vector<bool>>;
  mutable std::mutex mutex;
  mutable std::map<Key, std::shared_ptr<const Session>> sessions;
};

namespace {

// --- Calls ----------------------------------------------------------------------------------

std::string model_of(const OrtOp& op, const OrtOp::Key& key) {
  ir::Model model;
  model.ir_version = standard_releases().back().ir_version;
  ir::OperatorSetId& import = model.opset_imports.emplace_back();
  import.domain = op.domain, import.version = op.version;
  ir::Graph& graph = model.graph.emplace();
  graph.name = op.type;
  ir::Node& node = graph.nodes.emplace_back();
  node.name = "called", node.op_type = op.type, node.domain = op.domain;
  for (size_t i = 0; i < key.first.size(); ++i) {
    const bool is_there = key.first[i] != ElementType::undefined;
    node.inputs.push_back(is_there ? fmt::format("x{}", i) : "");
    if (!is_there) continue;
    ir::ValueInfo& input = graph.inputs.emplace_back();
    input.name = node.inputs.back();
    input.type.emplace().kind = ir::TypeProto::Kind::tensor;
    input.type->elem_type = static_cast<int32_t>(key.first[i]);
  }
  for (size_t i = 0; i < key.second.size(); ++i) {
    node.outputs.push_back(key.second[i] ? fmt::format("y{}", i) : "");
    if (key.second[i]) graph.outputs.emplace_back().name = node.outputs.back();
  }
  for (const OrtOpAttr& attribute : op.attributes) node.attributes.push_back(to_proto(attribute));
  return wire::write_model(model);
}

std::shared_ptr<const Session> session_of(const OrtOp& op, const OrtOp::Key& key) {
  const std::lock_guard lock(op.mutex);
  std::shared_ptr<const Session>& session = op.sessions[key];
  if (session == nullptr) {
    const std::string bytes = model_of(op, key);
    session = std::make_shared<const Session>(Model(bytes.data(), bytes.size()),
                                              SessionOptions{.threads = 1});
  }
  return session;
}

// Puts what was made where the caller wants it, unless it lies there.
void put_into(const OrtOp& op, size_t index, const Value& made, OrtValue& wanted) {
  const Tensor& from = made.tensor();
  Tensor to = wanted.value.tensor();
  if (from.data() == to.data() && from.shape() == to.shape()) return;
  if (from.element_type() != to.element_type() || from.shape() != to.shape())
    refuse(ORT_INVALID_ARGUMENT, "output {} of {} is {}{}, and the value given for it is {}{}",
           index, op.type, name_of(from.element_type()), to_string(from.shape()),
           name_of(to.element_type()), to_string(to.shape()));
  if (from.element_type() == ElementType::string) {
    std::ranges::copy(from.elements<std::string>(), to.mutable_elements<std::string>().begin());
  } else if (from.byte_size() > 0) {
    std::memcpy(to.mutable_data(), from.data(), from.byte_size());
  }
}

void call(const OrtOp& op, const OrtValue* const* inputs, size_t input_count,
          OrtValue* const* outputs, size_t output_count) {
  OrtOp::Key key;
  std::vector<Value> given, made;
  for (size_t i = 0; i < input_count; ++i) {
    key.first.push_back(ElementType::undefined);
    if (inputs[i] == nullptr) continue;
    const Tensor& tensor = tensor_of(inputs[i], "input_values");
    key.first.back() = tensor.element_type();
    given.emplace_back(tensor);
  }
  for (size_t i = 0; i < output_count; ++i) {
    key.second.push_back(outputs[i] != nullptr);
    if (outputs[i] == nullptr) continue;
    const Tensor& tensor = tensor_of(outputs[i], "output_values");
    // What is an input, too, is written when the run has ended.
    const bool is_input = std::ranges::any_of(
        given, [&](const Value& input) { return input.tensor().data() == tensor.data(); });
    made.push_back(is_input ? Value() : Value(tensor));
  }
  session_of(op, key)->run(given, made);
  size_t next = 0;
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i] != nullptr) put_into(op, i, made[next++], *outputs[i]);
  }
}

OrtStatus* CreateOp(const OrtKernelInfo* info, const char* name, const char* domain, int version,
                    const char** constraints, const ONNXTensorElementDataType* types,
                    int constraint_count, const OrtOpAttr* const* attributes, int attribute_count,
                    int input_count, int output_count, OrtOp** out) {
  return guarded([&] {
    required(info, "info");
    auto op = std::make_unique<OrtOp>();
    op->type = text_of(name, "op_name");
    op->domain = text_of(domain, "domain");
    op->version = version;
    // The types are those of the values that come.
    items(constraints, static_cast<size_t>(std::max(constraint_count, 0)), "type_constraint_names");
    items(types, static_cast<size_t>(std::max(constraint_count, 0)), "type_constraint_values");
    if (input_count < 0 || output_count < 0)
      refuse(ORT_INVALID_ARGUMENT, "{} inputs and {} outputs are no counts", input_count,
             output_count);
    const auto signature = find_signature(domain, name, version);
    if (!signature)
      refuse(ORT_FAIL, "there is no operator {} in version {} of domain '{}'", name, version,
             domain);
    const size_t count = static_cast<size_t>(std::max(attribute_count, 0));
    items(attributes, count, "attr_values");
    for (size_t i = 0; i < count; ++i) {
      const OrtOpAttr& attribute = required(attributes[i], "attr_values");
      // ONNX Runtime ignores those that the operator does not have.
      if (std::ranges::find(signature->attributes, attribute.name, &AttributeSignature::name) !=
          signature->attributes.end())
        op->attributes.push_back(attribute);
    }
    give(out, "ort_op", op.release());
  });
}

OrtStatus* InvokeOp(const OrtKernelContext* context, const OrtOp* op, const OrtValue* const* inputs,
                    int input_count, OrtValue* const* outputs, int output_count) {
  return guarded([&] {
    required(context, "context");
    const size_t input_values = static_cast<size_t>(std::max(input_count, 0));
    const size_t output_values = static_cast<size_t>(std::max(output_count, 0));
    call(required(op, "ort_op"), items(inputs, input_values, "input_values"), input_values,
         items(outputs, output_values, "output_values"), output_values);
  });
}

void ReleaseOp(OrtOp* op) { delete op; }

}  // namespace

void add_invoked_operators(OrtApi& table) {
  table.CreateOp = CreateOp;
  table.InvokeOp = InvokeOp;
  table.ReleaseOp = ReleaseOp;
}

}  // namespace sardonyx::ort_api
