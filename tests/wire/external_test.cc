// Attacks that were published on loaders of external data, each refused; and what must work.
#include "wire/external.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "builder.h"
#include "scratch_folder.h"
#include "wire/confined_open.h"
#include "wire/sha1.h"
#include "wire/tensor.h"

#ifndef _WIN32
#include <sys/stat.h>
#endif

namespace sardonyx::wire {
namespace {

namespace fs = std::filesystem;
using namespace wire_test;

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

class External : public testing::Test {
 protected:
  External() {
    fs::create_directories(model_folder());
    write(model_folder() + "/weights.bin", plain(1.0f) + plain(2.0f) + plain(3.0f) + plain(4.0f));
    write(outer_ / "secret", plain(6.0f) + plain(7.0f) + plain(8.0f) + plain(9.0f));
  }

  std::string model_folder() const { return outer_ / "model"; }

  static ir::TensorProto tensor(const std::string& location,
                                std::vector<std::pair<std::string, std::string>> more = {},
                                std::vector<int64_t> dims = {2}) {
    ir::TensorProto proto;
    proto.name = "w";
    proto.dims = std::move(dims);
    proto.data_type = 1;
    proto.data_location = 1;
    proto.external_data.push_back({"location", location, {}});
    for (auto& [key, value] : more) proto.external_data.push_back({key, value, {}});
    return proto;
  }

