// What goes with models: machine, summaries, texts and drawings, plans, passes, rules.
#include <algorithm>

#include "capi/session.h"
#include "capi/views.h"
#include "sardonyx/about.h"
#include "sardonyx/compose.h"
#include "sardonyx/info.h"
#include "sardonyx/machine.h"
#include "sardonyx/passes.h"

#include "capi/named_values.h"

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_limits {
  SARDONYX_TAG('l', 'i');
  MachineLimits limits;
};

struct sardonyx_summary {
  SARDONYX_TAG('s', 'u');
  ModelInfo info;
};

namespace {

struct Step {
  StepDescription of;
  std::string body;
  int depth = 0;
};

}  // namespace

struct sardonyx_plan {
  SARDONYX_TAG('p', 'l');
  std::vector<std::string> guards;
  std::vector<Step> steps;
};

struct sardonyx_pass_graph {
  SARDONYX_TAG('p', 'g');
  const std::function<std::string()>* text;
};

namespace {

void flatten(std::vector<StepDescription> steps, const std::string& body, int depth,
             std::vector<Step>& to) {
  for (StepDescription& step : steps) {  // bodies nest to a bounded depth (Session::steps)
    std::vector<StepDescription::Body> bodies = std::move(step.bodies);
    to.push_back({std::move(step), body, depth});
    for (StepDescription::Body& one : bodies)
      flatten(std::move(one.steps), one.name, depth + 1, to);
  }
}

const Step& step_of(const sardonyx_plan* plan, size_t index) {
  const auto& steps = required(plan, "plan").steps;
  if (index >= steps.size()) refuse_index(index, steps.size(), "step");
  return steps[index];
}

void give_text(const std::vector<std::string>& list, size_t index, const char* what,
               const char** text) {
  required(text, "text");
  if (index >= list.size()) refuse_index(index, list.size(), what);
  *text = list[index].c_str();
}

const std::vector<PassDescription>& all_passes() {
  static const std::vector<PassDescription> passes = optimizer_passes();
  return passes;
}

const std::vector<CheckRule>& all_rules() {
  static const std::vector<CheckRule> rules = check_rules();
  return rules;
}

template <class List>
size_t size_of(const List& (*list)()) {
  size_t size = 0;
  sardonyx_status_release(guarded([&] { size = list().size(); }));
  return size;
}

struct Stopped {};

// Tells the caller of a pass. What it returns ends the call, unless it is null.
void observe(const sardonyx_pass_options& options, const PassRun& run,
             const std::function<std::string()>& text) {
  std::vector<const char*> operators;
  std::vector<int64_t> changes;
  for (const auto& [name, change] : run.operators) {
    operators.push_back(name.c_str());
    changes.push_back(change);
  }
  sardonyx_pass_run told{};
  told.size = sizeof told;
  told.name = run.name.c_str();
  told.graph = run.graph.c_str();
  told.changed = run.changed ? 1 : 0;
  told.nodes_before = run.nodes_before, told.nodes_after = run.nodes_after;
  told.operators = operators.data(), told.operator_changes = changes.data();
  told.operator_count = operators.size();
  told.seconds = run.seconds;
  const sardonyx_pass_graph graph{{}, &text};
  if (sardonyx_status* status = options.observe(&told, &graph, options.user))
    throw error_of(status);
}

}  // namespace

sardonyx_status* sardonyx_about_get(sardonyx_about* given) {
  return guarded([&] {
    static const About known = about();
    sardonyx_about made{};
    made.version = known.version.c_str();
    made.onnx_release = known.onnx_release.c_str();
    made.ir_version = known.ir_version;
    made.opset = known.opset, made.ml_opset = known.ml_opset;
    made.training_opset = known.training_opset;
    made.operators = known.operators;
    made.instruction_set = known.instruction_set.c_str();
    made.images = known.images ? 1 : 0;
    fill(given, "about", made);
  });
}

