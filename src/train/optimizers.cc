// From gradients to updates: clipping, accumulation, schedules and optimizers.
#include <algorithm>
#include <numbers>

#include "base/fail.h"
#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "train/draft.h"
#include "wire/text_parse.h"

namespace sardonyx::train {
namespace {

// Bodies in the textual syntax, so that any reader of the standard can run them.
constexpr std::string_view sgd_body = R"(
SGD <weight_decay> (R, X, G) => (X_new)
{
  decay_plain = Constant <value_float: float = @weight_decay> ()
  decay = CastLike (decay_plain, X)
  rate = CastLike (R, X)
  pulled = Mul (decay, X)
  slope = Add (G, pulled)
  way = Mul (rate, slope)
  X_new = Sub (X, way)
})";

constexpr std::string_view rmsprop_body = R"(
RMSProp <alpha, epsilon, weight_decay> (R, X, G, H) => (X_new, H_new)
{
  one_plain = Constant <value_float = 1.0> ()
  one = CastLike (one_plain, X)
  alpha_plain = Constant <value_float: float = @alpha> ()
  alpha = CastLike (alpha_plain, X)
  epsilon_plain = Constant <value_float: float = @epsilon> ()
  epsilon = CastLike (epsilon_plain, X)
  decay_plain = Constant <value_float: float = @weight_decay> ()
  decay = CastLike (decay_plain, X)
  rate = CastLike (R, X)
  pulled = Mul (decay, X)
  slope = Add (G, pulled)
  square = Mul (slope, slope)
  rest = Sub (one, alpha)
  kept = Mul (alpha, H)
  added = Mul (rest, square)
  H_new = Add (kept, added)
  root = Sqrt (H_new)
  below = Add (root, epsilon)
  direction = Div (slope, below)
  way = Mul (rate, direction)
  X_new = Sub (X, way)
})";

// The moments and the direction that AdamW and LAMB share.
constexpr std::string_view moments = R"(
  one_plain = Constant <value_float = 1.0> ()
  one = CastLike (one_plain, X)
  beta1_plain = Constant <value_float: float = @beta1> ()
  beta1 = CastLike (beta1_plain, X)
  beta2_plain = Constant <value_float: float = @beta2> ()
  beta2 = CastLike (beta2_plain, X)
  epsilon_plain = Constant <value_float: float = @epsilon> ()
  epsilon = CastLike (epsilon_plain, X)
  decay_plain = Constant <value_float: float = @weight_decay> ()
  decay = CastLike (decay_plain, X)
  rate = CastLike (R, X)
  count = CastLike (T, X)
  rest1 = Sub (one, beta1)
  kept1 = Mul (beta1, V)
  added1 = Mul (rest1, G)
  V_new = Add (kept1, added1)
  rest2 = Sub (one, beta2)
  square = Mul (G, G)
  kept2 = Mul (beta2, H)
  added2 = Mul (rest2, square)
  H_new = Add (kept2, added2)
)";

// What takes the bias of averages that begin with 0 out of them.
constexpr std::string_view corrections = R"(
  power1 = Pow (beta1, count)
  share1 = Sub (one, power1)
  power2 = Pow (beta2, count)
  share2 = Sub (one, power2)
  spread = Sqrt (share2)
)";
constexpr std::string_view no_corrections = R"(
  share1 = Identity (one)
  spread = Identity (one)
)";

constexpr std::string_view decayed_direction = R"(
  root = Sqrt (H_new)
  deviation = Div (root, spread)
  below = Add (deviation, epsilon)
  mean = Div (V_new, share1)
  direction = Div (mean, below)
  pulled = Mul (decay, X)
  whole = Add (direction, pulled)
)";

std::string adamw_body(bool correct_bias) {
  return fmt::format(
      "AdamW <beta1, beta2, epsilon, weight_decay> (R, T, X, G, V, H) => (X_new, V_new, "
      "H_new)\n{{{}{}{}  way = Mul (rate, whole)\n  X_new = Sub (X, way)\n}}",
      moments, correct_bias ? corrections : no_corrections, decayed_direction);
}

