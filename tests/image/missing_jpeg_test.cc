// A JPEG image where the library for it is not installed: an error that names it.
#include <gtest/gtest.h>

#include <string>

#undef SARDONYX_LINK_IMAGES
#undef SARDONYX_JPEG_FILE
#define SARDONYX_JPEG_FILE "libnot_there.so.1"
#define SARDONYX_WITH_JPEG
#define decode_jpeg decode_jpeg_of_missing_library
#include "image/jpeg.cc"
#undef decode_jpeg

namespace sardonyx::image {
namespace {

TEST(MissingLibrary, JpegIsAnErrorThatNamesIt) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      decode_jpeg_of_missing_library(Bytes::copy_of({}));
      FAIL() << "decoded by a library that is not there";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_NE(std::string(error.what()).find("JPEG images are read by libnot_there.so.1"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace sardonyx::image
