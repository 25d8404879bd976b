/* The C interface, used from C99: what works, and every way of calling it wrongly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

static void versions(void) {
  test = "versions";
  CHECK(sardonyx_api_version() >= SARDONYX_API_VERSION);
  CHECK(strchr(sardonyx_version(), '.') != NULL);
  CHECK(sardonyx_element_bits(SARDONYX_FLOAT32) == 32);
  CHECK(sardonyx_element_bits(SARDONYX_UINT4) == 4);
  CHECK(sardonyx_element_bits(SARDONYX_STRING) == 0);
  CHECK(sardonyx_element_bits((sardonyx_element_type)99) == 0);
  CHECK(strcmp(sardonyx_element_name(SARDONYX_BFLOAT16), "bfloat16") == 0);
  CHECK(strcmp(sardonyx_element_name((sardonyx_element_type)99), "undefined") == 0);
  CHECK(sardonyx_status_code(NULL) == SARDONYX_OK);
  CHECK(strcmp(sardonyx_status_message(NULL), "") == 0);
  CHECK(strcmp(sardonyx_status_location(NULL), "") == 0);
  sardonyx_status_release(NULL);
}

static int released = 0;
static void count_release(void* user) { released += *(int*)user; }

static void tensors(void) {
  const int64_t dims[] = {2, 3}, negative[] = {-1}, huge[] = {INT64_MAX, INT64_MAX};
  float memory[6] = {1, 2, 3, 4, 5, 6};
  sardonyx_value *tensor = NULL, *shared = NULL;
  const void* data = NULL;
  void* writable = NULL;
  size_t bytes = 0, rank = 0;
  const int64_t* found = NULL;
  int64_t count = 0;
  int one = 1;
  sardonyx_element_type type = SARDONYX_UNDEFINED;
  test = "tensors";
  OK(sardonyx_tensor_create(SARDONYX_INT16, 2, dims, &tensor));
  OK(sardonyx_tensor_type(tensor, &type, &rank, &found, &count));
  CHECK(type == SARDONYX_INT16 && rank == 2 && found[1] == 3 && count == 6);
  OK(sardonyx_tensor_type(tensor, NULL, NULL, NULL, NULL));
  OK(sardonyx_tensor_data(tensor, &data, &bytes));
  CHECK(bytes == 12 && ((const int16_t*)data)[5] == 0);
  CHECK(sardonyx_value_kind(tensor) == SARDONYX_TENSOR &&
        sardonyx_value_kind(NULL) == SARDONYX_NONE);
  OK(sardonyx_value_share(tensor, &shared));
  FAILS(sardonyx_tensor_mutable_data(tensor, &writable, NULL), SARDONYX_BAD_INPUT, "shares");
  FAILS(sardonyx_tensor_mutable_data(shared, &writable, NULL), SARDONYX_BAD_INPUT,
        "not for writing");
  sardonyx_value_release(shared);
  OK(sardonyx_tensor_mutable_data(tensor, &writable, NULL));
  sardonyx_value_release(tensor);
  sardonyx_value_release(NULL);

  tensor = NULL;
  FAILS(sardonyx_tensor_create(SARDONYX_FLOAT32, 1, negative, &tensor), SARDONYX_BAD_INPUT, "-1");
  FAILS(sardonyx_tensor_create(SARDONYX_FLOAT32, 2, huge, &tensor), SARDONYX_BAD_INPUT, "");
  FAILS(sardonyx_tensor_create((sardonyx_element_type)77, 2, dims, &tensor), SARDONYX_BAD_INPUT,
        "77");
  FAILS(sardonyx_tensor_create(SARDONYX_UNDEFINED, 2, dims, &tensor), SARDONYX_BAD_INPUT, "0");
  FAILS(sardonyx_tensor_create(SARDONYX_FLOAT32, (size_t)-1, dims, &tensor), SARDONYX_BAD_INPUT,
        "more than the 4096");
  NULL_ARGUMENT(sardonyx_tensor_create(SARDONYX_FLOAT32, 2, NULL, &tensor), "dims");
  NULL_ARGUMENT(sardonyx_tensor_create(SARDONYX_FLOAT32, 2, dims, NULL), "tensor");
  CHECK(tensor == NULL); /* untouched by failures */

  OK(sardonyx_tensor_wrap(SARDONYX_FLOAT32, 2, dims, memory, sizeof(memory), count_release, &one,
                          &tensor));
  CHECK(elements(tensor) == memory);
  FAILS(sardonyx_tensor_mutable_data(tensor, &writable, NULL), SARDONYX_BAD_INPUT,
        "not for writing");
  OK(sardonyx_value_share(tensor, &shared));
  sardonyx_value_release(tensor);
  CHECK(released == 0);
  sardonyx_value_release(shared);
  CHECK(released == 1);
  FAILS(sardonyx_tensor_wrap(SARDONYX_FLOAT32, 2, dims, memory, 20, count_release, &one, &tensor),
        SARDONYX_BAD_INPUT, "");
  FAILS(sardonyx_tensor_wrap(SARDONYX_STRING, 2, dims, memory, 20, count_release, &one, &tensor),
        SARDONYX_BAD_INPUT, "");
  NULL_ARGUMENT(
      sardonyx_tensor_wrap(SARDONYX_FLOAT32, 2, dims, NULL, 24, count_release, &one, &tensor),
      "data");
  NULL_ARGUMENT(
      sardonyx_tensor_wrap(SARDONYX_FLOAT32, 2, dims, memory, 24, count_release, &one, NULL),
      "tensor");
  CHECK(released == 1);
  NULL_ARGUMENT(sardonyx_tensor_type(NULL, &type, NULL, NULL, NULL), "tensor");
  NULL_ARGUMENT(sardonyx_tensor_data(NULL, &data, NULL), "tensor");
  NULL_ARGUMENT(sardonyx_tensor_mutable_data(NULL, &writable, NULL), "tensor");
  NULL_ARGUMENT(sardonyx_value_share(NULL, &shared), "value");
}

