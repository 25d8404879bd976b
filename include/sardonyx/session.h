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
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/error.h"
#include "sardonyx/log.h"
#include "sardonyx/model.h"
#include "sardonyx/value.h"

namespace sardonyx {
class ThreadPool;
}

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class Allocator;
class Binding;
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
  Threads(const Threads&) = default;  // moving is copying: there are always threads behind one
  Threads& operator=(const Threads&) = default;
  // How many there are: fewer than were asked for where the system would not start more.
  int count() const;

 private:
  friend class Session;
  std::shared_ptr<ThreadPool> pool_;
};

using NamedValue = std::pair<std::string, Value>;

struct SessionOptions {
  int threads = 0;                                       // counts the caller; as for Threads
  std::optional<Threads> shared_threads = std::nullopt;  // instead of threads of the session's own
  bool reference = false;         // node after node without plan and fusion: the reference
  bool fuse = true;               // combine operators into one step where that is exact enough
  bool exact = false;             // no algorithm that trades accuracy for speed
  bool assume_inference = false;  // old BatchNormalization/Dropout without is_test: inference
  // Bring all weights into the form of their kernels before the constructor returns (or, where
  // sizes decide what rank values have, when a plan is made), so that the first run takes as long
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
  // Sizes that the inputs leave open and that are to be numbers, by the model's name for them
  // ("batch") or by their place ("image.2": dimension 2 of input 'image'). The session is what it
  // would be if the model declared these numbers: runs with other sizes are refused. Error
  // (bad_input) for a name that the inputs do not have, and for negative sizes.
  std::map<std::string, int64_t, std::less<>> dimensions = {};
  // Initializers that have these values instead of the model's. Type and shape must be those of the
  // initializer: Error (bad_input), as for a name that no initializer has. A tensor without an
  // owner is copied; others are used where they lie, and must not change. Such a session shares no
  // plan with others. Of a model that was read without LoadOptions::load_external_data, the data of
  // these need not be where it says.
  std::vector<NamedValue> initializers = {};
  // Values of the graph that become outputs besides the model's own, behind them and in this order.
  // Error (bad_input) for a name that the graph does not make. Operators are combined as without
  // it, but for what these names separate.
  std::vector<std::string> extra_outputs = {};
  // Processors that the session's own threads may run on, by the system's numbers: its workers and
  // those of run_async(); threads that call run() stay where they are. `threads` = 0 then means as
  // many as there are of these. Error (bad_input) for a number that the process may not use, and
  // together with `shared_threads`. Empty: all that the process may use.
  std::vector<int> processors = {};
  // A file of packed weights (sardonyx/packing.h) that the session takes its weights from, and its
  // optimised graph where the file has that of these options and the model's files as they are.
  // Error: (unreadable) where it is no sound one, (bad_input) where it is for another model,
  // another version of the library or another processor; what it lacks is packed as without it. If
  // the model's files are not those it was made of, though the model is the same, weights are
  // compared by a hash of their content, which takes a pass over them. Empty: none.
  std::string packed = {};
  // A folder for files of packed weights. The session takes weights and graph from that of its
  // model; where that is missing, stale or unsound, or lacks some, the constructor packs all
  // weights (or what makes a plan does, see `prepack`) and writes it anew. What can't be written
  // isn't; made with its parents if it is missing. Whoever may write there decides what sessions
  // compute. Empty: none.
  std::string cache_folder = {};
  // Runs take numbers nearer to 0 than the least normal one (1.2e-38 for float32) for 0, in
  // operands and results: processors are slow with them, as where a signal fades away. Threads of
  // the session round, and treat such numbers, as the thread that runs it does in any case.
  bool flush_denormals = false;
  // Memory for the outputs of the session's runs (sardonyx/allocator.h). Null: the library's own.
  std::shared_ptr<Allocator> output_allocator = nullptr;
  // Told what making the session and its runs meet, from `log_level` on (sardonyx/log.h): threads
  // that the system did not start, files of packed weights that are of no use or could not be
  // written, declarations that values contradict, plans that are made for new sizes. Errors are
  // thrown, not told. With a log the warnings of the session and its runs go there and not to
  // LoadOptions::warn; what reading mends goes to LoadOptions::warn, or here where the constructor
  // loads the file itself. What runs have in common is made once for all sessions of a model, and
  // told to the one that makes it. Empty: nobody is told.
  Log log = {};
  LogLevel log_level = LogLevel::warning;
};

struct RunOptions {
  const std::atomic<bool>* cancel = nullptr;  // set it from any thread to stop the run
  std::optional<std::chrono::steady_clock::time_point> deadline =
      std::nullopt;  // then Error (cancelled)
  // Most bytes the run may have in use at a time: the working memory of the graph and of the bodies
  // being run (also what earlier runs left for it), the outputs it makes, and values that loops
  // hold between iterations. The caller's tensors and the weights do not count.
  int64_t memory_limit = INT64_MAX;
  // Adds this run's times to it (sardonyx/profile.h); runs at the same time may have the same one.
  Profile* profile = nullptr;
};

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
// are bound when a run brings new ones. Of a model whose sizes decide what rank values have, the
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
  // is a tensor of numbers on entry, of the right type and shape, is filled where it lies, and must
  // not be an input of the same run. Others are made new, but where they have the output's type and
  // number of elements and another shape: such memory may be taken for it. A run with sizes like
  // the one before and with all outputs given allocates nothing (sardonyx/binding.h keeps inputs
  // and outputs by name). The two spans must not overlap. Throws as above; (bad_input) for wrong
  // counts.
  void run(std::span<const Value> inputs, std::span<Value> outputs,
           const RunOptions& options = {}) const;

  // Begins a run on a thread of the session's own and returns at once; the future gives what run()
  // returns or throws. At most as many of these runs as the session has threads go on at a time;
  // others wait for their turn, in order. Memory of inputs without an owner, and what `options`
  // points to, must stay until the run has ended. The destructor of the session, and an assignment
  // to it, wait for all runs that were begun, whether they go on or wait; set RunOptions::cancel
  // first to have them end early. Throws Error (out_of_memory) where the system starts no thread.
  std::future<std::vector<Value>> run_async(std::vector<NamedValue> inputs,
                                            RunOptions options = {}) const;
  // The same; `done` is called on that thread when the run has ended: with its outputs and null, or
  // with what it threw and no outputs. What `done` throws is dropped. It may begin further runs,
  // and may destroy the session, which then waits for all others.
  using Done = std::function<void(std::vector<Value> outputs, std::exception_ptr error)>;
  void run_async(std::vector<NamedValue> inputs, Done done, RunOptions options = {}) const;

  // What running consists of, whatever the sizes.
  std::vector<StepDescription> steps() const;
  // What a run with these inputs consists of: where sizes decide what rank values have, it is
  // planned for what they decide. Makes that plan if no run has. Throws Error as a run does.
  PlanDescription plan_for(const std::vector<NamedValue>& inputs) const;
  // Bytes of weights packed by runs so far or to be packed (not of those in files of packed
  // weights, which are in nobody's memory but the system's), and of working memory that ended runs
  // have left for later ones (one block for each run that there was at the same time): of all
  // sessions of its model, and of those that share its plan.
  int64_t packed_bytes() const;
  int64_t arena_bytes() const;

  struct [[gnu::visibility("hidden")]] Implementation;

 private:
  friend class Binding;
  std::shared_ptr<Implementation> implementation_;
};

// "0.1.0"
std::string_view version();

}  // namespace sardonyx

#pragma GCC visibility pop
