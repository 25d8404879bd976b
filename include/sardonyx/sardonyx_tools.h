/* What goes with models and their runs: values from and to files, values for inputs, values as
 * text, how far values are apart, what a model holds and costs, what running consists of, what the
 * optimiser does, and what the machine can do. A part of sardonyx.h, which includes it. All of it
 * since version 3. Functions may be called from any thread. Texts and lists that a handle gives
 * last as long as it. SARDONYX_BAD_INPUT is the status for an index that is not there. */
#include "sardonyx/sardonyx.h"

#ifndef SARDONYX_SARDONYX_TOOLS_H
#define SARDONYX_SARDONYX_TOOLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* --- What this build and this machine are --------------------------------------------------- */

typedef struct sardonyx_about {
  size_t size;
  const char* version;      /* "0.1.0"; texts last as long as the library is loaded */
  const char* onnx_release; /* the newest release of the standard it knows */
  int ir_version;
  int opset, ml_opset, training_opset;
  int operators;               /* names of the standard's operators, over all its domains */
  const char* instruction_set; /* what the kernels take on this machine */
  int images;                  /* not 0: reads PNG and JPEG */
} sardonyx_about;
SARDONYX_API sardonyx_status* sardonyx_about_get(sardonyx_about* about);
/* Inverse of sardonyx_element_name; also takes "FLOAT" and its like in any letter case.
 * SARDONYX_UNDEFINED for other names and NULL. */
SARDONYX_API sardonyx_element_type sardonyx_element_named(const char* name);

/* How many threads this process may run at the same time: by its affinity and its control group. */
SARDONYX_API int sardonyx_usable_processors(void);
/* The peak of `threads` threads that work at the same time: 10^9 fp32 operations (a multiply-add
 * counts as two) in registers, and 10^9 bytes read from memory, a second. Takes about a second.
 * Either may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_machine_peak(int threads, double* gflops, double* gbps);

/* How fast the machine could compute and read. */
typedef struct sardonyx_limits sardonyx_limits;
/* Takes less than half a second. */
SARDONYX_API sardonyx_status* sardonyx_limits_measure(int threads, sardonyx_limits** limits);
SARDONYX_API void sardonyx_limits_release(sardonyx_limits* limits);
/* Levels of memory, the smallest first; the last is memory itself. */
SARDONYX_API size_t sardonyx_limits_count(const sardonyx_limits* limits);
/* "L2", the bytes that fit in (INT64_MAX of memory), and 10^9 bytes a second that all threads read
 * together. Any of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_limits_level(const sardonyx_limits* limits, size_t index,
                                                    const char** name, int64_t* bytes,
                                                    double* gbps);
/* 10^9 fp32 operations a second of all threads together; 0 for NULL. */
SARDONYX_API double sardonyx_limits_gflops(const sardonyx_limits* limits);

/* --- Values by name, and values in files ------------------------------------------------------ */

/* A list of values with names. */
typedef struct sardonyx_named_values sardonyx_named_values;
SARDONYX_API sardonyx_status* sardonyx_named_values_create(const char* const* names,
                                                           const sardonyx_value* const* values,
                                                           size_t count,
                                                           sardonyx_named_values** list);
SARDONYX_API void sardonyx_named_values_release(sardonyx_named_values* list);
SARDONYX_API size_t sardonyx_named_values_count(const sardonyx_named_values* list);
/* The name, and a handle of the value; either may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_named_values_get(const sardonyx_named_values* list,
                                                        size_t index, const char** name,
                                                        sardonyx_value** value);

/* A value from a file, by the end of its name: .npy, .npz with one array, .pb (TensorProto), .json
 * and .txt or .csv (numbers, or nested lists of them), and by what is in them the images that
 * ImageDecoder reads (uint8 pixels, [height, width, 3]). `element_type`, where it is not
 * SARDONYX_UNDEFINED: what numbers in texts become, and what arrays of types that NumPy does not
 * have are. SARDONYX_UNREADABLE, SARDONYX_BAD_INPUT. */
SARDONYX_API sardonyx_status* sardonyx_value_read(const char* path,
                                                  sardonyx_element_type element_type,
                                                  sardonyx_value** value);
/* Writes a value to a file that appears when it is whole, by the end of its name: .npy (tensors
 * only), .pb (any value, as the standard's test data), .json. */
