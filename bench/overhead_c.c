/* What a run costs beside its kernels, through Sardonyx's C interface and through ONNX Runtime's, in
 * one process and in turn:
 *
 *   overhead_c /path/of/libonnxruntime.so [ROUNDS]
 *
 * Three models: one node, 200 nodes that nothing combines, and one node of an operator of the
 * caller's that does nothing, whose run is all overhead. Outputs lie in memory of the caller's. Each
 * round runs every contender for about as long; medians of the rounds are told, as a Markdown table. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sardonyx/sardonyx.h"

enum { columns = 8, most_rounds = 1000 };

static void fail(const char* what, const char* why) {
  fprintf(stderr, "overhead_c: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void ok(sardonyx_status* status) {
  if (status != NULL) fail("Sardonyx", sardonyx_status_message(status));
}

/* --- ONNX Runtime: its table of functions by their places, which never change ---------------- */

typedef void (*ort_slot)(void);
typedef struct ort_base {
  const ort_slot* (*get_api)(uint32_t version);
  const char* (*version)(void);
} ort_base;
typedef void* ort_status;

enum ort_place {
  ort_error_message = 2,
  ort_create_env = 3,
  ort_disable_telemetry = 6,
  ort_create_session_from_array = 8,
  ort_run = 9,
  ort_create_session_options = 10,
  ort_intra_threads = 24,
  ort_inter_threads = 25,
  ort_tensor_of_memory = 49,
  ort_cpu_memory = 69,
  ort_release_env = 92,
  ort_release_memory = 94,
  ort_release_session = 95,
  ort_release_value = 96,
  ort_release_options = 100,
  ort_run_binding = 133,
  ort_create_binding = 134,
  ort_release_binding = 135,
  ort_bind_input = 136,
  ort_bind_output = 137
};
static const ort_slot* ort = NULL;
static void *ort_env = NULL, *ort_options = NULL, *ort_memory = NULL;

static void ort_ok(ort_status status) {
  if (status != NULL)
    fail("ONNX Runtime", ((const char* (*)(const void*))ort[ort_error_message])(status));
}

static const char* load_onnxruntime(const char* path) {
  const ort_base* base;
  const ort_base* (*get_base)(void);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail(path, dlerror());
  *(void**)&get_base = dlsym(library, "OrtGetApiBase");
  if (get_base == NULL) fail(path, "it has no OrtGetApiBase");
  base = get_base();
  ort = base->get_api(5);
  if (ort == NULL) fail(path, "it does not serve version 5 of its interface");
  ort_ok(((ort_status(*)(int, const char*, void**))ort[ort_create_env])(3, "overhead", &ort_env));
  ort_ok(((ort_status(*)(const void*))ort[ort_disable_telemetry])(ort_env));
  ort_ok(((ort_status(*)(void**))ort[ort_create_session_options])(&ort_options));
  ort_ok(((ort_status(*)(void*, int))ort[ort_intra_threads])(ort_options, 1));
  ort_ok(((ort_status(*)(void*, int))ort[ort_inter_threads])(ort_options, 1));
  ort_ok(((ort_status(*)(int, int, void**))ort[ort_cpu_memory])(0, 0, &ort_memory));
  return base->version();
}

static void* ort_tensor(float* data) {
  static const int64_t dims[] = {1, columns};
  void* made = NULL;
  ort_ok(((ort_status(*)(const void*, void*, size_t, const int64_t*, size_t, int, void**))
              ort[ort_tensor_of_memory])(ort_memory, data, columns * sizeof *data, dims, 2, 1,
                                         &made));
  return made;
}

/* --- Contenders ------------------------------------------------------------------------------- */

typedef struct contender {
  const char* name;
  void (*run)(struct contender* self);
  const sardonyx_session* session;
  sardonyx_binding* binding;
  const sardonyx_value* input;
  sardonyx_value* output;
  void *ort_session, *ort_binding, *ort_input, *ort_output;
  int calls; /* of a round */
  double nanoseconds[most_rounds];
} contender;

static void run_in_order(contender* self) {
  ok(sardonyx_session_run_in_order(self->session, NULL, &self->input, 1, &self->output, 1));
}

static void run_by_name(contender* self) {
  static const char *const input = "x", *const output = "y";
  ok(sardonyx_session_run(self->session, NULL, &input, &self->input, 1, &output, 1, &self->output));
}

static void run_binding(contender* self) { ok(sardonyx_binding_run(self->binding, NULL)); }

