// Convolution against its definition, by every instruction set: what the tests of its ways share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "gemm_support.h"
#include "kernels/conv/conv.h"
#include "sanitized.h"

namespace sardonyx::kernels::test {

inline int64_t product(const ConvParams::Dims& dims, int rank) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[static_cast<size_t>(i)];
  return count;
}

// A square two-dimensional convolution.
inline ConvParams square(int64_t channels, int64_t size, int64_t out_channels, int64_t kernel,
                         int64_t stride = 1, int64_t pad = 0, int64_t group = 1) {
  ConvParams s;
  s.in_channels = channels;
  s.out_channels = out_channels;
  s.group = group;
  s.in = {size, size, 0};
  s.kernel = {kernel, kernel, 0};
  s.stride = {stride, stride, 1};
  s.pad_begin = s.pad_end = {pad, pad, 0};
  return s;
}

inline void set_out(ConvParams& s) {
  for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i) {
    s.out[i] = conv_out_size(s.in[i], s.kernel[i], s.stride[i], s.dilation[i], s.pad_begin[i],
                             s.pad_end[i]);
  }
}

inline std::string describe(const ConvParams& s) {
  std::string text = std::string(s.nhwc ? "channels last, " : "") + std::to_string(s.batch) + "x" +
                     std::to_string(s.in_channels) + "->" + std::to_string(s.out_channels) +
                     " group " + std::to_string(s.group);
  for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i) {
    text += "; in " + std::to_string(s.in[i]) + " kernel " + std::to_string(s.kernel[i]) +
            " stride " + std::to_string(s.stride[i]) + " dilation " +
            std::to_string(s.dilation[i]) + " pads " + std::to_string(s.pad_begin[i]) + "," +
            std::to_string(s.pad_end[i]);
  }
  return text;
}

class ConvTest : public ::testing::TestWithParam<int64_t> {
 protected:
  ConvTest() : target_(GetParam()) {}

  void check(ConvParams s, const Epilogue& epilogue = {}) {
    set_out(s);
    check_layout(s, epilogue);
    s.nhwc = true;
    check_layout(s, epilogue);
  }

  void check_layout(const ConvParams& s, Epilogue epilogue) {
    SCOPED_TRACE(describe(s));
    const int64_t terms = s.in_channels / s.group * product(s.kernel, s.rank);
    const int64_t in_pixels = product(s.in, s.rank), out_pixels = product(s.out, s.rank);
    // NaN stands before and after the input, so that reading outside it shows.
    Guarded x(s.batch * s.in_channels * in_pixels, 1);
    Guarded w(s.out_channels * terms, 1);
    const int64_t out = s.batch * s.out_channels * out_pixels;
    Guarded before(out), expected(out), one(out), two(out);
    fill_random(x.data(), x.size(), 1);
    fill_random(w.data(), w.size(), 2);
    fill_random(before.data(), out, 3);
    Guarded bias(s.out_channels);
    fill_random(bias.data(), s.out_channels, 4);
    if (epilogue.bias_axis != BiasAxis::none) epilogue.bias = bias.data();
    const bool residual = epilogue.residual != nullptr;
    if (residual) epilogue.residual = before.data();
    conv_reference(s, x.data(), w.data(), expected.data(), epilogue);
    if (s.nhwc) {
      if (!s.nchw_input) turn(x, s.batch, s.in_channels, in_pixels);
      turn(before, s.batch, s.out_channels, out_pixels);
      turn(expected, s.batch, s.out_channels, out_pixels);
    }

    // As sessions pack them, that know no sizes of images yet.
    ConvParams format = s;
    format.batch = 1;
    format.in = format.out = format.pad_begin = format.pad_end = {};
    EXPECT_EQ(conv_packed_size(format), conv_packed_size(s));
    Guarded packed(conv_packed_size(format) / 4);
    pack_conv_weights(format, w.data(), nullptr, packed.data(), &two_);
    EXPECT_TRUE(packed.intact());
    // What was bound for several threads may run on one.
    EXPECT_LE(conv_scratch_bytes(s, 1), conv_scratch_bytes(s, 2));
    EXPECT_LE(conv_scratch_bytes(s, 1), conv_scratch_bytes(s, 5));
    for (auto [y, pool] : {std::pair<Guarded*, ThreadPool*>{&one, &one_}, {&two, &two_}}) {
      if (residual) {  // in place
        std::copy_n(before.data(), out, y->data());
        epilogue.residual = y->data();
      }
      Guarded scratch(conv_scratch_bytes(s, pool->threads()) / 4);
      conv_run(s, x.data(), packed.data(), y->data(), epilogue, scratch.data(), *pool);
      EXPECT_TRUE(scratch.intact());
      EXPECT_TRUE(y->intact());
    }
    EXPECT_EQ(std::memcmp(one.data(), two.data(), sizeof(float) * static_cast<size_t>(out)), 0);
    const ConvPath path = choose_conv(s).path;
    // The last: long sums grow while they are rounded.
    double tolerance =
        3e-6 + 2e-6 * std::sqrt(static_cast<double>(terms)) + 1e-8 * static_cast<double>(terms);
    if (path == ConvPath::winograd || path == ConvPath::winograd_nhwc) tolerance *= 10;
    if (s.coarse) tolerance += 0x1p-15 * std::sqrt(static_cast<double>(terms));
    for (int64_t i = 0; i < out; ++i) {
      ASSERT_NEAR(one[i], expected[i], tolerance) << "at " << i;
    }
    paths_.insert(path);
  }

  // Channels x pixels to pixels x channels, in each of the batch.
  static void turn(Guarded& values, int64_t batch, int64_t channels, int64_t pixels) {
    const std::vector<float> old(values.data(), values.data() + batch * channels * pixels);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t p = 0; p < pixels; ++p) {
          values.data()[(n * pixels + p) * channels + c] =
              old[static_cast<size_t>((n * channels + c) * pixels + p)];
        }
      }
    }
  }

  UseTarget target_;
  ThreadPool one_{1};
  ThreadPool two_{2};
  std::set<ConvPath> paths_;
};

}  // namespace sardonyx::kernels::test
