/* What goes with models and their runs, through the C interface: values in files and as text, what
 * distinguishes values, what models hold, plans, passes, rules, and fields of options. */
#include <limits.h>
#include <stdlib.h>

#include "checks.h"

static const int64_t one_row[] = {1, 2};

static int same(const char* a, const char* b) { return strcmp(a, b) == 0; }

static int holds(const char* text, const char* part) {
  const int is_there = strstr(text, part) != NULL;
  if (!is_there) fprintf(stderr, "%s: \"%s\" has no \"%s\"\n", test, text, part);
  return is_there;
}

/* Whether the bytes hold this text; releases them. */
static int bytes_hold(sardonyx_bytes* bytes, const char* part) {
  const int is_there = holds(sardonyx_bytes_data(bytes, NULL), part);
  sardonyx_bytes_release(bytes);
  return is_there;
}

static sardonyx_model* parsed(const char* text) {
  sardonyx_model* model = NULL;
  OK(sardonyx_model_parse(text, strlen(text), NULL, &model));
  return model;
}

static void this_build(void) {
  sardonyx_about about = SARDONYX_INIT(sardonyx_about);
  sardonyx_limits* limits = NULL;
  const char* name = NULL;
  double gflops = 0, gbps = 0;
  int64_t bytes = 0;
  size_t i;
  test = "this_build";
  OK(sardonyx_about_get(&about));
  CHECK(same(about.version, sardonyx_version()) && about.opset >= 23 && about.operators > 200);
  CHECK(strlen(about.onnx_release) > 0 && strlen(about.instruction_set) > 0);
  CHECK(sardonyx_element_named("FLOAT") == SARDONYX_FLOAT32);
  CHECK(sardonyx_element_named("int4") == SARDONYX_INT4);
  CHECK(sardonyx_element_named("flot") == SARDONYX_UNDEFINED);
  CHECK(sardonyx_element_named(NULL) == SARDONYX_UNDEFINED);
  CHECK(sardonyx_usable_processors() >= 1);
  OK(sardonyx_limits_measure(1, &limits));
  CHECK(sardonyx_limits_count(limits) >= 1 && sardonyx_limits_gflops(limits) > 0);
  for (i = 0; i < sardonyx_limits_count(limits); ++i) {
    OK(sardonyx_limits_level(limits, i, &name, &bytes, &gbps));
    CHECK(strlen(name) > 0 && bytes > 0 && gbps > 0);
  }
  CHECK(same(name, "memory") && bytes == INT64_MAX);
  FAILS(sardonyx_limits_level(limits, i, NULL, NULL, NULL), SARDONYX_BAD_INPUT, "no level");
  sardonyx_limits_release(limits);
  FAILS(sardonyx_machine_peak(0, &gflops, &gbps), SARDONYX_BAD_INPUT, "0");
}

static void files_of_values(void) {
  const float numbers[] = {3, 5};
  const char* const names[] = {"a", "b"};
  sardonyx_value *x = floats(2, one_row, numbers), *again = NULL;
  const sardonyx_value* values[2];
  sardonyx_named_values *list = NULL, *back = NULL;
  const char* name = NULL;
  test = "files_of_values";
  values[0] = values[1] = x;
  OK(sardonyx_value_write(x, "capi_tools.npy"));
  OK(sardonyx_value_read("capi_tools.npy", SARDONYX_UNDEFINED, &again));
  CHECK(elements(again)[1] == 5);
  sardonyx_value_release(again);
  FAILS(sardonyx_value_read("capi_missing.npy", SARDONYX_UNDEFINED, &again), SARDONYX_UNREADABLE,
        "capi_missing.npy");
  FAILS(sardonyx_value_read("capi_tools.npy", 99, &again), SARDONYX_BAD_INPUT, "99");
  FAILS(sardonyx_value_write(x, "capi_tools.docx"), SARDONYX_BAD_INPUT, "docx");
  OK(sardonyx_named_values_create(names, values, 2, &list));
  OK(sardonyx_npz_write(list, "capi_tools.npz"));
  OK(sardonyx_npz_read("capi_tools.npz", &back));
  CHECK(sardonyx_named_values_count(back) == 2);
  OK(sardonyx_named_values_get(back, 1, &name, &again));
  CHECK(same(name, "b") && elements(again)[0] == 3);
  sardonyx_value_release(again);
  FAILS(sardonyx_named_values_get(back, 2, &name, NULL), SARDONYX_BAD_INPUT, "no value 2 of 2");
  sardonyx_named_values_release(back);
  sardonyx_named_values_release(list);
  OK(sardonyx_outputs_write("capi_tools_out", values, 2));
  OK(sardonyx_run_read("capi_tools_out", &back));
  CHECK(sardonyx_named_values_count(back) == 2);
  sardonyx_named_values_release(back);
  sardonyx_value_release(x);
  remove("capi_tools_out/output_0.npy");
  remove("capi_tools_out/output_1.npy");
  remove("capi_tools_out");
  remove("capi_tools.npz");
}