static void strings(void) {
  const int64_t dims[] = {2};
  const char* const texts[] = {"one", "t\0wo"};
  const char* const missing[] = {"one", NULL};
  const size_t lengths[] = {3, 4};
  const char* text = NULL;
  size_t length = 0;
  const void* data = NULL;
  sardonyx_value* tensor = NULL;
  test = "strings";
  OK(sardonyx_tensor_create_strings(1, dims, texts, lengths, &tensor));
  OK(sardonyx_tensor_string(tensor, 1, &text, &length));
  CHECK(length == 4 && memcmp(text, "t\0wo", 5) == 0);
  FAILS(sardonyx_tensor_string(tensor, 2, &text, NULL), SARDONYX_BAD_INPUT, "no item 2 of 2");
  FAILS(sardonyx_tensor_data(tensor, &data, NULL), SARDONYX_BAD_INPUT, "sardonyx_tensor_string");
  sardonyx_value_release(tensor);
  OK(sardonyx_tensor_create_strings(1, dims, texts, NULL, &tensor));
  OK(sardonyx_tensor_string(tensor, 1, &text, &length));
  CHECK(length == 1);
  sardonyx_value_release(tensor);
  NULL_ARGUMENT(sardonyx_tensor_create_strings(1, dims, missing, NULL, &tensor), "texts");
  NULL_ARGUMENT(sardonyx_tensor_create_strings(1, dims, NULL, NULL, &tensor), "texts");
}

