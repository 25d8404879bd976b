// Constants in the forms of kernels: made once for a model, or taken from a file of packed weights.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/content_hash.h"
#include "base/float_control.h"
#include "base/memory_account.h"
#include "base/thread_pool.h"
#include "ops/pack_format.h"
#include "sardonyx/value.h"

namespace sardonyx::ops {

// A packed form as its arrays and back: a type that is more than one Tensor has two members for it.
template <class Packed>
std::vector<Tensor> parts_of(const Packed& packed) {
  if constexpr (std::is_same_v<Packed, Tensor>) {
    return {packed};
  } else {
    return packed.parts();
  }
}
template <class Packed>
Packed from_parts(std::vector<Tensor> parts) {
  if constexpr (std::is_same_v<Packed, Tensor>) {
    return std::move(parts.at(0));
  } else {
    return Packed::of_parts(std::move(parts));
  }
}

// A constant in some form of a kernel's, made when a run first asks for it.
class AnyPack {
 public:
  virtual ~AnyPack() = default;
  // Makes it now if it is not made yet, with that pool's threads.
  virtual void make(ThreadPool& pool) const = 0;
  // The same, and gives its arrays.
  virtual std::vector<Tensor> parts(ThreadPool& pool) const = 0;
  virtual bool is_made() const = 0;
};

// The same with its type. Thread-safe: one caller makes it, others wait; after a failure the next
// caller tries again.
template <class Packed>
class Pack final : public AnyPack {
 public:
  using Make = std::function<Packed(ThreadPool&)>;
  explicit Pack(Make make) : make_(std::move(make)) {}

  const Packed& get(ThreadPool& pool) const {
    const Packed* made = made_.load(std::memory_order_acquire);
    return made != nullptr ? *made : make_now(pool);
  }
  void make(ThreadPool& pool) const override { get(pool); }
  std::vector<Tensor> parts(ThreadPool& pool) const override { return parts_of(get(pool)); }
  bool is_made() const override { return made_.load(std::memory_order_acquire) != nullptr; }

 private:
  const Packed& make_now(ThreadPool& pool) const {
    const std::lock_guard lock(mutex_);
    if (!packed_) {
      packed_.emplace(make_(pool));
      make_ = nullptr;  // and with it the constant, where nobody else needs that
      made_.store(&*packed_, std::memory_order_release);
    }
    return *packed_;
  }

  mutable std::mutex mutex_;  // held while packing
  mutable Make make_;
  mutable std::optional<Packed> packed_;
  mutable std::atomic<const Packed*> made_{nullptr};
};

// Where in the files of a model a constant lies.
struct ConstantPlace {
  uint64_t file = 0;  // 0: the model's own; others: whatever tells them apart
  uint64_t offset = 0;
  auto operator<=>(const ConstantPlace&) const = default;
};

// Which constant of a model it is, whatever process has read the model.
struct ConstantId {
  std::optional<ConstantPlace> place;  // of a view of the model's files
  std::optional<ContentHash> content;  // of all others, and of those where it was asked for
  uint64_t bytes = 0;
};

// Packed forms that exist already. Thread-safe.
class PackSource {
 public:
  virtual ~PackSource() = default;
  // Whether it knows constants by their content alone.
  virtual bool is_by_content() const = 0;
  // Where a constant lies that the source itself has given out; nothing for others.
  virtual std::optional<ConstantPlace> place_of(std::span<const std::byte> constant) const = 0;
  // The arrays of that constant's form: views that stay valid while somebody holds them, of these
  // types and counts and aligned to 64 bytes. Nothing where it has none.
  virtual std::optional<std::vector<Tensor>> find(const ConstantId& id, const PackFormat& format,
                                                  std::span<const PackPart> parts) const = 0;
};

// Packed forms of constants, shared by all plans and sessions of one model. Outlives the packs.
// Thread-safe.
class PackCache {
 public:
  struct File {
    Bytes bytes;
    ConstantPlace place;  // of the first of these bytes
  };
  // Bytes of a mapped file: constants in them are views that may give their pages back once they
  // are packed. Said before the first plan is made.
  void add_file(Bytes mapped, ConstantPlace place = {}) {
    files_.push_back({std::move(mapped), place});
  }
  const std::vector<File>& files() const { return files_; }
  // The files of another cache.
  void add_files_of(const PackCache& other) { files_ = other.files_; }

