/* Operators whose functions are C's. */
#include <stddef.h>
#include <stdlib.h>

#include "checks.h"

/* y = x * factor, the factor an attribute that the kernel keeps; checked on the way: what each
 * stage sees of the node. */
typedef struct counters {
  int inferred, prepared, kernels_released, users_released;
} counters;

#define HAND_ON(call)                    \
  do {                                   \
    sardonyx_status* status_ = (call);   \
    if (status_ != NULL) return status_; \
  } while (0)

static const char scale_signature[] =
    "Scale\n since 1\n in x: T\n out y: T\n attr factor: float = 2\n attr weights: ints = []\n"
    " where T in float double";

static sardonyx_status* infer_scale(sardonyx_shape_context* context, void* user) {
  const sardonyx_operator_node* node = sardonyx_shape_node(context);
  size_t inputs = 0, outputs = 0;
  int32_t since = 0;
  ++((counters*)user)->inferred;
  HAND_ON(sardonyx_operator_node_counts(node, &inputs, &outputs, &since));
  CHECK(inputs == 1 && outputs == 1 && since == 1);
  return sardonyx_shape_set_like(context, 0, 0);
}

static sardonyx_status* prepare_scale(sardonyx_kernel_builder* builder, void* user, void** kernel) {
  const sardonyx_operator_node* node = sardonyx_builder_node(builder);
  const int64_t* weights = NULL;
  size_t count = 0;
  float* factor;
  int present = 0;
  sardonyx_element_type type = 0;
  int64_t rank = 0;
  ++((counters*)user)->prepared;
  HAND_ON(sardonyx_operator_node_input(node, 0, &present, &type, &rank));
  CHECK(present == 1 && type == SARDONYX_FLOAT32 && rank == 1);
  HAND_ON(sardonyx_operator_node_output(node, 0, &present));
  CHECK(present == 1);
  HAND_ON(sardonyx_operator_node_ints(node, "weights", &weights, &count));
  CHECK(count == 0 || (count == 2 && weights[1] == 7));
  factor = malloc(sizeof *factor);
  *kernel = factor;
  HAND_ON(sardonyx_operator_node_float(node, "factor", factor));
  FAILS(sardonyx_operator_node_input(node, 9, NULL, NULL, NULL), SARDONYX_BAD_INPUT, "no input 9");
  FAILS(sardonyx_builder_may_share(builder, 5, 0), SARDONYX_BAD_INPUT, "no output 5");
  return sardonyx_builder_may_share(builder, 0, 0);
}

typedef struct piece {
  const float* from;
  float* to;
  float factor;
} piece;

static void scale_piece(void* user, int64_t begin, int64_t end) {
  const piece* work = user;
  int64_t i;
  for (i = begin; i < end; ++i) work->to[i] = work->from[i] * work->factor;
}

static int64_t scratch_of_scale(const sardonyx_kernel_shapes* shapes, void* kernel, void* user) {
  size_t rank = 0;
  const int64_t* dims = NULL;
  (void)kernel, (void)user;
  OK(sardonyx_kernel_shape(shapes, 0, 0, &rank, &dims));
  CHECK(rank == 1);
  FAILS(sardonyx_kernel_shape(shapes, 1, 3, &rank, &dims), SARDONYX_BAD_INPUT, "no output 3");
  return dims[0] * 4;
}

static sardonyx_status* run_scale(sardonyx_kernel_context* context, void* kernel, void* user) {
  sardonyx_tensor_view x = SARDONYX_INIT(sardonyx_tensor_view);
  sardonyx_tensor_view y = SARDONYX_INIT(sardonyx_tensor_view);
  piece work;
  (void)user;
  HAND_ON(sardonyx_kernel_input(context, 0, &x));
  HAND_ON(sardonyx_kernel_output(context, 0, &y));
  FAILS(sardonyx_kernel_input(context, 1, &x), SARDONYX_BAD_INPUT, "no input 1");
  CHECK(x.type == SARDONYX_FLOAT32 && x.rank == 1 && x.elements == y.elements);
  CHECK(!sardonyx_kernel_is_cancelled(context));
  if (x.elements > 0 && ((const float*)x.data)[0] < 0)
    return sardonyx_status_create(SARDONYX_RUN_FAILED, "negative numbers are not scaled");
  if (x.elements > 0) memset(sardonyx_kernel_scratch(context), 1, (size_t)x.elements * 4);
  work.from = x.data;
  work.to = y.data;
  work.factor = *(const float*)kernel;
  return sardonyx_kernel_parallel_for(context, x.elements, 2, scale_piece, &work);
}

