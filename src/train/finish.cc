#include "train/finish.h"

#include <algorithm>
#include <memory>
#include <string>

#include "base/fail.h"
#include "ir/dimension.h"
#include "lower/lower.h"
#include "train/graphs.h"
#include "wire/write.h"

namespace sardonyx::train {
namespace {

// The step's graph with this number for all sizes that its inputs leave open; false where something
// in it has no gradient, and where another number may do as well.
bool has_gradients(ir::Model step, int64_t size) {
  for (ir::ValueInfo& input : step.graph->inputs) {
    if (!input.type || !input.type->shape) continue;
    for (ir::Dimension& dim : input.type->shape->dims) {
      if (!ir::declared_number(dim)) ir::set_number(dim, size);
    }
  }
  try {
    (void)lower::lower(step);
  } catch (const Error& error) {
    return error.code() != ErrorCode::unsupported;
  }
  return true;
}

}  // namespace

// Some gradients need to know sizes, of which a session learns from the inputs of a step.
void require_gradients(const ir::Model& model) {
  const StateTable table(model);
  const auto outputs = unique_names(model.training_info[0].update_binding);
  MethodModel step = step_model(model, table, 0, outputs);
  try {
    (void)lower::lower(step.model);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    // A network that makes images or sounds smaller has no size left of a small one.
    constexpr int64_t sizes[] = {2, 64, 224, 16000};
    if (std::ranges::none_of(sizes, [&](int64_t size) { return has_gradients(step.model, size); }))
      throw;
  }
}

Model model_of(const ir::Model& made) {
  const auto bytes = std::make_shared<const std::string>(wire::write_model(made));
  return Model(bytes->data(), bytes->size(), made.folder, bytes);
}

}  // namespace sardonyx::train
