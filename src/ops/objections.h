// What the standard forbids though an operator can do it: an error of checks, not of runs.
// Inference tells whoever listens on the same thread.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>

#include "ops/node_view.h"

namespace sardonyx::ops {

// While it lives, `listener` is told of every objection that inference on this thread has. Scopes
// nest; the innermost one listens.
class ObjectionListener {
 public:
  using Listener = std::function<void(const ir::Node&, const std::string&)>;
  explicit ObjectionListener(Listener listener);
  ~ObjectionListener();
  ObjectionListener(const ObjectionListener&) = delete;
  ObjectionListener& operator=(const ObjectionListener&) = delete;

 private:
  Listener listener_;
  const Listener* before_;
};

bool wants_objections();
void tell_objection(const ir::Node& node, const std::string& text);

// Does nothing where nobody listens.
template <class... Args>
void object(const NodeView& node, fmt::format_string<Args...> format, Args&&... args) {
  if (wants_objections())
    tell_objection(node.node(), fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sardonyx::ops