static void release_kernel(void* kernel, void* user) {
  ++((counters*)user)->kernels_released;
  free(kernel);
}

static void release_user(void* user) { ++((counters*)user)->users_released; }

static sardonyx_operator scale_of(counters* counts) {
  sardonyx_operator made = SARDONYX_INIT(sardonyx_operator);
  made.user = counts;
  made.infer = infer_scale;
  made.prepare = prepare_scale;
  made.run = run_scale;
  made.scratch_bytes = scratch_of_scale;
  made.release_kernel = release_kernel;
  made.release_user = release_user;
  return made;
}

static sardonyx_status* session_with(sardonyx_operators* operators, const char* text,
                                     sardonyx_session** session) {
  sardonyx_load_options options = SARDONYX_INIT(sardonyx_load_options);
  sardonyx_model* model = NULL;
  sardonyx_status* status;
  options.operators = operators;
  status = sardonyx_model_parse(text, strlen(text), &options, &model);
  if (status == NULL) status = sardonyx_session_create(model, NULL, session);
  sardonyx_model_release(model);
  return status;
}

static const char scaling[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"com.example\" : 1]>\n"
    "g (float[n] x) => (float[n] y) {\n"
    "  y = com.example.Scale<factor = 3.0, weights = [6, 7]>(x)\n}\n";

static void signatures_of(const sardonyx_operators* operators) {
  sardonyx_signatures* versions = NULL;
  sardonyx_signature signature = SARDONYX_INIT(sardonyx_signature);
  OK(sardonyx_operators_signatures(operators, "com.example", "Scale", &versions));
  CHECK(sardonyx_signatures_count(versions) == 1);
  OK(sardonyx_signatures_get(versions, 0, &signature));
  CHECK(strcmp(signature.name, "Scale") == 0 && signature.since == 1);
  sardonyx_signatures_release(versions);
  OK(sardonyx_operators_signatures(operators, "com.example", "Other", &versions));
  CHECK(sardonyx_signatures_count(versions) == 0);
  sardonyx_signatures_release(versions);
}

/* Signatures keep the texts of operators that are gone. */
static void signatures_outlive_operators(void) {
  static const char long_signature[] =
      "AnOperatorWithANameThatIsLongEnough\n since 1\n in x: T\n out y: T\n"
      " attr mode: string = \"a default that is long enough, too\"\n where T in float\n";
  const char* const domain = "com.example.of.a.name.that.is.long.enough";
  counters counts;
  sardonyx_operators* operators = NULL;
  sardonyx_operator functions;
  sardonyx_signatures* versions = NULL;
  sardonyx_signature signature = SARDONYX_INIT(sardonyx_signature);
  sardonyx_attribute_signature attribute = SARDONYX_INIT(sardonyx_attribute_signature);
  test = "signatures_outlive_operators";
  memset(&counts, 0, sizeof counts);
  functions = scale_of(&counts);
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, domain, long_signature, &functions));
  OK(sardonyx_operators_signatures(operators, domain, "AnOperatorWithANameThatIsLongEnough",
                                   &versions));
  sardonyx_operators_release(operators);
  CHECK(counts.users_released == 0);
  OK(sardonyx_signatures_get(versions, 0, &signature));
  CHECK(strcmp(signature.domain, domain) == 0);
  CHECK(strcmp(signature.name, "AnOperatorWithANameThatIsLongEnough") == 0);
  OK(sardonyx_signatures_attribute(versions, 0, 0, &attribute));
  CHECK(strcmp(attribute.default_string, "a default that is long enough, too") == 0);
  sardonyx_signatures_release(versions);
  CHECK(counts.users_released == 1);
}

