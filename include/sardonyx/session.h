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
#include "sardonyx/value.h"

namespace sardonyx {
class ThreadPool;
}

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class CustomOperators;
class Profile;

// What was found that does not keep a model from being used. Texts are for people; `rule` is that
// of the checker (docs/checker.md), or empty.
struct Warning {
  std::string rule;     // "G-03"
  std::string place;    // "graph 'main', node 3 Softmax 'probs'"
  std::string message;  // what was found
  std::string advice;   // what was made of it, or what to do
  // "graph 'main', node 3 Softmax 'probs': …; … [G-03]"
  std::string to_string() const;
};

// What `memory_limit` of LoadOptions, SessionOptions and InferOptions holds down is what files can
// make grow: the messages that are read and copies of them, bytes of files that are read instead of
// mapped, nodes that upgrades, functions and gradients add, what inference knows of values, folded
// constants, the steps of plans, the packed forms of weights (whether a run has packed them yet or
// not) and lists of results. It is counted before it is allocated, or a few kilobytes later, by
// sizes of the structs; what an allocator adds, mapped files, threads, and what does not depend on
// the model (about 10 MB) do not count. Where the limit is reached: Error (out_of_memory), with
// the node or the field of the file.

struct LoadOptions {
  // Refuse a model that breaks a rule of the standard in a way that leaves no doubt of what it
  // means (nodes out of order, an operator set that is used and not imported: docs/lenient.md).
  // Otherwise it is mended in memory, and `warn` is told of each rule.
  bool strict = false;
  // Called once for each warning, from within the call that finds it: for what was mended, and of
  // values that inference contradicts the declaration of, when the first session of the model is
  // made; of outputs that are not what the model declares, and of scalars that are given with
  // dimensions around them, from a run, once for each output and input of a session. It may be
  // called from several threads at a time where sessions of the model run on several. Warnings
  // without it are dropped.
  std::function<void(const Warning&)> warn;
  // A folder that links of external data may lead into; links are refused otherwise.
  std::string trusted_folder;
  // Read the file instead of mapping it: for files that somebody may truncate meanwhile.
  bool read_into_memory = false;
  // Operator set documents (files). What they define is there for models that import the domain
  // and version of the document.
  std::vector<std::string> operator_sets;
  // Operators beside those of Sardonyx that the model may call (sardonyx/custom.h), and libraries
  // (files) with more of them: code of a library runs from here on, so only ever name what you
  // trust. A model never names one itself.
  std::shared_ptr<const CustomOperators> custom_operators;
  std::vector<std::string> libraries;
  // Most bytes that reading, judging and mending may take, and the model may hold; 0: any number.
  int64_t memory_limit = 0;
};

// A model file, read and ready to make sessions of. Cheap to copy; copies and the sessions made
// from them share the file's bytes and the packed forms of its weights; sessions with the same
// options share all that preparing makes, while one of them lives, so that the second one is there
// in microseconds. May be used from any thread.
class Model {
 public:
  // Maps and reads a file, external data beside it. Throws Error (unreadable), (invalid_model).
  explicit Model(const std::string& path, const LoadOptions& options = {});
  // Reads from memory, which is copied unless `owner` keeps it alive. `folder` is where external
  // data is looked for; empty: nowhere.
  Model(const void* data, size_t size, std::string folder = {},
        std::shared_ptr<const void> owner = nullptr, const LoadOptions& options = {});
  // Parses ONNX's textual syntax. Throws Error (invalid_model) with line and column.
  static Model from_text(std::string_view text, const LoadOptions& options = {});

  // For the library's own programs; not part of the stable interface.
  struct [[gnu::visibility("hidden")]] Implementation;
  const Implementation& implementation() const { return *implementation_; }
  std::shared_ptr<const Implementation> share() const { return implementation_; }

 private:
  Model() = default;
  std::shared_ptr<const Implementation> implementation_;
};

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
