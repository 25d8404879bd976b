/* Operators of one's own: a signature, and functions that infer, prepare and run its nodes
 * (docs/custom_operators.md). A part of sardonyx.h, which includes it. All of it since version 2
 * but for what says otherwise. */
#include "sardonyx/sardonyx.h"

#ifndef SARDONYX_SARDONYX_OPERATORS_H
#define SARDONYX_SARDONYX_OPERATORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* What an operator of one's own consists of: a signature, and functions that infer, prepare and run
 * its nodes. They may be called from several threads at a time, and must give control back: no
 * longjmp and no exception leaves them. What they return is NULL or a status
 * (sardonyx_status_create), which is then the library's, and whose code the call gets that it ends;
 * so are the statuses of the functions below, which may just be handed on. Pointers to contexts,
 * and all that these give, last for the call. */
typedef struct sardonyx_operator_node sardonyx_operator_node;   /* a node, as every stage sees it */
typedef struct sardonyx_shape_context sardonyx_shape_context;   /* inference of one node */
typedef struct sardonyx_kernel_builder sardonyx_kernel_builder; /* preparation of one node */
typedef struct sardonyx_kernel_shapes sardonyx_kernel_shapes;   /* sizes that a run will have */
typedef struct sardonyx_kernel_context sardonyx_kernel_context; /* a run of one node */

typedef struct sardonyx_operator {
  size_t size;
  void* user; /* handed to each function */
  sardonyx_status* (*infer)(sardonyx_shape_context* context, void* user);
  /* Once for each node of a session. `*kernel` is NULL on entry and is handed to `run`. May be
   * NULL: there is nothing to prepare. */
  sardonyx_status* (*prepare)(sardonyx_kernel_builder* builder, void* user, void** kernel);
  sardonyx_status* (*run)(sardonyx_kernel_context* context, void* kernel, void* user);
  /* Bytes of scratch memory that a run with these sizes needs. May be NULL: none. */
  int64_t (*scratch_bytes)(const sardonyx_kernel_shapes* shapes, void* kernel, void* user);
  void (*release_kernel)(void* kernel, void* user); /* may be NULL */
  void (*release_user)(void* user); /* when nothing uses the operator any more; may be NULL */
} sardonyx_operator;

typedef struct sardonyx_operators sardonyx_operators;
SARDONYX_API sardonyx_status* sardonyx_operators_create(sardonyx_operators** operators);
/* Models that were loaded with them keep what they need. */
SARDONYX_API void sardonyx_operators_release(sardonyx_operators* operators);
/* `signature` is a signature file's text (docs/spec_format.md), one operator with its versions.
 * SARDONYX_BAD_INPUT for domains of the standard, names that Sardonyx has itself, and texts that
 * can't be read. On failure `release_user` is not called. */
SARDONYX_API sardonyx_status* sardonyx_operators_add(sardonyx_operators* operators,
                                                     const char* domain, const char* signature,
                                                     const sardonyx_operator* functions);

/* Adds what a library of operators has (docs/custom_operators.md), whose code runs: name only what
 * you trust. SARDONYX_UNREADABLE for a file that is no library or none of operators,
 * SARDONYX_UNSUPPORTED for one built for another Sardonyx, SARDONYX_BAD_INPUT for what
 * sardonyx_operators_add refuses. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_operators_load(sardonyx_operators* operators,
                                                      const char* path);

/* Inputs and outputs of the node, absent ones before the last included, and the `since` of the
 * signature that the model's import chooses. Any of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_operator_node_counts(const sardonyx_operator_node* node,
                                                            size_t* inputs, size_t* outputs,
                                                            int32_t* since);
/* `present`: 0 where the node leaves it out. `type`: SARDONYX_UNDEFINED where it is not known yet;
 * `rank`: -1 where it is not. Any of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_operator_node_input(const sardonyx_operator_node* node,
                                                           size_t index, int* present,
                                                           sardonyx_element_type* type,
                                                           int64_t* rank);
SARDONYX_API sardonyx_status* sardonyx_operator_node_output(const sardonyx_operator_node* node,
                                                            size_t index, int* present);

/* Where a tensor's elements lie, row-major. Not for strings, whose `data` is NULL: kernels reach
 * them by sardonyx_kernel_string. */
