#include "ops/contrib/generation/search.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/convert/tiles.h"
#include "kernels/random/philox.h"
#include "ops/contrib/generation/beams.h"
#include "ops/contrib/generation/scores.h"
#include "ops/shared/memory.h"

namespace sardonyx::ops::generation {
namespace {

// What a search keeps of its own is charged for as long as it runs.
void charge_elements(RunEnvironment& environment, std::initializer_list<int64_t> sizes,
                     int64_t bytes_each) {
  const auto count = checked_count(std::vector<int64_t>(sizes));
  const auto bytes = count ? checked_mul(*count, bytes_each) : std::nullopt;
  if (!bytes) fail(ErrorCode::out_of_memory, "the search needs more memory than there can be");
  environment.charge(*bytes);
}

// The tokens so far and the scores of the next ones.
class State {
 public:
  State(RunContext& run, Decoding& decoding, const Settings& settings, const Request& request)
      : run_(run),
        decoding_(decoding),
        settings_(settings),
        request_(request),
        sequences_((charge_elements(run.environment(), {request.rows(), request.max_length}, 8),
                    request.rows()),
                   request.max_length) {
    decoding.start(sequences_);
  }

  Sequences& sequences() { return sequences_; }
  int64_t step() const { return step_; }
  int64_t vocab() const { return vocab_; }
  std::span<float> scores() { return scores_; }
  bool is_full() const { return sequences_.length() >= request_.max_length; }

  // Runs the graphs once more; scores() are the last position's logits of every row.
  void ask(std::span<const int32_t> parents) {
    run_.environment().check_cancelled();
    const Tensor logits =
        ++step_ == 1 ? decoding_.first(sequences_) : decoding_.next(sequences_, parents);
    const Shape& shape = logits.shape();
    if (step_ == 1) take_vocab(shape[2]);
    if (shape[2] < vocab_)
      fail(ErrorCode::run_failed, "'logits' must have {} tokens (vocab_size); the graph gives {}",
           vocab_, shape[2]);
    const int64_t each = request_.rows() / shape[0];
    for (int64_t i = 0; i < request_.rows(); ++i)
      copy_row(logits, (i / each * shape[1] + shape[1] - 1) * shape[2],
               scores_.data() + i * vocab_);
  }
  void process() { process_scores(settings_, request_, sequences_, vocab_, step_, scores_); }

 private:
  void take_vocab(int64_t width) {
    vocab_ = settings_.vocab > 0 ? settings_.vocab : width;
    if (request_.vocab_of_masks >= 0 && request_.vocab_of_masks != vocab_)
      fail(ErrorCode::run_failed, "the masks of tokens must be for {} tokens; they are for {}",
           vocab_, request_.vocab_of_masks);
    charge_elements(run_.environment(), {request_.rows(), vocab_}, 4);
    scores_.resize(static_cast<size_t>(request_.rows() * vocab_));
  }
  void copy_row(const Tensor& logits, int64_t at, float* to) const {
    if (logits.element_type() == ElementType::float16) {
      kernels::half_to_floats(static_cast<const uint16_t*>(logits.data()) + at, to, vocab_);
    } else {
      std::copy_n(static_cast<const float*>(logits.data()) + at, vocab_, to);
    }
  }

  RunContext& run_;
  Decoding& decoding_;
  const Settings& settings_;
  const Request& request_;
  Sequences sequences_;
  int64_t step_ = 0, vocab_ = 0;
  std::vector<float> scores_;
};

// Draws from what the scores leave.
class Sampler {
 public:
  Sampler(RunContext& run, const Settings& settings, uint64_t stream)
      : settings_(settings), pool_(run.pool()) {
    const int seed = settings.in.seed;
    if (is_given(run, seed)) {
      if (run.in_size(seed) != 1)
        fail(ErrorCode::run_failed, "seed must be one element; it has shape {}",
             to_string(run.in_shape(seed)));
      key_ = static_cast<uint32_t>(*run.in<int32_t>(seed));
    } else {
      const auto [key, turn] = run.environment().random().next(stream);
      key_ = key, turn_ = turn + 1;
    }
  }
  void draw(std::span<float> scores, int64_t vocab, std::span<int32_t> tokens, int64_t step) {
    keep_likeliest(settings_, vocab, scores);
    const auto rows = static_cast<int64_t>(tokens.size());
    drawn_.resize(tokens.size());
    // Streams of one run are those of its turn.
    const kernels::Philox random(key_,
                                 turn_ * (max_sequence_length + 1) + static_cast<uint64_t>(step));
    kernels::multinomial(ElementType::float32, random, scores.data(), rows, vocab, 1, drawn_.data(),
                         pool_);
    std::copy(drawn_.begin(), drawn_.end(), tokens.begin());
  }

