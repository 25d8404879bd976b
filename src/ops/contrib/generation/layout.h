// The graphs of a generation operator: what their inputs and outputs are, in which order.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ops/contrib/generation/settings.h"

namespace sardonyx::ops::generation {

// Makes a size for what is open; the same one for the same name.
using OpenSize = std::function<Dim(std::string_view)>;

// What a graph takes after its states where these are buffers of max_length: the past's length;
// and perhaps the number of beams and, for each, from which beam of its sequence each past token
// comes. States move with their beams here, so that a beam's tokens are always its own.
struct Buffers {
  bool are_there = false, of_beams = false;

  size_t inputs() const { return of_beams ? 3 : are_there ? 1 : 0; }
  void add_to(std::vector<ValueFacts>& inputs, const OpenSize& size, const Dim& max_length) const;
};

// A decoder without an encoder: `input_ids, position_ids, attention_mask, past_0 …` [, what
// Buffers says] gives `logits, present_0 …`, each past `[2, rows, heads, length, head size]`.
struct DecoderOnly {
  ElementType type = ElementType::undefined;  // of past and present
  int64_t layers = 0, heads = 0, head_size = 0;
  Buffers buffers;
  bool fixed_rows = false;  // the graph says how many rows it takes

  static constexpr size_t first_past = 3, first_present = 1;
  static DecoderOnly of(const NodeView& node, const ir::Graph& graph, std::string_view attribute);
  std::vector<ValueFacts> inputs(const OpenSize& size) const;
  // What one gives is what the other takes.
  bool hands_on_to(const DecoderOnly& other) const {
    return type == other.type && layers == other.layers && heads == other.heads &&
           head_size == other.head_size && buffers.are_there == other.buffers.are_there;
  }
};

// An encoder, which may also start the decoder: `encoder_input_ids [, encoder_attention_mask] [,
// decoder_input_ids]` gives keys and values of the cross attentions, before which come, where it
// has decoder_input_ids, `logits, encoder_hidden_states` and keys and values of the
// self-attentions.
struct Encoder {
  ElementType type = ElementType::undefined;  // of its outputs
  int64_t layers = 0, heads = 0, head_size = 0;
  bool masked = false, starts_decoder = false;

  size_t first_self() const { return 2; }
  size_t first_cross() const {
    return starts_decoder ? first_self() + 2 * static_cast<size_t>(layers) : 0;
  }
  static Encoder of(const NodeView& node, const ir::Graph& graph, Form form);
  // `features`: what the node's first input is.
  std::vector<ValueFacts> inputs(const OpenSize& size, const ValueType& features) const;
};

// Its decoder: `input_ids [, encoder_attention_mask] [, encoder_hidden_states]`, keys and values of
// the self-attentions, then those of the cross attentions, all `[rows, heads, length, head size]`
// [, what Buffers says of the former]; gives `logits` and keys and values of the self-attentions.
struct CrossDecoder {
  bool masked = false, hidden = false, whole_sequence = false, fixed_rows = false;
  Buffers buffers;
  int64_t layers = 0;

  size_t first_past() const { return 1 + (masked ? 1 : 0) + (hidden ? 1 : 0); }
  size_t first_cross() const { return first_past() + 2 * static_cast<size_t>(layers); }
  static constexpr size_t first_present = 1;
  static CrossDecoder of(const NodeView& node, const ir::Graph& graph, const Encoder& encoder);
  std::vector<ValueFacts> inputs(const OpenSize& size, const Encoder& encoder,
                                 const ir::Graph& graph) const;
};

// The last size that the graph's first output declares; -1 where it says none.
int64_t declared_vocab(const ir::Graph& graph);

// The graph attribute; fails where it is absent.
const ir::Graph& required_graph(const NodeView& node, std::string_view attribute);

}  // namespace sardonyx::ops::generation
