/* Training on data through the C interface: what works, and how it says what does not. */
#include <math.h>
#include <stdlib.h>

#include "checks.h"

static const char line[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {0, 0}, float[1] b = {0}> {\n"
    "  xw = MatMul(x, w)\n  y = Add(xw, b)\n}\n";
enum { EXAMPLES = 40 };

static sardonyx_model* trainable_of(const sardonyx_trainable_options* given) {
  sardonyx_trainable_options options = SARDONYX_INIT(sardonyx_trainable_options);
  sardonyx_model *model = NULL, *trainable = NULL;
  options.loss = "mse", options.optimizer = "sgd", options.learning_rate = 0.125;
  OK(sardonyx_model_parse(line, strlen(line), NULL, &model));
  OK(sardonyx_make_trainable(model, given != NULL ? given : &options, &trainable));
  sardonyx_model_release(model);
  return trainable;
}

static sardonyx_training* training_of(const sardonyx_trainable_options* given) {
  sardonyx_model* trainable = trainable_of(given);
  sardonyx_training* training = NULL;
  OK(sardonyx_training_create(trainable, NULL, &training));
  sardonyx_model_release(trainable);
  return training;
}

/* y = 2 a - b + 0.5 at points of a grid; a target at `bad` is NaN. */
static sardonyx_training_data* data_of(int bad) {
  static const char* const names[2] = {"x", "target"};
  const int64_t rows[2] = {EXAMPLES, 2}, column[2] = {EXAMPLES, 1};
  float x[2 * EXAMPLES], target[EXAMPLES];
  const sardonyx_value* arrays[2];
  sardonyx_value *a, *b;
  sardonyx_training_data* data = NULL;
  int i;
  for (i = 0; i < EXAMPLES; ++i) {
    x[2 * i] = (float)(i % 8) / 8;
    x[2 * i + 1] = (float)(i / 8) / 8;
    target[i] = 2 * x[2 * i] - x[2 * i + 1] + 0.5f;
    if (i == bad) target[i] = NAN;
  }
  arrays[0] = a = floats(2, rows, x);
  arrays[1] = b = floats(2, column, target);
  OK(sardonyx_training_data_create(names, arrays, 2, &data));
  sardonyx_value_release(a);
  sardonyx_value_release(b);
  return data;
}

static float state_of(const sardonyx_training* training, const char* name, int which) {
  sardonyx_value* value = NULL;
  float number = NAN;
  OK(sardonyx_training_get_state(training, name, &value));
  if (value != NULL) number = elements(value)[which];
  sardonyx_value_release(value);
  return number;
}

static double loss_of(sardonyx_training* training, const sardonyx_training_data* data) {
  sardonyx_metrics* metrics = NULL;
  const char* name = NULL;
  double loss = NAN;
  OK(sardonyx_training_measure(training, data, 16, 1, &metrics));
  CHECK(sardonyx_metrics_count(metrics) == 1);
  OK(sardonyx_metrics_get(metrics, 0, &name, &loss));
  CHECK(name != NULL && strcmp(name, "loss") == 0);
  sardonyx_metrics_release(metrics);
  return loss;
}

/* What a training tells while it goes on. */
typedef struct told {
  int steps, epochs, stop_at, fail_at, skipped;
  int64_t last_step, all_steps, examples;
  double loss, validation;
  sardonyx_cancel* cancel;
} told;

static sardonyx_status* on_step(const sardonyx_fit_progress* progress, void* user) {
  told* all = (told*)user;
  ++all->steps;
  all->last_step = progress->step, all->all_steps = progress->steps;
  all->examples = progress->examples;
  all->skipped += progress->skipped != 0;
  if (!progress->skipped) all->loss = progress->loss;
  CHECK(progress->size == sizeof *progress && progress->seconds >= 0);
  CHECK(progress->metric_count == 2 && strcmp(progress->metrics[0].name, "loss") == 0);
  if (all->steps == all->stop_at) sardonyx_cancel_set(all->cancel, 1);
  if (all->steps == all->fail_at) return sardonyx_status_create(SARDONYX_BAD_INPUT, "enough");
  return NULL;
}

static sardonyx_status* on_epoch(const sardonyx_epoch_result* result, void* user) {
  told* all = (told*)user;
  CHECK(result->epoch == all->epochs && result->training_count == 2);
  ++all->epochs;
  if (result->validation_count > 0) all->validation = result->validation[0].value;
  return NULL;
}

static sardonyx_fit_options options_for(told* all) {
  sardonyx_fit_options options = SARDONYX_INIT(sardonyx_fit_options);
  options.batch = 8;
  options.on_step = on_step, options.on_epoch = on_epoch, options.user = all;
  return options;
}

static void learning(void) {
  sardonyx_training* training = training_of(NULL);
  sardonyx_training_data* data = data_of(-1);
  sardonyx_fit_result* result = NULL;
  sardonyx_fit_summary summary = SARDONYX_INIT(sardonyx_fit_summary);
  sardonyx_epoch_result epoch = SARDONYX_INIT(sardonyx_epoch_result);
  told all = {0};
  sardonyx_fit_options options = options_for(&all);
  const double before = loss_of(training, data);
  test = "learning";
  options.epochs = 60, options.validation = data;
  CHECK(sardonyx_training_turn(training) == 0);
  OK(sardonyx_training_fit(training, data, &options, &result));
  CHECK(all.steps == 300 && all.epochs == 60 && all.last_step == 300 && all.all_steps == 300);
  CHECK(all.examples == 60 * EXAMPLES && all.skipped == 0);
  CHECK(fabsf(state_of(training, "w", 0) - 2) < 0.3f);
  CHECK(fabsf(state_of(training, "w", 1) + 1) < 0.3f);
  CHECK(loss_of(training, data) < before / 100);
  CHECK(fabs(all.validation - loss_of(training, data)) < 1e-6);
  OK(sardonyx_fit_result_describe(result, &summary));
  CHECK(summary.step == 300 && summary.epoch_count == 60 && !summary.stopped &&
        summary.skipped == 0);
  CHECK(!summary.stopped_early && strcmp(summary.checkpoint, "") == 0);
  OK(sardonyx_fit_result_epoch(result, 59, &epoch));
  CHECK(epoch.epoch == 59 && epoch.training_count == 2 && epoch.validation_count == 1);
  CHECK(strcmp(epoch.training[0].name, "loss") == 0 && epoch.validation[0].value == all.validation);
  FAILS(sardonyx_fit_result_epoch(result, 60, &epoch), SARDONYX_BAD_INPUT, "60");
  sardonyx_fit_result_release(result);
  sardonyx_training_data_release(data);
  sardonyx_training_release(training);
}

/* A training that was stopped and goes on from its checkpoint ends with the bits of one that was
 * not. */
static void going_on(void) {
  const char* folder = "capi_checkpoints";
  sardonyx_training *whole = training_of(NULL), *first = training_of(NULL), *second = NULL;
  sardonyx_training_data* data = data_of(-1);
  sardonyx_fit_result* result = NULL;
  sardonyx_fit_summary summary = SARDONYX_INIT(sardonyx_fit_summary);
  sardonyx_bytes* path = NULL;
  int64_t step = -1;
  told all = {0};
  sardonyx_fit_options options = options_for(&all);
  test = "going_on";
  options.epochs = 4;
  OK(sardonyx_training_fit(whole, data, &options, NULL));
  OK(sardonyx_cancel_create(&all.cancel));
  all.steps = all.epochs = 0;
  all.stop_at = 7;
  options.stop = all.cancel, options.checkpoints = folder, options.keep = 1;
  OK(sardonyx_training_fit(first, data, &options, &result));
  OK(sardonyx_fit_result_describe(result, &summary));
  CHECK(summary.stopped && summary.step == 7 && summary.epoch_count == 1);
  CHECK(strstr(summary.checkpoint, folder) != NULL);
  OK(sardonyx_last_checkpoint(folder, &path, &step));
  CHECK(step == 7 && strcmp(sardonyx_bytes_data(path, NULL), summary.checkpoint) == 0);
  OK(sardonyx_training_load(sardonyx_bytes_data(path, NULL), NULL, NULL, &second));
  options.checkpoints = NULL, options.stop = NULL, options.on_epoch = NULL;
  options.first_step = step;
  OK(sardonyx_training_fit(second, data, &options, NULL));
  CHECK(state_of(second, "w", 0) == state_of(whole, "w", 0));
  CHECK(state_of(second, "b", 0) == state_of(whole, "b", 0));
  remove(summary.checkpoint);
  remove("capi_checkpoints/lock");
  remove(folder);
  sardonyx_bytes_release(path);
  path = NULL;
  OK(sardonyx_last_checkpoint("capi_no_such_folder", &path, &step));
  CHECK(strcmp(sardonyx_bytes_data(path, NULL), "") == 0 && step == 0);
  sardonyx_bytes_release(path);
  sardonyx_fit_result_release(result);
  sardonyx_cancel_release(all.cancel);
  sardonyx_training_data_release(data);
  sardonyx_training_release(whole);
  sardonyx_training_release(first);
  sardonyx_training_release(second);
}

static void callbacks_end_it(void) {
  sardonyx_training* training = training_of(NULL);
  sardonyx_training_data* data = data_of(-1);
  sardonyx_fit_result* result = NULL;
  told all = {0};
  sardonyx_fit_options options = options_for(&all);
  test = "callbacks_end_it";
  all.fail_at = 3;
  FAILS(sardonyx_training_fit(training, data, &options, &result), SARDONYX_BAD_INPUT, "enough");
  CHECK(result == NULL && all.steps == 3 && sardonyx_training_turn(training) == 3);
  sardonyx_training_data_release(data);
  sardonyx_training_release(training);
}

static void bad_losses(void) {
  sardonyx_training* training = training_of(NULL);
  sardonyx_training_data* data = data_of(11);
  sardonyx_fit_result* result = NULL;
  sardonyx_fit_summary summary = SARDONYX_INIT(sardonyx_fit_summary);
  told all = {0};
  sardonyx_fit_options options = options_for(&all);
  test = "bad_losses";
  options.no_shuffle = 1;
  FAILS(sardonyx_training_fit(training, data, &options, &result), SARDONYX_RUN_FAILED, "step 2");
  CHECK(result == NULL && sardonyx_training_turn(training) == 1);
  options.skip_bad_loss = 1;
  all.steps = 0;
  OK(sardonyx_training_fit(training, data, &options, &result));
  OK(sardonyx_fit_result_describe(result, &summary));
  CHECK(summary.skipped == 1 && all.skipped == 1 && all.steps == 5);
  CHECK(isfinite(state_of(training, "w", 0)));
  sardonyx_fit_result_release(result);
  sardonyx_training_data_release(data);
  sardonyx_training_release(training);
}

static void wrong_options(void) {
  sardonyx_training* training = training_of(NULL);
  sardonyx_training_data* data = data_of(-1);
  sardonyx_fit_options options = SARDONYX_INIT(sardonyx_fit_options);
  test = "wrong_options";
  options.batch = -1;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "batch");
  options.batch = 64, options.drop_last = 1;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "batch");
  options.batch = 0, options.epochs = -1;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "epochs");
  options.epochs = 0, options.crop = 5000;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "4096");
  options.crop = 0, options.algorithm = 2;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "number 2");
  options.algorithm = 0, options.validation = data, options.has_measure = 1, options.measure = 9;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "number 9");
  options.validation = (const sardonyx_training_data*)(const void*)training;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "'validation'");
  options.validation = NULL, options.first_step = -1;
  FAILS(sardonyx_training_fit(training, data, &options, NULL), SARDONYX_BAD_INPUT, "first_step");
  CHECK(sardonyx_training_turn(training) == 0);
  sardonyx_training_data_release(data);
  sardonyx_training_release(training);
}

