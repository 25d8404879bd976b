#include "session/optimized_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/fail.h"
#include "check/check.h"
#include "ir/internal_domain.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/internal/node.h"
#include "schema/schema.h"
#include "wire/read.h"
#include "wire/store.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

// Smaller tensors lie in the message.
constexpr size_t min_stored = 256;
// The location of elements that passes computed; those of a model's files are numbers.
constexpr std::string_view in_constants = "constants";
// Keys of a node's metadata.
constexpr std::string_view origin_key = "origin", source_key = "source", helper_key = "helper";

std::strong_ordering by_address(const std::byte* a, const std::byte* b) {
  return std::compare_three_way()(a, b);
}

// The elements of tensors that passes or the model's file hold as bytes.
const Bytes& elements_of(const ir::TensorProto& tensor) {
  if (!tensor.float_data.empty()) return tensor.float_data;
  if (!tensor.double_data.empty()) return tensor.double_data;
  return tensor.raw_data;
}

void set_raw(ir::TensorProto& tensor, Bytes bytes) {
  tensor.has_raw_data = true;
  tensor.raw_data = std::move(bytes);
  tensor.float_data = tensor.double_data = {};
  tensor.int32_data.clear();
  tensor.int64_data.clear();
  tensor.uint64_data.clear();
  tensor.data_location = 0;
  tensor.external_data.clear();
}

void set_elsewhere(ir::TensorProto& tensor, std::string location, uint64_t offset, uint64_t size) {
  set_raw(tensor, {});
  tensor.has_raw_data = false;
  tensor.data_location = 1;
  tensor.external_data = {{"location", std::move(location), {}},
                          {"offset", std::to_string(offset), {}},
                          {"length", std::to_string(size), {}}};
}

// Which form of its operators a graph is written in: the newest of each domain.
std::vector<ir::OperatorSetId> imports_of(const ir::Graph& graph) {
  std::set<std::string> domains;
  ir::walk(graph, {.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
             domains.emplace(ir::canonical_domain(node.domain));
           }});
  std::vector<ir::OperatorSetId> imports;
  for (const std::string& domain : domains)
    imports.push_back({domain, std::max<int64_t>(schema::latest_opset(domain), 1), {}});
  return imports;
}

void take_origin(ir::Node& node) {
  for (ir::StringEntry& entry : node.metadata_props) {
    if (entry.key == origin_key) node.origin = std::move(entry.value);
    if (entry.key == source_key) node.sources.push_back(std::move(entry.value));
    if (entry.key == helper_key) node.is_helper = true;
  }
  node.metadata_props.clear();
}

void tell_origin(ir::Node& node) {
  node.doc_string.clear();
  node.metadata_props.clear();
  const auto add = [&](std::string_view key, const std::string& value) {
    node.metadata_props.push_back({std::string(key), value, {}});
  };
  if (!node.origin.empty()) add(origin_key, node.origin);
  for (const std::string& source : node.sources) add(source_key, source);
  if (node.is_helper) add(helper_key, "");
}

// Why the graph must not run, or nothing.
std::optional<std::string> objection_to(const ir::Model& model) {
  for (const check::Diagnostic& found :
       check::check(model, {.profile = check::Profile::runnable})) {
    if (found.severity == check::Severity::error)
      return fmt::format("{}: {} [{}]", found.place.to_string(), found.message, found.rule);
  }
  std::optional<std::string> objection;
  ir::walk(*model.graph, {.node = [&](const ir::WalkPlace& place, const ir::Node& node, size_t i) {
    if (objection || !ir::is_internal(node)) return;
    if (const auto problem = ops::internal::problem_of(node))
      objection = fmt::format("{}, node {} {}: {}", place.path(), i, ir::describe(node), *problem);
  }});
  return objection;
}

uint64_t number_of(const ir::TensorProto& tensor, std::string_view key) {
  for (const ir::StringEntry& entry : tensor.external_data) {
    if (entry.key != key) continue;
    uint64_t number = 0;
    const char* end = entry.value.data() + entry.value.size();
    const auto [at, error] = std::from_chars(entry.value.data(), end, number);
    if (error == std::errc() && at == end) return number;
  }
  fail(ErrorCode::unreadable, "tensor '{}' has no {}", tensor.name, key);
}

