// Choosing between two inputs element by element. Inside elementwise/ only.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// y = condition != 0 ? a : b; y may be a or b.
void select(const uint8_t* condition, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n);
void select(const uint8_t* condition, const uint16_t* a, const uint16_t* b, uint16_t* y, int64_t n);
void select(const uint8_t* condition, const uint32_t* a, const uint32_t* b, uint32_t* y, int64_t n);
void select(const uint8_t* condition, const uint64_t* a, const uint64_t* b, uint64_t* y, int64_t n);

}  // namespace sardonyx::kernels
