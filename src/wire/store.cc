#include "wire/store.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/os.h"
#include "ir/walk.h"
#include "wire/sha1.h"
#include "wire/sink.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::wire {
namespace {

constexpr int max_depth = 100;

class TensorChanger {
 public:
  TensorChanger(const std::function<bool(const ir::TensorProto&)>& needs,
                const std::function<void(ir::TensorProto&)>& change)
      : needs_(needs), change_(change) {}

  void graph(ir::Graph& graph, int depth) {
    if (depth > max_depth)
      fail(ErrorCode::unsupported, "graphs nested more than {} deep are not read", max_depth);
    for (ir::TensorProto& t : graph.initializers) tensor(t);
    for (ir::SparseTensorProto& s : graph.sparse_initializers) sparse(s);
    nodes(graph.nodes, depth);
  }

  void nodes(std::vector<ir::Node>& list, int depth) {
    for (ir::Node& node : list) {
      for (ir::Attribute& a : node.attributes) attribute(a, depth);
    }
  }

  void attribute(ir::Attribute& a, int depth) {
    shared(a.t);
    for (auto& t : a.tensors) shared(t);
    shared(a.sparse_tensor);
    for (auto& s : a.sparse_tensors) shared(s);
    shared(a.g, depth);
    for (auto& g : a.graphs) shared(g, depth);
  }

 private:
  void tensor(ir::TensorProto& t) {
    if (needs_(t)) change_(t);
  }
  void sparse(ir::SparseTensorProto& s) {
    tensor(s.values);
    tensor(s.indices);
  }
  void shared(std::shared_ptr<const ir::TensorProto>& t) {
    if (!t || !needs_(*t)) return;
    auto copy = std::make_shared<ir::TensorProto>(*t);
    change_(*copy);
    t = std::move(copy);
  }
  void shared(std::shared_ptr<const ir::SparseTensorProto>& s) {
    if (!s || !(needs_(s->values) || needs_(s->indices))) return;
    auto copy = std::make_shared<ir::SparseTensorProto>(*s);
    sparse(*copy);
    s = std::move(copy);
  }
  void shared(std::shared_ptr<const ir::Graph>& g, int depth) {
    if (!g) return;
    auto copy = std::make_shared<ir::Graph>(*g);
    graph(*copy, depth + 1);
    g = std::move(copy);
  }

  const std::function<bool(const ir::TensorProto&)>& needs_;
  const std::function<void(ir::TensorProto&)>& change_;
};

uint64_t bytes_needed(const ir::TensorProto& tensor) {
  const auto count = checked_count(tensor.dims);
  if (!count)
    fail(ErrorCode::invalid_model, "its dims {} are negative or their product overflows",
         to_string(tensor.dims));
  return static_cast<uint64_t>(byte_size(tensor.element_type(), *count));
}

// What the data file will hold, in the order of the model.
class DataFile {
 public:
  DataFile(std::string name, const DataFileOptions& options)
      : name_(std::move(name)), options_(options) {}

  void take(ir::TensorProto& tensor) {
    const Tensor elements = to_tensor(tensor);
    const Bytes bytes(elements.owner(), static_cast<const std::byte*>(elements.data()),
                      elements.byte_size());
    const uint64_t gap = (options_.alignment - size_ % options_.alignment) % options_.alignment;
    const uint64_t offset = size_ + gap;
    pieces_.push_back({gap, bytes});
    size_ = offset + bytes.size();
    tensor.has_raw_data = false;
    tensor.raw_data = tensor.float_data = tensor.double_data = {};
    tensor.int32_data.clear();
    tensor.int64_data.clear();
    tensor.uint64_data.clear();
    tensor.data_location = 1;
    tensor.external_data = {{"location", name_, {}},
                            {"offset", std::to_string(offset), {}},
                            {"length", std::to_string(bytes.size()), {}}};
  }

  void write(Sink& sink) {
    const std::string zeros(options_.alignment, '\0');
    const auto put = [&](std::span<const std::byte> bytes) {
      sink.put(bytes.data(), bytes.size());
      if (options_.checksum) digest_.add(bytes);
    };
    for (const Piece& piece : pieces_) {
      put(std::as_bytes(std::span(zeros).first(piece.gap)));
      put(piece.bytes.span());
    }
  }

  std::string checksum() { return digest_.hex(); }

 private:
  struct Piece {
    uint64_t gap;
    Bytes bytes;
  };
  std::string name_;
  const DataFileOptions& options_;
  uint64_t size_ = 0;
  std::vector<Piece> pieces_;
  Sha1 digest_;
};

}  // namespace