SARDONYX_API sardonyx_status* sardonyx_value_write(const sardonyx_value* value, const char* path);
/* All arrays of an .npz file, in its order. */
SARDONYX_API sardonyx_status* sardonyx_npz_read(const char* path, sardonyx_named_values** list);
/* Tensors as one .npz file, stored without compression. SARDONYX_BAD_INPUT where a value is no
 * tensor, two have one name, or a name could lead out of a folder when somebody unpacks it. */
SARDONYX_API sardonyx_status* sardonyx_npz_write(const sardonyx_named_values* list,
                                                 const char* path);
/* Writes output_0.npy, output_1.npy … into a folder, which is made where it is missing; values that
 * are no tensors as .pb. All files appear at once, when they are whole. */
SARDONYX_API sardonyx_status* sardonyx_outputs_write(const char* folder,
                                                     const sardonyx_value* const* outputs,
                                                     size_t count);

/* Outputs of a session, all of them in its order, as one .npz file. An array has its output's name;
 * "output_N" where that name could lead out of a folder when somebody unpacks the archive.
 * SARDONYX_BAD_INPUT where an output is no tensor, or `count` is not the session's. */
SARDONYX_API sardonyx_status* sardonyx_outputs_write_npz(const char* path,
                                                         const sardonyx_session* session,
                                                         const sardonyx_value* const* outputs,
                                                         size_t count);
/* The bytes of a file of any kind. SARDONYX_UNREADABLE. */
SARDONYX_API sardonyx_status* sardonyx_text_read(const char* path, sardonyx_bytes** text);
/* Writes `length` bytes to a file of any name, which appears when it is whole. */
SARDONYX_API sardonyx_status* sardonyx_text_write(const char* path, const char* text,
                                                  size_t length);
/* What to say where a model can't be written to a file of this name, because its ending is none
 * that says how; "" where it can. `source`: the file that was read; NULL: none. */
SARDONYX_API sardonyx_status* sardonyx_ending_problem(const char* path, const char* source,
                                                      sardonyx_bytes** text);
/* As sardonyx_model_save, and tells how many bytes went to the model's file and to that of its
 * external data, and what the caller should know, a line each: that others can't read the file. Any
 * of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_model_save_reported(
    const sardonyx_model* model, const char* path, const sardonyx_save_options* options,
    uint64_t* model_bytes, uint64_t* data_bytes, sardonyx_bytes** notes);

/* --- Values for a session's inputs --------------------------------------------------------------
 */

/* How pixels become numbers: (pixel * scale - mean) / deviation, for each channel. */
typedef struct sardonyx_image_options {
  size_t size;
  float scale;       /* 0: 1/255 */
  const float* mean; /* one number, or one for each channel; NULL: 0 */
  size_t mean_count;
  const float* deviation; /* NULL: 1 */
  size_t deviation_count;
  int layout; /* 0: by the input's channels, 1: channels first, 2: channels last */
} sardonyx_image_options;
/* Reads a value for input `index` of a session of the model: .npy, .npz (the array of its name, or
 * the only one), .pb, .json, .txt, .csv, and images (PNG, JPEG, and by what is in them the other
 * formats that ImageDecoder reads). */
SARDONYX_API sardonyx_status* sardonyx_input_read(const sardonyx_session* session, size_t index,
                                                  const sardonyx_model* model, const char* path,
                                                  const sardonyx_image_options* options,
                                                  sardonyx_value** value);
/* A tensor as people type it: "1", "[[1, 2], [3, 4]]", "0.5 1.5". */
SARDONYX_API sardonyx_status* sardonyx_input_parse(const sardonyx_session* session, size_t index,
                                                   const char* text, sardonyx_value** value);

typedef struct sardonyx_fill_options {
  size_t size;
  const char* const* size_names; /* of named dimensions, or places ("image.2"); others are 1 */
  const int64_t* sizes;
  size_t size_count;
  int ones;         /* not 0: all elements are 1 */
  uint64_t seed;    /* of random elements, the same for each seed and input name */
  double low, high; /* both 0: floats in [-1, 1), integers 0 or 1 */
} sardonyx_fill_options;
/* A made-up value for input `index`. SARDONYX_BAD_INPUT where the model leaves its rank open. */
SARDONYX_API sardonyx_status* sardonyx_input_fill(const sardonyx_session* session, size_t index,
                                                  const sardonyx_fill_options* options,
                                                  sardonyx_value** value);

/* --- Values as text ------------------------------------------------------------------------------
 */

