// Kernels beside oneDNN's on the same sizes, in turn within one process; prints JSON.
//   beside_onednn [--threads N] [--rounds N] [--filter TEXT]
// oneDNN takes its threads from OMP_NUM_THREADS, which has to say N too. Both sides work on weights
// in their own packed form and on images in the layout their networks use: ours with channels last,
// oneDNN's as it chooses. Each row: medians over rounds of calls in turn.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/probe.h"
#include "kernels/rows/normalize.h"
#include "kernels/rows/softmax.h"

namespace {

using namespace sardonyx;
using namespace sardonyx::kernels;
using dnnl::memory;

struct Free {
  void operator()(float* p) const { ::operator delete (p, std::align_val_t{4096}); }
};
using Floats = std::shared_ptr<float>;

Floats floats(int64_t count) {
  const auto bytes = static_cast<size_t>(std::max<int64_t>(count, 16)) * sizeof(float);
  Floats made(static_cast<float*>(::operator new (bytes, std::align_val_t{4096})), Free());
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    made.get()[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return made;
}

Floats bytes_of(int64_t bytes) { return floats((bytes + 3) / 4); }

struct Options {
  int threads = 1;
  int rounds = 9;
  std::string filter;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        pool_(options.threads),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_) {}

  ThreadPool& pool() { return pool_; }

  void product(int64_t M, int64_t K, int64_t N) {
    const std::string name =
        "matmul " + std::to_string(M) + "x" + std::to_string(K) + "x" + std::to_string(N);
    if (!wanted(name)) return;
    const Floats a = floats(M * K), b = floats(K * N), c = floats(M * N), bias = floats(N);
    const Floats packed = bytes_of(packed_b_size(K, N));
    pack_b(b.get(), N, 1, K, N, packed.get(), &pool_);
    const Floats scratch = bytes_of(gemm_packed_b_scratch_bytes(M, N, K, K, pool_.threads()));
    Epilogue epilogue;
    epilogue.bias = bias.get();
    epilogue.bias_axis = BiasAxis::column;
    epilogue.activation = Activation::relu;
    const auto ours = [=, this] {
      gemm_packed_b(M, N, K, a.get(), K, PackedMatrix{packed.get()}, c.get(), N, epilogue,
                    scratch.get(), pool_);
    };
    const auto plain = [](memory::dims dims) {
      return memory::desc(std::move(dims), memory::data_type::f32, memory::format_tag::ab);
    };
    const memory::desc any({K, N}, memory::data_type::f32, memory::format_tag::any);
    const dnnl::matmul::primitive_desc chosen({plain({M, K}), any, plain({1, N}), plain({M, N})},
                                              relu(), engine_);
    theirs_of(dnnl::matmul(chosen), {{DNNL_ARG_SRC, fresh(plain({M, K}))},
                                     {DNNL_ARG_WEIGHTS, fresh(chosen.weights_desc())},
                                     {DNNL_ARG_BIAS, fresh(plain({1, N}))},
                                     {DNNL_ARG_DST, fresh(plain({M, N}))}});
    report(name, 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K),
           4.0 * static_cast<double>(M * K + K * N + M * N), ours);
  }

  void convolution(const std::string& kind, int64_t channels, int64_t size, int64_t out_channels,
                   int64_t kernel, int64_t stride, int64_t group) {
    const std::string name = kind + " " + std::to_string(channels) + "x" + std::to_string(size) +
                             "^2 to " + std::to_string(out_channels) +
                             (stride > 1 ? " stride " + std::to_string(stride) : "");
    if (!wanted(name)) return;
    ConvParams s;
    s.in_channels = channels, s.out_channels = out_channels, s.group = group;
    s.in = {size, size, 0}, s.kernel = {kernel, kernel, 0}, s.stride = {stride, stride, 1};
    s.pad_begin = s.pad_end = {kernel / 2, kernel / 2, 0};
    const int64_t out = conv_out_size(size, kernel, stride, 1, kernel / 2, kernel / 2);
    s.out = {out, out, 0};
    s.nhwc = true;
    s.winograd = winograd_tile(s);
    const int64_t weights = out_channels * channels / group * kernel * kernel;
    const Floats x = floats(channels * size * size), w = floats(weights),
                 y = floats(out_channels * out * out + skew), bias = floats(out_channels),
                 packed = bytes_of(conv_packed_size(s)),
                 scratch = bytes_of(conv_scratch_bytes(s, pool_.threads()));
    pack_conv_weights(s, w.get(), nullptr, packed.get(), &pool_);
    Epilogue epilogue;
    epilogue.bias = bias.get();
    epilogue.bias_axis = BiasAxis::column;
    epilogue.activation = Activation::relu;
    const auto ours = [=, this] {
      conv_run(s, x.get(), packed.get(), y.get() + skew, epilogue, scratch.get(), pool_);
    };
    const auto any = [](memory::dims dims) {
      return memory::desc(std::move(dims), memory::data_type::f32, memory::format_tag::any);
    };
    const memory::dims weight_dims =
        group > 1 ? memory::dims{group, out_channels / group, channels / group, kernel, kernel}
                  : memory::dims{out_channels, channels, kernel, kernel};
    const dnnl::convolution_forward::primitive_desc chosen(
        {dnnl::prop_kind::forward_inference,
         dnnl::algorithm::convolution_auto,
         any({1, channels, size, size}),
         any(weight_dims),
         memory::desc({out_channels}, memory::data_type::f32, memory::format_tag::a),
         any({1, out_channels, out, out}),
         {stride, stride},
         {kernel / 2, kernel / 2},
         {kernel / 2, kernel / 2}},
        relu(), engine_);
    theirs_of(dnnl::convolution_forward(chosen), {{DNNL_ARG_SRC, fresh(chosen.src_desc())},
                                                  {DNNL_ARG_WEIGHTS, fresh(chosen.weights_desc())},
                                                  {DNNL_ARG_BIAS, fresh(chosen.bias_desc())},
                                                  {DNNL_ARG_DST, fresh(chosen.dst_desc())}});
    report(name + " " + std::string(name_of(choose_conv(s).path)),
           2.0 * static_cast<double>(weights) * static_cast<double>(out * out),
           4.0 * static_cast<double>(channels * size * size + weights + out_channels * out * out),
           ours);
  }

