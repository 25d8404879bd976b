// Any bytes as an operator set document: an Error or findings, and it is written back unchanged.
#include <string>

#include "base/bytes.h"
#include "check/operator_set.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/write.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sardonyx;
  try {
    const ir::OperatorSet set =
        wire::read_operator_set(Bytes(nullptr, reinterpret_cast<const std::byte*>(data), size));
    check::check(set);
    const std::string written = wire::write_operator_set(set);
    const auto* begin = reinterpret_cast<const std::byte*>(written.data());
    require(wire::write_operator_set(
                wire::read_operator_set(Bytes(nullptr, begin, written.size()))) == written,
            "write(read(x)) is stable");
  } catch (const Error&) {
  }
  return 0;
}
