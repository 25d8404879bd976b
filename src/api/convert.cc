#include "sardonyx/convert.h"

#include "base/memory_account.h"
#include "lower/inline.h"
#include "session/model.h"
#include "tools/convert.h"
#include "wire/footprint.h"

namespace sardonyx {

Model convert_version(const Model& model, const ConvertOptions& options) {
  return ModelMaker::derive(model, convert(model, options));
}

Model inline_functions(const Model& model) {
  const Model::Implementation& given = model.implementation();
  return within_limit(given.memory, [&] {
    ir::Model made = lower::inline_functions(given.model);
    return ModelMaker::derive(model, std::move(made));
  });
}

}  // namespace sardonyx
