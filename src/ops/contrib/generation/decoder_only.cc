// Generation by a decoder alone (GPT-2's form).
#include <cstring>

#include "base/fail.h"
#include "ops/contrib/generation/decoding.h"
#include "ops/contrib/generation/rows.h"
#include "ops/contrib/generation/states.h"

namespace sardonyx::ops::generation {
namespace {

class DecoderOnlyDecoding final : public Decoding {
 public:
  DecoderOnlyDecoding(RunContext& run, const DecoderOnlyGraphs& graphs, const Settings& settings,
                      const Request& request, int own_inputs)
      : run_(run),
        graphs_(graphs),
        layout_(graphs.layout),
        request_(request),
        held_(run.environment(), static_cast<size_t>(layout_.layers)),
        prompt_rows_(starts_with_all_rows(run, request, own_inputs, layout_.fixed_rows)
                         ? request.rows()
                         : request.batch) {
    read_prompt(settings);
  }

  void start(Sequences& sequences) override {
    sequences.start({run_.in<int32_t>(0), static_cast<size_t>(run_.in_size(0))}, request_.length,
                    request_.beams);
  }

  Tensor first(const Sequences&) override {
    const int64_t each = prompt_rows_ / request_.batch;
    const Shape shape = {request_.batch, request_.length};
    const auto prompt = [&](const int32_t* data) {
      const auto bytes = static_cast<size_t>(request_.batch * request_.length) * sizeof(int32_t);
      return repeat_rows(run_.environment(), Tensor::view(ElementType::int32, shape, data, bytes),
                         0, each);
    };
    std::vector<Value> values = {prompt(run_.in<int32_t>(0)), prompt(positions_.data()),
                                 prompt(mask_.data())};
    const Shape past = {2, prompt_rows_, layout_.heads,
                        layout_.buffers.are_there ? request_.max_length : 0, layout_.head_size};
    for (int64_t i = 0; i < layout_.layers; ++i) {
      Tensor empty = charged_tensor(run_.environment(), layout_.type, past);
      std::memset(empty.mutable_data(), 0, empty.byte_size());
      values.push_back(std::move(empty));
    }
    return run(graphs_.first ? *graphs_.first : *graphs_.decoder, std::move(values), prompt_rows_,
               request_.length);
  }

  Tensor next(const Sequences& sequences, std::span<const int32_t> parents) override {
    const int64_t rows = request_.rows(), length = sequences.length();
    std::vector<Value> values = {last_tokens(sequences), next_positions(length), next_mask(length)};
    // What the batch has in common becomes rows of their own with the first choice.
    std::vector<int32_t> from(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t parent =
          parents.empty() ? static_cast<int32_t>(i) : parents[static_cast<size_t>(i)];
      from[static_cast<size_t>(i)] =
          rows_now_ == rows ? parent : parent / static_cast<int32_t>(request_.beams);
    }
    for (Value& present : presents_) {
      values.push_back(pick_rows(run_.environment(), present.tensor(), 1, from));
      present = Value();
    }
    return run(*graphs_.decoder, std::move(values), rows, 1);
  }

 private:
  // Tokens that pad are at position 0, the others are counted.
  void read_prompt(const Settings& settings) {
    const auto* ids = run_.in<int32_t>(0);
    const int mask_input = settings.in.attention_mask;
    const auto* mask = is_given(run_, mask_input) ? run_.in<int32_t>(mask_input) : nullptr;
    for (int64_t i = 0; i < request_.batch; ++i) {
      int32_t position = 0;
      for (int64_t j = 0; j < request_.length; ++j, ++ids) {
        const bool pads = *ids == settings.pad;
        mask_.push_back(mask != nullptr ? *mask++ : pads ? 0 : 1);
        positions_.push_back(pads ? 0 : position++);
      }
      counted_.push_back(position);
    }
  }

  Tensor next_positions(int64_t length) const {
    const int64_t made = length - request_.length - 1;
    Tensor positions(ElementType::int32, {request_.rows(), 1});
    for (int64_t i = 0; i < request_.rows(); ++i)
      positions.mutable_elements<int32_t>()[static_cast<size_t>(i)] =
          counted_[static_cast<size_t>(i / request_.beams)] + static_cast<int32_t>(made);
    return positions;
  }

  Tensor next_mask(int64_t length) const {
    Tensor mask(ElementType::int32, {request_.rows(), length});
    auto* to = mask.mutable_elements<int32_t>().data();
    for (int64_t i = 0; i < request_.rows(); ++i, to += length) {
      std::copy_n(mask_.begin() + i / request_.beams * request_.length, request_.length, to);
      std::fill(to + request_.length, to + length, 1);
    }
    return mask;
  }

  Tensor run(const PreparedGraph& graph, std::vector<Value> values, int64_t rows, int64_t length) {
    const bool is_first = &graph == graphs_.first.get();
    add_buffer_inputs(run_.environment(), is_first ? graphs_.first_buffers : layout_.buffers,
                      request_, rows, past_, values);
    std::vector<Value> made = graph.run(run_, values);
    past_ += length;
    rows_now_ = rows;
    const Shape present = {2, rows, layout_.heads,
                           layout_.buffers.are_there ? request_.max_length : past_,
                           layout_.head_size};
    presents_.clear();
    for (size_t i = 0; i < static_cast<size_t>(layout_.layers); ++i) {
      Value& value = made[DecoderOnly::first_present + i];
      require_shape(value, layout_.type, present, fmt::format("present_{}", i));
      held_.carry(i, value);
      presents_.push_back(std::move(value));
    }
    return logits_of(made[0], rows, length);
  }

  RunContext& run_;
  const DecoderOnlyGraphs& graphs_;
  const DecoderOnly& layout_;
  const Request& request_;
  HeldValues held_;
  int64_t prompt_rows_, rows_now_ = 0, past_ = 0;
  std::vector<int32_t> mask_, positions_, counted_;  // of the batch
  std::vector<Value> presents_;
};

}  // namespace

std::unique_ptr<Decoding> make_decoding(RunContext& run, const DecoderOnlyGraphs& graphs,
                                        const Settings& settings, const Request& request,
                                        int own_inputs) {
  return std::make_unique<DecoderOnlyDecoding>(run, graphs, settings, request, own_inputs);
}

}  // namespace sardonyx::ops::generation
