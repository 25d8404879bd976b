// Times matrix multiplication and convolution against the machine's peak.
//   bench_kernels [--threads N] [--seconds S] [--cold] [--exact] [--last]
//   [probe|gemm|conv|resnet50|depthwise|all]
// --exact keeps Winograd's algorithm out; --last: convolutions with channels last.
//   bench_kernels ... one CHANNELS SIZE OUT_CHANNELS KERNEL STRIDE GROUP
//   bench_kernels ... matmul M K N
// Times are the best of many calls. --cold writes 64 MB between calls, so that weights and inputs
// come from memory, as they do in a large network.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/probe.h"

namespace {

using namespace sardonyx;
using namespace sardonyx::kernels;

struct Free {
  void operator()(void* p) const { ::operator delete (p, std::align_val_t{4096}); }
};
using Memory = std::unique_ptr<float, Free>;

// `count` floats of small values.
Memory floats(int64_t count) {
  const auto bytes = static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(float);
  Memory memory(static_cast<float*>(::operator new (bytes, std::align_val_t{4096})));
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    memory.get()[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return memory;
}

struct Options {
  int threads = 1;
  double seconds = 0.3;
  bool cold = false;
  bool exact = false;
  bool last = false;
  std::string what = "all";
  std::vector<int64_t> sizes;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), pool_(options.threads), peak_(probe_peak_flops(0.2)) {
    if (options.cold) eviction_ = floats(eviction_floats);
    std::printf("%s, %d thread(s), peak %.1f GFLOP/s a core\n",
                std::string(name_of(instruction_set())).c_str(), pool_.threads(), peak_ * 1e-9);
  }

  void probe() {
    for (const int64_t kilobytes : {16, 1024, 16 << 10, 256 << 10}) {
      std::printf("read %8lld kB: %7.1f GB/s\n", static_cast<long long>(kilobytes),
                  probe_read_bandwidth(kilobytes << 10) * 1e-9);
    }
  }

  void packed_gemm(int64_t M, int64_t K, int64_t N) {
    const Memory a = floats(M * K), b = floats(K * N), c = floats(M * N), bias = floats(N);
    const Memory packed = floats(packed_b_size(K, N) / 4);
    pack_b(b.get(), N, 1, K, N, packed.get(), &pool_);
    const Memory scratch = floats(gemm_packed_b_scratch_bytes(M, N, K, K, pool_.threads()) / 4);
    Epilogue epilogue;
    epilogue.bias = bias.get();
    epilogue.bias_axis = BiasAxis::column;
    epilogue.activation = Activation::relu;
    const double time = best([&] {
      gemm_packed_b(M, N, K, a.get(), K, {packed.get()}, c.get(), N, epilogue, scratch.get(),
                    pool_);
    });
    char name[64];
    std::snprintf(name, sizeof name, "gemm packed %lldx%lldx%lld", static_cast<long long>(M),
                  static_cast<long long>(K), static_cast<long long>(N));
    report(name, time, 2.0 * static_cast<double>(M * N) * static_cast<double>(K),
           4.0 * static_cast<double>(K * N));
  }

  void plain_gemm(int64_t batch_count, int64_t M, int64_t K, int64_t N, bool b_turned) {
    const Memory a = floats(batch_count * M * K), b = floats(batch_count * K * N),
                 c = floats(batch_count * M * N);
    const StridedMatrix left{a.get(), K, 1};
    const StridedMatrix right{b.get(), b_turned ? 1 : N, b_turned ? K : 1};
    GemmBatch batch;
    batch.rank = 1;
    batch.size[0] = batch_count;
    batch.a_stride[0] = M * K;
    batch.b_stride[0] = K * N;
    batch.c_stride[0] = M * N;
    const Memory scratch =
        floats(batched_gemm_scratch_bytes(batch, M, N, K, left, right, pool_.threads()) / 4);
    const double time = best([&] {
      batched_gemm(batch, M, N, K, left, right, c.get(), N, Epilogue(), scratch.get(), pool_);
    });
    char name[64];
    std::snprintf(name, sizeof name, "gemm plain %lldx %lldx%lldx%lld%s",
                  static_cast<long long>(batch_count), static_cast<long long>(M),
                  static_cast<long long>(K), static_cast<long long>(N), b_turned ? " B'" : "");
    report(name, time, 2.0 * static_cast<double>(batch_count * M * N) * static_cast<double>(K),
           4.0 * static_cast<double>(batch_count * K * N));
  }

  // Returns the time.
  double conv(int64_t channels, int64_t size, int64_t out_channels, int64_t kernel, int64_t stride,
              int64_t group = 1) {
    ConvParams s;
    s.in_channels = channels;
    s.out_channels = out_channels;
    s.group = group;
    s.in = {size, size, 0};
    s.kernel = {kernel, kernel, 0};
    s.stride = {stride, stride, 1};
    s.pad_begin = s.pad_end = {kernel / 2, kernel / 2, 0};
    const int64_t out = conv_out_size(size, kernel, stride, 1, kernel / 2, kernel / 2);
    s.out = {out, out, 0};
    s.nhwc = options_.last;
    if (!options_.exact) s.winograd = winograd_tile(s);
    const int64_t weights = out_channels * channels / group * kernel * kernel;
    const Memory x = floats(channels * size * size), w = floats(weights),
                 y = floats(out_channels * out * out + skew), bias = floats(out_channels);
    const Memory packed = floats(conv_packed_size(s) / 4);
    pack_conv_weights(s, w.get(), nullptr, packed.get(), &pool_);
    const Memory scratch = floats(conv_scratch_bytes(s, pool_.threads()) / 4);
    Epilogue epilogue;
    epilogue.bias = bias.get();
    epilogue.activation = Activation::relu;
    const double time = best([&] {
      conv_run(s, x.get(), packed.get(), y.get() + skew, epilogue, scratch.get(), pool_);
    });
    char name[96];
    std::snprintf(name, sizeof name, "conv %lldx%lld^2 -> %lld, %lldx%lld/%lld g%lld %s",
                  static_cast<long long>(channels), static_cast<long long>(size),
                  static_cast<long long>(out_channels), static_cast<long long>(kernel),
                  static_cast<long long>(kernel), static_cast<long long>(stride),
                  static_cast<long long>(group), std::string(name_of(choose_conv(s).path)).c_str());
    report(name, time, 2.0 * static_cast<double>(weights) * static_cast<double>(out * out),
           4.0 * static_cast<double>(weights));
    return time;
  }

 private:
  // Input and output at the same place in their pages would delay each other.
  static constexpr int64_t skew = 272;
  static constexpr int64_t eviction_floats = int64_t{16} << 20;

  // Seconds. One thread counts its own time only, so that a busy machine disturbs less.
  double now() const {
    timespec t;
    clock_gettime(pool_.threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  template <class F>
  double best(F&& f) {
    double shortest = 1e30, total = 0;
    for (int calls = 0; calls < 3 || total < options_.seconds; ++calls) {
      if (options_.cold) {
        for (int64_t i = 0; i < eviction_floats; i += 16) eviction_.get()[i] += 1;
      }
      const double start = now();
      f();
      const double time = now() - start;
      shortest = std::min(shortest, time);
      total += time;
    }
    return shortest;
  }

  void report(const char* name, double time, double operations, double weight_bytes) {
    std::printf("%-52s %9.1f us %7.1f GFLOP/s %5.1f %% of peak, weights %6.1f GB/s\n", name,
                time * 1e6, operations / time * 1e-9,
                100 * operations / time / peak_ / pool_.threads(), weight_bytes / time * 1e-9);
    std::fflush(stdout);
  }

  Options options_;
  ThreadPool pool_;
  double peak_;
  Memory eviction_;
};

void run_gemm(Bench& bench) {
  for (const auto [M, K, N] : std::initializer_list<std::array<int64_t, 3>>{{128, 768, 768},
                                                                            {128, 768, 3072},
                                                                            {128, 3072, 768},
                                                                            {197, 768, 768},
                                                                            {1024, 1024, 1024},
                                                                            {49, 512, 2048},
                                                                            {196, 256, 1024},
                                                                            {784, 128, 512},
                                                                            {3136, 64, 256},
                                                                            {1, 768, 768},
                                                                            {1, 768, 3072},
                                                                            {1, 4096, 4096},
                                                                            {2, 768, 3072},
                                                                            {4, 768, 3072},
                                                                            {8, 768, 3072},
                                                                            {1, 25088, 4096},
                                                                            {16, 768, 768},
                                                                            {64, 256, 256}}) {
    bench.packed_gemm(M, K, N);
  }
  bench.plain_gemm(12, 128, 64, 128, true);
  bench.plain_gemm(12, 128, 128, 64, false);
  bench.plain_gemm(12, 197, 64, 197, true);
  bench.plain_gemm(12, 197, 197, 64, false);
  bench.plain_gemm(12, 1, 64, 512, true);
  bench.plain_gemm(12, 1, 512, 64, false);
  bench.plain_gemm(1, 1024, 1024, 1024, false);
  bench.plain_gemm(1, 1024, 1024, 1024, true);
  bench.plain_gemm(1, 1, 4096, 4096, false);
  bench.plain_gemm(1, 1, 4096, 4096, true);
  bench.plain_gemm(1, 128, 768, 768, false);
}

void run_resnet50(Bench& bench) {
  double total = 0;
  const auto layers = [&](int count, int64_t channels, int64_t size, int64_t out, int64_t kernel,
                          int64_t stride) {
    total += count * bench.conv(channels, size, out, kernel, stride);
  };
  layers(1, 3, 224, 64, 7, 2);
  layers(1, 64, 56, 64, 1, 1);
  layers(3, 64, 56, 64, 3, 1);
  layers(4, 64, 56, 256, 1, 1);
  layers(2, 256, 56, 64, 1, 1);
  layers(1, 256, 56, 128, 1, 1);
  layers(1, 128, 56, 128, 3, 2);
  layers(1, 256, 56, 512, 1, 2);
  layers(4, 128, 28, 512, 1, 1);
  layers(3, 512, 28, 128, 1, 1);
  layers(3, 128, 28, 128, 3, 1);
  layers(1, 512, 28, 256, 1, 1);
  layers(1, 256, 28, 256, 3, 2);
  layers(1, 512, 28, 1024, 1, 2);
  layers(6, 256, 14, 1024, 1, 1);
  layers(5, 1024, 14, 256, 1, 1);
  layers(5, 256, 14, 256, 3, 1);
  layers(1, 1024, 14, 512, 1, 1);
  layers(1, 512, 14, 512, 3, 2);
  layers(1, 1024, 14, 2048, 1, 2);
  layers(3, 512, 7, 2048, 1, 1);
  layers(2, 2048, 7, 512, 1, 1);
  layers(2, 512, 7, 512, 3, 1);
  std::printf("ResNet-50, its 53 convolutions: %.2f ms\n", total * 1e3);
}

void run_depthwise(Bench& bench) {
  bench.conv(96, 56, 96, 3, 1, 96);
  bench.conv(96, 112, 96, 3, 2, 96);
  bench.conv(144, 56, 144, 3, 1, 144);
  bench.conv(384, 14, 384, 3, 1, 384);
  bench.conv(960, 7, 960, 3, 1, 960);
  bench.conv(240, 28, 240, 5, 1, 240);
  bench.conv(240, 28, 240, 5, 2, 240);
  bench.conv(672, 14, 672, 5, 1, 672);
  bench.conv(96, 56, 96, 7, 1, 96);
}

void run_conv(Bench& bench) {
  bench.conv(64, 224, 64, 3, 1);
  bench.conv(128, 112, 128, 3, 1);
  bench.conv(512, 28, 512, 3, 1);
  bench.conv(64, 224, 3, 3, 1);
  bench.conv(32, 112, 16, 1, 1);
  bench.conv(3, 224, 32, 3, 2);
  bench.conv(3, 227, 96, 11, 4);
  bench.conv(128, 56, 128, 3, 1, 32);
  bench.conv(256, 64, 256, 1, 1);
  bench.conv(64, 55, 64, 3, 1);
  bench.conv(256, 13, 256, 3, 1);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--cold") {
      options.cold = true;
    } else if (arg == "--last") {
      options.last = true;
    } else if (arg == "--exact") {
      options.exact = true;
    } else if (arg == "--threads" && i + 1 < argc) {
      options.threads = std::atoi(argv[++i]);
    } else if (arg == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else if (arg[0] >= '0' && arg[0] <= '9') {
      options.sizes.push_back(std::atoll(arg.c_str()));
    } else {
      options.what = arg;
    }
  }
  Bench bench(options);
  const auto& sizes = options.sizes;
  if (options.what == "one" && sizes.size() == 6) {
    bench.conv(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]);
  }
  if (options.what == "matmul" && sizes.size() == 3) {
    bench.packed_gemm(sizes[0], sizes[1], sizes[2]);
  }
  const auto wanted = [&](const char* name) {
    return options.what == "all" || options.what == name;
  };
  if (wanted("probe")) bench.probe();
  if (wanted("gemm")) run_gemm(bench);
  if (wanted("conv")) run_conv(bench);
  if (wanted("depthwise")) run_depthwise(bench);
  if (wanted("resnet50")) run_resnet50(bench);
  return 0;
}