static void inputs(void) {
  sardonyx_session* session = session_of(affine, NULL);
  sardonyx_model* model = parsed(affine);
  sardonyx_fill_options options = SARDONYX_INIT(sardonyx_fill_options);
  sardonyx_image_options image = SARDONYX_INIT(sardonyx_image_options);
  const char* size_name = "N";
  const int64_t size = 3;
  const int64_t* dims = NULL;
  sardonyx_value* value = NULL;
  test = "inputs"; /* of capi_tools.npy, which the test before has left */
  OK(sardonyx_input_read(session, 0, model, "capi_tools.npy", &image, &value));
  CHECK(elements(value)[1] == 5);
  sardonyx_value_release(value);
  image.layout = 7;
  FAILS(sardonyx_input_read(session, 0, model, "capi_tools.npy", &image, &value),
        SARDONYX_BAD_INPUT, "no layout");
  OK(sardonyx_input_parse(session, 0, "[[1, 2.5]]", &value));
  CHECK(elements(value)[1] == 2.5f);
  sardonyx_value_release(value);
  FAILS(sardonyx_input_parse(session, 0, "[1, [2]]", &value), SARDONYX_BAD_INPUT, "");
  FAILS(sardonyx_input_parse(session, 9, "1", &value), SARDONYX_BAD_INPUT, "no input 9");
  options.size_names = &size_name;
  options.sizes = &size;
  options.size_count = 1;
  options.ones = 1;
  OK(sardonyx_input_fill(session, 0, &options, &value));
  OK(sardonyx_tensor_type(value, NULL, NULL, &dims, NULL));
  CHECK(dims[0] == 3 && elements(value)[5] == 1);
  sardonyx_value_release(value);
  options.ones = 0;
  options.low = 5;
  options.high = 6;
  OK(sardonyx_input_fill(session, 0, &options, &value));
  CHECK(elements(value)[4] >= 5 && elements(value)[4] < 6);
  sardonyx_value_release(value);
  sardonyx_model_release(model);
  sardonyx_session_release(session);
  remove("capi_tools.npy");
}

static void texts(void) {
  const float numbers[] = {3, 5};
  const int64_t two[] = {2}, three[] = {3}, integers[] = {7, -8};
  double doubles[2] = {0, 0};
  sardonyx_value *x = floats(2, one_row, numbers), *other = NULL;
  sardonyx_bytes* text = NULL;
  test = "texts";
  OK(sardonyx_value_type_text(x, &text));
  CHECK(bytes_hold(text, "float[1,2]"));
  OK(sardonyx_value_preview(x, 1, &text));
  CHECK(bytes_hold(text, "3, "));
  OK(sardonyx_value_to_json(x, &text));
  CHECK(bytes_hold(text, "[[3.0,5.0]]"));
  OK(sardonyx_tensor_reshape(x, 1, two, &other));
  CHECK(elements(other) == elements(x));
  sardonyx_value_release(other);
  FAILS(sardonyx_tensor_reshape(x, 1, three, &other), SARDONYX_BAD_INPUT, "");
  OK(sardonyx_tensor_read_doubles(x, doubles, 2));
  CHECK(doubles[0] == 3 && doubles[1] == 5);
  sardonyx_value_release(x);
  OK(sardonyx_tensor_from_integers(SARDONYX_INT4, 1, two, integers, 2, &other));
  OK(sardonyx_tensor_read_doubles(other, doubles, 2));
  CHECK(doubles[0] == 7 && doubles[1] == -8);
  sardonyx_value_release(other);
  FAILS(sardonyx_tensor_from_integers(SARDONYX_INT4, 1, three, integers, 2, &other),
        SARDONYX_BAD_INPUT, "");
}

