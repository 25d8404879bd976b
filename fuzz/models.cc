// A real model, changed where models have structure: inputs and outputs left out, values exchanged
// and retyped, nodes doubled, moved, renamed and cut to pieces. Each costs an error message:
// checked, run planned and plain, carried to every opset, and given to the tools (model_tools.h).
//
// The bytes are the model; what is changed in it follows from their sum, so that each mutation of
// the driver's changes something else, too.
#include <chrono>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model_changes.h"
#include "model_tools.h"
#include "sardonyx/session.h"
#include "target.h"
#include "tools/convert.h"
#include "wire/read.h"
#include "wire/write.h"

namespace {

using namespace sardonyx;
using fuzzing::below;
using fuzzing::Random;
using fuzzing::value_for;

constexpr size_t newest_opset = 28;

void change(ir::Model& model, Random& random) {
  if (below(random, 8) == 0) model.ir_version = static_cast<int64_t>(below(random, 1200));
  if (below(random, 8) == 0 && !model.opset_imports.empty())
    model.opset_imports[0].version = static_cast<int64_t>(below(random, 30));
  fuzzing::change_graph(*model.graph, random);
}

void run(const Model& model, bool plain, Random random) {
  RunOptions limits;
  limits.memory_limit = 64 << 20;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  SessionOptions options;
  options.threads = 1;
  options.reference = plain;
  try {
    const Session session(model, options);
    std::vector<NamedValue> inputs;
    for (const ValueDescription& input : session.inputs()) {
      if (!input.optional) inputs.emplace_back(input.name, value_for(input, random));
    }
    (void)session.run(inputs, limits);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::fprintf(stderr, "%s\n", error.what());
    require(error.code() != ErrorCode::internal, "no error is a defect of our own");
  }
}

Bytes bytes_of(const std::string& text) { return Bytes::copy_of(std::as_bytes(std::span(text))); }

// Carried to any opset, a model can be written, read and run.
void try_convert(const Model& model, Random& random) {
  ConvertOptions options;
  options.opset = static_cast<int64_t>(below(random, newest_opset + 2));
  options.assume_inference = below(random, 2) == 0;
  const std::string bytes = wire::write_model(convert(model, options));
  try {
    const Model converted(bytes.data(), bytes.size());
    run(converted, false, random);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    require(false, "a model that was converted can be read");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ data[i]) * 0x100000001b3;
  Random random(sum);
  try {
    Bytes copy = Bytes::allocate(size);
    std::copy(data, data + size, reinterpret_cast<uint8_t*>(copy.mutable_data()));
    ir::Model changed = wire::read_model(copy);
    if (!changed.graph) return 0;
    change(changed, random);
    const std::string bytes = wire::write_model(changed);
    fuzzing::try_tools(wire::read_model(bytes_of(bytes)), random);
    const Model model(bytes.data(), bytes.size());
    run(model, false, random);
    run(model, true, random);
    try_convert(model, random);
  } catch (const Error&) {
  }
  return 0;
}