static void examples(void) {
  const int64_t places[3] = {39, 0, 9}, beyond[1] = {EXAMPLES}, two[2] = {2, 1}, three[2] = {3, 1};
  const int64_t endless[2] = {INT64_MAX, 0};
  const float numbers[3] = {1, 2, 3};
  const char* names[2] = {"x", "target"};
  sardonyx_training* training = training_of(NULL);
  sardonyx_training_data *data = data_of(-1), *again = NULL;
  sardonyx_named_values *batch = NULL, *all = NULL;
  sardonyx_value *x = NULL, *none = NULL, *a = floats(2, two, numbers), *b = floats(2, three, numbers);
  const sardonyx_value* unequal[2];
  const char* name = NULL;
  test = "examples";
  CHECK(sardonyx_training_data_size(data) == EXAMPLES && sardonyx_training_data_size(NULL) == 0);
  OK(sardonyx_training_data_batch(data, places, 3, &batch));
  CHECK(sardonyx_named_values_count(batch) == 2);
  OK(sardonyx_named_values_get(batch, 0, &name, &x));
  CHECK(strcmp(name, "x") == 0);
  CHECK(elements(x)[0] == 7.0f / 8 && elements(x)[1] == 4.0f / 8 && elements(x)[2] == 0);
  CHECK(elements(x)[4] == 1.0f / 8 && elements(x)[5] == 1.0f / 8);
  sardonyx_value_release(x);
  sardonyx_named_values_release(batch);
  batch = NULL;
  FAILS(sardonyx_training_data_batch(data, beyond, 1, &batch), SARDONYX_BAD_INPUT, "none at 40");
  CHECK(batch == NULL);
  OK(sardonyx_training_data_arrays(data, &all));
  OK(sardonyx_npz_write(all, "capi_examples.npz"));
  OK(sardonyx_training_data_read("capi_examples.npz", training, 0, &again));
  CHECK(sardonyx_training_data_size(again) == EXAMPLES);
  CHECK(loss_of(training, again) == loss_of(training, data));
  sardonyx_training_data_release(again);
  again = NULL;
  FAILS(sardonyx_training_data_read("capi_examples.npz", training, 7, &again), SARDONYX_BAD_INPUT,
        "number 7");
  FAILS(sardonyx_training_data_read("capi_missing.npz", training, 0, &again), SARDONYX_UNREADABLE,
        "capi_missing.npz");
  FAILS(sardonyx_training_data_create(names, NULL, 0, &again), SARDONYX_BAD_INPUT, "no arrays");
  OK(sardonyx_tensor_create(SARDONYX_FLOAT32, 2, endless, &none));
  unequal[0] = none;
  FAILS(sardonyx_training_data_create(names, unequal, 1, &again), SARDONYX_BAD_INPUT, "no example");
  sardonyx_value_release(none);
  unequal[0] = a, unequal[1] = b;
  FAILS(sardonyx_training_data_create(names, unequal, 2, &again), SARDONYX_BAD_INPUT, "3 examples");
  CHECK(again == NULL);
  remove("capi_examples.npz");
  sardonyx_value_release(a);
  sardonyx_value_release(b);
  sardonyx_named_values_release(all);
  sardonyx_training_data_release(data);
  sardonyx_training_release(training);
}