typedef struct sardonyx_tensor_view {
  size_t size;
  sardonyx_element_type type;
  size_t rank;
  const int64_t* dims;
  void* data;
  int64_t elements;
} sardonyx_tensor_view;
/* The elements of an input that never changes; `data` is NULL where it may. Not to be written to,
 * nor are those of inputs and attributes. */
SARDONYX_API sardonyx_status* sardonyx_operator_node_constant(const sardonyx_operator_node* node,
                                                              size_t index,
                                                              sardonyx_tensor_view* constant);
/* Element `element` of an input of strings that never changes. SARDONYX_BAD_INPUT where it may, or
 * where the input holds no strings. The text may hold zeros; `length` may be NULL. Since version 3.
 */
SARDONYX_API sardonyx_status* sardonyx_operator_node_constant_string(
    const sardonyx_operator_node* node, size_t index, size_t element, const char** text,
    size_t* length);
/* Attributes: the node's value, then the default of the signature; where there is neither, the
 * status says so. */
SARDONYX_API sardonyx_status* sardonyx_operator_node_int(const sardonyx_operator_node* node,
                                                         const char* name, int64_t* value);
SARDONYX_API sardonyx_status* sardonyx_operator_node_float(const sardonyx_operator_node* node,
                                                           const char* name, float* value);
SARDONYX_API sardonyx_status* sardonyx_operator_node_string(const sardonyx_operator_node* node,
                                                            const char* name, const char** text,
                                                            size_t* length);
SARDONYX_API sardonyx_status* sardonyx_operator_node_ints(const sardonyx_operator_node* node,
                                                          const char* name, const int64_t** values,
                                                          size_t* count);
SARDONYX_API sardonyx_status* sardonyx_operator_node_floats(const sardonyx_operator_node* node,
                                                            const char* name, const float** values,
                                                            size_t* count);
SARDONYX_API sardonyx_status* sardonyx_operator_node_tensor(const sardonyx_operator_node* node,
                                                            const char* name,
                                                            sardonyx_tensor_view* tensor);
/* A list of strings. Each text ends with a zero and may hold others; `lengths` (may be NULL) says
 * how long they are. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_operator_node_strings(const sardonyx_operator_node* node,
                                                             const char* name,
                                                             const char* const** texts,
                                                             const size_t** lengths, size_t* count);
/* Element `element` of a tensor of strings that is an attribute. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_operator_node_tensor_string(
    const sardonyx_operator_node* node, const char* name, size_t element, const char** text,
    size_t* length);
/* 1 where the node itself has the attribute. */
SARDONYX_API int sardonyx_operator_node_has(const sardonyx_operator_node* node, const char* name);

/* A dimension: a number where `expression` is NULL, otherwise one of the context's expressions. */
typedef struct sardonyx_dim {
  const void* expression;
  int64_t value;
} sardonyx_dim;

SARDONYX_API const sardonyx_operator_node* sardonyx_shape_node(const sardonyx_shape_context* of);
/* A dimension of an input whose rank is known. */
SARDONYX_API sardonyx_status* sardonyx_shape_input(sardonyx_shape_context* context, size_t input,
                                                   size_t axis, sardonyx_dim* dim);
/* `operation`: '+', '-', '*', '/' (rounds down), '^' (divides and rounds up), '<' (the smaller) or
 * '>' (the larger). */
SARDONYX_API sardonyx_status* sardonyx_shape_combine(sardonyx_shape_context* context,
                                                     char operation, sardonyx_dim a, sardonyx_dim b,
                                                     sardonyx_dim* dim);
/* What the two sizes broadcast to; a status where they can't. */
SARDONYX_API sardonyx_status* sardonyx_shape_broadcast(sardonyx_shape_context* context,
                                                       sardonyx_dim a, sardonyx_dim b,
                                                       sardonyx_dim* dim);
/* A size that the data decide; kernels of such outputs allocate them. `bound`: the most it can be;
 * NULL: nothing is known. */