static void scale(void) {
  const int64_t five[] = {5};
  const float numbers[] = {1, 2, 3, 4, 5}, negative[] = {-1, 2, 3, 4, 5};
  counters counts;
  sardonyx_operators* operators = NULL;
  sardonyx_operator functions;
  sardonyx_session* session = NULL;
  sardonyx_value *x = floats(1, five, numbers), *bad = floats(1, five, negative), *y = NULL;
  test = "scale";
  memset(&counts, 0, sizeof counts);
  functions = scale_of(&counts);
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, "com.example", scale_signature, &functions));
  signatures_of(operators);
  OK(session_with(operators, scaling, &session));
  sardonyx_operators_release(operators); /* the session keeps what it needs */
  CHECK(counts.inferred > 0 && counts.prepared == 1 && counts.users_released == 0);
  OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, &y, 1));
  CHECK(elements(y)[0] == 3 && elements(y)[4] == 15);
  sardonyx_value_release(y);
  y = NULL;
  FAILS(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&bad, 1, &y, 1),
        SARDONYX_RUN_FAILED, "negative numbers are not scaled");
  CHECK(y == NULL);
  sardonyx_session_release(session);
  CHECK(counts.kernels_released == 1 && counts.users_released == 1);
  sardonyx_value_release(x);
  sardonyx_value_release(bad);
}

/* Pads to twice the length and one more; sizes by arithmetic. */
static sardonyx_status* infer_twice(sardonyx_shape_context* context, void* user) {
  sardonyx_dim n, two = {NULL, 2}, one = {NULL, 1}, made, other;
  const sardonyx_dim none = {NULL, 0}, most = {NULL, INT64_MAX};
  (void)user;
  HAND_ON(sardonyx_shape_input(context, 0, 0, &n));
  FAILS(sardonyx_shape_input(context, 0, 4, &other), SARDONYX_BAD_INPUT, "none is number 4");
  FAILS(sardonyx_shape_input(context, 3, 0, &other), SARDONYX_BAD_INPUT, "no input 3");
  FAILS(sardonyx_shape_combine(context, '%', n, two, &other), SARDONYX_BAD_INPUT, "no operation");
  FAILS(sardonyx_shape_combine(context, '/', two, none, &other), SARDONYX_INVALID_MODEL,
        "divided by 0");
  FAILS(sardonyx_shape_combine(context, '*', two, most, &other), SARDONYX_INVALID_MODEL,
        "does not fit 64 bits");
  HAND_ON(sardonyx_shape_combine(context, '*', n, two, &made));
  HAND_ON(sardonyx_shape_combine(context, '+', made, one, &made));
  HAND_ON(sardonyx_shape_broadcast(context, n, one, &other));
  HAND_ON(sardonyx_shape_require_equal(context, other, n, "the lengths must agree"));
  other.expression = &two;
  FAILS(sardonyx_shape_set_output(context, 0, SARDONYX_FLOAT32, 1, &other), SARDONYX_BAD_INPUT,
        "another node's");
  FAILS(sardonyx_shape_set_output(context, 2, SARDONYX_FLOAT32, 1, &made), SARDONYX_BAD_INPUT,
        "no output 2");
  return sardonyx_shape_set_output(context, 0, SARDONYX_FLOAT32, 1, &made);
}

static sardonyx_status* run_twice(sardonyx_kernel_context* context, void* kernel, void* user) {
  sardonyx_tensor_view x = SARDONYX_INIT(sardonyx_tensor_view);
  sardonyx_tensor_view y = SARDONYX_INIT(sardonyx_tensor_view);
  int64_t i;
  (void)user;
  CHECK(kernel == NULL);
  HAND_ON(sardonyx_kernel_input(context, 0, &x));
  HAND_ON(sardonyx_kernel_output(context, 0, &y));
  for (i = 0; i < y.elements; ++i)
    ((float*)y.data)[i] = i < x.elements ? ((const float*)x.data)[i] : -1;
  return NULL;
}

/* Keeps the positive numbers: a size that only the data decide. */
static sardonyx_status* infer_positive(sardonyx_shape_context* context, void* user) {
  sardonyx_dim n, made;
  (void)user;
  HAND_ON(sardonyx_shape_input(context, 0, 0, &n));
  HAND_ON(sardonyx_shape_unknown(context, &n, &made));
  return sardonyx_shape_set_output(context, 0, SARDONYX_FLOAT32, 1, &made);
}

static sardonyx_status* prepare_positive(sardonyx_kernel_builder* builder, void* user,
                                         void** kernel) {
  (void)user, (void)kernel;
  return sardonyx_builder_allocates_outputs(builder);
}