  Tensor load(const ir::TensorProto& proto, ExternalOptions options = {}) {
    ExternalData external(model_folder(), std::move(options));
    return to_tensor(proto, &external);
  }
  std::string refusal(const ir::TensorProto& proto, ExternalOptions options = {}) {
    return error_of([&] { load(proto, std::move(options)); }).what();
  }
  static void expect_in(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  test::ScratchFolder outer_;
};

TEST_F(External, ReadsOffsetAndLength) {
  EXPECT_EQ(load(tensor("weights.bin")).elements<float>()[1], 2);
  EXPECT_EQ(load(tensor("weights.bin", {{"offset", "8"}})).elements<float>()[1], 4);
  EXPECT_EQ(load(tensor("./weights.bin", {{"offset", "4"}, {"length", "8"}})).elements<float>()[0],
            2);
  fs::create_directories(model_folder() + "/sub/deep");
  write(model_folder() + "/sub/deep/w..bin", plain(5.0f) + plain(5.5f));
  EXPECT_EQ(load(tensor("sub//deep/./w..bin")).elements<float>()[1], 5.5f);
}

TEST_F(External, OneMappingServesAllTensors) {
  ExternalData external(model_folder());
  const Tensor a = to_tensor(tensor("weights.bin"), &external);
  const Tensor b = to_tensor(tensor("./weights.bin", {{"offset", "8"}}), &external);
  EXPECT_EQ(a.owner(), b.owner());
  EXPECT_EQ(static_cast<const float*>(a.data()) + 2, b.data());
}

TEST_F(External, AMappingOutlivesTheResolver) {
  Tensor w;
  {
    ExternalData external(model_folder());
    w = to_tensor(tensor("weights.bin"), &external);
  }
  EXPECT_EQ(w.elements<float>()[0], 1);
}

TEST_F(External, PathsOutOfTheFolderAreRefused) {  // CVE-2022-25882, CVE-2024-27318, CVE-2026-27489
  expect_in(refusal(tensor("../secret")), "'..'");
  expect_in(refusal(tensor("sub/../../secret")), "'..'");
  expect_in(refusal(tensor("..")), "'..'");
  expect_in(refusal(tensor("./../secret")), "'..'");
  expect_in(refusal(tensor(outer_ / "secret")), "absolute");
  expect_in(refusal(tensor("//etc/passwd")), "absolute");
  expect_in(refusal(tensor("")), "no location");
  expect_in(refusal(tensor(std::string("weights.bin\0/../secret", 22))), "zero byte");
#ifdef _WIN32
  for (const char* place : {"C:\\secret", "C:secret", "\\secret", "\\\\host\\share\\secret"})
    expect_in(refusal(tensor(place)), "absolute");
  expect_in(refusal(tensor("sub\\..\\..\\secret")), "'..'");
  for (const char* place : {"weights.bin:stream", "NUL", "sub/con"})
    expect_in(refusal(tensor(place)), "external data '");
#else
  expect_in(refusal(tensor("C:\\secret")), "cannot open");
#endif
}

TEST_F(External, SymbolicLinksAreRefused) {  // CVE-2026-34447
  std::error_code problem;
  fs::create_symlink(outer_ / "secret", model_folder() + "/link", problem);
  if (problem) GTEST_SKIP() << "the system makes no symbolic links for this user";
  fs::create_directory_symlink(outer_.path(), model_folder() + "/up");
  fs::create_symlink("weights.bin", model_folder() + "/inner");
  expect_in(refusal(tensor("link")), "symbolic link");
  expect_in(refusal(tensor("link")), "trusted_folder");
  expect_in(refusal(tensor("up/secret")), "symbolic link");
  expect_in(refusal(tensor("inner")), "symbolic link");
}

TEST_F(External, HardLinksAreRefused) {  // CVE-2026-34446
  fs::create_hard_link(outer_ / "secret", model_folder() + "/hard");
  expect_in(refusal(tensor("hard")), "hard link");
  expect_in(refusal(tensor("hard")), "trusted_folder");
}

#ifndef _WIN32
TEST_F(External, LinksIntoATrustedFolderAreFollowed) {
  const std::string cache = outer_ / "cache";
  fs::create_directories(cache);
  write(cache + "/blob", plain(3.5f) + plain(4.5f));
  fs::create_symlink("../cache/blob", model_folder() + "/link");
  fs::create_symlink(outer_ / "secret", model_folder() + "/elsewhere");
  fs::create_symlink(cache, outer_ / "cache-link");
  fs::create_symlink("/dev/zero", model_folder() + "/device");
  EXPECT_EQ(load(tensor("link"), {cache}).elements<float>()[1], 4.5f);
  EXPECT_EQ(load(tensor("link"), {outer_ / "cache-link"}).elements<float>()[1], 4.5f);
  expect_in(refusal(tensor("elsewhere"), {cache}), "not in the trusted_folder");
  expect_in(refusal(tensor("link"), {cache.substr(0, cache.size() - 1)}), "cannot be resolved");
  expect_in(refusal(tensor("device"), {"/"}), "not a regular file");
  fs::create_directories(outer_ / "cac");
  expect_in(refusal(tensor("link"), {outer_ / "cac"}), "not in the trusted_folder");
  fs::create_hard_link(cache + "/blob", cache + "/second");
  EXPECT_EQ(load(tensor("link"), {cache}).elements<float>()[1], 4.5f);
}

TEST_F(External, OnlyRegularFilesAreRead) {
  mkfifo((model_folder() + "/pipe").c_str(), 0600);
  fs::create_directories(model_folder() + "/folder");
  expect_in(refusal(tensor("pipe")), "not a regular file");  // and does not wait for a writer
  expect_in(refusal(tensor("folder")), "not a regular file");
  expect_in(refusal(tensor(".")), "not a regular file");
  expect_in(refusal(tensor("weights.bin/x")), "cannot open");
  expect_in(refusal(tensor("missing")), "No such file");
}
#endif

TEST_F(External, RangesOutsideTheFileAreRefused) {  // CVE-2024-27319, openvino#34070
  expect_in(refusal(tensor("weights.bin", {{"offset", "12"}})), "8 bytes at offset 12");
  expect_in(refusal(tensor("weights.bin", {{"offset", "16"}, {"length", "8"}})),
            "which has 16 bytes");
  expect_in(refusal(tensor("weights.bin", {{"length", "17"}})), "which has 16 bytes");
  expect_in(refusal(tensor("weights.bin", {{"offset", "18446744073709551612"}, {"length", "8"}})),
            "which has 16 bytes");
  expect_in(refusal(tensor("weights.bin", {{"offset", "8"}, {"length", "18446744073709551608"}})),
            "which has 16 bytes");
  expect_in(refusal(tensor("weights.bin", {{"length", "7"}})), "need 8");
  expect_in(refusal(tensor("weights.bin", {}, {int64_t{1} << 62, 4})), "overflows");
  expect_in(refusal(tensor("weights.bin", {}, {int64_t{1} << 50})), "which has 16 bytes");
  expect_in(refusal(tensor("weights.bin", {}, {-2})), "negative");
}

TEST_F(External, NumbersAreDecimalDigitsOnly) {
  for (const char* text :
       {"-1", "+4", " 4", "4 ", "0x4", "4.0", "", "18446744073709551616", "4\n"}) {
    expect_in(refusal(tensor("weights.bin", {{"offset", text}})), "decimal number");
  }
}

TEST_F(External, OnlyKnownKeysHaveAMeaning) {  // CVE-2026-34445
  EXPECT_EQ(
      load(tensor("weights.bin", {{"basepath", "/etc"}, {"__class__", "x"}, {"raw_data", "y"}}))
          .size(),
      2);
  expect_in(refusal(tensor("weights.bin", {{"location", "other.bin"}})), "more than once");
  expect_in(refusal(tensor("weights.bin", {{"offset", "0"}, {"offset", "8"}})), "more than once");
}

TEST_F(External, AddressMarkersAreJustNames) {  // onnxruntime#28709, #29011
  expect_in(refusal(tensor("*/_ORT_MEM_ADDR_/*", {{"offset", "140737488355328"}})), "cannot open");
}

TEST_F(External, TensorsWithBothKindsOfDataAndStringsAreRefused) {
  ir::TensorProto both = tensor("weights.bin");
  both.raw_data = bytes_of("12345678");
  expect_in(refusal(both), "beside its external data");
  ir::TensorProto strings = tensor("weights.bin");
  strings.data_type = 8;
  expect_in(refusal(strings), "strings");
}

TEST_F(External, AModelFromMemoryHasNoFolder) {
  ExternalData external("");
  expect_in(error_of([&] { to_tensor(tensor("weights.bin"), &external); }).what(),
            "read from memory");
  expect_in(error_of([&] { to_tensor(tensor("weights.bin")); }).what(), "external data");
}

TEST_F(External, ChecksumsAreComparedOnRequest) {
  const std::string right = sha1_hex(read_file(model_folder() + "/weights.bin").span());
  const ExternalOptions verify{.trusted_folder = {}, .verify_checksums = true};
  EXPECT_EQ(load(tensor("weights.bin", {{"checksum", right}}), verify).size(), 2);
  expect_in(refusal(tensor("weights.bin", {{"checksum", std::string(40, '0')}}), verify), "SHA-1");
  EXPECT_EQ(load(tensor("weights.bin", {{"checksum", "anything"}})).size(), 2);
}

TEST(Sha1, KnownDigests) {
  const auto digest = [](std::string_view text) {
    return sha1_hex(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_EQ(digest(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(digest("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(digest(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

#ifndef _WIN32
// Both ways of opening agree on what they follow and what they refuse.
TEST_F(External, TheFallbackRefusesTheSame) {
  fs::create_directories(model_folder() + "/sub");
  write(model_folder() + "/sub/file", "x");
  fs::create_symlink("file", model_folder() + "/sub/link");
  fs::create_directory_symlink("sub", model_folder() + "/linked");
  fs::create_directory_symlink(outer_.path(), model_folder() + "/up");
  const os::Descriptor folder(os::open_folder(model_folder()));
  for (const std::string name : {"sub/file", "./sub//file", "weights.bin", "sub/link",
                                 "linked/file", "up/secret", "sub/none", "none/x", "."}) {
    errno = 0;
    const bool one_call = open_confined(folder.get(), name).is_open();
    const int why = one_call ? 0 : errno;
    errno = 0;
    const bool by_component = open_confined_by_component(folder.get(), name).is_open();
    EXPECT_EQ(one_call, by_component) << name;
    EXPECT_EQ(by_component ? 0 : errno, why) << name;
  }
}
#endif

}  // namespace
}  // namespace sardonyx::wire
