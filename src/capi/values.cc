// Values by name, from and to files, as text, beside each other.
#include "capi/named_values.h"
#include "capi/session.h"
#include "capi/views.h"
#include "sardonyx/compare_runs.h"
#include "sardonyx/elements.h"
#include "sardonyx/files.h"
#include "sardonyx/inputs.h"
#include "sardonyx/outputs.h"
#include "sardonyx/ranking.h"
#include "sardonyx/text.h"

namespace sardonyx::capi {

std::vector<NamedValue> named_values(const char* const* names, const sardonyx_value* const* values,
                                     size_t count, const char* names_argument,
                                     const char* argument) {
  if (count > 0) required(values, argument);
  std::vector<NamedValue> list;
  const std::vector<std::string> given = texts(names, count, names_argument);
  for (size_t i = 0; i < count; ++i) list.emplace_back(given[i], value_of(values[i], argument));
  return list;
}

}  // namespace sardonyx::capi

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_comparisons {
  SARDONYX_TAG('c', 'o');
  std::vector<ComparedValue> list;
};

namespace {

const ValueDescription& input_of(const sardonyx_session* session, size_t index) {
  const auto& inputs = required(session, "session").session.inputs();
  if (index >= inputs.size()) refuse_index(index, inputs.size(), "input");
  return inputs[index];
}

std::vector<float> numbers_of(const float* numbers, size_t count, const char* argument) {
  if (count > 0) required(numbers, argument);
  return {numbers, numbers + count};
}

ImageOptions image_options(const sardonyx_image_options* given) {
  const sardonyx_image_options known = known_part(given);
  ImageOptions options;
  if (known.scale != 0) options.scale = known.scale;
  options.mean = numbers_of(known.mean, known.mean_count, "mean");
  options.deviation = numbers_of(known.deviation, known.deviation_count, "deviation");
  if (known.layout < 0 || known.layout > 2)
    fail(ErrorCode::bad_input, "{} is no layout of an image; 0, 1 and 2 are", known.layout);
  if (known.layout != 0) options.nhwc = known.layout == 2;
  return options;
}

Tolerance tolerance_of(const sardonyx_tolerance& known) {
  Tolerance tolerance;
  if (known.has_relative != 0) tolerance.relative = known.relative;
  if (known.has_absolute != 0) tolerance.absolute = known.absolute;
  return tolerance;
}

std::vector<Value> output_values(const sardonyx_value* const* outputs, size_t count) {
  if (count > 0) required(outputs, "outputs");
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) values.push_back(value_of(outputs[i], "outputs"));
  return values;
}

}  // namespace

sardonyx_status* sardonyx_named_values_create(const char* const* names,
                                              const sardonyx_value* const* values, size_t count,
                                              sardonyx_named_values** list) {
  return guarded([&] {
    required(list, "list");
    *list = new sardonyx_named_values{{}, named_values(names, values, count, "names", "values")};
  });
}

void sardonyx_named_values_release(sardonyx_named_values* list) { release_handle(list); }

size_t sardonyx_named_values_count(const sardonyx_named_values* list) {
  return is_usable(list) ? list->list.size() : 0;
}

sardonyx_status* sardonyx_named_values_get(const sardonyx_named_values* list, size_t index,
                                           const char** name, sardonyx_value** value) {
  return guarded([&] {
    const auto& values = required(list, "list").list;
    if (index >= values.size()) refuse_index(index, values.size(), "value");
    if (value != nullptr) *value = new_value(values[index].second);
    if (name != nullptr) *name = values[index].first.c_str();
  });
}

sardonyx_status* sardonyx_value_read(const char* path, sardonyx_element_type element_type,
                                     sardonyx_value** value) {
  return guarded([&] {
    required(value, "value");
    const auto type = static_cast<ElementType>(element_type);
    if (type != ElementType::undefined && !is_known(type))
      fail(ErrorCode::bad_input, "{} is the number of no element type", element_type);
    *value = new_value(read_value(&required(path, "path"), type));
  });
}

sardonyx_status* sardonyx_value_write(const sardonyx_value* value, const char* path) {
  return guarded([&] { write_value(&required(path, "path"), value_of(value, "value")); });
}

sardonyx_status* sardonyx_npz_read(const char* path, sardonyx_named_values** list) {
  return guarded([&] {
    required(list, "list");
    *list = new sardonyx_named_values{{}, read_npz(&required(path, "path"))};
  });
}

sardonyx_status* sardonyx_npz_write(const sardonyx_named_values* list, const char* path) {
  return guarded([&] {
    const auto& values = required(list, "list").list;
    write_npz(&required(path, "path"), values);
  });
}

