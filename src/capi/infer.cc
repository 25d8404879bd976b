#include "capi/handles.h"

namespace sardonyx::capi {

void Description::finish() {
  for (const std::string& text : dim_names) dim_name_texts.push_back(text.c_str());
}

sardonyx_value_info Description::info() const {
  return {0,
          name.c_str(),
          graph.c_str(),
          type.c_str(),
          static_cast<sardonyx_kind>(kind),
          static_cast<sardonyx_element_type>(element),
          has_rank ? 1 : 0,
          dims.size(),
          dims.data(),
          dim_name_texts.data(),
          optional ? 1 : 0};
}

}  // namespace sardonyx::capi

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_inference {
  std::vector<std::unique_ptr<Description>> values;  // which texts point into
  std::vector<InferFinding> findings;
};

namespace {

InferOptions infer_options(const sardonyx_infer_options* given) {
  const sardonyx_infer_options known = known_part(given);
  InferOptions options;
  options.strict = known.strict != 0;
  options.memory_limit = limit_of(known.memory_limit);
  const auto names = texts(known.size_names, known.size_count, "size_names");
  if (known.size_count > 0) required(known.sizes, "sizes");
  for (size_t i = 0; i < names.size(); ++i) options.sizes[names[i]] = known.sizes[i];
  return options;
}

Value::Kind kind_of(const InferredValue& value) {
  const auto begins = [&](std::string_view text) { return value.other_type.starts_with(text); };
  return begins("seq(")             ? Value::Kind::sequence
         : begins("map(")           ? Value::Kind::map
         : begins("optional(")      ? Value::Kind::optional
         : begins("sparse_tensor(") ? Value::Kind::sparse_tensor
                                    : Value::Kind::tensor;
}

sardonyx_inference* made_of(Inference inference) {
  auto made = std::make_unique<sardonyx_inference>();
  for (const InferredValue& value : inference.values) {
    auto one = std::make_unique<Description>();
    one->name = value.name, one->graph = value.graph, one->type = value.type();
    one->kind = kind_of(value);
    one->element = value.element;
    one->has_rank = value.shape.has_value();
    if (value.shape) {
      for (const InferredSize& size : *value.shape) {
        one->dims.push_back(size.number);
        one->dim_names.emplace_back(size.number >= 0 ? std::string_view() : size.expression);
      }
    }
    one->finish();
    made->values.push_back(std::move(one));
  }
  made->findings = std::move(inference.findings);
  return made.release();
}

}  // namespace

sardonyx_status* sardonyx_infer(const sardonyx_model* model, const sardonyx_infer_options* options,
                                sardonyx_inference** inference) {
  return guarded([&] {
    required(inference, "inference");
    *inference = made_of(infer_types(required(model, "model").model, infer_options(options)));
  });
}

sardonyx_status* sardonyx_infer_file(const char* path, const char* output,
                                     const sardonyx_infer_options* options,
                                     sardonyx_inference** inference) {
  return guarded([&] {
    required(inference, "inference");
    *inference = made_of(
        infer_file(&required(path, "path"), &required(output, "output"), infer_options(options)));
  });
}

sardonyx_status* sardonyx_model_infer(const sardonyx_model* model,
                                      const sardonyx_infer_options* options,
                                      sardonyx_model** typed) {
  return guarded([&] {
    required(typed, "typed");
    *typed = new sardonyx_model{
        with_inferred_types(required(model, "model").model, infer_options(options))};
  });
}

size_t sardonyx_inference_count(const sardonyx_inference* inference) {
  return inference == nullptr ? 0 : inference->values.size();
}

sardonyx_status* sardonyx_inference_value(const sardonyx_inference* inference, size_t index,
                                          sardonyx_value_info* info) {
  return guarded([&] {
    const auto& values = required(inference, "inference").values;
    if (index >= values.size())
      fail(ErrorCode::bad_input, "there is no value {} of {}", index, values.size());
    fill(info, values[index]->info());
  });
}

size_t sardonyx_inference_finding_count(const sardonyx_inference* inference) {
  return inference == nullptr ? 0 : inference->findings.size();
}

sardonyx_status* sardonyx_inference_finding(const sardonyx_inference* inference, size_t index,
                                            sardonyx_finding* finding) {
  return guarded([&] {
    const auto& findings = required(inference, "inference").findings;
    if (index >= findings.size())
      fail(ErrorCode::bad_input, "there is no finding {} of {}", index, findings.size());
    const InferFinding& one = findings[index];
    fill(finding,
         sardonyx_finding{0, sardonyx_severity{one.is_error ? SARDONYX_ERROR : SARDONYX_WARNING},
                          "", one.place.c_str(), one.message.c_str(), ""});
  });
}

void sardonyx_inference_release(sardonyx_inference* inference) { delete inference; }
