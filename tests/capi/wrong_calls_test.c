/* Every function of the C interface called wrongly: with NULL, with structs of no size, with
 * handles of another kind and released ones, with indices that are not there, with numbers that
 * mean nothing. Each call gives a status with a message, leaves its results alone, and leaks
 * nothing. The calls are made from the headers by wrong_calls.py. */
#include <limits.h>
#include <stdlib.h>

#include "checks.h"

#ifndef SANITIZED
#define SANITIZED 0 /* 1: sanitizers tell by themselves what is read after its release, and leaks \
                     */
#endif

enum { ANY, REFUSED };

typedef struct wrong_function {
  const char* name;
  int (*call)(int which); /* 0 where there is no such way */
} wrong_function;

static const char* function = "";
static const char* way = "";
static const char* parameters = ""; /* of the function, each with a space behind it; *: any */

/* What calls are made with. */
static struct {
  sardonyx_value *value, *strings, *sequence, *map, *optional, *sparse, *keys, *pair;
  const sardonyx_value* values[1];
  const sardonyx_value* two_values[2];
  sardonyx_model* model;
  sardonyx_session* session;
  sardonyx_binding* binding;
  sardonyx_report* report;
  sardonyx_bytes* bytes;
  sardonyx_differences* differences;
  sardonyx_editor* editor;
  sardonyx_inference* inference;
  sardonyx_threads* threads;
  sardonyx_cancel* cancel;
  sardonyx_profile* profile;
  sardonyx_training* training;
  sardonyx_operators* operators;
  sardonyx_signatures* signatures;
  sardonyx_operator_set* operator_set;
  sardonyx_named_values* named_values;
  sardonyx_limits* limits;
  sardonyx_summary* summary;
  sardonyx_plan* plan;
  sardonyx_comparisons* comparisons;
  sardonyx_training_data* training_data;
  sardonyx_trainable_report* trainable_report;
  sardonyx_fit_result* fit_result;
  sardonyx_metrics* metrics;
  sardonyx_status* status;
  sardonyx_graph graph;
  sardonyx_node node;
  sardonyx_function function;
  sardonyx_attribute attribute, strings_attribute, float_attribute, int_attribute, floats_attribute,
      ints_attribute;
  sardonyx_declared_value declared_value;
  sardonyx_declared_type declared_type;
  sardonyx_stored_tensor stored_tensor;
  sardonyx_stored_sparse stored_sparse;
  const char* input_names[1];
  const char* output_names[1];
  const char* dim_names[1];
  const char* new_names[2];
  int64_t dims[2];
  float numbers[2];
  size_t sizes[2];
  float memory[2];
  int64_t room[2];
  int64_t places[1];
  size_t order[2];
  sardonyx_dim dim;
  const char* file;
  size_t file_size;
  sardonyx_bytes* file_bytes;
} fix;

static const char* const no_names[] = {NULL, NULL};
static const sardonyx_value* const no_values[] = {NULL, NULL};
static const sardonyx_value* wrong_values[2];

static const char one_signature[] = "Nothing\n since 1\n in x: T\n out y: T\n where T in float";