static void comparing(void) {
  const float numbers[] = {3, 5}, others[] = {3, 6};
  const char *const x_name = "x", *const y_name = "y";
  sardonyx_value *x = floats(2, one_row, numbers), *y = floats(2, one_row, others);
  sardonyx_named_values *first = NULL, *second = NULL;
  sardonyx_comparisons* comparisons = NULL;
  sardonyx_comparison one = SARDONYX_INIT(sardonyx_comparison);
  sardonyx_tolerance tolerance = SARDONYX_INIT(sardonyx_tolerance);
  int64_t indices[4] = {0, 0, 0, 0};
  double probabilities[4] = {0, 0, 0, 0};
  size_t rows = 0, columns = 0;
  int given = 1;
  test = "comparing";
  OK(sardonyx_values_compare(x, y, NULL, &comparisons));
  OK(sardonyx_comparisons_get(comparisons, 0, &one));
  CHECK(!one.agree && one.differing == 1 && one.elements == 2 && one.largest == 1);
  CHECK(strlen(one.reason) > 0 && same(one.name, ""));
  FAILS(sardonyx_comparisons_get(comparisons, 1, &one), SARDONYX_BAD_INPUT, "no comparison 1");
  sardonyx_comparisons_release(comparisons);
  tolerance.has_absolute = tolerance.has_relative = 1;
  tolerance.absolute = 1;
  OK(sardonyx_values_compare(x, y, &tolerance, &comparisons));
  OK(sardonyx_comparisons_get(comparisons, 0, &one));
  CHECK(one.agree && same(one.reason, ""));
  sardonyx_comparisons_release(comparisons);
  OK(sardonyx_named_values_create(&x_name, (const sardonyx_value* const*)&x, 1, &first));
  OK(sardonyx_named_values_create(&y_name, (const sardonyx_value* const*)&x, 1, &second));
  OK(sardonyx_runs_compare(first, second, NULL, &comparisons));
  CHECK(sardonyx_comparisons_count(comparisons) == 2);
  OK(sardonyx_comparisons_get(comparisons, 0, &one));
  CHECK(same(one.name, "x") && one.is_missing);
  sardonyx_comparisons_release(comparisons);
  sardonyx_named_values_release(first);
  sardonyx_named_values_release(second);

  OK(sardonyx_rank_answers(x, 2, 2, indices, probabilities, &rows, &columns, &given));
  CHECK(rows == 1 && columns == 2 && indices[0] == 1 && indices[1] == 0);
  CHECK(!given && probabilities[0] > 0.8 && probabilities[1] < 0.2);
  FAILS(sardonyx_rank_answers(x, SIZE_MAX, 2, indices, probabilities, &rows, &columns, NULL),
        SARDONYX_BAD_INPUT, "2^31");
  sardonyx_value_release(x);
  sardonyx_value_release(y);
}

static void summaries(void) {
  sardonyx_model* model = parsed(affine);
  sardonyx_summary* summary = NULL;
  sardonyx_summary_info info = SARDONYX_INIT(sardonyx_summary_info);
  const char *name = NULL, *size_name = "N", *wrong = "M";
  const int64_t size = 10;
  int64_t count = 0;
  int supported = 0;
  test = "summaries";
  OK(sardonyx_model_summarize(model, &size_name, &size, 1, &summary));
  OK(sardonyx_summary_describe(summary, &info));
  CHECK(info.nodes == 2 && info.operator_count == 2 && info.parameters == 2);
  CHECK(info.has_cost && info.flops == 40 && !info.training && info.external_file_count == 0);
  OK(sardonyx_summary_operator(summary, 0, &name, &count, &supported));
  CHECK(count == 1 && supported == 1 && strlen(name) == 3);
  OK(sardonyx_summary_parameter_type(summary, 0, &name, &count));
  CHECK(same(name, "float") && count == 2);
  FAILS(sardonyx_summary_external_file(summary, 0, &name), SARDONYX_BAD_INPUT, "no file");
  sardonyx_summary_release(summary);
  FAILS(sardonyx_model_summarize(model, &wrong, &size, 1, &summary), SARDONYX_BAD_INPUT, "M");
  sardonyx_model_release(model);
}

static size_t written = 0;
static int on_write(const void* data, size_t size, void* user) {
  (void)data;
  written += size;
  return user == NULL;
}

