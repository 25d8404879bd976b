/* Answers requests from standard input on standard output, several at a time, as they are done:
 *
 *   serve_model_c MODEL [DEADLINE_MS [MEMORY_LIMIT_MB]]
 *
 *   request:  7 0.5 0.25 1 2   a name of the caller's choice, and numbers of the first input
 *   answer:   7 ok 0.1 0.9       numbers of the first output; in any order
 *             7 error 8 ...      or the number of a status, and its message
 *
 * MODEL's first input has an open dimension at most, which follows from how many numbers there are.
 * At the end of the input, it waits for what is running; SIGINT and SIGTERM cancel that first.
 * examples/server is a server in C++. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "require.h"

enum { longest_line = 1 << 20, longest_name = 32, most_numbers = 1 << 17, most_waiting = 64 };

/* Closed at its writing end when somebody interrupts: who waits for requests sees that. */
static int interrupted[2];
static sigset_t signals;

/* A thread that waits for SIGINT and SIGTERM, which all others leave to it. */
static void* wait_for_signal(void* cancel) {
  int received;
  sigwait(&signals, &received);
  sardonyx_cancel_set((sardonyx_cancel*)cancel, 1); /* ends what is running */
  close(interrupted[1]);
  return NULL;
}

/* The next line of standard input, without its end; NULL where there is none any more, where it is
 * too long, and once somebody interrupts. */
static char* next_line(void) {
  static char buffer[longest_line + 1];
  static size_t begin, end;
  for (;;) {
    char* const line = buffer + begin;
    char* const newline = (char*)memchr(line, '\n', end - begin);
    struct pollfd waiting[2] = {{STDIN_FILENO, POLLIN, 0}, {0, POLLIN, 0}};
    ssize_t got;
    if (newline != NULL) {
      *newline = '\0';
      begin = (size_t)(newline - buffer) + 1;
      return line;
    }
    memmove(buffer, line, end - begin);
    end -= begin;
    begin = 0;
    if (end == longest_line) {
      fprintf(stderr, "error: a line is longer than %d bytes\n", longest_line);
      return NULL;
    }
    waiting[1].fd = interrupted[0];
    if (poll(waiting, 2, -1) < 0 || waiting[1].revents != 0) return NULL;
    got = read(STDIN_FILENO, buffer + end, longest_line - end);
    if (got <= 0 && end == 0) return NULL;
    if (got <= 0)
      buffer[end++] = '\n'; /* the last line may lack its end */
    else
      end += (size_t)got;
  }
}

static struct {
  pthread_mutex_t lock; /* of all that follows, and of standard output */
  pthread_cond_t ended;
  int waiting; /* requests that were begun and not answered */
} state = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

/* One request: the memory that its run reads from, until it has ended. */
typedef struct {
  char name[longest_name + 1];
  float* numbers;
} request;

/* Prints the answer of a request and forgets it. Releases the status. */
static void answer(request* of, sardonyx_status* status, const sardonyx_value* output) {
  int64_t count = 0, i;
  float* numbers = NULL;
  if (status == NULL) status = sardonyx_tensor_type(output, NULL, NULL, NULL, &count);
  if (status == NULL) {
    numbers = (float*)malloc((size_t)(count + 1) * sizeof(float));
    status = numbers == NULL
                 ? sardonyx_status_create(SARDONYX_OUT_OF_MEMORY, "no memory for the answer")
                 : sardonyx_tensor_read_floats(output, numbers, (size_t)count);
  }
  pthread_mutex_lock(&state.lock);
  if (status != NULL) {
    printf("%s error %d %s\n", of->name, (int)sardonyx_status_code(status),
           sardonyx_status_message(status));
  } else {
    printf("%s ok", of->name);
    for (i = 0; i < count; ++i) printf(" %.9g", (double)numbers[i]);
    printf("\n");
  }
  fflush(stdout);
  --state.waiting;
  pthread_cond_signal(&state.ended);
  pthread_mutex_unlock(&state.lock);
  sardonyx_status_release(status);
  free(numbers);
  free(of->numbers);
  free(of);
}

/* Called on a thread of the session's when a run has ended. */
static void done(sardonyx_status* status, sardonyx_value** outputs, size_t count, void* user) {
  size_t i;
  answer((request*)user, status, count > 0 ? outputs[0] : NULL);
  for (i = 0; i < count; ++i) sardonyx_value_release(outputs[i]);
}

