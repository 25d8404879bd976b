/* Training: models that learn, their three methods, training models made of others, and training on
 * data. A part of sardonyx.h, which includes it; the rules at its beginning hold here too. */
#include "sardonyx/sardonyx.h"

#ifndef SARDONYX_SARDONYX_TRAINING_H
#define SARDONYX_SARDONYX_TRAINING_H

#ifdef __cplusplus
extern "C" {
#endif

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
/* Given the outputs of a step before anything is assigned; 0: nothing is, the step has not
 * happened. The handles are the library's and last for the call; sardonyx_value_share keeps one.
 * Called from within the step, on its thread; no longjmp and no exception leaves it. */
typedef int (*sardonyx_accept_function)(const sardonyx_value* const* outputs, size_t count,
                                        void* user);
/* As sardonyx_training_step; what the step gives is the caller's whether or not `accept` took it.
 * NULL: all steps count. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_training_step_if(
    sardonyx_training* training, size_t algorithm, const sardonyx_run_options* options,
    const char* const* input_names, const sardonyx_value* const* inputs, size_t input_count,
    sardonyx_accept_function accept, void* user, sardonyx_value** outputs, size_t output_count);
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
/* All state variables, of one moment. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_training_state(const sardonyx_training* training,
                                                      sardonyx_named_values** list);
/* Assigns state variables together; the others keep their values. */
SARDONYX_API sardonyx_status* sardonyx_training_set_state(sardonyx_training* training,
                                                          const char* const* names,
                                                          const sardonyx_value* const* values,
                                                          size_t count);
/* Steps and initializations that have changed the state; 0 for NULL. */
SARDONYX_API uint64_t sardonyx_training_turn(const sardonyx_training* training);
/* That random operators and the order of examples depend on; 0 for NULL. Since version 3. */
SARDONYX_API uint64_t sardonyx_training_seed(const sardonyx_training* training);
/* Of metadata_props of the model that was loaded; "" where it has no such key. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_training_metadata(const sardonyx_training* training,
                                                         const char* key, sardonyx_bytes** text);

typedef struct sardonyx_training_save_options {
  size_t size;
  int inference_only;        /* not 0: without training_info */
  const char* external_data; /* the file beside the model that takes larger tensors; NULL: none */
  int merge_lora;            /* not 0: LoRA's products are added to the weights; for inference */
  /* Since version 3. Added to the model's metadata_props; what has the same key there gives way. */
  const char* const* metadata_keys;
  const char* const* metadata_values;
  size_t metadata_count;
} sardonyx_training_save_options;

/* Writes the model with the current state in its initializers; a training that is made of it goes
 * on with the same bits. The file appears whole or not at all. */
SARDONYX_API sardonyx_status* sardonyx_training_save(const sardonyx_training* training,
                                                     const char* path,
                                                     const sardonyx_training_save_options* options);

/* --- Training models made of others ---------------------------------------------------------- */

/* Texts as the program's command make-trainable takes them; NULL and 0 are its defaults. */
typedef struct sardonyx_trainable_options {
  size_t size;
  const char* loss; /* "softmax-cross-entropy", "mse", "l1", "bce", "bce-with-logits", "huber" */
  const char* optimizer; /* "adam", "sgd", "momentum", "adamw", "adagrad", "rmsprop", "lamb" */
  const char* schedule;  /* "constant", "linear:STEPS", "cosine:STEPS" … */
  const char* output;    /* that the loss is of; NULL: the first */
  double learning_rate;
  double weight_decay;
  double clip_norm; /* largest norm of all gradients together; 0: any */
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
  /* Since version 3. */
  int has_class_axis; /* 0: axis 1 has the classes of softmax-cross-entropy */
  int has_ignore_index;
  int64_t class_axis;
  int64_t ignore_index; /* class numbers of targets that do not count */
  double huber_delta;   /* where huber's squares end; 0: 1 */
  int nesterov;         /* not 0: of momentum */
  int has_momentum;     /* 0: 0.9 */
  int has_smoothing;    /* 0: 0.99 */
  int has_betas;        /* 0: 0.9 and 0.999 */
  int has_epsilon;      /* 0: 1e-8 */
  double momentum;
  double smoothing; /* of rmsprop's squares */
  double beta1, beta2;
  double epsilon;
  double clip_value; /* largest magnitude of one element of a gradient; 0: any */
  /* One for each of `lora`, whose product counts alpha / rank; NULL, and 0: its rank. */
  const double* lora_alphas;
} sardonyx_trainable_options;