static void other_kinds(void) {
  const int64_t two[] = {2}, dense[] = {4};
  const float values[] = {7, 8};
  int64_t places[2] = {1, 3};
  const char* const names[] = {"a", "b"};
  sardonyx_value *numbers = floats(1, two, values), *indices = NULL, *made = NULL, *part = NULL,
                 *keys = NULL, *other = NULL;
  const sardonyx_value* items[2];
  size_t count = 0, rank = 0;
  const int64_t* dims = NULL;
  test = "other kinds";
  OK(sardonyx_tensor_wrap(SARDONYX_INT64, 1, two, places, sizeof(places), NULL, NULL, &indices));
  OK(sardonyx_sparse_create(numbers, indices, 1, dense, &made));
  CHECK(sardonyx_value_kind(made) == SARDONYX_SPARSE_TENSOR);
  OK(sardonyx_sparse_parts(made, &part, &other, &rank, &dims));
  CHECK(rank == 1 && dims[0] == 4 && elements(part)[1] == 8);
  FAILS(sardonyx_tensor_type(made, NULL, NULL, NULL, NULL), SARDONYX_BAD_INPUT, "sparse");
  sardonyx_value_release(part);
  sardonyx_value_release(other);
  sardonyx_value_release(made);

  items[0] = numbers;
  items[1] = indices;
  OK(sardonyx_sequence_create(items, 2, &made));
  OK(sardonyx_sequence_size(made, &count));
  CHECK(count == 2 && sardonyx_value_kind(made) == SARDONYX_SEQUENCE);
  OK(sardonyx_sequence_item(made, 0, &part));
  CHECK(elements(part)[0] == 7);
  sardonyx_value_release(part);
  FAILS(sardonyx_sequence_item(made, 2, &part), SARDONYX_BAD_INPUT, "no item 2 of 2");
  FAILS(sardonyx_map_keys(made, &part), SARDONYX_BAD_INPUT, "sequence");
  sardonyx_value_release(made);
  OK(sardonyx_sequence_create(NULL, 0, &made));
  sardonyx_value_release(made);
  items[1] = NULL;
  NULL_ARGUMENT(sardonyx_sequence_create(items, 2, &made), "items");

  items[1] = indices;
  OK(sardonyx_tensor_create_strings(1, two, names, NULL, &keys));
  OK(sardonyx_map_create(keys, items, 2, &made));
  OK(sardonyx_map_value(made, 1, &part));
  CHECK(sardonyx_value_kind(part) == SARDONYX_TENSOR);
  sardonyx_value_release(part);
  OK(sardonyx_map_keys(made, &part));
  sardonyx_value_release(part);
  FAILS(sardonyx_map_value(made, 5, &part), SARDONYX_BAD_INPUT, "no item 5 of 2");
  sardonyx_value_release(made);
  FAILS(sardonyx_map_create(keys, items, 1, &made), SARDONYX_BAD_INPUT, "[2]");
  FAILS(sardonyx_map_create(numbers, items, 2, &made), SARDONYX_BAD_INPUT, "float");

  OK(sardonyx_optional_create(numbers, &made));
  OK(sardonyx_optional_held(made, &part));
  CHECK(elements(part)[0] == 7);
  sardonyx_value_release(part);
  sardonyx_value_release(made);
  OK(sardonyx_optional_create(NULL, &made));
  OK(sardonyx_optional_held(made, &part));
  CHECK(part == NULL);
  sardonyx_value_release(made);
  sardonyx_value_release(keys);
  sardonyx_value_release(indices);
  sardonyx_value_release(numbers);
}

