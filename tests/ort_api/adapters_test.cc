// LoRA adapters: their files, sound and damaged, and runs with them.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <type_traits>

#include "ort_api/api.h"
#include "scratch_folder.h"

namespace sardonyx::ort_api {
namespace {

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  int32_t type;
  std::string data;
};

template <class T>
std::string bytes_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

// Writes a file of FlatBuffers front to back: what a table refers to stands behind it.
class AdapterWriter {
 public:
  AdapterWriter(int32_t version, const std::vector<Parameter>& parameters) {
    number<uint32_t>(0);
    bytes_ += "TORT";
    const size_t root = table();
    set<uint32_t>(0, root);
    set(root + 4, version), set(root + 8, 5), set(root + 12, 7);  // of the format, adapter, model
    refer(root + 16);
    const size_t list = bytes_.size();
    number(static_cast<uint32_t>(parameters.size()));
    for (size_t i = 0; i < parameters.size(); ++i) number<uint32_t>(0);
    for (size_t i = 0; i < parameters.size(); ++i) write(parameters[i], list + 4 + 4 * i);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <class T>
  void set(size_t at, std::type_identity_t<T> value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void set(size_t at, int32_t value) { set<int32_t>(at, value); }
  void align(size_t ahead = 0) {
    while ((bytes_.size() + ahead) % 8 != 0) bytes_.push_back(0);
  }
  // Makes the offset at `at` lead to the end.
  void refer(size_t at) { set<uint32_t>(at, bytes_.size() - at); }

  // A table of four fields of four bytes, and the list of its fields before it.
  size_t table() {
    align();
    for (const uint16_t entry : {12, 20, 4, 8, 12, 16}) number(entry);
    const size_t at = bytes_.size();
    number<int32_t>(12);
    for (int i = 0; i < 4; ++i) number<uint32_t>(0);
    return at;
  }

  void write(const Parameter& parameter, size_t from) {
    const size_t at = table();
    set<uint32_t>(from, at - from);
    refer(at + 4);
    number(static_cast<uint32_t>(parameter.name.size()));
    bytes_ += parameter.name + '\0';
    align(4);
    refer(at + 8);
    number(static_cast<uint32_t>(parameter.shape.size()));
    bytes_ += bytes_of(parameter.shape);
    set(at + 12, parameter.type);
    align(4);
    refer(at + 16);
    number(static_cast<uint32_t>(parameter.data.size()));
    bytes_ += parameter.data;
  }

  std::string bytes_;
};

std::string adapter_bytes(const std::vector<Parameter>& parameters, int32_t version = 1) {
  return AdapterWriter(version, parameters).bytes();
}

const std::vector<Parameter>& sound_parameters() {
  static const std::vector<Parameter> parameters{{"w", {2, 2}, 1, bytes_of<float>({1, 2, 3, 4})},
                                                 {"bias", {2}, 7, bytes_of<int64_t>({5, 6})}};
  return parameters;
}

// From memory of exactly that size.
OrtStatus* load(const std::string& bytes, OrtLoraAdapter** adapter) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  return api().CreateLoraAdapterFromArray(exact.data(), exact.size(), nullptr, adapter);
}

void expect_refused(const std::string& bytes, const char* why) {
  OrtLoraAdapter* adapter = nullptr;
  EXPECT_REFUSED(load(bytes, &adapter), ORT_FAIL, why);
  EXPECT_EQ(adapter, nullptr);
}

TEST(Adapters, ReplaceDefaultsOfARun) {
  const auto env = make_env();
  const auto options = make_options();
  const auto session = make_session(env.get(), R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x, float[2,2] w = {10, 20, 30, 40}) => (float[2,2] y) { y = Add (x, w) })",
                                    options.get());
  ASSERT_NE(session, nullptr);
  OrtLoraAdapter* made = nullptr;
  ASSERT_OK(load(adapter_bytes({sound_parameters()[0]}), &made));
  const Held<OrtLoraAdapter> adapter(made, {api().ReleaseLoraAdapter});
  std::vector<float> elements{1, 1, 1, 1};
  const auto x = floats(elements, {2, 2});
  const auto run_options = make_run_options();
  ASSERT_OK(api().RunOptionsAddActiveLoraAdapter(run_options.get(), adapter.get()));
  const auto with = run(session.get(), {{"x", x.get()}}, {"y"}, run_options.get());
  EXPECT_EQ(floats_of(with[0].get()), (std::vector<float>{2, 3, 4, 5}));
  const auto without = run(session.get(), {{"x", x.get()}}, {"y"});
  EXPECT_EQ(floats_of(without[0].get()), (std::vector<float>{11, 21, 31, 41}));

  // Of bindings' runs they replace nothing.
  OrtIoBinding* binding = nullptr;
  ASSERT_OK(api().CreateIoBinding(session.get(), &binding));
  std::vector<float> sum(4);
  const auto y = floats(sum, {2, 2});
  EXPECT_OK(api().BindInput(binding, "x", x.get()));
  EXPECT_OK(api().BindOutput(binding, "y", y.get()));
  EXPECT_OK(api().RunWithBinding(session.get(), run_options.get(), binding));
  EXPECT_EQ(sum, (std::vector<float>{11, 21, 31, 41}));
  api().ReleaseIoBinding(binding);
}

