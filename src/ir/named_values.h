// Values that a node names in attributes rather than as inputs.
#pragma once

#include "ir/model.h"

namespace sardonyx::ir {

// Gradient of ai.onnx.preview.training says so which value's gradient it is, and by which values.
// `use` gets each name and may write another one, where the node may be changed.
template <class Node, class Use>
void for_each_named_value(Node& node, const Use& use) {
  if (node.op_type != "Gradient" || node.domain != "ai.onnx.preview.training") return;
  for (auto& attribute : node.attributes) {
    if (attribute.name == "y" && attribute.s) use(*attribute.s);
    if (attribute.name != "xs" && attribute.name != "zs") continue;
    for (auto& name : attribute.strings) use(name);
  }
}

}  // namespace sardonyx::ir
