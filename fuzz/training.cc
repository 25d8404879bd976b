// Training models, made with drawn options of drawn models, and called in drawn order: a call that
// fails leaves the state as it was, inference changes nothing, and what is saved is what there was.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/trainable.h"
#include "sardonyx/training.h"
#include "target.h"

namespace {

using namespace sardonyx;

constexpr std::string_view models[] = {
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] b = {0, 1}> "
    "{ a = MatMul(x, w) y = Add(a, b) }",
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "g (float[N, 1, 4, 4] x) => (float[N, 2] y) <float[2, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, "
    "1, 2, 3, 4, 5, 6, 7, 8, 9}, float[2] s = {1, 1}, float[2] t = {0, 0}, float[2] m = {0, 0}, "
    "float[2] v = {1, 1}> { a = Conv<pads = [1, 1, 1, 1]>(x, w) "
    "n = BatchNormalization(a, s, t, m, v) r = Relu(n) p = GlobalAveragePool(r) y = Flatten(p) }",
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (double[N, 2] x) => (double[N, 2] y) <double[2, 2] w = {1, 2, 3, 4}> "
    "{ d = Dropout(x) a = Gemm<transB = 1>(d, w) y = Softmax(a) }",
    "<ir_version: 3, opset_import: [\"\" : 7]>\n"
    "g (float[2, 2] x, float[2, 2] w) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> "
    "{ a = Gemm(x, w, x) y = Sigmoid(a) }",
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] s = {1, 1}, "
    "float[2] t = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}, int64 n = {2}, bool c = {1}> "
    "{ a = Loop(n, c, x) <body = l (int64 i, bool d, float[N, 2] p) => (bool e, float[N, 2] q) "
    "{ e = Identity(d) k = BatchNormalization(p, s, t, m, v) q = Dropout(k) }> "
    "y = If(c) <then_branch = f () => (float[N, 2] r) { r = MatMul(a, w) }, "
    "else_branch = h () => (float[N, 2] u) { z = BatchNormalization(a, s, t, m, v) u = Neg(z) }> }",
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}, int64 n = {3}, bool c = "
    "{1}> "
    "{ o = Optional<type = float[]>() z = Loop(n, c, o) <body = l (int64 i, bool d, "
    "optional(float[]) p) => (bool e, optional(float[]) q) { e = Identity(d) "
    "h = OptionalHasElement(p) a = If(h) <then_branch = f () => (float[] r) "
    "{ b = OptionalGetElement(p) r = Tanh(b) }, else_branch = k () => (float[] u) "
    "{ u = MatMul(x, w) }> q = Optional(a) }> y = OptionalGetElement(z) }",
};

class Calls {
 public:
  Calls(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  void run() {
    const std::string_view text = models[byte() % std::size(models)];
    const Model model = make_trainable(Model::from_text(text), drawn_options());
    TrainingOptions options;
    options.threads = 1, options.reference = byte() % 2 == 0;
    TrainingSession session(model, options);
    for (int calls = 0; size_ > 0 && calls < 16; ++calls) call(session);
  }

 private:
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  double share() { return byte() / 255.0; }

  TrainableOptions drawn_options() {
    static const char* const patterns[] = {"w", "*", "b", "?", "nothing"};
    static const char* const schedules[] = {"constant", "linear:3", "cosine:4", "step:2:0.5",
                                            "exponential:0.5"};
    TrainableOptions options;
    options.loss = static_cast<Loss>(byte() % 6);
    options.optimizer = static_cast<Optimizer>(byte() % 7);
    options.schedule = schedule_named(schedules[byte() % std::size(schedules)]);
    options.schedule.warmup = byte() % 3;
    options.learning_rate = share(), options.weight_decay = share();
    if (byte() % 2 == 0) options.clip_norm = share();
    if (byte() % 2 == 0) options.clip_value = share();
    options.accumulate = 1 + byte() % 3;
    options.precision = static_cast<Precision>(byte() % 3);
    options.class_axis = byte() % 4 - 1;
    if (byte() % 4 == 0) options.ignore_index = 0;
    if (byte() % 4 == 0) options.freeze = {patterns[byte() % std::size(patterns)]};
    if (byte() % 4 == 0) options.train = {patterns[byte() % std::size(patterns)]};
    if (byte() % 4 == 0) options.lora = {{byte() % 4, patterns[byte() % std::size(patterns)], 0}};
    if (byte() % 2 == 0) options.initial_weights = InitialWeights::random;
    return options;
  }

  // Of the declared type; mostly of a shape that fits.
  Tensor drawn(const ValueDescription& input) {
    Shape shape;
    if (input.shape) {
      for (const auto& dimension : *input.shape) shape.push_back(dimension.size.value_or(2));
    }
    if (byte() % 16 == 0) shape.push_back(byte() % 3);
    Tensor tensor(input.element_type, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      const int number = byte() % 4;
      if (input.element_type == ElementType::float32)
        tensor.mutable_elements<float>()[at] = static_cast<float>(number) - 1;
      else if (input.element_type == ElementType::float64)
        tensor.mutable_elements<double>()[at] = number - 1;
      else if (input.element_type == ElementType::int64)
        tensor.mutable_elements<int64_t>()[at] = number % 3;
    }
    return tensor;
  }

  std::vector<NamedValue> drawn(const std::vector<ValueDescription>& inputs) {
    std::vector<NamedValue> values;
    for (const ValueDescription& input : inputs) {
      if (byte() % 32 != 0) values.emplace_back(input.name, drawn(input));
    }
    return values;
  }

  static bool same(const std::vector<NamedValue>& a, const std::vector<NamedValue>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      const Tensor &s = x.second.tensor(), &t = y.second.tensor();
      return x.first == y.first && s.shape() == t.shape() &&
             std::memcmp(s.data(), t.data(), s.byte_size()) == 0;
    });
  }

  void call(TrainingSession& session) {
    const auto before = session.state();
    const uint64_t turn = session.turn();
    const int kind = byte() % 8;
    bool failed = false;
    try {
      if (kind == 0) session.initialize();
      if (kind == 1) session.infer(drawn(session.inputs()));
      if (kind == 2) session.step(drawn(session.step_inputs(1)), 1);
      if (kind == 3) set_state(session);
      if (kind > 3) session.step(drawn(session.step_inputs()));
    } catch (const Error& error) {
      failed = true;
      require(error.code() != ErrorCode::internal, "no defect of the library");
    }
    if (!failed && kind != 1 && kind != 2) return;
    require(session.turn() == turn, "a call that fails or measures is no turn");
    require(same(before, session.state()), "a call that fails or measures leaves the state");
  }

  void set_state(TrainingSession& session) {
    std::vector<NamedValue> values;
    for (const ValueDescription& variable : session.state_variables()) {
      if (byte() % 2 == 0) values.emplace_back(variable.name, drawn(variable));
    }
    session.set_state(values);
  }

  const uint8_t* data_;
  size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    Calls(data, size).run();
  } catch (const Error& error) {
    require(error.code() != ErrorCode::internal, "no defect of the library");
  }
  return 0;
}
