/* Runs a model with inputs of ones and prints what it gives: run MODEL. */
#include <sardonyx/sardonyx.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with the message of a status that is none of success. */
static void require(sardonyx_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "error: %s\n", sardonyx_status_message(status));
  exit((int)sardonyx_status_code(status));
}

/* A tensor of ones of an input's type; sizes that it leaves open are 1. */
static sardonyx_value* ones(const sardonyx_value_info* info) {
  int64_t dims[16];
  size_t i, bytes;
  void* data;
  sardonyx_value* tensor;
  if (info->kind != SARDONYX_TENSOR || !info->has_rank || info->rank > 16 ||
      info->element_type != SARDONYX_FLOAT32) {
    fprintf(stderr, "error: input '%s' is %s; this example makes tensors of floats only\n", info->name,
            info->type);
    exit(1);
  }
  for (i = 0; i < info->rank; ++i) dims[i] = info->dims[i] < 0 ? 1 : info->dims[i];
  require(sardonyx_tensor_create(SARDONYX_FLOAT32, info->rank, dims, &tensor));
  require(sardonyx_tensor_mutable_data(tensor, &data, &bytes));
  for (i = 0; i < bytes / sizeof(float); ++i) ((float*)data)[i] = 1;
  return tensor;
}

static void print(const char* name, const sardonyx_value* value) {
  sardonyx_element_type type;
  size_t rank, i;
  const int64_t* dims;
  int64_t elements, k;
  const void* data;
  require(sardonyx_tensor_type(value, &type, &rank, &dims, &elements));
  printf("%s: %s[", name, sardonyx_element_name(type));
  for (i = 0; i < rank; ++i) printf("%s%lld", i > 0 ? "," : "", (long long)dims[i]);
  printf("]");
  if (type == SARDONYX_FLOAT32) {
    require(sardonyx_tensor_data(value, &data, NULL));
    for (k = 0; k < elements && k < 10; ++k) printf(" %g", (double)((const float*)data)[k]);
  }
  printf("\n");
}

int main(int count, char** arguments) {
  sardonyx_session* session;
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  size_t inputs, outputs, i;
  sardonyx_value **given, **made;
  if (count != 2) {
    fprintf(stderr, "usage: %s MODEL\n", arguments[0]);
    return 2;
  }
  require(sardonyx_session_load(arguments[1], NULL, NULL, &session));
  inputs = sardonyx_session_input_count(session);
  outputs = sardonyx_session_output_count(session);
  given = (sardonyx_value**)calloc(inputs + 1, sizeof(*given));
  made = (sardonyx_value**)calloc(outputs + 1, sizeof(*made));
  if (given == NULL || made == NULL) return 1;
  for (i = 0; i < inputs; ++i) {
    require(sardonyx_session_input(session, i, &info));
    if (!info.optional) given[i] = ones(&info); /* NULL leaves the default */
  }
  require(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)given, inputs, made,
                                        outputs));
  for (i = 0; i < outputs; ++i) {
    require(sardonyx_session_output(session, i, &info));
    print(info.name, made[i]);
    sardonyx_value_release(made[i]);
  }
  for (i = 0; i < inputs; ++i) sardonyx_value_release(given[i]);
  sardonyx_session_release(session);
  free(given);
  free(made);
  return 0;
}
