// parse(print(model)) is the model, for models that others wrote: compared as bytes, after both
// are brought to one way of storing tensors and zeros.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string_view>
#include <unordered_set>

#include "ir/walk.h"
#include "random_model.h"
#include "sardonyx/error.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/tensor.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

void normalise(ir::TensorProto& tensor) {
  tensor.unknown = {};
  for (ir::StringEntry& entry : tensor.external_data) entry.unknown = {};
  for (ir::StringEntry& entry : tensor.metadata_props) entry.unknown = {};
  if (tensor.is_external()) return;
  ir::TensorProto plain = wire::to_proto(wire::to_tensor(tensor), tensor.name);
  plain.doc_string = tensor.doc_string;
  plain.metadata_props = tensor.metadata_props;
  plain.segment = tensor.segment;
  tensor = std::move(plain);
}

void normalise(ir::SparseTensorProto& sparse) {
  sparse.unknown = {};
  normalise(sparse.values);
  normalise(sparse.indices);
}

void normalise(ir::TypeProto& type);
void normalise(ir::Graph& graph);

template <class T>
void normalise_shared(std::shared_ptr<const T>& shared) {
  if (!shared) return;
  auto copy = std::make_shared<T>(*shared);
  normalise(*copy);
  shared = std::move(copy);
}

void normalise(std::vector<ir::StringEntry>& entries) {
  for (ir::StringEntry& entry : entries) entry.unknown = {};
}

void normalise(ir::TypeProto& type) {
  type.unknown = {};
  type.inner_unknown = {};
  if (type.shape) {
    type.shape->unknown = {};
    for (ir::Dimension& dim : type.shape->dims) dim.unknown = {};
  }
  normalise_shared(type.nested);
}

void normalise(ir::ValueInfo& info) {
  info.unknown = {};
  normalise(info.metadata_props);
  if (info.type) normalise(*info.type);
}

void normalise(ir::Attribute& attribute) {
  attribute.unknown = {};
  const bool reference = !attribute.ref_attr_name.empty();
  if (!reference && attribute.kind == ir::AttributeKind::int_)
    attribute.i = attribute.i.value_or(0);
  if (!reference && attribute.kind == ir::AttributeKind::float_)
    attribute.f = attribute.f.value_or(0);
  if (!reference && attribute.kind == ir::AttributeKind::string)
    attribute.s = attribute.s.value_or("");
  normalise_shared(attribute.t);
  normalise_shared(attribute.sparse_tensor);
  normalise_shared(attribute.tp);
  normalise_shared(attribute.g);
  for (auto& graph : attribute.graphs) normalise_shared(graph);
  for (auto& tensor : attribute.tensors) normalise_shared(tensor);
  for (auto& tensor : attribute.sparse_tensors) normalise_shared(tensor);
  for (auto& type : attribute.type_protos) normalise_shared(type);
}

void normalise(std::vector<ir::Node>& nodes) {
  for (ir::Node& node : nodes) {
    node.unknown = {};
    normalise(node.metadata_props);
    for (ir::NodeDeviceConfiguration& configuration : node.device_configurations) {
      configuration.unknown = {};
      for (ir::ShardingSpec& spec : configuration.sharding_spec) {
        spec.unknown = {};
        for (ir::IntIntListEntry& entry : spec.index_to_device_group_map) entry.unknown = {};
        for (ir::ShardedDim& dim : spec.sharded_dim) {
          dim.unknown = {};
          for (ir::SimpleShardedDim& simple : dim.simple_sharding) simple.unknown = {};
        }
      }
    }
    for (ir::Attribute& attribute : node.attributes) normalise(attribute);
  }
}

void normalise(ir::Graph& graph) {
  graph.unknown = {};
  normalise(graph.metadata_props);
  normalise(graph.nodes);
  for (ir::ValueInfo& info : graph.inputs) normalise(info);
  for (ir::ValueInfo& info : graph.outputs) normalise(info);
  for (ir::ValueInfo& info : graph.value_info) normalise(info);
  for (ir::TensorProto& tensor : graph.initializers) normalise(tensor);
  for (ir::SparseTensorProto& tensor : graph.sparse_initializers) normalise(tensor);
  for (ir::TensorAnnotation& annotation : graph.quantization_annotation) {
    annotation.unknown = {};
    normalise(annotation.quant_parameter_tensor_names);
  }
}

