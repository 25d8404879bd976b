#include "image/decode.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "formats/npy.h"

namespace sardonyx::image {
namespace {

std::string fixture(const std::string& name) {
  return std::string(SARDONYX_SOURCE_DIR) + "/tests/image/data/" + name;
}

Bytes bytes_of(std::string_view text) {
  return Bytes::copy_of(std::as_bytes(std::span(text.data(), text.size())));
}

std::string little(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// How Pillow decodes each picture, to RGB.
std::map<std::string, Tensor> expected() {
  std::map<std::string, Tensor> pixels;
  for (formats::NamedTensor& t : formats::read_npz(read_file(fixture("pixels.npz"))))
    pixels[t.name] = t.tensor;
  return pixels;
}

std::vector<int> values(const Tensor& tensor) {
  const auto elements = tensor.elements<uint8_t>();
  return {elements.begin(), elements.end()};
}

ErrorCode code_of(const Bytes& bytes) {
  try {
    decode(bytes, 3);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error was thrown";
  return ErrorCode::internal;
}

TEST(Decode, AsPillowDoes) {
  for (const auto& [name, pixels] : expected()) {
    const Bytes file = read_file(fixture(name));
    if (!supports(format_of(file))) continue;
    const Tensor decoded = decode(file, 3);
    ASSERT_EQ(decoded.shape(), pixels.shape()) << name;
    // Decoders of lossy formats differ in the last bits.
    const int allowed = name.starts_with("lossy") ? 2 : name == "inks.jpg" ? 3 : 0;
    int most = 0;
    for (size_t i = 0; i < static_cast<size_t>(pixels.size()); ++i)
      most = std::max(
          most, std::abs(int{decoded.elements<uint8_t>()[i]} - pixels.elements<uint8_t>()[i]));
    EXPECT_LE(most, allowed) << name;
    EXPECT_EQ(decode(file, 1).shape()[2], 1) << name;
  }
}

TEST(Decode, PortableFormats) {
  EXPECT_EQ(values(decode(bytes_of("P1 # bits\n3 2\n101\n0 1 0"), 1)),
            (std::vector<int>{0, 255, 0, 255, 0, 255}));
  EXPECT_EQ(values(decode(bytes_of("P2\n2 1\n15\n0 15"), 1)), (std::vector<int>{0, 255}));
  EXPECT_EQ(values(decode(bytes_of("P3\n1 1\n255\n1 2 3"), 3)), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(values(decode(bytes_of(std::string("P5 1 1 65535\n\x80\x00", 15)), 1)),
            (std::vector<int>{128}));
  EXPECT_EQ(values(decode(bytes_of("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE "
                                   "RGB_ALPHA\nENDHDR\nABCD"),
                          3)),
            (std::vector<int>{65, 66, 67}));
  for (const char* text : {"P2\n2 2\n255\n1 2 3", "P5 2 2 255\nabc", "P5 2", "P3\n1 1\n255\n1 x 3",
                           "P4 9 2\nabc", "P5 1 1 70000\na", "P7\nNAME 1\nENDHDR\n"})
    EXPECT_EQ(code_of(bytes_of(text)), ErrorCode::unreadable) << text;
  EXPECT_EQ(code_of(bytes_of("P5 999999999 999999999 255\n")), ErrorCode::unsupported);
}

std::string bitmap(uint32_t width, uint32_t height, uint32_t bits, uint32_t compression,
                   const std::string& palette, const std::string& data) {
  const auto offset = static_cast<uint32_t>(54 + palette.size());
  return "BM" + little(0, 8) + little(offset, 4) + little(40, 4) + little(width, 4) +
         little(height, 4) + little(1, 2) + little(bits, 2) + little(compression, 4) +
         little(0, 12) + little(static_cast<uint32_t>(palette.size() / 4), 4) + little(0, 4) +
         palette + data;
}

TEST(Decode, BitmapsOfAllDepths) {
  // 5 bits a channel; a file from top to bottom.
  EXPECT_EQ(values(decode(bytes_of(bitmap(1, static_cast<uint32_t>(-2), 16, 0, "",
                                          little(0x7c00, 4) + little(0x001f, 4))),
                          3)),
            (std::vector<int>{255, 0, 0, 0, 0, 255}));
  // Bit fields of 5, 6 and 5.
  const std::string masks = little(0xf800, 4) + little(0x07e0, 4) + little(0x001f, 4);
  EXPECT_EQ(values(decode(bytes_of(bitmap(1, 1, 16, 3, masks, little(0x07e0, 4))), 3)),
            (std::vector<int>{0, 255, 0}));
  const std::string palette = little(0, 4) + little(0x0000ff, 4) + little(0x00ff00, 4);
  // Three of color 1, a line's end, two of color 2 as they are, the picture's end.
  const std::string runs = std::string("\x03\x01\x00\x00\x00\x03\x02\x02\x02\x00\x00\x01", 12);
  EXPECT_EQ(values(decode(bytes_of(bitmap(3, 2, 8, 1, palette, runs)), 1)),
            (std::vector<int>{150, 150, 150, 29, 29, 29}));
  const std::string nibbles = std::string("\x03\x12\x00\x01", 4);
  EXPECT_EQ(values(decode(bytes_of(bitmap(3, 1, 4, 2, palette, nibbles)), 1)),
            (std::vector<int>{29, 150, 29}));
  EXPECT_EQ(code_of(bytes_of(bitmap(3, 2, 8, 1, palette, "\x03"))), ErrorCode::unreadable);
  EXPECT_EQ(code_of(bytes_of(bitmap(9, 9, 24, 0, "", "abc"))), ErrorCode::unreadable);
  EXPECT_EQ(code_of(bytes_of(bitmap(1, 1, 7, 0, "", "abc"))), ErrorCode::unsupported);
  EXPECT_EQ(code_of(bytes_of(bitmap(1u << 30, 1u << 30, 24, 0, "", ""))), ErrorCode::unsupported);
  EXPECT_EQ(code_of(bytes_of("BM")), ErrorCode::unreadable);
}

TEST(Decode, DamagedFilesCostAnErrorAtMost) {
  std::mt19937 random(3);
  for (const auto& [name, pixels] : expected()) {
    const Bytes file = read_file(fixture(name));
    for (int i = 0; i < 150; ++i) {
      Bytes damaged =
          Bytes::copy_of(file.span().first(i % 3 == 0 ? random() % file.size() : file.size()));
      for (int flips = 3; flips > 0 && !damaged.empty(); --flips)
        damaged.mutable_data()[random() % damaged.size()] ^= std::byte{1} << (random() % 8);
      try {
        decode(damaged, 3);
      } catch (const Error&) {
      }
    }
  }
}

TEST(Decode, OtherFormatsAreNamed) {
  EXPECT_EQ(code_of(bytes_of("GIF89a")), ErrorCode::unsupported);
  EXPECT_EQ(code_of(bytes_of("")), ErrorCode::unsupported);
}

}  // namespace
}  // namespace sardonyx::image
