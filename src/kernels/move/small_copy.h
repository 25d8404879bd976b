// Copies too small to be worth a call.
#pragma once

#include <cstddef>
#include <cstring>

namespace sardonyx::kernels {

// `bytes` is `piece` at least: the last piece may overlap the one before.
template <size_t piece>
void copy_pieces(const char* from, char* to, size_t bytes) {
  for (size_t i = 0; i + piece < bytes; i += piece) std::memcpy(to + i, from + i, piece);
  std::memcpy(to + bytes - piece, from + bytes - piece, piece);
}

// What memcpy does.
inline void copy_few(const void* from, void* to, size_t bytes) {
  const auto* in = static_cast<const char*>(from);
  auto* out = static_cast<char*>(to);
  if (bytes >= 32) return copy_pieces<32>(in, out, bytes);
  if (bytes >= 8) return copy_pieces<8>(in, out, bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = in[i];
}

}  // namespace sardonyx::kernels
