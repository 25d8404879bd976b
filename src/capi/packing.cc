#include "sardonyx/packing.h"

#include "capi/session.h"

using namespace sardonyx;
using namespace sardonyx::capi;

sardonyx_status* sardonyx_model_pack(const sardonyx_model* model, const char* path,
                                     const sardonyx_session_options* options, size_t* forms,
                                     uint64_t* bytes) {
  return guarded([&] {
    const PackedModel packed = pack_model(required(model, "model").model, &required(path, "path"),
                                          session_options(options));
    if (forms != nullptr) *forms = packed.forms;
    if (bytes != nullptr) *bytes = packed.bytes;
  });
}

sardonyx_status* sardonyx_model_compare_packed(const sardonyx_model* model, const char* path,
                                               const sardonyx_session_options* options,
                                               size_t* forms, size_t* different,
                                               sardonyx_bytes** text) {
  return guarded([&] {
    required(different, "different");
    const PackedComparison comparison = compare_packed(
        required(model, "model").model, &required(path, "path"), session_options(options));
    std::string lines;
    for (const PackedDifference& one : comparison.differences)
      lines += fmt::format("{}: {}\n", one.form, one.what);
    if (text != nullptr) *text = new sardonyx_bytes{{}, std::move(lines)};
    if (forms != nullptr) *forms = comparison.forms;
    *different = comparison.differences.size();
  });
}