TEST(Adapters, AreReadFromFiles) {
  const test::ScratchFolder folder;
  const std::filesystem::path path = folder / "a.onnx_adapter";
  std::ofstream(path, std::ios::binary) << adapter_bytes(sound_parameters());
  OrtLoraAdapter* adapter = nullptr;
  EXPECT_OK(api().CreateLoraAdapter(path.c_str(), nullptr, &adapter));
  EXPECT_NE(adapter, nullptr);
  api().ReleaseLoraAdapter(adapter);

  adapter = nullptr;
  std::filesystem::resize_file(path, 100);
  EXPECT_REFUSED(api().CreateLoraAdapter(path.c_str(), nullptr, &adapter), ORT_FAIL, path.string());
  std::filesystem::remove(path);
  EXPECT_REFUSED(api().CreateLoraAdapter(path.c_str(), nullptr, &adapter),
                 is_sardonyx() ? ORT_NO_SUCHFILE : ORT_INVALID_ARGUMENT, path.string());
  EXPECT_EQ(adapter, nullptr);
}

TEST(Adapters, MayHaveNoParameters) {
  OrtLoraAdapter* adapter = nullptr;
  EXPECT_OK(load(adapter_bytes({}), &adapter));
  api().ReleaseLoraAdapter(adapter);
  EXPECT_OK(load(adapter_bytes({{"empty", {0, 3}, 1, ""}}), &adapter));
  api().ReleaseLoraAdapter(adapter);
  api().ReleaseLoraAdapter(nullptr);
}

TEST(Adapters, OfOtherFormatsAreRefused) {
  expect_refused("", "cut off");
  expect_refused("TORT", "cut off");
  expect_refused(adapter_bytes({}, 2), "version 2");
  expect_refused(adapter_bytes({}, 0), "version 0");
  std::string bytes = adapter_bytes(sound_parameters());
  bytes[4] = 'X';
  expect_refused(bytes, "'TORT'");
}

TEST(Adapters, ParametersThatDoNotFitAreRefused) {
  const std::string data = bytes_of<float>({1, 2, 3, 4});
  expect_refused(adapter_bytes({{"w", {2, 3}, 1, data}}), "'w' is float[2,3]");
  expect_refused(adapter_bytes({{"w", {2, 2}, 11, data}}), "'w' is double[2,2]");
  expect_refused(adapter_bytes({{"w", {-2, -2}, 1, data}}), "'w' is float[-2,-2]");
  expect_refused(adapter_bytes({{"w", {INT64_MAX, INT64_MAX}, 1, data}}), "'w'");
  expect_refused(adapter_bytes({{"w", {2, 2}, 0, data}}), "'w' has elements of type 0");
  expect_refused(adapter_bytes({{"w", {2, 2}, 8, data}}), "'w' has elements of type 8");
  expect_refused(adapter_bytes({{"w", {2, 2}, 99, data}}), "'w' has elements of type 99");
  expect_refused(adapter_bytes({{"w", {2, 2}, -1, data}}), "'w' has elements of type -1");
}

TEST(Adapters, TruncatedFilesAreRefused) {
  const std::string bytes = adapter_bytes(sound_parameters());
  for (size_t size = 8; size < bytes.size(); ++size) expect_refused(bytes.substr(0, size), "file");
}

// What offsets and counts lead to is looked at: whatever they say, nothing outside is read.
TEST(Adapters, DamagedFilesAreReadSafely) {
  if (!is_sardonyx()) GTEST_SKIP() << "about Sardonyx's reader";
  const std::string bytes = adapter_bytes(sound_parameters());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0, 1, 4, 127, 128, 255}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      OrtLoraAdapter* adapter = nullptr;
      const Outcome found = outcome(load(damaged, &adapter));
      EXPECT_EQ(found.code == ORT_OK, adapter != nullptr);
      EXPECT_TRUE(found.code == ORT_OK || found.code == ORT_FAIL) << found.message;
      api().ReleaseLoraAdapter(adapter);
    }
  }
}

TEST(Adapters, ParametersHaveNamesAndBytesOfTheirOwn) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime takes the first of two";
  const Parameter& one = sound_parameters()[0];
  expect_refused(adapter_bytes({one, one}), "two parameters have the name 'w'");
}

TEST(Adapters, MissingArgumentsAreRefused) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime reads them";
  OrtLoraAdapter* adapter = nullptr;
  const std::string bytes = adapter_bytes({});
  EXPECT_REFUSED(api().CreateLoraAdapter(nullptr, nullptr, &adapter), ORT_INVALID_ARGUMENT,
                 "'adapter_file_path'");
  EXPECT_REFUSED(api().CreateLoraAdapterFromArray(nullptr, 9, nullptr, &adapter),
                 ORT_INVALID_ARGUMENT, "'bytes'");
  EXPECT_REFUSED(load(bytes, nullptr), ORT_INVALID_ARGUMENT, "'out'");
}

}  // namespace
}  // namespace sardonyx::ort_api