static void sessions(void) {
  sardonyx_session* session = session_of(affine, NULL);
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  struct {
    size_t size;
    const char* name;
  } small = {sizeof(small), NULL};
  test = "sessions";
  CHECK(sardonyx_session_input_count(session) == 2 && sardonyx_session_output_count(session) == 2);
  OK(sardonyx_session_input(session, 0, &info));
  CHECK(strcmp(info.name, "x") == 0 && info.kind == SARDONYX_TENSOR &&
        info.element_type == SARDONYX_FLOAT32);
  CHECK(info.has_rank && info.rank == 2 && info.dims[0] == -1 && info.dims[1] == 2 &&
        !info.optional);
  CHECK(strcmp(info.dim_names[0], "N") == 0 && strcmp(info.dim_names[1], "") == 0);
  CHECK(strcmp(info.type, "float[N,2]") == 0 && strcmp(info.graph, "") == 0);
  OK(sardonyx_session_input(session, 1, &info));
  CHECK(strcmp(info.name, "w") == 0 && info.optional);
  OK(sardonyx_session_output(session, 1,
                             (sardonyx_value_info*)(void*)&small)); /* an older caller */
  CHECK(strcmp(small.name, "z") == 0);
  FAILS(sardonyx_session_input(session, 2, &info), SARDONYX_BAD_INPUT, "no input 2 of 2");
  info.size = 0;
  FAILS(sardonyx_session_input(session, 0, &info), SARDONYX_BAD_INPUT, "SARDONYX_INIT");
  NULL_ARGUMENT(sardonyx_session_input(session, 0, NULL), "info");
  NULL_ARGUMENT(sardonyx_session_input(NULL, 0, &info), "session");
  CHECK(sardonyx_session_input_count(NULL) == 0);
  sardonyx_session_release(session);
  sardonyx_session_release(NULL);
}

