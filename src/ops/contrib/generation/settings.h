// What a generation operator is asked for: by its attributes, and by the inputs of one run.
#pragma once

#include <cstdint>
#include <span>

#include "ops/operator.h"

namespace sardonyx::ops::generation {

// As ONNX Runtime has them.
inline constexpr int64_t max_sequence_length = 4096;
inline constexpr int64_t max_beams = 128;

enum class Search { greedy, beam, sampling };
enum class Form { decoder_only = 0, encoder_decoder = 1, whisper = 2 };

// Where a node has its inputs; -1: it has none of that kind. Inputs of a step that come after the
// node's own are what its graphs see of the outer one.
struct Places {
  int min_length = 2;
  int num_beams = -1, returned = -1, length_penalty = -1;
  int repetition_penalty = 3, vocab_mask = 4, prefix_mask = 5, attention_mask = 6;
  int presence_mask = -1, seed = -1, decoder_ids = -1, logits_processor = -1;
  int layer_heads = -1, forced_ids = -1, temperature = -1;
};

struct Settings {
  Search search = Search::greedy;
  Form form = Form::decoder_only;
  Places in;
  int64_t eos = 0, pad = 0, start = -1, vocab = -1, ngram = 0;
  bool early_stopping = false;
  // Sampling
  float temperature = 1, top_p = 0, filter_value = 0, presence_penalty = 0;
  int64_t min_kept = 0;
  bool custom = false;
  // Whisper
  int64_t no_speech = -1, translate = -1, transcribe = -1, start_of_lm = -1, no_timestamps = -1,
          first_timestamp = -1;
};

// Fails at attributes that no run could follow.
Settings read_settings(const NodeView& node);

// Borrows the run's inputs.
struct Request {
  int64_t batch = 0, length = 0;  // sequences, and tokens in each of them at first
  int64_t max_length = 0, min_length = 0, beams = 1, returned = 1;
  float length_penalty = 1, repetition_penalty = 1, temperature = 1;
  bool timestamps = false;
  std::span<const int32_t> vocab_mask, prefix_mask, presence_mask, forced_ids;
  int64_t vocab_of_masks = -1;  // the size that the masks have

  int64_t rows() const { return batch * beams; }
};

inline bool is_given(const RunContext& run, int i) { return i >= 0 && run.has_input(i); }

// Throws Error (run_failed) for inputs that do not go together.
Request read_request(const RunContext& run, const Settings& settings);

}  // namespace sardonyx::ops::generation
