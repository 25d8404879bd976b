// A program that runs a model with an operator of its own and those of a library.
//
//   own_operator ./example_operators.so
//
#include <sardonyx/custom.h>
#include <sardonyx/session.h>

#include <cstdio>

namespace {

using namespace sardonyx;

// y = x + 1.
class Next final : public CustomOperator {
 public:
  void infer(ShapeInferenceContext& context) const override { context.set_output_like(0, 0); }
  std::unique_ptr<CustomKernel> prepare(KernelBuilder&) const override {
    return std::make_unique<Kernel>();
  }

 private:
  class Kernel final : public CustomKernel {
    void run(KernelContext& run) const override {
      const auto x = run.input(0).elements<float>();
      const auto y = run.output(0).mutable_elements<float>();
      for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] + 1;
    }
  };
};

constexpr const char* model_text = R"(
<ir_version: 10, opset_import: ["" : 21, "com.example" : 2, "com.example.own" : 1]>
windows (float[N] x) => (float[M] y)
{
  doubled = Add (x, x)
  next = com.example.own.Next (doubled)
  sums = com.example.WindowSum <width = 3> (next)
  y = com.example.Leaky <slope = 0.5> (sums)
}
)";

}  // namespace

int main(int count, char** arguments) {
  try {
    const auto operators = std::make_shared<CustomOperators>();
    operators->add("com.example.own", "Next\n since 1\n in x: T\n out y: T\n where T in float",
                   std::make_shared<Next>());
    for (int i = 1; i < count; ++i) operators->load(arguments[i]);

    LoadOptions options;
    options.custom_operators = operators;
    const Session session(Model::from_text(model_text, options));
    const auto outputs = session.run({{"x", Tensor::of<float>({1, 2, 3, -10, -20}, {5})}});
    for (const float y : outputs[0].tensor().elements<float>()) std::printf("%g ", y);
    std::printf("\n");  // 15 -3.5 -25.5
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
