#include "capi/handles.h"

namespace sardonyx::capi {

ModelForm form_given(int number) {
  if (number < 1 || number > SARDONYX_FORM_TEXTPROTO + 1)
    fail(ErrorCode::bad_input, "{} is not 1 more than a form of a model file, nor 0", number);
  return static_cast<ModelForm>(number - 1);
}

LoadOptions load_options(const sardonyx_load_options* given) {
  const sardonyx_load_options known = known_part(given);
  LoadOptions options;
  options.strict = known.strict != 0;
  options.read_into_memory = known.read_into_memory != 0;
  if (known.trusted_folder != nullptr) options.trusted_folder = known.trusted_folder;
  options.operator_sets = texts(known.operator_sets, known.operator_set_count, "operator_sets");
  options.libraries = texts(known.libraries, known.library_count, "libraries");
  options.memory_limit = limit_of(known.memory_limit);
  if (const auto* of = if_given(known.operators, "operators"))
    options.custom_operators = of->operators;
  options.load_external_data = known.leave_external_data == 0;
  if (known.form != 0) options.form = form_given(known.form);
  if (known.warn != nullptr) {
    options.warn = [warn = known.warn, user = known.user](const Warning& warning) {
      const sardonyx_warning told{sizeof(sardonyx_warning), warning.rule.c_str(),
                                  warning.place.c_str(), warning.message.c_str(),
                                  warning.advice.c_str()};
      warn(&told, user);
    };
  }
  return options;
}

}  // namespace sardonyx::capi

using namespace sardonyx;
using namespace sardonyx::capi;

sardonyx_status* sardonyx_model_load(const char* path, const sardonyx_load_options* options,
                                     sardonyx_model** model) {
  return guarded([&] {
    required(model, "model");
    *model = new sardonyx_model{{}, Model(&required(path, "path"), load_options(options))};
  });
}

sardonyx_status* sardonyx_model_load_memory(const void* data, size_t bytes, const char* folder,
                                            const sardonyx_load_options* options,
                                            sardonyx_model** model) {
  return guarded([&] {
    required(model, "model");
    if (bytes > 0) required(static_cast<const char*>(data), "data");
    *model = new sardonyx_model{
        {}, Model(data, bytes, folder != nullptr ? folder : "", nullptr, load_options(options))};
  });
}

sardonyx_status* sardonyx_model_parse(const char* text, size_t length,
                                      const sardonyx_load_options* options,
                                      sardonyx_model** model) {
  return guarded([&] {
    required(model, "model");
    *model = new sardonyx_model{
        {}, Model::from_text({&required(text, "text"), length}, load_options(options))};
  });
}

void sardonyx_model_release(sardonyx_model* model) { release_handle(model); }
