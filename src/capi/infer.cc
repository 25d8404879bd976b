#include "capi/views.h"

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
  SARDONYX_TAG('i', 'n');
  std::vector<std::unique_ptr<Description>> values;  // which texts point into
  std::vector<InferFinding> findings;
  std::vector<InferredValue::State> states;  // of the values
  std::vector<InferredUnknown> unknowns;
  std::vector<InferredName> names;
};

namespace {

InferOptions infer_options(const sardonyx_infer_options* given) {
  const sardonyx_infer_options known = known_part(given);
  InferOptions options;
  options.strict = known.strict != 0;
  options.memory_limit = limit_of(known.memory_limit);
  if (const auto* of = if_given(known.operators, "operators"))
    options.custom_operators = of->operators;
  options.libraries = texts(known.libraries, known.library_count, "libraries");
  options.operator_sets = texts(known.operator_sets, known.operator_set_count, "operator_sets");
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
    made->states.push_back(value.state);
  }
  made->findings = std::move(inference.findings);
  made->unknowns = std::move(inference.unknowns);
  made->names = std::move(inference.names);
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
        {}, with_inferred_types(required(model, "model").model, infer_options(options))};
  });
}

sardonyx_status* sardonyx_model_infer_reported(const sardonyx_model* model,
                                               const sardonyx_infer_options* options,
                                               sardonyx_model** typed,
                                               sardonyx_inference** inference) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    required(typed, "typed"), required(inference, "inference");
    Inference told;
    auto made = std::unique_ptr<sardonyx_model>(
        new sardonyx_model{{}, with_inferred_types(given, infer_options(options), &told)});
    *inference = made_of(std::move(told));
    *typed = made.release();
  });
}

size_t sardonyx_inference_count(const sardonyx_inference* inference) {
  return !is_usable(inference) ? 0 : inference->values.size();
}

sardonyx_status* sardonyx_inference_value(const sardonyx_inference* inference, size_t index,
                                          sardonyx_value_info* info) {
  return guarded([&] {
    const auto& values = required(inference, "inference").values;
    if (index >= values.size())
      fail(ErrorCode::bad_input, "there is no value {} of {}", index, values.size());
    fill(info, "info", values[index]->info());
  });
}

size_t sardonyx_inference_finding_count(const sardonyx_inference* inference) {
  return !is_usable(inference) ? 0 : inference->findings.size();
}

sardonyx_status* sardonyx_inference_finding(const sardonyx_inference* inference, size_t index,
                                            sardonyx_finding* finding) {
  return guarded([&] {
    const auto& findings = required(inference, "inference").findings;
    if (index >= findings.size())
      fail(ErrorCode::bad_input, "there is no finding {} of {}", index, findings.size());
    const InferFinding& one = findings[index];
    sardonyx_finding made{};
    made.severity = one.is_error ? SARDONYX_ERROR : SARDONYX_WARNING;
    made.place = one.place.c_str();
    made.message = one.message.c_str();
    made.rule = made.advice = made.graph = made.node_name = made.node_output = "";
    made.op = made.detail = "";
    made.node_index = -1;
    fill(finding, "finding", made);
  });
}

sardonyx_status* sardonyx_infer_in_place(const char* path, const sardonyx_infer_options* options,
                                         sardonyx_inference** inference) {
  return guarded([&] {
    required(inference, "inference");
    *inference = made_of(infer_in_place(&required(path, "path"), infer_options(options)));
  });
}

sardonyx_status* sardonyx_inference_state(const sardonyx_inference* inference, size_t index,
                                          sardonyx_inferred_state* state) {
  return guarded([&] {
    const auto& states = required(inference, "inference").states;
    required(state, "state");
    if (index >= states.size()) refuse_index(index, states.size(), "value");
    *state = static_cast<sardonyx_inferred_state>(states[index]);
  });
}

size_t sardonyx_inference_unknown_count(const sardonyx_inference* inference) {
  return is_usable(inference) ? inference->unknowns.size() : 0;
}

sardonyx_status* sardonyx_inference_unknown(const sardonyx_inference* inference, size_t index,
                                            const char** name, const char** bound,
                                            const char** node, const char** reason) {
  return guarded([&] {
    const auto& unknowns = required(inference, "inference").unknowns;
    if (index >= unknowns.size()) refuse_index(index, unknowns.size(), "unknown size");
    const InferredUnknown& one = unknowns[index];
    if (name != nullptr) *name = one.name.c_str();
    if (bound != nullptr) *bound = one.bound.c_str();
    if (node != nullptr) *node = one.node.c_str();
    if (reason != nullptr) *reason = one.reason.c_str();
  });
}

size_t sardonyx_inference_name_count(const sardonyx_inference* inference) {
  return is_usable(inference) ? inference->names.size() : 0;
}

sardonyx_status* sardonyx_inference_name(const sardonyx_inference* inference, size_t index,
                                         const char** name, const char** expression) {
  return guarded([&] {
    const auto& names = required(inference, "inference").names;
    if (index >= names.size()) refuse_index(index, names.size(), "name");
    if (name != nullptr) *name = names[index].name.c_str();
    if (expression != nullptr) *expression = names[index].expression.c_str();
  });
}

void sardonyx_inference_release(sardonyx_inference* inference) { release_handle(inference); }
