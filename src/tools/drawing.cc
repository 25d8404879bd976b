#include "tools/drawing.h"

#include <string>

#include "base/fail.h"
#include "ops/custom.h"
#include "session/reading.h"
#include "tools/drawing/write.h"
#include "tools/infer_report.h"
#include "tools/inferred_model.h"

namespace sardonyx {
namespace {

// The model with what can be inferred of its values; as it is where nothing can.
ir::Model typed(const ir::Model& model) {
  ir::Model copy = model;
  if (!copy.graph) return copy;
  try {
    const ops::CustomTable none;
    InferredModel inferred;
    inferred.keep_nodes = false;
    infer_model(copy, {}, none, inferred);
    Inference inference;
    report_written(inferred, {}, copy, inference);
    return copy;
  } catch (const Error&) {  // `infer` says why
    return model;
  }
}

}  // namespace

void draw_model(const ir::Model& model, DrawingForm form,
                const std::function<void(std::string_view)>& write) {
  const std::vector<drawing::Diagram> diagrams = drawing::diagrams_of(typed(model));
  if (form == DrawingForm::dot) {
    drawing::write_dot(diagrams, write);
  } else {
    drawing::write_svg(diagrams, write);
  }
}

void draw_model(const std::string& path, DrawingForm form,
                const std::function<void(std::string_view)>& write) {
  draw_model(read_model_file(path), form, write);
}

}  // namespace sardonyx
