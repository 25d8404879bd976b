// How much memory the messages of a model take, for those who are about to copy them.
#pragma once

#include <cstdint>

#include "ir/model.h"

namespace sardonyx::wire {

// Bytes of the struct and of what it owns alone: what a copy of it takes. Elements of tensors that
// are views of a file, and what copies share (graphs and tensors in attributes), do not count.
int64_t memory_of(const ir::Node& node);
int64_t memory_of(const ir::ValueInfo& info);
int64_t memory_of(const ir::Graph& graph);
int64_t memory_of(const ir::Model& model);

}  // namespace sardonyx::wire