SARDONYX_API sardonyx_status* sardonyx_shape_unknown(sardonyx_shape_context* context,
                                                     const sardonyx_dim* bound, sardonyx_dim* dim);
/* A status for sizes that surely differ; those that may are checked by each run. `rule`: "the inner
 * dimensions of A and B must agree". */
SARDONYX_API sardonyx_status* sardonyx_shape_require_equal(sardonyx_shape_context* context,
                                                           sardonyx_dim a, sardonyx_dim b,
                                                           const char* rule);
/* What is not set stays unknown. */
SARDONYX_API sardonyx_status* sardonyx_shape_set_output(sardonyx_shape_context* context,
                                                        size_t output, sardonyx_element_type type,
                                                        size_t rank, const sardonyx_dim* dims);
SARDONYX_API sardonyx_status* sardonyx_shape_set_any_rank(sardonyx_shape_context* context,
                                                          size_t output,
                                                          sardonyx_element_type type);
/* Type and shape of an input. */
SARDONYX_API sardonyx_status* sardonyx_shape_set_like(sardonyx_shape_context* context,
                                                      size_t output, size_t input);

SARDONYX_API const sardonyx_operator_node* sardonyx_builder_node(const sardonyx_kernel_builder* of);
/* `run` may be given the output in the memory of the input, where the two have one size and nobody
 * else needs that input. */
SARDONYX_API sardonyx_status* sardonyx_builder_may_share(sardonyx_kernel_builder* builder,
                                                         size_t output, size_t input);
/* `run` allocates every output; needed where `infer` left a size unknown. */
SARDONYX_API sardonyx_status* sardonyx_builder_allocates_outputs(sardonyx_kernel_builder* builder);
/* `run` never reads the input, since the kernel keeps what it needs of it. */
SARDONYX_API sardonyx_status* sardonyx_builder_does_not_read(sardonyx_kernel_builder* builder,
                                                             size_t input);

/* Sizes of an input, or with `output` not 0 of an output that the run is not to allocate. */
SARDONYX_API sardonyx_status* sardonyx_kernel_shape(const sardonyx_kernel_shapes* shapes,
                                                    int output, size_t index, size_t* rank,
                                                    const int64_t** dims);

/* `data` is NULL for inputs that the node leaves out. */
SARDONYX_API sardonyx_status* sardonyx_kernel_input(const sardonyx_kernel_context* context,
                                                    size_t index, sardonyx_tensor_view* input);
/* To be filled. */
SARDONYX_API sardonyx_status* sardonyx_kernel_output(const sardonyx_kernel_context* context,
                                                     size_t index, sardonyx_tensor_view* output);
/* The same for kernels that allocate, which do so once for every output that the node has. */
SARDONYX_API sardonyx_status* sardonyx_kernel_allocate(sardonyx_kernel_context* context,
                                                       size_t output, size_t rank,
                                                       const int64_t* dims,
                                                       sardonyx_tensor_view* made);
/* Element `element` of an input of strings; the text may hold zeros. `length` may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_kernel_string(const sardonyx_kernel_context* context,
                                                     size_t input, size_t element,
                                                     const char** text, size_t* length);
/* Sets an element of an output of strings, which is "" before. */
SARDONYX_API sardonyx_status* sardonyx_kernel_set_string(sardonyx_kernel_context* context,
                                                         size_t output, size_t element,
                                                         const char* text, size_t length);
/* As much memory as `scratch_bytes` asked for, aligned to 64 bytes. */
SARDONYX_API void* sardonyx_kernel_scratch(const sardonyx_kernel_context* context);
/* Calls `body` for pieces of [0, count) of `grain` each, on the threads of the session. The pieces
 * depend on nothing but count and grain. */
SARDONYX_API sardonyx_status* sardonyx_kernel_parallel_for(
    const sardonyx_kernel_context* context, int64_t count, int64_t grain,
    void (*body)(void* user, int64_t begin, int64_t end), void* user);
/* 1 once the run is cancelled or its deadline has passed: long kernels may return early then. */
SARDONYX_API int sardonyx_kernel_is_cancelled(const sardonyx_kernel_context* context);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_SARDONYX_OPERATORS_H */