static void models_as_text(void) {
  sardonyx_model *model = parsed(affine), *other = NULL;
  sardonyx_text_options options = SARDONYX_INIT(sardonyx_text_options);
  sardonyx_bytes* text = NULL;
  size_t size = 0;
  int stop = 1;
  test = "models_as_text";
  options.max_elements = 1;
  OK(sardonyx_model_text(model, &options, &text));
  CHECK(bytes_hold(text, "{1, ...}"));
  OK(sardonyx_model_draw(model, 0, &text));
  CHECK(bytes_hold(text, "digraph"));
  OK(sardonyx_model_draw(model, 1, &text));
  CHECK(bytes_hold(text, "<svg"));
  OK(sardonyx_model_write(model, SARDONYX_FORM_BINARY, &text));
  (void)sardonyx_bytes_data(text, &size);
  sardonyx_bytes_release(text);
  OK(sardonyx_model_stream(model, SARDONYX_FORM_BINARY, on_write, NULL));
  CHECK(written == size && size > 0);
  FAILS(sardonyx_model_stream(model, SARDONYX_FORM_JSON, on_write, &stop), SARDONYX_CANCELLED,
        "stopped");
  FAILS(sardonyx_model_stream(model, 9, on_write, NULL), SARDONYX_BAD_INPUT, "no form");
  OK(sardonyx_model_add_prefix(model, "p_", &other));
  OK(sardonyx_model_text(other, NULL, &text));
  CHECK(bytes_hold(text, "p_y = Mul"));
  sardonyx_model_release(other);
  OK(sardonyx_model_with_external_data(model, 1, &other));
  sardonyx_model_release(other);
  sardonyx_model_release(model);
}

static void plans(void) {
  static const char branches[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N, 2] x, bool c) => (float[N, 2] y) {\n"
      "  y = If (c) <then_branch = t () => (u) { u = Relu (x) },"
      " else_branch = e () => (v) { v = Softmax (x) }>\n}\n";
  const float numbers[] = {3, 5};
  const char* names[] = {"x", "c"};
  sardonyx_session* session = session_of(branches, NULL);
  sardonyx_value* given[2] = {NULL, NULL};
  sardonyx_plan* plan = NULL;
  sardonyx_step step = SARDONYX_INIT(sardonyx_step);
  const char* text = NULL;
  int64_t packed = -1, arena = -1;
  size_t i, k;
  int deepest = 0;
  test = "plans";
  OK(sardonyx_session_plan(session, NULL, NULL, 0, &plan));
  CHECK(sardonyx_plan_step_count(plan) == 3 && sardonyx_plan_guard_count(plan) == 0);
  for (i = 0; i < sardonyx_plan_step_count(plan); ++i) {
    OK(sardonyx_plan_step(plan, i, &step));
    CHECK(strlen(step.node) > 0 && strlen(step.kernel) > 0);
    CHECK((step.depth == 0) == same(step.body, ""));
    if (step.depth > deepest) deepest = step.depth;
    for (k = 0; k < step.source_count; ++k) OK(sardonyx_plan_source(plan, i, k, &text));
    for (k = 0; k < step.refusal_count; ++k) OK(sardonyx_plan_refusal(plan, i, k, &text));
    FAILS(sardonyx_plan_refusal(plan, i, k, &text), SARDONYX_BAD_INPUT, "no refusal");
  }
  CHECK(deepest == 1);
  FAILS(sardonyx_plan_step(plan, i, &step), SARDONYX_BAD_INPUT, "no step 3");
  FAILS(sardonyx_plan_guard(plan, 0, &text), SARDONYX_BAD_INPUT, "no guard 0");
  sardonyx_plan_release(plan);
  given[0] = floats(2, one_row, numbers);
  OK(sardonyx_tensor_create(SARDONYX_BOOL, 0, NULL, &given[1]));
  OK(sardonyx_session_plan(session, names, (const sardonyx_value* const*)given, 2, &plan));
  CHECK(sardonyx_plan_step_count(plan) == 3);
  sardonyx_plan_release(plan);
  names[1] = "d";
  FAILS(sardonyx_session_plan(session, names, (const sardonyx_value* const*)given, 2, &plan),
        SARDONYX_BAD_INPUT, "'d'");
  OK(sardonyx_session_memory(session, &packed, &arena));
  CHECK(packed >= 0 && arena >= 0);
  sardonyx_value_release(given[0]);
  sardonyx_value_release(given[1]);
  sardonyx_session_release(session);
}