std::string lamb_body() {
  return "LAMB <beta1, beta2, epsilon, weight_decay> (R, T, X, G, V, H) => (X_new, V_new, "
         "H_new)\n{" +
         std::string(moments) + std::string(corrections) + std::string(decayed_direction) + R"(
  zero = Sub (one, one)
  length_x = ReduceL2 <keepdims = 0> (X)
  length_way = ReduceL2 <keepdims = 0> (whole)
  has_x = Greater (length_x, zero)
  has_way = Greater (length_way, zero)
  has_both = And (has_x, has_way)
  safe = Where (has_both, length_way, one)
  quotient = Div (length_x, safe)
  trust = Where (has_both, quotient, one)
  scaled = Mul (trust, whole)
  way = Mul (rate, scaled)
  X_new = Sub (X, way)
})";
}

std::string huggingface_adamw_body(bool correct_bias) {
  return "HuggingFaceAdamW <beta1, beta2, epsilon, weight_decay> (R, T, X, G, V, H) => (X_new, "
         "V_new, H_new)\n{" +
         std::string(moments) + std::string(correct_bias ? corrections : no_corrections) + R"(
  root = Sqrt (H_new)
  below = Add (root, epsilon)
  direction = Div (V_new, below)
  ratio = Div (spread, share1)
  size = Mul (rate, ratio)
  way = Mul (size, direction)
  stepped = Sub (X, way)
  pull = Mul (rate, decay)
  pulled = Mul (pull, stepped)
  X_new = Sub (stepped, pulled)
})";
}

ir::Function function_of(const UpdateRule& rule, int64_t opset) {
  return wire::parse_function(fmt::format("<domain: \"{}\", opset_import: [\"\" : {}]>\n{}",
                                          function_domain, opset, rule.body));
}

ir::Attribute float_of(const char* name, double value) {
  return ops::float_attribute(name, static_cast<float>(value));
}

std::vector<ir::Attribute> adam_attributes(double beta1, double beta2, double epsilon,
                                           double weight_decay) {
  return {float_of("beta1", beta1), float_of("beta2", beta2), float_of("epsilon", epsilon),
          float_of("weight_decay", weight_decay)};
}

// The factor of the schedule at update `count`, an int64.
std::string factor_of(GraphBuilder& b, const Schedule& schedule, const std::string& count) {
  using Kind = Schedule::Kind;
  const std::string at = b.cast(count, b.element());
  std::string factor;
  const auto times = [&](const std::string& other) {
    factor = factor.empty() ? other : b.add("Mul", {factor, other});
  };
  std::string t = at;
  if (schedule.warmup > 0) {
    const std::string warmup = b.number(static_cast<double>(schedule.warmup));
    const std::string next = b.add("Add", {at, b.number(1)});
    times(b.add("Min", {b.number(1), b.add("Div", {next, warmup})}));
    t = b.add("Max", {b.number(0), b.add("Sub", {at, warmup})});
  }
  if (schedule.kind == Kind::exponential) {
    times(b.add("Pow", {b.number(schedule.factor), t}));
    return factor;
  }
  if (schedule.kind == Kind::constant) return factor;
  const std::string share = b.add("Div", {t, b.number(static_cast<double>(schedule.steps))});
  if (schedule.kind == Kind::step) {
    times(b.add("Pow", {b.number(schedule.factor), b.add("Floor", {share})}));
    return factor;
  }
  const std::string done = b.add("Min", {b.number(1), share});
  if (schedule.kind == Kind::linear) {
    times(b.add("Sub", {b.number(1), done}));
  } else {
    const std::string wave = b.add("Cos", {b.add("Mul", {done, b.number(std::numbers::pi)})});
    times(b.add("Mul", {b.number(0.5), b.add("Add", {b.number(1), wave})}));
  }
  return factor;
}

class Updating {
 public:
  Updating(GraphBuilder& builder, const std::vector<Parameter>& parameters,
           std::vector<std::string> gradients, const UpdateRule& rule,
           const TrainableOptions& options)
      : b_(builder),
        parameters_(parameters),
        gradients_(std::move(gradients)),
        rule_(rule),
        options_(options) {}