static sardonyx_status* run_positive(sardonyx_kernel_context* context, void* kernel, void* user) {
  sardonyx_tensor_view x = SARDONYX_INIT(sardonyx_tensor_view);
  sardonyx_tensor_view y = SARDONYX_INIT(sardonyx_tensor_view);
  int64_t i, count = 0;
  (void)user, (void)kernel;
  HAND_ON(sardonyx_kernel_input(context, 0, &x));
  for (i = 0; i < x.elements; ++i) count += ((const float*)x.data)[i] > 0;
  FAILS(sardonyx_kernel_allocate(context, 3, 1, &count, &y), SARDONYX_BAD_INPUT, "no output 3");
  HAND_ON(sardonyx_kernel_allocate(context, 0, 1, &count, &y));
  for (i = 0, count = 0; i < x.elements; ++i) {
    if (((const float*)x.data)[i] > 0) ((float*)y.data)[count++] = ((const float*)x.data)[i];
  }
  return NULL;
}

static void sizes(void) {
  static const char model[] =
      "<ir_version: 10, opset_import: [\"\" : 21, \"com.example\" : 1]>\n"
      "g (float[n] x) => (float[m] y) { t = com.example.Twice(x) y = com.example.Positive(t) }\n";
  const int64_t three[] = {3};
  const float numbers[] = {1, -2, 3};
  const int64_t* dims = NULL;
  sardonyx_operators* operators = NULL;
  sardonyx_operator functions = SARDONYX_INIT(sardonyx_operator);
  sardonyx_session* session = NULL;
  sardonyx_value *x = floats(1, three, numbers), *y = NULL;
  test = "sizes";
  OK(sardonyx_operators_create(&operators));
  functions.infer = infer_twice;
  functions.run = run_twice;
  OK(sardonyx_operators_add(operators, "com.example",
                            "Twice\n since 1\n in x: T\n out y: T\n where T in float", &functions));
  functions.infer = infer_positive;
  functions.prepare = prepare_positive;
  functions.run = run_positive;
  OK(sardonyx_operators_add(operators, "com.example",
                            "Positive\n since 1\n in x: T\n out y: T\n where T in float",
                            &functions));
  OK(session_with(operators, model, &session));
  OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, &y, 1));
  OK(sardonyx_tensor_type(y, NULL, NULL, &dims, NULL));
  CHECK(dims[0] == 2 && elements(y)[1] == 3);
  sardonyx_value_release(y);
  sardonyx_value_release(x);
  sardonyx_session_release(session);
  sardonyx_operators_release(operators);
}

/* Puts each text between brackets. */
static sardonyx_status* infer_like(sardonyx_shape_context* context, void* user) {
  (void)user;
  return sardonyx_shape_set_like(context, 0, 0);
}

static sardonyx_status* run_brackets(sardonyx_kernel_context* context, void* kernel, void* user) {
  sardonyx_tensor_view x = SARDONYX_INIT(sardonyx_tensor_view);
  char made[64];
  const char* text = NULL;
  size_t length = 0, i;
  (void)kernel, (void)user;
  HAND_ON(sardonyx_kernel_input(context, 0, &x));
  CHECK(x.type == SARDONYX_STRING && x.data == NULL);
  for (i = 0; i < (size_t)x.elements; ++i) {
    HAND_ON(sardonyx_kernel_string(context, 0, i, &text, &length));
    snprintf(made, sizeof made, "[%s]", text);
    HAND_ON(sardonyx_kernel_set_string(context, 0, i, made, length + 2));
  }
  FAILS(sardonyx_kernel_string(context, 0, i, &text, &length), SARDONYX_BAD_INPUT, "no element 2");
  FAILS(sardonyx_kernel_string(context, 1, 0, &text, &length), SARDONYX_BAD_INPUT, "no input 1");
  FAILS(sardonyx_kernel_set_string(context, 0, 99, "", 0), SARDONYX_BAD_INPUT, "no element 99");
  return NULL;
}

