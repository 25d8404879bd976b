// Reads texts from standard input, a line each, and prints for each what it is about, how likely
// that is, and the text.
//
//   classify_texts MODEL < texts.txt
//
// MODEL takes strings [N, 1] and gives labels [N] (strings) and probabilities [N, classes], as
// classifiers of scikit-learn do that skl2onnx has converted. Splitting into words, counting and
// judging all happen in the model.
#include <sardonyx/session.h>
#include <sardonyx/tensor_ref.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace sardonyx;

constexpr size_t largest_batch = 64;  // lines that are judged in one run

// A model whose first input takes strings, and what it gives by the type of its outputs.
struct Classifier {
  explicit Classifier(const std::string& path) : session(path) {
    if (session.inputs().at(0).element_type != ElementType::string)
      throw Error(ErrorCode::unsupported,
                  "the first input must take strings; it is " + session.inputs()[0].type, path);
    for (size_t i = 0; i < session.outputs().size(); ++i) {
      const ElementType type = session.outputs()[i].element_type;
      if (type == ElementType::string) labels = i;
      if (type == ElementType::float32) probabilities = i;
    }
    if (labels == none || probabilities == none)
      throw Error(ErrorCode::unsupported, "the model must give strings and float tensors", path);
  }

  static constexpr size_t none = static_cast<size_t>(-1);
  Session session;
  size_t labels = none, probabilities = none;  // places of the outputs
};

void classify(const Classifier& classifier, const std::vector<std::string>& lines) {
  const std::vector<std::string_view> views(lines.begin(), lines.end());
  const auto rows = static_cast<int64_t>(lines.size());
  const std::vector<Value> outputs =
      classifier.session.run({{classifier.session.inputs()[0].name, strings_of(views, {rows, 1})}});

  const auto labels = outputs[classifier.labels].tensor().elements<std::string>();
  const auto probabilities = outputs[classifier.probabilities].tensor().elements<float>();
  if (labels.size() != lines.size() || probabilities.empty())
    throw Error(ErrorCode::unsupported, "the model must give a label for each text");
  const size_t classes = probabilities.size() / lines.size();
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto of_text = probabilities.subspan(i * classes, classes);
    std::printf("%-10s %.2f  %s\n", labels[i].c_str(),
                static_cast<double>(*std::max_element(of_text.begin(), of_text.end())),
                lines[i].c_str());
  }
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) return std::cerr << "usage: classify_texts MODEL < texts\n", 2;
  const Classifier classifier(words[1]);
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    lines.push_back(line);
    if (lines.size() < largest_batch) continue;
    classify(classifier, lines);
    lines.clear();
  }
  if (!lines.empty()) classify(classifier, lines);
} catch (const sardonyx::Error& error) {
  return std::cerr << "error: " << error.what() << '\n', 1;
}