  Updates make(const std::string& scale, int64_t opset) {
    if (!scale.empty()) unscale(scale);
    accumulate();
    clip();
    count();
    optimize(opset);
    return std::move(made_);
  }

 private:
  std::string state(const std::string& hint, const Tensor& value, bool resets = true) {
    std::string name = b_.initializer(hint, value);
    if (resets) made_.reset_to_zero.push_back(name);
    return name;
  }

  void bind(const std::string& state, const std::string& updated, ElementType element,
            const Shape& shape) {
    made_.bindings.push_back({state, updated});
    b_.output(updated, element, shape);
  }

  // A value that only a step with an update changes.
  std::string held(const std::string& next, const std::string& now, const std::string& hint) {
    return updates_.empty() ? next : b_.add("Where", {updates_, next, now}, {}, hint);
  }
  // A value that every step changes whose gradients are finite.
  std::string unless_broken(const std::string& next, const std::string& now,
                            const std::string& hint) {
    if (made_.finite.empty()) return next;
    return b_.add("Where", {made_.finite, next, now}, {}, hint);
  }

  // Gradients of the loss itself, and the next scale. One that is not finite makes the sum of all
  // times 0 NaN.
  void unscale(const std::string& scale) {
    const std::string inverse = b_.add("Div", {b_.number(1), scale}), zero = b_.number(0);
    std::vector<std::string> marks;
    for (std::string& gradient : gradients_) {
      gradient = b_.add("Mul", {gradient, inverse});
      marks.push_back(b_.add("ReduceSum", {b_.add("Mul", {gradient, zero})},
                             {ops::int_attribute("keepdims", 0)}));
    }
    made_.finite = b_.add("Equal", {b_.add("Sum", marks), zero}, {}, "finite");
    updates_ = made_.finite;
    const std::string steps = state("finite_steps", Tensor::scalar<int64_t>(0));
    const std::string none = b_.integer(0), next = b_.add("Add", {steps, b_.integer(1)});
    const std::string counted = b_.add("Where", {made_.finite, next, none});
    const std::string grows = b_.add("Equal", {counted, b_.integer(options_.scale_growth)});
    bind(steps, b_.add("Where", {grows, none, counted}, {}, steps + "_next"), ElementType::int64,
         {});
    const std::string one = b_.number(1), two = b_.number(2), half = b_.number(0.5);
    const std::string better = b_.add("Where", {grows, two, one});
    const std::string factor = b_.add("Where", {made_.finite, better, half});
    const std::string low = b_.number(0x1p-14), high = b_.number(0x1p24);
    bind(scale, b_.add("Clip", {b_.add("Mul", {scale, factor}), low, high}, {}, scale + "_next"),
         b_.element(), {});
    made_.scale = b_.add("Identity", {scale}, {}, "scale");
  }