 private:
  const Settings& settings_;
  ThreadPool& pool_;
  uint64_t key_ = 0, turn_ = 0;
  std::vector<int64_t> drawn_;
};

// Of equal scores the first.
void choose_best(std::span<const float> scores, int64_t vocab, std::span<int32_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto row = scores.subspan(i * static_cast<size_t>(vocab), static_cast<size_t>(vocab));
    tokens[i] = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
  }
}

// Output i of floats, of the type that the step has for it.
void give_floats(RunContext& run, int i, const Shape& shape, std::span<const float> values) {
  if (!run.has_output(i)) return;
  void* to = run.allocate_output(i, shape);
  if (run.out_type(i) == ElementType::float16) {
    kernels::floats_to_half(values.data(), static_cast<uint16_t*>(to),
                            static_cast<int64_t>(values.size()));
  } else if (!values.empty()) {
    std::memcpy(to, values.data(), values.size_bytes());
  }
}

void write_row(std::span<const int32_t> tokens, int64_t max_length, int64_t pad, int32_t*& to) {
  std::copy(tokens.begin(), tokens.end(), to);
  std::fill(to + tokens.size(), to + max_length, static_cast<int32_t>(pad));
  to += max_length;
}

int64_t vocab_of_none(const Settings& settings, const SearchOptions& options) {
  return settings.vocab > 0 ? settings.vocab : std::max<int64_t>(options.declared_vocab, 0);
}

}  // namespace

void run_greedily(RunContext& run, Decoding& decoding, const Settings& settings,
                  const Request& request, const SearchOptions& options) {
  const RunEnvironment::Scope scope(run.environment());
  std::optional<State> state;
  const int64_t rows = request.rows();
  if (rows > 0) {
    state.emplace(run, decoding, settings, request);
    std::optional<Sampler> sampler;
    if (settings.search == Search::sampling) sampler.emplace(run, settings, options.stream);
    std::vector<int32_t> tokens(static_cast<size_t>(rows));
    std::vector<bool> ended(static_cast<size_t>(rows));
    while (!state->is_full() && std::find(ended.begin(), ended.end(), false) != ended.end()) {
      state->ask({});
      state->process();
      if (sampler) {
        sampler->draw(state->scores(), state->vocab(), tokens, state->step());
      } else {
        choose_best(state->scores(), state->vocab(), tokens);
      }
      for (size_t i = 0; i < tokens.size(); ++i) {
        ended[i] = ended[i] || tokens[i] == settings.eos;
        if (ended[i]) tokens[i] = static_cast<int32_t>(settings.pad);
      }
      state->sequences().grow({}, tokens);
    }
  }
  if (run.has_output(0)) {
    auto* to = static_cast<int32_t*>(run.allocate_output(0, {rows, request.max_length}));
    for (int64_t i = 0; i < rows; ++i)
      write_row(state->sequences().row(i), request.max_length, settings.pad, to);
  }
  const int64_t vocab = state ? state->vocab() : vocab_of_none(settings, options);
  give_floats(run, 1, {rows, vocab}, state ? state->scores() : std::span<float>());
}

