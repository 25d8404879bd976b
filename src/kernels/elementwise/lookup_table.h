// Functions of one byte, as a table.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

constexpr int64_t lookup_table_size = 256;

// y[i] = table[x[i]] for i < n, where bytes count as unsigned; y may be x.
void look_up_bytes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n, ThreadPool& pool);

}  // namespace sardonyx::kernels
