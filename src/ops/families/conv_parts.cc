#include "ops/families/conv_parts.h"

#include <fmt/format.h>

#include "ops/upgrade_context.h"

namespace sardonyx::ops {

ir::Node make_conv_chain(const std::vector<const ir::Node*>& parts, int depthwise) {
  ir::Node chain;
  chain.domain = "sardonyx";
  chain.op_type = "FusedConvChain";
  chain.name = parts.back()->name;
  chain.attributes = {int_attribute("parts", static_cast<int64_t>(parts.size())),
                      int_attribute("depthwise", depthwise)};
  chain.inputs = {parts.front()->inputs[0]};
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const size_t k : {size_t{1}, size_t{2}, size_t{4}})
      chain.inputs.push_back(k < parts[i]->inputs.size() ? parts[i]->inputs[k] : "");
    for (ir::Attribute attribute : parts[i]->attributes) {
      attribute.name = fmt::format("{}.{}", i, attribute.name);
      chain.attributes.push_back(std::move(attribute));
    }
  }
  const auto& last = parts.back()->inputs;
  if (last.size() > 3 && !last[3].empty()) chain.inputs.push_back(last[3]);
  chain.outputs = {parts.back()->outputs[0]};
  const auto& made = parts[static_cast<size_t>(depthwise)]->outputs;
  if (made.size() > 1) chain.outputs.push_back(made[1]);
  return chain;
}

ir::Node conv_part(const ir::Node& chain, int part) {
  ir::Node node;
  node.domain = "sardonyx";
  node.op_type = "Conv";
  node.name = chain.name;
  const std::string prefix = fmt::format("{}.", part);
  for (const ir::Attribute& attribute : chain.attributes) {
    if (!attribute.name.starts_with(prefix)) continue;
    node.attributes.push_back(attribute);
    node.attributes.back().name.erase(0, prefix.size());
  }
  return node;
}

ir::Dims conv_part_output(const Window& window, const ir::Dims& x, const ir::Dims& w) {
  ir::Dims y{x[0]};
  for (size_t i = 0; i + 2 < x.size(); ++i)
    y.push_back(window_output(window, i, x[i + 1], w[i + 2]));
  y.push_back(w[0]);
  return y;
}

}  // namespace sardonyx::ops