/* "float[1,10]", "seq(float[2])" */
SARDONYX_API sardonyx_status* sardonyx_value_type_text(const sardonyx_value* value,
                                                       sardonyx_bytes** text);
/* The first `count` elements: "1, 2.5, 3, …"; of sequences and maps their first items. */
SARDONYX_API sardonyx_status* sardonyx_value_preview(const sardonyx_value* value, size_t count,
                                                     sardonyx_bytes** text);
/* The whole value as JSON: nested lists of a tensor, a list of a sequence, an object of a map. NaN
 * and the infinities are strings; complex numbers are pairs; what nests deeper than 32 is null. */
SARDONYX_API sardonyx_status* sardonyx_value_to_json(const sardonyx_value* value,
                                                     sardonyx_bytes** text);
/* The text with control characters and broken UTF-8 escaped: names come from files of strangers. */
SARDONYX_API sardonyx_status* sardonyx_printable(const char* text, size_t length,
                                                 sardonyx_bytes** printable);
/* The elements of a tensor, or the items at the top of other kinds. */
SARDONYX_API sardonyx_status* sardonyx_value_size(const sardonyx_value* value, int64_t* elements);
/* The numbers of a tensor at a glance. */
typedef struct sardonyx_number_summary {
  size_t size;
  int has_numbers; /* 0: the value holds none */
  int64_t elements;
  int64_t nans, infinite;
  double least, most; /* of those that are finite; 0 where none is */
} sardonyx_number_summary;
SARDONYX_API sardonyx_status* sardonyx_value_summarize(const sardonyx_value* value,
                                                       sardonyx_number_summary* summary);
/* The same elements under another shape of the same count, shared. */
SARDONYX_API sardonyx_status* sardonyx_tensor_reshape(const sardonyx_value* tensor, size_t rank,
                                                      const int64_t* dims, sardonyx_value** made);
/* As sardonyx_tensor_read_floats, with the precision of double. */
SARDONYX_API sardonyx_status* sardonyx_tensor_read_doubles(const sardonyx_value* tensor, double* to,
                                                           size_t count);
/* As sardonyx_tensor_from_floats, exactly where the type holds the integers; others wrap. */
SARDONYX_API sardonyx_status* sardonyx_tensor_from_integers(sardonyx_element_type type, size_t rank,
                                                            const int64_t* dims,
                                                            const int64_t* from, size_t count,
                                                            sardonyx_value** tensor);

/* --- Comparing and ranking -----------------------------------------------------------------------
 */

/* An element agrees where |actual - expected| <= relative * |expected| + absolute; NaN agrees with
 * NaN. Integers, truth values and strings have to be equal. */
typedef struct sardonyx_tolerance {
  size_t size;
  int has_relative; /* 0: 1e-3, or 4 units of rounding of coarser float types */
  int has_absolute; /* 0: 1e-4 of the RMS of what is expected */
  double relative, absolute;
  int common_only;  /* of runs; not 0: values that only one has are no difference */
  int all_expected; /* of runs; not 0: as above, for those that nobody expects */
} sardonyx_tolerance;
typedef struct sardonyx_comparison {
  size_t size;
  const char* name; /* of a value of a run; "" of single values */
  int agree;
  int is_missing;      /* of runs; not 0: one of the two has no value of this name */
  double largest;      /* of |actual - expected| */
  double share_of_rms; /* the same as a share of the RMS of what is expected */
  int64_t differing;   /* elements that do not agree */
  int64_t elements;
  const char* reason; /* why they don't agree; "" where they do */
} sardonyx_comparison;
/* What was compared. */
typedef struct sardonyx_comparisons sardonyx_comparisons;
/* One value with another, of any kind, part by part. NULL as `tolerance` means the defaults. */
SARDONYX_API sardonyx_status* sardonyx_values_compare(const sardonyx_value* actual,
                                                      const sardonyx_value* expected,
                                                      const sardonyx_tolerance* tolerance,
                                                      sardonyx_comparisons** comparisons);
/* Values of one name with each other: the actual ones in their order, then what these lack. */
SARDONYX_API sardonyx_status* sardonyx_runs_compare(const sardonyx_named_values* actual,
                                                    const sardonyx_named_values* expected,
                                                    const sardonyx_tolerance* tolerance,
                                                    sardonyx_comparisons** comparisons);
/* The values of a run that somebody wrote: an .npz, or a folder's .npy and .pb files by their
 * names.
 */
