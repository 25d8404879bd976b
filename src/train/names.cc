// Options of make_trainable as people write them.
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "sardonyx/trainable.h"

namespace sardonyx {
namespace {

constexpr std::pair<std::string_view, Loss> losses[] = {
    {"softmax-cross-entropy", Loss::softmax_cross_entropy},
    {"mse", Loss::mse},
    {"l1", Loss::l1},
    {"bce", Loss::bce},
    {"bce-with-logits", Loss::bce_with_logits},
    {"huber", Loss::huber},
};

constexpr std::pair<std::string_view, Optimizer> optimizers[] = {
    {"sgd", Optimizer::sgd},     {"momentum", Optimizer::momentum}, {"adam", Optimizer::adam},
    {"adamw", Optimizer::adamw}, {"adagrad", Optimizer::adagrad},   {"rmsprop", Optimizer::rmsprop},
    {"lamb", Optimizer::lamb},
};

constexpr std::pair<std::string_view, Precision> precisions[] = {
    {"float32", Precision::float32}, {"bf16", Precision::bfloat16},
    {"fp16", Precision::float16},    {"bfloat16", Precision::bfloat16},
    {"float16", Precision::float16},
};

template <class Table>
auto named(const Table& table, std::string_view name, std::string_view what) {
  std::string names;
  for (const auto& [known, value] : table) {
    if (known == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  fail(ErrorCode::bad_input, "there is no {} '{}'; there are {}", what, name, names);
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

template <class Number>
Number number_of(std::string_view part, std::string_view whole) {
  Number number{};
  const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), number);
  if (problem != std::errc() || end != part.data() + part.size())
    fail(ErrorCode::bad_input, "'{}' in '{}' is no number", part, whole);
  return number;
}

}  // namespace

Loss loss_named(std::string_view name) { return named(losses, name, "loss"); }
Optimizer optimizer_named(std::string_view name) { return named(optimizers, name, "optimizer"); }
Precision precision_named(std::string_view name) { return named(precisions, name, "precision"); }

Schedule schedule_named(std::string_view text) {
  using Kind = Schedule::Kind;
  const std::vector<std::string> parts = parts_of(text);
  const auto takes = [&](std::string_view kind, size_t count) {
    return parts[0] == kind && parts.size() == count + 1;
  };
  Schedule schedule;
  if (takes("constant", 0)) return schedule;
  if (takes("linear", 1) || takes("cosine", 1) || takes("step", 2)) {
    schedule.kind = parts[0] == "linear"   ? Kind::linear
                    : parts[0] == "cosine" ? Kind::cosine
                                           : Kind::step;
    schedule.steps = number_of<int64_t>(parts[1], text);
    if (parts.size() == 3) schedule.factor = number_of<double>(parts[2], text);
    return schedule;
  }
  if (takes("exponential", 1)) {
    schedule.kind = Kind::exponential;
    schedule.factor = number_of<double>(parts[1], text);
    return schedule;
  }
  fail(ErrorCode::bad_input,
       "a schedule is constant, linear:STEPS, cosine:STEPS, step:STEPS:FACTOR or "
       "exponential:FACTOR; got '{}'",
       text);
}

Lora lora_named(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos || colon + 1 == text.size())
    fail(ErrorCode::bad_input, "LoRA is asked for as RANK:PATTERN; got '{}'", text);
  Lora lora;
  lora.rank = number_of<int64_t>(text.substr(0, colon), text);
  lora.pattern = text.substr(colon + 1);
  return lora;
}

}  // namespace sardonyx
