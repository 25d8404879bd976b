/* Training through the C interface: what works, and every way of calling it wrongly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sardonyx/sardonyx.h"

static int checks = 0, failures = 0;

#define CHECK(condition)                                              \
  do {                                                                \
    ++checks;                                                         \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                 \
  } while (0)

static void expect(sardonyx_status* status, sardonyx_code code, const char* part, int line) {
  ++checks;
  if (sardonyx_status_code(status) != code ||
      strstr(sardonyx_status_message(status), part) == NULL) {
    ++failures;
    fprintf(stderr, "%s:%d: code %d, \"%s\" instead of \"%s\"\n", __FILE__, line,
            (int)sardonyx_status_code(status), sardonyx_status_message(status), part);
  }
  sardonyx_status_release(status);
}
#define OK(call) expect((call), SARDONYX_OK, "", __LINE__)
#define FAILS(call, code, part) expect((call), (code), (part), __LINE__)
#define REFUSED(call, part) expect((call), SARDONYX_BAD_INPUT, (part), __LINE__)

static const char affine[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, -1}, float[1] b = {0.5}> {\n"
    "  xw = MatMul(x, w)\n  y = Add(xw, b)\n}\n";

static sardonyx_value* floats(int64_t rows, int64_t columns, const float* from) {
  const int64_t dims[2] = {rows, columns};
  sardonyx_value* tensor = NULL;
  void* data = NULL;
  OK(sardonyx_tensor_create(SARDONYX_FLOAT32, 2, dims, &tensor));
  OK(sardonyx_tensor_mutable_data(tensor, &data, NULL));
  memcpy(data, from, (size_t)(rows * columns) * sizeof(float));
  return tensor;
}

static float first(const sardonyx_value* value) {
  const void* data = NULL;
  OK(sardonyx_tensor_data(value, &data, NULL));
  return data == NULL ? 0 : *(const float*)data;
}

static sardonyx_model* model_of(const char* text) {
  sardonyx_model* model = NULL;
  OK(sardonyx_model_parse(text, strlen(text), NULL, &model));
  return model;
}

static sardonyx_training* made(void) {
  sardonyx_model *model = model_of(affine), *trainable = NULL;
  sardonyx_training* training = NULL;
  sardonyx_trainable_options options = SARDONYX_INIT(sardonyx_trainable_options);
  options.loss = "mse";
  options.optimizer = "sgd";
  options.learning_rate = 0.0625;
  OK(sardonyx_make_trainable(model, &options, &trainable));
  OK(sardonyx_training_create(trainable, NULL, &training));
  sardonyx_model_release(model);
  sardonyx_model_release(trainable);
  return training;
}

static const float some_x[6] = {1, 2, 3, 4, -1, 0.5f}, some_target[3] = {1, 0, 2};

/* One step of algorithm 0; the loss. */
static float step(sardonyx_training* training, size_t algorithm) {
  const char* names[2] = {"x", "target"};
  sardonyx_value* in[2] = {floats(3, 2, some_x), floats(3, 1, some_target)};
  sardonyx_value* out[2] = {NULL, NULL};
  const size_t count = sardonyx_training_step_output_count(training, algorithm);
  CHECK(count == (algorithm == 0 ? 2 : 1));
  OK(sardonyx_training_step(training, algorithm, NULL, names, (const sardonyx_value* const*)in, 2,
                            out, count));
  const float loss = first(out[0]);
  for (int i = 0; i < 2; ++i) {
    sardonyx_value_release(in[i]);
    sardonyx_value_release(out[i]);
  }
  return loss;
}

static float infer(const sardonyx_training* training) {
  const char* name = "x";
  const float row[2] = {1, 1};
  sardonyx_value *x = floats(1, 2, row), *y = NULL;
  OK(sardonyx_training_infer(training, NULL, &name, (const sardonyx_value* const*)&x, 1, &y, 1));
  const float value = first(y);
  sardonyx_value_release(x);
  sardonyx_value_release(y);
  return value;
}

static float state_of(const sardonyx_training* training, const char* name) {
  sardonyx_value* value = NULL;
  OK(sardonyx_training_get_state(training, name, &value));
  const float number = first(value);
  sardonyx_value_release(value);
  return number;
}