  void accumulate() {
    if (options_.accumulate <= 1) return;
    const std::string done = state("accumulated", Tensor::scalar<int64_t>(0));
    const std::string next = b_.add("Add", {done, b_.integer(1)});
    const std::string all = b_.integer(options_.accumulate);
    const std::string is_last = b_.add("Equal", {next, all});
    const std::string hint = made_.finite.empty() ? done + "_next" : done + "_counted";
    const std::string count = b_.add("Where", {is_last, b_.integer(0), next}, {}, hint);
    bind(done, unless_broken(count, done, done + "_next"), ElementType::int64, {});
    updates_ = updates_.empty() ? is_last : b_.add("And", {is_last, updates_});
    const std::string share = b_.number(1 / static_cast<double>(options_.accumulate));
    const std::string zero = b_.number(0);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& p = parameters_[i];
      const std::string sum = state(p.name + "_gradient", zeros(b_.element(), p.shape));
      gradients_[i] = b_.add("Add", {sum, b_.add("Mul", {gradients_[i], share})});
      const std::string left = b_.add("Where", {is_last, zero, gradients_[i]}, {},
                                      made_.finite.empty() ? sum + "_next" : sum + "_summed");
      bind(sum, unless_broken(left, sum, sum + "_next"), b_.element(), p.shape);
    }
  }

  void clip() {
    if (options_.clip_value > 0) {
      const std::string low = b_.number(-options_.clip_value),
                        high = b_.number(options_.clip_value);
      for (std::string& gradient : gradients_) gradient = b_.add("Clip", {gradient, low, high});
    }
    if (options_.clip_norm <= 0) return;
    std::vector<std::string> squares;
    for (const std::string& gradient : gradients_)
      squares.push_back(b_.add("ReduceSumSquare", {gradient}, {ops::int_attribute("keepdims", 0)}));
    made_.norm = b_.add("Sqrt", {b_.add("Sum", squares)}, {}, "gradient_norm");
    const std::string raised = b_.add("Add", {made_.norm, b_.number(1e-6)});
    const std::string factor =
        b_.add("Min", {b_.number(1), b_.add("Div", {b_.number(options_.clip_norm), raised})});
    for (std::string& gradient : gradients_) gradient = b_.add("Mul", {gradient, factor});
  }

  // Counts updates, and finds the rate of this one.
  void count() {
    const std::string steps = state("updates", Tensor::scalar<int64_t>(0));
    made_.count = steps;
    count_ = b_.add("Add", {steps, b_.integer(1)});
    const std::string next = updates_.empty() ? count_ : held(count_, steps, steps + "_next");
    bind(steps, next, ElementType::int64, {});
    const double rate = options_.learning_rate > 0 ? options_.learning_rate : rule_.rate;
    const std::string base = state("learning_rate", scalar(b_.element(), rate), false);
    bind(base, b_.add("Identity", {base}, {}, base + "_next"), b_.element(), {});
    const std::string factor = factor_of(b_, options_.schedule, steps);
    made_.rate = factor.empty() ? b_.add("Identity", {base}, {}, "rate")
                                : b_.add("Mul", {base, factor}, {}, "rate");
  }

  void optimize(int64_t opset) {
    const bool is_function = !rule_.body.empty();
    if (is_function) made_.functions.push_back(function_of(rule_, opset));
    std::vector<std::vector<std::string>>& slots = made_.slots;
    slots.resize(rule_.slots.size());
    for (size_t k = 0; k < slots.size(); ++k) {
      for (const Parameter& p : parameters_)
        slots[k].push_back(
            state(fmt::format("{}_{}", p.name, rule_.slots[k]), zeros(b_.element(), p.shape)));
    }
    std::vector<std::string> head{made_.rate};
    if (rule_.takes_count) head.push_back(count_);
    // For each kind of result, the parameter first, one of each parameter.
    std::vector<std::vector<std::string>> results(1 + slots.size());
    for (size_t k = 0; k < results.size(); ++k) {
      for (size_t i = 0; i < parameters_.size(); ++i)
        results[k].push_back(b_.name((k == 0 ? parameters_[i].name : slots[k - 1][i]) +
                                     (updates_.empty() ? "_next" : "_proposed")));
    }
    if (is_function)
      add_calls(head, slots, results);
    else
      add_one_node(head, slots, results);
    for (size_t k = 0; k < results.size(); ++k) {
      for (size_t i = 0; i < parameters_.size(); ++i) {
        const std::string& now = k == 0 ? parameters_[i].name : slots[k - 1][i];
        bind(now, held(results[k][i], now, now + "_next"), b_.element(), parameters_[i].shape);
      }
    }
  }

  void add_one_node(const std::vector<std::string>& head,
                    const std::vector<std::vector<std::string>>& slots,
                    const std::vector<std::vector<std::string>>& results) {
    std::vector<std::string> inputs = head, outputs;
    for (const Parameter& p : parameters_) inputs.push_back(p.name);
    inputs.insert(inputs.end(), gradients_.begin(), gradients_.end());
    for (const auto& slot : slots) inputs.insert(inputs.end(), slot.begin(), slot.end());
    for (const auto& list : results) outputs.insert(outputs.end(), list.begin(), list.end());
    ir::Node& node =
        b_.add_to(std::string(rule_.op), std::move(inputs), std::move(outputs), rule_.attributes);
    node.domain = preview_domain;
  }

  void add_calls(const std::vector<std::string>& head,
                 const std::vector<std::vector<std::string>>& slots,
                 const std::vector<std::vector<std::string>>& results) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      std::vector<std::string> inputs = head, outputs;
      inputs.insert(inputs.end(), {parameters_[i].name, gradients_[i]});
      for (const auto& slot : slots) inputs.push_back(slot[i]);
      for (const auto& list : results) outputs.push_back(list[i]);
      ir::Node& node =
          b_.add_to(std::string(rule_.op), std::move(inputs), std::move(outputs), rule_.attributes);
      node.domain = function_domain;
    }
  }

  GraphBuilder& b_;
  const std::vector<Parameter>& parameters_;
  std::vector<std::string> gradients_;
  const UpdateRule& rule_;
  const TrainableOptions& options_;
  std::string updates_;  // whether this step updates; empty: each does
  std::string count_;    // of this update, from 1
  Updates made_;
};

}  // namespace

