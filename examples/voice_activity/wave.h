// Samples of a wave file, block after block, as a stream brings them.
#pragma once

#include <sardonyx/error.h>

#include <array>
#include <bit>
#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <string_view>

namespace example {

// One channel, 16 bits a sample, not compressed. Throws sardonyx::Error for everything else.
class WaveReader {
 public:
  WaveReader(std::istream& stream, uint32_t rate) : stream_(stream) {
    if (text() != "RIFF" || (number(4), text()) != "WAVE") fail("it does not begin as one");
    bool has_format = false;
    for (;;) {
      const std::string name = text();
      const uint32_t size = number(4);
      if (name == "data") {
        if (!has_format) fail("its samples come before their format");
        left_ = size;  // of a file; who writes to a pipe often says the largest number instead
        return;
      }
      if (name == "fmt ") {
        if (size < 16) fail("its format is too short");
        const uint32_t coding = number(2), channels = number(2), found = number(4);
        number(4), number(2);  // bytes a second, bytes a sample
        if (const uint32_t bits = number(2); coding != 1 || channels != 1 || bits != 16)
          fail("only one channel of 16 bits is read");
        if (found != rate)
          fail(std::to_string(found) + " samples a second instead of " + std::to_string(rate));
        has_format = true;
        stream_.ignore(size - 16 + size % 2);
      } else {
        stream_.ignore(static_cast<std::streamsize>(size) + size % 2);
      }
    }
  }

  // Fills the block with samples in [-1, 1); returns false where there are not as many any more.
  bool read(std::span<float> block) {
    for (float& sample : block) {
      std::array<char, 2> bytes;
      if (left_ < 2 || !stream_.read(bytes.data(), 2)) return false;
      left_ -= 2;
      const auto low = static_cast<uint8_t>(bytes[0]), high = static_cast<uint8_t>(bytes[1]);
      sample = static_cast<float>(static_cast<int16_t>(low | high << 8)) / 32768;
    }
    return true;
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    throw sardonyx::Error(sardonyx::ErrorCode::bad_input,
                          "this is no wave file to be used: " + why);
  }
  std::string text() {
    std::string word(4, ' ');
    if (!stream_.read(word.data(), 4)) fail("it ends in its header");
    return word;
  }
  uint32_t number(int bytes) {  // least byte first
    uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      const int next = stream_.get();
      if (next < 0) fail("it ends in its header");
      value |= static_cast<uint32_t>(next) << (8 * i);
    }
    return value;
  }

  std::istream& stream_;
  uint32_t left_ = 0;  // bytes of samples
};

}  // namespace example
