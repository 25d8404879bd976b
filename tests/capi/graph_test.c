/* Looking at models, signatures and operator sets, through the C interface. */
#include <stdlib.h>

#include "checks.h"

static const char model_text[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"local\" : 1], producer_name: \"tests\","
    " metadata_props: [\"key\": \"value\"]>\n"
    "g (float[N, 3] x, bool c) => (float[N, 3] y, s) <float[3] w = {1, 2, 3}, float[N, 3] a> {\n"
    "  [add] a = Add (x, w)\n"
    "  [choice] y = If (c) <then_branch = t () => (u) { u = Relu (a) },"
    " else_branch = e () => (v) { v = Softmax<axis = 1> (a) }>\n"
    "  s = local.Pieces<words = [\"one\", \"\"]> (y)\n"
    "}\n"
    "<domain: \"local\", opset_import: [\"\" : 21]>\n"
    "Pieces <words, axis: int = 0> (p) => (q) { q = SequenceConstruct (p) }\n";

static sardonyx_model* parsed(const char* text) {
  sardonyx_model* model = NULL;
  OK(sardonyx_model_parse(text, strlen(text), NULL, &model));
  return model;
}

static int same(const char* a, const char* b) { return strcmp(a, b) == 0; }

/* Whether the bytes are this text; releases them. */
static int is_text(sardonyx_bytes* bytes, const char* expected) {
  const int is_same = same(sardonyx_bytes_data(bytes, NULL), expected);
  if (!is_same) fprintf(stderr, "%s: %s\n", test, sardonyx_bytes_data(bytes, NULL));
  sardonyx_bytes_release(bytes);
  return is_same;
}

static void graphs(void) {
  sardonyx_model* model = parsed(model_text);
  sardonyx_graph graph, nothing;
  sardonyx_node node;
  sardonyx_declared_value value;
  sardonyx_declared_type type;
  sardonyx_stored_tensor tensor;
  sardonyx_graph_info info = SARDONYX_INIT(sardonyx_graph_info);
  sardonyx_node_info told = SARDONYX_INIT(sardonyx_node_info);
  sardonyx_declared_value_info declared = SARDONYX_INIT(sardonyx_declared_value_info);
  sardonyx_declared_type_info typed = SARDONYX_INIT(sardonyx_declared_type_info);
  sardonyx_stored_tensor_info stored = SARDONYX_INIT(sardonyx_stored_tensor_info);
  sardonyx_value* elements_of = NULL;
  sardonyx_bytes* text = NULL;
  const char *name = NULL, *denotation = NULL;
  int64_t number = 0;
  test = "graphs";
  memset(&nothing, 0, sizeof nothing);
  OK(sardonyx_model_graph(model, &graph));
  OK(sardonyx_graph_describe(graph, &info));
  CHECK(same(info.name, "g") && info.node_count == 3 && info.input_count == 2);
  CHECK(info.output_count == 2 && info.initializer_count == 1 && info.value_info_count == 1);
  CHECK(info.sparse_initializer_count == 0 && info.annotation_count == 0);

  OK(sardonyx_graph_node(graph, 0, &node));
  OK(sardonyx_node_describe(node, &told));
  CHECK(same(told.op_type, "Add") && same(told.name, "add") && same(told.domain, ""));
  CHECK(told.input_count == 2 && told.output_count == 1 && told.attribute_count == 0);
  OK(sardonyx_node_input(node, 1, &name));
  CHECK(same(name, "w"));
  OK(sardonyx_node_output(node, 0, &name));
  CHECK(same(name, "a"));
  FAILS(sardonyx_node_output(node, 1, &name), SARDONYX_BAD_INPUT, "no output 1 of 1");
  OK(sardonyx_node_text(node, &text));
  CHECK(is_text(text, "Add 'add'"));
  FAILS(sardonyx_graph_node(graph, 3, &node), SARDONYX_BAD_INPUT, "no node 3 of 3");
  NULL_ARGUMENT(sardonyx_graph_node(nothing, 0, &node), "graph");
  NULL_ARGUMENT(sardonyx_graph_node(graph, 0, NULL), "node");

  OK(sardonyx_graph_find_input(graph, "x", &value));
  OK(sardonyx_declared_value_describe(value, &declared));
  CHECK(same(declared.name, "x") && declared.metadata_count == 0);
  type = declared.type;
  OK(sardonyx_declared_type_describe(type, &typed));
  CHECK(typed.kind == SARDONYX_TENSOR && typed.element_type == SARDONYX_FLOAT32);
  CHECK(typed.has_shape == 1 && typed.rank == 2 && typed.nested.item == NULL);
  OK(sardonyx_declared_type_dimension(type, 0, &number, &name, &denotation));
  CHECK(number == -1 && same(name, "N") && same(denotation, ""));
  OK(sardonyx_declared_type_dimension(type, 1, &number, NULL, NULL));
  CHECK(number == 3);
  FAILS(sardonyx_declared_type_dimension(type, 2, NULL, NULL, NULL), SARDONYX_BAD_INPUT,
        "no dimension 2 of 2");
  OK(sardonyx_declared_type_text(type, &text));
  CHECK(is_text(text, "float[N,3]"));
  OK(sardonyx_graph_output(graph, 1, &value));
  OK(sardonyx_declared_value_describe(value, &declared));
  CHECK(declared.type.item == NULL);
  NULL_ARGUMENT(sardonyx_declared_type_describe(declared.type, &typed), "type");
  FAILS(sardonyx_graph_find_output(graph, "q", &value), SARDONYX_BAD_INPUT, "no output 'q'");
  OK(sardonyx_graph_value_info(graph, 0, &value));
  OK(sardonyx_declared_value_describe(value, &declared));
  CHECK(same(declared.name, "a"));

  OK(sardonyx_graph_find_initializer(graph, "w", &tensor));
  OK(sardonyx_stored_tensor_describe(tensor, &stored));
  CHECK(same(stored.name, "w") && stored.rank == 1 && stored.dims[0] == 3 && !stored.is_external);
  OK(sardonyx_stored_tensor_value(tensor, &elements_of));
  CHECK(elements(elements_of)[2] == 3);
  FAILS(sardonyx_stored_tensor_external(tensor, 0, &name, &name), SARDONYX_BAD_INPUT, "no entry 0");
  sardonyx_model_release(model);
  CHECK(elements(elements_of)[1] == 2); /* they live on */
  sardonyx_value_release(elements_of);
}

static void attributes(void) {
  sardonyx_model* model = parsed(model_text);
  sardonyx_graph graph, branch;
  sardonyx_node node;
  sardonyx_attribute attribute;
  sardonyx_attribute_info info = SARDONYX_INIT(sardonyx_attribute_info);
  sardonyx_stored_tensor tensor;
  sardonyx_bytes* text = NULL;
  const char* string = NULL;
  const int64_t* ints = NULL;
  const float* floats_of = NULL;
  size_t length = 0;
  int64_t number = 0;
  float real = 0;
  test = "attributes";
  OK(sardonyx_model_graph(model, &graph));
  OK(sardonyx_graph_node(graph, 1, &node));
  OK(sardonyx_node_find_attribute(node, "else_branch", &attribute));
  OK(sardonyx_attribute_describe(attribute, &info));
  CHECK(info.type == SARDONYX_ATTRIBUTE_GRAPH && info.count == 1);
  OK(sardonyx_attribute_graph(attribute, 0, &branch));
  FAILS(sardonyx_attribute_graph(attribute, 1, &branch), SARDONYX_BAD_INPUT, "no item 1 of 1");
  OK(sardonyx_graph_node(branch, 0, &node));
  OK(sardonyx_node_attribute(node, 0, &attribute));
  OK(sardonyx_attribute_int(attribute, &number));
  CHECK(number == 1);
  OK(sardonyx_attribute_text(attribute, &text));
  CHECK(is_text(text, "axis = 1"));
  FAILS(sardonyx_attribute_float(attribute, &real), SARDONYX_BAD_INPUT, "axis");
  FAILS(sardonyx_attribute_ints(attribute, &ints, &length), SARDONYX_BAD_INPUT, "axis");
  FAILS(sardonyx_attribute_floats(attribute, &floats_of, &length), SARDONYX_BAD_INPUT, "axis");
  FAILS(sardonyx_attribute_string(attribute, 0, &string, NULL), SARDONYX_BAD_INPUT, "axis");
  FAILS(sardonyx_attribute_tensor(attribute, 0, &tensor), SARDONYX_BAD_INPUT, "axis");
  FAILS(sardonyx_node_find_attribute(node, "alpha", &attribute), SARDONYX_BAD_INPUT,
        "no attribute 'alpha'");
  OK(sardonyx_graph_node(graph, 2, &node));
  OK(sardonyx_node_find_attribute(node, "words", &attribute));
  OK(sardonyx_attribute_describe(attribute, &info));
  CHECK(info.type == SARDONYX_ATTRIBUTE_STRINGS && info.count == 2 && same(info.reference, ""));
  OK(sardonyx_attribute_string(attribute, 0, &string, &length));
  CHECK(same(string, "one") && length == 3);
  OK(sardonyx_attribute_string(attribute, 1, &string, &length));
  CHECK(same(string, "") && length == 0);
  FAILS(sardonyx_attribute_string(attribute, 2, &string, NULL), SARDONYX_BAD_INPUT, "no item 2");
  CHECK(same(sardonyx_attribute_type_name(SARDONYX_ATTRIBUTE_INTS), "ints"));
  CHECK(sardonyx_attribute_type_name(99) != NULL && sardonyx_attribute_type_name(-1) != NULL);
  sardonyx_model_release(model);
}

static void functions(void) {
  sardonyx_model* model = parsed(model_text);
  sardonyx_function function;
  sardonyx_attribute attribute;
  sardonyx_node node;
  sardonyx_function_info info = SARDONYX_INIT(sardonyx_function_info);
  sardonyx_node_info told = SARDONYX_INIT(sardonyx_node_info);
  sardonyx_attribute_info given = SARDONYX_INIT(sardonyx_attribute_info);
  const char* name = NULL;
  int64_t version = 0;
  test = "functions";
  OK(sardonyx_model_function(model, 0, &function));
  FAILS(sardonyx_model_function(model, 1, &function), SARDONYX_BAD_INPUT, "no function 1 of 1");
  OK(sardonyx_function_describe(function, &info));
  CHECK(same(info.name, "Pieces") && same(info.domain, "local") && info.input_count == 1);
  CHECK(info.attribute_count == 1 && info.default_count == 1 && info.node_count == 1);
  OK(sardonyx_function_input(function, 0, &name));
  CHECK(same(name, "p"));
  OK(sardonyx_function_output(function, 0, &name));
  CHECK(same(name, "q"));
  OK(sardonyx_function_attribute(function, 0, &name));
  CHECK(same(name, "words"));
  OK(sardonyx_function_default(function, 0, &attribute));
  OK(sardonyx_attribute_describe(attribute, &given));
  CHECK(same(given.name, "axis"));
  OK(sardonyx_function_opset(function, 0, &name, &version));
  CHECK(same(name, "") && version == 21);
  OK(sardonyx_function_node(function, 0, &node));
  OK(sardonyx_node_describe(node, &told));
  CHECK(same(told.op_type, "SequenceConstruct"));
  FAILS(sardonyx_function_value_info(function, 0, NULL), SARDONYX_BAD_INPUT, "value");
  FAILS(sardonyx_function_metadata(function, 0, &name, &name), SARDONYX_BAD_INPUT, "no metadata 0");
  sardonyx_model_release(model);
}

typedef struct visit {
  int nodes, deepest, stop_after;
} visit;

static int on_node(const sardonyx_node_place* place, sardonyx_node node, void* user) {
  visit* to = user;
  sardonyx_node_info info = SARDONYX_INIT(sardonyx_node_info);
  OK(sardonyx_node_describe(node, &info));
  CHECK(strlen(place->graph) > 0 && strlen(info.op_type) > 0);
  if (place->depth > to->deepest) to->deepest = place->depth;
  return ++to->nodes != to->stop_after;
}

static void visits(void) {
  sardonyx_model* model = parsed(model_text);
  visit all = {0, 0, 0}, two = {0, 0, 2};
  test = "visits";
  OK(sardonyx_model_visit_nodes(model, on_node, &all));
  CHECK(all.nodes == 6 && all.deepest == 1);
  OK(sardonyx_model_visit_nodes(model, on_node, &two));
  CHECK(two.nodes == 2);
  NULL_ARGUMENT(sardonyx_model_visit_nodes(NULL, on_node, &two), "model");
  NULL_ARGUMENT(sardonyx_model_visit_nodes(model, NULL, &two), "visit");
  sardonyx_model_release(model);
}

/* What Softmax has been is known; all the others are looked at whole. */
static void signatures(void) {
  sardonyx_signatures *versions = NULL, *found = NULL;
  sardonyx_signature signature = SARDONYX_INIT(sardonyx_signature);
  sardonyx_attribute_signature attribute = SARDONYX_INIT(sardonyx_attribute_signature);
  sardonyx_parameter parameter = SARDONYX_INIT(sardonyx_parameter);
  sardonyx_type_constraint constraint = SARDONYX_INIT(sardonyx_type_constraint);
  const char *domain = NULL, *name = NULL;
  int32_t newest = 0;
  size_t d, o, i, k, t, all = 0, types = 0;
  test = "signatures";
  OK(sardonyx_signatures_of("ai.onnx", "Softmax", &versions));
  CHECK(sardonyx_signatures_count(versions) == 3);
  OK(sardonyx_signatures_get(versions, 1, &signature));
  CHECK(signature.since == 11 && signature.input_count == 1 && signature.max_inputs == 1);
  CHECK(same(signature.domain, "") && same(signature.name, "Softmax"));
  OK(sardonyx_signatures_attribute(versions, 1, 0, &attribute));
  CHECK(same(attribute.name, "axis") && attribute.type == SARDONYX_ATTRIBUTE_INT);
  CHECK(attribute.has_default && attribute.default_int == 1);
  OK(sardonyx_signatures_get(versions, 2, &signature));
  CHECK(signature.function == SARDONYX_CONTEXTUAL_FUNCTION ||
        signature.function == SARDONYX_FIXED_FUNCTION);
  OK(sardonyx_signatures_parameter(versions, 2, 1, 0, &parameter));
  CHECK(parameter.option == SARDONYX_SINGLE_PARAMETER && same(parameter.type, "T"));
  FAILS(sardonyx_signatures_get(versions, 3, &signature), SARDONYX_BAD_INPUT, "no signature 3");
  FAILS(sardonyx_signatures_parameter(versions, 0, 0, 1, &parameter), SARDONYX_BAD_INPUT,
        "no formal input 1 of 1");
  FAILS(sardonyx_signatures_attribute(versions, 0, 1, &attribute), SARDONYX_BAD_INPUT,
        "no attribute 1");
  OK(sardonyx_signatures_find("", "Softmax", 12, &found));
  OK(sardonyx_signatures_get(found, 0, &signature));
  CHECK(sardonyx_signatures_count(found) == 1 && signature.since == 11);
  sardonyx_signatures_release(found);
  OK(sardonyx_signatures_find("", "Softmax", 0, &found));
  CHECK(sardonyx_signatures_count(found) == 0);
  sardonyx_signatures_release(found);
  sardonyx_signatures_release(versions);
  OK(sardonyx_signatures_of("", "Nothing", &versions));
  CHECK(sardonyx_signatures_count(versions) == 0);
  sardonyx_signatures_release(versions);

  CHECK(sardonyx_domain_count() >= 4 && sardonyx_domain_operator_count("unknown") == 0);
  for (d = 0; d < sardonyx_domain_count(); ++d) {
    OK(sardonyx_domain(d, &domain, &newest));
    for (o = 0; o < sardonyx_domain_operator_count(domain); ++o) {
      OK(sardonyx_domain_operator(domain, o, &name));
      OK(sardonyx_signatures_of(domain, name, &versions));
      CHECK(sardonyx_signatures_count(versions) > 0);
      for (i = 0; i < sardonyx_signatures_count(versions); ++i, ++all) {
        OK(sardonyx_signatures_get(versions, i, &signature));
        for (k = 0; k < signature.input_count + signature.output_count; ++k) {
          const int is_output = k >= signature.input_count;
          OK(sardonyx_signatures_parameter(versions, i, is_output,
                                           is_output ? k - signature.input_count : k, &parameter));
          for (t = 0; t < parameter.type_count; ++t) types += strlen(parameter.types[t]);
        }
        for (k = 0; k < signature.attribute_count; ++k) {
          OK(sardonyx_signatures_attribute(versions, i, k, &attribute));
          for (t = 0; attribute.type == SARDONYX_ATTRIBUTE_STRINGS && t < attribute.default_count;
               ++t)
            CHECK(strlen(attribute.default_strings[t]) > 0);
        }
        for (k = 0; k < signature.constraint_count; ++k) {
          OK(sardonyx_signatures_constraint(versions, i, k, &constraint));
          CHECK(constraint.type_count > 0 && strlen(constraint.types[0]) > 0);
        }
      }
      sardonyx_signatures_release(versions);
    }
  }
  CHECK(all > 500 && types > 10000);
  FAILS(sardonyx_domain(d, &domain, &newest), SARDONYX_BAD_INPUT, "no domain");
  FAILS(sardonyx_domain_operator("", 100000, &name), SARDONYX_BAD_INPUT, "no operator 100000");
}

static void releases(void) {
  sardonyx_standard_release release = SARDONYX_INIT(sardonyx_standard_release);
  size_t i;
  int32_t before = 0;
  test = "releases";
  CHECK(sardonyx_standard_release_count() > 20);
  for (i = 0; i < sardonyx_standard_release_count(); ++i) {
    OK(sardonyx_standard_release_get(i, &release));
    CHECK(strlen(release.name) > 0 && release.onnx_opset >= before);
    before = release.onnx_opset;
  }
  FAILS(sardonyx_standard_release_get(i, &release), SARDONYX_BAD_INPUT, "no release");
}

static void operator_sets(void) {
  sardonyx_operator_set *set = NULL, *again = NULL;
  sardonyx_operator_set_info info = SARDONYX_INIT(sardonyx_operator_set_info);
  sardonyx_documented_operator op = SARDONYX_INIT(sardonyx_documented_operator);
  sardonyx_function_info body = SARDONYX_INIT(sardonyx_function_info);
  sardonyx_report* report = NULL;
  size_t i, bodies = 0;
  test = "operator_sets";
  OK(sardonyx_operator_set_of_standard("", 17, &set));
  OK(sardonyx_operator_set_describe(set, &info));
  CHECK(info.version == 17 && same(info.domain, "") && info.operator_count > 150);
  for (i = 0; i < info.operator_count; ++i) {
    OK(sardonyx_operator_set_operator(set, i, &op));
    CHECK(strlen(op.name) > 0 && op.since >= 1 && op.since <= 17);
    if (op.body.item == NULL) continue;
    ++bodies;
    OK(sardonyx_function_describe(op.body, &body));
    CHECK(same(body.name, op.name) && body.node_count > 0);
  }
  CHECK(bodies > 3);
  FAILS(sardonyx_operator_set_operator(set, i, &op), SARDONYX_BAD_INPUT, "no operator");
  OK(sardonyx_operator_set_check(set, &report));
  CHECK(sardonyx_report_errors(report) == 0);
  sardonyx_report_release(report);
  OK(sardonyx_operator_set_save(set, "capi_set.json"));
  OK(sardonyx_operator_set_load("capi_set.json", &again));
  OK(sardonyx_operator_set_describe(again, &info));
  CHECK(info.operator_count == i);
  remove("capi_set.json");
  FAILS(sardonyx_operator_set_save(set, "capi_set.docx"), SARDONYX_BAD_INPUT, "docx");
  FAILS(sardonyx_operator_set_load("missing.json", &again), SARDONYX_UNREADABLE, "missing.json");
  FAILS(sardonyx_operator_set_of_standard("nobody", 1, &again), SARDONYX_BAD_INPUT, "nobody");
  FAILS(sardonyx_operator_set_of_standard("", 1000, &again), SARDONYX_BAD_INPUT, "1000");
  sardonyx_operator_set_release(set);
  sardonyx_operator_set_release(again);
  sardonyx_operator_set_release(NULL);
}

int main(void) {
  graphs();
  attributes();
  functions();
  visits();
  signatures();
  releases();
  operator_sets();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
