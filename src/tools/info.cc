#include "sardonyx/info.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/fail.h"
#include "base/os.h"
#include "ir/dimension.h"
#include "ir/imports.h"
#include "ir/walk.h"
#include "ops/operator.h"
#include "schema/schema.h"
#include "session/custom.h"
#include "session/model.h"
#include "session/reading.h"
#include "tools/flops.h"

namespace sardonyx {
namespace {

std::string qualified(std::string_view domain, std::string_view name) {
  return ir::canonical_domain(domain).empty() ? std::string(name)
                                              : fmt::format("{}.{}", domain, name);
}

std::vector<ModelInfo::Port> ports(const std::vector<ir::ValueInfo>& values,
                                   const std::set<std::string_view>& defaults) {
  std::vector<ModelInfo::Port> ports;
  for (const ir::ValueInfo& value : values) {
    ports.push_back({value.name, value.type ? ir::declared_text(*value.type) : "?",
                     defaults.contains(value.name)});
  }
  return ports;
}

// Sums up the tensors of a model.
class Parameters {
 public:
  void add(const ir::TensorProto& tensor) {
    int64_t count = 1;
    for (const int64_t dim : tensor.dims) {
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return;  // the checker's business
    }
    elements_ += count;
    by_type_[is_known(tensor.element_type()) ? std::string(name_of(tensor.element_type()))
                                             : "unknown"] += count;
    if (is_known(tensor.element_type()) && count < (int64_t{1} << 58))
      bytes_ += byte_size(tensor.element_type(), count);
    if (!tensor.is_external()) return;
    for (const ir::StringEntry& entry : tensor.external_data) {
      if (entry.key == "location") files_.insert(entry.value);
    }
  }
  void add(const ir::SparseTensorProto& sparse) {
    add(sparse.values);
    add(sparse.indices);
  }
  void add(const ir::Graph& graph) {
    for (const ir::TensorProto& tensor : graph.initializers) add(tensor);
    for (const ir::SparseTensorProto& sparse : graph.sparse_initializers) add(sparse);
  }
  void add(const ir::Node& node) {
    for (const ir::Attribute& attribute : node.attributes) {
      if (attribute.t) add(*attribute.t);
      if (attribute.sparse_tensor) add(*attribute.sparse_tensor);
    }
  }

  void report(ModelInfo& info, const std::string& folder) const {
    info.parameters = elements_;
    info.parameter_bytes = bytes_;
    info.parameter_types.assign(by_type_.begin(), by_type_.end());
    std::stable_sort(info.parameter_types.begin(), info.parameter_types.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const std::string& file : files_) {
      info.external_files.push_back(file);
      info.external_data_present =
          info.external_data_present && os::info_of(folder + "/" + file).has_value();
    }
  }

 private:
  int64_t elements_ = 0, bytes_ = 0;
  std::map<std::string, int64_t> by_type_;
  std::set<std::string> files_;
};

bool can_run(const ir::Node& node) {
  return ops::find_operator(ir::canonical_domain(node.domain), node.op_type) != nullptr ||
         schema::function_text(ir::canonical_domain(node.domain), node.op_type) != nullptr;
}

void count_nodes(const ir::Model& model, const ops::CustomTable& custom, ModelInfo& info) {
  std::set<std::tuple<std::string_view, std::string_view>> own;
  for (const ir::Function& function : model.functions) {
    own.emplace(ir::canonical_domain(function.domain), function.name);
    info.functions.push_back(qualified(function.domain, function.name));
  }
  std::map<std::string, ModelInfo::OperatorCount> counts;
  Parameters parameters;
  ir::ImportIndex imports;
  ir::walk(model, {.enter =
                       [&](const ir::WalkPlace& place) {
                         if (place.graph != nullptr) parameters.add(*place.graph);
                         return true;
                       },
                   .node =
                       [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
                         ++info.nodes;
                         auto& count = counts[qualified(node.domain, node.op_type)];
                         ++count.count;
                         count.supported =
                             own.contains({ir::canonical_domain(node.domain), node.op_type}) ||
                             can_run(node) ||
                             custom.bind(node.domain, node.op_type,
                                         imports.version(model.opset_imports, node.domain));
                         parameters.add(node);
                       }});
  for (auto& [name, count] : counts) {
    count.name = name;
    info.operators.push_back(count);
  }
  std::stable_sort(info.operators.begin(), info.operators.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  parameters.report(info, model.folder);
}

// The names of all sizes that the cost may depend on: those of the model's inputs, and what the
// inputs of subgraphs are declared with.
std::vector<std::string> cost_size_names(const ir::Model& model,
                                         const std::vector<ir::ValueInfo>& inputs) {
  std::vector<std::string> names = ir::size_names(inputs);
  const auto enter = [&](const ir::WalkPlace& place) {
    if (place.graph == nullptr || place.depth == 0) return true;
    for (std::string& name : ir::size_names(place.graph->inputs)) names.push_back(std::move(name));
    return true;
  };
  ir::walk(model, {.enter = enter});
  return names;
}

int64_t file_size(const std::string& path) {
  const auto info = os::info_of(path);
  return info ? static_cast<int64_t>(info->size) : 0;
}

}  // namespace

namespace {

ModelInfo info_of(const ir::Model& model, const DimSizes& sizes, const ops::CustomTable& custom) {
  ModelInfo info;
  info.path = model.path;
  info.file_bytes = model.path.empty() ? 0 : file_size(model.path);
  info.ir_version = model.ir_version;
  for (const ir::OperatorSetId& opset : model.opset_imports) {
    info.opsets.emplace_back(opset.domain.empty() ? "ai.onnx" : opset.domain, opset.version);
  }
  info.producer = model.producer_name;
  if (!model.producer_version.empty())
    info.producer += (info.producer.empty() ? "" : " ") + model.producer_version;
  info.domain = model.domain;
  info.model_version = model.model_version;
  info.description = model.doc_string;
  for (const ir::StringEntry& entry : model.metadata_props)
    info.metadata.emplace_back(entry.key, entry.value);
  info.training = !model.training_info.empty();
  count_nodes(model, custom, info);
  if (!model.graph) {
    info.cost_reason = "the model has no graph";
    return info;
  }
  info.graph_name = model.graph->name;
  std::set<std::string_view> defaults;
  for (const ir::TensorProto& initializer : model.graph->initializers)
    defaults.insert(initializer.name);
  std::vector<ir::ValueInfo> inputs = model.graph->inputs;
  ir::name_open_sizes(inputs);
  refuse_unknown_sizes(sizes, cost_size_names(model, inputs));
  info.inputs = ports(inputs, defaults);
  info.outputs = ports(model.graph->outputs, {});
  try {
    info.cost = cost_of(model, sizes, custom);
  } catch (const Error& error) {
    info.cost_reason = error.what();
  }
  return info;
}

}  // namespace

ModelInfo model_info(const std::string& path, const DimSizes& sizes,
                     const std::vector<std::string>& libraries) {
  const ops::CustomTable custom = custom_table(nullptr, libraries);
  ModelInfo info = info_of(read_model_file(path), sizes, custom);
  info.path = path;
  return info;
}

ModelInfo model_info(const Model& model, const DimSizes& sizes) {
  return info_of(model.implementation().model, sizes, model.implementation().custom);
}

}  // namespace sardonyx
