// The code of docs/cpp_api.md, block by block: tools/guide_to_tests.py makes a test of each.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "api/support.h"
#include "sardonyx/about.h"
#include "sardonyx/check.h"
#include "sardonyx/compare.h"
#include "sardonyx/compose.h"
#include "sardonyx/convert.h"
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

// Each block runs in a folder with model.onnx, other.onnx and image.npy; what it prints is dropped.
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
    write_value("image.npy", Tensor::of<float>({1, 2, 3}, {1, 3}));
    printed_ = std::cout.rdbuf(sink_.rdbuf());
  }
  void TearDown() override {
    std::cout.rdbuf(printed_);
    std::filesystem::current_path(before_);
  }

 private:
  test::Folder folder_;
  std::filesystem::path before_;
  std::ostringstream sink_;
  std::streambuf* printed_ = nullptr;
};

#include "guide_blocks.inc"

}  // namespace
}  // namespace sardonyx
