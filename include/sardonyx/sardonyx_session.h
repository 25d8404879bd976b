/* Running models: threads, sessions, packed weights, runs, profiles and bindings. A part of
 * sardonyx.h, which includes it; the rules at its beginning hold here too. */
#include "sardonyx/sardonyx.h"

#ifndef SARDONYX_SARDONYX_SESSION_H
#define SARDONYX_SARDONYX_SESSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* --- Sessions ----------------------------------------------------------------------------- */

/* Worker threads that several sessions share. */
typedef struct sardonyx_threads sardonyx_threads;
/* `count` includes the thread that runs; 0: as many as the process may use. There may be fewer
 * where the system would not start more. */
SARDONYX_API sardonyx_status* sardonyx_threads_create(int count, sardonyx_threads** threads);
SARDONYX_API int sardonyx_threads_count(const sardonyx_threads* threads);
SARDONYX_API void sardonyx_threads_release(sardonyx_threads* threads);

/* Where the outputs of a session's runs lie: those that are dense tensors of numbers or truth
 * values, which the caller does not bring memory for. The functions are called by runs on their
 * threads, several at a time where several runs go on, and `release` on whichever thread lets go of
 * the last value in that memory. The memory limit of a run counts the bytes before they are asked
 * for. No longjmp and no exception leaves the functions. Since version 3. */
typedef struct sardonyx_allocator {
  size_t size;
  void* user; /* handed to each function */
  /* `bytes` bytes, more than 0, at a multiple of `alignment`, a power of two. NULL: there are none,
   * and the run ends with SARDONYX_OUT_OF_MEMORY; memory at another place ends it with
   * SARDONYX_BAD_INPUT. */
  void* (*allocate)(size_t bytes, size_t alignment, void* user);
  /* Of memory that `allocate` gave, once. */
  void (*release)(void* memory, size_t bytes, void* user);
  /* When nothing uses the allocator any more: no session that was made with it and no value in its
   * memory; not where making the session fails. May be NULL. */
  void (*release_user)(void* user);
} sardonyx_allocator;

/* How much a message of a log matters. Since version 4. */
enum {
  SARDONYX_LOG_DEBUG = 1,   /* what a session does: a plan was made for new sizes */
  SARDONYX_LOG_INFO = 2,    /* what makes a difference to time or memory */
  SARDONYX_LOG_WARNING = 3, /* what is not as asked for, or may be a mistake */
  SARDONYX_LOG_ERROR = 4    /* what is lost and nobody else is told of */
};
typedef int32_t sardonyx_log_level;

/* What a session tells besides results and statuses. Texts are for people, and last for the call.
 * Since version 4. */
typedef struct sardonyx_log_message {
  size_t size;
  sardonyx_log_level level;
  const char* rule;    /* of the checker: "G-20"; "" where there is none */
  const char* place;   /* "session", "input 'x'", the path of a file */
  const char* message; /* what was found or done */
  const char* advice;  /* what was made of it, or what to do; may be "" */
} sardonyx_log_message;

/* Called on the thread that finds what it tells, that makes a session or runs it or is one of the
 * session's own; by several at a time where several run. It may be called while locks of the
 * session are held: it calls no function with the session, its bindings or its model, makes and
 * releases no session of that model, and should return soon. No longjmp and no exception leaves it.
 * Since version 4. */
typedef void (*sardonyx_log)(const sardonyx_log_message* message, void* user);

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
  /* Since version 3. Memory for the outputs of runs, copied; NULL: the library's own. */
  const sardonyx_allocator* output_allocator;
  /* Since version 4. Told what making the session and its runs meet, from `log_level` on (0:
   * SARDONYX_LOG_WARNING): threads that the system did not start, files of packed weights that are
   * of no use or could not be written, declarations that values contradict, plans that are made for
   * new sizes. What a function returns a status for is not told. Warnings that are told here are
   * not told to `warn` of sardonyx_load_options; where sardonyx_session_load has none of those,
   * what reading mends is told here, too. Stays usable until the session is released and all values
   * that its runs made are. NULL: nobody is told. */
  sardonyx_log log;
  void* log_user;
  sardonyx_log_level log_level;
  /* Since version 5. Not 0: runs take numbers nearer to 0 than the least normal one for 0. */
  int flush_denormals;
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
 * so where its type or shape is not the output's, and of strings, which are always made new. After
 * a failure new values are NULL; a tensor that was given may have been written to in part. */
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
/* Binds an output to a tensor that may be written to and that nothing else shares, not one of
 * strings; runs fill it where it lies, and SARDONYX_BAD_INPUT says so where its type or shape is
 * not the output's. Nothing else may share its elements while it is bound. NULL, as for outputs
 * that are never bound: runs allocate it, where that of the run before lies unless somebody else
 * holds that still. */
SARDONYX_API sardonyx_status* sardonyx_binding_output(sardonyx_binding* binding, const char* name,
                                                      const sardonyx_value* tensor);
SARDONYX_API sardonyx_status* sardonyx_binding_run(sardonyx_binding* binding,
                                                   const sardonyx_run_options* options);
/* A handle of what the last run made; later runs do not change it, unless the output is bound to
 * memory. SARDONYX_BAD_INPUT before the first run and after one that failed. */
SARDONYX_API sardonyx_status* sardonyx_binding_value(const sardonyx_binding* binding,
                                                     const char* output, sardonyx_value** value);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_SARDONYX_SESSION_H */
