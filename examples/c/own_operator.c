/* Runs a model with an operator whose functions are C's: own_operator_c. */
#include <sardonyx/sardonyx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"

static const char text[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"com.example\" : 1]>\n"
    "g (float[N] x) => (float[N] y) {\n"
    "  doubled = Add (x, x)\n"
    "  y = com.example.Leaky <slope = 0.5> (doubled)\n"
    "}\n";

/* y = x where that is positive, slope * x elsewhere. */
static const char signature[] =
    "Leaky\n since 1\n in x: T\n out y: T\n attr slope: float = 0.01\n where T in float";

/* Functions of operators hand on what the library says is wrong. */
#define HAND_ON(call)                  \
  do {                                 \
    sardonyx_status* status = (call);  \
    if (status != NULL) return status; \
  } while (0)

static sardonyx_status* infer(sardonyx_shape_context* context, void* user) {
  (void)user;
  return sardonyx_shape_set_like(context, 0, 0);
}

/* Once for each node: the kernel is what its runs need of it, here the slope. */
static sardonyx_status* prepare(sardonyx_kernel_builder* builder, void* user, void** kernel) {
  float* slope = (float*)malloc(sizeof *slope);
  (void)user;
  if (slope == NULL)
    return sardonyx_status_create(SARDONYX_OUT_OF_MEMORY, "no memory for a kernel");
  *kernel = slope;
  HAND_ON(sardonyx_operator_node_float(sardonyx_builder_node(builder), "slope", slope));
  return sardonyx_builder_may_share(builder, 0, 0); /* the output may lie where the input lay */
}

static void release_kernel(void* kernel, void* user) {
  (void)user;
  free(kernel);
}

typedef struct work {
  const float* x;
  float* y;
  float slope;
} work;

static void leak(void* user, int64_t begin, int64_t end) {
  const work* all = (const work*)user;
  int64_t i;
  for (i = begin; i < end; ++i) all->y[i] = all->x[i] > 0 ? all->x[i] : all->slope * all->x[i];
}

/* In each run; pieces of 4,096 elements go to the session's threads. */
static sardonyx_status* run(sardonyx_kernel_context* context, void* kernel, void* user) {
  sardonyx_tensor_view x = SARDONYX_INIT(sardonyx_tensor_view);
  sardonyx_tensor_view y = SARDONYX_INIT(sardonyx_tensor_view);
  work all;
  (void)user;
  HAND_ON(sardonyx_kernel_input(context, 0, &x));
  HAND_ON(sardonyx_kernel_output(context, 0, &y));
  all.x = (const float*)x.data;
  all.y = (float*)y.data;
  all.slope = *(const float*)kernel;
  return sardonyx_kernel_parallel_for(context, x.elements, 4096, leak, &all);
}

int main(void) {
  const float given[] = {1, 2, 3, -10, -20};
  const int64_t dims[] = {5};
  const char* const names[] = {"x"};
  sardonyx_operator leaky = SARDONYX_INIT(sardonyx_operator);
  sardonyx_load_options options = SARDONYX_INIT(sardonyx_load_options);
  sardonyx_operators* operators = NULL;
  sardonyx_model* model = NULL;
  sardonyx_session* session = NULL;
  sardonyx_value *x = NULL, *y = NULL;
  const void* data = NULL;
  size_t bytes = 0, i;

  leaky.infer = infer;
  leaky.prepare = prepare;
  leaky.run = run;
  leaky.release_kernel = release_kernel;
  require(sardonyx_operators_create(&operators));
  require(sardonyx_operators_add(operators, "com.example", signature, &leaky));
  options.operators = operators;
  require(sardonyx_model_parse(text, strlen(text), &options, &model));
  require(sardonyx_session_create(model, NULL, &session));
  require(sardonyx_tensor_wrap(SARDONYX_FLOAT32, 1, dims, given, sizeof given, NULL, NULL, &x));
  require(
      sardonyx_session_run(session, NULL, names, (const sardonyx_value* const*)&x, 1, NULL, 1, &y));
  require(sardonyx_tensor_data(y, &data, &bytes));
  for (i = 0; i < bytes / sizeof(float); ++i) printf("%g ", (double)((const float*)data)[i]);
  printf("\n"); /* 2 4 6 -10 -20 */

  sardonyx_value_release(y);
  sardonyx_value_release(x);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
  sardonyx_operators_release(operators);
  return 0;
}