/* A training model of a model for inference. SARDONYX_BAD_INPUT for options that do not fit the
 * model, SARDONYX_UNSUPPORTED where something on the way to the loss has no gradient. */
SARDONYX_API sardonyx_status* sardonyx_make_trainable(const sardonyx_model* model,
                                                      const sardonyx_trainable_options* options,
                                                      sardonyx_model** trainable);

/* What making a model trainable has made. Since version 3. */
typedef struct sardonyx_trainable_report sardonyx_trainable_report;
/* The same, which also tells what it has made. */
SARDONYX_API sardonyx_status* sardonyx_make_trainable_reported(
    const sardonyx_model* model, const sardonyx_trainable_options* options,
    sardonyx_model** trainable, sardonyx_trainable_report** report);
/* The same into a file, which appears whole or not at all. `external_data`: the file beside it that
 * takes larger tensors; NULL: none. `report` may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_make_trainable_file(
    const sardonyx_model* model, const sardonyx_trainable_options* options, const char* path,
    const char* external_data, sardonyx_trainable_report** report);
/* What ONNX Runtime's training API works with. Since version 4. */
typedef struct sardonyx_training_artifacts {
  size_t size;                /* SARDONYX_INIT */
  const char* training_model; /* paths of files; none may be NULL */
  const char* eval_model;
  const char* optimizer_model;
  const char* checkpoint;
  /* Values of eval_model that inference gives; none: its outputs beside the loss, and where it has
   * none what the loss compares with the target. */
  const char* const* outputs;
  size_t output_count;  /* of `outputs` */
  double learning_rate; /* 0: the checkpoint's, else 0.001 */
} sardonyx_training_artifacts;
/* A training model of them (sardonyx/training_artifacts.h says what is in it). `report` may be
 * NULL. SARDONYX_UNREADABLE, SARDONYX_INVALID_MODEL, SARDONYX_BAD_INPUT where the files do not fit
 * each other, SARDONYX_UNSUPPORTED for other optimizers. Since version 4. */
SARDONYX_API sardonyx_status* sardonyx_make_trainable_of_artifacts(
    const sardonyx_training_artifacts* artifacts, sardonyx_model** trainable,
    sardonyx_trainable_report** report);
SARDONYX_API void sardonyx_trainable_report_release(sardonyx_trainable_report* report);
/* The lists of a report. */
typedef int32_t sardonyx_trainable_list;
enum {
  SARDONYX_TRAINABLE_TRAINED = 0,    /* initializers that learn, those of LoRA among them */
  SARDONYX_TRAINABLE_FROZEN = 1,     /* initializers that could and do not */
  SARDONYX_TRAINABLE_STATISTICS = 2, /* running statistics that steps update */
  SARDONYX_TRAINABLE_FUNCTIONS = 3,  /* that were added to the model */
  SARDONYX_TRAINABLE_NOTES = 4       /* sentences for people */
};
/* 0 for NULL and for numbers that are no list. */
SARDONYX_API size_t sardonyx_trainable_report_count(const sardonyx_trainable_report* report,
                                                    sardonyx_trainable_list list);
/* The text lasts as long as the report. */
SARDONYX_API sardonyx_status* sardonyx_trainable_report_text(
    const sardonyx_trainable_report* report, sardonyx_trainable_list list, size_t index,
    const char** text);
/* Elements of the initializers that learn; 0 for NULL. */
SARDONYX_API int64_t sardonyx_trainable_report_elements(const sardonyx_trainable_report* report);
/* The input that takes what the output should be; "" for NULL. Lasts as long as the report. */
SARDONYX_API const char* sardonyx_trainable_report_target(const sardonyx_trainable_report* report);

/* The model with the low-rank products of LoRA added to the weights beside which they stand, for
 * inference alone. SARDONYX_BAD_INPUT where there are none. Since version 3. */