void change_tensors(ir::Model& model, const std::function<bool(const ir::TensorProto&)>& needs,
                    const std::function<void(ir::TensorProto&)>& change) {
  TensorChanger changer(needs, change);
  if (model.graph) changer.graph(*model.graph, 0);
  for (ir::TrainingInfo& info : model.training_info) {
    if (info.initialization) changer.graph(*info.initialization, 0);
    if (info.algorithm) changer.graph(*info.algorithm, 0);
  }
  for (ir::Function& function : model.functions) {
    changer.nodes(function.nodes, 0);
    for (ir::Attribute& a : function.attribute_protos) changer.attribute(a, 0);
  }
}

bool has_external_data(const ir::Model& model) {
  bool found = false;
  const auto tensor = [&](const ir::TensorProto& t) { found |= t.is_external(); };
  const auto sparse = [&](const ir::SparseTensorProto& s) { tensor(s.values), tensor(s.indices); };
  const auto held = [](const auto& message, const auto& look) {
    if (message) look(*message);
  };
  const auto attribute = [&](const ir::Attribute& a) {
    held(a.t, tensor);
    for (const auto& t : a.tensors) held(t, tensor);
    held(a.sparse_tensor, sparse);
    for (const auto& s : a.sparse_tensors) held(s, sparse);
  };
  const auto enter = [&](const ir::WalkPlace& place) {
    if (place.graph != nullptr) {
      std::ranges::for_each(place.graph->initializers, tensor);
      std::ranges::for_each(place.graph->sparse_initializers, sparse);
    }
    return !found;
  };
  const auto node = [&](const ir::WalkPlace&, const ir::Node& one, size_t) {
    std::ranges::for_each(one.attributes, attribute);
  };
  const ir::WalkCallbacks callbacks{.enter = enter, .node = node};
  const auto inside = [&](const ir::Graph& graph) { ir::walk(graph, callbacks); };
  ir::walk(model, callbacks);
  for (const ir::Function& function : model.functions) {
    for (const ir::Attribute& a : function.attribute_protos) {
      attribute(a);
      held(a.g, inside);
      for (const auto& g : a.graphs) held(g, inside);
    }
  }
  return found;
}

void bring_in(ir::Model& model, ExternalData& external,
              const std::function<void(const ir::TensorProto&)>& mapped) {
  const auto is_external = [](const ir::TensorProto& tensor) { return tensor.is_external(); };
  change_tensors(model, is_external, [&](ir::TensorProto& tensor) {
    try {
      if (tensor.element_type() == ElementType::string)
        fail(ErrorCode::invalid_model, "strings cannot be external data");
      tensor.raw_data = external.bytes_of(tensor, bytes_needed(tensor));
    } catch (const Error& error) {
      throw error.within(fmt::format("tensor '{}'", tensor.name));
    }
    if (mapped) mapped(tensor);
    tensor.has_raw_data = true;
    tensor.data_location = 0;
    tensor.external_data.clear();
  });
}

namespace {

void state_checksum(ir::Model& model, const std::string& checksum) {
  const auto is_external = [](const ir::TensorProto& tensor) { return tensor.is_external(); };
  change_tensors(model, is_external, [&](ir::TensorProto& tensor) {
    tensor.external_data.push_back({"checksum", checksum, {}});
  });
}

}  // namespace

void write_model_with_data(ir::Model model, const std::string& path, const std::string& data_name,
                           const DataFileOptions& options, const ModelWriter& write) {
  if (data_name.empty() || data_name == "." || data_name == ".." ||
      data_name.find_first_of(os::separators) != std::string::npos) {
    fail(ErrorCode::bad_input, "'{}' is no plain file name for the model's data", data_name);
  }
  if (options.alignment == 0 || options.alignment > (1 << 20)) {
    fail(ErrorCode::bad_input, "an alignment of {} is not in 1 to 1048576", options.alignment);
  }
  const std::filesystem::path data_path = os::path(path).parent_path() / os::path(data_name);
  if (data_path == os::path(path))
    fail(ErrorCode::bad_input, "the model and its data cannot be one file");
  DataFile data(data_name, options);
  const auto moves = [&](const ir::TensorProto& tensor) {
    if (tensor.is_external())
      fail(ErrorCode::bad_input, "tensor '{}' is external data already; bring it in first",
           tensor.name);
    return tensor.element_type() != ElementType::string && is_known(tensor.element_type()) &&
           bytes_needed(tensor) >= options.at_least;
  };
  change_tensors(model, moves, [&](ir::TensorProto& tensor) { data.take(tensor); });
  const auto write_data = [&](Sink& sink) { data.write(sink); };
  const auto write_rest = [&](Sink& sink) {
    if (options.checksum) state_checksum(model, data.checksum());
    if (write) return write(model, sink);
    write_model(model, sink);
  };
  const FileToWrite files[] = {{data_path.string(), write_data, options.source},
                               {path, write_rest, options.source}};
  write_files(files);
}

}  // namespace sardonyx::wire