static void passes_and_rules(void) {
  sardonyx_model* model = parsed(affine);
  sardonyx_bytes* text = NULL;
  sardonyx_rule rule = SARDONYX_INIT(sardonyx_rule);
  const char *name = NULL, *summary = NULL;
  size_t i;
  test = "passes_and_rules";
  CHECK(sardonyx_pass_count() > 10);
  for (i = 0; i < sardonyx_pass_count(); ++i) {
    OK(sardonyx_pass(i, &name, &summary));
    CHECK(strlen(name) > 0 && strlen(summary) > 0);
  }
  FAILS(sardonyx_pass(i, &name, &summary), SARDONYX_BAD_INPUT, "no pass");
  OK(sardonyx_model_optimized_text(model, NULL, NULL, 0, &text));
  CHECK(bytes_hold(text, "=>"));
  FAILS(sardonyx_model_optimized_text(model, NULL, "no-pass", 0, &text), SARDONYX_BAD_INPUT,
        "no-pass");
  sardonyx_model_release(model);
  CHECK(sardonyx_rule_count() > 50);
  for (i = 0; i < sardonyx_rule_count(); ++i) {
    OK(sardonyx_rule_get(i, &rule));
    CHECK(strlen(rule.id) > 0 && strlen(rule.title) > 0 && rule.strict >= rule.standard);
  }
  FAILS(sardonyx_rule_get(i, &rule), SARDONYX_BAD_INPUT, "no rule");
}

static void checking(void) {
  static const char broken[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N, 2] x) => (float[N, 2] y) {\n  [sum] y = Add<none = 1> (x)\n"
      "  z = com.nobody.Op (x)\n}\n";
  sardonyx_model* model = NULL;
  sardonyx_report* report = NULL;
  sardonyx_check_options options = SARDONYX_INIT(sardonyx_check_options);
  sardonyx_finding finding = SARDONYX_INIT(sardonyx_finding);
  size_t i, places = 0, all = 0;
  test = "checking";
  model = parsed(broken);
  OK(sardonyx_check(model, &options, &report));
  all = sardonyx_report_count(report);
  for (i = 0; i < all; ++i) {
    OK(sardonyx_report_finding(report, i, &finding));
    if (same(finding.node_name, "sum"))
      places += finding.node_index == 0 && same(finding.op, "Add") && holds(finding.graph, "g");
  }
  CHECK(places > 0);
  sardonyx_report_release(report);
  options.max_findings = 1;
  OK(sardonyx_check(model, &options, &report));
  CHECK(sardonyx_report_count(report) < all);
  sardonyx_report_release(report);
  options.strict = options.runnable = 1;
  FAILS(sardonyx_check(model, &options, &report), SARDONYX_BAD_INPUT, "both");
  options.strict = 0;
  OK(sardonyx_check(model, &options, &report));
  sardonyx_report_release(report);
  sardonyx_model_release(model);
}

static void inferring(void) {
  static const char late[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N, 2] x) => (y) { i = NonZero (x) y = Neg (i) }\n";
  sardonyx_model* model = parsed(late);
  sardonyx_inference* inference = NULL;
  sardonyx_infer_options options = SARDONYX_INIT(sardonyx_infer_options);
  sardonyx_inferred_state state = -1;
  const char *name = NULL, *bound = NULL, *node = NULL, *reason = NULL, *size_name = "N";
  const int64_t size = 2;
  test = "inferring";
  OK(sardonyx_infer(model, NULL, &inference));
  OK(sardonyx_inference_state(inference, 0, &state));
  CHECK(state == SARDONYX_INFERRED_KNOWN);
  OK(sardonyx_inference_state(inference, 1, &state));
  CHECK(state == SARDONYX_INFERRED_BOUNDED);
  CHECK(sardonyx_inference_unknown_count(inference) == 1);
  OK(sardonyx_inference_unknown(inference, 0, &name, &bound, &node, &reason));
  CHECK(holds(bound, "N") && holds(node, "NonZero") && strlen(name) > 0);
  FAILS(sardonyx_inference_unknown(inference, 1, NULL, NULL, NULL, NULL), SARDONYX_BAD_INPUT,
        "no unknown size");
  FAILS(sardonyx_inference_state(inference, 99, &state), SARDONYX_BAD_INPUT, "no value 99");
  CHECK(sardonyx_inference_name_count(inference) == 0);
  FAILS(sardonyx_inference_name(inference, 0, NULL, NULL), SARDONYX_BAD_INPUT, "no name 0");
  sardonyx_inference_release(inference);
  OK(sardonyx_model_save(model, "capi_tools.onnx", NULL));
  OK(sardonyx_infer_in_place("capi_tools.onnx", NULL, &inference));
  sardonyx_inference_release(inference);
  options.size_names = &size_name;
  options.sizes = &size;
  options.size_count = 1;
  FAILS(sardonyx_infer_in_place("capi_tools.onnx", &options, &inference), SARDONYX_BAD_INPUT, "");
  sardonyx_model_release(model);
  remove("capi_tools.onnx");
}