static void learning(void) {
  sardonyx_training* training = made();
  CHECK(sardonyx_training_algorithm_count(training) == 2);
  CHECK(sardonyx_training_input_count(training) == 1);
  CHECK(sardonyx_training_output_count(training) == 1);
  CHECK(sardonyx_training_step_input_count(training, 0) == 2);
  CHECK(sardonyx_training_state_count(training) == 4);
  CHECK(infer(training) == 0.5f);
  OK(sardonyx_training_initialize(training, NULL));
  const float before = step(training, 1);
  CHECK(sardonyx_training_turn(training) == 1);
  /* errors: -1.5, -0.5, -3; their squares 11.5 / 3; the slope of b is -10 / 3 */
  CHECK(fabsf(before - 11.5f / 3) < 1e-6f);
  CHECK(fabsf(step(training, 0) - before) < 1e-6f);
  CHECK(sardonyx_training_turn(training) == 2);
  CHECK(fabsf(state_of(training, "b") - (0.5f + 0.0625f * 10 / 3)) < 1e-6f);
  float loss = before;
  for (int i = 0; i < 20; ++i) loss = step(training, 0);
  CHECK(loss < before);
  sardonyx_training_release(training);
}

static void describing(void) {
  sardonyx_training* training = made();
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  OK(sardonyx_training_input(training, 0, &info));
  CHECK(strcmp(info.name, "x") == 0);
  OK(sardonyx_training_output(training, 0, &info));
  CHECK(strcmp(info.name, "y") == 0);
  OK(sardonyx_training_step_input(training, 0, 1, &info));
  CHECK(strcmp(info.name, "target") == 0 && strcmp(info.type, "float[N,1]") == 0);
  OK(sardonyx_training_step_output(training, 0, 0, &info));
  CHECK(strcmp(info.name, "loss") == 0);
  OK(sardonyx_training_state_variable(training, 0, &info));
  CHECK(strcmp(info.name, "w") == 0 && info.rank == 2);
  REFUSED(sardonyx_training_input(training, 1, &info), "there is no input 1 of 1");
  REFUSED(sardonyx_training_output(training, 1, &info), "there is no output 1 of 1");
  REFUSED(sardonyx_training_state_variable(training, 9, &info),
          "there is no state variable 9 of 4");
  REFUSED(sardonyx_training_step_input(training, 5, 0, &info), "there is no number 5");
  REFUSED(sardonyx_training_step_output(training, 0, 7, &info), "there is no output 7 of 2");
  REFUSED(sardonyx_training_input(NULL, 0, &info), "'training' is NULL");
  REFUSED(sardonyx_training_input(training, 0, NULL), "'info' is NULL");
  CHECK(sardonyx_training_step_input_count(training, 5) == 0);
  CHECK(sardonyx_training_step_output_count(NULL, 0) == 0);
  CHECK(sardonyx_training_input_count(NULL) + sardonyx_training_output_count(NULL) +
            sardonyx_training_state_count(NULL) + sardonyx_training_algorithm_count(NULL) ==
        0);
  CHECK(sardonyx_training_turn(NULL) == 0);
  sardonyx_training_release(training);
  sardonyx_training_release(NULL);
}

static void state(void) {
  sardonyx_training* training = made();
  const float one = 1;
  const int64_t dims[1] = {1};
  sardonyx_value *b = NULL, *wrong = floats(1, 1, &one), *none = NULL;
  OK(sardonyx_tensor_wrap(SARDONYX_FLOAT32, 1, dims, &one, sizeof one, NULL, NULL, &b));
  const char* names[2] = {"b", "v"};
  const sardonyx_value* values[2] = {b, b};
  OK(sardonyx_training_set_state(training, names, values, 1));
  CHECK(state_of(training, "b") == 1 && infer(training) == 1);
  REFUSED(sardonyx_training_set_state(training, names, values, 2), "state variable 'v'");
  values[0] = wrong;
  REFUSED(sardonyx_training_set_state(training, names, values, 1), "float[1]");
  values[0] = NULL;
  REFUSED(sardonyx_training_set_state(training, names, values, 1), "NULL");
  REFUSED(sardonyx_training_set_state(training, NULL, values, 1), "'names'");
  REFUSED(sardonyx_training_set_state(training, names, NULL, 1), "'values' is NULL");
  REFUSED(sardonyx_training_set_state(NULL, names, values, 0), "'training' is NULL");
  REFUSED(sardonyx_training_get_state(training, "v", &none), "no state variable 'v'");
  REFUSED(sardonyx_training_get_state(training, NULL, &none), "'name' is NULL");
  REFUSED(sardonyx_training_get_state(training, "b", NULL), "'value' is NULL");
  REFUSED(sardonyx_training_get_state(NULL, "b", &none), "'training' is NULL");
  CHECK(none == NULL && state_of(training, "b") == 1);
  sardonyx_value_release(b);
  sardonyx_value_release(wrong);
  sardonyx_training_release(training);
}

