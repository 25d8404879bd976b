// Loading models and running them.
//
//   sardonyx::Session session("model.onnx");
//   auto outputs = session.run({{"image", image}});
//
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/error.h"
#include "sardonyx/model.h"
#include "sardonyx/value.h"

namespace sardonyx {
class ThreadPool;
}

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class Profile;

// An input or output of a model.
struct ValueDescription {
  std::string name;
  Value::Kind kind = Value::Kind::tensor;
  ElementType element_type = ElementType::undefined;  // of tensors
  // Dimensions of a tensor: numbers, names ("batch"), or expressions ("past + 1"); of an input that
  // leaves dimension 2 open, the name of that place ("image.2"), of an output neither. Absent where
  // the model leaves the rank open.
  struct Dimension {
    std::optional<int64_t> size;
    std::string name;
  };
  std::optional<std::vector<Dimension>> shape;
  std::string type;       // in full, as text: "float[batch,3,224,224]"
  bool optional = false;  // an input with an initializer as its default
};

// Worker threads that several sessions may share.
class Threads {
 public:
  // Counts the calling thread; 0: as many as the process may use. Throws Error (bad_input) for
  // numbers that are negative or beyond 4096.
  explicit Threads(int count = 0);
  // How many there are: fewer than were asked for where the system would not start more.
  int count() const;

 private:
  friend class Session;
  std::shared_ptr<ThreadPool> pool_;
};

struct SessionOptions {
  int threads = 0;                        // counts the caller; as for Threads
  std::optional<Threads> shared_threads;  // instead of threads of the session's own
  bool reference = false;                 // node after node without plan and fusion: the reference
  bool fuse = true;               // combine operators into one step where that is exact enough
  bool exact = false;             // no algorithm that trades accuracy for speed
  bool assume_inference = false;  // old BatchNormalization/Dropout without is_test: inference
  // Bring all weights into the form of their kernels before the constructor returns (or, where
  // sizes decide of what rank values are, when a plan is made), so that the first run takes as long
  // as any other. Without it a session is there at once: its first run packs what it reads, when it
  // reaches it, and weights that no run reads are never packed.
  bool prepack = false;
  // Of random operators without a seed of their own, which go on from run to run of a session.
  uint64_t seed = 0;
  // All values the graph makes become outputs, after the model's own, in order of their making.
  bool all_outputs = false;
  // Most bytes that making the session may take, and that it and its model may hold; what runs
  // bring with them is RunOptions' business. It also bounds the plans that runs with other sizes or
  // other inputs make. What other sessions of the model have made already, and this one shares,
  // does not count. 0: any number.
  int64_t memory_limit = 0;
};

struct RunOptions {
  const std::atomic<bool>* cancel = nullptr;  // set it from any thread to stop the run
  std::optional<std::chrono::steady_clock::time_point> deadline;  // then Error (cancelled)
  // Most bytes the run may have in use at a time: the working memory of the graph and of the bodies
  // being run (also what earlier runs left for it), the outputs it makes, and values that loops
  // hold between iterations. The caller's tensors and the weights do not count.
  int64_t memory_limit = INT64_MAX;
  // Adds this run's times to it (sardonyx/profile.h); at most one run at a time may have it.
  Profile* profile = nullptr;
};

using NamedValue = std::pair<std::string, Value>;

struct StepDescription {
  std::string node;    // "Conv 'stem/conv'"
  std::string origin;  // where it came from, if it is not in the file as such
  std::vector<std::string>
      sources;         // the model's nodes whose work it does, if it is not one itself
  std::string kernel;  // "conv.pointwise_nhwc"
  std::vector<std::string> refused;  // "conv.winograd_nhwc: strides"
  struct Body;
  std::vector<Body> bodies;  // of If, Loop, Scan: plans of their own
};

struct StepDescription::Body {
  std::string name;        // "then_branch"
  bool is_planned = true;  // false: how its nodes are computed is decided when it runs
  std::vector<StepDescription> steps;
};

// The plan of some runs.
struct PlanDescription {
  // What it takes for granted of the inputs' sizes: "If 'squeeze' takes its then_branch". Empty:
  // it serves all sizes.
  std::vector<std::string> guards;
  std::vector<StepDescription> steps;
};

// A model prepared for running. Preparing decides all that does not depend on the inputs; sizes
// are bound when a run brings new ones. Of a model whose sizes decide of what rank values are, the
// first run, and the first with sizes that decide otherwise, makes a plan before it begins:
// deadlines and cancelling wait for that. Any number of threads may run one session at the same
// time. Move-only. Constructors throw Error: (unreadable), (invalid_model), (unsupported).
class Session {
 public:
  explicit Session(const std::string& path, const SessionOptions& options = {});
  explicit Session(const Model& model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const std::vector<ValueDescription>& inputs() const;  // those with a default stand last
  const std::vector<ValueDescription>& outputs() const;

  // Runs with inputs by name and returns the outputs in the model's order. Input tensors are used
  // where they lie, for the time of the call; an output that is an input handed on is copied where
  // the input is a view of memory without an owner, and shares its memory otherwise. Throws Error:
  // (bad_input) for wrong names, shapes or types, for inputs that are missing or given twice,
  // (run_failed), (cancelled),
  // (out_of_memory).
  std::vector<Value> run(const std::vector<NamedValue>& inputs,
                         const RunOptions& options = {}) const;

  // Runs with inputs in the order of inputs() (kind none: not given) into outputs. An output that
  // is a tensor on entry, of the right type and shape, is filled where it lies, and must not be an
  // input of the same run; others are made new. Throws as above; (bad_input) for wrong counts.
  void run(std::span<const Value> inputs, std::span<Value> outputs,
           const RunOptions& options = {}) const;

  // What running consists of, whatever the sizes.
  std::vector<StepDescription> steps() const;
  // What a run with these inputs consists of: where sizes decide of what rank values are, it is
  // planned for what they decide. Makes that plan if no run has. Throws Error as a run does.
  PlanDescription plan_for(const std::vector<NamedValue>& inputs) const;
  // Bytes of weights packed by runs so far or to be packed, and of working memory that ended runs
  // have left for later ones (one block for each run that there was at the same time): of all
  // sessions of its model, and of those that share its plan.
  int64_t packed_bytes() const;
  int64_t arena_bytes() const;

  struct [[gnu::visibility("hidden")]] Implementation;

 private:
  std::unique_ptr<Implementation> implementation_;
};

// "0.1.0"
std::string_view version();

}  // namespace sardonyx

#pragma GCC visibility pop