SARDONYX_API sardonyx_status* sardonyx_model_merge_lora(const sardonyx_model* model,
                                                        sardonyx_model** merged);

/* --- Training on data -------------------------------------------------------------------------
 * All of it since version 3. */

/* Examples: arrays of the same first size, one for each input of a step, by name. A scalar is given
 * to each step as it is. May be used from any thread. */
typedef struct sardonyx_training_data sardonyx_training_data;
/* Shares the arrays' elements, which must not change: those that sardonyx_tensor_wrap took without
 * a release function must stay as long as the data. SARDONYX_BAD_INPUT where there is no array, or
 * first sizes differ. */
SARDONYX_API sardonyx_status* sardonyx_training_data_create(const char* const* names,
                                                            const sardonyx_value* const* arrays,
                                                            size_t count,
                                                            sardonyx_training_data** data);
/* Reads an .npz file, whose arrays have the names of the inputs of a step of `algorithm`, or a
 * folder with NAME.npy for each of them; arrays of other names are left out. Arrays that are stored
 * uncompressed are mapped, so that they may be larger than the memory. SARDONYX_UNREADABLE where
 * files are missing; SARDONYX_BAD_INPUT where an array is missing, holds another type than the step
 * takes, or is shorter than others. */
SARDONYX_API sardonyx_status* sardonyx_training_data_read(const char* path,
                                                          const sardonyx_training* training,
                                                          size_t algorithm,
                                                          sardonyx_training_data** data);
SARDONYX_API void sardonyx_training_data_release(sardonyx_training_data* data);
/* Examples; 0 for NULL. */
SARDONYX_API int64_t sardonyx_training_data_size(const sardonyx_training_data* data);
SARDONYX_API sardonyx_status* sardonyx_training_data_arrays(const sardonyx_training_data* data,
                                                            sardonyx_named_values** arrays);
/* The examples at these places, as a step takes them. SARDONYX_BAD_INPUT for places that are none.
 */
SARDONYX_API sardonyx_status* sardonyx_training_data_batch(const sardonyx_training_data* data,
                                                           const int64_t* places, size_t count,
                                                           sardonyx_named_values** batch);

/* A number that a step gives, or its mean over examples. Has no size: it stays as it is. */
typedef struct sardonyx_metric {
  const char* name;
  double value;
} sardonyx_metric;

typedef struct sardonyx_fit_progress {
  size_t size;
  int64_t epoch;    /* that runs, from 0 */
  int64_t step;     /* steps done in all, those before a resumption among them */
  int64_t steps;    /* in all epochs */
  int64_t examples; /* done by this call */
  double seconds;   /* since it began */
  double loss;      /* of the last step: the first of what it gave */
  int skipped;      /* not 0: its loss was no finite number, and nothing was assigned */
  const sardonyx_metric* metrics; /* of the last step */
  size_t metric_count;
} sardonyx_fit_progress;

/* What an epoch gave: means of the metrics over its steps, and over the validation data if there is
 * any. */
typedef struct sardonyx_epoch_result {
  size_t size;
  int64_t epoch;
  const sardonyx_metric* training;
  size_t training_count;
  const sardonyx_metric* validation;
  size_t validation_count;
  double seconds;
} sardonyx_epoch_result;

