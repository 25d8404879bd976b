/* Reads texts from standard input, a line each, and prints for each what it is about, how likely
 * that is, and the text: classify_texts_c MODEL < texts.txt
 *
 * MODEL takes strings [N, 1] and gives labels [N] (strings) and probabilities [N, classes]. */
#include <sardonyx/sardonyx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"

enum { largest_line = 4096 };

static void refuse(const char* what) {
  fprintf(stderr, "error: %s\n", what);
  exit(SARDONYX_UNSUPPORTED);
}

/* The only output whose elements are of that type. */
static size_t output_of(const sardonyx_session* session, sardonyx_element_type type) {
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  size_t i, count = sardonyx_session_output_count(session);
  for (i = 0; i < count; ++i) {
    require(sardonyx_session_output(session, i, &info));
    if (info.kind == SARDONYX_TENSOR && info.element_type == type) return i;
  }
  refuse("the model must give strings and float tensors");
  return 0;
}

static void classify(const sardonyx_session* session, const char* line, size_t labels,
                     size_t probabilities) {
  const int64_t dims[] = {1, 1};
  sardonyx_value* made[2] = {NULL, NULL};
  sardonyx_value* given = NULL;
  const char* label = NULL;
  const void* data = NULL;
  size_t bytes = 0, i;
  float most = 0;
  require(sardonyx_tensor_create_strings(2, dims, &line, NULL, &given));
  require(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&given, 1,
                                        made, 2));
  require(sardonyx_tensor_string(made[labels], 0, &label, NULL));
  require(sardonyx_tensor_data(made[probabilities], &data, &bytes));
  for (i = 0; i < bytes / sizeof(float); ++i)
    if (((const float*)data)[i] > most) most = ((const float*)data)[i];
  printf("%-10s %.2f  %s\n", label, (double)most, line);
  sardonyx_value_release(made[0]);
  sardonyx_value_release(made[1]);
  sardonyx_value_release(given);
}

int main(int count, char** arguments) {
  sardonyx_session* session = NULL;
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  size_t labels, probabilities;
  char line[largest_line];
  if (count != 2) {
    fprintf(stderr, "usage: %s MODEL < texts\n", arguments[0]);
    return 2;
  }
  require(sardonyx_session_load(arguments[1], NULL, NULL, &session));
  if (sardonyx_session_input_count(session) != 1 || sardonyx_session_output_count(session) != 2)
    refuse("the model must take strings and give labels and probabilities");
  require(sardonyx_session_input(session, 0, &info));
  if (info.kind != SARDONYX_TENSOR || info.element_type != SARDONYX_STRING)
    refuse("the model must take strings");
  labels = output_of(session, SARDONYX_STRING);
  probabilities = output_of(session, SARDONYX_FLOAT32);
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    classify(session, line, labels, probabilities);
  }
  sardonyx_session_release(session);
  return 0;
}
