// Generation by an encoder and a decoder that attends to what it gives (T5's and Whisper's forms).
#include <cstring>

#include "base/fail.h"
#include "ops/contrib/generation/decoding.h"
#include "ops/contrib/generation/rows.h"
#include "ops/contrib/generation/states.h"

namespace sardonyx::ops::generation {
namespace {

class EncoderDecoding final : public Decoding {
 public:
  EncoderDecoding(RunContext& run, const EncoderDecoderGraphs& graphs, const Settings& settings,
                  const Request& request, int own_inputs)
      : run_(run),
        graphs_(graphs),
        encoder_(graphs.encoder_layout),
        decoder_(graphs.decoder_layout),
        settings_(settings),
        request_(request),
        held_(run.environment(), 4 * static_cast<size_t>(encoder_.layers) + 1),
        all_rows_(starts_with_all_rows(run, request, own_inputs, decoder_.fixed_rows)) {}

  void start(Sequences& sequences) override {
    const int given = settings_.in.decoder_ids;
    if (settings_.form == Form::whisper && is_given(run_, given)) {
      prompt_.assign(run_.in<int32_t>(given), run_.in<int32_t>(given) + run_.in_size(given));
    } else {
      if (settings_.start < 0)
        fail(ErrorCode::run_failed, "decoder_start_token_id must say which token begins; it is {}",
             settings_.start);
      prompt_.assign(static_cast<size_t>(request_.batch), static_cast<int32_t>(settings_.start));
    }
    sequences.start(prompt_, request_.length, request_.beams);
  }

  Tensor first(const Sequences&) override {
    const Tensor prompt =
        Tensor::of<int32_t>(std::span<const int32_t>(prompt_), {request_.batch, request_.length});
    std::vector<Value> values = {run_.in_value(0)};
    if (encoder_.masked) values.push_back(mask_ = encoder_mask());
    if (encoder_.starts_decoder) values.push_back(prompt);
    std::vector<Value> made = graphs_.encoder->run(run_, values);
    take_encoded(made);
    if (encoder_.starts_decoder) return logits_of(made[0], request_.batch, request_.length);
    const Shape empty = {request_.batch, encoder_.heads, 0, encoder_.head_size};
    for (int64_t i = 0; i < 2 * encoder_.layers; ++i)
      presents_.emplace_back(Tensor(encoder_.type, empty));
    if (decoder_.buffers.are_there) into_buffers();
    if (all_rows_) spread();
    return decode(all_rows_ ? repeat_rows(run_.environment(), prompt, 0, request_.beams) : prompt,
                  {});
  }

  Tensor next(const Sequences& sequences, std::span<const int32_t> parents) override {
    spread();
    return decode(decoder_.whole_sequence ? all_tokens(sequences) : last_tokens(sequences),
                  parents);
  }

 private:
  // Padding before the first token is no input; what follows it may be.
  Tensor encoder_mask() const {
    const int given = settings_.in.attention_mask;
    if (is_given(run_, given)) return run_.in_value(given).tensor();
    const auto shape = run_.in_shape(0);
    Tensor mask(ElementType::int32, Shape(shape.begin(), shape.end()));
    const auto* ids = run_.in<int32_t>(0);
    auto* to = mask.mutable_elements<int32_t>().data();
    for (int64_t i = 0; i < shape[0]; ++i) {
      bool any = false;
      for (int64_t j = 0; j < shape[1]; ++j) *to++ = any |= *ids++ != settings_.pad;
    }
    return mask;
  }

  // What the encoder gave is there for each sequence of the batch.
  void take_encoded(std::vector<Value>& made) {
    const auto layers = static_cast<size_t>(encoder_.layers);
    if (encoder_.starts_decoder) {
      require_shape(made[1], encoder_.type, Shape{request_.batch, -1, -1}, "encoder_hidden_states");
      if (decoder_.hidden) hidden_ = made[1];
      held_.carry(4 * layers, hidden_);
      take(made, encoder_.first_self(), request_.batch, -1, presents_, 0);
      if (decoder_.buffers.are_there) into_buffers();
    }
    take(made, encoder_.first_cross(), request_.batch, -1, cross_, 2 * layers);
    rows_ = past_rows_ = request_.batch;
  }

