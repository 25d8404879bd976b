// Tensors of any number type as doubles, for comparing and printing.
#pragma once

#include <cstdint>
#include <span>

#include "sardonyx/value.h"

namespace sardonyx {

// Numbers a tensor holds: its elements, two for each complex one. 0 for strings.
int64_t number_count(const Tensor& tensor);

// The numbers from `begin` on. `begin` is a multiple of 8.
void read_numbers(const Tensor& tensor, int64_t begin, std::span<double> numbers);

// The elements as another type, by the rules of Cast. Throws Error (unsupported) for types that
// numbers can't become.
Tensor converted(const Tensor& tensor, ElementType type);

}  // namespace sardonyx
