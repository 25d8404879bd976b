/* Models as files, through the C interface: what works, and each way of calling it wrongly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sardonyx/sardonyx.h"

static int failures = 0;

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

static int ok(sardonyx_status* status) {
  if (status == NULL) return 1;
  fprintf(stderr, "%s\n", sardonyx_status_message(status));
  sardonyx_status_release(status);
  return 0;
}

/* Whether the call failed with this code, and said these words. */
static int fails(sardonyx_status* status, sardonyx_code code, const char* words) {
  int as_expected;
  if (status == NULL) return 0;
  as_expected = sardonyx_status_code(status) == code &&
                strstr(sardonyx_status_message(status), words) != NULL;
  if (!as_expected) fprintf(stderr, "%s\n", sardonyx_status_message(status));
  sardonyx_status_release(status);
  return as_expected;
}

static const char text[] =
    "<ir_version: 9, opset_import: [\"\": 17], producer_name: \"tests\", "
    "metadata_props: [\"key\": \"value\"]>\n"
    "g (float[n,2] x) => (float[n,2] y) <float[2] w = {1, 2}> { [add] y = Add (x, w) }";

static sardonyx_model* example(void) {
  sardonyx_model* model = NULL;
  EXPECT(ok(sardonyx_model_parse(text, sizeof text - 1, NULL, &model)));
  return model;
}

struct stream {
  const char* bytes;
  size_t left;
};

static size_t give(void* buffer, size_t size, void* user) {
  struct stream* stream = user;
  const size_t part = size < stream->left ? size : stream->left;
  memcpy(buffer, stream->bytes, part);
  stream->bytes += part;
  stream->left -= part;
  return part;
}

static size_t give_up(void* buffer, size_t size, void* user) {
  (void)buffer, (void)user;
  return size + 1;
}

static void test_forms(void) {
  sardonyx_model *model = example(), *again = NULL;
  sardonyx_bytes* bytes = NULL;
  struct stream stream;
  size_t size = 0;
  EXPECT(ok(sardonyx_model_write(model, SARDONYX_FORM_BINARY, &bytes)));
  stream.bytes = sardonyx_bytes_data(bytes, &size);
  stream.left = size;
  EXPECT(size > 0);
  EXPECT(ok(sardonyx_model_read(give, &stream, NULL, NULL, &again)));
  sardonyx_bytes_release(bytes);
  EXPECT(ok(sardonyx_model_write(again, SARDONYX_FORM_TEXT, &bytes)));
  EXPECT(strstr(sardonyx_bytes_data(bytes, NULL), "Add (x, w)") != NULL);
  sardonyx_bytes_release(bytes);
  EXPECT(fails(sardonyx_model_write(model, 9, &bytes), SARDONYX_BAD_INPUT, "no form"));
  EXPECT(fails(sardonyx_model_write(NULL, 0, &bytes), SARDONYX_BAD_INPUT, "model"));
  EXPECT(fails(sardonyx_model_write(model, 0, NULL), SARDONYX_BAD_INPUT, "bytes"));
  EXPECT(fails(sardonyx_model_read(NULL, NULL, NULL, NULL, &again), SARDONYX_BAD_INPUT, "read"));
  EXPECT(fails(sardonyx_model_read(give_up, NULL, NULL, NULL, &again), SARDONYX_BAD_INPUT,
               "asked for"));
  sardonyx_model_release(again);
  EXPECT(ok(sardonyx_model_save(model, "capi_models.onnx", NULL)));
  EXPECT(ok(sardonyx_model_load("capi_models.onnx", NULL, &again)));
  EXPECT(remove("capi_models.onnx") == 0);
  EXPECT(fails(sardonyx_model_save(model, "capi_models.exe", NULL), SARDONYX_BAD_INPUT, "no form"));
  EXPECT(fails(sardonyx_model_save(model, NULL, NULL), SARDONYX_BAD_INPUT, "path"));
  EXPECT(strcmp(sardonyx_bytes_data(NULL, &size), "") == 0 && size == 0);
  sardonyx_bytes_release(NULL);
  sardonyx_model_release(again);
  sardonyx_model_release(model);
}