typedef struct sardonyx_fit_options {
  size_t size;
  int64_t epochs; /* 0: 1 */
  int64_t batch;  /* examples of a step; 0: 32 */
  int no_shuffle; /* not 0: each epoch in the order of the data, not in one of its own */
  int drop_last;  /* not 0: leave out the last batch of an epoch where it is smaller */
  int flip; /* not 0: half of the images are mirrored; of arrays [n, channels, height, width] */
  /* Not 0: leave a step out whose loss is NaN or infinite; 0: it ends the call with
   * SARDONYX_RUN_FAILED, the state being that before the step. */
  int skip_bad_loss;
  int64_t crop;     /* pixels: images are cut anew with so many zeros on each side, at most 4096 */
  size_t algorithm; /* that learns */
  /* Measured after each epoch by algorithm `measure`, whose updates are not assigned; NULL: nothing
   * is. Read only during the call. */
  const sardonyx_training_data* validation;
  int has_measure; /* 0: algorithm 1 */
  size_t measure;
  /* A folder that checkpoints go to, one every `every` steps (0: after each epoch), when `stop` is
   * set and at the end; the last `keep` (0: 2) stay. One process at a time may use it. NULL: none.
   */
  const char* checkpoints;
  int64_t every;
  int64_t keep;
  int64_t first_step; /* where to go on: steps done already; sardonyx_last_checkpoint tells */
  int64_t patience;   /* end after so many epochs in a row without a smaller loss; 0: never */
  const sardonyx_cancel* stop; /* set: the call ends after the step at hand, and succeeds */
  /* Told after each step and each epoch, from within the call, on its thread; what they point to
   * lasts for the call. NULL to go on; a status, which then is the library's, ends the call with
   * it. Either may be NULL. */
  sardonyx_status* (*on_step)(const sardonyx_fit_progress* progress, void* user);
  sardonyx_status* (*on_epoch)(const sardonyx_epoch_result* result, void* user);
  void* user;
} sardonyx_fit_options;

typedef struct sardonyx_fit_result sardonyx_fit_result;
typedef struct sardonyx_fit_summary {
  size_t size;
  int64_t step;      /* steps done in all */
  int stopped;       /* by `stop` */
  int stopped_early; /* by `patience` */
  int64_t skipped;   /* steps left out for their loss */
  size_t epoch_count;
  const char* checkpoint; /* the last one that was written; "": none */
} sardonyx_fit_summary;

/* Trains. The order of the examples is decided by the training's seed, the epoch and nothing else,
 * so that one that was interrupted and goes on from a checkpoint ends with the same bits. Fails as
 * steps do; SARDONYX_BAD_INPUT for options that do not fit; SARDONYX_UNREADABLE where a checkpoint
 * can't be written or its folder is in use: the last one stays intact. After a failure the state is
 * that of the last step done. `result` may be NULL. */
SARDONYX_API sardonyx_status* sardonyx_training_fit(sardonyx_training* training,
                                                    const sardonyx_training_data* data,
                                                    const sardonyx_fit_options* options,
                                                    sardonyx_fit_result** result);
SARDONYX_API void sardonyx_fit_result_release(sardonyx_fit_result* result);
/* Fills `summary`, whose size is set. The text lasts as long as the result. */
SARDONYX_API sardonyx_status* sardonyx_fit_result_describe(const sardonyx_fit_result* result,
                                                           sardonyx_fit_summary* summary);
/* Fills `epoch`, whose size is set; its lists last as long as the result. */
SARDONYX_API sardonyx_status* sardonyx_fit_result_epoch(const sardonyx_fit_result* result,
                                                        size_t index, sardonyx_epoch_result* epoch);

/* Numbers with names. */
typedef struct sardonyx_metrics sardonyx_metrics;
/* Means of what an algorithm gives over all examples, `batch` (0: 32) at a time; nothing is
 * assigned. */
SARDONYX_API sardonyx_status* sardonyx_training_measure(sardonyx_training* training,
                                                        const sardonyx_training_data* data,
                                                        int64_t batch, size_t algorithm,
                                                        sardonyx_metrics** metrics);
SARDONYX_API size_t sardonyx_metrics_count(const sardonyx_metrics* metrics);
/* Either may be NULL. The name lasts as long as the metrics. */
SARDONYX_API sardonyx_status* sardonyx_metrics_get(const sardonyx_metrics* metrics, size_t index,
                                                   const char** name, double* value);
SARDONYX_API void sardonyx_metrics_release(sardonyx_metrics* metrics);

/* The newest checkpoint of a folder, a model that sardonyx_training_load takes, and the steps that
 * were done when it was written; "" and 0 where there is none, or no such folder. `step` may be
 * NULL. SARDONYX_UNREADABLE where the folder can't be read. */
SARDONYX_API sardonyx_status* sardonyx_last_checkpoint(const char* folder, sardonyx_bytes** path,
                                                       int64_t* step);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_SARDONYX_TRAINING_H */
