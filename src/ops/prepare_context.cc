#include "ops/prepare_context.h"

#include <algorithm>

#include "base/bytes.h"
#include "ir/tensor.h"

namespace sardonyx::ops {
namespace {

const ValueFacts nothing_known;

const ValueFacts& at(std::span<const ValueFacts* const> values, int i) {
  const auto index = static_cast<size_t>(i);
  return i >= 0 && index < values.size() && values[index] != nullptr ? *values[index]
                                                                     : nothing_known;
}

}  // namespace

std::shared_ptr<const AnyPack> PackCache::find_or_add(
    const Tensor& constant, const Key& key,
    const std::function<std::shared_ptr<const AnyPack>()>& add) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && !found->second.owner.expired()) return found->second.pack;
  // Packs of tensors that are gone would never be asked for again.
  if (entries_.size() >= worth_sweeping_) {
    std::erase_if(entries_, [](const auto& item) { return item.second.owner.expired(); });
    worth_sweeping_ = std::max(2 * entries_.size(), fewest_swept);
  }
  MemoryCharge memory(key.bytes);
  bytes_ += key.bytes;
  return (entries_[key] = {add(), constant.owner(), std::move(memory)}).pack;
}

void PackCache::make_all(ThreadPool& pool) {
  std::vector<std::shared_ptr<const AnyPack>> packs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) packs.push_back(entry.pack);
  }
  for (const auto& pack : packs) pack->make(pool);
}

void PackCache::release(std::span<const std::byte> bytes) const {
  for (const auto file : files_) {
    if (bytes.data() >= file.data() && bytes.data() + bytes.size() <= file.data() + file.size())
      release_pages(bytes);
  }
}

void PackCache::release_pages_of_files() const {
  for (const auto file : files_) release_pages(file);
}

const ValueType& PrepareContext::in_type(int i) const { return at(inputs_, i).type; }
const ValueType& PrepareContext::out_type(int i) const { return at(outputs_, i).type; }
const ValueFacts& PrepareContext::known(int i) const { return at(inputs_, i); }

std::optional<int64_t> PrepareContext::in_rank(int i) const {
  const auto& shape = in_type(i).shape;
  return shape ? std::optional(static_cast<int64_t>(shape->size())) : std::nullopt;
}

const Tensor* PrepareContext::constant(int i) const {
  const ValueFacts& value = at(inputs_, i);
  return value.constant.get();
}

Tensor PrepareContext::tensor_attribute(std::string_view name) const {
  const ir::TensorProto* proto = attr_tensor(name);
  if (proto == nullptr) fail("attribute '{}' is required and absent; add it to the node", name);
  return ir::to_tensor(*proto);
}

std::unique_ptr<PreparedGraph> PrepareContext::prepare_graph(
    const ir::Graph& graph, std::span<const ValueFacts> inputs) const {
  if (!services_.prepare_graph) fail("a subgraph cannot be prepared here");
  return services_.prepare_graph(graph, inputs);
}

}  // namespace sardonyx::ops