static void strings(void) {
  static const char model[] =
      "<ir_version: 10, opset_import: [\"\" : 21, \"com.example\" : 1]>\n"
      "g (string[n] x) => (string[n] y) { y = com.example.Brackets(x) }\n";
  const int64_t two[] = {2};
  const char* const texts[] = {"a", ""};
  const char* text = NULL;
  sardonyx_operators* operators = NULL;
  sardonyx_operator functions = SARDONYX_INIT(sardonyx_operator);
  sardonyx_session* session = NULL;
  sardonyx_value *x = NULL, *y = NULL;
  test = "strings";
  functions.infer = infer_like;
  functions.run = run_brackets;
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, "com.example",
                            "Brackets\n since 1\n in x: T\n out y: T\n where T in string",
                            &functions));
  OK(session_with(operators, model, &session));
  OK(sardonyx_tensor_create_strings(1, two, texts, NULL, &x));
  OK(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, &y, 1));
  OK(sardonyx_tensor_string(y, 0, &text, NULL));
  CHECK(strcmp(text, "[a]") == 0);
  OK(sardonyx_tensor_string(y, 1, &text, NULL));
  CHECK(strcmp(text, "[]") == 0);
  sardonyx_value_release(x);
  sardonyx_value_release(y);
  sardonyx_session_release(session);
  sardonyx_operators_release(operators);
}

/* Its output has as many elements as the constant text `how` has characters, less `cut`'s length.
 */
static sardonyx_status* infer_letters(sardonyx_shape_context* context, void* user) {
  const sardonyx_operator_node* node = sardonyx_shape_node(context);
  const char* text = NULL;
  const char* const* texts = NULL;
  const size_t* lengths = NULL;
  size_t length = 0, count = 0;
  sardonyx_dim dim = {NULL, 0};
  (void)user;
  HAND_ON(sardonyx_operator_node_constant_string(node, 1, 1, &text, &length));
  CHECK(strcmp(text, "abcd") == 0 && length == 4);
  FAILS(sardonyx_operator_node_constant_string(node, 1, 2, &text, NULL), SARDONYX_BAD_INPUT,
        "no element 2 of 2");
  FAILS(sardonyx_operator_node_constant_string(node, 0, 0, &text, NULL), SARDONYX_BAD_INPUT,
        "not known before the run");
  FAILS(sardonyx_operator_node_constant_string(node, 2, 0, &text, NULL), SARDONYX_BAD_INPUT,
        "no input 2");
  NULL_ARGUMENT(sardonyx_operator_node_constant_string(node, 1, 0, NULL, NULL), "text");
  HAND_ON(sardonyx_operator_node_strings(node, "cut", &texts, &lengths, &count));
  CHECK(count == 2 && strcmp(texts[0], "x") == 0 && lengths[1] == 0);
  HAND_ON(sardonyx_operator_node_strings(node, "cut", &texts, NULL, &count));
  NULL_ARGUMENT(sardonyx_operator_node_strings(node, "cut", NULL, NULL, &count), "texts");
  NULL_ARGUMENT(sardonyx_operator_node_strings(node, "cut", &texts, NULL, NULL), "count");
  FAILS(sardonyx_operator_node_strings(node, "words", &texts, NULL, &count), SARDONYX_INVALID_MODEL,
        "words");
  HAND_ON(sardonyx_operator_node_tensor_string(node, "words", 0, &text, &length));
  CHECK(strcmp(text, "zero") == 0 && length == 4);
  FAILS(sardonyx_operator_node_tensor_string(node, "words", 1, &text, NULL), SARDONYX_BAD_INPUT,
        "no element 1 of 1");
  dim.value = 4 - (int64_t)lengths[0];
  return sardonyx_shape_set_output(context, 0, SARDONYX_FLOAT32, 1, &dim);
}

static sardonyx_status* run_letters(sardonyx_kernel_context* context, void* kernel, void* user) {
  sardonyx_tensor_view y = SARDONYX_INIT(sardonyx_tensor_view);
  (void)kernel, (void)user;
  HAND_ON(sardonyx_kernel_output(context, 0, &y));
  memset(y.data, 0, (size_t)y.elements * 4);
  return NULL;
}