std::string normalised_bytes(ir::Model model) {
  model.unknown = {};
  normalise(model.metadata_props);
  for (ir::OperatorSetId& import : model.opset_imports) import.unknown = {};
  if (model.graph) normalise(*model.graph);
  for (ir::Function& function : model.functions) {
    function.unknown = {};
    normalise(function.metadata_props);
    for (ir::OperatorSetId& import : function.opset_imports) import.unknown = {};
    for (ir::Attribute& attribute : function.attribute_protos) normalise(attribute);
    for (ir::ValueInfo& info : function.value_info) normalise(info);
    normalise(function.nodes);
  }
  for (ir::TrainingInfo& info : model.training_info) {
    info.unknown = {};
    if (info.initialization) normalise(*info.initialization);
    if (info.algorithm) normalise(*info.algorithm);
    normalise(info.initialization_binding);
    normalise(info.update_binding);
  }
  for (ir::DeviceConfiguration& configuration : model.configuration) configuration.unknown = {};
  return wire::write_model(model);
}

// Where models may be found: the project's own, and those of the standard where it is installed.
std::vector<fs::path> model_files() {
  const fs::path root = SARDONYX_SOURCE_DIR;
  // every_field.onnx is no model that text can say: its tensors are of element types that don't
  // exist.
  std::vector<fs::path> files;
  for (const fs::path& folder :
       {root / "build/conformance", fs::path("/usr/share/libonnx-testdata/data")}) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx" && entry.file_size() < 500'000)
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(TextRoundTrip, ModelsOfOthers) {
  size_t same = 0;
  std::unordered_set<size_t> seen;  // most models are the same in many releases
  for (const fs::path& file : model_files()) {
    const Bytes bytes = map_file(file.string());
    if (!seen.insert(std::hash<std::string_view>()(bytes.text())).second) continue;
    const ir::Model model = wire::read_model(bytes);
    const std::string text = wire::print(model);
    try {
      const ir::Model again = wire::parse_model(text);
      if (normalised_bytes(again) == normalised_bytes(model)) {
        ++same;
        continue;
      }
      ADD_FAILURE() << file << " is another model after a round trip\n" << text.substr(0, 2000);
    } catch (const Error& error) {
      ADD_FAILURE() << file << ": " << error.what() << "\n" << text.substr(0, 2000);
    }
    if (testing::Test::HasFailure()) break;
  }
  if (same == 0)
    GTEST_SKIP() << "no models of others on this machine: ./dev conformance generates them";
}

// The first lines that differ in the text format, and those before them.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines[2];
  for (int i = 0; i < 2; ++i) {
    const std::string& binary = i == 0 ? a : b;
    lines[i].str(
        wire::named_text(wire::read_model(Bytes::copy_of(std::as_bytes(std::span(binary)))),
                         wire::NamedForm::textproto));
  }
  std::string before, x, y;
  while (std::getline(lines[0], x) && std::getline(lines[1], y)) {
    if (x != y) break;
    before += x + "\n";
  }
  return before.substr(before.size() - std::min<size_t>(before.size(), 400)) + "- " + x + "\n+ " +
         y;
}

TEST(TextRoundTrip, RandomModels) {
  size_t bytes = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const ir::Model model = wire_test::random_model(seed, wire_test::Content::sound);
    const std::string text = wire::print(model), binary = normalised_bytes(model);
    bytes += binary.size();
    try {
      const ir::Model again = wire::parse_model(text);
      if (normalised_bytes(again) == binary) continue;
      ADD_FAILURE() << "seed " << seed << ": " << first_difference(binary, normalised_bytes(again));
    } catch (const Error& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what() << "\n" << text;
    }
    break;
  }
  EXPECT_GT(bytes, 100'000u);
}

}  // namespace
}  // namespace sardonyx
