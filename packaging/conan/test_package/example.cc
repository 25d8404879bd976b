// A model of one node, in text, and its answer.
#include <sardonyx/session.h>

#include <cstdio>

int main() {
  const auto model = sardonyx::Model::from_text(
      "<ir_version: 9, opset_import: [\"\": 17]> twice (float[n] x) => (float[n] y) { y = Add (x, "
      "x) }");
  const auto x = sardonyx::Tensor::of<float>({1, 2, 3}, {3});
  const auto outputs = sardonyx::Session(model).run({{"x", x}});
  const float last = outputs.at(0).tensor().elements<float>()[2];
  std::printf("sardonyx %s: 3 + 3 = %g\n", sardonyx::version().data(), last);
  return last == 6 ? 0 : 1;
}
