// Says what images show: decodes, resizes, normalises and classifies them in one batch, and prints
// the most likely labels of each.
//
//   classify_image [--imagenet] [--top N] --labels FILE MODEL IMAGE…
//
// MODEL has one input float[N, channels, height, width] with 1 or 3 channels, and gives scores or
// probabilities [N, classes]. FILE has one label a line. --imagenet: the pixels are normalised, and
// a centre of 7/8 is taken, as networks trained on ImageNet want it.
#include <sardonyx/ranking.h>
#include <sardonyx/session.h>

#include <charconv>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "../common/image.h"

namespace {

using namespace sardonyx;

struct Arguments {
  std::string model, labels;
  std::vector<std::string> images;
  bool imagenet = false;
  int64_t top = 5;
};

int64_t number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1)
    throw Error(ErrorCode::bad_input, "--top takes a number from 1 on, not '" + text + "'");
  return value;
}

Arguments parse(std::vector<std::string> words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool has_next = i + 1 < words.size();
    if (words[i] == "--imagenet")
      arguments.imagenet = true;
    else if (words[i] == "--labels" && has_next)
      arguments.labels = words[++i];
    else if (words[i] == "--top" && has_next)
      arguments.top = number(words[++i]);
    else if (arguments.model.empty())
      arguments.model = words[i];
    else
      arguments.images.push_back(words[i]);
  }
  if (arguments.images.empty() || arguments.labels.empty())
    throw Error(ErrorCode::bad_input,
                "usage: classify_image [--imagenet] [--top N] --labels FILE MODEL IMAGE…");
  return arguments;
}

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::unreadable, "the file can't be read", path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The network's input for a number of images. Its channels and sizes are those that the model says.
Shape input_shape(const Session& session, size_t images) {
  const ValueDescription& input = session.inputs().at(0);
  if (input.kind != Value::Kind::tensor || input.element_type != ElementType::float32 ||
      !input.shape || input.shape->size() != 4)
    throw Error(ErrorCode::unsupported,
                "the first input must be float[N, channels, height, width], not " + input.type);
  Shape shape{static_cast<int64_t>(images)};
  for (size_t axis = 1; axis < 4; ++axis) {
    if (!(*input.shape)[axis].size)
      throw Error(ErrorCode::unsupported,
                  "the model leaves the size of its images open: " + input.type);
    shape.push_back(*(*input.shape)[axis].size);
  }
  if (shape[1] != 1 && shape[1] != 3)
    throw Error(ErrorCode::unsupported,
                "images have 1 or 3 channels; the model wants " + input.type);
  return shape;
}

// The image in the network's size: all of it, squeezed; or its centre with the proportions kept.
example::Image fitted(const example::Image& image, int64_t height, int64_t width, bool centre) {
  if (!centre) return example::resized(image, height, width);
  const double scale = 7.0 / 8 *
                       std::min(static_cast<double>(image.height) / static_cast<double>(height),
                                static_cast<double>(image.width) / static_cast<double>(width));
  const auto side = [&](int64_t of) {
    return std::max<int64_t>(1, std::llround(scale * static_cast<double>(of)));
  };
  const int64_t h = side(height), w = side(width);
  return example::resized(
      example::cropped(image, (image.height - h) / 2, (image.width - w) / 2, h, w), height, width);
}

void print(const std::string& image, const std::vector<Answer>& answers,
           const std::vector<std::string>& labels) {
  std::cout << image << ':';
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto index = static_cast<size_t>(answers[i].index);
    const std::string label =
        index < labels.size() ? labels[index] : "class " + std::to_string(index);
    std::cout << (i > 0 ? ", " : " ") << label << ' ' << std::fixed << std::setprecision(3)
              << answers[i].probability;
  }
  std::cout << '\n';
}

void classify(const Arguments& arguments) {
  const std::vector<std::string> labels = read_lines(arguments.labels);
  const Session session(arguments.model);
  const Shape shape = input_shape(session, arguments.images.size());

  Tensor batch(ElementType::float32, shape);
  const size_t each = static_cast<size_t>(batch.size()) / arguments.images.size();
  for (size_t i = 0; i < arguments.images.size(); ++i) {
    const example::Image image = example::load_image(arguments.images[i]);
    example::write_chw(fitted(image, shape[2], shape[3], arguments.imagenet),
                       arguments.imagenet ? example::imagenet : example::Normalization{}, shape[1],
                       batch.mutable_elements<float>().subspan(i * each, each));
  }

  const std::vector<Value> outputs = session.run({{session.inputs()[0].name, batch}});
  // Probabilities stay what they are; scores become their softmax.
  const Ranking ranking = rank_answers(outputs.at(0).tensor(), arguments.top,
                                       static_cast<int64_t>(arguments.images.size()));
  for (size_t i = 0; i < arguments.images.size(); ++i)
    print(arguments.images[i], ranking.rows.at(i), labels);
}

}  // namespace

int main(int count, char** words) try {
  classify(parse(std::vector<std::string>(words + 1, words + count)));
} catch (const sardonyx::Error& error) {
  return std::cerr << "error: " << error.what() << '\n', 1;
}
