/* What is written and told, through the C interface: files, outputs of runs, what passes do. */
#include <math.h>
#include <stdlib.h>

#include "checks.h"

static sardonyx_model* parsed(const char* text) {
  sardonyx_model* model = NULL;
  OK(sardonyx_model_parse(text, strlen(text), NULL, &model));
  return model;
}

static int is_text(sardonyx_bytes* bytes, const char* expected) {
  size_t size = 0;
  const char* text = sardonyx_bytes_data(bytes, &size);
  const int same = size == strlen(expected) && strcmp(text, expected) == 0;
  if (!same) fprintf(stderr, "%s: \"%s\"\n", test, text);
  sardonyx_bytes_release(bytes);
  return same;
}

static void files_and_texts(void) {
  const char* path = "capi_text.txt";
  sardonyx_bytes* text = NULL;
  test = "files_and_texts";
  OK(sardonyx_text_write(path, "one\0two", 7));
  OK(sardonyx_text_read(path, &text));
  CHECK(memcmp(sardonyx_bytes_data(text, NULL), "one\0two", 8) == 0);
  sardonyx_bytes_release(text);
  remove(path);
  text = NULL;
  FAILS(sardonyx_text_read(path, &text), SARDONYX_UNREADABLE, path);
  FAILS(sardonyx_text_write("no/such/folder/x", "x", 1), SARDONYX_UNREADABLE, "no/such/folder");
  CHECK(text == NULL);
  OK(sardonyx_printable("a\x1b[31m\xff", 7, &text));
  CHECK(is_text(text, "a\\x1b[31m\\xff"));
  OK(sardonyx_ending_problem("model.onnx", NULL, &text));
  CHECK(is_text(text, ""));
  OK(sardonyx_ending_problem("model.png", NULL, &text));
  CHECK(strstr(sardonyx_bytes_data(text, NULL), ".png") != NULL);
  sardonyx_bytes_release(text);
  OK(sardonyx_text_write("capi_model.png", "x", 1));
  OK(sardonyx_ending_problem("capi_model.png", "capi_model.png", &text));
  CHECK(is_text(text, ""));
  remove("capi_model.png");
}

static void saving_is_told_of(void) {
  const char *path = "capi_saved.onnx", *data = "capi_saved.data";
  sardonyx_model* model = parsed(affine);
  sardonyx_save_options options = SARDONYX_INIT(sardonyx_save_options);
  sardonyx_bytes *notes = NULL, *bytes = NULL;
  uint64_t model_bytes = 0, data_bytes = 7;
  size_t size = 0;
  test = "saving_is_told_of";
  OK(sardonyx_model_save_reported(model, path, NULL, &model_bytes, &data_bytes, &notes));
  OK(sardonyx_model_write(model, SARDONYX_FORM_BINARY, &bytes));
  sardonyx_bytes_data(bytes, &size);
  CHECK(model_bytes == size && data_bytes == 0);
  CHECK(is_text(notes, ""));
  sardonyx_bytes_release(bytes);
  options.external_data = data, options.threshold = 1;
  OK(sardonyx_model_save_reported(model, path, &options, NULL, &data_bytes, NULL));
  CHECK(data_bytes == 8); /* two floats */
  remove(path);
  remove(data);
  sardonyx_model_release(model);
}

static void outputs_of_runs(void) {
  static const int64_t row[] = {1, 2};
  const float numbers[] = {1, INFINITY};
  sardonyx_model* model = parsed(affine);
  sardonyx_session* session = NULL;
  sardonyx_value *x = floats(2, row, numbers), *texts = NULL, *out[2] = {NULL, NULL};
  sardonyx_named_values* read = NULL;
  sardonyx_number_summary summary = SARDONYX_INIT(sardonyx_number_summary);
  const char *name = "x", *text = "a";
  int64_t elements_of_it = 0;
  size_t order[3] = {9, 9, 9};
  test = "outputs_of_runs";
  OK(sardonyx_session_create(model, NULL, &session));
  OK(sardonyx_session_run(session, NULL, &name, (const sardonyx_value* const*)&x, 1, NULL, 2, out));
  OK(sardonyx_outputs_write_npz("capi_outputs.npz", session, (const sardonyx_value* const*)out, 2));
  FAILS(
      sardonyx_outputs_write_npz("capi_outputs.npz", session, (const sardonyx_value* const*)out, 1),
      SARDONYX_BAD_INPUT, "the session has 2");
  OK(sardonyx_npz_read("capi_outputs.npz", &read));
  OK(sardonyx_named_values_get(read, 1, &name, NULL));
  CHECK(sardonyx_named_values_count(read) == 2 && strcmp(name, "z") == 0);
  OK(sardonyx_value_size(out[0], &elements_of_it));
  CHECK(elements_of_it == 2);
  OK(sardonyx_value_summarize(out[0], &summary));
  CHECK(summary.has_numbers && summary.elements == 2 && summary.infinite == 1 && summary.nans == 0);
  CHECK(summary.least == summary.most && summary.most == 1);
  OK(sardonyx_tensor_create_strings(0, NULL, &text, NULL, &texts));
  OK(sardonyx_value_summarize(texts, &summary));
  CHECK(!summary.has_numbers && summary.elements == 0);
  OK(sardonyx_session_making_order(session, model, order, 2));
  CHECK(order[0] == 0 && order[1] == 1 && order[2] == 9);
  FAILS(sardonyx_session_making_order(session, model, order, 3), SARDONYX_BAD_INPUT, "2 outputs");
  sardonyx_session_release(session);
  remove("capi_outputs.npz");
  sardonyx_named_values_release(read);
  sardonyx_value_release(x);
  sardonyx_value_release(texts);
  sardonyx_value_release(out[0]);
  sardonyx_value_release(out[1]);
  sardonyx_model_release(model);
}