static void runs(void) {
  const int64_t dims[] = {1, 2}, wrong[] = {2, 2}, two[] = {2};
  const float x_data[] = {3, 4}, w_data[] = {10, 20}, four[] = {1, 2, 3, 4};
  float memory[2] = {0, 0};
  const char *const x_name[] = {"x"}, *const both[] = {"x", "w"}, *const unknown[] = {"q"},
                    *const twice[] = {"x", "x"}, *const z_name[] = {"z"},
                    *const z_twice[] = {"z", "z"};
  sardonyx_session* session = session_of(affine, NULL);
  sardonyx_value *x = floats(2, dims, x_data), *w = floats(1, two, w_data),
                 *large = floats(2, wrong, four), *bound = NULL, *shared = NULL;
  sardonyx_value* made[2] = {NULL, NULL};
  const sardonyx_value* inputs[2];
  sardonyx_run_options options = SARDONYX_INIT(sardonyx_run_options);
  sardonyx_cancel* cancel = NULL;
  test = "runs";
  inputs[0] = x;
  inputs[1] = w;
  OK(sardonyx_session_run(session, NULL, x_name, inputs, 1, NULL, 2, made));
  CHECK(elements(made[0])[1] == 8 && elements(made[1])[1] == 12);
  sardonyx_value_release(made[0]);
  sardonyx_value_release(made[1]);
  made[0] = made[1] = NULL;
  OK(sardonyx_session_run(session, NULL, both, inputs, 2, z_name, 1, made));
  CHECK(elements(made[0])[1] == 84);
  sardonyx_value_release(made[0]);
  made[0] = NULL;
  inputs[1] = NULL; /* not given: the default */
  OK(sardonyx_session_run_in_order(session, NULL, inputs, 2, made, 2));
  CHECK(elements(made[1])[0] == 6);
  sardonyx_value_release(made[0]);
  sardonyx_value_release(made[1]);
  made[0] = made[1] = NULL;

  /* memory for outputs */
  OK(sardonyx_tensor_wrap_mutable(SARDONYX_FLOAT32, 2, dims, memory, sizeof(memory), NULL, NULL,
                                  &bound));
  made[0] = bound;
  OK(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, made));
  CHECK(made[0] == bound && memory[0] == 6 && memory[1] == 12);
  inputs[0] = large;
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, made), SARDONYX_BAD_INPUT,
        "output 'z' is float[2,2], and was given memory for float[1,2]");
  made[0] = x;
  OK(sardonyx_value_share(x, &shared));
  inputs[0] = large;
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, made), SARDONYX_BAD_INPUT,
        "shares");
  made[0] = shared;
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, made), SARDONYX_BAD_INPUT,
        "written");
  sardonyx_value_release(shared);
  made[0] = bound;
  inputs[0] = bound;
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, made), SARDONYX_BAD_INPUT,
        "output 'z' was given memory that is an input of the run");
  sardonyx_value_release(bound);
  made[0] = NULL;

  /* wrong calls */
  inputs[0] = x;
  FAILS(sardonyx_session_run(session, NULL, unknown, inputs, 1, z_name, 1, made),
        SARDONYX_BAD_INPUT, "'q'");
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, unknown, 1, made),
        SARDONYX_BAD_INPUT, "'q'");
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_twice, 2, made),
        SARDONYX_BAD_INPUT, "twice");
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, NULL, 1, made), SARDONYX_BAD_INPUT,
        "room for 1");
  FAILS(sardonyx_session_run(session, NULL, NULL, NULL, 0, z_name, 1, made), SARDONYX_BAD_INPUT,
        "x");
  inputs[1] = x;
  FAILS(sardonyx_session_run(session, NULL, twice, inputs, 2, z_name, 1, made), SARDONYX_BAD_INPUT,
        "twice");
  inputs[0] = w;
  FAILS(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, made), SARDONYX_BAD_INPUT,
        "x");
  inputs[0] = NULL;
  NULL_ARGUMENT(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, made), "inputs");
  NULL_ARGUMENT(sardonyx_session_run(session, NULL, NULL, inputs, 1, z_name, 1, made),
                "input_names");
  NULL_ARGUMENT(sardonyx_session_run(session, NULL, x_name, NULL, 1, z_name, 1, made), "inputs");
  inputs[0] = x;
  NULL_ARGUMENT(sardonyx_session_run(session, NULL, x_name, inputs, 1, z_name, 1, NULL), "outputs");
  NULL_ARGUMENT(sardonyx_session_run(NULL, NULL, x_name, inputs, 1, z_name, 1, made), "session");
  FAILS(sardonyx_session_run_in_order(session, NULL, inputs, 1, made, 3), SARDONYX_BAD_INPUT,
        "room for 3");
  CHECK(made[0] == NULL && made[1] == NULL);

  /* stopped */
  OK(sardonyx_cancel_create(&cancel));
  options.cancel = cancel;
  sardonyx_cancel_set(cancel, 1);
  FAILS(sardonyx_session_run(session, &options, x_name, inputs, 1, z_name, 1, made),
        SARDONYX_CANCELLED, "");
  sardonyx_cancel_set(cancel, 0);
  OK(sardonyx_session_run(session, &options, x_name, inputs, 1, z_name, 1, made));
  sardonyx_value_release(made[0]);
  made[0] = NULL;
  options.cancel = NULL;
  options.deadline_ns = 1;
  FAILS(sardonyx_session_run(session, &options, x_name, inputs, 1, z_name, 1, made),
        SARDONYX_CANCELLED, "");
  options.deadline_ns = INT64_MAX;
  OK(sardonyx_session_run(session, &options, x_name, inputs, 1, z_name, 1, made));
  sardonyx_value_release(made[0]);
  made[0] = NULL;
  options.deadline_ns = 0;
  options.memory_limit = 1;
  FAILS(sardonyx_session_run(session, &options, x_name, inputs, 1, z_name, 1, made),
        SARDONYX_OUT_OF_MEMORY, "");
  options.memory_limit = -1;
  FAILS(sardonyx_session_run(session, &options, x_name, inputs, 1, z_name, 1, made),
        SARDONYX_BAD_INPUT, "negative");
  options.size = 1;
  FAILS(sardonyx_session_run(session, &options, x_name, inputs, 1, z_name, 1, made),
        SARDONYX_BAD_INPUT, "size");
  sardonyx_cancel_release(cancel);
  sardonyx_value_release(large);
  sardonyx_value_release(w);
  sardonyx_value_release(x);
  sardonyx_session_release(session);
}

