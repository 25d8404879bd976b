// Files of packed weights: the weights of a model as the kernels of one processor read them, which
// later processes map and share instead of packing anew, and the optimised graph of a session, with
// which theirs begin.
//
//   sardonyx::Model model("model.onnx");
//   sardonyx::pack_model(model, "model.sdx");
//   sardonyx::Session session(model, {.packed = "model.sdx"});
//
// docs/packed_models.md has when a file is valid, and its format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sardonyx/model.h"
#include "sardonyx/session.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

struct PackedModel {
  size_t forms = 0;    // packed constants
  uint64_t bytes = 0;  // of the file
};

// Packs the weights that a session with these options reads (`packed` and `cache_folder` aside) and
// writes them to `path`: the file appears whole or not at all. It is for this model, this version
// of the library and the processor as it is used now (SARDONYX_CPU); what a session with other
// options needs besides, that session packs itself. The optimised graph is for these options, too.
// Weights whose packing depends on the sizes of a run's inputs beyond the model's declarations are
// not in it. Throws Error: (unreadable) with the path where it can't be written, (bad_input) for
// `reference`, which packs nothing, and as a Session does.
PackedModel pack_model(const Model& model, const std::string& path,
                       const SessionOptions& options = {});

struct PackedDifference {
  // "matrix float32[768,3072], constant of 9437184 bytes"; "the optimised graph"
  std::string form;
  std::string what;  // "byte 17 of part 0 is 3, packing gives 4"
};
struct PackedComparison {
  size_t forms = 0;  // packed constants that a session with these options reads
  std::vector<PackedDifference> differences;
};

// Packs anew and compares all bytes with those of the file: what a form that is missing, another
// one or damaged would do to results, this finds. Throws Error: (unreadable) where the file is not
// sound, (bad_input) where it is for another model, processor or version.
PackedComparison compare_packed(const Model& model, const std::string& path,
                                const SessionOptions& options = {});

}  // namespace sardonyx

#pragma GCC visibility pop