  void softmax_rows(int64_t rows, int64_t n) {
    const std::string name = "softmax " + std::to_string(rows) + "x" + std::to_string(n);
    if (!wanted(name)) return;
    const Floats x = floats(rows * n), y = floats(rows * n + skew);
    const memory::desc shape({rows, n}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::softmax_forward::primitive_desc chosen(
        {dnnl::prop_kind::forward_inference, shape, 1}, engine_);
    theirs_of(dnnl::softmax_forward(chosen),
              {{DNNL_ARG_SRC, fresh(shape)}, {DNNL_ARG_DST, fresh(shape)}});
    report(name, 0, 8.0 * static_cast<double>(rows * n), [=, this] {
      kernels::softmax(ElementType::float32, x.get(), y.get() + skew, rows, n, 1, pool_);
    });
  }

  void layer_norm_rows(int64_t rows, int64_t n) {
    const std::string name = "layer norm " + std::to_string(rows) + "x" + std::to_string(n);
    if (!wanted(name)) return;
    const Floats x = floats(rows * n), y = floats(rows * n + skew), scale = floats(n),
                 bias = floats(n);
    const memory::desc shape({rows, n}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::layer_normalization_forward::primitive_desc chosen(
        {dnnl::prop_kind::forward_inference, shape, 1e-5f,
         dnnl::normalization_flags::use_scale_shift},
        engine_);
    theirs_of(dnnl::layer_normalization_forward(chosen),
              {{DNNL_ARG_SRC, fresh(shape)},
               {DNNL_ARG_SCALE_SHIFT, fresh(chosen.weights_desc())},
               {DNNL_ARG_DST, fresh(shape)}});
    report(name, 0, 8.0 * static_cast<double>(rows * n), [=, this] {
      layer_norm(ElementType::float32, x.get(), scale.get(), bias.get(), y.get() + skew,
                 ElementType::float32, nullptr, nullptr, rows, n, 1e-5, pool_);
    });
  }

  void elements(const std::string& kind, UnaryOp op, dnnl::algorithm algorithm, int64_t n) {
    const std::string name = kind + " " + std::to_string(n);
    if (!wanted(name)) return;
    const Floats x = floats(n), y = floats(n + skew);
    const memory::desc shape({n}, memory::data_type::f32, memory::format_tag::a);
    const dnnl::eltwise_forward::primitive_desc chosen(
        {dnnl::prop_kind::forward_inference, algorithm, shape, 0.f, 0.f}, engine_);
    theirs_of(dnnl::eltwise_forward(chosen),
              {{DNNL_ARG_SRC, fresh(shape)}, {DNNL_ARG_DST, fresh(shape)}});
    report(name, 0, 8.0 * static_cast<double>(n),
           [=, this] { unary(op, ElementType::float32, x.get(), y.get() + skew, n, {}, pool_); });
  }

 private:
  // Input and output at the same place in their pages would delay each other.
  static constexpr int64_t skew = 272;

  static dnnl::primitive_attr relu() {
    dnnl::primitive_attr attributes;
    dnnl::post_ops post;
    post.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
    attributes.set_post_ops(post);
    return attributes;
  }

  memory fresh(const memory::desc& shape) {
    memory made(shape, engine_);
    auto* values = static_cast<float*>(made.get_data_handle());
    const Floats filling = floats(static_cast<int64_t>(shape.get_size() / 4));
    std::copy(filling.get(), filling.get() + shape.get_size() / 4, values);
    return made;
  }

  void theirs_of(const dnnl::primitive& primitive,
                 const std::unordered_map<int, memory>& arguments) {
    theirs_ = [this, primitive, arguments] {
      primitive.execute(stream_, arguments);
      stream_.wait();
    };
  }

  bool wanted(const std::string& name) const {
    return name.find(options_.filter) != std::string::npos;
  }

  // Microseconds. One thread counts its own time only, so that a busy machine disturbs less.
  double now() const {
    timespec t;
    clock_gettime(options_.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  }

  // Microseconds a call.
  double time(const std::function<void()>& call, int batch) const {
    const double start = now();
    for (int i = 0; i < batch; ++i) call();
    return (now() - start) / batch;
  }

  void report(const std::string& name, double operations, double bytes,
              const std::function<void()>& ours) {
    const std::function<void()>* sides[] = {&ours, &theirs_};
    int batch[2];
    for (int side = 0; side < 2; ++side) {
      (*sides[side])();
      const double once = std::max(time(*sides[side], 2), 0.05);
      batch[side] = static_cast<int>(std::clamp(20e3 / once, 1.0, 1e5));
    }
    std::vector<double> times[2], ratios;
    for (int round = 0; round < options_.rounds; ++round) {
      for (int turn = 0; turn < 2; ++turn) {
        const int side = (turn + round) % 2;
        time(*sides[side], 1 + batch[side] / 10);  // warms up
        times[side].push_back(time(*sides[side], batch[side]));
      }
      ratios.push_back(times[1].back() / times[0].back());
    }
    for (auto* list : {&times[0], &times[1], &ratios}) std::sort(list->begin(), list->end());
    const size_t middle = static_cast<size_t>(options_.rounds) / 2;
    std::printf(
        "%s {\"name\": \"%s\", \"ours_us\": %.4f, \"theirs_us\": %.4f, \"ratio\": %.4f, "
        "\"operations\": %.0f, \"bytes\": %.0f}",
        first_ ? "" : ",\n", name.c_str(), times[0][middle], times[1][middle], ratios[middle],
        operations, bytes);
    std::fflush(stdout);
    first_ = false;
  }

  Options options_;
  ThreadPool pool_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::function<void()> theirs_;
  bool first_ = true;
};

void run_all(Bench& bench) {
  for (const auto& [M, K, N] : {std::array<int64_t, 3>{128, 768, 768},
                                {128, 768, 3072},
                                {128, 3072, 768},
                                {197, 768, 768},
                                {1024, 1024, 1024},
                                {49, 512, 2048},
                                {3136, 64, 256}}) {
    bench.product(M, K, N);
  }
  for (const auto& [M, K, N] :
       {std::array<int64_t, 3>{1, 768, 768}, {1, 768, 3072}, {1, 4096, 4096}, {4, 768, 3072}}) {
    bench.product(M, K, N);
  }
  bench.convolution("pointwise", 64, 56, 256, 1, 1, 1);
  bench.convolution("pointwise", 256, 14, 1024, 1, 1, 1);
  bench.convolution("pointwise", 512, 7, 2048, 1, 1, 1);
  bench.convolution("pointwise", 96, 56, 24, 1, 1, 1);
  bench.convolution("3x3", 64, 56, 64, 3, 1, 1);
  bench.convolution("3x3", 128, 28, 128, 3, 1, 1);
  bench.convolution("3x3", 256, 14, 256, 3, 1, 1);
  bench.convolution("3x3", 512, 7, 512, 3, 1, 1);
  bench.convolution("3x3", 128, 56, 128, 3, 2, 1);
  bench.convolution("7x7", 3, 224, 64, 7, 2, 1);
  bench.convolution("depthwise 3x3", 96, 112, 96, 3, 2, 96);
  bench.convolution("depthwise 3x3", 144, 56, 144, 3, 1, 144);
  bench.convolution("depthwise 3x3", 384, 14, 384, 3, 1, 384);
  bench.convolution("depthwise 5x5", 672, 14, 672, 5, 1, 672);
  bench.softmax_rows(1536, 128);
  bench.softmax_rows(1, 50257);
  bench.layer_norm_rows(128, 768);
  bench.layer_norm_rows(1, 768);
  for (const int64_t n : {int64_t{8192}, int64_t{1} << 20}) {
    bench.elements("exp", UnaryOp::exp, dnnl::algorithm::eltwise_exp, n);
    bench.elements("tanh", UnaryOp::tanh, dnnl::algorithm::eltwise_tanh, n);
    bench.elements("sigmoid", UnaryOp::sigmoid, dnnl::algorithm::eltwise_logistic, n);
    bench.elements("gelu by erf", UnaryOp::gelu, dnnl::algorithm::eltwise_gelu_erf, n);
  }
}

}  // namespace

int main(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--threads") options.threads = std::max(1, std::atoi(words[i + 1]));
    if (word == "--rounds") options.rounds = std::max(1, std::atoi(words[i + 1]));
    if (word == "--filter") options.filter = words[i + 1];
  }
  try {
    const dnnl_version_t* version = dnnl_version();
    std::printf("{\"threads\": %d, \"onednn\": \"%d.%d.%d\", \"rows\": [\n", options.threads,
                version->major, version->minor, version->patch);
    Bench bench(options);
    run_all(bench);
    std::printf("\n]}\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "beside_onednn: %s\n", error.what());
    return 1;
  }
  return 0;
}
