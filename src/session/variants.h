// What the sessions of one model run, made once for all that make the same choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/memory_account.h"
#include "ir/model.h"
#include "run/plan.h"
#include "sardonyx/session.h"
#include "session/specialized_plans.h"

namespace sardonyx {

// All that decides how a model's graph is lowered, simplified and planned.
struct VariantChoice {
  std::set<std::string> overridden;  // initializers that are inputs; the others are constants
  // Sizes of inputs that have one name need not be equal (ir::separate_sizes).
  bool separate_sizes = false;
  bool plain = false, fuse = true, exact = false, assume_inference = false, all_outputs = false;
  std::map<std::string, int64_t, std::less<>> dimensions;
  std::vector<std::string> extra_outputs;

  VariantChoice(const SessionOptions& options, std::set<std::string> names, bool separate)
      : overridden(std::move(names)),
        separate_sizes(separate),
        plain(options.reference),
        fuse(options.fuse),
        exact(options.exact),
        assume_inference(options.assume_inference),
        all_outputs(options.all_outputs),
        dimensions(options.dimensions),
        extra_outputs(options.extra_outputs) {}
  auto operator<=>(const VariantChoice&) const = default;
};

// Equal for equal choices alone.
std::string to_text(const VariantChoice& choice);

struct Variant {
  MemoryCharge memory;                      // of the graph
  ir::Graph graph;                          // lowered; what a plain run walks
  std::shared_ptr<const run::Plan> plan;    // null where plain, or sized
  std::unique_ptr<SpecializedPlans> sized;  // null where one plan is best for all sizes
  std::vector<std::string> input_names;

  const std::vector<ir::ValueInfo>& outputs() const {
    return sized ? sized->outputs() : plan ? plan->graph().outputs : graph.outputs;
  }
};

class Variants {
 public:
  using Shared = std::shared_ptr<const Variant>;

  // The variant of this choice: the one that is there while anybody holds it, else what `make`
  // gives. Who asks for one that is being made waits for it; what `make` throws only its caller
  // sees, and the next one makes again.
  Shared get(const VariantChoice& choice, const std::function<Shared()>& make);
  // Somebody has asked for it; it may be gone since.
  bool was_asked_for(const VariantChoice& choice) const;

 private:
  struct Entry {
    std::mutex making;
    std::weak_ptr<const Variant> variant;
  };
  std::shared_ptr<Entry> entry(const VariantChoice& choice);

  mutable std::mutex mutex_;
  std::map<VariantChoice, std::shared_ptr<Entry>> entries_;
};

}  // namespace sardonyx