sardonyx_status* sardonyx_outputs_write(const char* folder, const sardonyx_value* const* outputs,
                                        size_t count) {
  return guarded([&] {
    const std::string to = &required(folder, "folder");
    write_output_folder(to, output_values(outputs, count));
  });
}

sardonyx_status* sardonyx_outputs_write_npz(const char* path, const sardonyx_session* session,
                                            const sardonyx_value* const* outputs, size_t count) {
  return guarded([&] {
    const std::string to = &required(path, "path");
    const auto& descriptions = required(session, "session").session.outputs();
    if (count != descriptions.size())
      fail(ErrorCode::bad_input, "{} outputs are given; the session has {}", count,
           descriptions.size());
    write_output_npz(to, descriptions, output_values(outputs, count));
  });
}

sardonyx_status* sardonyx_text_read(const char* path, sardonyx_bytes** text) {
  return guarded([&] {
    const std::string file = &required(path, "path");
    give_bytes(text, [&] { return read_text(file); });
  });
}

sardonyx_status* sardonyx_text_write(const char* path, const char* text, size_t length) {
  return guarded([&] {
    const std::string file = &required(path, "path");
    write_text(file, std::string_view(&required(text, "text"), length));
  });
}

sardonyx_status* sardonyx_printable(const char* text, size_t length, sardonyx_bytes** made) {
  return guarded([&] {
    const std::string_view given(&required(text, "text"), length);
    required(made, "printable");
    *made = new sardonyx_bytes{{}, printable(given)};
  });
}

sardonyx_status* sardonyx_value_size(const sardonyx_value* value, int64_t* elements) {
  return guarded([&] {
    const Value& of = value_of(value, "value");
    required(elements, "elements") = element_count(of);
  });
}

sardonyx_status* sardonyx_value_summarize(const sardonyx_value* value,
                                          sardonyx_number_summary* summary) {
  return guarded([&] {
    const auto found = summarize(value_of(value, "value"));
    sardonyx_number_summary made{};
    made.has_numbers = found ? 1 : 0;
    if (found) {
      made.elements = found->elements, made.nans = found->nans, made.infinite = found->infinite;
      made.least = found->least, made.most = found->most;
    }
    fill(summary, "summary", made);
  });
}

sardonyx_status* sardonyx_session_making_order(const sardonyx_session* session,
                                               const sardonyx_model* model, size_t* order,
                                               size_t count) {
  return guarded([&] {
    const auto& outputs = required(session, "session").session.outputs();
    const Model& of = required(model, "model").model;
    if (count != outputs.size())
      fail(ErrorCode::bad_input, "there is room for {} places; the session has {} outputs", count,
           outputs.size());
    required(order, "order");
    std::ranges::copy(making_order(of, outputs), order);
  });
}

sardonyx_status* sardonyx_input_read(const sardonyx_session* session, size_t index,
                                     const sardonyx_model* model, const char* path,
                                     const sardonyx_image_options* options,
                                     sardonyx_value** value) {
  return guarded([&] {
    required(value, "value");
    const ValueDescription& wanted = input_of(session, index);
    *value = new_value(read_value_file(&required(path, "path"), required(model, "model").model,
                                       wanted, image_options(options)));
  });
}

sardonyx_status* sardonyx_input_parse(const sardonyx_session* session, size_t index,
                                      const char* text, sardonyx_value** value) {
  return guarded([&] {
    required(value, "value");
    const ValueDescription& wanted = input_of(session, index);
    *value = new_value(value_from_text(&required(text, "text"), wanted), true);
  });
}

sardonyx_status* sardonyx_input_fill(const sardonyx_session* session, size_t index,
                                     const sardonyx_fill_options* options, sardonyx_value** value) {
  return guarded([&] {
    required(value, "value");
    const ValueDescription& wanted = input_of(session, index);
    const sardonyx_fill_options known = known_part(options);
    DimSizes sizes;
    const auto names = texts(known.size_names, known.size_count, "size_names");
    if (known.size_count > 0) required(known.sizes, "sizes");
    for (size_t i = 0; i < names.size(); ++i) sizes[names[i]] = known.sizes[i];
    const Shape shape = shape_for(wanted, sizes);
    std::optional<RandomRange> range;
    if (known.low != 0 || known.high != 0) range = {known.low, known.high};
    *value = new_value(known.ones != 0 ? ones_value(wanted, shape)
                                       : random_value(wanted, shape, known.seed, range));
  });
}

sardonyx_status* sardonyx_value_type_text(const sardonyx_value* value, sardonyx_bytes** text) {
  return guarded([&] { give_bytes(text, [&] { return type_text(value_of(value, "value")); }); });
}