static void saving(void) {
  const char* path = "capi_training.onnx";
  sardonyx_training *training = made(), *again = NULL;
  for (int i = 0; i < 3; ++i) step(training, 0);
  OK(sardonyx_training_save(training, path, NULL));
  OK(sardonyx_training_load(path, NULL, NULL, &again));
  CHECK(sardonyx_training_turn(again) == 3);
  CHECK(step(training, 0) == step(again, 0) && infer(training) == infer(again));
  sardonyx_training_release(again);
  sardonyx_training_save_options options = SARDONYX_INIT(sardonyx_training_save_options);
  options.inference_only = 1;
  OK(sardonyx_training_save(training, path, &options));
  sardonyx_session* session = NULL;
  OK(sardonyx_session_load(path, NULL, NULL, &session));
  sardonyx_session_release(session);
  again = NULL;
  FAILS(sardonyx_training_load(path, NULL, NULL, &again), SARDONYX_INVALID_MODEL, "TR-03");
  FAILS(sardonyx_training_load("missing.onnx", NULL, NULL, &again), SARDONYX_UNREADABLE, "missing");
  REFUSED(sardonyx_training_load(NULL, NULL, NULL, &again), "'path' is NULL");
  REFUSED(sardonyx_training_load(path, NULL, NULL, NULL), "'training' is NULL");
  REFUSED(sardonyx_training_save(training, NULL, NULL), "'path' is NULL");
  REFUSED(sardonyx_training_save(NULL, path, NULL), "'training' is NULL");
  FAILS(sardonyx_training_save(training, "no/such/folder/m.onnx", NULL), SARDONYX_UNREADABLE,
        "no/such/folder");
  CHECK(again == NULL);
  remove(path);
  sardonyx_training_release(training);
}

static void wrong_calls(void) {
  sardonyx_training* training = made();
  const char* names[3] = {"x", "target", "x"};
  sardonyx_value* in[3] = {floats(3, 2, some_x), floats(3, 1, some_target), NULL};
  in[2] = in[0];
  const sardonyx_value* const* inputs = (const sardonyx_value* const*)in;
  sardonyx_value* out[3] = {NULL, NULL, NULL};
  REFUSED(sardonyx_training_step(NULL, 0, NULL, names, inputs, 2, out, 2), "'training' is NULL");
  REFUSED(sardonyx_training_step(training, 2, NULL, names, inputs, 2, out, 2), "number 2");
  REFUSED(sardonyx_training_step(training, 0, NULL, names, inputs, 2, out, 1), "room for 1");
  REFUSED(sardonyx_training_step(training, 0, NULL, names, inputs, 2, NULL, 2),
          "'outputs' is NULL");
  REFUSED(sardonyx_training_step(training, 0, NULL, names, inputs, 1, out, 2), "'target'");
  REFUSED(sardonyx_training_step(training, 0, NULL, names, inputs, 3, out, 2), "twice");
  REFUSED(sardonyx_training_step(training, 0, NULL, names, NULL, 2, out, 2), "'inputs' is NULL");
  REFUSED(sardonyx_training_infer(training, NULL, names, inputs, 2, out, 1), "'target'");
  REFUSED(sardonyx_training_infer(training, NULL, names, inputs, 1, out, 2), "room for 2");
  REFUSED(sardonyx_training_infer(NULL, NULL, names, inputs, 1, out, 1), "'training' is NULL");
  REFUSED(sardonyx_training_initialize(NULL, NULL), "'training' is NULL");
  sardonyx_cancel* cancel = NULL;
  OK(sardonyx_cancel_create(&cancel));
  sardonyx_cancel_set(cancel, 1);
  sardonyx_run_options run = SARDONYX_INIT(sardonyx_run_options);
  run.cancel = cancel;
  FAILS(sardonyx_training_step(training, 0, &run, names, inputs, 2, out, 2), SARDONYX_CANCELLED,
        "cancelled");
  FAILS(sardonyx_training_initialize(training, &run), SARDONYX_CANCELLED, "cancelled");
  CHECK(sardonyx_training_turn(training) == 0);
  CHECK(out[0] == NULL && out[1] == NULL && out[2] == NULL);
  sardonyx_cancel_release(cancel);
  sardonyx_value_release(in[0]);
  sardonyx_value_release(in[1]);
  sardonyx_training_release(training);
}