static const char product[] =
    "<ir_version: 9, opset_import: [\"\": 17]>\n"
    "g (float[n,2] x) => (float[n,2] y) <float[2,2] w = {1, 2, 3, 4}> { y = MatMul (x, w) }";

static void test_packed(void) {
  sardonyx_model* model = NULL;
  sardonyx_session* session = NULL;
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_bytes* lines = NULL;
  size_t forms = 0, different = 9, length = 9;
  uint64_t bytes = 0;
  EXPECT(ok(sardonyx_model_parse(product, sizeof product - 1, NULL, &model)));
  EXPECT(ok(sardonyx_model_pack(model, "capi_models.sdx", NULL, &forms, &bytes)));
  EXPECT(forms == 1 && bytes > 4096);
  EXPECT(ok(sardonyx_model_pack(model, "capi_models.sdx", NULL, NULL, NULL)));
  EXPECT(ok(
      sardonyx_model_compare_packed(model, "capi_models.sdx", NULL, &forms, &different, &lines)));
  EXPECT(forms == 1 && different == 0);
  sardonyx_bytes_data(lines, &length);
  EXPECT(length == 0);
  sardonyx_bytes_release(lines);
  EXPECT(ok(sardonyx_model_compare_packed(model, "capi_models.sdx", NULL, NULL, &different, NULL)));
  options.packed = "capi_models.sdx";
  EXPECT(ok(sardonyx_session_create(model, &options, &session)));
  sardonyx_session_release(session);
  options.packed = "capi_models.none";
  EXPECT(fails(sardonyx_session_create(model, &options, &session), SARDONYX_UNREADABLE,
               "cannot open"));
  options.packed = NULL;
  options.cache_folder = "capi_models_cache/below";
  EXPECT(ok(sardonyx_session_create(model, &options, &session)));
  sardonyx_session_release(session);
  EXPECT(fails(sardonyx_model_pack(NULL, "a.sdx", NULL, NULL, NULL), SARDONYX_BAD_INPUT, "model"));
  EXPECT(fails(sardonyx_model_pack(model, NULL, NULL, NULL, NULL), SARDONYX_BAD_INPUT, "path"));
  EXPECT(fails(sardonyx_model_compare_packed(model, "a.sdx", NULL, NULL, NULL, NULL),
               SARDONYX_BAD_INPUT, "different"));
  EXPECT(fails(sardonyx_model_compare_packed(model, "a.sdx", NULL, NULL, &different, NULL),
               SARDONYX_UNREADABLE, "cannot open"));
  options.reference = 1;
  EXPECT(fails(sardonyx_model_pack(model, "a.sdx", &options, NULL, NULL), SARDONYX_BAD_INPUT,
               "reference"));
  EXPECT(remove("capi_models.sdx") == 0);
  sardonyx_model_release(model);
}

typedef struct told {
  int count[SARDONYX_LOG_ERROR + 1];
  char last[200];
} told;

static void on_log(const sardonyx_log_message* message, void* user) {
  told* all = (told*)user;
  EXPECT(message->size == sizeof(*message) && message->message[0] != 0);
  EXPECT(message->rule != NULL && message->place != NULL && message->advice != NULL);
  EXPECT(message->level >= SARDONYX_LOG_DEBUG && message->level <= SARDONYX_LOG_ERROR);
  ++all->count[message->level];
  snprintf(all->last, sizeof all->last, "%s: %s", message->place, message->message);
}

