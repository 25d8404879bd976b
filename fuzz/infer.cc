// Inference of symbolic values of whatever can be read: it returns, what it says can be printed,
// and is the same where a file's nodes are read one after another.
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "target.h"
#include "tools/inferred_model.h"
#include "wire/read.h"
#include "wire/streaming_reader.h"
#include "wire/text_parse.h"

namespace {

using namespace sardonyx;

ir::Model parsed(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  if (size > 0 && data[0] == '<')
    return wire::parse_model({reinterpret_cast<const char*>(data), size});
  return wire::read_model(Bytes(nullptr, bytes, size));
}

struct Types {
  bool refused = false;
  std::map<std::string, std::string> texts;  // of the values in the main graph
};

Types types_of(const InferredModel& made) {
  Types types;
  made.scope.for_each_here([&](std::string_view in_scope, const infer::ValueFacts&) {
    const std::string name(in_scope);
    types.texts[name] = made.type(name).to_string();
  });
  return types;
}

template <class Infer>
Types types_made_by(const Infer& infer) {
  try {
    InferredModel made;
    made.keep_nodes = false;
    infer(made);
    return types_of(made);
  } catch (const Error&) {
    return {.refused = true, .texts = {}};
  }
}

void compare_readings(const Bytes& bytes) {
  const Types whole = types_made_by([&](InferredModel& made) {
    const ir::Model model = wire::read_model(bytes);
    infer_model(model, {}, {}, made);
  });
  bool wants_all_nodes = false;
  const Types passing = types_made_by([&](InferredModel& made) {
    wire::StreamingReader outline(bytes);
    try {
      infer_model(outline.model, outline, {}, {}, made);
    } catch (const Error& error) {
      wants_all_nodes = error.code() == ErrorCode::unsupported;
      throw;
    }
  });
  if (wants_all_nodes) return;
  require(whole.refused == passing.refused, "both ways of reading refuse the same models");
  require(whole.texts == passing.texts, "both ways of reading know the same types");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || data[0] != '<')
    compare_readings(Bytes(nullptr, reinterpret_cast<const std::byte*>(data), size));
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