static void making(void) {
  sardonyx_model *model = model_of(affine), *trainable = NULL;
  sardonyx_training* training = NULL;
  sardonyx_trainable_options options = SARDONYX_INIT(sardonyx_trainable_options);
  const char *freeze[1] = {"w"}, *lora[1] = {"1:w"}, *both[1] = {"*"};
  options.loss = "l1", options.optimizer = "lamb", options.schedule = "cosine:10";
  options.freeze = freeze, options.freeze_count = 1;
  OK(sardonyx_make_trainable(model, &options, &trainable));
  sardonyx_model_release(trainable);
  trainable = NULL;
  options.lora = lora, options.lora_count = 1;
  OK(sardonyx_make_trainable(model, &options, &trainable));
  FAILS(sardonyx_training_create(model, NULL, &training), SARDONYX_INVALID_MODEL, "TR-03");
  sardonyx_training_options of_training = SARDONYX_INIT(sardonyx_training_options);
  of_training.threads = -1;
  REFUSED(sardonyx_training_create(trainable, &of_training, &training), "threads");
  of_training.threads = 1, of_training.reference = 1, of_training.has_seed = 1;
  of_training.seed = 7;
  of_training.recompute = 1;
  OK(sardonyx_training_create(trainable, &of_training, &training));
  sardonyx_training_save_options saving = SARDONYX_INIT(sardonyx_training_save_options);
  saving.merge_lora = 1;
  OK(sardonyx_training_save(training, "capi_merged.onnx", &saving));
  remove("capi_merged.onnx");
  sardonyx_training_release(training);
  training = NULL;
  sardonyx_model_release(trainable);
  trainable = NULL;
  options.precision = "fp16", options.loss_scale = 1024, options.recompute = 1;
  OK(sardonyx_make_trainable(model, &options, &trainable));
  OK(sardonyx_training_create(trainable, NULL, &training));
  sardonyx_training_release(training);
  training = NULL;
  sardonyx_model_release(trainable);
  trainable = NULL;
  options.precision = "fp8";
  REFUSED(sardonyx_make_trainable(model, &options, &trainable), "no precision 'fp8'");
  options.precision = NULL;
  options.lora_count = 0, options.freeze = both;
  REFUSED(sardonyx_make_trainable(model, &options, &trainable), "nothing would learn");
  options.loss = "hinge";
  REFUSED(sardonyx_make_trainable(model, &options, &trainable), "no loss 'hinge'");
  REFUSED(sardonyx_make_trainable(NULL, NULL, &trainable), "'model' is NULL");
  REFUSED(sardonyx_make_trainable(model, NULL, NULL), "'trainable' is NULL");
  REFUSED(sardonyx_training_create(NULL, NULL, &training), "'model' is NULL");
  REFUSED(sardonyx_training_create(model, NULL, NULL), "'training' is NULL");
  CHECK(trainable == NULL && training == NULL);
  sardonyx_model_release(model);
}

/* An argument is the folder of artifacts (tools/make_artifacts.py). */
static void artifacts(const char* folder) {
  char files[4][600];
  const char* const names[4] = {"training_model.onnx", "eval_model.onnx", "optimizer_model.onnx",
                                "checkpoint"};
  const char* const output[1] = {"b"};
  for (int i = 0; i < 4; ++i) snprintf(files[i], sizeof files[i], "%s/%s", folder, names[i]);
  sardonyx_training_artifacts given = SARDONYX_INIT(sardonyx_training_artifacts);
  given.training_model = files[0], given.eval_model = files[1];
  given.optimizer_model = files[2];
  sardonyx_model* trainable = NULL;
  sardonyx_trainable_report* report = NULL;
  REFUSED(sardonyx_make_trainable_of_artifacts(&given, &trainable, &report), "'checkpoint' is NULL");
  given.checkpoint = files[3];
  OK(sardonyx_make_trainable_of_artifacts(&given, &trainable, &report));
  CHECK(strcmp(sardonyx_trainable_report_target(report), "labels") == 0);
  CHECK(sardonyx_trainable_report_count(report, SARDONYX_TRAINABLE_TRAINED) == 4);
  sardonyx_trainable_report_release(report);
  sardonyx_training* training = NULL;
  OK(sardonyx_training_create(trainable, NULL, &training));
  sardonyx_training_release(training);
  sardonyx_model_release(trainable);
  trainable = NULL;
  given.outputs = output, given.output_count = 1, given.learning_rate = 0.5;
  OK(sardonyx_make_trainable_of_artifacts(&given, &trainable, NULL));
  sardonyx_model_release(trainable);
  trainable = NULL;
  given.learning_rate = -1;
  REFUSED(sardonyx_make_trainable_of_artifacts(&given, &trainable, NULL), "-1");
  given.learning_rate = 0, given.checkpoint = files[1];
  FAILS(sardonyx_make_trainable_of_artifacts(&given, &trainable, NULL), SARDONYX_UNREADABLE,
        "ODTC");
  CHECK(trainable == NULL);
}

int main(int count, char** arguments) {
  if (count > 1) artifacts(arguments[1]);
  learning();
  describing();
  state();
  saving();
  wrong_calls();
  making();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
