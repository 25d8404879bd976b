#include "ops/contrib/generation/rows.h"

#include "base/fail.h"
#include "base/value_kind.h"

namespace sardonyx::ops::generation {

bool starts_with_all_rows(const RunContext& run, const Request& request, int own_inputs,
                          bool fixed_rows) {
  if (fixed_rows || request.beams == 1) return true;
  for (int i = own_inputs; i < run.input_count(); ++i) {
    if (!run.has_input(i)) continue;
    for (const int64_t size : run.in_shape(i)) {
      if (size == request.rows()) return true;
    }
  }
  return false;
}

Tensor logits_of(const Value& value, int64_t rows, int64_t tokens) {
  if (!value.is_tensor())
    fail(ErrorCode::run_failed, "'logits' must be a tensor; the graph gives {}",
         with_article(value.kind()));
  const Tensor& logits = value.tensor();
  const Shape& shape = logits.shape();
  const ElementType type = logits.element_type();
  const bool typed = type == ElementType::float32 || type == ElementType::float16;
  if (!typed || shape.size() != 3 || shape[0] != rows || shape[1] < 1 || shape[1] > tokens ||
      shape[2] < 1) {
    fail(ErrorCode::run_failed,
         "'logits' must be float or float16 of shape [{}, {}, tokens of the vocabulary]; the graph "
         "gives {} of {}",
         rows, tokens, name_of(type), to_string(shape));
  }
  return logits;
}

void add_buffer_inputs(RunEnvironment& environment, const Buffers& buffers, const Request& request,
                       int64_t rows, int64_t past, std::vector<Value>& values) {
  if (!buffers.are_there) return;
  values.push_back(Tensor::of<int32_t>({static_cast<int32_t>(past)}, {1}));
  if (!buffers.of_beams) return;
  const int64_t beams = request.batch > 0 ? rows / request.batch : 1;
  values.push_back(Tensor::of<int32_t>({static_cast<int32_t>(beams)}, {1}));
  Tensor own =
      charged_tensor(environment, ElementType::int32, {request.batch, beams, request.max_length});
  auto* to = own.mutable_elements<int32_t>().data();
  for (int64_t i = 0; i < request.batch * beams; ++i, to += request.max_length)
    std::fill_n(to, request.max_length, static_cast<int32_t>(i % beams));
  values.push_back(std::move(own));
}

Tensor last_tokens(const Sequences& sequences) {
  Tensor tokens(ElementType::int32, {sequences.rows(), 1});
  for (int64_t i = 0; i < sequences.rows(); ++i)
    tokens.mutable_elements<int32_t>()[static_cast<size_t>(i)] = sequences.row(i).back();
  return tokens;
}

}  // namespace sardonyx::ops::generation
