// Any text as JSON and as protobuf's text format: an Error or a model that comes back as it is.
#include <string>
#include <string_view>

#include "sardonyx/error.h"
#include "target.h"
#include "wire/named_forms.h"
#include "wire/write.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sardonyx;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto form : {wire::NamedForm::json, wire::NamedForm::textproto}) {
    ir::Model model;
    try {
      model = wire::read_named_model(text, form);
    } catch (const Error&) {
      continue;
    }
    try {
      const std::string first = wire::named_text(model, form);
      const std::string second = wire::named_text(wire::read_named_model(first, form), form);
      require(first == second, "text(read(text)) is stable");
    } catch (const Error& error) {
      require(form == wire::NamedForm::json && error.code() == ErrorCode::unsupported,
              error.what());
    }
  }
  return 0;
}
