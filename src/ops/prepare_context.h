// The contract of preparation: from a node with inferred types to a step.
#pragma once

#include <any>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "ops/infer_context.h"
#include "ops/node_view.h"
#include "ops/step.h"

namespace sardonyx::ops {

// Packed forms of constants, shared by all plans and sessions of one model. Thread-safe.
class PackCache {
 public:
  // Bytes of a file, mapped for as long as this cache lives: constants in them are views that may
  // give their pages back once they are packed. Said before the first plan is made.
  void add_file(std::span<const std::byte> mapped) { files_.push_back(mapped); }

  // What `make` built for this tensor in this format, which names everything else the pack depends
  // on; built at most once while the tensor's memory, which identifies it, lives. Different packs
  // may be made at the same time. Gives the tensor's pages back where they are a file's.
  template <class Packed>
  std::shared_ptr<const Packed> get(const Tensor& constant, const std::string& format,
                                    const std::function<std::shared_ptr<const Packed>()>& make) {
    auto made = get_any(constant, format, [&] { return std::any(make()); });
    return std::any_cast<std::shared_ptr<const Packed>>(made);
  }

  // Lets go of the memory that holds a file's pages with these bytes; they come back when read.
  // Nothing happens to bytes that are no file's.
  void give_back(std::span<const std::byte> bytes) const;
  void give_back(const Tensor& constant) const {
    give_back({static_cast<const std::byte*>(constant.data()), constant.byte_size()});
  }
  // The same for all files.
  void give_back_files() const;

  // Packers say how large what they built is, for reports.
  void count(int64_t bytes) { bytes_ += bytes; }
  int64_t bytes() const { return bytes_; }

 private:
  struct Key {
    const void* data;
    std::string format;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::mutex mutex;  // held while packing
    std::any packed;
    std::weak_ptr<const void> owner;
  };
  std::any get_any(const Tensor& constant, const std::string& format,
                   const std::function<std::any()>& make);
  std::atomic<int64_t> bytes_{0};
  std::vector<std::span<const std::byte>> files_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_;
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
};

// One reason a better kernel was not taken, for explain.
struct Refusal {
  std::string kernel;
  std::string reason;
};

struct PrepareServices {
  ThreadPool* pool = nullptr;  // for packing; may be null
  PackCache* packs = nullptr;  // never null
  bool exact = false;          // no algorithm that trades accuracy for speed (Winograd)
  // Prepares a graph attribute of the node; null where control flow cannot occur.
  std::function<std::unique_ptr<PreparedGraph>(const ir::Graph&, std::span<const Known> inputs)>
      prepare_graph;
};

class PrepareContext : public NodeView {
 public:
  PrepareContext(const ir::Node& node, const schema::Signature* signature,
                 std::span<const Known* const> inputs, std::span<const Known* const> outputs,
                 const PrepareServices& services)
      : NodeView(node, signature), inputs_(inputs), outputs_(outputs), services_(services) {}

  const ValueType& in_type(int i) const;
  const ValueType& out_type(int i) const;
  ElementType in_element(int i) const { return in_type(i).element; }
  ElementType out_element(int i) const { return out_type(i).element; }
  std::optional<int64_t> in_rank(int i) const;
  // The input's elements where they never change; null otherwise. Weights come through here.
  const Tensor* constant(int i) const;
  const Known& known(int i) const;

  InstructionSet instruction_set() const { return sardonyx::instruction_set(); }
  const PrepareServices& services() const { return services_; }

  // The decoded form of a tensor attribute; fails where it is absent.
  Tensor tensor_attribute(std::string_view name) const;
  std::unique_ptr<PreparedGraph> prepare_graph(const ir::Graph& graph,
                                               std::span<const Known> inputs) const;

  // Packs constant input i: `make` runs once for all plans that share the model.
  template <class Packed>
  std::shared_ptr<const Packed> packed(
      int i, const std::string& format,
      const std::function<std::shared_ptr<const Packed>()>& make) const {
    return services_.packs->get<Packed>(*constant(i), format, make);
  }

  void refuse(std::string kernel, std::string reason) {
    refusals_.push_back({std::move(kernel), std::move(reason)});
  }
  std::vector<Refusal> take_refusals() { return std::move(refusals_); }

 private:
  std::span<const Known* const> inputs_;
  std::span<const Known* const> outputs_;
  const PrepareServices& services_;
  std::vector<Refusal> refusals_;
};

}  // namespace sardonyx::ops