static int above_limit(const sardonyx_value* const* outputs, size_t count, void* user) {
  CHECK(count == 2);
  return elements(outputs[0])[0] < *(const float*)user;
}

static void steps_that_are_refused(void) {
  static const char* const names[2] = {"x", "target"};
  const int64_t rows[2] = {1, 2}, column[2] = {1, 1};
  const float numbers[2] = {1, 1};
  float limit = 0.5f;
  sardonyx_training* training = training_of(NULL);
  sardonyx_value* in[2] = {floats(2, rows, numbers), floats(2, column, numbers)};
  sardonyx_value* out[2] = {NULL, NULL};
  const sardonyx_value* const* inputs = (const sardonyx_value* const*)in;
  int i;
  test = "steps_that_are_refused";
  /* The loss is (0 - 1)^2. */
  OK(sardonyx_training_step_if(training, 0, NULL, names, inputs, 2, above_limit, &limit, out, 2));
  CHECK(elements(out[0])[0] == 1 && sardonyx_training_turn(training) == 0);
  CHECK(state_of(training, "b", 0) == 0);
  for (i = 0; i < 2; ++i) sardonyx_value_release(out[i]), out[i] = NULL;
  limit = 2;
  OK(sardonyx_training_step_if(training, 0, NULL, names, inputs, 2, above_limit, &limit, out, 2));
  CHECK(sardonyx_training_turn(training) == 1 && state_of(training, "b", 0) == 0.25f);
  for (i = 0; i < 2; ++i) sardonyx_value_release(out[i]), sardonyx_value_release(in[i]);
  sardonyx_training_release(training);
}

