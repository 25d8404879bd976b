// write(read(file)) is the file, byte for byte, where protobuf's own writer made it.
#include <gtest/gtest.h>

#include <filesystem>

#include "builder.h"
#include "wire/read.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;
using wire_test::bytes_of;
using wire_test::number;
using wire_test::tag;
using wire_test::text;
using wire_test::varint;

TEST(Identity, EveryModelOfTheSuite) {
  size_t same = 0, different = 0;
  for (const fs::path& folder :
       {fs::path(SARDONYX_SOURCE_DIR) / "build/conformance",
        fs::path("/usr/share/libonnx-testdata/data"), fs::path(SARDONYX_SOURCE_DIR) / "examples",
        fs::path(SARDONYX_SOURCE_DIR) / "build/bench"}) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".onnx" || entry.file_size() > 64'000'000) continue;
      const Bytes file = map_file(entry.path().string());
      if (wire::write_model(wire::read_model(file)) == file.text()) {
        ++same;
      } else if (++different < 10) {
        ADD_FAILURE() << entry.path() << " is written otherwise than it was read";
      }
    }
  }
  EXPECT_EQ(different, 0u);
  EXPECT_GT(same, 0u);
  RecordProperty("models", static_cast<int>(same));
}

TEST(Identity, TensorFiles) {
  const fs::path data = fs::path(SARDONYX_SOURCE_DIR) / "tests/wire/data/tensor_every_field.pb";
  const Bytes file = map_file(data.string());
  EXPECT_EQ(wire::write_tensor(wire::read_tensor(file)), file.text());
}

std::string again(const std::string& model) {
  return wire::write_model(wire::read_model(bytes_of(model)));
}
std::string model_with_node(const std::string& node) { return text(7, text(1, node)); }
std::string model_with_tensor(const std::string& tensor) { return text(7, text(5, tensor)); }

TEST(Identity, PackingIsKept) {
  const std::string packed_ints = text(8, varint(1) + varint(300) + varint(~uint64_t{0}));
  const std::string single_ints = number(8, 1) + number(8, 300);
  const std::string packed_floats = text(7, wire_test::plain(1.0f) + wire_test::plain(2.0f));
  for (const std::string& field : {packed_ints, single_ints, packed_floats}) {
    const std::string model = model_with_node(text(5, text(1, "a") + field));
    EXPECT_EQ(again(model), model);
  }
  const std::string packed_dims = text(1, varint(2) + varint(3));
  const std::string single_data = number(5, 1) + number(5, 2);
  const std::string single_floats =
      tag(4, 5) + wire_test::plain(1.0f) + tag(4, 5) + wire_test::plain(2.0f);
  const std::string single_doubles = tag(10, 1) + wire_test::plain(1.0);
  for (const std::string& field : {packed_dims, number(1, 2) + number(1, 3), single_data,
                                   text(5, varint(1) + varint(2)), single_floats, single_doubles}) {
    const std::string model = model_with_tensor(field);
    EXPECT_EQ(again(model), model);
  }
}

TEST(Identity, PresenceIsKept) {
  const std::string zero_fields = number(1, 0) + text(2, "") + text(4, "") + number(5, 0);
  EXPECT_EQ(again(zero_fields), zero_fields);
  // A sparse tensor without values, with empty ones, and an empty string.
  for (const std::string& sparse : {std::string(), text(1, ""), text(1, "") + text(2, "")}) {
    const std::string model = text(7, text(15, sparse));
    EXPECT_EQ(again(model), model);
  }
}

TEST(Identity, UnknownFieldsOfEveryKindSurvive) {
  const std::string group = tag(900, 3) + number(1, 5) + text(2, "x") + tag(3, 3) + tag(4, 5) +
                            wire_test::plain(1.0f) + tag(3, 4) + tag(5, 1) + wire_test::plain(1.0) +
                            tag(900, 4);
  const std::string unknown = number(500, 7) + text(501, "later") + tag(502, 5) +
                              wire_test::plain(3.0f) + tag(503, 1) + wire_test::plain(4.0) + group;
  const std::string model =
      number(1, 8) + text(7, text(1, text(4, "Relu") + unknown) + unknown) + unknown;
  EXPECT_EQ(again(model), model);
}

TEST(Identity, BrokenGroupsAreRefused) {
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += tag(900, 3);
  for (const std::string& broken :
       {tag(900, 3), tag(900, 3) + tag(901, 4), tag(900, 4), tag(900, 3) + tag(1, 2) + varint(99),
        tag(900, 3) + tag(1, 6), deep}) {
    EXPECT_EQ(wire_test::error_of([&] { again(broken); }).code(), ErrorCode::unreadable);
  }
}

}  // namespace
}  // namespace sardonyx
