/* Asynchronous runs, bindings, options of sessions, profiles, and values of other libraries. */
#include <float.h>
#include <stddef.h>
#include <stdlib.h>

#include "checks.h"

static const int64_t one_row[] = {1, 2};

/* Where callbacks leave what they were told; read after the session is released, which waits. */
typedef struct outcome {
  int calls;
  sardonyx_code code;
  char message[200];
  size_t count;
  float first;
} outcome;

static void on_done(sardonyx_status* status, sardonyx_value** outputs, size_t count, void* user) {
  outcome* to = user;
  size_t i;
  ++to->calls;
  to->code = sardonyx_status_code(status);
  strncpy(to->message, sardonyx_status_message(status), sizeof to->message - 1);
  to->count = count;
  if (count > 0) to->first = elements(outputs[0])[0];
  for (i = 0; i < count; ++i) sardonyx_value_release(outputs[i]);
  sardonyx_status_release(status);
}

static void async_runs(void) {
  const float numbers[] = {3, 5};
  const char* name = "x";
  const char* wrong = "q";
  outcome good, bad;
  sardonyx_session* session = session_of(affine, NULL);
  sardonyx_value* x = floats(2, one_row, numbers);
  sardonyx_cancel* cancel = NULL;
  sardonyx_run_options options = SARDONYX_INIT(sardonyx_run_options);
  int i;
  test = "async_runs";
  memset(&good, 0, sizeof good);
  memset(&bad, 0, sizeof bad);
  OK(sardonyx_session_run_async(session, NULL, &name, (const sardonyx_value* const*)&x, 1, on_done,
                                &good));
  OK(sardonyx_session_run_async(session, NULL, &wrong, (const sardonyx_value* const*)&x, 1, on_done,
                                &bad));
  NULL_ARGUMENT(sardonyx_session_run_async(NULL, NULL, &name, (const sardonyx_value* const*)&x, 1,
                                           on_done, &good),
                "session");
  NULL_ARGUMENT(sardonyx_session_run_async(session, NULL, &name, (const sardonyx_value* const*)&x,
                                           1, NULL, NULL),
                "done");
  NULL_ARGUMENT(sardonyx_session_run_async(session, NULL, &name, NULL, 1, on_done, &good),
                "inputs");
  options.deadline_ns = -1;
  FAILS(sardonyx_session_run_async(session, &options, &name, (const sardonyx_value* const*)&x, 1,
                                   on_done, &good),
        SARDONYX_BAD_INPUT, "negative");
  sardonyx_value_release(x); /* the run keeps it */
  sardonyx_session_release(session);
  CHECK(good.calls == 1 && good.code == SARDONYX_OK && good.count == 2 && good.first == 3);
  CHECK(bad.calls == 1 && bad.code == SARDONYX_BAD_INPUT && bad.count == 0);
  CHECK(strstr(bad.message, "input 'q'") != NULL);

  memset(&bad, 0, sizeof bad);
  session = session_of(affine, NULL);
  x = floats(2, one_row, numbers);
  OK(sardonyx_cancel_create(&cancel));
  sardonyx_cancel_set(cancel, 1);
  options.deadline_ns = 0;
  options.cancel = cancel;
  for (i = 0; i < 20; ++i)
    OK(sardonyx_session_run_async(session, &options, &name, (const sardonyx_value* const*)&x, 1,
                                  on_done, &bad));
  sardonyx_session_release(session);
  CHECK(bad.calls == 20 && bad.code == SARDONYX_CANCELLED);
  sardonyx_cancel_release(cancel);
  sardonyx_value_release(x);
}

/* What callbacks see of a session that is being released, which waits for them. */
typedef struct seen {
  sardonyx_session* session;
  int calls, right;
} seen;

static void look_at_session(sardonyx_status* status, sardonyx_value** outputs, size_t count,
                            void* user) {
  seen* to = user;
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  sardonyx_status* told = sardonyx_session_output(to->session, count - 1, &info);
  size_t i;
  ++to->calls;
  if (told == NULL && strcmp(info.name, "z") == 0 && strcmp(info.type, "float[N,2]") == 0)
    ++to->right;
  for (i = 0; i < count; ++i) sardonyx_value_release(outputs[i]);
  sardonyx_status_release(told);
  sardonyx_status_release(status);
}

