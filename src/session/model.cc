#include "session/model.h"

#include "base/fail.h"
#include "check/check.h"
#include "session/reading.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

// External tensors become views of their files; everything after this sees plain tensors.
class Resolver {
 public:
  Resolver(wire::ExternalData& external, ops::PackCache& packs)
      : external_(external), packs_(packs) {}

  void graph(ir::Graph& graph) {
    for (ir::TensorProto& tensor : graph.initializers) resolve(tensor);
    for (ir::SparseTensorProto& sparse : graph.sparse_initializers) resolve(sparse);
    for (ir::Node& node : graph.nodes) attributes(node);
  }

  void attributes(ir::Node& node) {
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.t) attribute.t = resolved(attribute.t);
      for (auto& tensor : attribute.tensors) tensor = resolved(tensor);
      if (attribute.sparse_tensor) attribute.sparse_tensor = resolved(attribute.sparse_tensor);
      for (auto& sparse : attribute.sparse_tensors) sparse = resolved(sparse);
      if (attribute.g) attribute.g = inner(attribute.g);
      for (auto& graph_value : attribute.graphs) graph_value = inner(graph_value);
    }
  }

 private:
  void resolve(ir::TensorProto& tensor) {
    if (!tensor.is_external()) return;
    const auto needed = [&] {
      int64_t count = 1;
      for (const int64_t dim : tensor.dims) {
        if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) {
          fail_at(fmt::format("tensor '{}'", tensor.name), ErrorCode::invalid_model,
                  "its dims are negative or overflow");
        }
      }
      return static_cast<uint64_t>(byte_size(tensor.element_type(), count));
    }();
    tensor.raw_data = external_.bytes_of(tensor, needed);
    tensor.has_raw_data = true;
    packs_.add_file(tensor.raw_data.span());
    tensor.data_location = 0;
    tensor.external_data.clear();
  }
  void resolve(ir::SparseTensorProto& sparse) {
    resolve(sparse.values);
    resolve(sparse.indices);
  }
  template <class T>
  std::shared_ptr<const T> resolved(const std::shared_ptr<const T>& original) {
    auto copy = std::make_shared<T>(*original);
    resolve(*copy);
    return copy;
  }
  std::shared_ptr<const ir::Graph> inner(const std::shared_ptr<const ir::Graph>& original) {
    auto copy = std::make_shared<ir::Graph>(*original);
    graph(*copy);
    return copy;
  }

  wire::ExternalData& external_;
  ops::PackCache& packs_;
};

// `mapped`: the file's bytes are a mapping, not memory of their own.
std::shared_ptr<const Model::Implementation> finish(ir::Model model, Bytes file, bool mapped,
                                                    const LoadOptions& options) {
  auto made = std::make_shared<Model::Implementation>();
  if (mapped) made->packs.add_file(file.span());
  made->file = std::move(file);
  made->model = std::move(model);
  wire::ExternalData external(made->model.folder, {.trusted_folder = options.trusted_folder});
  Resolver resolver(external, made->packs);
  if (made->model.graph) resolver.graph(*made->model.graph);
  for (ir::Function& function : made->model.functions) {
    for (ir::Node& node : function.nodes) resolver.attributes(node);
  }
  return made;
}

}  // namespace

Model::Model(const std::string& path, const LoadOptions& options) {
  Bytes file = options.read_into_memory ? read_file(path) : map_file(path);
  try {
    ir::Model model = read_model_bytes(file, folder_of(path), form_of(path));
    model.path = path;
    implementation_ = finish(std::move(model), file, !options.read_into_memory, options);
  } catch (const Error& error) {
    throw error.within(path);
  }
}

Model::Model(const void* data, size_t size, std::string folder, std::shared_ptr<const void> owner,
             const LoadOptions& options) {
  const auto* bytes = static_cast<const std::byte*>(data);
  Bytes file = owner ? Bytes(std::move(owner), bytes, size) : Bytes::copy_of({bytes, size});
  implementation_ = finish(read_model_bytes(file, std::move(folder)), {}, false, options);
}

Model Model::from_text(std::string_view text) {
  Model model;
  model.implementation_ = finish(wire::parse_model(text), {}, false, {});
  return model;
}

}  // namespace sardonyx
