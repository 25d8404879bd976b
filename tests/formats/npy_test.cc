#include "formats/npy.h"

#include <gtest/gtest.h>
#include <cstring>

#include <map>
#include <random>

#include "formats/json_tensor.h"
#include "scratch_folder.h"
#include "wire/builder.h"

namespace sardonyx::formats {
namespace {

using namespace wire_test;

ElementType type_by_name(std::string_view name) {
  static const std::map<std::string_view, ElementType> types = {
      {"bfloat16", ElementType::bfloat16},
      {"float8_e4m3fn", ElementType::float8e4m3fn},
      {"float8_e4m3fnuz", ElementType::float8e4m3fnuz},
      {"float8_e5m2", ElementType::float8e5m2},
      {"float8_e5m2fnuz", ElementType::float8e5m2fnuz},
      {"int4", ElementType::int4},
      {"uint4", ElementType::uint4},
      {"float4_e2m1fn", ElementType::float4e2m1},
      {"float6_e2m3fn", ElementType::float6e2m3},
      {"float6_e3m2fn", ElementType::float6e3m2},
      {"float64", ElementType::float64},
      {"float32", ElementType::float32}};
  const auto found = types.find(name);
  return found == types.end() ? ElementType::undefined : found->second;
}

std::map<std::string, Tensor> arrays(const char* file) {
  std::map<std::string, Tensor> all;
  for (NamedTensor& t : read_npz(read_file(fixture(file)), type_by_name)) all[t.name] = t.tensor;
  return all;
}

std::string json_of(const Tensor& t) { return json_from_tensor(t).dump(); }

// The arrays of the fixtures are 0 to 5 as [2,3], in every type, byte order and element order.
void expect_arrays(const std::map<std::string, Tensor>& all) {
  for (const char* name : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                           "int4", "uint4"}) {
    EXPECT_EQ(json_of(all.at(name)), "[[0,1,2],[3,4,5]]") << name;
  }
  for (const char* name : {"float16", "float32", "float64", "bfloat16", "float8_e4m3fn",
                           "float8_e4m3fnuz", "float6_e2m3fn", "float6_e3m2fn"}) {
    EXPECT_EQ(json_of(all.at(name)), "[[0.0,1.0,2.0],[3.0,4.0,5.0]]") << name;
  }
  EXPECT_EQ(json_of(all.at("float8_e5m2")), "[[0.0,1.0,2.0],[3.0,4.0,5.0]]");
  EXPECT_EQ(json_of(all.at("float4_e2m1fn")), "[[0.0,1.0,2.0],[3.0,4.0,4.0]]");
  for (const char* name : {"int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
                           "float16", "float32", "float64", "complex64", "complex128"}) {
    EXPECT_EQ(json_of(all.at(std::string(name) + "_big_fortran")), json_of(all.at(name))) << name;
    EXPECT_EQ(all.at(std::string(name) + "_big_fortran").element_type(),
              all.at(name).element_type());
  }
  EXPECT_EQ(json_of(all.at("complex64")),
            "[[[0.0,0.0],[1.0,0.0],[2.0,0.0]],[[3.0,0.0],[4.0,0.0],[5.0,0.0]]]");
  EXPECT_EQ(json_of(all.at("bool")), "[[false,true,false],[true,false,true]]");
  EXPECT_EQ(json_of(all.at("unicode")),
            "[[\"a\",\"bc\",\"\"],[\"\u00e9\",\"\u4e2d\",\"\U0001f600\"]]");
  EXPECT_EQ(json_of(all.at("unicode_big_fortran")), json_of(all.at("unicode")));
  EXPECT_EQ(all.at("bytes").elements<std::string>()[5], "\xff");
  EXPECT_EQ(json_of(all.at("scalar")), "2.5");
  EXPECT_EQ(all.at("empty").shape(), (Shape{0, 3}));
  EXPECT_EQ(json_of(all.at("cube_fortran")),
            "[[[0,1,2,3],[4,5,6,7],[8,9,10,11]],[[12,13,14,15],[16,17,18,19],[20,21,22,23]]]");
}

TEST(Npz, ReadsWhatNumpyWrites) {
  expect_arrays(arrays("arrays_stored.npz"));
  expect_arrays(arrays("arrays_deflated.npz"));
}

TEST(Npz, ReadsWhatItWrites) {
  std::vector<NamedTensor> list;
  for (auto& [name, tensor] : arrays("arrays_stored.npz")) list.push_back({name, tensor});
  const std::string bytes = write_npz(list);
  std::map<std::string, Tensor> all;
  for (NamedTensor& t : read_npz(bytes_of(bytes), type_by_name)) all[t.name] = t.tensor;
  expect_arrays(all);
  const test::ScratchFolder folder;
  write_npz(list, folder / "x.npz");
  EXPECT_EQ(read_file(folder / "x.npz").text(), bytes);
}

TEST(Npy, AlignedArraysAreViews) {
  const Tensor tensor = Tensor::of<float>({1, 2, 3}, {3});
  const Bytes file = bytes_of(write_npy(tensor));
  const Tensor read = read_npy(file);
  EXPECT_EQ(read.owner(), file.owner());
  EXPECT_EQ(json_of(read), "[1.0,2.0,3.0]");
  EXPECT_EQ((static_cast<const std::byte*>(read.data()) - file.data()) % 64, 0);
}

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  const std::string length = version == 1 ? plain(static_cast<uint16_t>(header.size()))
                                          : plain(static_cast<uint32_t>(header.size()));
  return std::string("\x93NUMPY") + version + '\0' + length + header + data;
}
std::string refusal(const std::string& bytes, ElementType expected = ElementType::undefined) {
  return error_of([&] { read_npy(bytes_of(bytes), expected); }).what();
}
void expect_in(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Npy, VersionsAndSpellings) {
  const std::string header = "{'shape': (2L,), \"descr\": '<i2', 'fortran_order': True}\n";
  for (const char version : {1, 2, 3})
    EXPECT_EQ(json_of(read_npy(bytes_of(npy(header, std::string("\1\0\2\0", 4), version)))),
              "[1,2]");
  EXPECT_EQ(
      json_of(read_npy(bytes_of(npy("{'descr':'|i1','fortran_order':False,'shape':()}", "\5")))),
      "5");
}