static void states_and_metadata(void) {
  static const char* const keys[1] = {"epoch"};
  static const char* const values[1] = {"three"};
  const char *path = "capi_metadata.onnx", *name = NULL;
  sardonyx_training *training = training_of(NULL), *again = NULL;
  sardonyx_training_save_options saving = SARDONYX_INIT(sardonyx_training_save_options);
  sardonyx_named_values* state = NULL;
  sardonyx_bytes* text = NULL;
  test = "states_and_metadata";
  OK(sardonyx_training_state(training, &state));
  CHECK(sardonyx_named_values_count(state) == sardonyx_training_state_count(training));
  OK(sardonyx_named_values_get(state, 1, &name, NULL));
  CHECK(strcmp(name, "b") == 0);
  saving.metadata_keys = keys, saving.metadata_values = values, saving.metadata_count = 1;
  OK(sardonyx_training_save(training, path, &saving));
  OK(sardonyx_training_load(path, NULL, NULL, &again));
  OK(sardonyx_training_metadata(again, "epoch", &text));
  CHECK(strcmp(sardonyx_bytes_data(text, NULL), "three") == 0);
  sardonyx_bytes_release(text);
  OK(sardonyx_training_metadata(again, "other", &text));
  CHECK(strcmp(sardonyx_bytes_data(text, NULL), "") == 0);
  CHECK(sardonyx_training_seed(again) == sardonyx_training_seed(training));
  CHECK(sardonyx_training_seed(NULL) == 0);
  remove(path);
  sardonyx_bytes_release(text);
  sardonyx_named_values_release(state);
  sardonyx_training_release(again);
  sardonyx_training_release(training);
}

