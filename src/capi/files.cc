#include "capi/handles.h"
#include "sardonyx/convert.h"

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

SaveOptions saving_of(const sardonyx_convert_options& known) {
  SaveOptions saving;
  if (known.external_data != nullptr) saving.external_data = known.external_data;
  if (known.threshold > 0) saving.threshold = known.threshold;
  saving.embed = known.embed != 0;
  saving.checksum = known.checksum != 0;
  if (known.trusted_folder != nullptr) saving.trusted_folder = known.trusted_folder;
  return saving;
}

}  // namespace

sardonyx_status* sardonyx_convert_file(const char* from, const char* to,
                                       const sardonyx_convert_options* options) {
  return guarded([&] {
    const sardonyx_convert_options known = known_part(options);
    const std::string source = &required(from, "from"), target = &required(to, "to");
    const SaveOptions saving = saving_of(known);
    if (known.opset < 0) fail(ErrorCode::bad_input, "opset {} is negative", known.opset);
    const Model model(
        source, {.trusted_folder = saving.trusted_folder, .load_external_data = known.opset != 0});
    const Model result =
        known.opset == 0 ? model
                         : convert_version(model, {.opset = known.opset,
                                                   .assume_inference = known.assume_inference != 0,
                                                   .memory_limit = limit_of(known.memory_limit)});
    result.save(target, saving);
  });
}
