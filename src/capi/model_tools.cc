#include <memory>

#include "capi/handles.h"
#include "sardonyx/compose.h"
#include "sardonyx/convert.h"

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_differences {
  SARDONYX_TAG('d', 'i');
  DiffResult result;
};

namespace {

const Model& model_of(const sardonyx_model* model, const char* argument) {
  return required(model, argument).model;
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

// Pairs of two lists of texts of the same length.
std::vector<std::pair<std::string, std::string>> pairs(const char* const* from,
                                                       const char* const* to, size_t count) {
  const auto first = texts(from, count, "from"), second = texts(to, count, "to");
  std::vector<std::pair<std::string, std::string>> made;
  for (size_t i = 0; i < count; ++i) made.emplace_back(first[i], second[i]);
  return made;
}

}  // namespace

sardonyx_status* sardonyx_model_convert(const sardonyx_model* model, int64_t opset,
                                        int assume_inference, sardonyx_model** converted) {
  return guarded([&] {
    required(converted, "converted");
    if (opset < 0) fail(ErrorCode::bad_input, "opset {} is negative", opset);
    *converted = new sardonyx_model{
        {},
        convert_version(model_of(model, "model"),
                        {.opset = opset, .assume_inference = assume_inference != 0})};
  });
}

sardonyx_status* sardonyx_model_convert_version(const sardonyx_model* model,
                                                const sardonyx_convert_options* options,
                                                sardonyx_model** converted) {
  return guarded([&] {
    required(converted, "converted");
    const sardonyx_convert_options known = known_part(options);
    if (known.opset < 0) fail(ErrorCode::bad_input, "opset {} is negative", known.opset);
    *converted = new sardonyx_model{
        {},
        convert_version(model_of(model, "model"), {.opset = known.opset,
                                                   .assume_inference = known.assume_inference != 0,
                                                   .memory_limit = limit_of(known.memory_limit)})};
  });
}

sardonyx_status* sardonyx_model_inline_functions(const sardonyx_model* model,
                                                 sardonyx_model** inlined) {
  return guarded([&] {
    required(inlined, "inlined");
    *inlined = new sardonyx_model{{}, inline_functions(model_of(model, "model"))};
  });
}

sardonyx_status* sardonyx_model_extract(const sardonyx_model* model, const char* const* inputs,
                                        size_t input_count, const char* const* outputs,
                                        size_t output_count, sardonyx_model** part) {
  return guarded([&] {
    required(part, "part");
    *part =
        new sardonyx_model{{},
                           extract(model_of(model, "model"), texts(inputs, input_count, "inputs"),
                                   texts(outputs, output_count, "outputs"))};
  });
}

sardonyx_status* sardonyx_model_merge(const sardonyx_model* first, const sardonyx_model* second,
                                      const sardonyx_merge_options* options,
                                      sardonyx_model** merged) {
  return guarded([&] {
    required(merged, "merged");
    const sardonyx_merge_options known = known_part(options);
    MergeOptions merging;
    merging.connections = pairs(known.from, known.to, known.connection_count);
    merging.first_prefix = text_or_empty(known.first_prefix);
    merging.second_prefix = text_or_empty(known.second_prefix);
    merging.outputs = texts(known.outputs, known.output_count, "outputs");
    *merged = new sardonyx_model{
        {}, merge(model_of(first, "first"), model_of(second, "second"), merging)};
  });
}

sardonyx_status* sardonyx_model_rename(const sardonyx_model* model, sardonyx_named what,
                                       const char* const* from, const char* const* to, size_t count,
                                       sardonyx_model** renamed) {
  return guarded([&] {
    required(renamed, "renamed");
    Renaming renaming;
    std::map<std::string, std::string>* const lists[] = {&renaming.values, &renaming.nodes,
                                                         &renaming.dimensions, &renaming.functions};
    if (what < 0 || what > SARDONYX_NAMED_FUNCTION)
      fail(ErrorCode::bad_input, "{} is nothing that has names", what);
    for (auto& [name, other] : pairs(from, to, count)) {
      if (!lists[what]->emplace(name, other).second)
        fail(ErrorCode::bad_input, "'{}' is renamed twice", name);
    }
    *renamed = new sardonyx_model{{}, rename(model_of(model, "model"), renaming)};
  });
}

sardonyx_status* sardonyx_model_diff(const sardonyx_model* first, const sardonyx_model* second,
                                     const sardonyx_diff_options* options,
                                     sardonyx_differences** differences) {
  return guarded([&] {
    required(differences, "differences");
    const sardonyx_diff_options known = known_part(options);
    *differences = new sardonyx_differences{
        {},
        diff(model_of(first, "first"), model_of(second, "second"),
             {.relative = known.relative,
              .absolute = known.absolute,
              .weights = known.no_weights == 0,
              .annotations = known.no_annotations == 0,
              .most = known.most > 0 ? known.most : static_cast<size_t>(-1)})};
  });
}

size_t sardonyx_differences_count(const sardonyx_differences* differences) {
  return !is_usable(differences) ? 0 : differences->result.differences.size();
}

size_t sardonyx_differences_left_out(const sardonyx_differences* differences) {
  return is_usable(differences) ? differences->result.left_out : 0;
}

sardonyx_status* sardonyx_differences_get(const sardonyx_differences* differences, size_t index,
                                          sardonyx_difference* difference) {
  return guarded([&] {
    const auto& list = required(differences, "differences").result.differences;
    if (index >= list.size())
      fail(ErrorCode::bad_input, "there is no difference {} of {}", index, list.size());
    const ModelDifference& one = list[index];
    fill(difference, "difference",
         sardonyx_difference{0, static_cast<int>(one.kind), one.place.c_str(), one.first.c_str(),
                             one.second.c_str()});
  });
}

void sardonyx_differences_release(sardonyx_differences* differences) {
  release_handle(differences);
}