Bytes elements_at(const ir::TensorProto& tensor, const ModelFiles& files, const Bytes& constants) {
  const uint64_t offset = number_of(tensor, "offset"), size = number_of(tensor, "length");
  const bool is_stored = std::ranges::any_of(tensor.external_data, [](const auto& entry) {
    return entry.key == "location" && entry.value == in_constants;
  });
  if (!is_stored) {
    if (auto bytes = files.bytes_at({number_of(tensor, "location"), offset}, size)) return *bytes;
  } else if (offset % StoredConstants::alignment == 0 && offset <= constants.size() &&
             size <= constants.size() - offset) {
    return constants.slice(static_cast<size_t>(offset), static_cast<size_t>(size));
  }
  fail(ErrorCode::unreadable, "the {} bytes of tensor '{}' are not where they are said to be", size,
       tensor.name);
}

}  // namespace

ModelFiles::ModelFiles(const Bytes& own, const ops::PackCache& packs) : by_address_(packs.files()) {
  const auto is_own = [](const File& file) { return file.place.file == 0; };
  if (!own.empty() && std::ranges::none_of(by_address_, is_own)) by_address_.push_back({own, {}});
  by_place_ = by_address_;
  // Tensors of external data may share bytes: of those that begin together, the longest is last.
  std::ranges::sort(by_address_, [](const File& a, const File& b) {
    const auto order = by_address(a.bytes.data(), b.bytes.data());
    return order < 0 || (order == 0 && a.bytes.size() < b.bytes.size());
  });
  std::ranges::sort(by_place_, [](const File& a, const File& b) {
    return std::pair(a.place, a.bytes.size()) < std::pair(b.place, b.bytes.size());
  });
}

std::optional<ops::ConstantPlace> ModelFiles::place_of(std::span<const std::byte> bytes) const {
  auto after = std::ranges::upper_bound(
      by_address_, bytes.data(),
      [](const std::byte* a, const std::byte* b) { return by_address(a, b) < 0; },
      [](const File& file) { return file.bytes.data(); });
  if (after == by_address_.begin()) return std::nullopt;
  const File& file = *std::prev(after);
  const auto offset = static_cast<uint64_t>(bytes.data() - file.bytes.data());
  if (offset > file.bytes.size() || bytes.size() > file.bytes.size() - offset) return std::nullopt;
  return ops::ConstantPlace{file.place.file, file.place.offset + offset};
}

std::optional<Bytes> ModelFiles::bytes_at(const ops::ConstantPlace& place, uint64_t size) const {
  auto after = std::ranges::upper_bound(by_place_, place, {}, &File::place);
  if (after == by_place_.begin()) return std::nullopt;
  const File& file = *std::prev(after);
  if (file.place.file != place.file) return std::nullopt;
  const uint64_t offset = place.offset - file.place.offset;
  if (offset > file.bytes.size() || size > file.bytes.size() - offset) return std::nullopt;
  return file.bytes.slice(static_cast<size_t>(offset), static_cast<size_t>(size));
}

uint64_t ModelFiles::size() const {
  uint64_t size = 0;
  for (const File& file : by_address_) size += file.bytes.size();
  return size;
}

uint64_t StoredConstants::add(const Bytes& elements) {
  const auto [at, is_new] =
      found_.try_emplace({content_hash(elements.span()), elements.size()}, all_.size());
  const auto is_same = [&](const Bytes& known) {
    return std::ranges::equal(known.span(), elements.span());
  };
  if (!is_new && is_same(all_[at->second])) return offsets_[at->second];
  all_.push_back(elements);
  offsets_.push_back(size_);
  size_ += (elements.size() + alignment - 1) / alignment * alignment;
  return offsets_.back();
}