static void run_onnxruntime(contender* self) {
  static const char *const input = "x", *const output = "y";
  const void* given = self->ort_input;
  void* made = self->ort_output;
  ort_ok(((ort_status(*)(void*, const void*, const char* const*, const void* const*, size_t,
                         const char* const*, size_t, void**))ort[ort_run])(
      self->ort_session, NULL, &input, &given, 1, &output, 1, &made));
}

static void run_onnxruntime_binding(contender* self) {
  ort_ok(((ort_status(*)(void*, const void*, const void*))ort[ort_run_binding])(
      self->ort_session, NULL, self->ort_binding));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double measure(contender* one) {
  const double begin = now();
  int i;
  for (i = 0; i < one->calls; ++i) one->run(one);
  return (now() - begin) / one->calls;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(const contender* one, int rounds) {
  double sorted[most_rounds];
  memcpy(sorted, one->nanoseconds, (size_t)rounds * sizeof *sorted);
  qsort(sorted, (size_t)rounds, sizeof *sorted, compare);
  return sorted[rounds / 2];
}

/* --- Models ------------------------------------------------------------------------------------ */

static sardonyx_status* infer_nothing(sardonyx_shape_context* context, void* user) {
  (void)user;
  return sardonyx_shape_set_like(context, 0, 0);
}

static sardonyx_status* run_nothing(sardonyx_kernel_context* context, void* kernel, void* user) {
  (void)context, (void)kernel, (void)user;
  return NULL;
}

static char* text_of(int nodes) {
  char *text = malloc((size_t)nodes * 64 + 400), *to = text, before[16] = "x", made[16];
  int i;
  if (text == NULL) fail("memory", "none is left");
  to += sprintf(to,
                "<ir_version: 8, opset_import: [\"\" : 17, \"com.example\" : 1]>\n"
                "g (float[1, 8] x) => (float[1, 8] y) <int64 axis = {1}> {\n");
  for (i = 0; i < nodes; ++i, strcpy(before, made)) {
    if (i == nodes - 1)
      strcpy(made, "y");
    else
      sprintf(made, "v%d", i);
    if (nodes == 0 || i % 2 == nodes % 2)
      to += sprintf(to, "  %s = CumSum (%s, axis)\n", made, before);
    else
      to += sprintf(to, "  %s = Softmax (%s)\n", made, before);
  }
  if (nodes == 0) to += sprintf(to, "  y = com.example.Nothing (x)\n");
  strcpy(to, "}\n");
  return text;
}

static sardonyx_model* model_of(const char* text) {
  sardonyx_load_options options = SARDONYX_INIT(sardonyx_load_options);
  sardonyx_operator nothing = SARDONYX_INIT(sardonyx_operator);
  sardonyx_operators* operators = NULL;
  sardonyx_model* model = NULL;
  nothing.infer = infer_nothing;
  nothing.run = run_nothing;
  ok(sardonyx_operators_create(&operators));
  ok(sardonyx_operators_add(operators, "com.example",
                            "Nothing\n since 1\n in x: T\n out y: T\n where T in float", &nothing));
  options.operators = operators;
  ok(sardonyx_model_parse(text, strlen(text), &options, &model));
  sardonyx_operators_release(operators);
  return model;
}

static float input_of[columns] = {1, 2, 3, 4, 5, 6, 7, 8}, made[columns], ort_made[columns];

/* Both give the same numbers. */
static void compare_results(contender* ours, contender* theirs) {
  int i;
  ours->run(ours);
  theirs->run(theirs);
  for (i = 0; i < columns; ++i) {
    const float difference = made[i] - ort_made[i];
    if (difference > 1e-3f || difference < -1e-3f) fail("results", "they differ");
  }
}

static void prepare_onnxruntime(contender* all, const sardonyx_model* model) {
  sardonyx_bytes* bytes = NULL;
  size_t size = 0;
  const char* data;
  contender *run = &all[3], *bound = &all[4];
  ok(sardonyx_model_write(model, SARDONYX_FORM_BINARY, &bytes));
  data = sardonyx_bytes_data(bytes, &size);
  ort_ok(((ort_status(*)(const void*, const void*, size_t, const void*, void**))
              ort[ort_create_session_from_array])(ort_env, data, size, ort_options,
                                                  &run->ort_session));
  sardonyx_bytes_release(bytes);
  run->ort_input = ort_tensor(input_of);
  run->ort_output = ort_tensor(ort_made);
  *bound = *run;
  ort_ok(((ort_status(*)(void*, void**))ort[ort_create_binding])(run->ort_session,
                                                                 &bound->ort_binding));
  ort_ok(((ort_status(*)(void*, const char*, const void*))ort[ort_bind_input])(
      bound->ort_binding, "x", bound->ort_input));
  ort_ok(((ort_status(*)(void*, const char*, const void*))ort[ort_bind_output])(
      bound->ort_binding, "y", bound->ort_output));
  run->name = "ONNX Runtime, Run";
  run->run = run_onnxruntime;
  bound->name = "ONNX Runtime, RunWithBinding";
  bound->run = run_onnxruntime_binding;
  compare_results(&all[0], run);
  compare_results(&all[2], bound);
}

static void release_onnxruntime(contender* all) {
  ((void (*)(void*))ort[ort_release_binding])(all[4].ort_binding);
  ((void (*)(void*))ort[ort_release_value])(all[3].ort_input);
  ((void (*)(void*))ort[ort_release_value])(all[3].ort_output);
  ((void (*)(void*))ort[ort_release_session])(all[3].ort_session);
}

static void bench(const char* name, int nodes, int rounds) {
  static const int64_t dims[] = {1, columns};
  static contender all[5];
  const int count = nodes == 0 ? 3 : 5; /* the other has no such operator */
  double beside = 0;
  char* text = text_of(nodes);
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_model* model = model_of(text);
  sardonyx_session* session = NULL;
  sardonyx_value *input = NULL, *output = NULL, *bound = NULL;
  int i, r;
  memset(all, 0, sizeof all);
  options.threads = 1;
  ok(sardonyx_session_create(model, &options, &session));
  ok(sardonyx_tensor_wrap(SARDONYX_FLOAT32, 2, dims, input_of, sizeof input_of, NULL, NULL,
                          &input));
  ok(sardonyx_tensor_wrap_mutable(SARDONYX_FLOAT32, 2, dims, made, sizeof made, NULL, NULL,
                                  &output));
  ok(sardonyx_tensor_wrap_mutable(SARDONYX_FLOAT32, 2, dims, made, sizeof made, NULL, NULL,
                                  &bound));
  for (i = 0; i < 3; ++i) {
    all[i].session = session;
    all[i].input = input;
    all[i].output = output;
  }
  ok(sardonyx_binding_create(session, &all[2].binding));
  ok(sardonyx_binding_input(all[2].binding, "x", input));
  ok(sardonyx_binding_output(all[2].binding, "y", bound));
  all[0].name = "Sardonyx, by position";
  all[0].run = run_in_order;
  all[1].name = "Sardonyx, by name";
  all[1].run = run_by_name;
  all[2].name = "Sardonyx, a binding";
  all[2].run = run_binding;
  if (count > 3) prepare_onnxruntime(all, model);
  for (i = 0; i < count; ++i) {
    all[i].calls = 100;
    measure(&all[i]);
    all[i].calls = (int)(1e6 / measure(&all[i])) + 1; /* a millisecond */
  }
  for (r = 0; r < rounds; ++r) {
    for (i = 0; i < count; ++i) all[i].nanoseconds[r] = measure(&all[i]);
  }
  for (i = 3; i < count; ++i) {
    const double time = median(&all[i], rounds);
    if (beside == 0 || time < beside) beside = time;
  }
  for (i = 0; i < count; ++i) {
    const double time = median(&all[i], rounds);
    printf("| %s | %s | %.3f | ", name, all[i].name, time / 1000);
    if (beside > 0)
      printf("%.2f |\n", beside / time);
    else
      printf("|\n");
  }
  if (count > 3) release_onnxruntime(all);
  sardonyx_binding_release(all[2].binding);
  sardonyx_value_release(input);
  sardonyx_value_release(output);
  sardonyx_value_release(bound);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
  free(text);
}

int main(int count, char** words) {
  const int rounds = count > 2 ? atoi(words[2]) : 201;
  const char* version;
  if (count < 2 || rounds < 1 || rounds > most_rounds)
    fail("usage", "overhead_c LIBONNXRUNTIME.SO [ROUNDS], at most 1000 of them");
  version = load_onnxruntime(words[1]);
  printf("| model | run | microseconds | times as fast as the faster of ONNX Runtime %s |\n",
         version);
  printf("|---|---|---:|---:|\n");
  bench("a node that does nothing", 0, rounds);
  bench("one node", 1, rounds);
  bench("200 nodes", 200, rounds);
  ((void (*)(void*))ort[ort_release_memory])(ort_memory);
  ((void (*)(void*))ort[ort_release_options])(ort_options);
  ((void (*)(void*))ort[ort_release_env])(ort_env);
  return EXIT_SUCCESS;
}
