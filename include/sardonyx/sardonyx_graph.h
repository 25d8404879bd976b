/* Looking at what a model holds, without copies: graphs, nodes, attributes, tensors, types and
 * functions. A part of sardonyx.h, which includes it. All of it since version 3.
 *
 *   sardonyx_graph graph;
 *   sardonyx_node node;
 *   sardonyx_node_info info = SARDONYX_INIT(sardonyx_node_info);
 *   sardonyx_model_graph(model, &graph);
 *   for (size_t i = 0; sardonyx_graph_node(graph, i, &node) == NULL; ++i) …
 *
 * What stands for a part of a model is a small struct that is passed by value: it owns nothing, and
 * lasts as long as the handle of the model, or of the operator set, that it was asked of. A struct
 * of zeros stands for nothing, and is refused as NULL is. Texts, lists and sizes that functions
 * give last as long, too. Parts of one model may be looked at from any thread at the same time.
 *
 * Nothing here judges: what a file says comes out as it says it, also where it breaks the standard
 * (sardonyx_check tells). SARDONYX_BAD_INPUT is the status for an index or a name that is not
 * there. Structs of results have their size set before (SARDONYX_INIT). */
#include "sardonyx/sardonyx.h"

#ifndef SARDONYX_SARDONYX_GRAPH_H
#define SARDONYX_SARDONYX_GRAPH_H