Bytes StoredConstants::bytes() const {
  Bytes made = Bytes::allocate(static_cast<size_t>(size_));
  std::fill_n(made.mutable_data(), made.size(), std::byte{});
  for (size_t i = 0; i < all_.size(); ++i)
    std::ranges::copy(all_[i].span(), made.mutable_data() + offsets_[i]);
  return made;
}

std::optional<uint64_t> StoredConstants::find(const ContentHash& content, uint64_t size) const {
  const auto found = found_.find({content, size});
  if (found == found_.end()) return std::nullopt;
  return offsets_[found->second];
}

std::optional<std::string> write_graph(const ir::Graph& graph, const ModelFiles& files,
                                       StoredConstants& constants) try {
  ir::Model model;
  model.ir_version = schema::releases().back().ir_version;
  model.opset_imports = imports_of(graph);
  model.graph = graph;
  model.graph->value_info.clear();
  bool is_ours = true;
  ir::walk_mutable(model, [&](std::vector<ir::Node>& nodes) {
    for (ir::Node& node : nodes) {
      is_ours = is_ours && node.custom == nullptr && node.opset == 0;
      tell_origin(node);
    }
  });
  if (!is_ours || objection_to(model)) return std::nullopt;
  const auto has_elements = [](const ir::TensorProto& tensor) {
    return tensor.element_type() != ElementType::string;
  };
  wire::change_tensors(model, has_elements, [&](ir::TensorProto& tensor) {
    tensor.doc_string.clear();
    tensor.metadata_props.clear();
    const Bytes given = elements_of(tensor);
    // What would be copied whenever the graph is read lies better among the constants.
    if (given.size() >= min_stored && ir::is_viewed(tensor.element_type(), given)) {
      if (const auto place = files.place_of(given.span()))
        return set_elsewhere(tensor, std::to_string(place->file), place->offset, given.size());
    }
    const Tensor elements = ir::to_tensor(tensor);
    Bytes bytes(elements.owner(), static_cast<const std::byte*>(elements.data()),
                elements.byte_size());
    if (bytes.size() < min_stored) return set_raw(tensor, std::move(bytes));
    const uint64_t offset = constants.add(bytes);
    set_elsewhere(tensor, std::string(in_constants), offset, bytes.size());
  });
  return wire::write_model(model);
} catch (const Error&) {
  return std::nullopt;
}

ir::Graph read_graph(const Bytes& message, const ModelFiles& files, const Bytes& constants) {
  ir::Model model = wire::read_model(message);
  const auto is_elsewhere = [](const ir::TensorProto& tensor) { return tensor.is_external(); };
  wire::change_tensors(model, is_elsewhere, [&](ir::TensorProto& tensor) {
    set_raw(tensor, elements_at(tensor, files, constants));
  });
  if (!model.graph) fail(ErrorCode::unreadable, "there is no graph");
  if (const auto objection = objection_to(model)) fail(ErrorCode::invalid_model, "{}", *objection);
  ir::walk_mutable(model, [](std::vector<ir::Node>& nodes) {
    for (ir::Node& node : nodes) take_origin(node);
  });
  return std::move(*model.graph);
}

bool StoredGraphs::add(const OptimizedGraph& graph, const ModelFiles& files) {
  constexpr uint64_t always = uint64_t{1} << 20;
  StoredConstants with_more = constants;
  const auto message = write_graph(graph.graph, files, with_more);
  if (!message || with_more.size() > files.size() + always) return false;
  constants = std::move(with_more);
  graphs.push_back({graph.choice, graph.is_of_clean_model, graph.warnings,
                    Bytes::copy_of(std::as_bytes(std::span(*message)))});
  return true;
}

void KeptGraphs::ask() {
  const std::lock_guard lock(mutex_);
  wanted_ = true;
}

bool KeptGraphs::are_wanted() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

void KeptGraphs::add(OptimizedGraph graph) {
  const std::lock_guard lock(mutex_);
  if (!wanted_) return;
  if (graphs_.size() >= max_graphs) graphs_.erase(graphs_.begin());
  graphs_.push_back(std::move(graph));
}

std::vector<OptimizedGraph> KeptGraphs::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(graphs_, {});
}

}  // namespace sardonyx