SARDONYX_API sardonyx_status* sardonyx_run_read(const char* path, sardonyx_named_values** list);
SARDONYX_API size_t sardonyx_comparisons_count(const sardonyx_comparisons* comparisons);
SARDONYX_API sardonyx_status* sardonyx_comparisons_get(const sardonyx_comparisons* comparisons,
                                                       size_t index,
                                                       sardonyx_comparison* comparison);
SARDONYX_API void sardonyx_comparisons_release(sardonyx_comparisons* comparisons);
/* The places of a session's outputs in the order in which its model makes them: the first value
 * that differs between two runs is then where something went wrong. `order` has room for `count`,
 * which is the session's number of outputs. */
SARDONYX_API sardonyx_status* sardonyx_session_making_order(const sardonyx_session* session,
                                                            const sardonyx_model* model,
                                                            size_t* order, size_t count);

/* The `top` greatest elements along the last dimension, for the first `max_rows` rows. `indices`
 * and `probabilities` have room for `top` * `max_rows`; `rows` and `columns` say how many were
 * written, row by row. `given`, which may be NULL: 0 where the probabilities are the softmax of
 * scores. */
SARDONYX_API sardonyx_status* sardonyx_rank_answers(const sardonyx_value* scores, size_t top,
                                                    size_t max_rows, int64_t* indices,
                                                    double* probabilities, size_t* rows,
                                                    size_t* columns, int* given);

/* --- What a model holds and costs ----------------------------------------------------------------
 */

typedef struct sardonyx_summary sardonyx_summary;
/* Sizes of named dimensions, for the cost; others count as 1. */
SARDONYX_API sardonyx_status* sardonyx_model_summarize(const sardonyx_model* model,
                                                       const char* const* size_names,
                                                       const int64_t* sizes, size_t size_count,
                                                       sardonyx_summary** summary);
SARDONYX_API void sardonyx_summary_release(sardonyx_summary* summary);
typedef struct sardonyx_summary_info {
  size_t size;
  int64_t file_bytes;
  int64_t nodes; /* those of subgraphs and functions too */
  size_t operator_count;
  int64_t parameters; /* elements of initializers and constants */
  int64_t parameter_bytes;
  size_t parameter_type_count;
  size_t external_file_count;
  int external_data_present; /* not 0: all of them are there */
  int training;              /* not 0: it has training_info */
  int has_cost;              /* 0: the model can't be lowered; `cost_reason` says why */
  const char* cost_reason;
  double flops;       /* floating-point operations of a run; a multiply-add counts as two */
  double value_bytes; /* all that lives at the same time, but for weights: the largest sum */
  /* Whose operator is not known, or whose sizes only a run decides: such a size counts as 1. */
  int64_t unknown_nodes;
} sardonyx_summary_info;
SARDONYX_API sardonyx_status* sardonyx_summary_describe(const sardonyx_summary* summary,
                                                        sardonyx_summary_info* info);
/* Operators, the most frequent first; `supported` not 0: it can run. Any of the results may be
 * NULL.
 */
SARDONYX_API sardonyx_status* sardonyx_summary_operator(const sardonyx_summary* summary,
                                                        size_t index, const char** name,
                                                        int64_t* count, int* supported);
/* The elements of an element type that initializers and constants have; either may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_summary_parameter_type(const sardonyx_summary* summary,
                                                              size_t index, const char** type,
                                                              int64_t* elements);
/* A file of external data, as the model names it. */
SARDONYX_API sardonyx_status* sardonyx_summary_external_file(const sardonyx_summary* summary,
                                                             size_t index, const char** path);

/* --- Models as text and drawings
 * ------------------------------------------------------------------
 */

typedef struct sardonyx_text_options {
  size_t size;
  size_t max_elements; /* tensors with more are cut, so that no parser reads the text; 0: none is */
  int no_annotations;  /* not 0: without what models hold beyond the standard's syntax */
} sardonyx_text_options;
/* ONNX's textual syntax. */
SARDONYX_API sardonyx_status* sardonyx_model_text(const sardonyx_model* model,
                                                  const sardonyx_text_options* options,
                                                  sardonyx_bytes** text);
/* Takes a file's bytes piece by piece; returns 0 to stop, which ends the call with
 * SARDONYX_CANCELLED. */
typedef int (*sardonyx_write_function)(const void* data, size_t size, void* user);
/* As sardonyx_model_write, in memory that does not grow with the weights. */
SARDONYX_API sardonyx_status* sardonyx_model_stream(const sardonyx_model* model, sardonyx_form form,
                                                    sardonyx_write_function write, void* user);
