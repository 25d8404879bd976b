// A model whose tensors name external data in a folder of known files: what comes back lies in one
// of them, whatever the model says.
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/external.h"
#include "wire/read.h"
#include "wire/store.h"

namespace {

namespace fs = std::filesystem;
constexpr char mark = 'i';  // all that inner files hold

// A folder with files to find, and beside it one that nobody may read.
const std::string& folder() {
  static const std::string path = [] {
    std::string pattern = (fs::temp_directory_path() / "sardonyx-fuzz-XXXXXX").string();
    const fs::path outer = mkdtemp(pattern.data());
    const fs::path inner = outer / "model";
    fs::create_directories(inner / "a");
    std::ofstream(outer / "secret") << std::string(64, 's');
    std::ofstream(inner / "w.bin") << std::string(8192, mark);
    std::ofstream(inner / "a" / "b") << std::string(64, mark);
    fs::create_symlink("../secret", inner / "link");
    fs::create_hard_link(outer / "secret", inner / "hard");
    fs::create_directory_symlink("..", inner / "up");
    return inner.string();
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sardonyx;
  try {
    ir::Model model =
        wire::read_model(Bytes(nullptr, reinterpret_cast<const std::byte*>(data), size));
    wire::ExternalData external(folder(), {.trusted_folder = {}, .verify_checksums = true});
    wire::bring_in(model, external, [](const ir::TensorProto& tensor) {
      for (const char c : tensor.raw_data.text())
        require(c == mark, "bytes of a file inside the folder");
    });
  } catch (const Error&) {
  }
  return 0;
}
