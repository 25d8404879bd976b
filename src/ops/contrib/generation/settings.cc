#include "ops/contrib/generation/settings.h"

#include <optional>

#include "base/fail.h"
#include "kernels/convert/low_precision.h"

namespace sardonyx::ops::generation {
namespace {

Places all_places(const Settings& settings, bool whisper) {
  Places in;
  if (settings.search == Search::sampling) in.presence_mask = 7, in.seed = 8;
  if (settings.search != Search::beam) return in;
  in.num_beams = 3, in.returned = 4, in.length_penalty = 5, in.repetition_penalty = 6;
  in.vocab_mask = 7, in.prefix_mask = 8, in.attention_mask = 9;
  in.decoder_ids = 10, in.logits_processor = 11;
  if (whisper) in.layer_heads = 12, in.forced_ids = 13, in.temperature = 14;
  return in;
}

Places places_of(const NodeView& node, const Settings& settings, bool whisper) {
  Places in = all_places(settings, whisper);
  for (int* place :
       {&in.min_length, &in.num_beams, &in.returned, &in.length_penalty, &in.repetition_penalty,
        &in.vocab_mask, &in.prefix_mask, &in.attention_mask, &in.presence_mask, &in.seed,
        &in.decoder_ids, &in.logits_processor, &in.layer_heads, &in.forced_ids, &in.temperature}) {
    if (*place >= 0 && !node.has_input(*place)) *place = -1;
  }
  return in;
}

void read_sampling(const NodeView& node, Settings& s) {
  s.temperature = node.attr_float("temperature", 1), s.top_p = node.attr_float("top_p", 0);
  s.filter_value = node.attr_float("filter_value", -1e20f);
  s.presence_penalty = node.attr_float("presence_penalty", 0);
  s.min_kept = node.attr_int("min_tokens_to_keep", 0);
  s.custom = node.attr_int("custom", 0) != 0;
  if (!(s.top_p > 0)) node.fail("top_p must be above 0; got {}", s.top_p);
  if (!(s.temperature > 0)) node.fail("temperature must be above 0; got {}", s.temperature);
  if (s.min_kept < 0) node.fail("min_tokens_to_keep must be 0 or more; got {}", s.min_kept);
}

void read_whisper(const NodeView& node, Settings& s) {
  s.no_speech = node.attr_int("no_speech_token_id", -1);
  s.translate = node.attr_int("translate_token_id", -1);
  s.transcribe = node.attr_int("transcribe_token_id", -1);
  s.start_of_lm = node.attr_int("start_of_lm_token_id", -1);
  s.no_timestamps = node.attr_int("no_timestamps_token_id", -1);
  s.first_timestamp = node.attr_int("beginning_timestamp_token_id", -1);
  if (node.attr_int("decoder_output_cross_qk", 0) != 0 || node.has_output(3))
    node.fail(ErrorCode::unsupported,
              "the products of queries and keys (decoder_output_cross_qk, output cross_qk)");
}

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::run_failed, format, std::forward<Args>(args)...);
}

// The one element of input `i`; nullopt where it is absent.
std::optional<int64_t> integer(const RunContext& run, int i, std::string_view what) {
  if (!is_given(run, i)) return std::nullopt;
  if (run.in_size(i) != 1)
    refuse("{} must be one element; it has shape {}", what, to_string(run.in_shape(i)));
  return *run.in<int32_t>(i);
}

std::optional<float> number(const RunContext& run, int i, std::string_view what) {
  if (!is_given(run, i)) return std::nullopt;
  if (run.in_size(i) != 1)
    refuse("{} must be one element; it has shape {}", what, to_string(run.in_shape(i)));
  return run.in_type(i) == ElementType::float16 ? kernels::half_to_float(*run.in<uint16_t>(i))
                                                : *run.in<float>(i);
}

std::span<const int32_t> elements(const RunContext& run, int i) {
  return {run.in<int32_t>(i), static_cast<size_t>(run.in_size(i))};
}

// A mask of `[batch, vocab]`, or of `[vocab]`.
std::span<const int32_t> mask_of(const RunContext& run, int i, Request& r, bool per_sequence,
                                 std::string_view what) {
  if (!is_given(run, i)) return {};
  const auto shape = run.in_shape(i);
  if (shape.size() != (per_sequence ? 2U : 1U) || (per_sequence && shape[0] != r.batch)) {
    refuse("{} must have shape {}; it has {}", what,
           per_sequence ? fmt::format("[{}, vocab_size]", r.batch) : "[vocab_size]",
           to_string(shape));
  }
  if (r.vocab_of_masks >= 0 && r.vocab_of_masks != shape.back())
    refuse("{} is for {} tokens, a mask before it for {}", what, shape.back(), r.vocab_of_masks);
  r.vocab_of_masks = shape.back();
  return elements(run, i);
}