/* What a session tells on the way. */
static void test_log(void) {
  static const char unsorted[] =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[2] x) => (float[2] y) {\n  y = Exp(a)\n  a = Neg(x)\n}\n";
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_model* model = NULL;
  sardonyx_session* session = NULL;
  FILE* file = NULL;
  told all, warned;
  memset(&all, 0, sizeof all);
  memset(&warned, 0, sizeof warned);
  options.threads = 1;
  options.log = on_log;
  options.log_user = &all;
  options.log_level = SARDONYX_LOG_DEBUG;
  options.cache_folder = "capi_models.onnxtxt/below"; /* below a file: it can't be made */
  file = fopen("capi_models.onnxtxt", "w");
  EXPECT(file != NULL && fputs(unsorted, file) >= 0 && fclose(file) == 0);
  EXPECT(ok(sardonyx_model_parse(product, sizeof product - 1, NULL, &model)));
  EXPECT(ok(sardonyx_session_create(model, &options, &session)));
  EXPECT(all.count[SARDONYX_LOG_DEBUG] == 1 && all.count[SARDONYX_LOG_WARNING] == 1);
  EXPECT(strstr(all.last, "can't be written") != NULL);
  sardonyx_session_release(session);
  /* Without a level warnings are told, and without `warn` also what reading mends. */
  options.log_user = &warned;
  options.log_level = 0;
  EXPECT(ok(sardonyx_session_create(model, &options, &session)));
  EXPECT(warned.count[SARDONYX_LOG_DEBUG] == 0 && warned.count[SARDONYX_LOG_WARNING] == 1);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
  options.cache_folder = NULL;
  EXPECT(ok(sardonyx_session_load("capi_models.onnxtxt", NULL, &options, &session)));
  EXPECT(warned.count[SARDONYX_LOG_WARNING] == 2);
  sardonyx_session_release(session);
  session = NULL;
  options.log_level = SARDONYX_LOG_ERROR + 1;
  EXPECT(fails(sardonyx_session_load("capi_models.onnxtxt", NULL, &options, &session),
               SARDONYX_BAD_INPUT, "log_level"));
  options.log_level = -1;
  EXPECT(fails(sardonyx_session_load("capi_models.onnxtxt", NULL, &options, &session),
               SARDONYX_BAD_INPUT, "log_level"));
  EXPECT(session == NULL && remove("capi_models.onnxtxt") == 0);
}

static void test_looking(void) {
  sardonyx_model* model = example();
  sardonyx_model_info info = SARDONYX_INIT(sardonyx_model_info);
  const char *key = NULL, *value = NULL, *domain = NULL;
  sardonyx_value* tensor = NULL;
  sardonyx_report* report = NULL;
  int64_t version = 0;
  EXPECT(ok(sardonyx_model_describe(model, &info)));
  EXPECT(info.ir_version == 9 && strcmp(info.producer_name, "tests") == 0);
  EXPECT(strcmp(info.graph_name, "g") == 0 && strcmp(info.doc_string, "") == 0);
  EXPECT(info.metadata_count == 1 && info.opset_count == 1 && info.function_count == 0);
  EXPECT(info.node_count == 1 && info.initializer_count == 1);
  EXPECT(ok(sardonyx_model_metadata(model, 0, &key, &value)));
  EXPECT(strcmp(key, "key") == 0 && strcmp(value, "value") == 0);
  EXPECT(fails(sardonyx_model_metadata(model, 1, &key, &value), SARDONYX_BAD_INPUT, "1 of 1"));
  EXPECT(fails(sardonyx_model_metadata(model, 0, NULL, &value), SARDONYX_BAD_INPUT, "key"));
  EXPECT(ok(sardonyx_model_opset(model, 0, &domain, &version)));
  EXPECT(strcmp(domain, "") == 0 && version == 17);
  EXPECT(fails(sardonyx_model_opset(model, 1, &domain, &version), SARDONYX_BAD_INPUT, "1 of 1"));
  EXPECT(ok(sardonyx_model_initializer(model, 0, &key, &tensor)));
  EXPECT(strcmp(key, "w") == 0);
  sardonyx_value_release(tensor);
  EXPECT(fails(sardonyx_model_initializer(model, 1, NULL, NULL), SARDONYX_BAD_INPUT, "1 of 1"));
  EXPECT(fails(sardonyx_model_describe(NULL, &info), SARDONYX_BAD_INPUT, "model"));
  EXPECT(fails(sardonyx_model_describe(model, NULL), SARDONYX_BAD_INPUT, "info"));
  EXPECT(ok(sardonyx_check(model, NULL, &report)));
  EXPECT(sardonyx_report_errors(report) == 0);
  sardonyx_report_release(report);
  EXPECT(fails(sardonyx_check(NULL, NULL, &report), SARDONYX_BAD_INPUT, "model"));
  sardonyx_model_release(model);
}

