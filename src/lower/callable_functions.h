// The functions that nodes of a model may stand for: its own, and those of the standard.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ir/model.h"

namespace sardonyx::lower {

// Borrows the model.
class CallableFunctions {
 public:
  explicit CallableFunctions(const ir::Model& model);

  // The model's own function that a node calls; null: it calls none.
  const ir::Function* own(const ir::Node& node) const;
  // Bytes of lists, texts and tensors in attributes of a function's nodes, which each of its calls
  // copies; the tensors of Constants are shared.
  size_t copied_bytes(const ir::Function& function);
  // The text under spec/functions for a node's operator, parsed when it is first asked for; null
  // where there is none.
  const ir::Function* standard(const ir::Node& node);

 private:
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Key, const ir::Function*> own_;  // by domain, name and overload
  std::map<std::pair<std::string_view, std::string_view>, std::unique_ptr<ir::Function>> standard_;
  std::unordered_map<const ir::Function*, size_t> copied_;
};

}  // namespace sardonyx::lower