/* A drawing of the main graph, the bodies of its nodes inside them, and the functions beside it:
 * DOT for Graphviz, or with `svg` not 0 SVG. */
SARDONYX_API sardonyx_status* sardonyx_model_draw(const sardonyx_model* model, int svg,
                                                  sardonyx_bytes** drawing);
/* The same model with its external data as a part of it, where that was left outside. `verify` not
 * 0: files are compared with the digests that the model states. */
SARDONYX_API sardonyx_status* sardonyx_model_with_external_data(const sardonyx_model* model,
                                                                int verify, sardonyx_model** whole);
/* The same model with `prefix` before the names of all its values and nodes. */
SARDONYX_API sardonyx_status* sardonyx_model_add_prefix(const sardonyx_model* model,
                                                        const char* prefix,
                                                        sardonyx_model** renamed);

/* --- What running consists of
 * ---------------------------------------------------------------------
 */

/* The steps of a plan, those of bodies behind the step that they belong to. */
typedef struct sardonyx_plan sardonyx_plan;
/* The plan of a run with these inputs by name; with none of them what holds for all sizes. */
SARDONYX_API sardonyx_status* sardonyx_session_plan(const sardonyx_session* session,
                                                    const char* const* input_names,
                                                    const sardonyx_value* const* inputs,
                                                    size_t input_count, sardonyx_plan** plan);
SARDONYX_API void sardonyx_plan_release(sardonyx_plan* plan);
SARDONYX_API size_t sardonyx_plan_step_count(const sardonyx_plan* plan);
typedef struct sardonyx_step {
  size_t size;
  const char* node;     /* "Conv 'stem/conv'" */
  const char* origin;   /* where it came from, if it is not in the file as such */
  const char* kernel;   /* "conv.pointwise_nhwc" */
  const char* body;     /* "then_branch"; "" at depth 0 */
  int depth;            /* of bodies around it */
  size_t source_count;  /* the model's nodes whose work it does, if it is not one itself */
  size_t refusal_count; /* kernels that were not taken, with the reason */
} sardonyx_step;
SARDONYX_API sardonyx_status* sardonyx_plan_step(const sardonyx_plan* plan, size_t index,
                                                 sardonyx_step* step);
SARDONYX_API sardonyx_status* sardonyx_plan_source(const sardonyx_plan* plan, size_t index,
                                                   size_t which, const char** node);
/* "conv.winograd_nhwc: strides" */
SARDONYX_API sardonyx_status* sardonyx_plan_refusal(const sardonyx_plan* plan, size_t index,
                                                    size_t which, const char** text);
/* What the plan takes for granted of the inputs' sizes: "If 'squeeze' takes its then_branch". */
SARDONYX_API size_t sardonyx_plan_guard_count(const sardonyx_plan* plan);
SARDONYX_API sardonyx_status* sardonyx_plan_guard(const sardonyx_plan* plan, size_t index,
                                                  const char** text);
/* Bytes of packed weights, and of working memory that ended runs have left for later ones. Either
 * may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_session_memory(const sardonyx_session* session,
                                                      int64_t* packed_bytes, int64_t* arena_bytes);

/* The passes of the optimiser, in the order in which they first run. */
SARDONYX_API size_t sardonyx_pass_count(void);
/* "fuse-attention", and what it does, on one line; texts last as long as the library is loaded. */
SARDONYX_API sardonyx_status* sardonyx_pass(size_t index, const char** name, const char** summary);
/* The graph as a session with these options would plan it, in ONNX's textual syntax. `stop_after`:
 * the last pass that runs; NULL: all do. Tensors with more than `max_elements` elements are cut; 0:
 * 16. */
SARDONYX_API sardonyx_status* sardonyx_model_optimized_text(const sardonyx_model* model,
                                                            const sardonyx_session_options* options,
                                                            const char* stop_after,
                                                            size_t max_elements,
                                                            sardonyx_bytes** text);