static void constant_strings(void) {
  static const char model[] =
      "<ir_version: 10, opset_import: [\"\" : 21, \"com.example\" : 1]>\n"
      "g (string[2] x) => (y) <string[2] how = {\"\", \"abcd\"}> {\n"
      "  y = com.example.Letters<cut = [\"x\", \"\"], words = string[1] {\"zero\"}>(x, how)\n}\n";
  sardonyx_operators* operators = NULL;
  sardonyx_operator functions = SARDONYX_INIT(sardonyx_operator);
  sardonyx_session* session = NULL;
  sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
  test = "constant_strings";
  functions.infer = infer_letters;
  functions.run = run_letters;
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, "com.example",
                            "Letters\n since 1\n in x: T\n in how: T\n out y: tensor(float)\n"
                            " attr cut: strings\n attr words: tensor\n where T in string",
                            &functions));
  OK(session_with(operators, model, &session));
  OK(sardonyx_session_output(session, 0, &info));
  CHECK(strcmp(info.type, "float[3]") == 0);
  sardonyx_session_release(session);
  NULL_ARGUMENT(sardonyx_operators_load(NULL, "x"), "operators");
  NULL_ARGUMENT(sardonyx_operators_load(operators, NULL), "path");
  FAILS(sardonyx_operators_load(operators, "missing.so"), SARDONYX_UNREADABLE, "missing.so");
  sardonyx_operators_release(operators);
}

static sardonyx_status* refuse_inference(sardonyx_shape_context* context, void* user) {
  (void)context, (void)user;
  return sardonyx_status_create(SARDONYX_INVALID_MODEL, "this never fits");
}

static sardonyx_status* run_out_of_memory(sardonyx_kernel_context* context, void* kernel,
                                          void* user) {
  (void)context, (void)kernel, (void)user;
  return sardonyx_status_create(SARDONYX_OUT_OF_MEMORY, "a device has none left");
}

static sardonyx_status* lack_support(sardonyx_kernel_builder* builder, void* user, void** kernel) {
  (void)builder, (void)user, (void)kernel;
  return sardonyx_status_create(SARDONYX_UNSUPPORTED, "not on this machine");
}

static sardonyx_status* ask_for_nothing(sardonyx_kernel_builder* builder, void* user,
                                        void** kernel) {
  int64_t number = 0;
  (void)user, (void)kernel;
  return sardonyx_operator_node_int(sardonyx_builder_node(builder), "factor", &number);
}

static void failures_of_functions(void) {
  const int64_t three[] = {3};
  const float numbers[] = {1, 2, 3};
  sardonyx_value *x = NULL, *y = NULL;
  counters counts;
  sardonyx_operators* operators = NULL;
  sardonyx_operator functions;
  sardonyx_session* session = NULL;
  test = "failures_of_functions";
  memset(&counts, 0, sizeof counts);
  functions = scale_of(&counts);
  functions.infer = refuse_inference;
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, "com.example", scale_signature, &functions));
  FAILS(session_with(operators, scaling, &session), SARDONYX_INVALID_MODEL, "this never fits");
  sardonyx_operators_release(operators);
  CHECK(counts.users_released == 1);

  functions = scale_of(&counts);
  functions.prepare = ask_for_nothing;
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, "com.example", scale_signature, &functions));
  FAILS(session_with(operators, scaling, &session), SARDONYX_INVALID_MODEL, "factor");
  sardonyx_operators_release(operators);
  CHECK(session == NULL && counts.users_released == 2);

  functions = scale_of(&counts);
  functions.prepare = lack_support;
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, "com.example", scale_signature, &functions));
  FAILS(session_with(operators, scaling, &session), SARDONYX_UNSUPPORTED,
        "com.example.Scale making 'y': not on this machine");
  sardonyx_operators_release(operators);

  functions = scale_of(&counts);
  functions.run = run_out_of_memory;
  OK(sardonyx_operators_create(&operators));
  OK(sardonyx_operators_add(operators, "com.example", scale_signature, &functions));
  OK(session_with(operators, scaling, &session));
  x = floats(1, three, numbers);
  FAILS(sardonyx_session_run_in_order(session, NULL, (const sardonyx_value* const*)&x, 1, &y, 1),
        SARDONYX_OUT_OF_MEMORY, "com.example.Scale making 'y': a device has none left");
  sardonyx_value_release(x);
  sardonyx_session_release(session);
  sardonyx_operators_release(operators);
  CHECK(y == NULL && counts.users_released == 4);
}