static void reports(void) {
  static const char *const lora[1] = {"1:w"}, *const freeze[1] = {"b"};
  sardonyx_trainable_options options = SARDONYX_INIT(sardonyx_trainable_options);
  sardonyx_model *model = NULL, *trainable = NULL, *merged = NULL;
  sardonyx_trainable_report* report = NULL;
  sardonyx_training* training = NULL;
  const char* text = NULL;
  test = "reports";
  options.loss = "mse", options.freeze = freeze, options.freeze_count = 1;
  OK(sardonyx_model_parse(line, strlen(line), NULL, &model));
  OK(sardonyx_make_trainable_reported(model, &options, &trainable, &report));
  CHECK(sardonyx_trainable_report_count(report, SARDONYX_TRAINABLE_TRAINED) == 1);
  OK(sardonyx_trainable_report_text(report, SARDONYX_TRAINABLE_TRAINED, 0, &text));
  CHECK(strcmp(text, "w") == 0);
  OK(sardonyx_trainable_report_text(report, SARDONYX_TRAINABLE_FROZEN, 0, &text));
  CHECK(strcmp(text, "b") == 0);
  CHECK(sardonyx_trainable_report_elements(report) == 2);
  CHECK(strcmp(sardonyx_trainable_report_target(report), "target") == 0);
  CHECK(strcmp(sardonyx_trainable_report_target(NULL), "") == 0);
  CHECK(sardonyx_trainable_report_count(report, 5) == 0);
  FAILS(sardonyx_trainable_report_text(report, 5, 0, &text), SARDONYX_BAD_INPUT, "no list 5");
  FAILS(sardonyx_trainable_report_text(report, 0, 1, &text), SARDONYX_BAD_INPUT, "1");
  FAILS(sardonyx_model_merge_lora(trainable, &merged), SARDONYX_BAD_INPUT, "");
  CHECK(merged == NULL);
  sardonyx_trainable_report_release(report);
  report = NULL;
  options.lora = lora, options.lora_count = 1;
  OK(sardonyx_make_trainable_file(model, &options, "capi_lora.onnx", NULL, &report));
  CHECK(sardonyx_trainable_report_count(report, SARDONYX_TRAINABLE_TRAINED) == 2);
  OK(sardonyx_training_load("capi_lora.onnx", NULL, NULL, &training));
  sardonyx_training_release(training);
  sardonyx_model_release(trainable);
  trainable = NULL;
  OK(sardonyx_model_load("capi_lora.onnx", NULL, &trainable));
  OK(sardonyx_model_merge_lora(trainable, &merged));
  remove("capi_lora.onnx");
  sardonyx_trainable_report_release(report);
  sardonyx_model_release(merged);
  sardonyx_model_release(trainable);
  sardonyx_model_release(model);
}

/* What w[0] is after one step from 0 on a loss whose slope is -2. */
static float stepped(const sardonyx_trainable_options* options) {
  static const char* const names[2] = {"x", "target"};
  const int64_t rows[2] = {1, 2}, column[2] = {1, 1};
  const float numbers[2] = {1, 0};
  sardonyx_training* training = training_of(options);
  sardonyx_value* in[2] = {floats(2, rows, numbers), floats(2, column, numbers)};
  sardonyx_value* out[2] = {NULL, NULL};
  int i, turn;
  float moved;
  for (turn = 0; turn < 2; ++turn) {
    OK(sardonyx_training_step(training, 0, NULL, names, (const sardonyx_value* const*)in, 2, out,
                              2));
    for (i = 0; i < 2; ++i) sardonyx_value_release(out[i]), out[i] = NULL;
  }
  for (i = 0; i < 2; ++i) sardonyx_value_release(in[i]);
  moved = state_of(training, "w", 0);
  sardonyx_training_release(training);
  return moved;
}