UpdateRule rule_of(const TrainableOptions& o) {
  const std::vector<std::string_view> moments{"first_moment", "second_moment"};
  const auto f = float_of;
  switch (o.optimizer) {
    case Optimizer::sgd:
      return {"SGD", std::string(sgd_body), false, {}, {f("weight_decay", o.weight_decay)}, 0.01};
    case Optimizer::momentum:
      return {"Momentum",
              {},
              true,
              {"momentum"},
              {f("alpha", o.momentum), f("beta", 1), f("norm_coefficient", o.weight_decay),
               ops::string_attribute("mode", o.nesterov ? "nesterov" : "standard")},
              0.01};
    case Optimizer::adam:
      return {"Adam",
              {},
              true,
              moments,
              {f("alpha", o.beta1), f("beta", o.beta2), f("epsilon", o.epsilon),
               f("norm_coefficient", o.weight_decay)},
              0.001};
    case Optimizer::adagrad:
      return {"Adagrad",
              {},
              true,
              {"squares"},
              {f("epsilon", o.epsilon), f("norm_coefficient", o.weight_decay)},
              0.01};
    case Optimizer::rmsprop:
      return {"RMSProp",
              std::string(rmsprop_body),
              false,
              {"squares"},
              {f("alpha", o.smoothing), f("epsilon", o.epsilon), f("weight_decay", o.weight_decay)},
              0.01};
    case Optimizer::adamw:
      return {"AdamW",
              adamw_body(true),
              true,
              moments,
              adam_attributes(o.beta1, o.beta2, o.epsilon, o.weight_decay),
              0.001};
    case Optimizer::lamb:
      return {"LAMB",
              lamb_body(),
              true,
              moments,
              adam_attributes(o.beta1, o.beta2, o.epsilon, o.weight_decay),
              0.001};
  }
  fail(ErrorCode::bad_input, "there is no such optimizer");
}

UpdateRule artifact_adamw(double beta1, double beta2, double epsilon, double weight_decay,
                          bool decay_last, bool correct_bias) {
  return {decay_last ? "HuggingFaceAdamW" : "AdamW",
          decay_last ? huggingface_adamw_body(correct_bias) : adamw_body(correct_bias),
          true,
          {"first_moment", "second_moment"},
          adam_attributes(beta1, beta2, epsilon, weight_decay),
          0.001};
}

Updates add_updates(GraphBuilder& builder, const std::vector<Parameter>& parameters,
                    const std::vector<std::string>& gradients, const std::string& scale,
                    const UpdateRule& rule, const TrainableOptions& options, int64_t opset) {
  return Updating(builder, parameters, gradients, rule, options).make(scale, opset);
}

std::string add_loss_scale(GraphBuilder& builder, const TrainableOptions& options) {
  return builder.initializer("loss_scale", scalar(builder.element(), options.loss_scale));
}

}  // namespace sardonyx::train
