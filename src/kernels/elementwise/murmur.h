// MurmurHash3 of 32 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace sardonyx::kernels {

uint32_t murmur_hash(std::string_view bytes, uint32_t seed);

}  // namespace sardonyx::kernels