namespace {

// The outputs of beams that are finished.
void give_beams(RunContext& run, const BeamSearch& beams, const Settings& settings,
                const Request& request) {
  std::vector<float> scores;
  int32_t* to = run.has_output(0) ? static_cast<int32_t*>(run.allocate_output(
                                        0, {request.batch, request.returned, request.max_length}))
                                  : nullptr;
  for (int64_t i = 0; i < request.batch; ++i) {
    const auto& finished = beams.hypotheses(i).finished();
    for (size_t k = 0; k < static_cast<size_t>(request.returned); ++k) {
      if (to != nullptr) write_row(finished[k].tokens, request.max_length, settings.pad, to);
      scores.push_back(finished[k].score);
    }
  }
  give_floats(run, 1, {request.batch, request.returned}, scores);
}

// The probability that nothing is said, of each sequence, by the first logits.
void give_no_speech(RunContext& run, const Settings& settings, const Request& request,
                    std::span<const float> logits, int64_t vocab) {
  constexpr int output = 4;
  if (!run.has_output(output)) return;
  if (settings.no_speech < 0 || (request.batch > 0 && settings.no_speech >= vocab))
    fail(ErrorCode::run_failed, "no_speech_token_id must be a token of {}; it is {}", vocab,
         settings.no_speech);
  std::vector<float> probabilities;
  for (int64_t i = 0; i < request.batch; ++i) {
    const auto row =
        logits.subspan(static_cast<size_t>(i * request.beams * vocab), static_cast<size_t>(vocab));
    const float top = *std::max_element(row.begin(), row.end());
    float sum = 0;
    for (const float logit : row) sum += std::exp(logit - top);
    probabilities.push_back(std::exp(row[static_cast<size_t>(settings.no_speech)] - top) / sum);
  }
  give_floats(run, output, {request.batch}, probabilities);
}

// Beams that are to begin with these tokens do so.
void force_token(const Request& request, int64_t step, int64_t vocab, std::span<float> scores) {
  if (step > static_cast<int64_t>(request.forced_ids.size())) return;
  const int32_t token = request.forced_ids[static_cast<size_t>(step - 1)];
  if (token < 0 || token >= vocab)
    fail(ErrorCode::run_failed, "extra_decoding_ids must be tokens of {}; one is {}", vocab, token);
  for (; !scores.empty(); scores = scores.subspan(static_cast<size_t>(vocab))) {
    const auto row = scores.first(static_cast<size_t>(vocab));
    std::fill(row.begin(), row.end(), std::numeric_limits<float>::lowest());
    row[static_cast<size_t>(token)] = 0;
  }
}

// Scores of all steps, in the output where it is wanted; zeros for steps that do not come.
class ScoresOutput {
 public:
  ScoresOutput(RunContext& run, const Request& request, int64_t vocab)
      : each_(request.rows() * vocab) {
    if (!run.has_output(output)) return;
    to_ = static_cast<std::byte*>(run.allocate_output(
        output, {request.max_length - request.length, request.batch, request.beams, vocab}));
    width_ = run.out_type(output) == ElementType::float16 ? 2 : 4;
    const auto bytes = (request.max_length - request.length) * each_ * width_;
    if (bytes > 0) std::memset(to_, 0, static_cast<size_t>(bytes));
  }
  void add(std::span<const float> scores) {
    if (to_ == nullptr) return;
    if (width_ == 2) {
      kernels::floats_to_half(scores.data(), reinterpret_cast<uint16_t*>(to_), each_);
    } else {
      std::memcpy(to_, scores.data(), scores.size_bytes());
    }
    to_ += each_ * width_;
  }

 private:
  static constexpr int output = 2;
  int64_t each_, width_ = 4;
  std::byte* to_ = nullptr;
};

void add_sums(std::span<const float> sums, int64_t vocab, std::span<float> scores) {
  for (size_t i = 0; i < sums.size(); ++i) {
    for (float& score : scores.subspan(i * static_cast<size_t>(vocab), static_cast<size_t>(vocab)))
      score += sums[i];
  }
}

}  // namespace

void run_beams(RunContext& run, Decoding& decoding, const Settings& settings,
               const Request& request, const SearchOptions& options) {
  const RunEnvironment::Scope scope(run.environment());
  if (request.batch == 0) {
    const int64_t vocab = vocab_of_none(settings, options);
    ScoresOutput(run, request, vocab);
    give_no_speech(run, settings, request, {}, vocab);
    return give_beams(run, BeamSearch(settings, request), settings, request);
  }
  State state(run, decoding, settings, request);
  // Finished hypotheses: as many as there are beams, and no longer.
  charge_elements(run.environment(), {request.rows(), request.max_length}, 4);
  BeamSearch beams(settings, request);
  std::optional<ScoresOutput> all_scores;
  while (!state.is_full()) {
    state.ask(state.step() == 0 ? std::span<const int32_t>() : beams.parents());
    if (state.step() == 1) {
      all_scores.emplace(run, request, state.vocab());
      give_no_speech(run, settings, request, state.scores(), state.vocab());
    }
    log_softmax(state.scores(), state.vocab());
    force_token(request, state.step(), state.vocab(), state.scores());
    state.process();
    add_sums(beams.sums(), state.vocab(), state.scores());
    all_scores->add(state.scores());
    beams.advance(state.sequences(), state.scores(), state.vocab());
    if (beams.is_done()) break;
    state.sequences().grow(beams.parents(), beams.tokens());
  }
  beams.finish(state.sequences());
  give_beams(run, beams, settings, request);
}

}  // namespace sardonyx::ops::generation
