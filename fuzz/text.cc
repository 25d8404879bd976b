// Any bytes as a model in textual syntax: an Error or a model, whose print is read back the same.
#include <string>
#include <string_view>

#include "sardonyx/error.h"
#include "target.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sardonyx;
  std::string first;
  try {
    first = wire::print(wire::parse_model({reinterpret_cast<const char*>(data), size}));
  } catch (const Error&) {
    return 0;
  }
  try {
    require(first == wire::print(wire::parse_model(first)), "print(parse(x)) is stable");
  } catch (const Error& error) {
    require(false, error.what());
  }
  return 0;
}