TEST(Npy, UnsoundFilesAreRefused) {
  const auto header = [](const std::string& descr, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  expect_in(refusal(""), "does not begin");
  expect_in(refusal("\x93NUMPY\1"), "too short");
  expect_in(refusal(npy(header("<f4", "(2,)"), "1234567")), "needs more than the 7 bytes");
  expect_in(refusal(npy(header("<f4", "(4611686018427387904, 4)"), "")), "needs more");
  expect_in(refusal(npy(header("<f4", "(-1,)"), "1234")), "needs more");
  expect_in(refusal(npy(header("<f4", "(99999999999999999999,)"), "1234")), "64-bit");
  expect_in(refusal(npy(header("<f16", "(0,)"), "")), "dtype '<f16'");
  expect_in(refusal(npy(header("|O", "(1,)"), "x")), "Python objects");
  expect_in(refusal(npy(header("<M8[ns]", "(1,)"), "12345678")), "dates");
  expect_in(
      refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")),
      "records");
  expect_in(refusal(npy("{'descr': '<f4', 'shape': (1,)}", "1234")), "lacks");
  expect_in(refusal(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", "1234")),
            "neither True nor False");
  expect_in(refusal(npy(header("<U0", "(1000000000000,)"), "")), "empty strings");
  expect_in(refusal(npy(header("<U1", "(1,)"), std::string("\0\0\x11\0", 4))), "no character");
  expect_in(refusal(npy(header("|V1", "(1,)"), "x")), "element type");
  expect_in(refusal(npy(header("|V2", "(1,)"), "xy"), ElementType::float8e5m2), "do not fit");
  expect_in(refusal(npy(header("|i1", "(1,)"), "\x08"), ElementType::int4), "cannot hold");
  expect_in(refusal(npy(header("<f4", "(1,)"), "1234", 9)), "version is 9");
}

TEST(Npy, DamagedFilesNeverCrash) {
  std::mt19937 random(3);
  for (const char* name : {"arrays_stored.npz", "arrays_deflated.npz"}) {
    const Bytes file = read_file(fixture(name));
    for (int i = 0; i < 3000; ++i) {
      Bytes damaged =
          Bytes::copy_of(file.span().first(i % 4 == 0 ? random() % file.size() : file.size()));
      for (int flips = 3; flips > 0 && !damaged.empty(); --flips)
        damaged.mutable_data()[random() % damaged.size()] ^= std::byte{1} << (random() % 8);
      try {
        read_npz(damaged);
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal);
      }
    }
  }
  const std::string array = write_npy(Tensor::of<float>({1, 2, 3}, {3}));
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = array;
    for (int flips = 2; flips > 0; --flips)
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << (random() % 8));
    try {
      read_npy(bytes_of(damaged), i % 2 ? ElementType::bfloat16 : ElementType::undefined);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal);
    }
  }
}

