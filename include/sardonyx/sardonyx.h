/* Sardonyx for C: loading, checking, inferring and running ONNX models. C99.
 *
 *   sardonyx_session* session = NULL;
 *   sardonyx_status* status = sardonyx_session_load("model.onnx", NULL, NULL, &session);
 *   if (status != NULL) {
 *     fprintf(stderr, "%s\n", sardonyx_status_message(status));
 *     sardonyx_status_release(status);
 *   }
 *
 * Rules that hold for all of it:
 * - A function that can fail returns a status: NULL where it succeeded, otherwise an object with a
 *   code and a message, which the caller releases. On failure nothing is done, and results that the
 *   function would have written are left as they were, but for what a function says.
 * - Handles are opaque. What a function creates, the caller releases with the function of its type;
 *   releasing NULL does nothing. A handle may be released while others made from it are in use:
 *   they keep what they need.
 * - Texts are UTF-8 and end with a zero; those that a function gives belong to the handle it was
 *   asked of and last as long as that. Arguments are copied unless a function says otherwise.
 * - Structs of options and of descriptions begin with their size, which the caller sets: a newer
 *   library leaves out what an older caller does not know. SARDONYX_INIT(type) makes one with all
 *   defaults. NULL instead of options means the defaults.
 * - A handle that was released, or that is of another kind than the parameter, is
 * SARDONYX_BAD_INPUT as long as nothing else lies in its memory: that helps to find mistakes, and
 * is nothing to rely on. Functions without a status give 0 or NULL for it.
 * - Different handles may be used from different threads at the same time. The same handle may be
 *   read and run from many threads; releasing it and writing to it is for one.
 * - Functions are only added. No function changes its meaning while SARDONYX_API_VERSION stays.
 *
 * Where a function follows the standard, its comment names the paragraph.
 */
#ifndef SARDONYX_SARDONYX_H
#define SARDONYX_SARDONYX_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SARDONYX_API __attribute__((visibility("default")))
#else
#define SARDONYX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. A library serves headers of its own version and of older ones. */
#define SARDONYX_API_VERSION 3

/* The version of the library that is running, which may be newer than the header. */
SARDONYX_API uint32_t sardonyx_api_version(void);
/* "0.1.0" */
SARDONYX_API const char* sardonyx_version(void);

/* A struct with its size set and all else zero, which are the defaults:
 * SARDONYX_INIT(sardonyx_run_options) */
#ifdef __cplusplus
#define SARDONYX_INIT(type)   \
  [] {                        \
    type made{};              \
    made.size = sizeof(made); \
    return made;              \
  }()
#else
#define SARDONYX_INIT(type) \
  { .size = sizeof(type) }
#endif

/* --- Status ------------------------------------------------------------------------------- */

typedef struct sardonyx_status sardonyx_status;

/* Numbers rather than enumerations, so that their size does not depend on the compiler, and wrong
 * ones can be refused. Stable: those of the program's exit codes, and further ones. */
typedef int32_t sardonyx_code;
enum {
  SARDONYX_OK = 0,
  SARDONYX_UNREADABLE = 3,    /* a file is missing, not readable, or not what its name says */
  SARDONYX_INVALID_MODEL = 4, /* the model breaks a rule that running or reading needs */
  SARDONYX_UNSUPPORTED = 5,   /* the model is legal but asks for something Sardonyx does not do */
  SARDONYX_BAD_INPUT = 6,     /* the caller passed a wrong name, shape, type or value */
  SARDONYX_RUN_FAILED = 7,    /* a node could not be computed with the values it met */
  SARDONYX_CANCELLED = 8,     /* the run was cancelled, or its deadline passed */
  SARDONYX_OUT_OF_MEMORY = 9, /* memory or a memory limit was exhausted */
  SARDONYX_INTERNAL = 10      /* a defect of Sardonyx itself */
};

/* SARDONYX_OK for NULL. */
SARDONYX_API sardonyx_code sardonyx_status_code(const sardonyx_status* status);
/* "location: message" on one line; "" for NULL. */
SARDONYX_API const char* sardonyx_status_message(const sardonyx_status* status);
/* Where in the model or file: "graph 'main', node 3 Softmax 'probs'"; "" where that does not apply.
 */
SARDONYX_API const char* sardonyx_status_location(const sardonyx_status* status);
SARDONYX_API void sardonyx_status_release(sardonyx_status* status);
/* A status of the caller's own, for callbacks that report a failure. NULL for SARDONYX_OK. Never
 * fails: where memory is short it says that. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_status_create(sardonyx_code code, const char* message);

/* --- Values ------------------------------------------------------------------------------- */

/* Numbered as TensorProto.DataType in the standard (IR, "Tensor element types"). */
typedef int32_t sardonyx_element_type;
enum {
  SARDONYX_UNDEFINED = 0,
  SARDONYX_FLOAT32 = 1,
  SARDONYX_UINT8 = 2,
  SARDONYX_INT8 = 3,
  SARDONYX_UINT16 = 4,
  SARDONYX_INT16 = 5,
  SARDONYX_INT32 = 6,
  SARDONYX_INT64 = 7,
  SARDONYX_STRING = 8,
  SARDONYX_BOOL = 9,
  SARDONYX_FLOAT16 = 10,
  SARDONYX_FLOAT64 = 11,
  SARDONYX_UINT32 = 12,
  SARDONYX_UINT64 = 13,
  SARDONYX_COMPLEX64 = 14,
  SARDONYX_COMPLEX128 = 15,
  SARDONYX_BFLOAT16 = 16,
  SARDONYX_FLOAT8E4M3FN = 17,
  SARDONYX_FLOAT8E4M3FNUZ = 18,
  SARDONYX_FLOAT8E5M2 = 19,
  SARDONYX_FLOAT8E5M2FNUZ = 20,
  SARDONYX_UINT4 = 21,
  SARDONYX_INT4 = 22,
  SARDONYX_FLOAT4E2M1 = 23,
  SARDONYX_FLOAT8E8M0 = 24,
  SARDONYX_UINT2 = 25,
  SARDONYX_INT2 = 26,
  SARDONYX_FLOAT6E2M3 = 27,
  SARDONYX_FLOAT6E3M2 = 28
};

/* Bits of one element in memory; 0 for strings and for numbers that are no element type. Types
 * below 8 bits are packed, first element in the lowest bits. */
SARDONYX_API int sardonyx_element_bits(sardonyx_element_type type);
/* "float", "int64", "bfloat16" …, as the standard's textual syntax writes it; "undefined". */
SARDONYX_API const char* sardonyx_element_name(sardonyx_element_type type);

/* The kinds of values (IR.md, "Types"). */
typedef int32_t sardonyx_kind;
enum {
  SARDONYX_NONE = 0,
  SARDONYX_TENSOR = 1,
  SARDONYX_SPARSE_TENSOR = 2,
  SARDONYX_SEQUENCE = 3,
  SARDONYX_MAP = 4,
  SARDONYX_OPTIONAL = 5
};

