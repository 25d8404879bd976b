// Any bytes as a file that holds a value for an input, as the program reads it: by the name's
// ending, for inputs of many types and shapes. What is read is a value that a session takes or
// refuses, and what the session gives is written and read again.
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/npy.h"
#include "sardonyx/inputs.h"
#include "sardonyx/session.h"
#include "target.h"

namespace {

using namespace sardonyx;
namespace fs = std::filesystem;

constexpr std::string_view endings[] = {".npy", ".npz", ".pb", ".json", ".txt", ".png"};

// Files of all endings that are one and the same, in memory.
class Files {
 public:
  Files() : descriptor_(memfd_create("value", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "there is memory for a file");
    std::string pattern = (fs::temp_directory_path() / "sardonyx-fuzz-XXXXXX").string();
    require(mkdtemp(pattern.data()) != nullptr, "there is a folder for links");
    folder_ = pattern;
    for (const std::string_view ending : endings)
      fs::create_symlink("/proc/self/fd/" + std::to_string(descriptor_), path(ending));
  }
  ~Files() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  void hold(const uint8_t* data, size_t size) const {
    require(ftruncate(descriptor_, static_cast<off_t>(size)) == 0, "the file has its size");
    require(pwrite(descriptor_, data, size, 0) == static_cast<ssize_t>(size),
            "the file is written");
  }
  std::string path(std::string_view ending) const {
    return (folder_ / "value").string() + std::string(ending);
  }

 private:
  int descriptor_;
  fs::path folder_;
};

constexpr std::string_view types[] = {"float[n, 3, 8, 8]",
                                      "uint8[1, height, width, 3]",
                                      "uint8[bytes]",
                                      "float[a, b]",
                                      "float16",
                                      "int4[2, c]",
                                      "bool[d]",
                                      "string[e]",
                                      "int64[]",
                                      "complex64[f]",
                                      "bfloat16[2]",
                                      "seq(float[g])",
                                      "optional(int32[h])",
                                      "optional(seq(int64[]))",
                                      "float8e5m2[]"};

// A model that hands on a value of one type.
SessionOptions one_thread() {
  SessionOptions options;
  options.threads = 1;
  return options;
}

struct HandedOn {
  Model model;
  Session session;
  explicit HandedOn(const std::string& text)
      : model(Model::from_text(text)), session(model, one_thread()) {}
};

const std::vector<HandedOn>& models() {
  static const std::vector<HandedOn> all = [] {
    std::vector<HandedOn> made;
    for (const std::string_view type : types) {
      made.emplace_back("<ir_version: 13, opset_import: [\"\" : 23]> g (" + std::string(type) +
                        " x) => (y) { y = Identity (x) }");
    }
    return made;
  }();
  return all;
}

template <class Body>
void answer(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    require(error.code() != ErrorCode::internal, error.what());
  }
}

void write_and_read(const Value& value) {
  if (!value.is_tensor()) return;
  const std::string array = formats::write_npz({{"x", value.tensor()}});
  const auto read = formats::read_npz(
      Bytes(nullptr, reinterpret_cast<const std::byte*>(array.data()), array.size()),
      [&](std::string_view) { return value.tensor().element_type(); });
  require(read.size() == 1 && read[0].tensor.shape() == value.tensor().shape(),
          "an archive that was written is read back");
}

void try_file(const Files& files, std::string_view ending) {
  for (const HandedOn& each : models()) {
    answer([&] {
      const ValueDescription wanted = each.session.inputs()[0];
      const Value value = read_value_file(files.path(ending), each.model, wanted);
      const std::vector<Value> given = each.session.run({{"x", value}});
      require(given[0].kind() == value.kind(), "a value that is handed on stays what it is");
      write_and_read(given[0]);
    });
  }
}

// What the first bytes say the file is.
std::string_view likely_ending(std::string_view text) {
  if (text.starts_with("PK")) return ".npz";
  if (text.starts_with("\x93NUMPY")) return ".npy";
  if (text.starts_with("[") || text.starts_with("{") || text.starts_with("\"")) return ".json";
  if (text.starts_with("\x89PNG") || text.starts_with("\xff\xd8")) return ".png";
  return ".pb";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Files files;
  files.hold(data, size);
  try_file(files, likely_ending({reinterpret_cast<const char*>(data), size}));
  try_file(files, endings[size % std::size(endings)]);
  answer([&] {
    std::vector<ValueDescription> wanted;
    for (const HandedOn& each : models()) wanted.push_back(each.session.inputs()[0]);
    (void)read_npz_values(files.path(".npz"), wanted);
  });
  return 0;
}
