// The recurrence of one direction of an LSTM, with what its gradient reads, and that gradient. The
// products with the inputs and what flows into the weights are not part of it: they are one product
// for all steps each, made by whoever calls.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// Sequences end after `lengths` steps (int64 [batch], null: all after `steps`). From there on
// states stay, and gates and y are 0. `reverse` begins with the last step; it takes no lengths.
struct LstmRecurrenceShape {
  int64_t steps = 0, batch = 0, hidden = 0;
  bool reverse = false;
};

// Gates are i o f g, of the functions sigmoid, sigmoid, sigmoid and tanh.
template <class T>  // float or double
struct LstmRecurrence {
  const T* sums = nullptr;  // [steps, batch, 4 * hidden]: what inputs and biases add to the gates
  const T* r = nullptr;     // [4 * hidden, hidden]
  const T *h = nullptr, *c = nullptr;  // [batch, hidden]: the initial states
  const int64_t* lengths = nullptr;    // optional
  T* y = nullptr;                      // optional: [steps, batch, hidden]
  T *y_h = nullptr, *y_c = nullptr;    // optional: [batch, hidden]
  T* gates = nullptr;                  // [steps, batch, 4 * hidden]; may be sums
  T* cells = nullptr;                  // [steps, batch, hidden]
};

// What flows back; all d… but `sums` are optional.
template <class T>
struct LstmRecurrenceGradient {
  const T *r = nullptr, *gates = nullptr, *cells = nullptr, *c = nullptr;  // as above
  const int64_t* lengths = nullptr;
  const T *y = nullptr, *y_h = nullptr, *y_c = nullptr;  // what flows into y, y_h and y_c
  const T *of_gates = nullptr, *of_cells = nullptr;      // and into gates and cells
  T* sums = nullptr;                                     // what flows into sums; may be gates
  T *h = nullptr, *c_initial = nullptr;                  // and into the initial states
};

template <class T>
int64_t lstm_recurrence_scratch_bytes(const LstmRecurrenceShape& shape, int threads);
template <class T>
int64_t lstm_recurrence_gradient_scratch_bytes(const LstmRecurrenceShape& shape, int threads);

// `scratch` is aligned to 64 bytes. Results do not depend on the number of threads.
template <class T>
void lstm_recurrence(const LstmRecurrenceShape& shape, const LstmRecurrence<T>& job, void* scratch,
                     ThreadPool& pool);
template <class T>
void lstm_recurrence_gradient(const LstmRecurrenceShape& shape,
                              const LstmRecurrenceGradient<T>& job, void* scratch,
                              ThreadPool& pool);

}  // namespace sardonyx::kernels
