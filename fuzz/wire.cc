// Any bytes as a model file: an Error or a model, and what was read is written back unchanged.
#include <string>

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/read.h"
#include "wire/write.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sardonyx;
  const auto bytes = [](const void* begin, size_t count) {
    return Bytes(nullptr, static_cast<const std::byte*>(begin), count);
  };
  std::string first;
  try {
    const ir::Model model = wire::read_model(bytes(data, size));
    first = wire::write_model(model);
    // What holds neither is told from files of other programs by its first bytes, which writing
    // may change.
    if (!model.graph && model.opset_imports.empty()) return 0;
  } catch (const Error&) {
    return 0;
  }
  try {
    const std::string second =
        wire::write_model(wire::read_model(bytes(first.data(), first.size())));
    require(first == second, "write(read(x)) is stable");
  } catch (const Error& error) {
    require(false, error.what());
  }
  return 0;
}
