#include "ops/pack_cache.h"

#include <algorithm>
#include <tuple>

#include "base/bytes.h"
#include "base/os.h"

namespace sardonyx::ops {

void PackCache::add_source(std::shared_ptr<const PackSource> source) {
  const std::lock_guard lock(mutex_);
  by_content_ = by_content_ || source->is_by_content();
  identifies_ = true;
  sources_.push_back(std::move(source));
}

void PackCache::remove_source(const PackSource& source) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sources_, [&](const auto& one) { return one.get() == &source; });
}

void PackCache::identify() {
  const std::lock_guard lock(mutex_);
  identifies_ = true;
}

const PackCache::File* PackCache::file_of(std::span<const std::byte> bytes) const {
  for (const File& file : files_) {
    const std::span<const std::byte> all = file.bytes.span();
    if (bytes.data() >= all.data() && bytes.data() + bytes.size() <= all.data() + all.size())
      return &file;
  }
  return nullptr;
}

ConstantId PackCache::id_of(std::span<const std::byte> constant, bool by_content,
                            const Sources& sources, const PackSource*& giver) const {
  ConstantId id;
  id.bytes = constant.size();
  if (const File* file = file_of(constant)) {
    const auto at = static_cast<uint64_t>(constant.data() - file->bytes.data());
    id.place = {file->place.file, file->place.offset + at};
  }
  for (const auto& source : sources) {
    if (id.place) break;
    id.place = source->place_of(constant);
    if (id.place) giver = source.get();
  }
  if (!id.place || by_content) id.content = content_hash(constant);
  return id;
}

std::shared_ptr<const AnyPack> PackCache::find_or_add(const Tensor& constant, const Key& key,
                                                      const FromSource& from_source,
                                                      const Anew& anew) {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(constant.data()),
                                         constant.byte_size());
  Sources sources;
  bool identifies = false, by_content = false, is_new = false;
  const auto existing = [&]() -> Entry* {
    const auto found = entries_.find(key);
    return found != entries_.end() && !found->second.owner.expired() ? &found->second : nullptr;
  };
  {
    const std::lock_guard lock(mutex_);
    Entry* entry = existing();
    if (entry != nullptr && (entry->id || !identifies_)) return entry->pack;
    identifies = identifies_, by_content = by_content_;
    is_new = entry == nullptr;
    if (identifies_) sources = sources_;
  }
  std::optional<ConstantId> id;
  const PackSource* giver = nullptr;  // of the constant: its place means nothing to other sources
  if (identifies) id = id_of(bytes, by_content, sources, giver);
  std::optional<std::vector<Tensor>> found;
  for (const auto& source : sources) {
    const bool knows = giver == nullptr || giver == source.get() || source->is_by_content();
    if (is_new && !found && knows) found = source->find(*id, key.format, key.parts);
  }
  const std::lock_guard lock(mutex_);
  if (Entry* entry = existing()) {
    if (!entry->id) entry->id = id, entry->constant = bytes;
    return entry->pack;
  }
  if (entries_.size() >= worth_sweeping_) {
    std::erase_if(entries_, [&](const auto& item) {
      const auto& [key, entry] = item;
      if (entry.owner.expired()) return true;  // it would never be asked for again
      if (!entry.is_unused()) return false;
      if (!entry.is_from_source) bytes_ -= bytes_of(key.parts);
      return true;
    });
    worth_sweeping_ = std::max(2 * entries_.size(), fewest_swept);
  }
  const int64_t own = found ? 0 : bytes_of(key.parts);
  MemoryCharge memory(own);
  bytes_ += own;
  const bool is_from_source = found.has_value();
  Entry& entry = entries_[key];
  entry = {found ? from_source(std::move(*found)) : anew(),
           constant.owner(),
           std::move(memory),
           id,
           bytes,
           is_from_source};
  return entry.pack;
}

void PackCache::make_all(ThreadPool& pool) {
  std::vector<std::shared_ptr<const AnyPack>> packs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) packs.push_back(entry.pack);
  }
  for (const auto& pack : packs) pack->make(pool);
}

std::vector<PackCache::Identified> PackCache::identified() const {
  std::vector<Identified> list;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      auto owner = entry.owner.lock();
      if (!entry.id || (!owner && !entry.id->content)) continue;
      list.push_back({*entry.id, std::move(owner), entry.constant, key.format, key.parts,
                      entry.pack, entry.is_from_source});
    }
  }
  const auto order = [](const Identified& one) {
    return std::tuple(!one.id.place, one.id.place.value_or(ConstantPlace()),
                      one.id.place ? ContentHash() : one.id.content.value_or(ContentHash()),
                      one.id.bytes);
  };
  std::ranges::stable_sort(list, [&](const Identified& a, const Identified& b) {
    const auto first = order(a), second = order(b);
    return first != second ? first < second : a.format < b.format;
  });
  return list;
}

void PackCache::release(std::span<const std::byte> bytes) const {
  if (file_of(bytes) != nullptr) os::release_pages(bytes);
}

void PackCache::release_pages_of_files() const {
  for (const File& file : files_) os::release_pages(file.bytes.span());
}

}  // namespace sardonyx::ops