  // The states become buffers of max_length, of which they are the first tokens.
  void into_buffers() {
    past_ = presents_[0].tensor().shape()[2];
    for (size_t i = 0; i < presents_.size(); ++i) {
      const Tensor& short_one = presents_[i].tensor();
      if (short_one.shape()[2] != past_ || past_ > request_.max_length)
        fail(ErrorCode::run_failed, "the graph 'encoder' gave states of {} and {} tokens", past_,
             short_one.shape()[2]);
      Shape shape = short_one.shape();
      shape[2] = request_.max_length;
      Tensor made = charged_tensor(run_.environment(), encoder_.type, shape);
      std::memset(made.mutable_data(), 0, made.byte_size());
      const size_t count = static_cast<size_t>(shape[0] * shape[1]);
      if (count == 0) continue;
      const size_t from = short_one.byte_size() / count, to = made.byte_size() / count;
      for (size_t r = 0; r < count && from > 0; ++r)
        std::memcpy(static_cast<std::byte*>(made.mutable_data()) + r * to,
                    static_cast<const std::byte*>(short_one.data()) + r * from, from);
      presents_[i] = std::move(made);
      held_.carry(i, presents_[i]);
    }
  }

  // Keys and values of all layers, from output `first` on; -1: of any length.
  void take(std::vector<Value>& made, size_t first, int64_t rows, int64_t length,
            std::vector<Value>& to, size_t holds) {
    const Shape shape = {rows, encoder_.heads, length, encoder_.head_size};
    to.clear();
    for (size_t i = 0; i < 2 * static_cast<size_t>(encoder_.layers); ++i) {
      require_shape(made[first + i], encoder_.type, shape, fmt::format("output {}", first + i));
      held_.carry(holds + i, made[first + i]);
      to.push_back(std::move(made[first + i]));
    }
  }

  // What the batch has in common becomes rows of their own, except for the past.
  void spread() {
    if (rows_ == request_.rows()) return;
    rows_ = request_.rows();
    const auto spread = [&](Value& value) {
      if (value.is_tensor())
        value = repeat_rows(run_.environment(), value.tensor(), 0, request_.beams);
    };
    spread(mask_), spread(hidden_);
    held_.carry(4 * static_cast<size_t>(encoder_.layers), hidden_);
    for (size_t i = 0; i < cross_.size(); ++i) {
      spread(cross_[i]);
      held_.carry(cross_.size() + i, cross_[i]);
    }
  }

  Tensor decode(Tensor ids, std::span<const int32_t> parents) {
    const int64_t length = ids.shape()[1];
    std::vector<Value> values = {std::move(ids)};
    if (decoder_.masked) values.push_back(mask_);
    if (decoder_.hidden) values.push_back(hidden_);
    std::vector<int32_t> from(static_cast<size_t>(rows_));
    const int64_t shared = rows_ / past_rows_;
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t parent = parents.empty() ? i : parents[static_cast<size_t>(i)];
      from[static_cast<size_t>(i)] = static_cast<int32_t>(parent / shared);
    }
    for (Value& present : presents_) {
      values.push_back(pick_rows(run_.environment(), present.tensor(), 0, from));
      present = Value();
    }
    values.insert(values.end(), cross_.begin(), cross_.end());
    add_buffer_inputs(run_.environment(), decoder_.buffers, request_, rows_, past_, values);
    std::vector<Value> made = graphs_.decoder->run(run_, values);
    past_rows_ = rows_;
    past_ += length;
    take(made, CrossDecoder::first_present, rows_,
         decoder_.buffers.are_there ? request_.max_length : -1, presents_, 0);
    return logits_of(made[0], rows_, length);
  }

  static Tensor all_tokens(const Sequences& sequences) {
    Tensor tokens(ElementType::int32, {sequences.rows(), sequences.length()});
    auto* to = tokens.mutable_elements<int32_t>().data();
    for (int64_t i = 0; i < sequences.rows(); ++i, to += sequences.length())
      std::copy_n(sequences.row(i).begin(), sequences.length(), to);
    return tokens;
  }

  RunContext& run_;
  const EncoderDecoderGraphs& graphs_;
  const Encoder& encoder_;
  const CrossDecoder& decoder_;
  const Settings& settings_;
  const Request& request_;
  HeldValues held_;
  const bool all_rows_;  // the decoder never runs for the batch
  int64_t rows_ = 0, past_rows_ = 0;
  int64_t past_ = 0;  // tokens in the buffers, where the states are such
  std::vector<int32_t> prompt_;
  Value mask_, hidden_;
  std::vector<Value> presents_, cross_;
};

}  // namespace

std::unique_ptr<Decoding> make_decoding(RunContext& run, const EncoderDecoderGraphs& graphs,
                                        const Settings& settings, const Request& request,
                                        int own_inputs) {
  return std::make_unique<EncoderDecoding>(run, graphs, settings, request, own_inputs);
}

}  // namespace sardonyx::ops::generation