static void sessions_while_they_are_released(void) {
  enum { runs = 200 };
  const float numbers[] = {3, 5};
  const char* name = "x";
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_value* x = floats(2, one_row, numbers);
  seen all;
  int i;
  test = "sessions_while_they_are_released";
  memset(&all, 0, sizeof all);
  options.threads = 1;
  all.session = session_of(affine, &options);
  for (i = 0; i < runs; ++i)
    OK(sardonyx_session_run_async(all.session, NULL, &name, (const sardonyx_value* const*)&x, 1,
                                  look_at_session, &all));
  sardonyx_session_release(all.session);
  CHECK(all.calls == runs && all.right == runs);
  sardonyx_value_release(x);
}

static void outputs_of_strings(void) {
  static const char one[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (string[2] x) => (string[2] y) { y = Identity(x) }\n";
  static const char two[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (string[2] x) => (string[2] y, string[2] z) { y = Identity(x) z = Identity(x) }\n";
  static const char* const texts[] = {"first", "second"};
  const int64_t pair[] = {2};
  sardonyx_value *x = NULL, *outputs[2] = {NULL, NULL};
  sardonyx_binding* binding = NULL;
  const char* text = NULL;
  size_t count;
  test = "outputs_of_strings";
  OK(sardonyx_tensor_create_strings(1, pair, texts, NULL, &x));
  for (count = 1; count <= 2; ++count) {
    sardonyx_session* session = session_of(count == 1 ? one : two, NULL);
    sardonyx_value* given = NULL;
    OK(sardonyx_tensor_create(SARDONYX_STRING, 1, pair, &given));
    outputs[0] = given;
    FAILS(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, outputs,
                                        count),
          SARDONYX_BAD_INPUT, "output 'y' holds strings");
    OK(sardonyx_tensor_string(given, 0, &text, NULL));
    CHECK(strcmp(text, "") == 0); /* the caller's tensor is what it was */
    OK(sardonyx_binding_create(session, &binding));
    FAILS(sardonyx_binding_output(binding, "y", given), SARDONYX_BAD_INPUT,
          "output 'y' holds strings");
    sardonyx_binding_release(binding);
    outputs[0] = NULL;
    OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, outputs,
                                     count));
    OK(sardonyx_tensor_string(outputs[0], 1, &text, NULL));
    CHECK(strcmp(text, "second") == 0);
    sardonyx_value_release(outputs[0]);
    sardonyx_value_release(outputs[1]);
    sardonyx_value_release(given);
    sardonyx_session_release(session);
    outputs[0] = outputs[1] = NULL;
  }
  sardonyx_value_release(x);
}

