// Thorough inference of whatever can be read: it returns, and what it says can be printed.
#include "base/bytes.h"
#include "sardonyx/error.h"
#include "session/inferred_model.h"
#include "target.h"
#include "wire/read.h"
#include "wire/text_parse.h"

namespace {

using namespace sardonyx;

ir::Model parsed(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  if (size > 0 && data[0] == '<')
    return wire::parse_model({reinterpret_cast<const char*>(data), size});
  return wire::read_model(Bytes(nullptr, bytes, size));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const ir::Model model = parsed(data, size);
    if (!model.graph) return 0;
    InferredModel made;
    infer_model(model, {}, {}, made);
    for (const ir::Node& node : made.graph.nodes) {
      for (const std::string& name : node.outputs) {
        if (name.empty()) continue;
        const ir::ValueType type = made.type(name);
        require(!type.to_string().empty(), "a type has a text");
        if (!type.shape) continue;
        for (const ir::Dim& dim : *type.shape)
          require(!dim.is_indefinite(), "sizes that leave inference are definite");
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
