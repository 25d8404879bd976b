// The graphs of a generation operator, run step after step in one run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/contrib/generation/layout.h"
#include "ops/contrib/generation/sequences.h"
#include "ops/shared/iteration.h"

namespace sardonyx::ops::generation {

// A run of the graphs; borrows everything it is given.
class Decoding {
 public:
  virtual ~Decoding() = default;
  // Puts into `sequences` what they begin with.
  virtual void start(Sequences& sequences) = 0;
  // The first logits, `[rows or batch, tokens, vocab]`.
  virtual Tensor first(const Sequences& sequences) = 0;
  // The same after each row of `sequences` has become its row of `parents` (empty: stayed) and one
  // token more.
  virtual Tensor next(const Sequences& sequences, std::span<const int32_t> parents) = 0;
};

struct DecoderOnlyGraphs {
  DecoderOnly layout;
  Buffers first_buffers;                                // of `first`
  std::shared_ptr<const PreparedGraph> first, decoder;  // first may be null
};

struct EncoderDecoderGraphs {
  Encoder encoder_layout;
  CrossDecoder decoder_layout;
  std::shared_ptr<const PreparedGraph> encoder, decoder;
};

std::unique_ptr<Decoding> make_decoding(RunContext& run, const DecoderOnlyGraphs& graphs,
                                        const Settings& settings, const Request& request,
                                        int own_inputs);
std::unique_ptr<Decoding> make_decoding(RunContext& run, const EncoderDecoderGraphs& graphs,
                                        const Settings& settings, const Request& request,
                                        int own_inputs);

}  // namespace sardonyx::ops::generation