/* One value of any kind. Its contents do not change, but through sardonyx_tensor_mutable_data and
 * by a run that it was given to as an output. */
typedef struct sardonyx_value sardonyx_value;

SARDONYX_API void sardonyx_value_release(sardonyx_value* value);
/* Another handle of the same contents, which are shared. */
SARDONYX_API sardonyx_status* sardonyx_value_share(const sardonyx_value* value,
                                                   sardonyx_value** shared);
/* SARDONYX_NONE for NULL. */
SARDONYX_API sardonyx_kind sardonyx_value_kind(const sardonyx_value* value);

/* A dense tensor, row-major, its elements zero (strings: empty), aligned to 64 bytes. `dims` has
 * `rank` sizes. SARDONYX_BAD_INPUT for a shape that is negative or overflows. */
SARDONYX_API sardonyx_status* sardonyx_tensor_create(sardonyx_element_type type, size_t rank,
                                                     const int64_t* dims, sardonyx_value** tensor);
/* A tensor of memory that somebody else owns, and that stays valid and unchanged until `release` is
 * called with `user`, from any thread, when nothing uses it any more; NULL: the caller keeps it for
 * as long as anything uses it. `bytes` is the size of the memory: SARDONYX_BAD_INPUT where type and
 * shape need more. Not for strings. On failure `release` is not called. */
SARDONYX_API sardonyx_status* sardonyx_tensor_wrap(sardonyx_element_type type, size_t rank,
                                                   const int64_t* dims, const void* data,
                                                   size_t bytes, void (*release)(void* user),
                                                   void* user, sardonyx_value** tensor);
/* The same of memory that runs may write to, when it is given to them as an output. */
SARDONYX_API sardonyx_status* sardonyx_tensor_wrap_mutable(sardonyx_element_type type, size_t rank,
                                                           const int64_t* dims, void* data,
                                                           size_t bytes,
                                                           void (*release)(void* user), void* user,
                                                           sardonyx_value** tensor);
/* A tensor of memory with `strides`, in elements, one for each dimension; negative ones and 0 too.
 * It is a view, as by sardonyx_tensor_wrap, where the elements lie dense, row-major; otherwise they
 * are copied, and `release` is called before this returns. `bytes` is the size of the memory from
 * `data` on, `bytes_before` that before it: SARDONYX_BAD_INPUT where shape and strides reach
 * further. On failure `release` is not called. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_tensor_wrap_strided(sardonyx_element_type type, size_t rank,
                                                           const int64_t* dims,
                                                           const int64_t* strides, const void* data,
                                                           size_t bytes, size_t bytes_before,
                                                           void (*release)(void* user), void* user,
                                                           sardonyx_value** tensor);
/* A tensor of strings. `texts` has as many as the shape has elements, `lengths` their bytes; NULL:
 * each ends with a zero. */
SARDONYX_API sardonyx_status* sardonyx_tensor_create_strings(size_t rank, const int64_t* dims,
                                                             const char* const* texts,
                                                             const size_t* lengths,
                                                             sardonyx_value** tensor);
/* Type and shape of a tensor; any of the results may be NULL. `dims` belong to the value. */
SARDONYX_API sardonyx_status* sardonyx_tensor_type(const sardonyx_value* tensor,
                                                   sardonyx_element_type* type, size_t* rank,
                                                   const int64_t** dims, int64_t* elements);
/* The elements, which belong to the value. Not of strings. `bytes` may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_tensor_data(const sardonyx_value* tensor, const void** data,
                                                   size_t* bytes);
/* The same for writing: of tensors made by sardonyx_tensor_create or sardonyx_tensor_wrap_mutable
 * that nothing else shares. */
SARDONYX_API sardonyx_status* sardonyx_tensor_mutable_data(sardonyx_value* tensor, void** data,
                                                           size_t* bytes);
/* Element `index` of a tensor of strings. `length` may be NULL; the text may hold zeros. */
SARDONYX_API sardonyx_status* sardonyx_tensor_string(const sardonyx_value* tensor, size_t index,
                                                     const char** text, size_t* length);

/* The elements of any type of numbers, those below 8 bits too, as floats, in row-major order;
 * `count` is how many `to` has room for, and must be the tensor's. SARDONYX_BAD_INPUT for strings
 * and complex numbers. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_tensor_read_floats(const sardonyx_value* tensor, float* to,
                                                          size_t count);
/* The same of integers and booleans. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_tensor_read_integers(const sardonyx_value* tensor,
                                                            int64_t* to, size_t count);
/* A tensor of any type of numbers, from `count` floats: rounded to the nearest, and as the operator
 * Cast does otherwise. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_tensor_from_floats(sardonyx_element_type type, size_t rank,
                                                          const int64_t* dims, const float* from,
                                                          size_t count, sardonyx_value** tensor);

/* DLPack. `managed` is a DLManagedTensor, or with `versioned` not 0 a DLManagedTensorVersioned:
 * what a Python capsule "dltensor" or "dltensor_versioned" points to. The tensor for another
 * library, which calls the deleter of `*managed` when it is done with it. `writable` not 0: the
 * caller vouches that nothing else needs the elements unchanged; the form without a version can't
 * say so, and must not be written to otherwise. SARDONYX_UNSUPPORTED for strings and elements of 6
 * bits. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_tensor_to_dlpack(const sardonyx_value* tensor, int versioned,
                                                        int writable, void** managed);
/* A tensor of another library's memory, which is kept until nothing uses it any more; then its
 * deleter is called, from any thread. Memory with strides is copied, and let go at once. On failure
 * it still is the caller's: SARDONYX_UNSUPPORTED for memory of other devices, several lanes, types
 * that the standard does not have, and versions beyond 1. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_tensor_from_dlpack(void* managed, int versioned,
                                                          sardonyx_value** tensor);

/* A sparse tensor in coordinate form (IR, "SparseTensorProto"): `values` [n], `indices` int64 [n]
 * or [n, rank]. */
SARDONYX_API sardonyx_status* sardonyx_sparse_create(const sardonyx_value* values,
                                                     const sardonyx_value* indices, size_t rank,
                                                     const int64_t* dims, sardonyx_value** sparse);
/* Handles of its parts; any of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_sparse_parts(const sardonyx_value* sparse,
                                                    sardonyx_value** values,
                                                    sardonyx_value** indices, size_t* rank,
                                                    const int64_t** dims);
SARDONYX_API sardonyx_status* sardonyx_sequence_create(const sardonyx_value* const* items,
                                                       size_t count, sardonyx_value** sequence);
SARDONYX_API sardonyx_status* sardonyx_sequence_size(const sardonyx_value* sequence, size_t* count);
SARDONYX_API sardonyx_status* sardonyx_sequence_item(const sardonyx_value* sequence, size_t index,
                                                     sardonyx_value** item);
/* `keys`: a tensor of one dimension, of integers or strings; `values` has one for each. */
SARDONYX_API sardonyx_status* sardonyx_map_create(const sardonyx_value* keys,
                                                  const sardonyx_value* const* values, size_t count,
                                                  sardonyx_value** map);
