/* The operators of the standard as data: the signatures of all their versions, and operator set
 * documents. A part of sardonyx.h, which includes it. All of it since version 3.
 *
 *   sardonyx_signatures* versions = NULL;
 *   sardonyx_signature signature = SARDONYX_INIT(sardonyx_signature);
 *   sardonyx_signatures_of("", "Softmax", &versions);
 *   for (size_t i = 0; i < sardonyx_signatures_count(versions); ++i)
 *     if (sardonyx_signatures_get(versions, i, &signature) == NULL) printf("%d\n",
 * signature.since); sardonyx_signatures_release(versions);
 *
 * "" and "ai.onnx" are one domain everywhere here. SARDONYX_BAD_INPUT is the status for an index
 * that is not there. All functions may be called from any thread. */
#include "sardonyx/sardonyx.h"

#ifndef SARDONYX_SARDONYX_SIGNATURES_H
#define SARDONYX_SARDONYX_SIGNATURES_H

#ifdef __cplusplus
extern "C" {
#endif

/* --- Domains, operators and releases; texts last as long as the library is loaded ------------ */

/* Domains that there are signatures of. */
SARDONYX_API size_t sardonyx_domain_count(void);
/* A domain, and the newest version of its operators, which is 0 for those whose sets have no
 * versions in the standard. Either may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_domain(size_t index, const char** domain, int32_t* newest);
/* The operators of a domain, each once; 0 for an unknown one and NULL. */
SARDONYX_API size_t sardonyx_domain_operator_count(const char* domain);
/* Their names in alphabetical order. */
SARDONYX_API sardonyx_status* sardonyx_domain_operator(const char* domain, size_t index,
                                                       const char** name);

/* A release of the standard and what it carried; 0 where it did not have the domain yet. */
typedef struct sardonyx_standard_release {
  size_t size;
  const char* name; /* "1.17.0" */
  int32_t ir_version;
  int32_t onnx_opset;
  int32_t ml_opset;
  int32_t training_opset;
} sardonyx_standard_release;
SARDONYX_API size_t sardonyx_standard_release_count(void);
/* The oldest is the first. */
SARDONYX_API sardonyx_status* sardonyx_standard_release_get(size_t index,
                                                            sardonyx_standard_release* release);

/* --- Signatures ------------------------------------------------------------------------------ */

/* Definitions of operators. What is asked of them belongs to this handle. */
typedef struct sardonyx_signatures sardonyx_signatures;
/* All versions of an operator, the oldest first; none for an unknown one. */
SARDONYX_API sardonyx_status* sardonyx_signatures_of(const char* domain, const char* name,
                                                     sardonyx_signatures** signatures);
/* The same of operators of one's own. */
SARDONYX_API sardonyx_status* sardonyx_operators_signatures(const sardonyx_operators* operators,
                                                            const char* domain, const char* name,
                                                            sardonyx_signatures** signatures);
/* The definition that a node binds to where version `opset` of its domain is imported, or none. */
SARDONYX_API sardonyx_status* sardonyx_signatures_find(const char* domain, const char* name,
                                                       int64_t opset,
                                                       sardonyx_signatures** signatures);
SARDONYX_API size_t sardonyx_signatures_count(const sardonyx_signatures* signatures);
SARDONYX_API void sardonyx_signatures_release(sardonyx_signatures* signatures);

/* Whether an operator has a body of other operators. */
typedef int32_t sardonyx_function_kind;
enum {
  SARDONYX_NO_FUNCTION = 0,
  SARDONYX_FIXED_FUNCTION = 1,     /* one body for all nodes */
  SARDONYX_CONTEXTUAL_FUNCTION = 2 /* it depends on attributes, types and present inputs */
};

/* One version of one operator (IR.md, "Operators"). */
typedef struct sardonyx_signature {
  size_t size;
  const char* domain; /* "" for ai.onnx */
  const char* name;
  int32_t since; /* first version of the domain with this definition */
  int32_t until; /* last version that had it, where it was removed; 0: not removed */
  int is_deprecated;
  int is_experimental;
  int is_nondeterministic; /* draws random numbers, or holds graphs that may */
  int is_extra;            /* in no current release of the standard */
  sardonyx_function_kind function;
  int32_t min_inputs, max_inputs; /* max: INT32_MAX after a variadic one */
  int32_t min_outputs, max_outputs;
  size_t input_count, output_count; /* formal ones, for sardonyx_signatures_parameter */
  size_t attribute_count;           /* for sardonyx_signatures_attribute */
  size_t constraint_count;          /* for sardonyx_signatures_constraint */
} sardonyx_signature;
SARDONYX_API sardonyx_status* sardonyx_signatures_get(const sardonyx_signatures* signatures,
                                                      size_t index, sardonyx_signature* signature);

typedef int32_t sardonyx_parameter_option;
enum {
  SARDONYX_SINGLE_PARAMETER = 0,
  SARDONYX_OPTIONAL_PARAMETER = 1,
  SARDONYX_VARIADIC_PARAMETER = 2
};
/* A formal input or output. */
typedef struct sardonyx_parameter {
  size_t size;
  const char* name;
  const char* type;         /* a constraint's name, "T", or a type: "tensor(int64)" */
  const char* const* types; /* all that are allowed: "tensor(float)", … */
  size_t type_count;
  sardonyx_parameter_option option;
  int is_homogeneous;     /* variadic: all values have one type */
  int32_t min_arity;      /* variadic: least number of values */
  int32_t differentiable; /* 0: not said, 1: yes, 2: no */
} sardonyx_parameter;
/* `output` not 0: a formal output, otherwise an input. */
SARDONYX_API sardonyx_status* sardonyx_signatures_parameter(const sardonyx_signatures* signatures,
                                                            size_t index, int output, size_t which,
                                                            sardonyx_parameter* parameter);

typedef struct sardonyx_attribute_signature {
  size_t size;
  const char* name;
  sardonyx_attribute_type type;
  int is_required;
  int has_default; /* then the field of the type holds it */
  float default_float;
  int64_t default_int;
  const char* default_string;
  const float* default_floats;
  const int64_t* default_ints;
  const char* const* default_strings;
  size_t default_count; /* of lists */
} sardonyx_attribute_signature;
/* Attributes are ordered by name. */
SARDONYX_API sardonyx_status* sardonyx_signatures_attribute(
    const sardonyx_signatures* signatures, size_t index, size_t which,
    sardonyx_attribute_signature* attribute);

typedef struct sardonyx_type_constraint {
  size_t size;
  const char* name;         /* "T" */
  const char* const* types; /* "tensor(float)", … */
  size_t type_count;
} sardonyx_type_constraint;
SARDONYX_API sardonyx_status* sardonyx_signatures_constraint(const sardonyx_signatures* signatures,
                                                             size_t index, size_t which,
                                                             sardonyx_type_constraint* constraint);

/* --- Operator set documents (IR.md, "Operator Sets"; docs/format.md) ---------------------------
 */

/* Read only; may be used from any thread. */
typedef struct sardonyx_operator_set sardonyx_operator_set;
/* Reads a document: binary, or JSON or text format by the file's name. SARDONYX_UNREADABLE,
 * SARDONYX_INVALID_MODEL; SARDONYX_UNSUPPORTED for the textual syntax, which has no documents. */
SARDONYX_API sardonyx_status* sardonyx_operator_set_load(const char* path,
                                                         sardonyx_operator_set** set);
/* The operators of a domain of the standard as of a version (0: the newest), with the bodies of
 * those that are functions. SARDONYX_BAD_INPUT for an unknown domain or version. */
SARDONYX_API sardonyx_status* sardonyx_operator_set_of_standard(const char* domain, int64_t version,
                                                                sardonyx_operator_set** set);
SARDONYX_API void sardonyx_operator_set_release(sardonyx_operator_set* set);

typedef struct sardonyx_operator_set_info {
  size_t size;
  const char* domain; /* "" for ai.onnx */
  int64_t version;
  int64_t ir_version; /* 0: not said */
  const char* doc_string;
  size_t operator_count; /* for sardonyx_operator_set_operator */
} sardonyx_operator_set_info;
SARDONYX_API sardonyx_status* sardonyx_operator_set_describe(const sardonyx_operator_set* set,
                                                             sardonyx_operator_set_info* info);
typedef struct sardonyx_documented_operator {
  size_t size;
  const char* name;
  int64_t since; /* the version of the set that it came with */
  int is_experimental;
  sardonyx_function body; /* of a function; zeros for the others */
} sardonyx_documented_operator;
/* Those without a body, then those with one, in the order of the document. */
SARDONYX_API sardonyx_status* sardonyx_operator_set_operator(const sardonyx_operator_set* set,
                                                             size_t index,
                                                             sardonyx_documented_operator* op);
/* The rules for documents and for the bodies in them. */
SARDONYX_API sardonyx_status* sardonyx_operator_set_check(const sardonyx_operator_set* set,
                                                          sardonyx_report** report);
/* Writes it in the form of the name's ending: binary (.onnx, .opset), .json, .textproto. The file
 * appears when it is whole. SARDONYX_BAD_INPUT for other endings. */
SARDONYX_API sardonyx_status* sardonyx_operator_set_save(const sardonyx_operator_set* set,
                                                         const char* path);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_SARDONYX_SIGNATURES_H */