sardonyx_status* sardonyx_value_preview(const sardonyx_value* value, size_t count,
                                        sardonyx_bytes** text) {
  return guarded(
      [&] { give_bytes(text, [&] { return preview(value_of(value, "value"), count); }); });
}

sardonyx_status* sardonyx_value_to_json(const sardonyx_value* value, sardonyx_bytes** text) {
  return guarded([&] { give_bytes(text, [&] { return to_json(value_of(value, "value")); }); });
}

sardonyx_status* sardonyx_tensor_reshape(const sardonyx_value* tensor, size_t rank,
                                         const int64_t* dims, sardonyx_value** made) {
  return guarded([&] {
    required(made, "made");
    *made = new_value(value_of(tensor, "tensor").tensor().reshaped(shape_of(rank, dims)));
  });
}

sardonyx_status* sardonyx_values_compare(const sardonyx_value* actual,
                                         const sardonyx_value* expected,
                                         const sardonyx_tolerance* tolerance,
                                         sardonyx_comparisons** comparisons) {
  return guarded([&] {
    required(comparisons, "comparisons");
    ComparedValue one;
    one.difference = compare(value_of(actual, "actual"), value_of(expected, "expected"),
                             tolerance_of(known_part(tolerance)));
    *comparisons = new sardonyx_comparisons{{}, {std::move(one)}};
  });
}

sardonyx_status* sardonyx_runs_compare(const sardonyx_named_values* actual,
                                       const sardonyx_named_values* expected,
                                       const sardonyx_tolerance* tolerance,
                                       sardonyx_comparisons** comparisons) {
  return guarded([&] {
    required(comparisons, "comparisons");
    const sardonyx_tolerance known = known_part(tolerance);
    CompareRunsOptions options;
    options.tolerance = tolerance_of(known);
    options.common_only = known.common_only != 0;
    options.all_expected = known.all_expected != 0;
    RunComparison made =
        compare_runs(required(actual, "actual").list, required(expected, "expected").list, options);
    *comparisons = new sardonyx_comparisons{{}, std::move(made.values)};
  });
}

sardonyx_status* sardonyx_run_read(const char* path, sardonyx_named_values** list) {
  return guarded([&] {
    required(list, "list");
    *list = new sardonyx_named_values{{}, read_run(&required(path, "path"))};
  });
}

size_t sardonyx_comparisons_count(const sardonyx_comparisons* comparisons) {
  return is_usable(comparisons) ? comparisons->list.size() : 0;
}

sardonyx_status* sardonyx_comparisons_get(const sardonyx_comparisons* comparisons, size_t index,
                                          sardonyx_comparison* comparison) {
  return guarded([&] {
    const auto& list = required(comparisons, "comparisons").list;
    if (index >= list.size()) refuse_index(index, list.size(), "comparison");
    const ComparedValue& one = list[index];
    const Difference& difference = one.difference;
    sardonyx_comparison made{};
    made.name = one.name.c_str();
    made.agree = difference.agree, made.is_missing = one.is_missing;
    made.largest = difference.largest, made.share_of_rms = difference.share_of_rms;
    made.differing = difference.differing, made.elements = difference.elements;
    made.reason = difference.reason.c_str();
    fill(comparison, "comparison", made);
  });
}

void sardonyx_comparisons_release(sardonyx_comparisons* comparisons) {
  release_handle(comparisons);
}

sardonyx_status* sardonyx_rank_answers(const sardonyx_value* scores, size_t top, size_t max_rows,
                                       int64_t* indices, double* probabilities, size_t* rows,
                                       size_t* columns, int* given) {
  return guarded([&] {
    const Tensor& tensor = value_of(scores, "scores").tensor();
    required(indices, "indices"), required(probabilities, "probabilities");
    required(rows, "rows"), required(columns, "columns");
    constexpr size_t most = size_t{1} << 31;
    if (top > most || max_rows > most)
      fail(ErrorCode::bad_input, "{} answers of {} rows are more than 2^31", top, max_rows);
    const Ranking ranking =
        rank_answers(tensor, static_cast<int64_t>(top), static_cast<int64_t>(max_rows));
    *rows = ranking.rows.size();
    *columns = ranking.rows.empty() ? 0 : ranking.rows[0].size();
    if (given != nullptr) *given = ranking.given ? 1 : 0;
    for (const std::vector<Answer>& row : ranking.rows) {
      for (const Answer& answer : row) {
        *indices++ = answer.index;
        *probabilities++ = answer.probability;
      }
    }
  });
}