SARDONYX_API sardonyx_status* sardonyx_map_keys(const sardonyx_value* map, sardonyx_value** keys);
/* The value of the key at `index`. */
SARDONYX_API sardonyx_status* sardonyx_map_value(const sardonyx_value* map, size_t index,
                                                 sardonyx_value** value);
/* `held`: NULL for an optional that holds nothing. */
SARDONYX_API sardonyx_status* sardonyx_optional_create(const sardonyx_value* held,
                                                       sardonyx_value** optional);
/* `*held` is NULL where it holds nothing. */
SARDONYX_API sardonyx_status* sardonyx_optional_held(const sardonyx_value* optional,
                                                     sardonyx_value** held);

/* --- Models ------------------------------------------------------------------------------- */

typedef struct sardonyx_model sardonyx_model;

/* What does not keep a model from running. Texts last for the call. */
typedef struct sardonyx_warning {
  size_t size;
  const char* rule;    /* of the checker: "G-03"; "" where there is none */
  const char* place;   /* "graph 'main', node 3 Softmax 'probs'" */
  const char* message; /* what was found */
  const char* advice;  /* what was made of it, or what to do */
} sardonyx_warning;

typedef struct sardonyx_load_options {
  size_t size;
  /* Not 0: refuse a model that breaks a rule of the standard in a way that leaves no doubt of what
   * it means, instead of mending it in memory. */
  int strict;
  /* Not 0: read the file instead of mapping it, for files that somebody may truncate meanwhile. */
  int read_into_memory;
  /* A folder that links of external data may lead into; NULL: links are refused. */
  const char* trusted_folder;
  /* Documents of operator sets that the model imports. */
  const char* const* operator_sets;
  size_t operator_set_count;
  /* Libraries of operators. Their code runs: name only what you trust. */
  const char* const* libraries;
  size_t library_count;
  /* Told of each warning, from within calls that load, prepare and run, on their threads. */
  void (*warn)(const sardonyx_warning* warning, void* user);
  void* user;
  int64_t
      memory_limit; /* most bytes that reading may take, and the model may hold; 0: any number */
  const struct sardonyx_operators* operators; /* that the model may call; since version 2 */
  /* Since version 3. Not 0: tensors keep saying where their data is, which need not be there; the
   * first session brings it in. For tools. */
  int leave_external_data;
  /* 1 more than a sardonyx_form: how the bytes are to be read; 0: a file by the end of its name,
   * memory and streams as binary. */
  int form;
} sardonyx_load_options;

/* Maps and reads a file: binary, JSON, text format or textual syntax, by its ending. */
SARDONYX_API sardonyx_status* sardonyx_model_load(const char* path,
                                                  const sardonyx_load_options* options,
                                                  sardonyx_model** model);
/* Reads the binary form from memory, which is copied. `folder` is where external data lies; NULL:
 * the model may have none. */
SARDONYX_API sardonyx_status* sardonyx_model_load_memory(const void* data, size_t bytes,
                                                         const char* folder,
                                                         const sardonyx_load_options* options,
                                                         sardonyx_model** model);
/* Parses ONNX's textual syntax. */
SARDONYX_API sardonyx_status* sardonyx_model_parse(const char* text, size_t length,
                                                   const sardonyx_load_options* options,
                                                   sardonyx_model** model);
SARDONYX_API void sardonyx_model_release(sardonyx_model* model);

/* --- Checking ----------------------------------------------------------------------------- */

typedef struct sardonyx_report sardonyx_report;

/* How bad a finding is. */
typedef int32_t sardonyx_severity;
enum { SARDONYX_INFO = 0, SARDONYX_WARNING = 1, SARDONYX_ERROR = 2 };

typedef struct sardonyx_check_options {
  size_t size;
  int strict; /* not 0: what real models often break is an error, too; implies `full` and `data` */
  int full;   /* not 0: types and shapes are inferred, and contradictions reported */
  int data;   /* not 0: external data is looked at */
  const char* trusted_folder;
  /* Since version 3. Not 0: only what makes running impossible is reported. Not with `strict`. */
  int runnable;
  /* Not 0: an operator of a domain that neither the standard nor the model defines is an error. */
  int unknown_domains_are_errors;
  size_t max_findings; /* of each severity, then a last one says how many more; 0: 1000 */
  /* Documents of operator sets that the model imports, and libraries of operators, whose code runs.
   */
  const char* const* operator_sets;
  size_t operator_set_count;
  const char* const* libraries;
  size_t library_count;
} sardonyx_check_options;

typedef struct sardonyx_finding {
  size_t size;
  sardonyx_severity severity;
  const char* rule;    /* "G-21" */
  const char* place;   /* "graph 'main', node 3 Softmax 'p', attribute 'axis'" */
  const char* message; /* the rule and what was found */
  const char* advice;  /* what to do about it; may be "" */
  /* Since version 3. The parts of `place`, of a check; "" where they do not apply. */
  const char* graph;       /* "graph 'main'", "function 'custom.Foo', node 3 If, then_branch" */
  int64_t node_index;      /* in that graph; -1: of no node */
  const char* node_name;   /* of the node, where it has one */
  const char* node_output; /* the first, of a node without a name */
  const char* op;          /* with its domain where that is not ai.onnx */
  const char* detail;      /* "input 'x'", "attribute 'axis'", "initializer 'w'" */
} sardonyx_finding;

/* Holds a file against the rules of the standard. What is wrong with the model is a finding; what
 * keeps it from being read is a status. */
SARDONYX_API sardonyx_status* sardonyx_check_file(const char* path,
                                                  const sardonyx_check_options* options,
                                                  sardonyx_report** report);
/* The same of a model that was loaded; `data` looks at external data that was not. */
SARDONYX_API sardonyx_status* sardonyx_check(const sardonyx_model* model,
                                             const sardonyx_check_options* options,
                                             sardonyx_report** report);
SARDONYX_API size_t sardonyx_report_count(const sardonyx_report* report);
SARDONYX_API size_t sardonyx_report_errors(const sardonyx_report* report);
/* Fills `finding`, whose size is set, with finding `index`. */
SARDONYX_API sardonyx_status* sardonyx_report_finding(const sardonyx_report* report, size_t index,
                                                      sardonyx_finding* finding);
SARDONYX_API void sardonyx_report_release(sardonyx_report* report);

/* --- Files -------------------------------------------------------------------------------- */