static int warnings = 0;
static void on_warning(const sardonyx_warning* warning, void* user) {
  ++warnings;
  CHECK(user == &warnings && warning->message[0] != 0 && warning->size == sizeof(*warning));
}

static void models(const char* digits) {
  static const char unsorted[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[2] x) => (float[2] y) {\n  y = Exp(a)\n  a = Neg(x)\n}\n";
  sardonyx_load_options options = SARDONYX_INIT(sardonyx_load_options);
  sardonyx_session_options session_options = SARDONYX_INIT(sardonyx_session_options);
  const char* const nothing[] = {"/nowhere.so"};
  sardonyx_model* model = NULL;
  sardonyx_session* session = NULL;
  sardonyx_threads* threads = NULL;
  FILE* file = NULL;
  char* bytes = NULL;
  long size = 0;
  test = "models";
  OK(sardonyx_session_load(digits, NULL, NULL, &session));
  CHECK(sardonyx_session_input_count(session) == 1);
  sardonyx_session_release(session);
  session = NULL;
  FAILS(sardonyx_session_load("/nowhere.onnx", NULL, NULL, &session), SARDONYX_UNREADABLE,
        "/nowhere.onnx");
  FAILS(sardonyx_model_load("/nowhere.onnx", NULL, &model), SARDONYX_UNREADABLE, "/nowhere.onnx");
  FAILS(sardonyx_model_parse("g (", 3, NULL, &model), SARDONYX_INVALID_MODEL, "");
  FAILS(sardonyx_model_load_memory("\xff\xff\xff", 3, NULL, NULL, &model), SARDONYX_INVALID_MODEL,
        "");
  NULL_ARGUMENT(sardonyx_model_load(NULL, NULL, &model), "path");
  NULL_ARGUMENT(sardonyx_model_load(digits, NULL, NULL), "model");
  NULL_ARGUMENT(sardonyx_model_load_memory(NULL, 3, NULL, NULL, &model), "data");
  NULL_ARGUMENT(sardonyx_model_parse(NULL, 0, NULL, &model), "text");
  NULL_ARGUMENT(sardonyx_session_create(NULL, NULL, &session), "model");
  NULL_ARGUMENT(sardonyx_session_load(NULL, NULL, NULL, &session), "path");
  CHECK(model == NULL && session == NULL);

  file = fopen(digits, "rb");
  CHECK(file != NULL);
  if (file != NULL) {
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    bytes = (char*)malloc((size_t)size);
    CHECK(fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    OK(sardonyx_model_load_memory(bytes, (size_t)size, NULL, NULL, &model));
    free(bytes); /* it was copied */
    OK(sardonyx_threads_create(1, &threads));
    CHECK(sardonyx_threads_count(threads) == 1 && sardonyx_threads_count(NULL) == 0);
    session_options.shared_threads = threads;
    session_options.prepack = 1;
    OK(sardonyx_session_create(model, &session_options, &session));
    sardonyx_threads_release(threads);
    sardonyx_model_release(model);
    sardonyx_session_release(session);
  }
  FAILS(sardonyx_threads_create(-1, &threads), SARDONYX_BAD_INPUT, "");
  session_options.shared_threads = NULL;
  session_options.threads = -5;
  OK(sardonyx_model_parse(affine, strlen(affine), NULL, &model));
  FAILS(sardonyx_session_create(model, &session_options, &session), SARDONYX_BAD_INPUT, "");
  sardonyx_model_release(model);

  options.warn = on_warning;
  options.user = &warnings;
  OK(sardonyx_model_parse(unsorted, strlen(unsorted), &options, &model));
  OK(sardonyx_session_create(model, NULL, &session));
  CHECK(warnings == 1);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
  options.strict = 1;
  OK(sardonyx_model_parse(unsorted, strlen(unsorted), &options, &model));
  FAILS(sardonyx_session_create(model, NULL, &session), SARDONYX_INVALID_MODEL, "");
  sardonyx_model_release(model);
  options.libraries = nothing;
  options.library_count = 1;
  FAILS(sardonyx_model_load(digits, &options, &model), SARDONYX_UNREADABLE, "/nowhere.so");
  options.libraries = NULL;
  NULL_ARGUMENT(sardonyx_model_load(digits, &options, &model), "libraries");
  options.library_count = 0;
  options.strict = 0;
  options.memory_limit = 100;
  FAILS(sardonyx_model_load(digits, &options, &model), SARDONYX_OUT_OF_MEMORY, "100");
  options.memory_limit = -100;
  FAILS(sardonyx_model_load(digits, &options, &model), SARDONYX_BAD_INPUT, "negative");
  session_options.threads = 1;
  session_options.prepack = 0;
  session_options.memory_limit = 2000;
  FAILS(sardonyx_session_load(digits, NULL, &session_options, &session), SARDONYX_OUT_OF_MEMORY,
        "2000");
}

static void checking(const char* digits) {
  sardonyx_report* report = NULL;
  sardonyx_check_options options = SARDONYX_INIT(sardonyx_check_options);
  sardonyx_finding finding = SARDONYX_INIT(sardonyx_finding);
  FILE* file = NULL;
  size_t i = 0;
  test = "checking";
  options.strict = 1;
  OK(sardonyx_check_file(digits, &options, &report));
  CHECK(sardonyx_report_errors(report) == 0);
  sardonyx_report_release(report);
  file = fopen("c_test_broken.onnxtxt", "w");
  CHECK(file != NULL);
  if (file == NULL) return;
  fputs(
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[2] x) => (float[2] y) { y = "
      "Exp(nothing) }\n",
      file);
  fclose(file);
  OK(sardonyx_check_file("c_test_broken.onnxtxt", NULL, &report));
  CHECK(sardonyx_report_errors(report) == 1 && sardonyx_report_count(report) >= 1);
  for (i = 0; i < sardonyx_report_count(report); ++i) {
    OK(sardonyx_report_finding(report, i, &finding));
    if (finding.severity == SARDONYX_ERROR) break;
  }
  CHECK(i < sardonyx_report_count(report));
  CHECK(strstr(finding.place, "nothing") != NULL && strstr(finding.place, "Exp") != NULL);
  CHECK(finding.rule[0] != 0 && finding.advice != NULL);
  FAILS(sardonyx_report_finding(report, 99, &finding), SARDONYX_BAD_INPUT, "no finding 99");
  NULL_ARGUMENT(sardonyx_report_finding(NULL, 0, &finding), "report");
  NULL_ARGUMENT(sardonyx_check_file(NULL, NULL, &report), "path");
  CHECK(sardonyx_report_count(NULL) == 0 && sardonyx_report_errors(NULL) == 0);
  sardonyx_report_release(report);
  sardonyx_report_release(NULL);
  FAILS(sardonyx_check_file("/nowhere.onnx", NULL, &report), SARDONYX_UNREADABLE, "/nowhere.onnx");
  remove("c_test_broken.onnxtxt");
}

static void inferring(const char* digits) {
  static const char shapes[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N, 4] x) => (y) {\n  a = Concat<axis = 0>(x, x)\n  y = Exp(a)\n}\n";
  const char* const names[] = {"N"};
  const int64_t sizes[] = {3};
  sardonyx_model* model = NULL;
  sardonyx_inference* inference = NULL;
  sardonyx_infer_options options = SARDONYX_INIT(sardonyx_infer_options);
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  sardonyx_finding finding = SARDONYX_INIT(sardonyx_finding);
  test = "inferring";
  OK(sardonyx_model_parse(shapes, strlen(shapes), NULL, &model));
  OK(sardonyx_infer(model, NULL, &inference));
  CHECK(sardonyx_inference_count(inference) == 3);
  OK(sardonyx_inference_value(inference, 2, &info));
  CHECK(strcmp(info.name, "y") == 0 && strcmp(info.dim_names[0], "2*N") == 0 && info.dims[1] == 4);
  FAILS(sardonyx_inference_value(inference, 3, &info), SARDONYX_BAD_INPUT, "no value 3 of 3");
  CHECK(sardonyx_inference_finding_count(inference) == 0);
  FAILS(sardonyx_inference_finding(inference, 0, &finding), SARDONYX_BAD_INPUT, "no finding 0");
  sardonyx_inference_release(inference);
  options.size_names = names;
  options.sizes = sizes;
  options.size_count = 1;
  OK(sardonyx_infer(model, &options, &inference));
  OK(sardonyx_inference_value(inference, 2, &info));
  CHECK(info.dims[0] == 6);
  sardonyx_inference_release(inference);
  options.sizes = NULL;
  NULL_ARGUMENT(sardonyx_infer(model, &options, &inference), "sizes");
  NULL_ARGUMENT(sardonyx_infer(NULL, NULL, &inference), "model");
  OK(sardonyx_infer_file(digits, "c_test_inferred.onnx", NULL, &inference));
  CHECK(sardonyx_inference_count(inference) > 10);
  sardonyx_inference_release(inference);
  CHECK(remove("c_test_inferred.onnx") == 0);
  FAILS(sardonyx_infer_file("/nowhere.onnx", "c_test_inferred.onnx", NULL, &inference),
        SARDONYX_UNREADABLE, "");
  CHECK(sardonyx_inference_count(NULL) == 0 && sardonyx_inference_finding_count(NULL) == 0);
  sardonyx_inference_release(NULL);
  sardonyx_model_release(model);
}