static void outputs_in_items_of_inputs(void) {
  static const char text[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (seq(float[1, 2]) x) => (float[1, 2] y) {\n"
      "  i = Constant<value_int = 0>()\n  a = SequenceAt(x, i)\n  y = Neg(a)\n}\n";
  float memory[2] = {1, 2};
  sardonyx_session* session = session_of(text, NULL);
  sardonyx_value *item = NULL, *sequence = NULL, *y = NULL;
  test = "outputs_in_items_of_inputs";
  OK(sardonyx_tensor_wrap(SARDONYX_FLOAT32, 2, one_row, memory, sizeof memory, NULL, NULL, &item));
  OK(sardonyx_sequence_create((const sardonyx_value* const*)&item, 1, &sequence));
  OK(sardonyx_tensor_wrap_mutable(SARDONYX_FLOAT32, 2, one_row, memory, sizeof memory, NULL, NULL,
                                  &y));
  FAILS(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&sequence, 1, &y,
                                      1),
        SARDONYX_BAD_INPUT, "memory that is an input");
  CHECK(memory[0] == 1);
  sardonyx_value_release(item);
  sardonyx_value_release(sequence);
  sardonyx_value_release(y);
  sardonyx_session_release(session);
}

static void bindings(void) {
  const float numbers[] = {3, 5}, others[] = {1, 1};
  const int64_t three[] = {3};
  float memory[2] = {0, 0};
  sardonyx_session* session = session_of(affine, NULL);
  sardonyx_binding* binding = NULL;
  sardonyx_value *x = floats(2, one_row, numbers), *y = NULL, *z = NULL, *kept = NULL, *bad = NULL;
  void* data = NULL;
  test = "bindings";
  NULL_ARGUMENT(sardonyx_binding_create(NULL, &binding), "session");
  NULL_ARGUMENT(sardonyx_binding_create(session, NULL), "binding");
  OK(sardonyx_binding_create(session, &binding));
  sardonyx_session_release(session); /* the binding keeps what it needs */
  NULL_ARGUMENT(sardonyx_binding_input(NULL, "x", x), "binding");
  NULL_ARGUMENT(sardonyx_binding_input(binding, NULL, x), "name");
  NULL_ARGUMENT(sardonyx_binding_output(binding, NULL, NULL), "name");
  NULL_ARGUMENT(sardonyx_binding_run(NULL, NULL), "binding");
  FAILS(sardonyx_binding_input(binding, "q", x), SARDONYX_BAD_INPUT, "no input of this name");
  FAILS(sardonyx_binding_output(binding, "q", NULL), SARDONYX_BAD_INPUT, "no output of this name");
  FAILS(sardonyx_binding_run(binding, NULL), SARDONYX_BAD_INPUT, "input 'x'");
  FAILS(sardonyx_binding_value(binding, "z", &z), SARDONYX_BAD_INPUT, "no run has made");
  OK(sardonyx_binding_input(binding, "x", x));
  OK(sardonyx_tensor_wrap_mutable(SARDONYX_FLOAT32, 2, one_row, memory, sizeof memory, NULL, NULL,
                                  &y));
  OK(sardonyx_binding_output(binding, "y", y));
  OK(sardonyx_binding_run(binding, NULL));
  CHECK(memory[0] == 3 && memory[1] == 10);
  OK(sardonyx_binding_value(binding, "z", &kept));
  CHECK(elements(kept)[1] == 15);
  sardonyx_value_release(x);
  x = floats(2, one_row, others);
  OK(sardonyx_binding_input(binding, "x", x));
  OK(sardonyx_binding_run(binding, NULL));
  CHECK(memory[1] == 2 && elements(kept)[1] == 15);
  OK(sardonyx_binding_value(binding, "z", &z));
  CHECK(elements(z)[1] == 3 && elements(z) != elements(kept));
  NULL_ARGUMENT(sardonyx_binding_value(binding, NULL, &bad), "output");
  NULL_ARGUMENT(sardonyx_binding_value(binding, "z", NULL), "value");

  FAILS(sardonyx_binding_output(binding, "z", kept), SARDONYX_BAD_INPUT, "may be written to");
  OK(sardonyx_tensor_create(SARDONYX_FLOAT32, 1, three, &bad));
  OK(sardonyx_binding_output(binding, "z", bad));
  FAILS(sardonyx_tensor_mutable_data(bad, &data, NULL), SARDONYX_BAD_INPUT, "shares");
  FAILS(sardonyx_binding_run(binding, NULL), SARDONYX_BAD_INPUT,
        "output 'z': is float[1,2], and is bound to memory for float[3]");
  OK(sardonyx_binding_output(binding, "z", NULL));
  OK(sardonyx_tensor_mutable_data(bad, &data, NULL));
  OK(sardonyx_binding_input(binding, "x", NULL));
  FAILS(sardonyx_binding_run(binding, NULL), SARDONYX_BAD_INPUT, "input 'x'");
  sardonyx_value_release(bad);
  sardonyx_value_release(x);
  sardonyx_value_release(y);
  sardonyx_value_release(z);
  sardonyx_value_release(kept);
  sardonyx_binding_release(binding);
  sardonyx_binding_release(NULL);
}

static sardonyx_status* creation(const sardonyx_session_options* options) {
  sardonyx_model* model = NULL;
  sardonyx_session* session = NULL;
  sardonyx_status* status;
  OK(sardonyx_model_parse(affine, strlen(affine), NULL, &model));
  status = sardonyx_session_create(model, options, &session);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
  return status;
}

static void options_of_sessions(void) {
  const char* size_names[] = {"N", "N"};
  const int64_t sizes[] = {1, -2};
  const int64_t two[] = {2}, three_rows[] = {3, 2};
  const float weights[] = {10, 20}, numbers[] = {3, 5, 1, 1, 1, 1};
  const char* initializer = "w";
  const char* extra = "y";
  const int processors[] = {-5};
  sardonyx_value* w = floats(1, two, weights);
  sardonyx_value *x = floats(2, one_row, numbers), *large = floats(2, three_rows, numbers);
  sardonyx_value* outputs[2] = {NULL, NULL};
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_session* session;
  test = "options_of_sessions";
  options.size_names = size_names;
  options.sizes = sizes;
  options.size_count = 1;
  options.initializer_names = &initializer;
  options.initializers = (const sardonyx_value* const*)&w;
  options.initializer_count = 1;
  options.extra_outputs = &extra; /* an output already */
  options.extra_output_count = 1;
  session = session_of(affine, &options);
  CHECK(sardonyx_session_output_count(session) == 2);
  OK(sardonyx_session_input(session, 0, &info));
  CHECK(info.dims[0] == 1);
  OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, outputs, 2));
  CHECK(elements(outputs[0])[1] == 100);
  sardonyx_value_release(outputs[0]);
  sardonyx_value_release(outputs[1]);
  outputs[0] = outputs[1] = NULL;
  FAILS(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&large, 1,
                                      outputs, 2),
        SARDONYX_BAD_INPUT, "dimension 0 must be 1");
  sardonyx_session_release(session);

  options.size_count = 2;
  FAILS(creation(&options), SARDONYX_BAD_INPUT, "given twice");
  options.size_names = NULL;
  NULL_ARGUMENT(creation(&options), "size_names");
  options.size_names = size_names + 1;
  options.sizes = sizes + 1;
  options.size_count = 1;
  FAILS(creation(&options), SARDONYX_BAD_INPUT, "negative");
  options.sizes = NULL;
  NULL_ARGUMENT(creation(&options), "sizes");
  options.size_count = 0;
  initializer = "nothing";
  FAILS(creation(&options), SARDONYX_BAD_INPUT, "no initializer of this name");
  options.initializers = NULL;
  NULL_ARGUMENT(creation(&options), "initializers");
  options.initializer_count = 0;
  extra = "nothing";
  FAILS(creation(&options), SARDONYX_BAD_INPUT, "value 'nothing'");
  options.extra_output_count = 0;
  options.processors = processors;
  options.processor_count = 1;
  FAILS(creation(&options), SARDONYX_BAD_INPUT, "no processor -5");
  options.processors = NULL;
  NULL_ARGUMENT(creation(&options), "processors");
  sardonyx_value_release(w);
  sardonyx_value_release(x);
  sardonyx_value_release(large);
}