typedef struct sardonyx_convert_options {
  size_t size;
  int64_t opset;             /* carry every node up to this version of ai.onnx; 0: leave nodes */
  int assume_inference;      /* as for sessions; with `opset` */
  const char* external_data; /* the file beside the model that takes large tensors; NULL: none */
  uint64_t threshold;        /* bytes from which on tensors go there; 0: 1024 */
  int embed;                 /* not 0: external data becomes part of the model */
  int checksum;              /* not 0: state the SHA-1 digest of the data file with each tensor */
  const char* trusted_folder;
  int64_t memory_limit; /* most bytes that converting may take; 0: any number; since version 3 */
} sardonyx_convert_options;

/* Writes the model of a file in the form of the other file's ending (.onnx, .json, .textproto,
 * .onnxtxt), in a newer operator set, or with its weights elsewhere. Files appear whole or not at
 * all; the memory used does not grow with the weights. */
SARDONYX_API sardonyx_status* sardonyx_convert_file(const char* from, const char* to,
                                                    const sardonyx_convert_options* options);

/* --- Models as files ---------------------------------------------------------------------- */

/* Bytes that the library made: text, or a file's content. */
typedef struct sardonyx_bytes sardonyx_bytes;
/* The bytes, and how many they are in `size`, which may be NULL. A 0 follows them, so that texts
 * may be read as strings. They live as long as the handle. "" for NULL. */
SARDONYX_API const char* sardonyx_bytes_data(const sardonyx_bytes* bytes, size_t* size);
SARDONYX_API void sardonyx_bytes_release(sardonyx_bytes* bytes);

/* The forms of a model file: the standard's binary form and textual syntax, and protobuf's two
 * readable forms. */
typedef int32_t sardonyx_form;
enum {
  SARDONYX_FORM_BINARY = 0,
  SARDONYX_FORM_TEXT = 1,
  SARDONYX_FORM_JSON = 2,
  SARDONYX_FORM_TEXTPROTO = 3
};

/* Gives up to `size` bytes into `buffer` and returns how many; 0 at the end; more than `size` to
 * say that reading failed, which ends the call with SARDONYX_BAD_INPUT. */
typedef size_t (*sardonyx_read_function)(void* buffer, size_t size, void* user);
/* Reads a model from a stream, to its end. `folder` as for sardonyx_model_load_memory. */
SARDONYX_API sardonyx_status* sardonyx_model_read(sardonyx_read_function read, void* user,
                                                  const char* folder,
                                                  const sardonyx_load_options* options,
                                                  sardonyx_model** model);

typedef struct sardonyx_save_options {
  size_t size;
  const char* external_data; /* the file beside the model that takes large tensors; NULL: none */
  uint64_t threshold;        /* bytes from which on tensors go there; 0: 1024 */
  uint64_t alignment;        /* each begins at a multiple of this; 0: 4096 */
  int checksum;              /* not 0: state the SHA-1 digest of the data file with each tensor */
  /* Since version 3. Not 0: all external data goes into the model file. */
  int embed;
  int verify_checksums;       /* not 0: of the external data that is read */
  const char* trusted_folder; /* as in sardonyx_load_options, for external data that is read here */
  int form;                   /* 1 more than a sardonyx_form; 0: by the end of the name */
} sardonyx_save_options;

/* Writes the model in the form of the path's ending. Files appear whole or not at all. */
SARDONYX_API sardonyx_status* sardonyx_model_save(const sardonyx_model* model, const char* path,
                                                  const sardonyx_save_options* options);
/* The same to memory. */
SARDONYX_API sardonyx_status* sardonyx_model_write(const sardonyx_model* model, sardonyx_form form,
                                                   sardonyx_bytes** bytes);

/* What a model says of itself (IR.md, "Models"). Texts live as long as the model's handle. */
typedef struct sardonyx_model_info {
  size_t size;
  int64_t ir_version; /* 0: not said */
  const char* producer_name;
  const char* producer_version;
  const char* domain;
  int64_t model_version;
  const char* doc_string;
  const char* graph_name;   /* "" where there is no graph */
  size_t metadata_count;    /* for sardonyx_model_metadata */
  size_t opset_count;       /* for sardonyx_model_opset */
  size_t function_count;    /* functions of its own */
  size_t node_count;        /* of the main graph */
  size_t initializer_count; /* of the main graph, for sardonyx_model_initializer */
  /* Since version 3. */
  const char* path;      /* the file it was read from; "" for others */
  const char* folder;    /* where external data lies */
  int64_t opset;         /* the version of ai.onnx that it imports; 0: none */
  int has_training_info; /* not 0: it can be trained */
  int has_external_data; /* not 0: tensors say that their data is in other files */
} sardonyx_model_info;

SARDONYX_API sardonyx_status* sardonyx_model_describe(const sardonyx_model* model,
                                                      sardonyx_model_info* info);
/* The key and value of metadata `index`. They live as long as the model's handle. */
SARDONYX_API sardonyx_status* sardonyx_model_metadata(const sardonyx_model* model, size_t index,
                                                      const char** key, const char** value);
/* The domain ("" for ai.onnx) and version of import `index`. */
SARDONYX_API sardonyx_status* sardonyx_model_opset(const sardonyx_model* model, size_t index,
                                                   const char** domain, int64_t* version);
/* The name of initializer `index`, which lives as long as the model's handle, and its elements,
 * shared with the model, as a value that may not be written to. `name` and `value` may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_model_initializer(const sardonyx_model* model, size_t index,
                                                         const char** name, sardonyx_value** value);

/* --- Models made of others: each call makes a new one, which shares the weights ------------- */

/* Every node upgraded to version `opset` of ai.onnx; 0: the newest. `assume_inference` as for
 * sessions. */
SARDONYX_API sardonyx_status* sardonyx_model_convert(const sardonyx_model* model, int64_t opset,
                                                     int assume_inference,
                                                     sardonyx_model** converted);
/* The same with options, of which `opset`, `assume_inference` and `memory_limit` count. Since
 * version 3. */
SARDONYX_API sardonyx_status* sardonyx_model_convert_version(
    const sardonyx_model* model, const sardonyx_convert_options* options,
    sardonyx_model** converted);
/* Calls of the model's own functions replaced by their bodies. */
SARDONYX_API sardonyx_status* sardonyx_model_inline_functions(const sardonyx_model* model,
                                                              sardonyx_model** inlined);
/* The nodes that the outputs need when the inputs are given. */
SARDONYX_API sardonyx_status* sardonyx_model_extract(const sardonyx_model* model,
                                                     const char* const* inputs, size_t input_count,
                                                     const char* const* outputs,
                                                     size_t output_count, sardonyx_model** part);

typedef struct sardonyx_merge_options {
  size_t size;
  /* Output `from[i]` of the first model feeds input `to[i]` of the second. */
  const char* const* from;
  const char* const* to;
  size_t connection_count;
  const char* first_prefix; /* before the names of each model's values and nodes; NULL: none */
  const char* second_prefix;
  const char* const* outputs; /* of the result, by their names in it; NULL: all that are left */
  size_t output_count;
} sardonyx_merge_options;