/* Each field has an effect, and the one that it should. */
static void fields_of_options(void) {
  sardonyx_trainable_options base = SARDONYX_INIT(sardonyx_trainable_options), options;
  float usual;
  test = "fields_of_options";
  base.loss = "mse", base.learning_rate = 0.0625;
  options = base, options.optimizer = "sgd";
  /* Two steps of w and b: slopes -2 and -2 (1 - 2 / 8). */
  CHECK(stepped(&options) == 0.125f + 0.0625f * 1.5f);
  options.clip_value = 0.5;
  CHECK(stepped(&options) == 0.0625f);
  options = base, options.optimizer = "momentum", usual = stepped(&options);
  options.has_momentum = 1;
  CHECK(stepped(&options) == 0.125f + 0.0625f * 1.5f && usual > stepped(&options));
  options.has_momentum = 0, options.nesterov = 1;
  CHECK(stepped(&options) > usual);
  options = base, options.optimizer = "rmsprop", usual = stepped(&options);
  options.has_smoothing = 1, options.smoothing = 0.5;
  CHECK(stepped(&options) < usual);
  options = base, options.optimizer = "adam", usual = stepped(&options);
  options.has_betas = 1, options.beta1 = 0, options.beta2 = 0.5;
  CHECK(stepped(&options) != usual);
  options.has_betas = 0, options.has_epsilon = 1, options.epsilon = 10;
  CHECK(stepped(&options) < usual / 2);
  options = base, options.optimizer = "sgd", options.loss = "huber";
  CHECK(stepped(&options) == 0.0625f + 0.0625f * 0.875f);
  options.huber_delta = 0.25; /* the slope of both steps */
  CHECK(stepped(&options) == 0.03125f);
}

static const char classes[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 3] x) => (float[N, 3] y) <float[3] b = {0, 0, 0}> { y = Add(x, b) }\n";

static void targets_that_do_not_count(void) {
  static const char* const names[2] = {"x", "target"};
  const int64_t rows[2] = {2, 3}, column[1] = {2}, wanted[2] = {0, -1};
  const float numbers[6] = {0, 0, 0, 5, 0, 0};
  sardonyx_trainable_options options = SARDONYX_INIT(sardonyx_trainable_options);
  sardonyx_model *model = NULL, *trainable = NULL;
  sardonyx_training* training = NULL;
  sardonyx_value* in[2] = {floats(2, rows, numbers), NULL};
  sardonyx_value* out[3] = {NULL, NULL, NULL};
  size_t i;
  test = "targets_that_do_not_count";
  OK(sardonyx_tensor_wrap(SARDONYX_INT64, 1, column, wanted, sizeof wanted, NULL, NULL, &in[1]));
  OK(sardonyx_model_parse(classes, strlen(classes), NULL, &model));
  options.has_ignore_index = 1, options.ignore_index = -1;
  OK(sardonyx_make_trainable(model, &options, &trainable));
  OK(sardonyx_training_create(trainable, NULL, &training));
  CHECK(sardonyx_training_step_output_count(training, 0) == 3);
  OK(sardonyx_training_step(training, 0, NULL, names, (const sardonyx_value* const*)in, 2, out, 3));
  CHECK(fabsf(elements(out[0])[0] - logf(3)) < 1e-5f); /* of the first example alone */
  sardonyx_model_release(trainable);
  trainable = NULL;
  options.has_class_axis = 1, options.class_axis = 7;
  FAILS(sardonyx_make_trainable(model, &options, &trainable), SARDONYX_BAD_INPUT, "7");
  for (i = 0; i < 3; ++i) sardonyx_value_release(out[i]);
  sardonyx_value_release(in[0]);
  sardonyx_value_release(in[1]);
  sardonyx_training_release(training);
  sardonyx_model_release(model);
}

int main(void) {
  learning();
  going_on();
  callbacks_end_it();
  bad_losses();
  wrong_options();
  examples();
  steps_that_are_refused();
  states_and_metadata();
  reports();
  fields_of_options();
  targets_that_do_not_count();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