/* Options of a program that was compiled with the first version of the header. */
static void options_of_version_1(void) {
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_session* session;
  test = "options_of_version_1";
  options.size = offsetof(sardonyx_session_options, size_names);
  options.size_count = options.extra_output_count = options.processor_count = 1000;
  session = session_of(affine, &options);
  CHECK(sardonyx_session_output_count(session) == 2);
  sardonyx_session_release(session);
}

static void small_numbers(void) {
  const float numbers[] = {FLT_MIN, 1};
  const int64_t two[] = {2};
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_value *x = floats(1, two, numbers), *y = NULL;
  test = "small_numbers";
  for (options.flush_denormals = 0; options.flush_denormals < 2; ++options.flush_denormals) {
    sardonyx_session* session = session_of(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[n] x) => (float[n] y) { h = Constant<value_float = 0.5>() y = Mul(x, h) }",
        &options);
    OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, &y, 1));
    CHECK((elements(y)[0] == 0) == (options.flush_denormals != 0) && elements(y)[1] == 0.5f);
    sardonyx_value_release(y);
    y = NULL; /* the next run makes another */
    sardonyx_session_release(session);
  }
  sardonyx_value_release(x);
}

static void profiles(void) {
  const float numbers[] = {3, 5};
  sardonyx_session* session = session_of(affine, NULL);
  sardonyx_value* x = floats(2, one_row, numbers);
  sardonyx_value* outputs[2] = {NULL, NULL};
  sardonyx_profile* profile = NULL;
  sardonyx_run_options options = SARDONYX_INIT(sardonyx_run_options);
  const char* text = NULL;
  int i;
  test = "profiles";
  NULL_ARGUMENT(sardonyx_profile_create(0, NULL), "profile");
  OK(sardonyx_profile_create(0, &profile));
  CHECK(sardonyx_profile_run_count(profile) == 0 && sardonyx_profile_run_count(NULL) == 0);
  OK(sardonyx_profile_json(profile, &text));
  CHECK(strstr(text, "\"runs\":[]") != NULL);
  options.profile = profile;
  for (i = 0; i < 3; ++i) {
    OK(sardonyx_session_run_in_order(session, &options, (const sardonyx_value* const*)&x, 1,
                                     outputs, 2));
    sardonyx_value_release(outputs[0]);
    sardonyx_value_release(outputs[1]);
    outputs[0] = outputs[1] = NULL;
  }
  CHECK(sardonyx_profile_run_count(profile) == 3);
  OK(sardonyx_profile_json(profile, &text));
  CHECK(strstr(text, "\"kernel\":") != NULL && strstr(text, "\"nanoseconds\":") != NULL);
  OK(sardonyx_profile_trace(profile, &text));
  CHECK(strstr(text, "\"traceEvents\":[") != NULL && strstr(text, "\"run 2\"") != NULL);
  NULL_ARGUMENT(sardonyx_profile_json(NULL, &text), "profile");
  NULL_ARGUMENT(sardonyx_profile_json(profile, NULL), "text");
  NULL_ARGUMENT(sardonyx_profile_trace(NULL, &text), "profile");
  NULL_ARGUMENT(sardonyx_profile_trace(profile, NULL), "text");
  sardonyx_profile_release(profile);
  sardonyx_profile_release(NULL);
  sardonyx_value_release(x);
  sardonyx_session_release(session);
}