/* Two models as one: outputs of the first feed inputs of the second. */
SARDONYX_API sardonyx_status* sardonyx_model_merge(const sardonyx_model* first,
                                                   const sardonyx_model* second,
                                                   const sardonyx_merge_options* options,
                                                   sardonyx_model** merged);

/* What is renamed. */
typedef int32_t sardonyx_named;
enum {
  SARDONYX_NAMED_VALUE = 0, /* wherever it occurs */
  SARDONYX_NAMED_NODE = 1,
  SARDONYX_NAMED_DIMENSION = 2, /* "batch", or the place of one: "image.2" */
  SARDONYX_NAMED_FUNCTION = 3
};
/* Gives what is called `from[i]` the name `to[i]`, all at a time, so that names may be swapped. */
SARDONYX_API sardonyx_status* sardonyx_model_rename(const sardonyx_model* model,
                                                    sardonyx_named what, const char* const* from,
                                                    const char* const* to, size_t count,
                                                    sardonyx_model** renamed);
typedef struct sardonyx_differences sardonyx_differences;
typedef struct sardonyx_diff_options {
  size_t size;
  double relative, absolute; /* floats are equal where |a - b| <= relative * |b| + absolute */
  int no_weights;            /* not 0: compare types and shapes of weights only */
  int no_annotations;        /* not 0: neither documentation nor metadata nor names of nodes */
  size_t most;               /* differences to list, more are counted; 0: all. Since version 3 */
} sardonyx_diff_options;

typedef struct sardonyx_difference {
  size_t size;
  int kind;           /* 0: only in the first, 1: only in the second, 2: changed */
  const char* place;  /* "graph, node 'y' (Conv), attribute 'pads'" */
  const char* first;  /* what the first model says there; "" where it has nothing */
  const char* second; /* the same of the second */
} sardonyx_difference;

SARDONYX_API sardonyx_status* sardonyx_model_diff(const sardonyx_model* first,
                                                  const sardonyx_model* second,
                                                  const sardonyx_diff_options* options,
                                                  sardonyx_differences** differences);
/* 0: the models are the same. */
SARDONYX_API size_t sardonyx_differences_count(const sardonyx_differences* differences);
/* How many there are beyond those that were to be listed. Since version 3. */
SARDONYX_API size_t sardonyx_differences_left_out(const sardonyx_differences* differences);
/* Fills `difference`, whose size is set. Texts live as long as `differences`. */
SARDONYX_API sardonyx_status* sardonyx_differences_get(const sardonyx_differences* differences,
                                                       size_t index,
                                                       sardonyx_difference* difference);
SARDONYX_API void sardonyx_differences_release(sardonyx_differences* differences);

/* --- Editing ------------------------------------------------------------------------------ */

/* A copy of a model that can be changed; one thread at a time. A call that fails changes nothing.
 */
typedef struct sardonyx_editor sardonyx_editor;
SARDONYX_API sardonyx_status* sardonyx_editor_create(const sardonyx_model* model,
                                                     sardonyx_editor** editor);
SARDONYX_API void sardonyx_editor_release(sardonyx_editor* editor);
/* The model as it is now. The editor may go on. */
SARDONYX_API sardonyx_status* sardonyx_editor_finish(const sardonyx_editor* editor,
                                                     sardonyx_model** model);

typedef int32_t sardonyx_field;
enum {
  SARDONYX_FIELD_PRODUCER_NAME = 0,
  SARDONYX_FIELD_PRODUCER_VERSION = 1,
  SARDONYX_FIELD_DOMAIN = 2,
  SARDONYX_FIELD_DOC_STRING = 3,
  SARDONYX_FIELD_GRAPH_NAME = 4,
  SARDONYX_FIELD_IR_VERSION = 5,   /* a number */
  SARDONYX_FIELD_MODEL_VERSION = 6 /* a number */
};
SARDONYX_API sardonyx_status* sardonyx_editor_set_text(sardonyx_editor* editor,
                                                       sardonyx_field field, const char* text);
SARDONYX_API sardonyx_status* sardonyx_editor_set_number(sardonyx_editor* editor,
                                                         sardonyx_field field, int64_t number);
/* `value` NULL: removes the metadata of this key. */
SARDONYX_API sardonyx_status* sardonyx_editor_set_metadata(sardonyx_editor* editor, const char* key,
                                                           const char* value);
SARDONYX_API sardonyx_status* sardonyx_editor_set_opset(sardonyx_editor* editor, const char* domain,
                                                        int64_t version);
/* Types are texts: "float[batch,3,224,224]", "seq(int64[n])". */
SARDONYX_API sardonyx_status* sardonyx_editor_set_type(sardonyx_editor* editor, const char* value,
                                                       const char* type);
/* A dimension of an input's or output's shape: a number, or where `size` is negative a name; NULL
 * leaves it open. */
SARDONYX_API sardonyx_status* sardonyx_editor_set_dimension(sardonyx_editor* editor,
                                                            const char* value, int64_t axis,
                                                            int64_t size, const char* name);
/* What an input's or output's type stands for, "IMAGE" (TypeDenotation.md), or where `axis` is not
 * negative that dimension of its shape, "DATA_BATCH" (DimensionDenotation.md); "" for nothing.
 * Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_editor_set_denotation(sardonyx_editor* editor,
                                                             const char* value, int64_t axis,
                                                             const char* denotation);
SARDONYX_API sardonyx_status* sardonyx_editor_add_input(sardonyx_editor* editor, const char* name,
                                                        const char* type);
SARDONYX_API sardonyx_status* sardonyx_editor_remove_input(sardonyx_editor* editor,
                                                           const char* name);
/* `type` NULL: what the model declares or inference finds. */
SARDONYX_API sardonyx_status* sardonyx_editor_add_output(sardonyx_editor* editor, const char* name,
                                                         const char* type);
SARDONYX_API sardonyx_status* sardonyx_editor_remove_output(sardonyx_editor* editor,
                                                            const char* name);
/* Replaces the initializer of this name, or adds one. The elements are copied. `value` NULL:
 * removes it. */
SARDONYX_API sardonyx_status* sardonyx_editor_set_initializer(sardonyx_editor* editor,
                                                              const char* name,
                                                              const sardonyx_value* value);

/* --- Types of values ---------------------------------------------------------------------- */

/* An input or output of a session, or a value of an inference. Texts and sizes belong to the handle
 * that was asked. */
typedef struct sardonyx_value_info {
  size_t size;
  const char* name;
  const char* graph; /* of inferred values: "" for the main graph, "If 'c' then_branch" … */
  const char* type;  /* in full: "float[batch,3,224,224]", "seq(float[n])" */
  sardonyx_kind kind;
  sardonyx_element_type element_type; /* of tensors */
  int has_rank;                       /* of tensors: 0 where even the rank is open */
  size_t rank;
  const int64_t* dims;          /* -1 where a size is no number */
  const char* const* dim_names; /* of such a size: "batch", "2*h + 1"; "" for the others */
  int optional;                 /* an input with a default */
} sardonyx_value_info;

