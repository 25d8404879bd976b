// Blocks of mobile networks (expanding, depthwise, squeeze and excite, projecting) against plain
// runs, on one thread and on two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sardonyx/about.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Block {
  int64_t channels = 8, expanded = 24, projected = 8;
  int64_t first = 1;  // size of the expanding kernel; 0: none
  int64_t kernel = 3, stride = 1, dilation = 1, pad = 1;
  int activation = 0;
  bool excite = false;
  bool project = true;
  bool residual = false;
  int64_t size = 0;  // of the image; 0: left open
};

class Text {
 public:
  std::string model(const Block& b) {
    std::string x = "x";
    if (b.first > 0) {
      x = conv(x, b.expanded, b.channels, b.first,
               fmt::format("pads = [{0}, {0}, {0}, {0}]", b.first / 2));
      x = activation(x, b.activation);
    }
    const int64_t channels = b.first > 0 ? b.expanded : b.channels;
    x = conv(x, channels, 1, b.kernel,
             fmt::format("group = {}, strides = [{}, {}], dilations = [{}, {}], "
                         "pads = [{}, {}, {}, {}]",
                         channels, b.stride, b.stride, b.dilation, b.dilation, b.pad, b.pad, b.pad,
                         b.pad));
    x = activation(x, b.activation);
    if (b.excite) {
      line("squeezed = GlobalAveragePool({})", x);
      std::string gate = activation(conv("squeezed", 5, channels, 1, "group = 1"), 1);
      gate = conv(gate, channels, 5, 1, "group = 1");
      line("gate = Sigmoid({})", gate);
      line("excited = Mul({}, gate)", x);
      x = "excited";
    }
    if (b.project) x = conv(x, b.projected, channels, 1, "group = 1");
    if (b.residual) {
      line("sum = Add({}, x)", x);
      x = "sum";
    }
    return fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[N, {}, {}] x) => (float[a, b, c, d] {}) {{\n{}}}\n",
        b.channels, b.size > 0 ? fmt::format("{0}, {0}", b.size) : "H, W", x, text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += "  " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string fresh() { return fmt::format("v{}", counter_++); }

  std::string constant(const std::string& shape, int64_t count, float scale) {
    std::string values;
    for (int64_t i = 0; i < count; ++i)
      values += fmt::format("{}{:.4f}", i == 0 ? "" : ", ", scale * std::cos(phase_ += 0.7f));
    const std::string name = fresh();
    line("{} = Constant<value = float[{}] {{{}}}>()", name, shape, values);
    return name;
  }

  std::string conv(const std::string& x, int64_t out, int64_t in, int64_t kernel,
                   const std::string& attributes) {
    const auto scale = 1.5f / std::sqrt(static_cast<float>(in * kernel * kernel));
    const std::string w = constant(fmt::format("{}, {}, {}, {}", out, in, kernel, kernel),
                                   out * in * kernel * kernel, scale);
    const std::string b = constant(std::to_string(out), out, 0.3f), y = fresh();
    line("{} = Conv<{}>({}, {}, {})", y, attributes, x, w, b);
    return y;
  }

  std::string activation(const std::string& x, int kind) {
    const std::string y = fresh();
    switch (kind) {
      case 0: return x;
      case 1: line("{} = Relu({})", y, x); break;
      case 2: line("{0}_s = Sigmoid({1}) {0} = Mul({1}, {0}_s)", y, x); break;
      case 3: line("{} = HardSwish({})", y, x); break;
      default:
        line("{0}_l = Constant<value_float = 0.0>() {0}_h = Constant<value_float = 0.5>()", y);
        line("{0} = Clip({1}, {0}_l, {0}_h)", y, x);
    }
    return y;
  }

  std::string text_;
  int counter_ = 0;
  float phase_ = 0;
};

Tensor image(int64_t n, int64_t c, int64_t h, int64_t w) {
  Tensor tensor(ElementType::float32, {n, c, h, w});
  float phase = 0;
  for (float& v : tensor.mutable_elements<float>()) v = std::sin(phase += 0.37f);
  return tensor;
}

void expect_same_as_plain(const Block& block, const std::vector<std::array<int64_t, 3>>& sizes) {
  const std::string text = Text().model(block);
  const Model model = Model::from_text(text);
  const Session one(model, {.threads = 1}), two(model, {.threads = 2}),
      plain(model, {.threads = 1, .reference = true});
  for (const auto& [n, h, w] : sizes) {
    SCOPED_TRACE(fmt::format("{}x{}x{}", n, h, w));
    const std::vector<NamedValue> inputs = {{"x", image(n, block.channels, h, w)}};
    const Tensor a = one.run(inputs)[0].tensor(), b = two.run(inputs)[0].tensor(),
                 expected = plain.run(inputs)[0].tensor();
    ASSERT_EQ(a.shape(), expected.shape());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0);
    for (size_t i = 0; i < a.elements<float>().size(); ++i) {
      const float wanted = expected.elements<float>()[i];
      ASSERT_NEAR(a.elements<float>()[i], wanted, 2e-5 * (1 + std::abs(wanted))) << "at " << i;
    }
  }
}

