// What the optimiser makes of a model, pass by pass.
//
//   sardonyx::optimized_text(model, {}, {.observe = [](const sardonyx::PassRun& run, auto&) {
//     if (run.changed) std::printf("%s: %td nodes\n", run.name.c_str(), run.nodes_after);
//   }});
//
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/session.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

struct PassDescription {
  std::string name;     // "fuse-attention"
  std::string summary;  // what it does, on one line
};

// All passes, each once, in the order in which they first run.
std::vector<PassDescription> optimizer_passes();
// Throws Error (bad_input), which names all passes, where there is none of this name.
void require_pass(std::string_view name);

// A pass that has run over one graph of a model.
struct PassRun {
  std::string name;   // of the pass; "infer-types" where inference ran once more between two
  std::string graph;  // "main graph", or "body of Loop making 'y'" for one inside a node
  bool changed = false;
  std::ptrdiff_t nodes_before = 0, nodes_after = 0;
  // By operator: how many nodes there are more than before the pass, or fewer where negative.
  std::vector<std::pair<std::string, int>> operators;
  double seconds = 0;  // without the passes over graphs inside this one
};

struct PassOptions {
  // The last pass to run on each graph; empty: all run. Throws Error (bad_input) where there is no
  // such pass.
  std::string stop_after = {};
  // Called after each pass, from within the call. `text` gives the graph as the pass left it.
  std::function<void(const PassRun& run, const std::function<std::string()>& text)> observe = {};
  // Tensors with more elements than this are cut in texts.
  size_t max_elements = 16;
};

// Prepares the model as a session with these options would, up to the plan, and returns the
// optimised graph in ONNX's textual syntax; nodes of the domain "sardonyx" are operators of the
// engine's own. Of a model whose sizes decide what rank values have it shows what holds for all
// sizes. Makes no session and packs no weights. Throws Error as Session's constructor does.
std::string optimized_text(const Model& model, const SessionOptions& options = {},
                           const PassOptions& pass_options = {});

}  // namespace sardonyx

#pragma GCC visibility pop