#ifdef __cplusplus
extern "C" {
#endif

/* The main graph, or one inside a node (IR.md, "Graphs"). */
typedef struct sardonyx_graph {
  const void* item;
  const void* context;
} sardonyx_graph;
/* A node of a graph or a function. */
typedef struct sardonyx_node {
  const void* item;
  const void* context;
} sardonyx_node;
/* An attribute of a node. */
typedef struct sardonyx_attribute {
  const void* item;
  const void* context;
} sardonyx_attribute;
/* TensorProto: an initializer, or the value of an attribute. */
typedef struct sardonyx_stored_tensor {
  const void* item;
  const void* context;
} sardonyx_stored_tensor;
/* SparseTensorProto: values, and the places of what is not zero. */
typedef struct sardonyx_stored_sparse {
  const void* item;
  const void* context;
} sardonyx_stored_sparse;
/* ValueInfoProto: what is declared of an input, of an output, or of a value in between. */
typedef struct sardonyx_declared_value {
  const void* item;
  const void* context;
} sardonyx_declared_value;
/* TypeProto (IR.md, "Types"). */
typedef struct sardonyx_declared_type {
  const void* item;
  const void* context;
} sardonyx_declared_type;
/* A function of the model (IR.md, "Functions"), or the body of an operator in an operator set. */
typedef struct sardonyx_function {
  const void* item;
  const void* context;
} sardonyx_function;

/* --- Of a model --------------------------------------------------------------------------- */

/* The main graph. SARDONYX_INVALID_MODEL where there is none. */
SARDONYX_API sardonyx_status* sardonyx_model_graph(const sardonyx_model* model,
                                                   sardonyx_graph* graph);
/* Function `index` of `function_count` (sardonyx_model_describe). */
SARDONYX_API sardonyx_status* sardonyx_model_function(const sardonyx_model* model, size_t index,
                                                      sardonyx_function* function);

/* Where a node is. The text lasts for the call. */
typedef struct sardonyx_node_place {
  size_t size;
  const char* graph; /* "graph 'main', node 3 If 'choice', then_branch 'g1'" */
  size_t index;      /* among the nodes of that graph, or function */
  int depth;         /* 0: of an outermost graph, or a function */
} sardonyx_node_place;
/* Returns 0 to stop. */
typedef int (*sardonyx_visit_function)(const sardonyx_node_place* place, sardonyx_node node,
                                       void* user);
/* Calls `visit` for each node of the model, in the order of the file: those of the main graph, of
 * training, and of functions, each followed by those of the graphs inside it. */
SARDONYX_API sardonyx_status* sardonyx_model_visit_nodes(const sardonyx_model* model,
                                                         sardonyx_visit_function visit, void* user);

/* --- Graphs ------------------------------------------------------------------------------- */

/* How much there is of what the functions below give by index. */
typedef struct sardonyx_graph_info {
  size_t size;
  const char* name;
  const char* doc_string;
  size_t node_count;
  size_t input_count; /* with those that initializers give a default to */
  size_t output_count;
  size_t value_info_count; /* of values in between */
  size_t initializer_count;
  size_t sparse_initializer_count;
  size_t annotation_count; /* of quantized tensors */
  size_t metadata_count;
} sardonyx_graph_info;
SARDONYX_API sardonyx_status* sardonyx_graph_describe(sardonyx_graph graph,
                                                      sardonyx_graph_info* info);
SARDONYX_API sardonyx_status* sardonyx_graph_node(sardonyx_graph graph, size_t index,
                                                  sardonyx_node* node);
SARDONYX_API sardonyx_status* sardonyx_graph_input(sardonyx_graph graph, size_t index,
                                                   sardonyx_declared_value* input);
SARDONYX_API sardonyx_status* sardonyx_graph_output(sardonyx_graph graph, size_t index,
                                                    sardonyx_declared_value* output);
/* What is declared of a value in between. */
SARDONYX_API sardonyx_status* sardonyx_graph_value_info(sardonyx_graph graph, size_t index,
                                                        sardonyx_declared_value* value);
SARDONYX_API sardonyx_status* sardonyx_graph_initializer(sardonyx_graph graph, size_t index,
                                                         sardonyx_stored_tensor* tensor);
SARDONYX_API sardonyx_status* sardonyx_graph_sparse_initializer(sardonyx_graph graph, size_t index,
                                                                sardonyx_stored_sparse* tensor);
/* By name, in time that grows with their number. */
SARDONYX_API sardonyx_status* sardonyx_graph_find_input(sardonyx_graph graph, const char* name,
                                                        sardonyx_declared_value* input);
SARDONYX_API sardonyx_status* sardonyx_graph_find_output(sardonyx_graph graph, const char* name,
                                                         sardonyx_declared_value* output);
SARDONYX_API sardonyx_status* sardonyx_graph_find_initializer(sardonyx_graph graph,
                                                              const char* name,
                                                              sardonyx_stored_tensor* tensor);
SARDONYX_API sardonyx_status* sardonyx_graph_metadata(sardonyx_graph graph, size_t index,
                                                      const char** key, const char** value);
/* The tensor that annotation `index` is of, and how many parameters it has. */
SARDONYX_API sardonyx_status* sardonyx_graph_annotation(sardonyx_graph graph, size_t index,
                                                        const char** tensor_name,
                                                        size_t* parameter_count);
/* "SCALE_TENSOR" or its like, and the name of the tensor that holds it. */
SARDONYX_API sardonyx_status* sardonyx_graph_annotation_parameter(sardonyx_graph graph,
                                                                  size_t index, size_t parameter,
                                                                  const char** key,
                                                                  const char** value);

/* --- Nodes -------------------------------------------------------------------------------- */

typedef struct sardonyx_node_info {
  size_t size;
  const char* op_type;
  const char* domain; /* "" and "ai.onnx" are the same */
  const char* overload;
  const char* name;
  const char* doc_string;
  size_t input_count; /* absent ones before the last included */
  size_t output_count;
  size_t attribute_count;
  size_t metadata_count;
} sardonyx_node_info;
SARDONYX_API sardonyx_status* sardonyx_node_describe(sardonyx_node node, sardonyx_node_info* info);
/* The name of a value that the node reads; "": absent. */
SARDONYX_API sardonyx_status* sardonyx_node_input(sardonyx_node node, size_t index,
                                                  const char** name);
/* The name of a value that the node makes; "": absent. */
SARDONYX_API sardonyx_status* sardonyx_node_output(sardonyx_node node, size_t index,
                                                   const char** name);
SARDONYX_API sardonyx_status* sardonyx_node_attribute(sardonyx_node node, size_t index,
                                                      sardonyx_attribute* attribute);
SARDONYX_API sardonyx_status* sardonyx_node_find_attribute(sardonyx_node node, const char* name,
                                                           sardonyx_attribute* attribute);
SARDONYX_API sardonyx_status* sardonyx_node_metadata(sardonyx_node node, size_t index,
                                                     const char** key, const char** value);
/* "Softmax 'attn/probs'" */
SARDONYX_API sardonyx_status* sardonyx_node_text(sardonyx_node node, sardonyx_bytes** text);

/* --- Attributes --------------------------------------------------------------------------- */

/* Numbered as AttributeProto.AttributeType. */
typedef int32_t sardonyx_attribute_type;
enum {
  SARDONYX_ATTRIBUTE_UNDEFINED = 0,
  SARDONYX_ATTRIBUTE_FLOAT = 1,
  SARDONYX_ATTRIBUTE_INT = 2,
  SARDONYX_ATTRIBUTE_STRING = 3,
  SARDONYX_ATTRIBUTE_TENSOR = 4,
  SARDONYX_ATTRIBUTE_GRAPH = 5,
  SARDONYX_ATTRIBUTE_FLOATS = 6,
  SARDONYX_ATTRIBUTE_INTS = 7,
  SARDONYX_ATTRIBUTE_STRINGS = 8,
  SARDONYX_ATTRIBUTE_TENSORS = 9,
  SARDONYX_ATTRIBUTE_GRAPHS = 10,
  SARDONYX_ATTRIBUTE_SPARSE_TENSOR = 11,
  SARDONYX_ATTRIBUTE_SPARSE_TENSORS = 12,
  SARDONYX_ATTRIBUTE_TYPE = 13,
  SARDONYX_ATTRIBUTE_TYPES = 14
};
/* "float", "ints" …, as the standard's textual syntax has them; "undefined" for other numbers. */
SARDONYX_API const char* sardonyx_attribute_type_name(sardonyx_attribute_type type);

typedef struct sardonyx_attribute_info {
  size_t size;
  const char* name;
  sardonyx_attribute_type type; /* for files that do not say it, of the field that is filled */
  size_t count;                 /* items of a list; 1 of other types */
  const char* doc_string;
  const char* reference; /* not "" inside a function: the call's attribute that gives the value */
} sardonyx_attribute_info;
SARDONYX_API sardonyx_status* sardonyx_attribute_describe(sardonyx_attribute attribute,
                                                          sardonyx_attribute_info* info);
/* The value. SARDONYX_BAD_INPUT, which names both types, where the attribute has another one. */
SARDONYX_API sardonyx_status* sardonyx_attribute_float(sardonyx_attribute attribute, float* value);
SARDONYX_API sardonyx_status* sardonyx_attribute_int(sardonyx_attribute attribute, int64_t* value);
SARDONYX_API sardonyx_status* sardonyx_attribute_floats(sardonyx_attribute attribute,
                                                        const float** values, size_t* count);
SARDONYX_API sardonyx_status* sardonyx_attribute_ints(sardonyx_attribute attribute,
                                                      const int64_t** values, size_t* count);
/* Item `index` of a list, or with 0 the value of an attribute that is no list. The text may hold
 * zeros; `length` may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_attribute_string(sardonyx_attribute attribute, size_t index,
                                                        const char** text, size_t* length);
SARDONYX_API sardonyx_status* sardonyx_attribute_tensor(sardonyx_attribute attribute, size_t index,
                                                        sardonyx_stored_tensor* tensor);
SARDONYX_API sardonyx_status* sardonyx_attribute_sparse(sardonyx_attribute attribute, size_t index,
                                                        sardonyx_stored_sparse* tensor);
SARDONYX_API sardonyx_status* sardonyx_attribute_graph(sardonyx_attribute attribute, size_t index,
                                                       sardonyx_graph* graph);
SARDONYX_API sardonyx_status* sardonyx_attribute_type_proto(sardonyx_attribute attribute,
                                                            size_t index,
                                                            sardonyx_declared_type* type);
/* As the textual syntax writes it: "axis = 1". */
SARDONYX_API sardonyx_status* sardonyx_attribute_text(sardonyx_attribute attribute,
                                                      sardonyx_bytes** text);

/* --- Declared values and their types -------------------------------------------------------- */

typedef struct sardonyx_declared_value_info {
  size_t size;
  const char* name;
  const char* doc_string;
  sardonyx_declared_type type; /* zeros where none is declared */
  size_t metadata_count;
} sardonyx_declared_value_info;
SARDONYX_API sardonyx_status* sardonyx_declared_value_describe(sardonyx_declared_value value,
                                                               sardonyx_declared_value_info* info);
SARDONYX_API sardonyx_status* sardonyx_declared_value_metadata(sardonyx_declared_value value,
                                                               size_t index, const char** key,
                                                               const char** text);

/* A kind of types that no value of a run has, beyond those of sardonyx_kind. */
enum { SARDONYX_OPAQUE = 6 };
typedef struct sardonyx_declared_type_info {
  size_t size;
  sardonyx_kind kind;
  sardonyx_element_type element_type; /* of a tensor or a sparse one; the key type of a map */
  int has_shape;                      /* whether a tensor says its rank, and then its dimensions */
  size_t rank;
  const char* denotation;        /* "IMAGE" (TypeDenotation.md) */
  sardonyx_declared_type nested; /* items of a sequence, what an optional may hold, values of a map;
                                    zeros for the others */
} sardonyx_declared_type_info;
SARDONYX_API sardonyx_status* sardonyx_declared_type_describe(sardonyx_declared_type type,
                                                              sardonyx_declared_type_info* info);
/* `number`: -1 where it is none; `name`: "" where it has none; `denotation`: "DATA_BATCH"
 * (DimensionDenotation.md). Any of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_declared_type_dimension(sardonyx_declared_type type,
                                                               size_t axis, int64_t* number,
                                                               const char** name,
                                                               const char** denotation);
/* "float[batch,3]", "seq(float[n])" */
SARDONYX_API sardonyx_status* sardonyx_declared_type_text(sardonyx_declared_type type,
                                                          sardonyx_bytes** text);

/* --- Stored tensors ------------------------------------------------------------------------- */

typedef struct sardonyx_stored_tensor_info {
  size_t size;
  const char* name;
  sardonyx_element_type element_type; /* may be a number that no known type has */
  size_t rank;
  const int64_t* dims;
  const char* doc_string;
  int is_external;       /* not 0: its data is in a file of its own */
  size_t external_count; /* entries for sardonyx_stored_tensor_external */
  size_t metadata_count;
} sardonyx_stored_tensor_info;
SARDONYX_API sardonyx_status* sardonyx_stored_tensor_describe(sardonyx_stored_tensor tensor,
                                                              sardonyx_stored_tensor_info* info);
SARDONYX_API sardonyx_status* sardonyx_stored_tensor_metadata(sardonyx_stored_tensor tensor,
                                                              size_t index, const char** key,
                                                              const char** value);
/* location, offset, length … of external data. */
SARDONYX_API sardonyx_status* sardonyx_stored_tensor_external(sardonyx_stored_tensor tensor,
                                                              size_t index, const char** key,
                                                              const char** value);
/* The elements, shared with the model's file where they lie there as they are used, as a value that
 * may not be written to and that lives on without the model. External data is mapped now if it was
 * not loaded with the model. SARDONYX_INVALID_MODEL where sizes, fields and type do not fit
 * together, SARDONYX_UNREADABLE for the file of external data. */
SARDONYX_API sardonyx_status* sardonyx_stored_tensor_value(sardonyx_stored_tensor tensor,
                                                           sardonyx_value** value);

/* The name and shape; any of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_stored_sparse_describe(sardonyx_stored_sparse tensor,
                                                              const char** name, size_t* rank,
                                                              const int64_t** dims);
/* Its values and their places; either may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_stored_sparse_parts(sardonyx_stored_sparse tensor,
                                                           sardonyx_stored_tensor* values,
                                                           sardonyx_stored_tensor* indices);
/* As sardonyx_stored_tensor_value, of the kind SARDONYX_SPARSE_TENSOR. */
SARDONYX_API sardonyx_status* sardonyx_stored_sparse_value(sardonyx_stored_sparse tensor,
                                                           sardonyx_value** value);

/* --- Functions ------------------------------------------------------------------------------ */

typedef struct sardonyx_function_info {
  size_t size;
  const char* name;
  const char* domain;
  const char* overload;
  const char* doc_string;
  size_t input_count;
  size_t output_count;
  size_t attribute_count; /* names of those without a default */
  size_t default_count;   /* attributes with one */
  size_t node_count;
  size_t opset_count;
  size_t value_info_count;
  size_t metadata_count;
} sardonyx_function_info;
SARDONYX_API sardonyx_status* sardonyx_function_describe(sardonyx_function function,
                                                         sardonyx_function_info* info);
SARDONYX_API sardonyx_status* sardonyx_function_input(sardonyx_function function, size_t index,
                                                      const char** name);
SARDONYX_API sardonyx_status* sardonyx_function_output(sardonyx_function function, size_t index,
                                                       const char** name);
/* The name of an attribute without a default. */
SARDONYX_API sardonyx_status* sardonyx_function_attribute(sardonyx_function function, size_t index,
                                                          const char** name);
/* An attribute with its default. */
SARDONYX_API sardonyx_status* sardonyx_function_default(sardonyx_function function, size_t index,
                                                        sardonyx_attribute* attribute);
SARDONYX_API sardonyx_status* sardonyx_function_node(sardonyx_function function, size_t index,
                                                     sardonyx_node* node);
SARDONYX_API sardonyx_status* sardonyx_function_opset(sardonyx_function function, size_t index,
                                                      const char** domain, int64_t* version);
/* What is declared of a value inside. */
SARDONYX_API sardonyx_status* sardonyx_function_value_info(sardonyx_function function, size_t index,
                                                           sardonyx_declared_value* value);
SARDONYX_API sardonyx_status* sardonyx_function_metadata(sardonyx_function function, size_t index,
                                                         const char** key, const char** value);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_SARDONYX_GRAPH_H */
