// Reads the text in an image: a first network finds the lines, a second one reads each of them.
//
//   read_text DETECTOR RECOGNISER IMAGE
//
// The networks are those of PP-OCR, as the Python package rapidocr-onnxruntime carries them (the
// README says how to get them). Each line is printed with its place and how sure the network is:
//
//   left top width height confidence text
#include <sardonyx/model.h>
#include <sardonyx/session.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "../common/image.h"
#include "detect.h"

namespace {

using namespace sardonyx;
using example::Box;
using example::Image;

constexpr int64_t line_height = 48;   // that the recogniser wants
constexpr int64_t widest = 48 * 100;  // a line beyond it is no text, but costs memory

struct Line {
  std::string text;
  double confidence = 0;  // mean probability of its characters
};

// A network that gives, for each of some places from left to right, the probability of every
// character: class 0 is "none", the others are listed in the model's metadata, and the last one is
// the space, which that list leaves out.
class Recogniser {
 public:
  explicit Recogniser(const Model& model) : session_(model) {
    const auto listed = model.metadata("character");
    if (!listed)
      throw Error(ErrorCode::unsupported, "the recogniser's metadata must list its characters");
    std::istringstream lines{std::string(*listed)};
    for (std::string line; std::getline(lines, line);) characters_.push_back(line);
    characters_.push_back(" ");
  }

  Line read(const Image& image) const {
    // Its width follows from its proportions: the session takes any, and binds sizes anew when they
    // change.
    const int64_t width = std::clamp(line_height * image.width / std::max<int64_t>(image.height, 1),
                                     line_height, widest);
    Tensor pixels(ElementType::float32, {1, 3, line_height, width});
    example::write_chw(example::resized(image, line_height, width),
                       {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}, true}, 3,
                       pixels.mutable_elements<float>());
    const std::vector<Value> outputs = session_.run({{session_.inputs().at(0).name, pixels}});
    return decode(outputs.at(0).tensor());
  }

 private:
  // Connectionist temporal classification: the best character of each place; one that is the same
  // as at the place before belongs to it, unless "none" lies between.
  Line decode(const Tensor& output) const {
    const auto probabilities = output.elements<float>();
    const size_t classes = characters_.size() + 1;
    if (output.rank() != 3 || output.shape()[2] != static_cast<int64_t>(classes))
      throw Error(ErrorCode::unsupported, "the recogniser must know " + std::to_string(classes) +
                                              " classes; it gives " + to_string(output.shape()));
    Line line;
    size_t last = 0, count = 0;
    for (size_t place = 0; place < probabilities.size(); place += classes) {
      const auto of_place = probabilities.subspan(place, classes);
      const auto best = std::max_element(of_place.begin(), of_place.end());
      const auto index = static_cast<size_t>(best - of_place.begin());
      if (index != 0 && index != last) {
        line.text += characters_[index - 1];
        line.confidence += static_cast<double>(*best);
        ++count;
      }
      last = index;
    }
    if (count > 0) line.confidence /= static_cast<double>(count);
    return line;
  }

  Session session_;
  std::vector<std::string> characters_;
};

}  // namespace

int main(int count, char** words) try {
  if (count != 4) return std::cerr << "usage: read_text DETECTOR RECOGNISER IMAGE\n", 2;
  const Session detector(words[1]);
  const Recogniser recogniser{Model(words[2])};
  const Image image = example::load_image(words[3]);
  for (const Box& box : example::detect_lines(detector, image)) {
    const Line line =
        recogniser.read(example::cropped(image, box.top, box.left, box.height, box.width));
    std::printf("%lld %lld %lld %lld %.2f %s\n", static_cast<long long>(box.left),
                static_cast<long long>(box.top), static_cast<long long>(box.width),
                static_cast<long long>(box.height), line.confidence, line.text.c_str());
  }
} catch (const sardonyx::Error& error) {
  return std::cerr << "error: " << error.what() << '\n', 1;
}