static void wrong_calls(void) {
  counters counts;
  sardonyx_operators* operators = NULL;
  sardonyx_operator functions, without;
  sardonyx_tensor_view view = SARDONYX_INIT(sardonyx_tensor_view);
  sardonyx_dim dim = {NULL, 1};
  test = "wrong_calls";
  memset(&counts, 0, sizeof counts);
  functions = without = scale_of(&counts);
  NULL_ARGUMENT(sardonyx_operators_create(NULL), "operators");
  OK(sardonyx_operators_create(&operators));
  NULL_ARGUMENT(sardonyx_operators_add(NULL, "d", scale_signature, &functions), "operators");
  NULL_ARGUMENT(sardonyx_operators_add(operators, NULL, scale_signature, &functions), "domain");
  NULL_ARGUMENT(sardonyx_operators_add(operators, "d", NULL, &functions), "signature");
  NULL_ARGUMENT(sardonyx_operators_add(operators, "d", scale_signature, NULL), "functions");
  without.run = NULL;
  FAILS(sardonyx_operators_add(operators, "d", scale_signature, &without), SARDONYX_BAD_INPUT,
        "one is NULL");
  without = functions;
  without.size = 0;
  FAILS(sardonyx_operators_add(operators, "d", scale_signature, &without), SARDONYX_BAD_INPUT,
        "size");
  FAILS(sardonyx_operators_add(operators, "d", "no signature", &functions), SARDONYX_BAD_INPUT, "");
  FAILS(sardonyx_operators_add(operators, "ai.onnx", scale_signature, &functions),
        SARDONYX_BAD_INPUT, "");
  CHECK(counts.users_released == 0);
  sardonyx_operators_release(operators);
  sardonyx_operators_release(NULL);

  NULL_ARGUMENT(sardonyx_operator_node_counts(NULL, NULL, NULL, NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_input(NULL, 0, NULL, NULL, NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_output(NULL, 0, NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_constant(NULL, 0, &view), "node");
  NULL_ARGUMENT(sardonyx_operator_node_int(NULL, "a", NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_float(NULL, "a", NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_string(NULL, "a", NULL, NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_ints(NULL, "a", NULL, NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_floats(NULL, "a", NULL, NULL), "node");
  NULL_ARGUMENT(sardonyx_operator_node_tensor(NULL, "a", &view), "node");
  CHECK(sardonyx_operator_node_has(NULL, "a") == 0);
  CHECK(sardonyx_shape_node(NULL) == NULL && sardonyx_builder_node(NULL) == NULL);
  NULL_ARGUMENT(sardonyx_shape_input(NULL, 0, 0, &dim), "context");
  NULL_ARGUMENT(sardonyx_shape_combine(NULL, '+', dim, dim, &dim), "context");
  NULL_ARGUMENT(sardonyx_shape_broadcast(NULL, dim, dim, &dim), "context");
  NULL_ARGUMENT(sardonyx_shape_unknown(NULL, NULL, &dim), "context");
  NULL_ARGUMENT(sardonyx_shape_require_equal(NULL, dim, dim, "r"), "context");
  NULL_ARGUMENT(sardonyx_shape_set_output(NULL, 0, 1, 0, NULL), "context");
  NULL_ARGUMENT(sardonyx_shape_set_any_rank(NULL, 0, 1), "context");
  NULL_ARGUMENT(sardonyx_shape_set_like(NULL, 0, 0), "context");
  NULL_ARGUMENT(sardonyx_builder_may_share(NULL, 0, 0), "builder");
  NULL_ARGUMENT(sardonyx_builder_allocates_outputs(NULL), "builder");
  NULL_ARGUMENT(sardonyx_builder_does_not_read(NULL, 0), "builder");
  NULL_ARGUMENT(sardonyx_kernel_shape(NULL, 0, 0, NULL, NULL), "shapes");
  NULL_ARGUMENT(sardonyx_kernel_input(NULL, 0, &view), "context");
  NULL_ARGUMENT(sardonyx_kernel_output(NULL, 0, &view), "context");
  NULL_ARGUMENT(sardonyx_kernel_allocate(NULL, 0, 0, NULL, &view), "context");
  NULL_ARGUMENT(sardonyx_kernel_string(NULL, 0, 0, NULL, NULL), "context");
  NULL_ARGUMENT(sardonyx_kernel_set_string(NULL, 0, 0, NULL, 0), "context");
  NULL_ARGUMENT(sardonyx_kernel_parallel_for(NULL, 1, 1, scale_piece, NULL), "context");
  CHECK(sardonyx_kernel_scratch(NULL) == NULL && sardonyx_kernel_is_cancelled(NULL) == 0);
}

int main(void) {
  signatures_outlive_operators();
  scale();
  sizes();
  strings();
  constant_strings();
  failures_of_functions();
  wrong_calls();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