void read_lengths(const RunContext& run, const Settings& s, Request& r) {
  const auto shape = run.in_shape(0);
  const size_t rank = s.form == Form::whisper ? 3 : 2;
  if (shape.size() != rank)
    refuse("the first input must have {} dimensions; it has shape {}", rank, to_string(shape));
  r.batch = shape[0];
  r.length = s.form == Form::decoder_only ? shape[1] : 1;
  if (s.form == Form::whisper && is_given(run, s.in.decoder_ids)) {
    const auto ids = run.in_shape(s.in.decoder_ids);
    if (ids.size() != 2 || ids[0] != r.batch || ids[1] < 1)
      refuse("decoder_input_ids must have shape [{}, 1 or more]; it has {}", r.batch,
             to_string(ids));
    r.length = ids[1];
  }
  if (r.length < 1) refuse("input_ids must hold a token or more for each sequence");
  r.max_length = integer(run, 1, "max_length").value_or(max_sequence_length);
  r.min_length = integer(run, s.in.min_length, "min_length").value_or(0);
  if (r.max_length <= r.length || r.max_length > max_sequence_length)
    refuse("max_length must be above the {} tokens there are and at most {}; it is {}", r.length,
           max_sequence_length, r.max_length);
  if (r.min_length >= r.max_length)
    refuse("min_length must be below max_length {}; it is {}", r.max_length, r.min_length);
}

void read_beams(const RunContext& run, const Settings& s, Request& r) {
  r.beams = integer(run, s.in.num_beams, "num_beams").value_or(1);
  r.returned = integer(run, s.in.returned, "num_return_sequences").value_or(1);
  if (r.beams < 1 || r.beams > max_beams)
    refuse("num_beams must be in [1, {}]; it is {}", max_beams, r.beams);
  if (r.returned < 1 || r.returned > r.beams)
    refuse("num_return_sequences must be in [1, num_beams {}]; it is {}", r.beams, r.returned);
  // What tells sequences apart is counted in 31 bits.
  if (r.batch > INT32_MAX / r.beams / max_sequence_length)
    refuse("{} sequences with {} beams are too many", r.batch, r.beams);
  r.length_penalty = number(run, s.in.length_penalty, "length_penalty").value_or(1);
}

}  // namespace

Settings read_settings(const NodeView& node) {
  Settings s;
  const std::string_view op = node.node().op_type;
  const bool whisper = op == "WhisperBeamSearch";
  s.search = op == "GreedySearch" ? Search::greedy
             : op == "Sampling"   ? Search::sampling
                                  : Search::beam;
  s.in = places_of(node, s, whisper);
  const int64_t form = node.attr_int("model_type", whisper ? 2 : 0);
  if (form < 0 || form > 2)
    node.fail("model_type must be 0 (decoder only), 1 (encoder and decoder) or 2 (Whisper); got {}",
              form);
  s.form = static_cast<Form>(form);
  if (whisper && s.form != Form::whisper) node.fail("model_type must be 2; got {}", form);
  if (s.search != Search::beam && s.form != Form::decoder_only)
    node.fail(ErrorCode::unsupported, "model_type {}: this operator has decoders only", form);
  s.eos = node.attr_int("eos_token_id"), s.pad = node.attr_int("pad_token_id");
  if (s.eos < 0 || s.eos > INT32_MAX)
    node.fail("eos_token_id must be a token's number; got {}", s.eos);
  if (s.pad < 0 || s.pad > INT32_MAX)
    node.fail("pad_token_id must be a token's number; got {}", s.pad);
  s.start = node.attr_int("decoder_start_token_id", -1);
  if (s.start > INT32_MAX) node.fail("decoder_start_token_id {} is no token's number", s.start);
  s.vocab = node.attr_int("vocab_size", -1);
  if (s.vocab > (int64_t{1} << 24)) node.fail("vocab_size {} is too large", s.vocab);
  s.ngram = node.attr_int("no_repeat_ngram_size", 0);
  s.early_stopping = node.attr_int("early_stopping", 0) == 1;
  if (s.search == Search::sampling) read_sampling(node, s);
  if (whisper) read_whisper(node, s);
  return s;
}

Request read_request(const RunContext& run, const Settings& s) {
  Request r;
  read_lengths(run, s, r);
  read_beams(run, s, r);
  r.repetition_penalty = number(run, s.in.repetition_penalty, "repetition_penalty").value_or(1);
  if (!(r.repetition_penalty > 0))
    refuse("repetition_penalty must be above 0; it is {}", r.repetition_penalty);
  r.temperature = s.search == Search::sampling
                      ? s.temperature
                      : number(run, s.in.temperature, "temperature").value_or(1);
  r.vocab_mask = mask_of(run, s.in.vocab_mask, r, false, "vocab_mask");
  r.prefix_mask = mask_of(run, s.in.prefix_mask, r, true, "prefix_vocab_mask");
  r.presence_mask = mask_of(run, s.in.presence_mask, r, true, "presence_mask");
  const int64_t processor = integer(run, s.in.logits_processor, "logits_processor").value_or(0);
  if (processor < 0) refuse("logits_processor must be 0 or more; it is {}", processor);
  r.timestamps = processor == 1 && s.form == Form::whisper;
  if (is_given(run, s.in.forced_ids)) r.forced_ids = elements(run, s.in.forced_ids);
  if (const int i = s.in.attention_mask; is_given(run, i) && s.form != Form::whisper) {
    const auto shape = run.in_shape(i), ids = run.in_shape(0);
    if (!std::equal(shape.begin(), shape.end(), ids.begin(), ids.end()))
      refuse("attention_mask must have the shape of input_ids, {}; it has {}", to_string(ids),
             to_string(shape));
  }
  return r;
}

}  // namespace sardonyx::ops::generation
