// The Gradient node of a training model.
#include "ops/upgrade_context.h"
#include "train/draft.h"

namespace sardonyx::train {

std::vector<std::string> add_gradient(ir::Graph& graph, GraphBuilder& builder,
                                      const std::vector<Parameter>& parameters,
                                      std::vector<std::string> constants, const std::string& loss) {
  std::vector<std::string> xs, gradients;
  for (const Parameter& one : parameters) {
    xs.push_back(one.name);
    gradients.push_back(builder.name(one.name + "_slope"));
  }
  std::vector<std::string> inputs = xs;
  inputs.insert(inputs.end(), constants.begin(), constants.end());
  ir::Node& node = graph.nodes.emplace_back();
  node.op_type = "Gradient";
  node.domain = preview_domain;
  node.inputs = std::move(inputs);
  node.outputs = gradients;
  node.attributes = {strings_attribute("xs", std::move(xs)),
                     strings_attribute("zs", std::move(constants)),
                     ops::string_attribute("y", loss)};
  return gradients;
}

}  // namespace sardonyx::train