static int released = 0;
static void on_release(void* user) { released += *(int*)user; }

static void strided(void) {
  float memory[] = {1, 2, 3, 4, 5, 6};
  const int64_t turned[] = {3, 2}, steps[] = {1, 3}, dense[] = {2, 1};
  sardonyx_value* tensor = NULL;
  int one = 1;
  test = "strided";
  released = 0;
  OK(sardonyx_tensor_wrap_strided(SARDONYX_FLOAT32, 2, turned, steps, memory, sizeof memory, 0,
                                  on_release, &one, &tensor));
  CHECK(released == 1 && elements(tensor)[1] == 4 && elements(tensor)[2] == 2);
  sardonyx_value_release(tensor);
  OK(sardonyx_tensor_wrap_strided(SARDONYX_FLOAT32, 2, turned, dense, memory, sizeof memory, 0,
                                  on_release, &one, &tensor));
  CHECK(released == 1 && elements(tensor) == memory);
  sardonyx_value_release(tensor);
  CHECK(released == 2);
  FAILS(sardonyx_tensor_wrap_strided(SARDONYX_FLOAT32, 2, turned, steps, memory, 20, 0, on_release,
                                     &one, &tensor),
        SARDONYX_BAD_INPUT, "reaches over");
  FAILS(sardonyx_tensor_wrap_strided((sardonyx_element_type)77, 2, turned, steps, memory, 24, 0,
                                     on_release, &one, &tensor),
        SARDONYX_BAD_INPUT, "type");
  NULL_ARGUMENT(sardonyx_tensor_wrap_strided(SARDONYX_FLOAT32, 2, turned, NULL, memory, 24, 0, NULL,
                                             NULL, &tensor),
                "strides");
  NULL_ARGUMENT(sardonyx_tensor_wrap_strided(SARDONYX_FLOAT32, 2, turned, steps, memory, 24, 0,
                                             NULL, NULL, NULL),
                "tensor");
  CHECK(released == 2);
}

