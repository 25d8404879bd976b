#include "ops/node_view.h"
#include "ir/origin.h"

namespace sardonyx::ops {

const ir::Attribute* NodeView::attribute(std::string_view name, ir::AttributeKind kind) const {
  const ir::Attribute* found = node_.find(name);
  if (found == nullptr) return nullptr;
  if (!found->ref_attr_name.empty()) {
    fail("attribute '{}' refers to '{}' of a calling function, but the node is not in one", name,
         found->ref_attr_name);
  }
  const ir::AttributeKind actual = found->effective_kind();
  if (actual == kind) return found;
  // IR version 1 files do not tell an empty list from a list of another kind.
  if (actual == ir::AttributeKind::undefined) return found;
  fail("attribute '{}' must be of kind {}; found {}", name, ir::name_of(kind), ir::name_of(actual));
}

const schema::Attribute* NodeView::declared(std::string_view name) const {
  return signature_ ? signature_->attribute(name) : nullptr;
}

void NodeView::missing(std::string_view name) const {
  fail("attribute '{}' is required and absent; add it to the node", name);
}

int64_t NodeView::attr_int(std::string_view name) const {
  if (const auto* a = attribute(name, ir::AttributeKind::int_)) return a->i.value_or(0);
  const auto* d = declared(name);
  if (d == nullptr || !d->has_default) missing(name);
  return d->default_int;
}

int64_t NodeView::attr_int(std::string_view name, int64_t fallback) const {
  const auto* a = attribute(name, ir::AttributeKind::int_);
  return a ? a->i.value_or(0) : fallback;
}

float NodeView::attr_float(std::string_view name) const {
  if (const auto* a = attribute(name, ir::AttributeKind::float_)) return a->f.value_or(0);
  const auto* d = declared(name);
  if (d == nullptr || !d->has_default) missing(name);
  return d->default_float;
}

float NodeView::attr_float(std::string_view name, float fallback) const {
  const auto* a = attribute(name, ir::AttributeKind::float_);
  return a ? a->f.value_or(0) : fallback;
}

std::string NodeView::attr_string(std::string_view name) const {
  if (const auto* a = attribute(name, ir::AttributeKind::string)) return a->s.value_or("");
  const auto* d = declared(name);
  if (d == nullptr || !d->has_default) missing(name);
  return std::string(d->default_string);
}

std::string NodeView::attr_string(std::string_view name, std::string_view fallback) const {
  const auto* a = attribute(name, ir::AttributeKind::string);
  return a ? a->s.value_or("") : std::string(fallback);
}

std::optional<std::vector<int64_t>> NodeView::attr_ints(std::string_view name) const {
  // One number where a list is meant: how releases 1.0 and 1.1 declared some.
  const ir::Attribute* one = node_.find(name);
  if (one && one->ref_attr_name.empty() && one->effective_kind() == ir::AttributeKind::int_)
    return std::vector<int64_t>{one->i.value_or(0)};
  if (const auto* a = attribute(name, ir::AttributeKind::ints)) return a->ints;
  const auto* d = declared(name);
  if (d == nullptr || !d->has_default) return std::nullopt;
  return std::vector<int64_t>(d->default_ints.begin(), d->default_ints.end());
}

std::optional<std::vector<float>> NodeView::attr_floats(std::string_view name) const {
  if (const auto* a = attribute(name, ir::AttributeKind::floats)) return a->floats;
  const auto* d = declared(name);
  if (d == nullptr || !d->has_default) return std::nullopt;
  return std::vector<float>(d->default_floats.begin(), d->default_floats.end());
}

std::optional<std::vector<std::string>> NodeView::attr_strings(std::string_view name) const {
  if (const auto* a = attribute(name, ir::AttributeKind::strings)) return a->strings;
  const auto* d = declared(name);
  if (d == nullptr || !d->has_default) return std::nullopt;
  return std::vector<std::string>(d->default_strings.begin(), d->default_strings.end());
}

const ir::TensorProto* NodeView::attr_tensor(std::string_view name) const {
  const auto* a = attribute(name, ir::AttributeKind::tensor);
  if (a != nullptr && a->t == nullptr)
    fail("attribute '{}' must hold a tensor; it holds none", name);
  return a ? a->t.get() : nullptr;
}

const ir::Graph* NodeView::attr_graph(std::string_view name) const {
  const auto* a = attribute(name, ir::AttributeKind::graph);
  return a ? a->g.get() : nullptr;
}

const ir::TypeProto* NodeView::attr_type(std::string_view name) const {
  const auto* a = attribute(name, ir::AttributeKind::type_proto);
  return a ? a->tp.get() : nullptr;
}

std::string NodeView::place() const { return ir::place_of(node_); }

std::string NodeView::input_name(int i) const {
  if (!has_input(i)) return fmt::format("input {}", i);
  const std::string_view name = ir::told_name(node_, node_.inputs[static_cast<size_t>(i)]);
  return name.empty() ? fmt::format("input {}", i) : fmt::format("input {} '{}'", i, name);
}

int64_t NodeView::normalized_axis(int64_t axis, int64_t rank, std::string_view what) const {
  if (axis < -rank || axis >= rank) {
    if (rank == 0) fail("{} must not be given for a scalar; got {}", what, axis);
    fail("{} must be in [{}, {}]; got {}", what, -rank, rank - 1, axis);
  }
  return axis < 0 ? axis + rank : axis;
}

}  // namespace sardonyx::ops
