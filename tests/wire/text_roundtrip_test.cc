// parse(print(model)) is the model, for models that others wrote: compared as bytes, after both
// are brought to one way of storing tensors and zeros.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <sstream>
#include <string_view>
#include <unordered_set>

#include "normalised_model.h"
#include "random_model.h"
#include "sardonyx/error.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;
using wire_test::normalised_bytes;

// Where models may be found: the project's own, and those of the standard where it is installed.
std::vector<fs::path> model_files() {
  const fs::path root = SARDONYX_SOURCE_DIR;
  // every_field.onnx is no model that text can say: its tensors are of element types that don't
  // exist.
  std::vector<fs::path> files;
  for (const fs::path& folder :
       {root / "build/conformance", fs::path("/usr/share/libonnx-testdata/data")}) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx" && entry.file_size() < 500'000)
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(TextRoundTrip, ModelsOfOthers) {
  size_t same = 0;
  std::unordered_set<size_t> seen;  // most models are the same in many releases
  for (const fs::path& file : model_files()) {
    const Bytes bytes = map_file(file.string());
    if (!seen.insert(std::hash<std::string_view>()(bytes.text())).second) continue;
    const ir::Model model = wire::read_model(bytes);
    const std::string text = wire::print(model);
    try {
      const ir::Model again = wire::parse_model(text);
      if (normalised_bytes(again) == normalised_bytes(model)) {
        ++same;
        continue;
      }
      ADD_FAILURE() << file << " is another model after a round trip\n" << text.substr(0, 2000);
    } catch (const Error& error) {
      ADD_FAILURE() << file << ": " << error.what() << "\n" << text.substr(0, 2000);
    }
    if (testing::Test::HasFailure()) break;
  }
  if (same == 0)
    GTEST_SKIP() << "no models of others on this machine: ./dev conformance generates them";
}

// The first lines that differ in the text format, and those before them.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines[2];
  for (int i = 0; i < 2; ++i) {
    const std::string& binary = i == 0 ? a : b;
    lines[i].str(
        wire::named_text(wire::read_model(Bytes::copy_of(std::as_bytes(std::span(binary)))),
                         wire::NamedForm::textproto));
  }
  std::string before, x, y;
  while (std::getline(lines[0], x) && std::getline(lines[1], y)) {
    if (x != y) break;
    before += x + "\n";
  }
  return before.substr(before.size() - std::min<size_t>(before.size(), 400)) + "- " + x + "\n+ " +
         y;
}

TEST(TextRoundTrip, RandomModels) {
  size_t bytes = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const ir::Model model = wire_test::random_model(seed, wire_test::Content::sound);
    const std::string text = wire::print(model), binary = normalised_bytes(model);
    bytes += binary.size();
    try {
      const ir::Model again = wire::parse_model(text);
      if (normalised_bytes(again) == binary) continue;
      ADD_FAILURE() << "seed " << seed << ": " << first_difference(binary, normalised_bytes(again));
    } catch (const Error& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what() << "\n" << text;
    }
    break;
  }
  EXPECT_GT(bytes, 100'000u);
}

}  // namespace
}  // namespace sardonyx
