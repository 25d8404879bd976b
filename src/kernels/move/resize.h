// Resize (and, through it, Upsample).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/counted.h"
#include "base/thread_pool.h"
#include "kernels/move/resize_lines.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

enum class ResizeMode : int32_t { nearest, linear, cubic };
enum class CoordinateMode : int32_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};
enum class NearestMode : int32_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

struct ResizeOptions {
  ResizeMode mode = ResizeMode::nearest;
  CoordinateMode coordinates = CoordinateMode::half_pixel;
  NearestMode nearest = NearestMode::round_prefer_floor;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation_value = 0;
};

struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;                   // as given, or out / in where sizes were given
  double roi_start = 0, roi_end = 1;  // tf_crop_and_resize only, normalised
  double extent = 1;                  // of the region that `scale` is a scale of
};

// The sampling tables of one resize, made once and run many times from many threads.
class Resize {
 public:
  // One axis per dimension of x. Throws Error (bad_input) for a scale that is not above 0, an empty
  // axis that must be read, or a table beyond 2^40 taps.
  Resize(const ResizeOptions& options, std::span<const ResizeAxis> axes);

  // Bytes of scratch memory that run() needs, whatever the number of threads.
  int64_t scratch_bytes(ElementType type) const;
  // Nearest takes every type with a Cell; linear and cubic all floats and integers of 8 bits or
  // more, computed in float32 (float64, int32 and int64 in float64), and complex numbers.
  bool supports(ElementType type) const;
  void run(ElementType type, const void* x, void* y, void* scratch, ThreadPool& pool) const;

 private:
  struct Table {  // out positions, each a weighted sum of `taps` inputs
    int64_t in = 1, out = 1, taps = 1;
    bool identity = true;
    CountedVector<int32_t> index;    // [out, taps], inside [0, in)
    CountedVector<double> weight;    // [out, taps]; empty for nearest
    CountedVector<uint8_t> outside;  // [out]; empty where nothing is extrapolated
  };
  // How often each element follows itself, 2 to 4 times; else 0.
  static int64_t repeats(const Table& table);
  static Table make_table(const ResizeOptions& options, const ResizeAxis& axis);
  // Each element is `parts` numbers of `type`.
  template <class A>
  void run_axes(ElementType type, int64_t parts, const void* x, void* y, A* scratch,
                ThreadPool& pool) const;
  template <class A>
  static void run_axis(const Table& table, int64_t outer, int64_t inner, const A* x, A* y,
                       ThreadPool& pool);
  // The axis that changes besides the last one that does, and how many positions of others are
  // between the two.
  struct Across {
    const Table* table = nullptr;  // null: none
    int64_t between = 1;
  };
  Across across() const;
  // Where at most two axes change, the last of them that of `along_`.
  void run_lines(const float* x, float* y, ThreadPool& pool) const;
  template <class A>
  void give(ElementType type, A* values, int64_t n, void* y, ThreadPool& pool) const;
  void run_nearest(ElementType type, const void* x, void* y, ThreadPool& pool) const;
  // Where pixels of several elements stay as they are, as images with channels last have them:
  // calls body(line, begin, end) for parts of the output's lines of pixels, on any thread.
  template <class Body>
  void for_pixels(int64_t terms, ThreadPool& pool, Body&& body) const;
  void pick(int64_t width, const void* x, void* y, ThreadPool& pool) const;
  void sum(const float* x, float* y, ThreadPool& pool) const;
  void extrapolate(ElementType type, void* y, ThreadPool& pool) const;
  int64_t largest_step() const;

  ResizeOptions options_;
  std::vector<Table> tables_;
  size_t active_ = 0;              // axes that change
  size_t last_ = 0;                // the last of them
  int64_t pixel_ = 1;              // elements of the axes behind it
  bool sums_ = false;              // float32 is pixels that are summed in one pass
  std::optional<LineSums> along_;  // of axis last_, where float32 is lines that are
  int64_t in_count_ = 1, out_count_ = 1;
};

}  // namespace sardonyx::kernels