static const char rich[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"local\" : 1], metadata_props: [\"key\": \"v\"]>\n"
    "g (float[N, 2] x, bool c) => (float[N, 2] y, z) <float[2] w = {1, 2}> {\n"
    "  y = If (c) <then_branch = t () => (u) { u = Relu (x) },"
    " else_branch = e () => (v) { v = Add (x, w) }>\n"
    "  s = Constant<sparse_value = sparse_tensor(float[3]) {float[1] {1}, int64[1] {2}}> ()\n"
    "  z = local.F<strings = [\"one\"], real = 1.5, number = 2, reals = [1.5], numbers = [2]> (y)\n"
    "}\n"
    "<domain: \"local\", opset_import: [\"\" : 21]>\n"
    "F <strings, real, number, reals, numbers> (p) => (q) { q = Identity (p) }\n";

/* What a callback of a run gets is released there. */
static void on_done(sardonyx_status* status, sardonyx_value** outputs, size_t count, void* user) {
  size_t i;
  (void)user;
  for (i = 0; i < count; ++i) sardonyx_value_release(outputs[i]);
  sardonyx_status_release(status);
}

static size_t on_read(void* buffer, size_t size, void* user) {
  (void)buffer, (void)size, (void)user;
  return 0;
}

static int on_write(const void* data, size_t size, void* user) {
  (void)data, (void)size, (void)user;
  return 1;
}

static int on_visit(const sardonyx_node_place* place, sardonyx_node node, void* user) {
  (void)place, (void)node, (void)user;
  return 1;
}

static int on_accept(const sardonyx_value* const* outputs, size_t count, void* user) {
  (void)outputs, (void)count, (void)user;
  return 1;
}

static void on_piece(void* user, int64_t begin, int64_t end) { (void)user, (void)begin, (void)end; }

static sardonyx_status* on_infer(sardonyx_shape_context* context, void* user) {
  (void)user;
  return sardonyx_shape_set_like(context, 0, 0);
}

static sardonyx_status* on_run(sardonyx_kernel_context* context, void* kernel, void* user) {
  (void)context, (void)kernel, (void)user;
  return NULL;
}

static void release_managed(void* managed) {
  sardonyx_value* value = NULL;
  if (managed == NULL) return;
  OK(sardonyx_tensor_from_dlpack(managed, 1, &value));
  sardonyx_value_release(value);
}

/* A handle that was released; where sanitizers would tell of it, memory that is no handle. */
static void* dead_handle(void) {
  static size_t no_handle[64];
  static void* volatile dead = NULL;
  sardonyx_profile* profile = NULL;
  if (SANITIZED) return no_handle;
  OK(sardonyx_profile_create(1, &profile));
  dead = profile;
  sardonyx_profile_release(profile);
  return dead;
}

/* Whether the argument that a message says to be NULL is one of the function's. */
static int names_argument(const char* message) {
  const char* name = strstr(message, "the argument '");
  const char* at;
  size_t length;
  if (name == NULL) return 1;
  name += strlen("the argument '");
  length = strcspn(name, "'");
  for (at = parameters; *at != 0; at += strcspn(at, " ") + 1) {
    if (*at == '*' || (strcspn(at, " ") == length && strncmp(at, name, length) == 0)) return 1;
  }
  return 0;
}

/* Whether the call failed. */
static int judge(sardonyx_status* status, int expected) {
  const sardonyx_code code = sardonyx_status_code(status);
  const char* message = sardonyx_status_message(status);
  const int is_sound = status == NULL || (code >= SARDONYX_UNREADABLE && code < SARDONYX_INTERNAL &&
                                          strlen(message) > 0 && message[0] != ' ');
  const int is_expected =
      (expected == ANY || code == SARDONYX_BAD_INPUT) && names_argument(message);
  ++checks;
  if (!is_sound || !is_expected) {
    ++failures;
    fprintf(stderr, "%s: %s: code %d, \"%s\"\n", function, way, (int)code, message);
  }
  CHECK(sardonyx_status_location(status) != NULL);
  sardonyx_status_release(status);
  return status != NULL;
}

#include "wrong_calls.inc"

static void make_values(void) {
  static const int64_t one_row[] = {1, 2}, two[] = {2}, integers[] = {0, 1};
  static const char* const texts[] = {"a", "b"};
  const float numbers[] = {3, 5};
  void* data = NULL;
  fix.value = floats(2, one_row, numbers);
  fix.pair = floats(1, two, numbers);
  OK(sardonyx_tensor_create_strings(1, two, texts, NULL, &fix.strings));
  OK(sardonyx_tensor_create(SARDONYX_INT64, 1, two, &fix.keys));
  OK(sardonyx_tensor_mutable_data(fix.keys, &data, NULL));
  memcpy(data, integers, sizeof integers);
  fix.values[0] = fix.two_values[0] = fix.two_values[1] = fix.value;
  OK(sardonyx_sequence_create(fix.values, 1, &fix.sequence));
  OK(sardonyx_map_create(fix.keys, fix.two_values, 2, &fix.map));
  OK(sardonyx_optional_create(fix.value, &fix.optional));
  OK(sardonyx_sparse_create(fix.pair, fix.keys, 1, two, &fix.sparse));
}

static sardonyx_attribute attribute_named(sardonyx_node node, const char* name) {
  sardonyx_attribute attribute;
  memset(&attribute, 0, sizeof attribute);
  OK(sardonyx_node_find_attribute(node, name, &attribute));
  return attribute;
}

static void make_views(void) {
  sardonyx_declared_value_info info = SARDONYX_INIT(sardonyx_declared_value_info);
  sardonyx_node node;
  OK(sardonyx_model_graph(fix.model, &fix.graph));
  OK(sardonyx_graph_node(fix.graph, 0, &fix.node));
  OK(sardonyx_node_attribute(fix.node, 0, &fix.attribute));
  OK(sardonyx_model_function(fix.model, 0, &fix.function));
  OK(sardonyx_graph_input(fix.graph, 0, &fix.declared_value));
  OK(sardonyx_declared_value_describe(fix.declared_value, &info));
  fix.declared_type = info.type;
  OK(sardonyx_graph_initializer(fix.graph, 0, &fix.stored_tensor));
  OK(sardonyx_graph_node(fix.graph, 1, &node));
  OK(sardonyx_attribute_sparse(attribute_named(node, "sparse_value"), 0, &fix.stored_sparse));
  OK(sardonyx_graph_node(fix.graph, 2, &node));
  fix.strings_attribute = attribute_named(node, "strings");
  fix.float_attribute = attribute_named(node, "real");
  fix.int_attribute = attribute_named(node, "number");
  fix.floats_attribute = attribute_named(node, "reals");
  fix.ints_attribute = attribute_named(node, "numbers");
}

static void make_fitted(void) {
  static const char* const names[] = {"x", "target"};
  const sardonyx_value* arrays[2];
  sardonyx_named_values* all = NULL;
  arrays[0] = arrays[1] = fix.value;
  OK(sardonyx_training_data_create(names, arrays, 2, &fix.training_data));
  OK(sardonyx_training_data_arrays(fix.training_data, &all));
  OK(sardonyx_npz_write(all, "wrong_calls_data.npz"));
  sardonyx_named_values_release(all);
  OK(sardonyx_training_fit(fix.training, fix.training_data, NULL, &fix.fit_result));
  OK(sardonyx_training_measure(fix.training, fix.training_data, 0, 1, &fix.metrics));
}

static void make_all(void) {
  sardonyx_model *small = NULL, *trainable = NULL;
  sardonyx_trainable_options options = SARDONYX_INIT(sardonyx_trainable_options);
  make_values();
  fix.input_names[0] = "x";
  fix.output_names[0] = "y";
  fix.dim_names[0] = "N";
  fix.new_names[0] = "x1", fix.new_names[1] = "x2";
  fix.dims[0] = 1, fix.dims[1] = 2;
  fix.numbers[0] = 1, fix.numbers[1] = 2;
  fix.sizes[0] = fix.sizes[1] = 1;
  OK(sardonyx_model_parse(rich, strlen(rich), NULL, &fix.model));
  OK(sardonyx_model_parse(affine, strlen(affine), NULL, &small));
  OK(sardonyx_model_save(small, "wrong_calls.onnx", NULL));
  OK(sardonyx_model_write(small, SARDONYX_FORM_BINARY, &fix.file_bytes));
  fix.file = sardonyx_bytes_data(fix.file_bytes, &fix.file_size);
  OK(sardonyx_session_create(small, NULL, &fix.session));
  OK(sardonyx_binding_create(fix.session, &fix.binding));
  OK(sardonyx_binding_input(fix.binding, "x", fix.value));
  OK(sardonyx_binding_run(fix.binding, NULL));
  options.loss = "mse";
  OK(sardonyx_make_trainable_reported(small, &options, &trainable, &fix.trainable_report));
  OK(sardonyx_training_create(trainable, NULL, &fix.training));
  make_fitted();
  OK(sardonyx_check(fix.model, NULL, &fix.report));
  OK(sardonyx_model_write(fix.model, SARDONYX_FORM_TEXT, &fix.bytes));
  OK(sardonyx_model_diff(fix.model, small, NULL, &fix.differences));
  OK(sardonyx_editor_create(small, &fix.editor));
  OK(sardonyx_infer(fix.model, NULL, &fix.inference));
  OK(sardonyx_threads_create(1, &fix.threads));
  OK(sardonyx_cancel_create(&fix.cancel));
  OK(sardonyx_profile_create(10, &fix.profile));
  OK(sardonyx_operators_create(&fix.operators));
  OK(sardonyx_signatures_of("", "Softmax", &fix.signatures));
  OK(sardonyx_operator_set_of_standard("ai.onnx.ml", 3, &fix.operator_set));
  OK(sardonyx_operator_set_save(fix.operator_set, "wrong_calls_set.json"));
  OK(sardonyx_named_values_create(fix.input_names, fix.values, 1, &fix.named_values));
  OK(sardonyx_npz_write(fix.named_values, "wrong_calls.npz"));
  OK(sardonyx_value_write(fix.value, "wrong_calls.npy"));
  OK(sardonyx_limits_measure(1, &fix.limits));
  OK(sardonyx_model_summarize(fix.model, NULL, NULL, 0, &fix.summary));
  OK(sardonyx_session_plan(fix.session, NULL, NULL, 0, &fix.plan));
  OK(sardonyx_values_compare(fix.value, fix.value, NULL, &fix.comparisons));
  OK(sardonyx_model_save(small, "wrong_calls_typed.onnx", NULL));
  fix.status = sardonyx_status_create(SARDONYX_BAD_INPUT, "wrong");
  make_views();
  wrong_values[0] = (const sardonyx_value*)fix.cancel;
  sardonyx_model_release(small);
  sardonyx_model_release(trainable);
}

static void release_all(void) {
  sardonyx_value_release(fix.value);
  sardonyx_value_release(fix.pair);
  sardonyx_value_release(fix.strings);
  sardonyx_value_release(fix.sequence);
  sardonyx_value_release(fix.map);
  sardonyx_value_release(fix.optional);
  sardonyx_value_release(fix.sparse);
  sardonyx_value_release(fix.keys);
  sardonyx_binding_release(fix.binding);
  sardonyx_session_release(fix.session);
  sardonyx_model_release(fix.model);
  sardonyx_report_release(fix.report);
  sardonyx_bytes_release(fix.bytes);
  sardonyx_bytes_release(fix.file_bytes);
  sardonyx_differences_release(fix.differences);
  sardonyx_editor_release(fix.editor);
  sardonyx_inference_release(fix.inference);
  sardonyx_threads_release(fix.threads);
  sardonyx_cancel_release(fix.cancel);
  sardonyx_profile_release(fix.profile);
  sardonyx_training_release(fix.training);
  sardonyx_operators_release(fix.operators);
  sardonyx_signatures_release(fix.signatures);
  sardonyx_operator_set_release(fix.operator_set);
  sardonyx_named_values_release(fix.named_values);
  sardonyx_limits_release(fix.limits);
  sardonyx_summary_release(fix.summary);
  sardonyx_plan_release(fix.plan);
  sardonyx_comparisons_release(fix.comparisons);
  sardonyx_training_data_release(fix.training_data);
  sardonyx_trainable_report_release(fix.trainable_report);
  sardonyx_fit_result_release(fix.fit_result);
  sardonyx_metrics_release(fix.metrics);
  sardonyx_status_release(fix.status);
  remove("wrong_calls.npz");
  remove("wrong_calls_data.npz");
  remove("wrong_calls_out.txt");
  remove("wrong_calls_out.npz");
  remove("wrong_calls.npy");
  remove("wrong_calls_out.npy");
  remove("wrong_calls_typed.onnx");
  remove("wrong_calls_out/output_0.npy");
  remove("wrong_calls_out");
  remove("wrong_calls.onnx");
  remove("wrong_calls_out.onnx");
  remove("wrong_calls_out.json");
  remove("wrong_calls_set.json");
}

/* Of what C++ allocates (tests/allocations/failing_new.cc). */
extern long bytes_in_use(void);

/* Calls in all ways; returns how many there are. */
static int call_all(const wrong_function* of) {
  int which = 0;
  while (of->call(which)) ++which;
  return which;
}

/* What a first round leaves behind, texts of files and plans of models, a second one finds. */
static size_t leak_of(const wrong_function* of) {
  long before, after = 0;
  size_t least = SIZE_MAX;
  int round;
  call_all(of);
  for (round = 0; round < 3 && least > 0; ++round) {
    before = bytes_in_use();
    call_all(of);
    after = bytes_in_use();
    if (after <= before)
      least = 0;
    else if ((size_t)(after - before) < least)
      least = (size_t)(after - before);
  }
  return least;
}

static void count_leaks(const wrong_function* of) {
  const size_t bytes = leak_of(of);
  ++checks;
  if (bytes == 0) return;
  ++failures;
  fprintf(stderr, "%s: each round leaves %lu bytes behind\n", of->name, (unsigned long)bytes);
}

/* A handle that nobody releases in time is seen. */
static int leak_a_handle(int which) {
  static sardonyx_cancel* kept[10];
  static size_t made = 0;
  if (which < 0) {
    while (made > 0) sardonyx_cancel_release(kept[--made]);
    return 0;
  }
  if (which > 0 || made == sizeof kept / sizeof kept[0]) return 0;
  OK(sardonyx_cancel_create(&kept[made++]));
  return 1;
}

static void leaks_are_seen(void) {
  const wrong_function leaking = {"leak_a_handle", leak_a_handle};
  CHECK(SANITIZED || leak_of(&leaking) > 0);
  leak_a_handle(-1);
}

/* Runs that were begun go on on other threads; measuring takes a second. */
static int is_countable(const char* name) {
  return strcmp(name, "sardonyx_session_run_async") != 0 &&
         strcmp(name, "sardonyx_machine_peak") != 0 && strcmp(name, "sardonyx_limits_measure") != 0;
}

int main(void) {
  const size_t count = sizeof wrong_functions / sizeof wrong_functions[0];
  size_t i;
  int ways = 0;
  test = "wrong_calls";
  make_all();
  for (i = 0; i < count; ++i) {
    function = wrong_functions[i].name;
    ways += call_all(&wrong_functions[i]);
    if (!SANITIZED && is_countable(function)) count_leaks(&wrong_functions[i]);
  }
  leaks_are_seen();
  release_all();
  CHECK(ways > 800);
  printf("%d ways to call %d functions; %d checks, %d failures\n", ways, (int)count, checks,
         failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
