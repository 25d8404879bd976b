// Adding to a model file at its end. A message that stands twice in protobuf's binary form is one
// message with the fields of both: what a second `graph` holds joins what the first one holds.
#pragma once

#include <span>
#include <string>

#include "ir/model.h"

namespace sardonyx::wire {

// True where a file of this size can be added to. (Where one byte is missing to a whole block, no
// field is short enough to fill it.)
bool can_append(uint64_t file_size);

// Appends the entries to the main graph's value_info in the file open on `descriptor` (for
// appending), whose length must still be `file_size`. No byte that stands in the file is written
// again. After an interruption the file holds all of the first so many entries and is sound: each
// block of the disk ends with a whole field. On an error the file has its old length. Entries that
// take more than a block are left out; returns how many were written. Throws Error (unreadable)
// with the path.
size_t append_value_info(int descriptor, const std::string& path, uint64_t file_size,
                         std::span<const ir::ValueInfo> entries);

}  // namespace sardonyx::wire
