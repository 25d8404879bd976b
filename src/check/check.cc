#include "check/check.h"

#include <algorithm>

#include "check/context.h"

namespace sardonyx::check {

std::vector<Diagnostic> check(const ir::Model& model, const Options& options) {
  const int64_t said = model.ir_version.value_or(0);
  const int64_t ir_version =
      said > 0 ? std::min<int64_t>(said, newest_ir_version) : newest_ir_version;
  Context context{.model = model,
                  .options = options,
                  .report = Report(options, ir_version),
                  .ir_version = ir_version,
                  .functions = {},
                  .function_domains = {},
                  .needed_parameters = {},
                  .reported = {},
                  .external_ranges = {}};
  check_header(context);
  check_devices(context);
  index_functions(context);
  NameSet names;
  if (model.graph) names = check_graph(context, {model.opset_imports}, *model.graph, "graph");
  check_functions(context);
  check_training(context, names);
  check_unused_imports(context);
  check_external_overlaps(context);
  check_denotations(context);
  check_shardings(context);
  return context.report.take();
}

}  // namespace sardonyx::check