/* A pass that has run over one graph of a model. What it points to lasts for the call. */
typedef struct sardonyx_pass_run {
  size_t size;
  const char* name;  /* of the pass; "infer-types" where inference ran once more between two */
  const char* graph; /* "main graph", or "body of Loop making 'y'" for one inside a node */
  int changed;
  int64_t nodes_before, nodes_after;
  /* By operator: how many nodes there are more than before the pass, or fewer where negative. */
  const char* const* operators;
  const int64_t* operator_changes;
  size_t operator_count;
  double seconds; /* without the passes over graphs inside this one */
} sardonyx_pass_run;
/* The graph as a pass left it; lasts for the call that is given it. */
typedef struct sardonyx_pass_graph sardonyx_pass_graph;
SARDONYX_API sardonyx_status* sardonyx_pass_graph_text(const sardonyx_pass_graph* graph,
                                                       sardonyx_bytes** text);
/* Told of a pass; NULL to go on, or a status, which is then the library's and ends the call. */
typedef sardonyx_status* (*sardonyx_observe_function)(const sardonyx_pass_run* run,
                                                      const sardonyx_pass_graph* graph, void* user);
typedef struct sardonyx_pass_options {
  size_t size;
  const char* stop_after;            /* the last pass that runs on each graph; NULL: all do */
  size_t max_elements;               /* tensors with more are cut in texts; 0: 16 */
  sardonyx_observe_function observe; /* after each pass, from within the call; NULL: nobody */
  void* user;
} sardonyx_pass_options;
/* As sardonyx_model_optimized_text, and tells what each pass has done. */
SARDONYX_API sardonyx_status* sardonyx_model_run_passes(const sardonyx_model* model,
                                                        const sardonyx_session_options* options,
                                                        const sardonyx_pass_options* pass_options,
                                                        sardonyx_bytes** text);

/* --- Rules of the checker, and more of inference
 * ---------------------------------------------------
 */

/* How a profile reports a rule. */
typedef int32_t sardonyx_level;
enum {
  SARDONYX_LEVEL_OFF = 0,
  SARDONYX_LEVEL_INFO = 1,
  SARDONYX_LEVEL_WARNING = 2,
  SARDONYX_LEVEL_ERROR = 3
};
typedef struct sardonyx_rule {
  size_t size;
  const char* id;          /* "G-03"; "L-…" are limits of Sardonyx's own */
  const char* title;       /* what it asks, in one line */
  sardonyx_level runnable; /* in the profile of loading */
  sardonyx_level standard;
  sardonyx_level strict;
} sardonyx_rule;
/* Every rule that the checker can report. Texts last as long as the library is loaded. */
SARDONYX_API size_t sardonyx_rule_count(void);
SARDONYX_API sardonyx_status* sardonyx_rule_get(size_t index, sardonyx_rule* rule);

/* Infers the types of a file's values and appends those that it does not declare yet to the file
 * itself, without reading or writing its weights. On an error the file has its old length.
 * SARDONYX_BAD_INPUT with sizes, SARDONYX_UNSUPPORTED for other forms than the binary one. */
SARDONYX_API sardonyx_status* sardonyx_infer_in_place(const char* path,
                                                      const sardonyx_infer_options* options,
                                                      sardonyx_inference** inference);
/* How much is known of an inferred value. */
typedef int32_t sardonyx_inferred_state;
enum {
  SARDONYX_INFERRED_KNOWN = 0,   /* sizes are numbers or expressions of names of the inputs */
  SARDONYX_INFERRED_BOUNDED = 1, /* some sizes are unknowns, each with an upper bound */
  SARDONYX_INFERRED_OPEN = 2,    /* some sizes are unknowns without a bound */
  SARDONYX_INFERRED_PARTIAL = 3, /* the rank, or a part of the type, is unknown */
  SARDONYX_INFERRED_UNKNOWN = 4
};
SARDONYX_API sardonyx_status* sardonyx_inference_state(const sardonyx_inference* inference,
                                                       size_t index,
                                                       sardonyx_inferred_state* state);
/* Sizes that only a run decides. */
SARDONYX_API size_t sardonyx_inference_unknown_count(const sardonyx_inference* inference);
/* "u3", as it stands in the types; "batch*seq" or "" where no bound is known; what makes it:
 * "NonZero 'hits'"; and why. Any of the results may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_inference_unknown(const sardonyx_inference* inference,
                                                         size_t index, const char** name,
                                                         const char** bound, const char** node,
                                                         const char** reason);
/* Names that the model declares and that others explain. */
SARDONYX_API size_t sardonyx_inference_name_count(const sardonyx_inference* inference);
/* "seq", and "past + 1"; either may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_inference_name(const sardonyx_inference* inference,
                                                      size_t index, const char** name,
                                                      const char** expression);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_SARDONYX_TOOLS_H */
