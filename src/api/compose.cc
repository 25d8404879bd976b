#include "sardonyx/compose.h"

#include <filesystem>
#include <system_error>

#include "base/fail.h"
#include "base/memory_account.h"
#include "compose/extract.h"
#include "compose/merge.h"
#include "compose/rename.h"
#include "session/model.h"
#include "tools/diff.h"
#include "tools/saving.h"
#include "wire/footprint.h"

namespace sardonyx {
namespace {

// What `make` makes of the messages of a model, as another one. Errors name the file.
template <class Make>
Model derived(const Model& model, const Make& make) {
  const Model::Implementation& given = model.implementation();
  return within_limit(given.memory, [&] {
    try {
      ir::Model made = make(given.model);
      return ModelMaker::derive(model, std::move(made));
    } catch (const Error& error) {
      throw given.model.path.empty() ? error : error.within(given.model.path);
    }
  });
}

}  // namespace

Model extract(const Model& model, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs) {
  return derived(model, [&](const ir::Model& whole) {
    if (!whole.graph) fail(ErrorCode::invalid_model, "the model has no graph");
    return compose::extract(whole, inputs, outputs);
  });
}

Model merge(const Model& first, const Model& second, const MergeOptions& options) {
  const ir::Model &a = first.implementation().model, &b = second.implementation().model;
  if (a.folder != b.folder) require_data_in(b, a.folder);
  return within_limit(first.implementation().memory, [&] {
    ir::Model made = compose::merge(a, b,
                                    {.connections = options.connections,
                                     .first_prefix = options.first_prefix,
                                     .second_prefix = options.second_prefix,
                                     .outputs = options.outputs});
    return ModelMaker::derive(first, std::move(made));
  });
}

Model rename(const Model& model, const Renaming& renaming) {
  return derived(model, [&](const ir::Model& whole) {
    ir::Model made = whole;
    compose::rename(made, {.values = renaming.values,
                           .nodes = renaming.nodes,
                           .dimensions = renaming.dimensions,
                           .functions = renaming.functions});
    if (!renaming.prefix.empty()) compose::rename(made, compose::prefixed(made, renaming.prefix));
    return made;
  });
}

DiffResult diff(const Model& first, const Model& second, const DiffOptions& options) {
  const Model::Implementation &a = first.implementation(), &b = second.implementation();
  if (!options.weights || (!a.defers_data && !b.defers_data))
    return diff(a.model, b.model, options);
  return diff(a.with_data(), b.with_data(), options);
}

}  // namespace sardonyx
