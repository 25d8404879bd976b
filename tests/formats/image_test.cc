#include "formats/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "formats/npy.h"
#include "wire/builder.h"

namespace sardonyx::formats {
namespace {

using namespace wire_test;

class Image : public testing::Test {
 protected:
  Image() {
    if (!has_image_support()) return;
    for (NamedTensor& t : read_npz(read_file(fixture("pixels.npz")))) pixels_[t.name] = t.tensor;
  }
  void SetUp() override {
    if (!has_image_support()) GTEST_SKIP() << "built without SARDONYX_IMAGES";
  }
  static int largest_difference(const Tensor& a, const Tensor& b) {
    EXPECT_EQ(a.shape(), b.shape());
    int most = a.shape() == b.shape() ? 0 : 999;
    for (size_t i = 0; i < static_cast<size_t>(a.size()) && most < 999; ++i) {
      most = std::max(most, std::abs(int{a.elements<uint8_t>()[i]} - b.elements<uint8_t>()[i]));
    }
    return most;
  }

  std::map<std::string, Tensor> pixels_;  // as Pillow decodes the fixtures to RGB
};

TEST_F(Image, DecodesAsPillowDoes) {
  for (const auto& [name, expected] : pixels_) {
    if (name.find('.') == std::string::npos) continue;
    const int allowed =
        name.ends_with(".jpg") ? 2 : 0;  // decoders differ in the last bit of their transforms
    EXPECT_LE(largest_difference(decode_image(read_file(fixture(name)), 3), expected), allowed)
        << name;
  }
  EXPECT_EQ(
      largest_difference(decode_image(read_file(fixture("rgb.png")), 1), pixels_.at("grey_of_rgb")),
      0);
  EXPECT_EQ(decode_image(read_file(fixture("grey16.png")), 1).elements<uint8_t>()[11], 55000 / 257);
  EXPECT_EQ(decode_image(read_file(fixture("rgb.jpg")), 1).shape(), (Shape{8, 12, 1}));
}

TEST_F(Image, ResizesAsPillowDoes) {
  const Tensor image = decode_image(read_file(fixture("rgb.png")), 3);
  EXPECT_LE(largest_difference(resize_image(image, 4, 6), pixels_.at("halved")), 1);
  EXPECT_LE(largest_difference(resize_image(image, 21, 30), pixels_.at("enlarged")), 1);
  EXPECT_EQ(largest_difference(resize_image(image, 8, 12), image), 0);
}

// A million rows, widened before they are put together, would take 400 GB.
TEST_F(Image, ATallImageTakesNoMoreThanItsPixels) {
  Tensor tall(ElementType::uint8, {1'000'000, 1, 1});
  const auto pixels = tall.mutable_elements<uint8_t>();
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i / 5000);
  const Tensor wide = resize_image(tall, 4, 100'000);
  for (size_t y = 0; y < 4; ++y) {
    const auto row = wide.elements<uint8_t>().subspan(100'000 * y, 100'000);
    EXPECT_NEAR(row[0], 25 + 50 * static_cast<int>(y), 6);
    EXPECT_TRUE(std::ranges::all_of(row, [&](uint8_t pixel) { return pixel == row[0]; }));
  }
}

TEST_F(Image, BecomesAModelsInput) {
  ImageInput input;
  input.height = 4;
  input.width = 6;
  input.mean = {0.5f, 0.25f, 0};
  input.deviation = {2};
  const Tensor nchw = image_to_tensor(fixture("rgb.png"), input);
  EXPECT_EQ(nchw.shape(), (Shape{1, 3, 4, 6}));
  const Tensor small = resize_image(decode_image(read_file(fixture("rgb.png")), 3), 4, 6);
  const float green = small.elements<uint8_t>()[(2 * 6 + 3) * 3 + 1];
  EXPECT_FLOAT_EQ(nchw.elements<float>()[24 + 2 * 6 + 3], (green / 255 - 0.25f) / 2);
  input.layout = ImageLayout::nhwc;
  const Tensor nhwc = image_to_tensor(fixture("rgb.png"), input);
  EXPECT_EQ(nhwc.shape(), (Shape{1, 4, 6, 3}));
  EXPECT_EQ(nhwc.elements<float>()[(2 * 6 + 3) * 3 + 1], nchw.elements<float>()[24 + 2 * 6 + 3]);
  input.type = ElementType::uint8;
  EXPECT_EQ(image_to_tensor(fixture("rgb.png"), input).elements<uint8_t>()[(2 * 6 + 3) * 3 + 1],
            green);
  input.mean = {1, 2};
  EXPECT_EQ(error_of([&] { image_to_tensor(fixture("rgb.png"), input); }).code(),
            ErrorCode::bad_input);
}

TEST_F(Image, HostileImagesAreRefused) {
  const auto refused = [](const Bytes& bytes) {
    return std::string(error_of([&] { decode_image(bytes, 3); }).what());
  };
  EXPECT_NE(refused(bytes_of("GIF89a")).find("no image that is read"), std::string::npos);
  // A header that claims 60000 x 60000 pixels, its checksum made right.
  const std::string chunk = std::string("IHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0", 17);
  uint32_t crc = 0xffffffff;
  for (const char c : chunk) {
    crc ^= static_cast<unsigned char>(c);
    for (int k = 0; k < 8; ++k) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  crc = __builtin_bswap32(~crc);
  const std::string end = std::string("\0\0\0\0IDAT\x35\xaf\x06\x1e", 12);
  const std::string huge =
      std::string("\x89PNG\r\n\x1a\n\0\0\0\x0d", 12) + chunk + plain(crc) + end;
  EXPECT_NE(refused(bytes_of(huge)).find("limit"), std::string::npos) << refused(bytes_of(huge));
  EXPECT_NE(std::string(error_of([] {
                          resize_image(Tensor(ElementType::uint8, {1, 1, 3}), 1 << 20, 1 << 20);
                        }).what())
                .find("limit"),
            std::string::npos);
}

TEST_F(Image, DamagedImagesNeverCrash) {
  std::mt19937 random(11);
  size_t refused = 0;
  for (const char* name : {"rgb.png", "palette.png", "rgb.jpg", "progressive.jpg", "grey.jpg"}) {
    const Bytes file = read_file(fixture(name));
    for (size_t size = 0; size < file.size(); size += 1 + file.size() / 100) {
      EXPECT_THROW(decode_image(Bytes::copy_of(file.span().first(size)), 3), Error)
          << name << " " << size;
    }
    for (int i = 0; i < 1500; ++i) {
      Bytes damaged = Bytes::copy_of(file.span());
      for (int flips = 3; flips > 0; --flips)
        damaged.mutable_data()[random() % damaged.size()] ^= std::byte{1} << (random() % 8);
      try {
        decode_image(damaged, 1);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace sardonyx::formats
