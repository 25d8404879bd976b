// Carries a state from run to run: each block of samples is smoothed, and what the filter remembers
// goes into the next block. Inputs and outputs are bound once; runs allocate nothing for them.
#include <sardonyx/binding.h>

#include <array>
#include <iostream>

namespace {

// A filter y[t] = (y[t-1] + x[t]) / 2 over blocks of any length, as a Scan.
const char* const smoother = R"(<ir_version: 10, opset_import: ["" : 21]>
  smoother (float level, float[samples] x) => (float new_level, float[samples] y)
    <float half = {0.5}> {
    new_level, y = Scan<num_scan_inputs = 1, body = step (float s, float v) => (float next, float out) {
      sum = Add(s, v)
      next = Mul(sum, half)
      out = Identity(next)
    }>(level, x)
  })";

}  // namespace

int main() try {
  constexpr size_t block = 4;
  // The length of a block is known, so the session is made for it.
  const sardonyx::Session session(sardonyx::Model::from_text(smoother),
                                  {.threads = 1, .dimensions = {{"samples", block}}});
  std::array<float, block> samples{}, smooth{};
  sardonyx::Binding binding(session);
  binding.bind_input("x", sardonyx::TensorRef::of<float>(samples, {block}));
  binding.bind_output("y", sardonyx::MutableTensorRef::of<float>(smooth, {block}));
  binding.bind_input("level", sardonyx::Tensor::scalar(0.0f));
  for (int i = 0; i < 3; ++i) {
    samples.fill(i == 0 ? 16.0f : 0.0f);
    binding.run();
    binding.bind_input("level", binding.output("new_level"));
    for (const float value : smooth) std::cout << value << ' ';
    std::cout << '\n';
  }
} catch (const sardonyx::Error& error) {
  return std::cerr << error.what() << '\n', 1;
}