typedef struct sardonyx_inference sardonyx_inference;

typedef struct sardonyx_infer_options {
  size_t size;
  int strict; /* not 0: declarations that contradict what is inferred are errors, and so is what the
                 standard forbids though a run does it */
  /* Sizes that are to be numbers, by the model's names for them. */
  const char* const* size_names;
  const int64_t* sizes;
  size_t size_count;
  int64_t memory_limit; /* most bytes that inferring may take; 0: any number */
  /* Since version 3. For models that are read from a file here, as in sardonyx_load_options. */
  const struct sardonyx_operators* operators;
  const char* const* libraries;
  size_t library_count;
  const char* const* operator_sets;
  size_t operator_set_count;
} sardonyx_infer_options;

/* Infers types and shapes of all values of a model. */
SARDONYX_API sardonyx_status* sardonyx_infer(const sardonyx_model* model,
                                             const sardonyx_infer_options* options,
                                             sardonyx_inference** inference);
/* The same of a file, and writes the model with all it learned to `output`, which may be the same
 * file; weights are copied without being read. */
SARDONYX_API sardonyx_status* sardonyx_infer_file(const char* path, const char* output,
                                                  const sardonyx_infer_options* options,
                                                  sardonyx_inference** inference);
/* The model with what inference finds out as value_info, as a new one. */
SARDONYX_API sardonyx_status* sardonyx_model_infer(const sardonyx_model* model,
                                                   const sardonyx_infer_options* options,
                                                   sardonyx_model** typed);
SARDONYX_API size_t sardonyx_inference_count(const sardonyx_inference* inference);
SARDONYX_API sardonyx_status* sardonyx_inference_value(const sardonyx_inference* inference,
                                                       size_t index, sardonyx_value_info* info);
/* Nodes that can't run, and declarations that are wrong. */
SARDONYX_API size_t sardonyx_inference_finding_count(const sardonyx_inference* inference);
SARDONYX_API sardonyx_status* sardonyx_inference_finding(const sardonyx_inference* inference,
                                                         size_t index, sardonyx_finding* finding);
SARDONYX_API void sardonyx_inference_release(sardonyx_inference* inference);

/* --- Sessions ----------------------------------------------------------------------------- */

/* Worker threads that several sessions share. */
typedef struct sardonyx_threads sardonyx_threads;
/* `count` includes the thread that runs; 0: as many as the process may use. There may be fewer
 * where the system would not start more. */
SARDONYX_API sardonyx_status* sardonyx_threads_create(int count, sardonyx_threads** threads);
SARDONYX_API int sardonyx_threads_count(const sardonyx_threads* threads);
SARDONYX_API void sardonyx_threads_release(sardonyx_threads* threads);

typedef struct sardonyx_session sardonyx_session;

typedef struct sardonyx_session_options {
  size_t size;
  int threads; /* counts the thread that runs; 0: as many as the process may use */
  const sardonyx_threads* shared_threads; /* instead of threads of its own; NULL: its own */
  int reference;                          /* not 0: node after node, without plan and fusion */
  int no_fusion;                          /* not 0: operators are not combined */
  int exact;                              /* not 0: no algorithm that trades accuracy for speed */
  int assume_inference; /* not 0: old BatchNormalization and Dropout without is_test: inference */
  int prepack;          /* not 0: pack all weights now rather than in the first run */
  int all_outputs;      /* not 0: all values that the graph makes become outputs */
  uint64_t seed;        /* of random operators without a seed of their own */
  int64_t
      memory_limit; /* most bytes that preparing may take, and it and its model may hold; 0: any */
  /* Since version 2. Sizes that the inputs leave open and that are to be numbers, by the model's
   * names for them ("batch") or their places ("image.2"): the session is what it would be if the
   * model declared these. */
  const char* const* size_names;
  const int64_t* sizes;
  size_t size_count;
  /* Initializers that have these values instead of the model's; type and shape must be the same. A
   * tensor of memory that has nothing to be released is copied. */
  const char* const* initializer_names;
  const sardonyx_value* const* initializers;
  size_t initializer_count;
  /* Values of the graph that become outputs, behind the model's own. */
  const char* const* extra_outputs;
  size_t extra_output_count;
  /* Processors that threads of its own may run on, by the system's numbers; none: all. */
  const int* processors;
  size_t processor_count;
  /* A file of packed weights that sardonyx_model_pack has made of the model; NULL: none. One that
   * is broken, or for another model, processor or version of the library, is an error. */
  const char* packed;
  /* A folder for such files: the session takes its weights from the one of its model there, and
   * makes it where it is missing, stale or broken; what can't be written isn't. NULL: none. */
  const char* cache_folder;
} sardonyx_session_options;

/* Prepares a model for running. */
SARDONYX_API sardonyx_status* sardonyx_session_create(const sardonyx_model* model,
                                                      const sardonyx_session_options* options,
                                                      sardonyx_session** session);
/* Loads and prepares in one step. */
SARDONYX_API sardonyx_status* sardonyx_session_load(const char* path,
                                                    const sardonyx_load_options* load_options,
                                                    const sardonyx_session_options* options,
                                                    sardonyx_session** session);
/* Packs the weights that a session with these options (NULL: the defaults) reads, and writes them
 * to a file that appears whole or not at all. `forms` and `bytes`, which may be NULL, get how many
 * packed weights and bytes it has. */
SARDONYX_API sardonyx_status* sardonyx_model_pack(const sardonyx_model* model, const char* path,
                                                  const sardonyx_session_options* options,
                                                  size_t* forms, uint64_t* bytes);
/* Packs anew and compares all bytes with the file's. `different` gets how many of `forms` (may be
 * NULL) packed weights are missing or differ; `text`, which may be NULL, a line for each of them.
 */
SARDONYX_API sardonyx_status* sardonyx_model_compare_packed(const sardonyx_model* model,
                                                            const char* path,
                                                            const sardonyx_session_options* options,
                                                            size_t* forms, size_t* different,
                                                            sardonyx_bytes** text);
/* Waits for all runs that sardonyx_session_run_async has begun. */
SARDONYX_API void sardonyx_session_release(sardonyx_session* session);
SARDONYX_API size_t sardonyx_session_input_count(const sardonyx_session* session);
SARDONYX_API size_t sardonyx_session_output_count(const sardonyx_session* session);
/* Fills `info`, whose size is set. Inputs that have a default stand last. */
SARDONYX_API sardonyx_status* sardonyx_session_input(const sardonyx_session* session, size_t index,
                                                     sardonyx_value_info* info);