static void numbers_of_any_type(void) {
  const int64_t three[] = {3};
  const float from[] = {-8, 7, 1};
  float to[3] = {0, 0, 0};
  int64_t whole[3] = {0, 0, 0};
  sardonyx_value* tensor = NULL;
  sardonyx_value* strings = NULL;
  test = "numbers_of_any_type";
  OK(sardonyx_tensor_from_floats(SARDONYX_INT4, 1, three, from, 3, &tensor));
  OK(sardonyx_tensor_read_floats(tensor, to, 3));
  CHECK(memcmp(from, to, sizeof to) == 0);
  OK(sardonyx_tensor_read_integers(tensor, whole, 3));
  CHECK(whole[0] == -8 && whole[1] == 7 && whole[2] == 1);
  FAILS(sardonyx_tensor_read_floats(tensor, to, 2), SARDONYX_BAD_INPUT, "room for 2");
  NULL_ARGUMENT(sardonyx_tensor_read_floats(tensor, NULL, 3), "to");
  NULL_ARGUMENT(sardonyx_tensor_read_floats(NULL, to, 3), "tensor");
  sardonyx_value_release(tensor);
  OK(sardonyx_tensor_from_floats(SARDONYX_BFLOAT16, 1, three, from, 3, &tensor));
  FAILS(sardonyx_tensor_read_integers(tensor, whole, 3), SARDONYX_BAD_INPUT, "no integers");
  sardonyx_value_release(tensor);
  FAILS(sardonyx_tensor_from_floats(SARDONYX_STRING, 1, three, from, 3, &tensor),
        SARDONYX_BAD_INPUT, "no numbers");
  FAILS(sardonyx_tensor_from_floats((sardonyx_element_type)-1, 1, three, from, 3, &tensor),
        SARDONYX_BAD_INPUT, "no numbers");
  FAILS(sardonyx_tensor_from_floats(SARDONYX_FLOAT16, 1, three, from, 2, &tensor),
        SARDONYX_BAD_INPUT, "do not fill");
  OK(sardonyx_tensor_create(SARDONYX_STRING, 1, three, &strings));
  FAILS(sardonyx_tensor_read_floats(strings, to, 3), SARDONYX_BAD_INPUT, "no numbers");
  sardonyx_value_release(strings);
}

static void dlpack(void) {
  const float numbers[] = {3, 5};
  sardonyx_value *tensor = floats(2, one_row, numbers), *back = NULL, *strings = NULL;
  void* managed = NULL;
  int versioned;
  test = "dlpack";
  for (versioned = 0; versioned < 2; ++versioned) {
    OK(sardonyx_tensor_to_dlpack(tensor, versioned, 0, &managed));
    OK(sardonyx_tensor_from_dlpack(managed, versioned, &back));
    CHECK(elements(back) == elements(tensor));
    sardonyx_value_release(back);
  }
  NULL_ARGUMENT(sardonyx_tensor_to_dlpack(NULL, 0, 0, &managed), "tensor");
  NULL_ARGUMENT(sardonyx_tensor_to_dlpack(tensor, 0, 0, NULL), "managed");
  NULL_ARGUMENT(sardonyx_tensor_from_dlpack(NULL, 0, &back), "managed");
  OK(sardonyx_tensor_create(SARDONYX_STRING, 2, one_row, &strings));
  FAILS(sardonyx_tensor_to_dlpack(strings, 1, 0, &managed), SARDONYX_UNSUPPORTED, "string");
  sardonyx_value_release(strings);
  sardonyx_value_release(tensor);
}

static void statuses(void) {
  sardonyx_status* status = sardonyx_status_create(SARDONYX_RUN_FAILED, "it broke");
  test = "statuses";
  CHECK(sardonyx_status_code(status) == SARDONYX_RUN_FAILED);
  CHECK(strcmp(sardonyx_status_message(status), "it broke") == 0);
  sardonyx_status_release(status);
  CHECK(sardonyx_status_create(SARDONYX_OK, "fine") == NULL);
  status = sardonyx_status_create(SARDONYX_BAD_INPUT, NULL);
  CHECK(strlen(sardonyx_status_message(status)) > 0);
  sardonyx_status_release(status);
}

