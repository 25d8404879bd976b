// What bounds a run of the operators that generate sequences.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// Each token's successor is the next one of eight; the past grows, and only its shape matters.
Model counting_model(const std::string& op, const std::string& more_inputs) {
  return Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (int32[b, s] ids, int32[1] most) => (sequences)
    <int32[1] least = {0}, int32[1] beams = {2}>
    {
      sequences = com.microsoft.)" +
                          op + R"( <eos_token_id = 9, pad_token_id = 8, decoder = d (
          int32[r, n] input_ids, int32[r, n] position_ids, int32[r, t] attention_mask,
          float[2, r, 1, p, 64] past_0)
        => (float[r, n, 8] logits, float[2, r, 1, q, 64] present_0)
        <float[8] numbers = {0, 1, 2, 3, 4, 5, 6, 7}, float one = {1}, float eight = {8},
         float scale = {-4}, int64[1] last = {2}, int64[3] spread = {0, 2, 4},
         int64[5] many = {2, 1, 1, 1, 64}>
        {
          as_float = Cast <to = 1> (input_ids)
          plus = Add (as_float, one)
          next = Mod <fmod = 1> (plus, eight)
          column = Unsqueeze (next, last)
          away = Sub (numbers, column)
          square = Mul (away, away)
          logits = Mul (square, scale)
          states = Unsqueeze (as_float, spread)
          fresh = Expand (states, many)
          present_0 = Concat <axis = 3> (past_0, fresh)
        }> (ids, most, least)" +
                          more_inputs + R"()
    })");
}

std::vector<NamedValue> inputs(int32_t most, int64_t batch = 1) {
  Tensor ids(ElementType::int32, {batch, 2});
  std::fill(ids.mutable_elements<int32_t>().begin(), ids.mutable_elements<int32_t>().end(), 3);
  return {{"ids", ids}, {"most", Tensor::of<int32_t>({most}, {1})}};
}

struct Case {
  const char *op, *more;
};
constexpr Case cases[] = {{"GreedySearch", ""}, {"BeamSearch", ", beams, beams"}};

ErrorCode code_of(const Session& session, const std::vector<NamedValue>& given,
                  const RunOptions& options) {
  try {
    session.run(given, options);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "the run did not fail";
  return ErrorCode::bad_input;
}

TEST(Generation, CountsOn) {
  for (const auto& [op, more] : cases) {
    for (const bool plain : {false, true}) {
      const Session session(counting_model(op, more), {.reference = plain});
      const auto made = session.run(inputs(7));
      const auto tokens = made[0].tensor().elements<int32_t>();
      const std::vector<int32_t> best(tokens.begin(), tokens.begin() + 7);
      EXPECT_EQ(best, (std::vector<int32_t>{3, 3, 4, 5, 6, 7, 0})) << op;
    }
  }
}

TEST(Generation, CancelAndDeadlineStopARun) {
  for (const auto& [op, more] : cases) {
    const Session session(counting_model(op, more));
    const std::atomic<bool> cancel{true};
    RunOptions cancelled;
    cancelled.cancel = &cancel;
    EXPECT_EQ(code_of(session, inputs(4096), cancelled), ErrorCode::cancelled);
    RunOptions late;
    late.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    EXPECT_EQ(code_of(session, inputs(4096), late), ErrorCode::cancelled);
  }
}

// Two states of 64 floats for each token, with those before it: what grows is counted, and given
// back when the run is over.
TEST(Generation, MemoryLimitHolds) {
  for (const auto& [op, more] : cases) {
    for (const bool plain : {false, true}) {
      const Session session(counting_model(op, more), {.reference = plain});
      RunOptions options;
      options.memory_limit = 1 << 20;
      for (int i = 0; i < 3; ++i) EXPECT_EQ(session.run(inputs(100), options).size(), 1u);
      EXPECT_EQ(code_of(session, inputs(4096), options), ErrorCode::out_of_memory);
    }
  }
}

// Rows that are too many for the limit fail before the graphs run.
TEST(Generation, RowsAreCountedFirst) {
  const Session session(counting_model("GreedySearch", ""));
  RunOptions options;
  options.memory_limit = 1 << 20;
  EXPECT_EQ(code_of(session, inputs(4096, 1000), options), ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace sardonyx