/* An output that is made before the one that the model names first. */
static void order_of_making(void) {
  static const char backwards[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N] x) => (float[N] y, float[N] a) { a = Neg(x)  y = Exp(a) }\n";
  sardonyx_model* model = parsed(backwards);
  sardonyx_session* session = NULL;
  size_t order[2] = {9, 9};
  test = "order_of_making";
  OK(sardonyx_session_create(model, NULL, &session));
  OK(sardonyx_session_making_order(session, model, order, 2));
  CHECK(order[0] == 1 && order[1] == 0);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
}

typedef struct observed {
  int passes, changed, stop_at;
  int64_t adds; /* how many nodes Add there are more than at the beginning */
  char last[64];
} observed;

static sardonyx_status* on_pass(const sardonyx_pass_run* run, const sardonyx_pass_graph* graph,
                                void* user) {
  observed* all = (observed*)user;
  sardonyx_bytes* text = NULL;
  int64_t sum = 0;
  size_t i;
  ++all->passes;
  all->changed += run->changed != 0;
  CHECK(run->size == sizeof *run && strcmp(run->graph, "main graph") == 0 && run->seconds >= 0);
  for (i = 0; i < run->operator_count; ++i) {
    sum += run->operator_changes[i];
    if (strcmp(run->operators[i], "Add") == 0) all->adds += run->operator_changes[i];
  }
  CHECK(sum == run->nodes_after - run->nodes_before);
  if (all->passes == all->stop_at) return sardonyx_status_create(SARDONYX_BAD_INPUT, "enough");
  strncpy(all->last, run->name, sizeof all->last - 1);
  OK(sardonyx_pass_graph_text(graph, &text));
  CHECK(strstr(sardonyx_bytes_data(text, NULL), "=>") != NULL);
  sardonyx_bytes_release(text);
  return NULL;
}

static void passes_are_observed(void) {
  sardonyx_model* model = parsed(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N] x) => (float[N] y) <float c = {1}> { d = Add(c, c)  y = Mul(x, d) }\n");
  sardonyx_pass_options options = SARDONYX_INIT(sardonyx_pass_options);
  sardonyx_bytes *text = NULL, *other = NULL;
  observed all;
  test = "passes_are_observed";
  memset(&all, 0, sizeof all);
  options.observe = on_pass, options.user = &all;
  OK(sardonyx_model_run_passes(model, NULL, &options, &text));
  OK(sardonyx_model_optimized_text(model, NULL, NULL, 0, &other));
  CHECK(all.passes > 5 && all.changed > 0 && all.adds == -1);
  CHECK(is_text(text, sardonyx_bytes_data(other, NULL)));
  text = NULL;
  all.passes = 0, all.stop_at = 2;
  FAILS(sardonyx_model_run_passes(model, NULL, &options, &text), SARDONYX_BAD_INPUT, "enough");
  CHECK(text == NULL && all.passes == 2);
  options.observe = NULL, options.stop_after = "no-such-pass";
  FAILS(sardonyx_model_run_passes(model, NULL, &options, &text), SARDONYX_BAD_INPUT,
        "no-such-pass");
  sardonyx_bytes_release(other);
  sardonyx_model_release(model);
}

/* A model with types, and what they were found to be. */
static void types_and_findings(void) {
  sardonyx_model *model = parsed(affine), *typed = NULL;
  sardonyx_inference* inference = NULL;
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  test = "types_and_findings";
  OK(sardonyx_model_infer_reported(model, NULL, &typed, &inference));
  CHECK(typed != NULL && sardonyx_inference_count(inference) > 0);
  CHECK(sardonyx_inference_finding_count(inference) == 0);
  OK(sardonyx_inference_value(inference, 0, &info));
  CHECK(strcmp(info.name, "x") == 0 && info.rank == 2);
  sardonyx_inference_release(inference);
  sardonyx_model_release(typed);
  sardonyx_model_release(model);
}

int main(void) {
  types_and_findings();
  files_and_texts();
  saving_is_told_of();
  outputs_of_runs();
  order_of_making();
  passes_are_observed();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
