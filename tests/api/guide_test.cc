// The code of docs/cpp_api.md and docs/guides/, block by block: tools/guide_to_tests.py makes a
// test of each.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "api/support.h"
#include "sardonyx/about.h"
#include "sardonyx/binding.h"
#include "sardonyx/check.h"
#include "sardonyx/compare.h"
#include "sardonyx/compose.h"
#include "sardonyx/convert.h"
#include "sardonyx/custom.h"
#include "sardonyx/edit.h"
#include "sardonyx/files.h"
#include "sardonyx/infer.h"
#include "sardonyx/info.h"
#include "sardonyx/inputs.h"
#include "sardonyx/model.h"
#include "sardonyx/operator_set.h"
#include "sardonyx/session.h"
#include "sardonyx/signatures.h"
#include "sardonyx/text.h"

namespace sardonyx {
namespace {

// Each block runs in a folder with the models that the pages speak of; what it prints is dropped.
class Guide : public testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());
    test::example().save("model.onnx");
    Model::from_text(
        "<ir_version: 9, opset_import: [\"\": 17]> other (float[n,2] features) => "
        "(float[n,2] classes) { classes = Softmax (features) }")
        .save("other.onnx");
    std::filesystem::copy(SARDONYX_SOURCE_DIR "/examples/digits/digits.onnx", "digits.onnx");
    write_block("decoder.onnxtxt", "text_models.md");
    std::ofstream("twice.onnxtxt")
        << "<ir_version: 9, opset_import: [\"com.example\": 1]> twice (float[n] x) => (float[n] y) "
           "{ y = com.example.Twice (x) }";
    write_value("image.npy", Tensor::of<float>({1, 2, 3}, {1, 3}));
    printed_ = std::cout.rdbuf(sink_.rdbuf());
  }
  void TearDown() override {
    std::cout.rdbuf(printed_);
    std::filesystem::current_path(before_);
  }

 private:
  // The text that a block for the shell writes into a file: between "cat > NAME" and "EOT".
  static void write_block(const std::string& name, const std::string& page) {
    std::ifstream text(SARDONYX_SOURCE_DIR "/docs/guides/" + page);
    std::ofstream file(name);
    bool inside = false;
    for (std::string line; std::getline(text, line);) {
      if (line == "EOT") inside = false;
      if (inside) file << line << '\n';
      if (line.starts_with("cat > " + name)) inside = true;
    }
  }

  test::ScratchFolder folder_;
  std::filesystem::path before_;
  std::ostringstream sink_;
  std::streambuf* printed_ = nullptr;
};

#include "guide_blocks.inc"

}  // namespace
}  // namespace sardonyx
