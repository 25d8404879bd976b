// QuantizeLinear and DequantizeLinear.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/convert/byte_scale.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Which scale and zero point belong to element [o, j, i] of a tensor seen as [outer, n, inner]:
// number o * outer_stride + (j / block) * axis_stride + i * inner_stride.
struct QuantizeLayout {
  int64_t outer = 1, n = 1, inner = 1;
  int64_t block = 1;
  int64_t outer_stride = 0, axis_stride = 0, inner_stride = 0;

  int64_t size() const { return outer * n * inner; }
};

struct QuantizeTypes {
  ElementType x = ElementType::float32;
  ElementType y = ElementType::uint8;
  ElementType scale = ElementType::float32;
  ElementType precision =
      ElementType::float32;  // of the division: float32, float64, float16, bfloat16
  bool saturate = true;      // float8 results
};

// y = saturate(round(x / scale) + zero). x: float32, float64, float16, bfloat16, int32; y: integers
// of 2 to 16 bits, float8, float6, float4e2m1; zero (of y's type) may be null.
void quantize(const QuantizeTypes& types, const QuantizeLayout& layout, const void* x,
              const void* scale, const void* zero, void* y, ThreadPool& pool);

// y = (x - zero) * scale. x: integers of 2 to 32 bits, float8, float6, float4e2m1; y: float32,
// float16, bfloat16; zero (of x's type) may be null.
void dequantize(ElementType x_type, ElementType scale_type, ElementType y_type,
                const QuantizeLayout& layout, const void* x, const void* scale, const void* zero,
                void* y, ThreadPool& pool);

// The scale and zero point that map the range of x, 0 included, to uint8.
ByteScale dynamic_scale(const float* x, int64_t n, ThreadPool& pool);
// The same, and x in them.
void dynamic_quantize(const float* x, int64_t n, uint8_t* y, float* scale, uint8_t* zero,
                      ThreadPool& pool);

}  // namespace sardonyx::kernels