std::string describe(const Block& b) {
  return fmt::format(
      "{}->{}->{} first {} kernel {} stride {} dilation {} pad {} activation {}{}{}{}", b.channels,
      b.expanded, b.projected, b.first, b.kernel, b.stride, b.dilation, b.pad, b.activation,
      b.excite ? " excite" : "", b.project ? " project" : "", b.residual ? " residual" : "");
}

TEST(MobileBlocks, AgreeWithPlainRuns) {
  uint32_t state = 1;
  const auto next = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int64_t>((state >> 16) % below);
  };
  for (int seed = 0; seed < 60; ++seed) {
    Block b;
    b.channels = 8 + next(12);
    b.expanded = 16 + next(90);
    b.first = next(5) == 0 ? 3 : next(5) == 0 ? 0 : 1;
    b.kernel = 2 + next(4);
    b.stride = 1 + next(3);
    b.dilation = 1 + next(2);
    b.pad = next(3);
    b.activation = static_cast<int>(next(5));
    b.excite = next(3) == 0;
    b.project = next(4) != 0;
    b.projected = 8 + next(20);
    if (b.project && next(2) == 0) {
      b.kernel = 3, b.stride = b.dilation = b.pad = 1;
      b.projected = b.channels;
      b.residual = true;
    }
    SCOPED_TRACE(describe(b));
    if (seed % 3 == 0) {
      b.size = 11 + next(30);
      expect_same_as_plain(b, {{2, b.size, b.size}});
    } else {
      expect_same_as_plain(b, {{1, 13, 17}, {2, 40, 24}, {1, 9, 9}});
    }
  }
}

std::vector<StepDescription> steps_of(const Block& block) {
  return Session(Model::from_text(Text().model(block)), {.threads = 1}).steps();
}

TEST(MobileBlocks, RunInBandsWhereTheExpandedImageIsLarge) {
  const auto row_tiles = [](const Block& block) {
    const auto steps = steps_of(block);
    return std::ranges::count(steps, "conv.chain", &StepDescription::kernel);
  };
  Block b;
  b.size = 112, b.expanded = 96, b.stride = 2;
  EXPECT_EQ(row_tiles(b), 1);
  const auto sources = steps_of(b)[1].sources;
  EXPECT_EQ(sources.size(), 3u);
  for (const std::string& source : sources)
    EXPECT_EQ(source.substr(0, 13), "Conv making '") << source;
  b.size = 0;  // expected to be large
  EXPECT_EQ(row_tiles(b), 1);
  b.excite = true;  // the expanding and the depthwise one alone
  EXPECT_EQ(row_tiles(b), 1);
  b.first = 0, b.excite = false, b.channels = 64, b.size = 112, b.stride = 1;
  EXPECT_EQ(row_tiles(b), 1);
  b.size = 14;
  EXPECT_EQ(row_tiles(b), 0);
}

// To a few channels the first convolution of a tile of rows is dot products.
TEST(MobileBlocks, RunInBandsBehindConvolutionsToFewChannels) {
  if (about().instruction_set.substr(0, 4) == "neon")
    GTEST_SKIP() << "three channels nearly fill a vector of four floats";
  Block b;
  b.channels = 32, b.expanded = 3, b.first = 3, b.activation = 1, b.size = 320;
  const auto steps = steps_of(b);
  EXPECT_EQ(std::ranges::count(steps, "conv.chain", &StepDescription::kernel), 1);
  expect_same_as_plain(b, {{1, b.size, b.size}});
}

// Expanding: 16 multiply-adds and a bias; depthwise: 9 and a bias; projecting: 24 and a bias.
TEST(MobileBlocks, ProfilesCountTheOperationsOfBands) {
  Block b;
  b.size = 150, b.channels = 16;
  const Session session(Model::from_text(Text().model(b)), {.threads = 1});
  Profile profile;
  session.run({{"x", image(1, b.channels, b.size, b.size)}}, {.profile = &profile});
  const double pixels = 150 * 150;
  for (size_t i = 0; i < profile.steps().size(); ++i) {
    if (profile.steps()[i].kernel != "conv.chain") continue;
    EXPECT_EQ(profile.runs().at(0).steps.at(i).operations, pixels * (24 * 33 + 24 * 19 + 8 * 49));
    return;
  }
  FAIL() << "no step in row_tiles";
}

// The expanded image is wanted as an output too.
TEST(MobileBlocks, KeepValuesThatAreUsedElsewhere) {
  Block b;
  b.size = 112, b.expanded = 96;
  const Model model = Model::from_text(Text().model(b));
  for (const StepDescription& step : Session(model, {.threads = 1, .all_outputs = true}).steps())
    EXPECT_NE(step.kernel, "conv.chain");
}

TEST(MobileBlocks, TheMeanOfAnImageIsTakenByItsConvolution) {
  Block b;
  b.excite = true;
  b.size = 28;
  for (const StepDescription& step : steps_of(b)) {
    EXPECT_EQ(step.node.find("ReduceMean"), step.node.npos) << step.node;
    EXPECT_NE(step.node.substr(0, 4), "Mul ") << step.node;
  }
}

}  // namespace
}  // namespace sardonyx