static void converting(const char* digits) {
  sardonyx_convert_options options = SARDONYX_INIT(sardonyx_convert_options);
  sardonyx_session* session = NULL;
  test = "converting";
  OK(sardonyx_convert_file(digits, "c_test.onnxtxt", NULL));
  OK(sardonyx_session_load("c_test.onnxtxt", NULL, NULL, &session));
  sardonyx_session_release(session);
  options.external_data = "c_test.bin";
  options.threshold = 100;
  options.checksum = 1;
  OK(sardonyx_convert_file("c_test.onnxtxt", "c_test.onnx", &options));
  OK(sardonyx_session_load("c_test.onnx", NULL, NULL, &session));
  sardonyx_session_release(session);
  CHECK(remove("c_test.onnx") == 0 && remove("c_test.bin") == 0);
  options.external_data = NULL;
  options.opset = 23;
  OK(sardonyx_convert_file("c_test.onnxtxt", "c_test.json", &options));
  options.opset = 9;
  OK(sardonyx_convert_file("c_test.onnxtxt", "c_test.json", &options));
  options.opset = 99;
  FAILS(sardonyx_convert_file("c_test.onnxtxt", "c_test.json", &options), SARDONYX_BAD_INPUT, "99");
  options.opset = -1;
  FAILS(sardonyx_convert_file("c_test.onnxtxt", "c_test.json", &options), SARDONYX_BAD_INPUT,
        "negative");
  CHECK(remove("c_test.onnxtxt") == 0 && remove("c_test.json") == 0);
  FAILS(sardonyx_convert_file("/nowhere.onnx", "c_test.json", NULL), SARDONYX_UNREADABLE,
        "/nowhere.onnx");
  FAILS(sardonyx_convert_file(digits, "c_test.zip", NULL), SARDONYX_BAD_INPUT, "zip");
  NULL_ARGUMENT(sardonyx_convert_file(NULL, "c_test.json", NULL), "from");
  NULL_ARGUMENT(sardonyx_convert_file(digits, NULL, NULL), "to");
}

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: %s digits.onnx\n", arguments[0]);
    return 2;
  }
  versions();
  tensors();
  strings();
  other_kinds();
  sessions();
  runs();
  models(arguments[1]);
  checking(arguments[1]);
  inferring(arguments[1]);
  converting(arguments[1]);
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