SARDONYX_API sardonyx_status* sardonyx_session_output(const sardonyx_session* session, size_t index,
                                                      sardonyx_value_info* info);

/* Stops runs that were given it, from any thread. */
typedef struct sardonyx_cancel sardonyx_cancel;
SARDONYX_API sardonyx_status* sardonyx_cancel_create(sardonyx_cancel** cancel);
/* `wanted` not 0: runs that have it end with SARDONYX_CANCELLED; 0: later runs go on again. */
SARDONYX_API void sardonyx_cancel_set(sardonyx_cancel* cancel, int wanted);
/* No run may be using it. */
SARDONYX_API void sardonyx_cancel_release(sardonyx_cancel* cancel);

/* What the steps of runs cost: filled by the runs that it is given to, of one session; several of
 * them may go on at the same time. Since version 2. */
typedef struct sardonyx_profile sardonyx_profile;
/* `max_events`: calls of steps that are kept, of all runs together; 0: a million. Sums count those
 * beyond it too. */
SARDONYX_API sardonyx_status* sardonyx_profile_create(size_t max_events,
                                                      sardonyx_profile** profile);
SARDONYX_API void sardonyx_profile_release(sardonyx_profile* profile);
SARDONYX_API size_t sardonyx_profile_run_count(const sardonyx_profile* profile);
/* All of it as JSON; sardonyx/profile.h names the fields. The text belongs to the profile and lasts
 * until it is asked for again. No run may have the profile meanwhile. */
SARDONYX_API sardonyx_status* sardonyx_profile_json(sardonyx_profile* profile, const char** text);
/* The same as trace events, for chrome://tracing and Perfetto. */
SARDONYX_API sardonyx_status* sardonyx_profile_trace(sardonyx_profile* profile, const char** text);

typedef struct sardonyx_run_options {
  size_t size;
  const sardonyx_cancel* cancel;
  int64_t deadline_ns;  /* nanoseconds from the call on, then SARDONYX_CANCELLED; 0: none */
  int64_t memory_limit; /* most bytes that the run may have in use at a time; 0: any number */
  struct sardonyx_profile* profile; /* that this run's times are added to; since version 2 */
} sardonyx_run_options;

/* Runs with inputs by name. `output_names`: NULL for all outputs in order, whose number
 * `output_count` then is. Each of `outputs` is NULL, and gets a new value, or a tensor that may be
 * written to and that nothing else shares: it is filled where it lies, and SARDONYX_BAD_INPUT says
 * so where its type or shape is not the output's. After a failure new values are NULL; a tensor
 * that was given may have been written to in part. */
SARDONYX_API sardonyx_status* sardonyx_session_run(
    const sardonyx_session* session, const sardonyx_run_options* options,
    const char* const* input_names, const sardonyx_value* const* inputs, size_t input_count,
    const char* const* output_names, size_t output_count, sardonyx_value** outputs);
/* The same with inputs and outputs in the session's order, without looking up names. An input that
 * is NULL is not given. */
SARDONYX_API sardonyx_status* sardonyx_session_run_in_order(const sardonyx_session* session,
                                                            const sardonyx_run_options* options,
                                                            const sardonyx_value* const* inputs,
                                                            size_t input_count,
                                                            sardonyx_value** outputs,
                                                            size_t output_count);

/* Told when a run has ended, on a thread of the session's. Either `status` is NULL, and `outputs`
 * has `count` new values in the session's order, or it says what went wrong, and there are none.
 * The callee releases the status and the values; the array lasts for the call. It may begin further
 * runs and release the session. */
typedef void (*sardonyx_done)(sardonyx_status* status, sardonyx_value** outputs, size_t count,
                              void* user);
/* Begins a run on a thread of the session's and returns at once; `done` is called once for each run
 * that this begins. As many of these runs as the session has threads go on at a time; others wait
 * for their turn. The inputs may be released at once; memory that they wrap without a release
 * function, the handle to cancel with and the profile must stay until `done` is called. A deadline
 * counts from this call on. Wrong names and values are told to `done`; a status of this function
 * says that nothing was begun. Since version 2. */
SARDONYX_API sardonyx_status* sardonyx_session_run_async(const sardonyx_session* session,
                                                         const sardonyx_run_options* options,
                                                         const char* const* input_names,
                                                         const sardonyx_value* const* inputs,
                                                         size_t input_count, sardonyx_done done,
                                                         void* user);

/* --- Bindings ----------------------------------------------------------------------------- */

/* Inputs and outputs of a session bound once, for many runs, which allocate nothing as long as
 * sizes stay. For one thread at a time. Keeps what it needs of the session. Since version 2. */
typedef struct sardonyx_binding sardonyx_binding;
SARDONYX_API sardonyx_status* sardonyx_binding_create(const sardonyx_session* session,
                                                      sardonyx_binding** binding);
SARDONYX_API void sardonyx_binding_release(sardonyx_binding* binding);
/* Binds an input; NULL: it is given no more. What wrapped memory holds is read by each run. */
SARDONYX_API sardonyx_status* sardonyx_binding_input(sardonyx_binding* binding, const char* name,
                                                     const sardonyx_value* value);
/* Binds an output to a tensor that may be written to and that nothing else shares; runs fill it
 * where it lies, and SARDONYX_BAD_INPUT says so where its type or shape is not the output's.
 * Nothing else may share its elements while it is bound. NULL, as for outputs that are never bound:
 * runs allocate it, where that of the run before lies unless somebody else holds that still. */
SARDONYX_API sardonyx_status* sardonyx_binding_output(sardonyx_binding* binding, const char* name,
                                                      const sardonyx_value* tensor);
SARDONYX_API sardonyx_status* sardonyx_binding_run(sardonyx_binding* binding,
                                                   const sardonyx_run_options* options);
/* A handle of what the last run made; later runs do not change it, unless the output is bound to
 * memory. SARDONYX_BAD_INPUT before the first run and after one that failed. */
SARDONYX_API sardonyx_status* sardonyx_binding_value(const sardonyx_binding* binding,
                                                     const char* output, sardonyx_value** value);

/* --- Operators of one's own --------------------------------------------------------------- */

/* All of it since version 2. An operator is a signature and functions that infer, prepare and run
 * its nodes. They may be called from several threads at a time, and must give control back: no
 * longjmp and no exception leaves them. What they return is NULL or a status
 * (sardonyx_status_create), which is then the library's; so are the statuses of the functions
 * below, which may just be handed on. Pointers to contexts, and all that these give, last for the
 * call. */
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
/* --- Training -----------------------------------------------------------------------------
 * The standard's paragraph "Training Related Information": a model with training_info has a state,
 * the initializers that its bindings name, and three methods. A step assigns all that it updates
 * together, or nothing where it fails. Any number of threads may infer while one trains: each sees
 * the state before or after a step. Calls that change the state wait for each other. */

typedef struct sardonyx_training sardonyx_training;

