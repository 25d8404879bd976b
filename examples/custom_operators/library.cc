// A library of operators for the domain com.example. Built, it is used by name:
//
//   sardonyx run model.onnx --library ./example_operators.so …
//
#include <sardonyx/custom.h>

#include <algorithm>
#include <cmath>

namespace {

using namespace sardonyx;

// y = x where x > 0, else slope * x: element by element, on all threads of the session.
class Leaky final : public CustomOperator {
 public:
  static constexpr const char* signature = R"(
Leaky
  since 1
    in x: T
    out y: T
    attr slope: float = 0.01
    where T in float double
)";

  void infer(ShapeInferenceContext& context) const override { context.set_output_like(0, 0); }

  std::unique_ptr<CustomKernel> prepare(KernelBuilder& context) const override {
    const float slope = context.attribute_float("slope");
    if (std::isnan(slope)) context.fail("attribute 'slope' must be a number");
    context.may_share(0, 0);
    if (context.element(0) == ElementType::float64) return std::make_unique<Kernel<double>>(slope);
    return std::make_unique<Kernel<float>>(slope);
  }

 private:
  template <class T>
  class Kernel final : public CustomKernel {
   public:
    explicit Kernel(float slope) : slope_(slope) {}
    std::string name() const override { return "example.leaky"; }
    void run(KernelContext& run) const override {
      const auto x = run.input(0).elements<T>();
      const auto y = run.output(0).mutable_elements<T>();
      run.parallel_for(run.input(0).count, 16384, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
          y[i] = x[i] > 0 ? x[i] : static_cast<T>(slope_) * x[i];
      });
    }

   private:
    const float slope_;
  };
};

// The sums of windows of `width` elements side by side along the last axis: the size of the output
// is an expression of the input's.
class WindowSum final : public CustomOperator {
 public:
  static constexpr const char* signature = R"(
WindowSum
  since 2
    in x: T
    out sums: T
    attr width: int required
    where T in float
  since 1 like 2, attr width: int = 2
)";

  void infer(ShapeInferenceContext& context) const override {
    const auto rank = context.rank(0);
    if (!rank) return context.set_output_of_any_rank(0, context.element(0));
    if (*rank < 1) context.fail("x must have a dimension at least");
    std::vector<SymbolicDim> shape;
    for (int64_t axis = 0; axis < *rank; ++axis) shape.push_back(context.size(0, axis));
    shape.back() = max(shape.back() - width(context) + 1, 0);
    context.set_output(0, context.element(0), shape);
  }

  std::unique_ptr<CustomKernel> prepare(KernelBuilder& context) const override {
    return std::make_unique<Kernel>(width(context));
  }

 private:
  static int64_t width(const CustomNode& node) {
    const int64_t width = node.attribute_int("width");
    if (width < 1) node.fail("attribute 'width' must be 1 or more; got " + std::to_string(width));
    return width;
  }

  class Kernel final : public CustomKernel {
   public:
    explicit Kernel(int64_t width) : width_(width) {}
    std::string name() const override { return "example.window_sum"; }
    void run(KernelContext& run) const override {
      const CustomTensor x = run.input(0), y = run.output(0);
      const int64_t from = x.shape.back(), to = y.shape.back();
      if (to == 0) return;
      const float* in = x.elements<float>().data();
      float* out = y.mutable_elements<float>().data();
      run.parallel_for(y.count / to, 64, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          for (int64_t i = 0; i < to; ++i) {
            float sum = 0;
            for (int64_t k = 0; k < width_; ++k) sum += in[row * from + i + k];
            out[row * to + i] = sum;
          }
        }
      });
    }

   private:
    const int64_t width_;
  };
};

// The elements above a threshold: how many there are, only the data tell.
class Above final : public CustomOperator {
 public:
  static constexpr const char* signature = R"(
Above
  since 1
    in x: tensor(float)
    in threshold: tensor(float)
    out kept: tensor(float)
    out count: tensor(int64) optional
)";

  void infer(ShapeInferenceContext& context) const override {
    SymbolicDim most = 1;
    const auto rank = context.rank(0);
    for (int64_t axis = 0; rank && axis < *rank; ++axis) most = most * context.size(0, axis);
    context.set_output(0, ElementType::float32, {rank ? context.unknown(most) : context.unknown()});
    context.set_output(1, ElementType::int64, {});
  }

  std::unique_ptr<CustomKernel> prepare(KernelBuilder& context) const override {
    context.allocates_outputs();
    return std::make_unique<Kernel>();
  }

 private:
  class Kernel final : public CustomKernel {
   public:
    std::string name() const override { return "example.above"; }
    void run(KernelContext& run) const override {
      const auto x = run.input(0).elements<float>();
      if (run.input(1).count != 1) run.fail("threshold must be one number");
      const float threshold = run.input(1).elements<float>()[0];
      const auto above = [&](float value) { return value > threshold; };
      const int64_t count = std::count_if(x.begin(), x.end(), above);
      const CustomTensor kept = run.allocate(0, {count});
      if (run.has_output(0))
        std::copy_if(x.begin(), x.end(), kept.mutable_elements<float>().begin(), above);
      if (run.has_output(1)) run.allocate(1, {}).mutable_elements<int64_t>()[0] = count;
    }
  };
};

}  // namespace

SARDONYX_OPERATOR_LIBRARY(registry) {
  registry.add("com.example", Leaky::signature, std::make_shared<Leaky>());
  registry.add("com.example", WindowSum::signature, std::make_shared<WindowSum>());
  registry.add("com.example", Above::signature, std::make_shared<Above>());
}
