// Writing what a run gave.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/session.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// Writes output_0.npy, output_1.npy … into a folder, which is made where it is missing; sequences,
// maps, optionals and sparse tensors as .pb. All files appear at once, when they are whole. Returns
// the path of each; "" for an output that is absent. Throws Error (unreadable).
std::vector<std::string> write_output_folder(const std::string& folder,
                                             std::span<const Value> outputs);

// Writes all outputs to one .npz file, in order. An output's array has its name; "output_N" where
// that name could lead out of a folder when somebody unpacks the archive, and "_" behind it where
// another output has that name. An output that is listed twice is there once. Throws Error
// (bad_input) where an output is no tensor, (unreadable) where the file can't be written.
void write_output_npz(const std::string& path, std::span<const ValueDescription> descriptions,
                      std::span<const Value> outputs);

// Writes a report. The file appears when it is whole. Throws Error (unreadable).
void write_text(const std::string& path, std::string_view text);

}  // namespace sardonyx

#pragma GCC visibility pop