typedef struct sardonyx_training_options {
  size_t size;
  int threads;   /* as in sardonyx_session_options */
  int reference; /* not 0: node after node, without plan and fusion */
  int no_fusion; /* not 0: operators are not combined */
  int exact;     /* not 0: no algorithm that trades accuracy for speed */
  int has_seed;  /* not 0: `seed` counts; 0: that of the session which saved the model, or 0 */
  uint64_t seed; /* of random operators without a seed of their own */
  int recompute; /* 1: less memory, more time; -1: not; 0: as sardonyx_make_trainable was told */
} sardonyx_training_options;

SARDONYX_API sardonyx_status* sardonyx_training_create(const sardonyx_model* model,
                                                       const sardonyx_training_options* options,
                                                       sardonyx_training** training);
/* Loads and prepares in one step. */
SARDONYX_API sardonyx_status* sardonyx_training_load(const char* path,
                                                     const sardonyx_load_options* load_options,
                                                     const sardonyx_training_options* options,
                                                     sardonyx_training** training);
SARDONYX_API void sardonyx_training_release(sardonyx_training* training);

/* Entries of training_info; each has an initialization and an algorithm. */
SARDONYX_API size_t sardonyx_training_algorithm_count(const sardonyx_training* training);
/* What infer takes and gives. */
SARDONYX_API size_t sardonyx_training_input_count(const sardonyx_training* training);
SARDONYX_API size_t sardonyx_training_output_count(const sardonyx_training* training);
SARDONYX_API sardonyx_status* sardonyx_training_input(const sardonyx_training* training,
                                                      size_t index, sardonyx_value_info* info);
SARDONYX_API sardonyx_status* sardonyx_training_output(const sardonyx_training* training,
                                                       size_t index, sardonyx_value_info* info);
/* What a step of an algorithm takes, and what it gives besides the updates; 0 where there is no
 * such algorithm. */
SARDONYX_API size_t sardonyx_training_step_input_count(const sardonyx_training* training,
                                                       size_t algorithm);
SARDONYX_API size_t sardonyx_training_step_output_count(const sardonyx_training* training,
                                                        size_t algorithm);
SARDONYX_API sardonyx_status* sardonyx_training_step_input(const sardonyx_training* training,
                                                           size_t algorithm, size_t index,
                                                           sardonyx_value_info* info);
SARDONYX_API sardonyx_status* sardonyx_training_step_output(const sardonyx_training* training,
                                                            size_t algorithm, size_t index,
                                                            sardonyx_value_info* info);
SARDONYX_API size_t sardonyx_training_state_count(const sardonyx_training* training);
SARDONYX_API sardonyx_status* sardonyx_training_state_variable(const sardonyx_training* training,
                                                               size_t index,
                                                               sardonyx_value_info* info);

/* Runs the initialization of each entry in order, and assigns what it makes; all or nothing. */
SARDONYX_API sardonyx_status* sardonyx_training_initialize(sardonyx_training* training,
                                                           const sardonyx_run_options* options);
/* One step with inputs by name. `outputs` has room for as many values as the step gives, which
 * `output_count` is; they are new ones, or NULL after a failure. */
SARDONYX_API sardonyx_status* sardonyx_training_step(sardonyx_training* training, size_t algorithm,
                                                     const sardonyx_run_options* options,
                                                     const char* const* input_names,
                                                     const sardonyx_value* const* inputs,
                                                     size_t input_count, sardonyx_value** outputs,
                                                     size_t output_count);
/* The main graph with the current state. */
SARDONYX_API sardonyx_status* sardonyx_training_infer(const sardonyx_training* training,
                                                      const sardonyx_run_options* options,
                                                      const char* const* input_names,
                                                      const sardonyx_value* const* inputs,
                                                      size_t input_count, sardonyx_value** outputs,
                                                      size_t output_count);

/* The value of a state variable at this moment, which later steps do not change. */
SARDONYX_API sardonyx_status* sardonyx_training_get_state(const sardonyx_training* training,
                                                          const char* name, sardonyx_value** value);
/* Assigns state variables together; the others keep their values. */
SARDONYX_API sardonyx_status* sardonyx_training_set_state(sardonyx_training* training,
                                                          const char* const* names,
                                                          const sardonyx_value* const* values,
                                                          size_t count);
/* Steps and initializations that have changed the state; 0 for NULL. */
SARDONYX_API uint64_t sardonyx_training_turn(const sardonyx_training* training);

typedef struct sardonyx_training_save_options {
  size_t size;
  int inference_only;        /* not 0: without training_info */
  const char* external_data; /* the file beside the model that takes larger tensors; NULL: none */
  int merge_lora;            /* not 0: LoRA's products are added to the weights; for inference */
} sardonyx_training_save_options;

/* Writes the model with the current state in its initializers; a training that is made of it goes
 * on with the same bits. The file appears whole or not at all. */
SARDONYX_API sardonyx_status* sardonyx_training_save(const sardonyx_training* training,
                                                     const char* path,
                                                     const sardonyx_training_save_options* options);

/* Texts as the program's command make-trainable takes them; NULL and 0 are its defaults. */
typedef struct sardonyx_trainable_options {
  size_t size;
  const char* loss; /* "softmax-cross-entropy", "mse", "l1", "bce", "bce-with-logits", "huber" */
  const char* optimizer; /* "adam", "sgd", "momentum", "adamw", "adagrad", "rmsprop", "lamb" */
  const char* schedule;  /* "constant", "linear:STEPS", "cosine:STEPS" … */
  const char* output;    /* that the loss is of; NULL: the first */
  double learning_rate;
  double weight_decay;
  double clip_norm;
  int64_t warmup;
  int64_t accumulate;
  const char* const* freeze; /* patterns of initializers that do not learn */
  size_t freeze_count;
  const char* const* train; /* patterns of those that alone do; none: all that look like weights */
  size_t train_count;
  const char* const* lora; /* "RANK:PATTERN" */
  size_t lora_count;
  int random_weights; /* not 0: the initialization draws them anew */
  uint64_t seed;
  const char* precision; /* of products: "float32", "bf16", "fp16" */
  double loss_scale;     /* of fp16, at first; 0: 65536 */
  int64_t scale_growth;  /* steps after which it is doubled; 0: 2000 */
  int recompute;         /* not 0: sessions of it compute parts again instead of keeping them */
} sardonyx_trainable_options;

/* A training model of a model for inference. */
SARDONYX_API sardonyx_status* sardonyx_make_trainable(const sardonyx_model* model,
                                                      const sardonyx_trainable_options* options,
                                                      sardonyx_model** trainable);

#ifdef __cplusplus
}
#endif

/* The other parts of the interface. */
#include "sardonyx/sardonyx_graph.h"
#include "sardonyx/sardonyx_signatures.h"
#include "sardonyx/sardonyx_tools.h"

#endif /* SARDONYX_SARDONYX_H */
