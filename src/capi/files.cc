#include "capi/handles.h"
#include "session/convert.h"
#include "session/saving.h"

using namespace sardonyx;
using namespace sardonyx::capi;

sardonyx_status* sardonyx_convert_file(const char* from, const char* to,
                                       const sardonyx_convert_options* options) {
  return guarded([&] {
    const sardonyx_convert_options known = known_part(options);
    const std::string source = &required(from, "from"), target = &required(to, "to");
    SaveOptions saving;
    if (known.external_data != nullptr) saving.external_data = known.external_data;
    if (known.threshold > 0) saving.threshold = known.threshold;
    saving.embed = known.embed != 0;
    saving.checksum = known.checksum != 0;
    if (known.trusted_folder != nullptr) saving.trusted_folder = known.trusted_folder;
    if (known.opset < 0) fail(ErrorCode::bad_input, "opset {} is negative", known.opset);
    if (known.opset == 0) {
      convert_model(source, target, saving);
      return;
    }
    LoadOptions loading;
    loading.trusted_folder = saving.trusted_folder;
    save_model(convert(Model(source, loading),
                       {.opset = known.opset, .assume_inference = known.assume_inference != 0}),
               target, saving);
  });
}
