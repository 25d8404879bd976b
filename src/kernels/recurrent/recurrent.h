// The recurrent layers RNN, GRU and LSTM over whole sequences.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

enum class RecurrentKind : int32_t { rnn, gru, lstm };

// A gate's activation, with the parameters of the standard's operator of that name.
enum class GateFunction : int32_t {
  relu,
  tanh,
  sigmoid,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  hard_sigmoid,
  elu,
  softsign,
  softplus
};
struct Gate {
  GateFunction function = GateFunction::tanh;
  float alpha = 0, beta = 0;
};

// Gates are in the standard's order: i o f c of LSTM, z r h of GRU. Trivially copyable.
struct RecurrentShape {
  RecurrentKind kind = RecurrentKind::rnn;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  int directions = 1;
  bool reverse = false;      // the only direction runs backwards; of two it is the second
  bool batch_first = false;  // x [batch, steps, input], y [batch, steps, directions, hidden],
                             // states [batch, directions, hidden]
  bool linear_before_reset = false;  // GRU
  bool input_forget = false;         // LSTM
  float clip = 0;                    // 0: none
  bool clips_cell = true;            // LSTM: the input of h, too
  Gate gates[2][3];                  // of each direction: f, g, h

  int64_t gate_count() const {
    return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1;
  }
  int64_t gate_columns() const { return gate_count() * hidden; }
};

// Weights in the form the products want: packed for float, as they are for double.
template <class T>
int64_t recurrent_input_pack_bytes(const RecurrentShape& shape);
template <class T>
int64_t recurrent_state_pack_bytes(const RecurrentShape& shape);
// w is [directions, gates * hidden, input], r [directions, gates * hidden, hidden].
template <class T>
void pack_recurrent_input(const RecurrentShape& shape, const T* w, void* packed, ThreadPool* pool);
template <class T>
void pack_recurrent_state(const RecurrentShape& shape, const T* r, void* packed, ThreadPool* pool);

// Pointers said to be optional may be null.
template <class T>
struct RecurrentData {
  const T* x = nullptr;
  const void* w = nullptr;           // packed
  const void* r = nullptr;           // packed
  const T* bias = nullptr;           // optional: [directions, 2 * gates * hidden]
  const int32_t* lengths = nullptr;  // optional: [batch], each in [0, steps] (clamped to it)
  const T* h0 = nullptr;             // optional
  const T* c0 = nullptr;             // optional, LSTM
  const T* peephole = nullptr;       // optional, LSTM: [directions, 3 * hidden], i o f
  T* y = nullptr;                    // optional; zeros after a sequence's end
  T* y_h = nullptr;                  // optional
  T* y_c = nullptr;                  // optional
};

template <class T>
int64_t recurrent_scratch_bytes(const RecurrentShape& shape, int threads);
template <class T>
void run_recurrent(const RecurrentShape& shape, const RecurrentData<T>& data, void* scratch,
                   ThreadPool& pool);

}  // namespace sardonyx::kernels
