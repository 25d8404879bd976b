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
#define SARDONYX_API_VERSION 5

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
/* "location: message" on one line; where a text can't be parsed, two more show the place. "" for
 * NULL. */
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

/* Every node in the form of version `opset` of ai.onnx, newer or older; 0: the newest.
 * `assume_inference` as for sessions. */
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
/* The same, and what was inferred. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_model_infer_reported(const sardonyx_model* model,
                                                            const sardonyx_infer_options* options,
                                                            sardonyx_model** typed,
                                                            sardonyx_inference** inference);
SARDONYX_API size_t sardonyx_inference_count(const sardonyx_inference* inference);
SARDONYX_API sardonyx_status* sardonyx_inference_value(const sardonyx_inference* inference,
                                                       size_t index, sardonyx_value_info* info);
/* Nodes that can't run, and declarations that are wrong. */
SARDONYX_API size_t sardonyx_inference_finding_count(const sardonyx_inference* inference);
SARDONYX_API sardonyx_status* sardonyx_inference_finding(const sardonyx_inference* inference,
                                                         size_t index, sardonyx_finding* finding);
SARDONYX_API void sardonyx_inference_release(sardonyx_inference* inference);

#ifdef __cplusplus
}
#endif

/* The other parts of the interface. */
#include "sardonyx/sardonyx_graph.h"
#include "sardonyx/sardonyx_operators.h"
#include "sardonyx/sardonyx_session.h"
#include "sardonyx/sardonyx_signatures.h"
#include "sardonyx/sardonyx_tools.h"
#include "sardonyx/sardonyx_training.h"

#endif /* SARDONYX_SARDONYX_H */
