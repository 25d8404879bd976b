/* What the tests of the C interface count and share. Each of them includes it once. */
#ifndef SARDONYX_TESTS_CAPI_CHECKS_H
#define SARDONYX_TESTS_CAPI_CHECKS_H

#include <stdio.h>
#include <string.h>

#include "sardonyx/sardonyx.h"

static int checks = 0, failures = 0;
static const char* test = "";

#define CHECK(condition)                                                        \
  do {                                                                          \
    ++checks;                                                                   \
    if (!(condition)) {                                                         \
      ++failures;                                                               \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, test, #condition); \
    }                                                                           \
  } while (0)

/* Expects success; prints the message otherwise. */
static void expect_ok(sardonyx_status* status, int line) {
  ++checks;
  if (status == NULL) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, test, sardonyx_status_message(status));
  sardonyx_status_release(status);
}
#define OK(call) expect_ok((call), __LINE__)

/* Expects this code, and a message that holds `part`. */
__attribute__((unused)) static void expect_fails(sardonyx_status* status, sardonyx_code code,
                                                 const char* part, int line) {
  ++checks;
  if (sardonyx_status_code(status) != code ||
      strstr(sardonyx_status_message(status), part) == NULL) {
    ++failures;
    fprintf(stderr, "%s:%d: %s: code %d, \"%s\" instead of \"%s\"\n", __FILE__, line, test,
            (int)sardonyx_status_code(status), sardonyx_status_message(status), part);
  }
  sardonyx_status_release(status);
}
#define FAILS(call, code, part) expect_fails((call), (code), (part), __LINE__)
#define NULL_ARGUMENT(call, name) FAILS(call, SARDONYX_BAD_INPUT, "the argument '" name "' is NULL")

__attribute__((unused)) static const char affine[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x, float[2] w = {1, 2}) => (float[N, 2] y, float[N, 2] z) {\n"
    "  y = Mul(x, w)\n  z = Add(y, x)\n}\n";

__attribute__((unused)) static sardonyx_session* session_of(
    const char* text, const sardonyx_session_options* options) {
  sardonyx_model* model = NULL;
  sardonyx_session* session = NULL;
  OK(sardonyx_model_parse(text, strlen(text), NULL, &model));
  OK(sardonyx_session_create(model, options, &session));
  sardonyx_model_release(model); /* the session keeps what it needs */
  return session;
}

__attribute__((unused)) static sardonyx_value* floats(size_t rank, const int64_t* dims,
                                                      const float* from) {
  sardonyx_value* tensor = NULL;
  void* data = NULL;
  size_t bytes = 0;
  OK(sardonyx_tensor_create(SARDONYX_FLOAT32, rank, dims, &tensor));
  OK(sardonyx_tensor_mutable_data(tensor, &data, &bytes));
  if (data != NULL) memcpy(data, from, bytes);
  return tensor;
}

__attribute__((unused)) static const float* elements(const sardonyx_value* tensor) {
  const void* data = NULL;
  OK(sardonyx_tensor_data(tensor, &data, NULL));
  return (const float*)data;
}

#endif
