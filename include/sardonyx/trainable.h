// Making a training model of a model for inference.
//
//   sardonyx::Model trainable = sardonyx::make_trainable(sardonyx::Model("model.onnx"),
//       {.loss = sardonyx::Loss::softmax_cross_entropy, .optimizer = sardonyx::Optimizer::adam});
//   sardonyx::TrainingSession session(trainable);
//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/session.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

enum class Loss {
  softmax_cross_entropy,  // of scores, or of what a Softmax makes of them; targets are class
                          // numbers
  mse,                    // mean of the squared differences
  l1,                     // mean of the absolute differences
  bce,              // binary cross-entropy of probabilities; a Sigmoid at the end is seen through
  bce_with_logits,  // the same of scores
  huber,            // squares up to `huber_delta`, linear beyond
};

enum class Optimizer {
  sgd,       // a function of the model's own
  momentum,  // the standard's operator
  adam,      // the standard's operator
  adamw,     // a function of the model's own
  adagrad,   // the standard's operator
  rmsprop,   // a function of the model's own
  lamb,      // a function of the model's own
};

// What the learning rate is multiplied with at step t = 0, 1, …; warm-up multiplies it with
// (t + 1) / warmup during the first `warmup` steps, from whose end t then counts.
struct Schedule {
  enum class Kind {
    constant,
    linear,       // to 0 at step `steps`
    cosine,       // to 0 at step `steps`, along half a wave
    step,         // `factor` more often every `steps` steps
    exponential,  // `factor` more often every step
  };
  Kind kind = Kind::constant;
  int64_t steps = 0;
  double factor = 0.1;
  int64_t warmup = 0;
};

// Low-rank adaptation: of the products with the weights whose names fit the pattern, x W becomes
// x W + x A B * alpha / rank. Only A and B learn then, and what TrainableOptions::train names.
struct Lora {
  int64_t rank = 8;
  std::string pattern = "*";
  double alpha = 0;  // 0: rank, so that the factor is 1
};

// What products (MatMul, Gemm, Conv, ConvTranspose) of a step and of its derivative are computed
// in. Weights, the optimizer, sums, normalizations and the loss stay float32.
enum class Precision {
  float32,
  bfloat16,
  float16,  // with a loss scale that is state
};

enum class InitialWeights {
  keep,    // initialize() leaves the weights as the model has them
  random,  // initialize() draws them: uniform within 1 / sqrt(fan-in), 0 for biases, 1 for scales
};

struct TrainableOptions {
  Loss loss = Loss::softmax_cross_entropy;
  // The output that the loss is of; empty: the only one, or the first.
  std::string output = {};
  // Of softmax_cross_entropy. Behind a Softmax along the last axis, 1 is that axis, too.
  int64_t class_axis = 1;
  std::optional<int64_t> ignore_index = std::nullopt;  // targets that do not count
  double huber_delta = 1;

  Optimizer optimizer = Optimizer::adam;
  double learning_rate = 0;  // 0: 0.001 for adam, adamw and lamb, 0.01 for the others
  double momentum = 0.9;     // of momentum
  bool nesterov = false;
  double smoothing = 0.99;  // of rmsprop's squares
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  // added to gradients as weights * this; adamw and lamb: to the step
  Schedule schedule = {};
  double clip_norm = 0;    // largest norm of all gradients together; 0: any
  double clip_value = 0;   // largest magnitude of one element; 0: any
  int64_t accumulate = 1;  // steps whose gradients are averaged before one update

  // Others take models of float32. A model of float16 or bfloat16 learns in float32 and computes in
  // its own type: its parameters become "NAME_master".
  Precision precision = Precision::float32;
  // Of float16: what the loss is multiplied with, so that small derivatives are not 0. The state
  // variable "loss_scale" begins with it. A step with a gradient that is not finite updates nothing
  // and halves it; after `scale_growth` steps without one it is doubled.
  double loss_scale = 65536;
  int64_t scale_growth = 2000;
  bool recompute = false;  // sessions of the model recompute, as TrainingOptions::recompute says

  // Patterns of initializers, '*' for any text and '?' for one character. `train`: only these
  // (empty: all that look like weights); `freeze`: not these.
  std::vector<std::string> train = {}, freeze = {};
  std::vector<Lora> lora = {};
  InitialWeights initial_weights = InitialWeights::keep;
  uint64_t seed = 0;  // of initial weights and of LoRA's
};

// What was made.
struct TrainableReport {
  std::vector<std::string> trained;  // initializers that learn, those of LoRA among them
  std::vector<std::string> frozen;   // initializers that could and do not
  int64_t trained_elements = 0;
  std::vector<std::string> statistics;  // running statistics that steps update
  std::vector<std::string> functions;   // that were added to the model
  std::vector<std::string> notes;
  std::string target;  // the input that takes what the output should be
};

// A training model (IR, "Training Related Information") of a model for inference. Its first
// algorithm takes the model's inputs and the target, and gives the loss, the learning rate that was
// used, and accuracy where there are classes; its second one measures loss and accuracy with
// inference's forms, and changes nothing. BatchNormalization and Dropout have their training form
// in the first; running statistics, the rate (state variable "learning_rate") and the number of
// updates are state. Any reader that knows the standard's operators can run it. Throws Error:
// (bad_input) for options that do not fit the model, (unsupported) where something on the way to
// the loss has no gradient.
Model make_trainable(const Model& model, const TrainableOptions& options,
                     TrainableReport* report = nullptr);
// The same into a file. `external_data`: as in TrainingSaveOptions.
TrainableReport make_trainable(const Model& model, const TrainableOptions& options,
                               const std::string& path, const std::string& external_data = {});

// The model with the low-rank products that make_trainable was asked for (TrainableOptions::lora)
// added to the weights beside which they stand, for inference alone. Throws Error (bad_input) where
// there are none.
Model merge_lora(const Model& model);

// "softmax-cross-entropy", "mse", …; Error (bad_input) for other names, which lists them.
Loss loss_named(std::string_view name);
// "sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop", "lamb".
Optimizer optimizer_named(std::string_view name);
// "constant", "linear:STEPS", "cosine:STEPS", "step:STEPS:FACTOR", "exponential:FACTOR".
Schedule schedule_named(std::string_view text);
// "float32", "bf16" or "bfloat16", "fp16" or "float16".
Precision precision_named(std::string_view name);
// "RANK:PATTERN".
Lora lora_named(std::string_view text);

}  // namespace sardonyx

#pragma GCC visibility pop