typedef struct memory_of_outputs {
  int out, asked, users;
  int gives_none;
} memory_of_outputs;

static void* take_memory(size_t bytes, size_t alignment, void* user) {
  memory_of_outputs* of = (memory_of_outputs*)user;
  char* block;
  size_t skip;
  ++of->asked;
  if (of->gives_none) return NULL;
  /* C99 has no aligned memory: the size and the block stand before what is given. */
  block = (char*)malloc(bytes + 2 * alignment);
  skip = alignment - (size_t)((uintptr_t)block % alignment);
  if (skip < sizeof block) skip += alignment;
  memcpy(block + skip - sizeof block, &block, sizeof block);
  ++of->out;
  return block + skip;
}

static void give_memory_back(void* memory, size_t bytes, void* user) {
  char* block = NULL;
  memcpy(&block, (char*)memory - sizeof block, sizeof block);
  CHECK(bytes == 8);
  --((memory_of_outputs*)user)->out;
  free(block);
}

static void release_memory(void* user) { ++((memory_of_outputs*)user)->users; }

static void memory_for_outputs(void) {
  static const int64_t row[] = {1, 2};
  const float numbers[] = {3, 4};
  memory_of_outputs memory;
  sardonyx_allocator allocator = SARDONYX_INIT(sardonyx_allocator);
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_model* model = NULL;
  sardonyx_session *session = NULL, *none = NULL;
  sardonyx_value *x = floats(2, row, numbers), *y[2] = {NULL, NULL};
  const char* wrong = "nothing";
  test = "memory_for_outputs";
  memset(&memory, 0, sizeof memory);
  allocator.user = &memory;
  allocator.allocate = take_memory;
  options.output_allocator = &allocator;
  OK(sardonyx_model_parse(affine, strlen(affine), NULL, &model));
  FAILS(sardonyx_session_create(model, &options, &none), SARDONYX_BAD_INPUT, "'release'");
  allocator.release = give_memory_back, allocator.release_user = release_memory;
  options.extra_outputs = &wrong, options.extra_output_count = 1;
  FAILS(sardonyx_session_create(model, &options, &none), SARDONYX_BAD_INPUT, "nothing");
  CHECK(none == NULL && memory.users == 0);
  options.extra_output_count = 0;
  OK(sardonyx_session_create(model, &options, &session));
  sardonyx_model_release(model);
  OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, y, 2));
  CHECK(memory.asked == 2 && memory.out == 2 && elements(y[0])[1] == 8);
  CHECK((uintptr_t)elements(y[0]) % 64 == 0);
  sardonyx_value_release(y[1]);
  y[1] = NULL;
  CHECK(memory.out == 1);
  memory.gives_none = 1;
  FAILS(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, y + 1, 1),
        SARDONYX_BAD_INPUT, "");
  sardonyx_value_release(y[0]);
  y[0] = NULL;
  FAILS(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, y, 2),
        SARDONYX_OUT_OF_MEMORY, "8 bytes");
  CHECK(y[0] == NULL && y[1] == NULL && memory.out == 0);
  memory.gives_none = 0;
  OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, y, 2));
  sardonyx_session_release(session);
  CHECK(memory.users == 0 && memory.out == 2);
  sardonyx_value_release(y[0]);
  CHECK(memory.users == 0);
  sardonyx_value_release(y[1]);
  CHECK(memory.users == 1 && memory.out == 0);
  sardonyx_value_release(x);
}

int main(void) {
  memory_for_outputs();
  async_runs();
  sessions_while_they_are_released();
  outputs_of_strings();
  outputs_in_items_of_inputs();
  bindings();
  options_of_sessions();
  options_of_version_1();
  small_numbers();
  profiles();
  strided();
  numbers_of_any_type();
  dlpack();
  statuses();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