TEST(Npz, UnsoundArchivesAreRefused) {
  const auto refused = [](const std::string& bytes) {
    return std::string(error_of([&] { read_npz(bytes_of(bytes)); }).what());
  };
  expect_in(refused("PK"), "too short");
  expect_in(refused(std::string(100, 'x')), "directory is not found");
  std::string bytes = write_npz({{"a", Tensor::of<float>({1, 2, 3}, {3})}});
  EXPECT_EQ(read_npz(bytes_of(bytes)).size(), 1u);
  const Tensor one = Tensor::of<float>({1}, {1}), other = Tensor::of<float>({2}, {1});
  expect_in(refused(write_npz({{"a", one}, {"a", other}})), "two arrays 'a'");
  std::string damaged = bytes;
  damaged[150] ^= 1;  // in the data
  expect_in(refused(damaged), "checksum");
  const size_t directory = bytes.find("PK\1\2");
  damaged = bytes;
  damaged[directory + 8] |= 1;
  expect_in(refused(damaged), "encrypted");
  damaged = bytes;
  damaged[directory + 10] = 14;
  expect_in(refused(damaged), "method 14");
  damaged = bytes;
  damaged[directory + 10] = 8;
  damaged.replace(directory + 24, 4, "\xff\xff\xff\x7f");
  expect_in(refused(damaged), "cannot hold");
  expect_in(refused(bytes.substr(0, bytes.size() - 1)), "directory is not found");
}

// Names of all lengths, so that arrays begin at all addresses.
TEST(Npz, ArraysAreViewsWhereverTheyLie) {
  std::vector<NamedTensor> given;
  for (int i = 0; i < 8; ++i) {
    std::vector<double> values(40, i + 0.5);
    given.push_back(
        {std::string(static_cast<size_t>(i) + 1, 'a'), Tensor::of<double>(values, {40})});
  }
  const std::string archive = write_npz(given);
  const Bytes bytes = bytes_of(archive);
  int unaligned = 0, views = 0;
  for (const NamedTensor& one : read_npz(bytes, {}, NpyAlignment::as_it_lies)) {
    const auto* at = static_cast<const std::byte*>(one.tensor.data());
    EXPECT_TRUE(at >= bytes.data() && at < bytes.data() + bytes.size()) << one.name;
    unaligned += reinterpret_cast<uintptr_t>(at) % alignof(double) != 0;
    double first = 0;
    std::memcpy(&first, at, sizeof(first));
    EXPECT_EQ(first, static_cast<double>(one.name.size()) - 0.5);
  }
  EXPECT_GT(unaligned, 0);
  for (const NamedTensor& one : read_npz(bytes)) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(one.tensor.data()) % alignof(double), 0u);
    const auto* at = static_cast<const std::byte*>(one.tensor.data());
    views += at >= bytes.data() && at < bytes.data() + bytes.size();
  }
  EXPECT_EQ(views + unaligned, 8);
}

}  // namespace
}  // namespace sardonyx::formats