  // Forms that are asked for from now on are looked for there before they are made.
  void add_source(std::shared_ptr<const PackSource> source);
  // What was found there stays.
  void remove_source(const PackSource& source);
  // Forms that are asked for from now on are told by identified().
  void identify();

  // What `make` builds from this tensor in this format, which names everything else the pack
  // depends on, and what arrays that will be; the same pack while the tensor's memory, which
  // identifies it, lives. Requests that differ in type or arrays never share a pack, even if their
  // formats are equal: a kernel cannot read past the end of one that another asked for.
  // `make` is kept until it has run, and owns what it reads. The tensor's pages are given back
  // after it where they are a file's.
  template <class Packed>
  std::shared_ptr<const Pack<Packed>> get(const Tensor& constant, const PackFormat& format,
                                          std::vector<PackPart> parts,
                                          std::function<Packed(ThreadPool&)> make) {
    const auto from_source = [](std::vector<Tensor> found) -> std::shared_ptr<const AnyPack> {
      return std::make_shared<const Pack<Packed>>(
          [found = std::move(found)](ThreadPool&) { return from_parts<Packed>(found); });
    };
    const auto anew = [&]() -> std::shared_ptr<const AnyPack> {
      return std::make_shared<const Pack<Packed>>(
          [this, constant, make = std::move(make)](ThreadPool& pool) {
            const FloatControlScope standard(FloatControl::standard());  // others share it
            Packed made = make(pool);
            release(constant);
            return made;
          });
    };
    const auto pack = find_or_add(
        constant, {constant.data(), &type_of<Packed>, std::move(parts), format}, from_source, anew);
    return std::static_pointer_cast<const Pack<Packed>>(pack);
  }

  // Makes all that no run has asked for yet.
  void make_all(ThreadPool& pool);

  // A form that was asked for since identify().
  struct Identified {
    ConstantId id;
    std::shared_ptr<const void> owner;  // of the constant's memory; null where that is gone
    std::span<const std::byte> constant;
    PackFormat format;
    std::vector<PackPart> parts;
    std::shared_ptr<const AnyPack> pack;
    bool is_from_source = false;
  };
  // In the order of the files and of the hashes: the same for every process that asks the same.
  // Leaves out those whose constant is gone before anybody asked for its content.
  std::vector<Identified> identified() const;

  // Lets go of the memory that holds a file's pages with these bytes; they come back when read.
  // Nothing happens to bytes that are no file's.
  void release(std::span<const std::byte> bytes) const;
  void release(const Tensor& constant) const {
    release({static_cast<const std::byte*>(constant.data()), constant.byte_size()});
  }
  // The same for all files.
  void release_pages_of_files() const;

  // Of all packs that were ever asked for, made or not, but for those that were let go of before
  // anybody made them; those of a source are in nobody's memory but the system's.
  int64_t bytes() const { return bytes_; }

 private:
  template <class Packed>
  static inline char type_of = 0;  // whose place stands for the type
  struct Key {
    const void* data;
    const void* type;
    std::vector<PackPart> parts;
    PackFormat format;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::shared_ptr<const AnyPack> pack;
    std::weak_ptr<const void> owner;
    MemoryCharge memory;  // whether it is made yet or not
    std::optional<ConstantId> id;
    std::span<const std::byte> constant;
    bool is_from_source = false;

    // Nobody loses anything if it is asked for again; it holds its constant, which may be gone but
    // for that.
    bool is_unused() const { return pack.use_count() == 1 && !pack->is_made(); }
  };
  using FromSource = std::function<std::shared_ptr<const AnyPack>(std::vector<Tensor>)>;
  using Anew = std::function<std::shared_ptr<const AnyPack>()>;
  std::shared_ptr<const AnyPack> find_or_add(const Tensor& constant, const Key& key,
                                             const FromSource& from_source, const Anew& anew);
  const File* file_of(std::span<const std::byte> bytes) const;
  using Sources = std::vector<std::shared_ptr<const PackSource>>;
  // `giver`: the source that has given the constant out, where one has.
  ConstantId id_of(std::span<const std::byte> constant, bool by_content, const Sources& sources,
                   const PackSource*& giver) const;

  std::atomic<int64_t> bytes_{0};
  std::vector<File> files_;
  mutable std::mutex mutex_;  // of what follows
  Sources sources_;
  bool identifies_ = false, by_content_ = false;
  std::map<Key, Entry> entries_;
  static constexpr size_t fewest_swept = 32;
  size_t worth_sweeping_ = fewest_swept;  // entries from which on it is looked for dead ones
};

}  // namespace sardonyx::ops