/* Fields of options that were added later. */
static void newer_options(void) {
  sardonyx_model *model = parsed(affine), *other = NULL;
  sardonyx_load_options loading = SARDONYX_INIT(sardonyx_load_options);
  sardonyx_save_options saving = SARDONYX_INIT(sardonyx_save_options);
  sardonyx_diff_options diffing = SARDONYX_INIT(sardonyx_diff_options);
  sardonyx_convert_options converting = SARDONYX_INIT(sardonyx_convert_options);
  sardonyx_model_info info = SARDONYX_INIT(sardonyx_model_info);
  sardonyx_differences* differences = NULL;
  test = "newer_options";
  saving.form = SARDONYX_FORM_JSON + 1;
  OK(sardonyx_model_save(model, "capi_tools.model", &saving));
  loading.form = SARDONYX_FORM_JSON + 1;
  OK(sardonyx_model_load("capi_tools.model", &loading, &other));
  OK(sardonyx_model_describe(other, &info));
  CHECK(info.opset == 21 && holds(info.path, "capi_tools.model") && !info.has_training_info);
  CHECK(!info.has_external_data);
  sardonyx_model_release(other);
  loading.form = 9;
  FAILS(sardonyx_model_load("capi_tools.model", &loading, &other), SARDONYX_BAD_INPUT, "9");
  remove("capi_tools.model");

  saving.form = 0;
  saving.external_data = "capi_tools.data";
  saving.threshold = 1;
  OK(sardonyx_model_save(model, "capi_tools.onnx", &saving));
  remove("capi_tools.data");
  loading.form = 0;
  FAILS(sardonyx_model_load("capi_tools.onnx", &loading, &other), SARDONYX_UNREADABLE,
        "capi_tools.data");
  loading.leave_external_data = 1;
  OK(sardonyx_model_load("capi_tools.onnx", &loading, &other));
  OK(sardonyx_model_describe(other, &info));
  CHECK(info.has_external_data);
  sardonyx_model_release(other);
  remove("capi_tools.onnx");

  OK(sardonyx_model_add_prefix(model, "p_", &other));
  diffing.most = 1;
  OK(sardonyx_model_diff(model, other, &diffing, &differences));
  CHECK(sardonyx_differences_count(differences) == 1);
  CHECK(sardonyx_differences_left_out(differences) > 0);
  sardonyx_differences_release(differences);
  sardonyx_model_release(other);

  converting.opset = 22;
  OK(sardonyx_model_convert_version(model, &converting, &other));
  OK(sardonyx_model_describe(other, &info));
  CHECK(info.opset == 22);
  sardonyx_model_release(other);
  converting.memory_limit = 100;
  FAILS(sardonyx_model_convert_version(model, &converting, &other), SARDONYX_OUT_OF_MEMORY, "");
  converting.memory_limit = -1;
  FAILS(sardonyx_model_convert_version(model, &converting, &other), SARDONYX_BAD_INPUT, "-1");
  sardonyx_model_release(model);
}

/* Handles that are none: released, or of another kind. */
static void wrong_handles(void) {
  sardonyx_model* model = parsed(affine);
  sardonyx_session* session = NULL;
  test = "wrong_handles";
  OK(sardonyx_session_create(model, NULL, &session));
  FAILS(sardonyx_model_graph((const sardonyx_model*)(const void*)session, NULL), SARDONYX_BAD_INPUT,
        "the argument 'model' is no such handle");
  sardonyx_model_release((sardonyx_model*)(void*)session); /* does nothing */
  CHECK(sardonyx_session_output_count(session) == 2);
  CHECK(sardonyx_session_output_count((const sardonyx_session*)(const void*)model) == 0);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
}

int main(void) {
  this_build();
  files_of_values();
  inputs();
  texts();
  comparing();
  summaries();
  models_as_text();
  plans();
  passes_and_rules();
  checking();
  inferring();
  newer_options();
  wrong_handles();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
