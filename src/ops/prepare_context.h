// The contract of preparation: from a node with inferred types to a step.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include "base/cpu.h"
#include "base/memory_account.h"
#include "base/thread_pool.h"
#include "ops/infer_context.h"
#include "ops/node_view.h"
#include "ops/step.h"

namespace sardonyx::ops {

// A constant in some form of a kernel's, made when a run first asks for it.
class AnyPack {
 public:
  virtual ~AnyPack() = default;
  // Makes it now if it is not made yet, with that pool's threads.
  virtual void make(ThreadPool& pool) const = 0;
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

// Packed forms of constants, shared by all plans and sessions of one model. Outlives the packs.
// Thread-safe.
class PackCache {
 public:
  // Bytes of a file, mapped for as long as this cache lives: constants in them are views that may
  // give their pages back once they are packed. Said before the first plan is made.
  void add_file(std::span<const std::byte> mapped) { files_.push_back(mapped); }

  // What `make` builds from this tensor in this format, which names everything else the pack
  // depends on, and how many bytes that will be; the same pack while the tensor's memory, which
  // identifies it, lives. Requests that differ in type or bytes never share a pack, even if their
  // formats are the same text: a kernel cannot read past the end of one that another asked for.
  // `make` is kept until it has run, and owns what it reads. The tensor's pages are given back
  // after it where they are a file's.
  template <class Packed>
  std::shared_ptr<const Pack<Packed>> get(const Tensor& constant, const std::string& format,
                                          int64_t bytes, std::function<Packed(ThreadPool&)> make) {
    const auto pack = find_or_add(constant, {constant.data(), bytes, typeid(Packed), format}, [&] {
      return std::make_shared<const Pack<Packed>>(
          [this, constant, make = std::move(make)](ThreadPool& pool) {
            Packed made = make(pool);
            release(constant);
            return made;
          });
    });
    return std::static_pointer_cast<const Pack<Packed>>(pack);
  }

  // Makes all that no run has asked for yet.
  void make_all(ThreadPool& pool);

  // Lets go of the memory that holds a file's pages with these bytes; they come back when read.
  // Nothing happens to bytes that are no file's.
  void release(std::span<const std::byte> bytes) const;
  void release(const Tensor& constant) const {
    release({static_cast<const std::byte*>(constant.data()), constant.byte_size()});
  }
  // The same for all files.
  void release_pages_of_files() const;

  // Of all packs that were ever asked for, made or not.
  int64_t bytes() const { return bytes_; }

 private:
  struct Key {
    const void* data;
    int64_t bytes;
    std::type_index type;
    std::string format;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::shared_ptr<const AnyPack> pack;
    std::weak_ptr<const void> owner;
    MemoryCharge memory;  // whether it is made yet or not
  };
  std::shared_ptr<const AnyPack> find_or_add(
      const Tensor& constant, const Key& key,
      const std::function<std::shared_ptr<const AnyPack>()>& add);
  std::atomic<int64_t> bytes_{0};
  std::vector<std::span<const std::byte>> files_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  static constexpr size_t fewest_swept = 32;
  size_t worth_sweeping_ = fewest_swept;  // entries from which on it is looked for dead ones
};

// A subgraph ready to run inside a control-flow step. Outer values it captures reach it as extra
// inputs of that step, after the node's own (the planner appends them); an implementation knows
// their positions.
class PreparedGraph {
 public:
  virtual ~PreparedGraph() = default;
  virtual int input_count() const = 0;
  virtual int output_count() const = 0;
  // Runs the graph once. `outer` is the step's own context, whose inputs hold the captured values.
  // Inputs may borrow memory for the time of the call; outputs own theirs. Thread-safe.
  virtual std::vector<Value> run(RunContext& outer, std::span<const Value> inputs) const = 0;
  // What is known of the outputs of a run with such inputs, told without one. Throws Error where
  // such a run must fail. Thread-safe.
  virtual std::vector<ValueFacts> infer_outputs(RunContext& outer,
                                                std::span<const ValueFacts> inputs) const = 0;
};

// One reason a better kernel was not taken, for explain.
struct Refusal {
  std::string kernel;
  std::string reason;
};

struct PrepareServices {
  PackCache* packs = nullptr;  // never null
  bool exact = false;          // no algorithm that trades accuracy for speed (Winograd)
  // Prepares a graph attribute of the node; null where control flow cannot occur.
  std::function<std::unique_ptr<PreparedGraph>(const ir::Graph&,
                                               std::span<const ValueFacts> inputs)>
      prepare_graph;
};

class PrepareContext : public NodeView {
 public:
  PrepareContext(const ir::Node& node, const schema::Signature* signature,
                 std::span<const ValueFacts* const> inputs,
                 std::span<const ValueFacts* const> outputs, const PrepareServices& services)
      : NodeView(node, signature), inputs_(inputs), outputs_(outputs), services_(services) {}

  const ValueType& in_type(int i) const;
  const ValueType& out_type(int i) const;
  ElementType in_element(int i) const { return in_type(i).element; }
  ElementType out_element(int i) const { return out_type(i).element; }
  std::optional<int64_t> in_rank(int i) const;
  // The input's elements where they never change; null otherwise. Weights come through here.
  const Tensor* constant(int i) const;
  const ValueFacts& known(int i) const;

  InstructionSet instruction_set() const { return sardonyx::instruction_set(); }
  const PrepareServices& services() const { return services_; }

  // The decoded form of a tensor attribute; fails where it is absent.
  Tensor tensor_attribute(std::string_view name) const;
  std::unique_ptr<PreparedGraph> prepare_graph(const ir::Graph& graph,
                                               std::span<const ValueFacts> inputs) const;

  // Constant input i in a kernel's form of so many bytes. `make` runs once for all plans that share
  // the model, when a run first asks: it holds what it reads.
  template <class Packed>
  std::shared_ptr<const Pack<Packed>> packed(int i, const std::string& format, int64_t bytes,
                                             std::function<Packed(ThreadPool&)> make) const {
    return services_.packs->get<Packed>(*constant(i), format, bytes, std::move(make));
  }

  void refuse(std::string kernel, std::string reason) {
    refusals_.push_back({std::move(kernel), std::move(reason)});
  }
  std::vector<Refusal> take_refusals() { return std::move(refusals_); }

 private:
  std::span<const ValueFacts* const> inputs_;
  std::span<const ValueFacts* const> outputs_;
  const PrepareServices& services_;
  std::vector<Refusal> refusals_;
};

}  // namespace sardonyx::ops