sardonyx_element_type sardonyx_element_named(const char* name) {
  sardonyx_element_type type = SARDONYX_UNDEFINED;
  sardonyx_status_release(guarded([&] {
    if (name == nullptr) return;
    if (const auto found = element_type_named(name))
      type = static_cast<sardonyx_element_type>(*found);
  }));
  return type;
}

int sardonyx_usable_processors(void) {
  int count = 1;
  sardonyx_status_release(guarded([&] { count = usable_processors(); }));
  return count;
}

sardonyx_status* sardonyx_machine_peak(int threads, double* gflops, double* gbps) {
  return guarded([&] {
    const MachinePeak peak = probe_machine(threads);
    if (gflops != nullptr) *gflops = peak.gflops;
    if (gbps != nullptr) *gbps = peak.gbps;
  });
}

sardonyx_status* sardonyx_limits_measure(int threads, sardonyx_limits** limits) {
  return guarded([&] {
    required(limits, "limits");
    *limits = new sardonyx_limits{{}, measure_limits(threads)};
  });
}

void sardonyx_limits_release(sardonyx_limits* limits) { release_handle(limits); }

size_t sardonyx_limits_count(const sardonyx_limits* limits) {
  return is_usable(limits) ? limits->limits.levels.size() : 0;
}

sardonyx_status* sardonyx_limits_level(const sardonyx_limits* limits, size_t index,
                                       const char** name, int64_t* bytes, double* gbps) {
  return guarded([&] {
    const auto& levels = required(limits, "limits").limits.levels;
    if (index >= levels.size()) refuse_index(index, levels.size(), "level");
    if (name != nullptr) *name = levels[index].name.c_str();
    if (bytes != nullptr) *bytes = levels[index].bytes;
    if (gbps != nullptr) *gbps = levels[index].gbps;
  });
}

double sardonyx_limits_gflops(const sardonyx_limits* limits) {
  return is_usable(limits) ? limits->limits.gflops : 0;
}

sardonyx_status* sardonyx_model_summarize(const sardonyx_model* model,
                                          const char* const* size_names, const int64_t* sizes,
                                          size_t size_count, sardonyx_summary** summary) {
  return guarded([&] {
    required(summary, "summary");
    const auto names = texts(size_names, size_count, "size_names");
    if (size_count > 0) required(sizes, "sizes");
    DimSizes known;
    for (size_t i = 0; i < names.size(); ++i) known[names[i]] = sizes[i];
    *summary = new sardonyx_summary{{}, model_info(required(model, "model").model, known)};
  });
}

void sardonyx_summary_release(sardonyx_summary* summary) { release_handle(summary); }

