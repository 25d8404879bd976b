// A graph's nodes one after another, for those who need no more than one at a time.
#pragma once

#include <cstddef>

#include "ir/model.h"

namespace sardonyx::ir {

class NodeSource {
 public:
  NodeSource() = default;
  NodeSource(const NodeSource&) = delete;
  NodeSource& operator=(const NodeSource&) = delete;
  virtual ~NodeSource() = default;

  // Of all nodes.
  virtual size_t size() const = 0;
  // The next one, which may be changed and taken apart; good until the next call. Null: there are
  // no more.
  virtual Node* next() = 0;
};

}  // namespace sardonyx::ir
