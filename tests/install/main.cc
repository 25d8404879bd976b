// Runs the model named on the command line on zeros, through the installed headers and library.
#include <sardonyx/session.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    const sardonyx::Session session(arguments[1]);
    const std::vector<float> image(16 * 16, 0.0f);
    const auto outputs = session.run(
        {{session.inputs()[0].name, sardonyx::Tensor::of<float>(image, {1, 1, 16, 16})}});
    double sum = 0;
    for (float probability : outputs.at(0).tensor().elements<float>()) sum += probability;
    std::printf("sardonyx %s: probabilities add up to %g\n", sardonyx::version().data(), sum);
    return std::abs(sum - 1) < 1e-4 ? 0 : 1;
  } catch (const sardonyx::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