sardonyx_status* sardonyx_summary_describe(const sardonyx_summary* summary,
                                           sardonyx_summary_info* info) {
  return guarded([&] {
    const ModelInfo& of = required(summary, "summary").info;
    sardonyx_summary_info made{};
    made.file_bytes = of.file_bytes;
    made.nodes = of.nodes;
    made.operator_count = of.operators.size();
    made.parameters = of.parameters, made.parameter_bytes = of.parameter_bytes;
    made.parameter_type_count = of.parameter_types.size();
    made.external_file_count = of.external_files.size();
    made.external_data_present = of.external_data_present;
    made.training = of.training;
    made.has_cost = of.cost ? 1 : 0;
    made.cost_reason = of.cost_reason.c_str();
    if (of.cost) {
      made.flops = of.cost->flops, made.value_bytes = of.cost->value_bytes;
      made.unknown_nodes = of.cost->unknown_nodes;
    }
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_summary_operator(const sardonyx_summary* summary, size_t index,
                                           const char** name, int64_t* count, int* supported) {
  return guarded([&] {
    const auto& operators = required(summary, "summary").info.operators;
    if (index >= operators.size()) refuse_index(index, operators.size(), "operator");
    if (name != nullptr) *name = operators[index].name.c_str();
    if (count != nullptr) *count = operators[index].count;
    if (supported != nullptr) *supported = operators[index].supported ? 1 : 0;
  });
}

sardonyx_status* sardonyx_summary_parameter_type(const sardonyx_summary* summary, size_t index,
                                                 const char** type, int64_t* elements) {
  return guarded([&] {
    const auto& types = required(summary, "summary").info.parameter_types;
    if (index >= types.size()) refuse_index(index, types.size(), "element type");
    if (type != nullptr) *type = types[index].first.c_str();
    if (elements != nullptr) *elements = types[index].second;
  });
}

sardonyx_status* sardonyx_summary_external_file(const sardonyx_summary* summary, size_t index,
                                                const char** path) {
  return guarded([&] {
    const auto& files = required(summary, "summary").info.external_files;
    required(path, "path");
    if (index >= files.size()) refuse_index(index, files.size(), "file of external data");
    *path = files[index].c_str();
  });
}

sardonyx_status* sardonyx_model_text(const sardonyx_model* model,
                                     const sardonyx_text_options* options, sardonyx_bytes** text) {
  return guarded([&] {
    const sardonyx_text_options known = known_part(options);
    TextOptions printing;
    if (known.max_elements > 0) printing.max_elements = known.max_elements;
    printing.annotations = known.no_annotations == 0;
    const Model& given = required(model, "model").model;
    give_bytes(text, [&] { return given.to_text(printing); });
  });
}

sardonyx_status* sardonyx_model_stream(const sardonyx_model* model, sardonyx_form form,
                                       sardonyx_write_function write, void* user) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    if (write == nullptr) refuse_null("write");
    if (form < 0 || form > SARDONYX_FORM_TEXTPROTO)
      fail(ErrorCode::bad_input, "{} is no form of a model file", form);
    try {
      given.write(
          [&](std::string_view piece) {
            if (write(piece.data(), piece.size(), user) == 0) throw Stopped();
          },
          static_cast<ModelForm>(form));
    } catch (const Stopped&) {
      fail(ErrorCode::cancelled, "the caller's function stopped the writing");
    }
  });
}

sardonyx_status* sardonyx_model_draw(const sardonyx_model* model, int svg,
                                     sardonyx_bytes** drawing) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    required(drawing, "drawing");
    *drawing =
        new sardonyx_bytes{{}, given.to_drawing(svg != 0 ? DrawingForm::svg : DrawingForm::dot)};
  });
}

sardonyx_status* sardonyx_model_with_external_data(const sardonyx_model* model, int verify,
                                                   sardonyx_model** whole) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    required(whole, "whole");
    *whole = new sardonyx_model{{}, given.with_external_data(verify != 0)};
  });
}

sardonyx_status* sardonyx_model_add_prefix(const sardonyx_model* model, const char* prefix,
                                           sardonyx_model** renamed) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    required(renamed, "renamed");
    Renaming renaming;
    renaming.prefix = &required(prefix, "prefix");
    *renamed = new sardonyx_model{{}, rename(given, renaming)};
  });
}

sardonyx_status* sardonyx_session_plan(const sardonyx_session* session,
                                       const char* const* input_names,
                                       const sardonyx_value* const* inputs, size_t input_count,
                                       sardonyx_plan** plan) {
  return guarded([&] {
    const Session& of = required(session, "session").session;
    required(plan, "plan");
    auto made = std::make_unique<sardonyx_plan>();
    if (input_count == 0) {
      flatten(of.steps(), "", 0, made->steps);
    } else {
      PlanDescription described =
          of.plan_for(named_values(input_names, inputs, input_count, "input_names", "inputs"));
      made->guards = std::move(described.guards);
      flatten(std::move(described.steps), "", 0, made->steps);
    }
    *plan = made.release();
  });
}

void sardonyx_plan_release(sardonyx_plan* plan) { release_handle(plan); }

size_t sardonyx_plan_step_count(const sardonyx_plan* plan) {
  return is_usable(plan) ? plan->steps.size() : 0;
}

sardonyx_status* sardonyx_plan_step(const sardonyx_plan* plan, size_t index, sardonyx_step* step) {
  return guarded([&] {
    const Step& of = step_of(plan, index);
    sardonyx_step made{};
    made.node = of.of.node.c_str();
    made.origin = of.of.origin.c_str();
    made.kernel = of.of.kernel.c_str();
    made.body = of.body.c_str();
    made.depth = of.depth;
    made.source_count = of.of.sources.size();
    made.refusal_count = of.of.refused.size();
    fill(step, "step", made);
  });
}