/* The sizes of the input that has this many numbers; a status where there are none. */
static sardonyx_status* shape_for(const sardonyx_value_info* input, int64_t count, int64_t* dims) {
  char message[256];
  int64_t product = 1;
  size_t i, open = input->rank; /* which one is open */
  for (i = 0; i < input->rank; ++i) {
    dims[i] = input->dims[i];
    if (dims[i] < 0 && open == input->rank)
      open = i;
    else if (dims[i] < 0)
      dims[i] = 1; /* only the first one is open to us */
    if (i == open || product > most_numbers) continue;
    product = dims[i] > most_numbers ? most_numbers + 1 : product * dims[i];
  }
  if (open < input->rank && product > 0) dims[open] = count / product;
  if (product < 1 || product > count || count % product != 0 ||
      (open == input->rank && product != count)) {
    snprintf(message, sizeof(message), "%lld numbers do not fill %.100s", (long long)count,
             input->type);
    return sardonyx_status_create(SARDONYX_BAD_INPUT, message);
  }
  return NULL;
}

/* Begins the run of a request: its answer is printed later. What can't be begun is answered now. */
static void begin(const sardonyx_session* session, const sardonyx_value_info* input,
                  const sardonyx_run_options* options, request* of, int64_t count) {
  int64_t dims[8];
  sardonyx_value* tensor = NULL;
  sardonyx_status* status = shape_for(input, count, dims);
  if (status == NULL)
    status = sardonyx_tensor_wrap(SARDONYX_FLOAT32, input->rank, dims, of->numbers,
                                  (size_t)count * sizeof(float), NULL, NULL, &tensor);
  if (status == NULL) {
    const sardonyx_value* inputs[1];
    inputs[0] = tensor;
    status = sardonyx_session_run_async(session, options, &input->name, inputs, 1, done, of);
  }
  sardonyx_value_release(tensor);
  if (status != NULL) answer(of, status, NULL);
}

/* Splits a line into name and numbers; a status where it is no request. */
static sardonyx_status* parse(char* line, request* to, int64_t* count) {
  char* at = line + strcspn(line, " ");
  char* end;
  const size_t length = (size_t)(at - line);
  snprintf(to->name, sizeof(to->name), "%.*s", (int)(length < longest_name ? length : longest_name),
           line);
  to->numbers = (float*)malloc(most_numbers * sizeof(float));
  if (to->numbers == NULL) return sardonyx_status_create(SARDONYX_OUT_OF_MEMORY, "no memory");
  for (*count = 0;; at = end, ++*count) {
    const float number = strtof(at, &end);
    if (end == at) break;
    if (*count == most_numbers)
      return sardonyx_status_create(SARDONYX_BAD_INPUT, "too many numbers");
    to->numbers[*count] = number;
  }
  if (at[strspn(at, " \r")] != '\0')
    return sardonyx_status_create(SARDONYX_BAD_INPUT, "a request is a name and numbers");
  return NULL;
}

static void serve(const sardonyx_session* session, const sardonyx_value_info* input,
                  const sardonyx_run_options* options) {
  char* line;
  while ((line = next_line()) != NULL) {
    int64_t count = 0;
    sardonyx_status* status;
    request* next = (request*)calloc(1, sizeof(*next));
    if (next == NULL) exit(SARDONYX_OUT_OF_MEMORY);
    pthread_mutex_lock(&state.lock); /* who sends faster than we answer waits */
    while (state.waiting >= most_waiting) pthread_cond_wait(&state.ended, &state.lock);
    ++state.waiting;
    pthread_mutex_unlock(&state.lock);
    status = parse(line, next, &count);
    if (status == NULL)
      begin(session, input, options, next, count);
    else
      answer(next, status, NULL);
  }
}

int main(int count, char** arguments) {
  sardonyx_session* session;
  sardonyx_value_info input = SARDONYX_INIT(sardonyx_value_info);
  sardonyx_run_options options = SARDONYX_INIT(sardonyx_run_options);
  sardonyx_cancel* cancel;
  pthread_t watcher;
  if (count < 2 || count > 4) {
    fprintf(stderr, "usage: %s MODEL [DEADLINE_MS [MEMORY_LIMIT_MB]]\n", arguments[0]);
    return 2;
  }
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL); /* also in all threads that begin from here on */
  require(sardonyx_session_load(arguments[1], NULL, NULL, &session));
  require(sardonyx_session_input(session, 0, &input));
  if (!input.has_rank || input.rank > 8 || input.element_type != SARDONYX_FLOAT32) {
    fprintf(stderr, "error: the first input must be a tensor of floats, not %s\n", input.type);
    return 1;
  }
  require(sardonyx_cancel_create(&cancel));
  options.cancel = cancel;
  options.deadline_ns = (int64_t)1000000 * (count > 2 ? atoi(arguments[2]) : 1000);
  options.memory_limit = (int64_t)1048576 * (count > 3 ? atoi(arguments[3]) : 256);

  if (pipe(interrupted) != 0 || pthread_create(&watcher, NULL, wait_for_signal, cancel) != 0) {
    fprintf(stderr, "error: the system gives no pipe or no thread\n");
    return 1;
  }
  serve(session, &input, &options);
  sardonyx_session_release(session); /* waits for what is running */
  pthread_kill(watcher, SIGTERM);    /* if it waits still */
  pthread_join(watcher, NULL);
  sardonyx_cancel_release(cancel);
  return 0;
}
