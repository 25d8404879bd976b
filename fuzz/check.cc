// The checker on whatever can be read: it returns, in every profile.
#include "check/check.h"

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sardonyx;
  try {
    const ir::Model model =
        wire::read_model(Bytes(nullptr, reinterpret_cast<const std::byte*>(data), size));
    for (auto profile :
         {check::Profile::runnable, check::Profile::standard, check::Profile::strict}) {
      check::Options options;
      options.profile = profile;
      check::check(model, options);
    }
  } catch (const Error&) {
  }
  return 0;
}