sardonyx_status* sardonyx_plan_source(const sardonyx_plan* plan, size_t index, size_t which,
                                      const char** node) {
  return guarded([&] {
    required(node, "node");
    give_text(step_of(plan, index).of.sources, which, "source", node);
  });
}

sardonyx_status* sardonyx_plan_refusal(const sardonyx_plan* plan, size_t index, size_t which,
                                       const char** text) {
  return guarded([&] { give_text(step_of(plan, index).of.refused, which, "refusal", text); });
}

size_t sardonyx_plan_guard_count(const sardonyx_plan* plan) {
  return is_usable(plan) ? plan->guards.size() : 0;
}

sardonyx_status* sardonyx_plan_guard(const sardonyx_plan* plan, size_t index, const char** text) {
  return guarded([&] { give_text(required(plan, "plan").guards, index, "guard", text); });
}

sardonyx_status* sardonyx_session_memory(const sardonyx_session* session, int64_t* packed_bytes,
                                         int64_t* arena_bytes) {
  return guarded([&] {
    const Session& of = required(session, "session").session;
    if (packed_bytes != nullptr) *packed_bytes = of.packed_bytes();
    if (arena_bytes != nullptr) *arena_bytes = of.arena_bytes();
  });
}

size_t sardonyx_pass_count(void) { return size_of(all_passes); }

sardonyx_status* sardonyx_pass(size_t index, const char** name, const char** summary) {
  return guarded([&] {
    const auto& passes = all_passes();
    if (index >= passes.size()) refuse_index(index, passes.size(), "pass");
    if (name != nullptr) *name = passes[index].name.c_str();
    if (summary != nullptr) *summary = passes[index].summary.c_str();
  });
}

sardonyx_status* sardonyx_model_optimized_text(const sardonyx_model* model,
                                               const sardonyx_session_options* options,
                                               const char* stop_after, size_t max_elements,
                                               sardonyx_bytes** text) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    PassOptions passing;
    if (stop_after != nullptr) passing.stop_after = stop_after;
    if (max_elements > 0) passing.max_elements = max_elements;
    give_bytes(text, [&] { return optimized_text(given, session_options(options), passing); });
  });
}

sardonyx_status* sardonyx_model_run_passes(const sardonyx_model* model,
                                           const sardonyx_session_options* options,
                                           const sardonyx_pass_options* pass_options,
                                           sardonyx_bytes** text) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    const sardonyx_pass_options known = known_part(pass_options);
    PassOptions passing;
    if (known.stop_after != nullptr) passing.stop_after = known.stop_after;
    if (known.max_elements > 0) passing.max_elements = known.max_elements;
    if (known.observe != nullptr) {
      passing.observe = [&](const PassRun& run, const std::function<std::string()>& graph) {
        observe(known, run, graph);
      };
    }
    give_bytes(text, [&] { return optimized_text(given, session_options(options), passing); });
  });
}

sardonyx_status* sardonyx_pass_graph_text(const sardonyx_pass_graph* graph, sardonyx_bytes** text) {
  return guarded([&] {
    const auto& write = *required(graph, "graph").text;
    give_bytes(text, [&] { return write(); });
  });
}

size_t sardonyx_rule_count(void) { return size_of(all_rules); }

sardonyx_status* sardonyx_rule_get(size_t index, sardonyx_rule* rule) {
  return guarded([&] {
    const auto& rules = all_rules();
    if (index >= rules.size()) refuse_index(index, rules.size(), "rule");
    const CheckRule& one = rules[index];
    fill(rule, "rule",
         sardonyx_rule{0, text(one.id), text(one.title), static_cast<sardonyx_level>(one.runnable),
                       static_cast<sardonyx_level>(one.standard),
                       static_cast<sardonyx_level>(one.strict)});
  });
}