static void test_making(void) {
  sardonyx_model *model = example(), *made = NULL, *other = NULL;
  sardonyx_merge_options merging = SARDONYX_INIT(sardonyx_merge_options);
  sardonyx_model_info info = SARDONYX_INIT(sardonyx_model_info);
  sardonyx_differences* differences = NULL;
  sardonyx_difference difference = SARDONYX_INIT(sardonyx_difference);
  const char *x = "x", *y = "y", *image = "image", *none = "none";
  EXPECT(ok(sardonyx_model_convert(model, 18, 0, &made)));
  EXPECT(ok(sardonyx_model_diff(model, made, NULL, &differences)));
  EXPECT(sardonyx_differences_count(differences) > 0);
  EXPECT(ok(sardonyx_differences_get(differences, 0, &difference)));
  EXPECT(strlen(difference.place) > 0);
  EXPECT(fails(sardonyx_differences_get(differences, 1000, &difference), SARDONYX_BAD_INPUT,
               "no difference"));
  sardonyx_differences_release(differences);
  sardonyx_model_release(made);
  EXPECT(fails(sardonyx_model_convert(model, -1, 0, &made), SARDONYX_BAD_INPUT, "negative"));
  EXPECT(fails(sardonyx_model_convert(model, 99, 0, &made), SARDONYX_BAD_INPUT, "in [1, 28]"));
  EXPECT(fails(sardonyx_model_convert(NULL, 0, 0, &made), SARDONYX_BAD_INPUT, "model"));

  EXPECT(ok(sardonyx_model_inline_functions(model, &made)));
  EXPECT(ok(sardonyx_model_diff(model, made, NULL, &differences)));
  EXPECT(sardonyx_differences_count(differences) == 0);
  sardonyx_differences_release(differences);
  sardonyx_model_release(made);
  EXPECT(fails(sardonyx_model_inline_functions(model, NULL), SARDONYX_BAD_INPUT, "inlined"));

  EXPECT(ok(sardonyx_model_extract(model, &x, 1, &y, 1, &made)));
  sardonyx_model_release(made);
  EXPECT(fails(sardonyx_model_extract(model, &x, 1, &none, 1, &made), SARDONYX_BAD_INPUT, "none"));
  EXPECT(
      fails(sardonyx_model_extract(model, &x, 1, NULL, 1, &made), SARDONYX_BAD_INPUT, "outputs"));

  EXPECT(ok(sardonyx_model_rename(model, SARDONYX_NAMED_VALUE, &x, &image, 1, &other)));
  merging.from = &y, merging.to = &image, merging.connection_count = 1;
  merging.second_prefix = "second_";
  EXPECT(ok(sardonyx_model_merge(model, other, &merging, &made)));
  EXPECT(ok(sardonyx_model_describe(made, &info)));
  EXPECT(info.node_count == 2);
  sardonyx_model_release(made);
  merging.to = &none;
  EXPECT(fails(sardonyx_model_merge(model, other, &merging, &made), SARDONYX_BAD_INPUT, "none"));
  merging.to = NULL;
  EXPECT(fails(sardonyx_model_merge(model, other, &merging, &made), SARDONYX_BAD_INPUT, "to"));
  sardonyx_model_release(other);
  EXPECT(fails(sardonyx_model_rename(model, 9, &x, &image, 1, &other), SARDONYX_BAD_INPUT,
               "nothing that has names"));
  EXPECT(
      fails(sardonyx_model_rename(model, 0, &none, &image, 1, &other), SARDONYX_BAD_INPUT, "none"));
  EXPECT(ok(sardonyx_model_infer(model, NULL, &made)));
  sardonyx_model_release(made);
  EXPECT(fails(sardonyx_model_infer(model, NULL, NULL), SARDONYX_BAD_INPUT, "typed"));
  EXPECT(fails(sardonyx_model_diff(model, NULL, NULL, &differences), SARDONYX_BAD_INPUT, "second"));
  sardonyx_differences_release(NULL);
  EXPECT(sardonyx_differences_count(NULL) == 0);
  sardonyx_model_release(model);
}

