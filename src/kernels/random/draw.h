// Blocks of random numbers; inside random/ only.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Everywhere `n` numbers are made, a multiple of this.
inline constexpr int64_t drawn_together = 32;

// The four numbers of each of the positions first, first + 1, … first + n / 4 - 1.
void draw_bits(uint64_t key, uint64_t stream, uint64_t first, uint32_t* bits, int64_t n);

// Numbers in [0, 1): one of each word, multiples of 2^-24, or one of two words, the first having
// the upper bits, multiples of 2^-53.
void unit_floats(const uint32_t* bits, float* y, int64_t n);
void unit_doubles(const uint32_t* bits, double* y, int64_t n);

// y[i] = low + span y[i].
void stretch(float* y, float low, float span, int64_t n);
void stretch(double* y, double low, double span, int64_t n);

// Two uniform numbers give two normal ones (Box and Muller). Floats take a word each: 32 random
// bits in the radius reach 6.6 deviations.
void normal_floats(const uint32_t* bits, double mean, double deviation, float* y, int64_t n);
void normal_doubles(const double* unit, double mean, double deviation, double* y, int64_t n);

// y[i] = unit[i] < chance[i].
void flip_coins(const double* unit, const double* chance, uint8_t* y, int64_t n);

}  // namespace sardonyx::kernels