static void test_editing(void) {
  sardonyx_model *model = example(), *made = NULL;
  sardonyx_editor* editor = NULL;
  sardonyx_model_info info = SARDONYX_INIT(sardonyx_model_info);
  sardonyx_value* w = NULL;
  EXPECT(ok(sardonyx_editor_create(model, &editor)));
  EXPECT(ok(sardonyx_editor_set_text(editor, SARDONYX_FIELD_PRODUCER_NAME, "editor")));
  EXPECT(ok(sardonyx_editor_set_number(editor, SARDONYX_FIELD_MODEL_VERSION, 3)));
  EXPECT(ok(sardonyx_editor_set_metadata(editor, "new", "entry")));
  EXPECT(ok(sardonyx_editor_set_metadata(editor, "key", NULL)));
  EXPECT(ok(sardonyx_editor_set_opset(editor, "", 18)));
  EXPECT(ok(sardonyx_editor_set_type(editor, "y", "float[m,2]")));
  EXPECT(ok(sardonyx_editor_set_dimension(editor, "x", 0, 4, NULL)));
  EXPECT(ok(sardonyx_editor_set_dimension(editor, "y", 0, -1, "rows")));
  EXPECT(ok(sardonyx_editor_add_output(editor, "w", NULL)));
  EXPECT(ok(sardonyx_editor_remove_output(editor, "w")));
  EXPECT(ok(sardonyx_editor_add_input(editor, "spare", "int64[n]")));
  EXPECT(ok(sardonyx_editor_remove_input(editor, "spare")));
  EXPECT(ok(sardonyx_model_initializer(model, 0, NULL, &w)));
  EXPECT(ok(sardonyx_editor_set_initializer(editor, "w", w)));
  EXPECT(ok(sardonyx_editor_set_initializer(editor, "added", w)));
  EXPECT(ok(sardonyx_editor_set_initializer(editor, "added", NULL)));
  sardonyx_value_release(w);
  EXPECT(ok(sardonyx_editor_finish(editor, &made)));
  EXPECT(ok(sardonyx_model_describe(made, &info)));
  EXPECT(strcmp(info.producer_name, "editor") == 0 && info.model_version == 3);
  EXPECT(info.metadata_count == 1 && info.initializer_count == 1);
  sardonyx_model_release(made);

  EXPECT(fails(sardonyx_editor_set_text(editor, SARDONYX_FIELD_IR_VERSION, "9"), SARDONYX_BAD_INPUT,
               "no field"));
  EXPECT(fails(sardonyx_editor_set_text(editor, 0, NULL), SARDONYX_BAD_INPUT, "text"));
  EXPECT(fails(sardonyx_editor_set_number(editor, SARDONYX_FIELD_DOMAIN, 9), SARDONYX_BAD_INPUT,
               "no field"));
  EXPECT(fails(sardonyx_editor_set_metadata(editor, "none", NULL), SARDONYX_BAD_INPUT, "none"));
  EXPECT(fails(sardonyx_editor_set_opset(editor, "", 0), SARDONYX_BAD_INPUT, "begin at 1"));
  EXPECT(fails(sardonyx_editor_set_type(editor, "y", "nonsense["), SARDONYX_BAD_INPUT, "no type"));
  EXPECT(fails(sardonyx_editor_set_dimension(editor, "x", 0, 1, "n"), SARDONYX_BAD_INPUT,
               "a number and a name"));
  EXPECT(fails(sardonyx_editor_add_input(editor, "x", "float[1]"), SARDONYX_BAD_INPUT, "already"));
  EXPECT(fails(sardonyx_editor_remove_input(editor, "x"), SARDONYX_BAD_INPUT, "is read"));
  EXPECT(fails(sardonyx_editor_add_output(editor, "none", NULL), SARDONYX_BAD_INPUT, "none"));
  EXPECT(fails(sardonyx_editor_remove_output(editor, "none"), SARDONYX_BAD_INPUT, "none"));
  EXPECT(fails(sardonyx_editor_set_initializer(editor, "w", NULL), SARDONYX_BAD_INPUT, "is read"));
  EXPECT(fails(sardonyx_editor_finish(NULL, &made), SARDONYX_BAD_INPUT, "editor"));
  EXPECT(fails(sardonyx_editor_create(NULL, &editor), SARDONYX_BAD_INPUT, "model"));
  sardonyx_editor_release(editor);
  sardonyx_editor_release(NULL);
  sardonyx_model_release(model);
}

int main(void) {
  test_forms();
  test_packed();
  test_log();
  test_looking();
  test_making();
  test_editing();
  if (failures > 0) fprintf(stderr, "%d failures\n", failures);
  return failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
