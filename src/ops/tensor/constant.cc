// Constant: a tensor from an attribute.
#include <algorithm>
#include <cstring>

#include "base/bits.h"
#include "base/checked.h"
#include "ir/tensor.h"
#include "ops/operator.h"
#include "ops/shared/file_constants.h"

namespace sardonyx::ops {
namespace constant_unit {
namespace {

constexpr std::string_view forms[] = {"value",         "value_float", "value_floats",
                                      "value_int",     "value_ints",  "value_string",
                                      "value_strings", "sparse_value"};

std::string_view form_of(const NodeView& node) {
  std::string_view found;
  for (const ir::Attribute& attribute : node.node().attributes) {
    const auto* form = std::ranges::find(forms, attribute.name);
    if (form == std::end(forms) || *form == found) continue;
    if (!found.empty())
      node.fail("has both attributes '{}' and '{}'; keep one of them", found, *form);
    found = *form;
  }
  if (found.empty())
    node.fail("has no value; give it one of the attributes value, value_float, value_ints …");
  return found;
}

template <class T>
Tensor row(const std::vector<T>& elements) {
  return Tensor::of<T>(elements, {static_cast<int64_t>(elements.size())});
}

// Large ones may lie unaligned in the file, as initializers do.
Tensor tensor_of(const NodeView& node, std::string_view form) {
  if (form == "value") return ir::to_tensor(*node.attr_tensor(form));
  if (form == "value_float") return Tensor::scalar<float>(node.attr_float(form));
  if (form == "value_floats") return row(*node.attr_floats(form));
  if (form == "value_int") return Tensor::scalar<int64_t>(node.attr_int(form));
  if (form == "value_ints") return row(*node.attr_ints(form));
  if (form == "value_string") return Tensor::scalar<std::string>(node.attr_string(form));
  return row(*node.attr_strings(form));
}

const ir::SparseTensorProto& sparse_proto(const NodeView& node) {
  const ir::Attribute* attribute = node.node().find("sparse_value");
  if (attribute->sparse_tensor == nullptr)
    node.fail("attribute 'sparse_value' must hold a sparse tensor");
  return *attribute->sparse_tensor;
}

// Where element i of a sparse tensor lies in the dense one.
int64_t dense_position(const SparseTensor& sparse, int64_t i) {
  const auto indices = sparse.indices.elements<int64_t>();
  const auto refuse = [&](int64_t index, int64_t size) {
    throw Error(
        ErrorCode::invalid_model,
        fmt::format("sparse_value: index {} of element {} must be in [0, {}]", index, i, size - 1));
  };
  if (sparse.indices.rank() == 1) {
    const int64_t count = count_of(sparse.shape), at = indices[static_cast<size_t>(i)];
    if (at < 0 || at >= count) refuse(at, count);
    return at;
  }
  const auto rank = static_cast<int64_t>(sparse.shape.size());
  int64_t at = 0;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = sparse.shape[static_cast<size_t>(d)],
                  index = indices[static_cast<size_t>(i * rank + d)];
    if (index < 0 || index >= size) refuse(index, size);
    at = at * size + index;
  }
  return at;
}

void make_dense(const SparseTensor& sparse, void* y) {
  const ElementType type = sparse.values.element_type();
  const int64_t found = sparse.values.size();
  if (type == ElementType::string) {
    const auto values = sparse.values.elements<std::string>();
    for (int64_t i = 0; i < found; ++i)
      static_cast<std::string*>(y)[dense_position(sparse, i)] = values[static_cast<size_t>(i)];
    return;
  }
  std::memset(y, 0, static_cast<size_t>(byte_size(type, count_of(sparse.shape))));
  if (const int width = bit_width(type); width < 8) {
    const auto* codes = static_cast<const uint8_t*>(sparse.values.data());
    for (int64_t i = 0; i < found; ++i) {
      put_element_bits(static_cast<uint8_t*>(y), static_cast<size_t>(dense_position(sparse, i)),
                       width, element_bits(codes, static_cast<size_t>(i), width));
    }
    return;
  }
  const auto bytes = static_cast<size_t>(byte_size(type, 1));
  for (int64_t i = 0; i < found; ++i) {
    std::memcpy(
        static_cast<std::byte*>(y) + static_cast<size_t>(dense_position(sparse, i)) * bytes,
        static_cast<const std::byte*>(sparse.values.data()) + static_cast<size_t>(i) * bytes,
        bytes);
  }
}

SparseTensor sparse_of(const NodeView& node) {
  SparseTensor sparse = ir::to_sparse_tensor(sparse_proto(node));
  sparse.values = ir::aligned(sparse.values);
  sparse.indices = ir::aligned(sparse.indices);
  const int64_t found = sparse.values.size();
  const auto rank = static_cast<int64_t>(sparse.shape.size());
  const bool fits = sparse.indices.rank() == 1
                        ? sparse.indices.size() == found
                        : sparse.indices.rank() == 2 && sparse.indices.shape()[0] == found &&
                              sparse.indices.shape()[1] == rank;
  if (!checked_count(sparse.shape))
    node.fail("sparse_value: shape {} is not a size", to_string(sparse.shape));
  if (!fits) {
    node.fail("sparse_value: indices must have shape [{}] or [{}, {}]; found {}", found, found,
              rank, to_string(sparse.indices.shape()));
  }
  return sparse;
}

// Of integers that shapes are made of, and of weights, inference of symbolic values needs no
// tensor.
std::optional<ValueFacts> known_without_tensor(const NodeView& node, std::string_view form) {
  if (form == "value") return known_of_file(*node.attr_tensor(form));
  if (form == "value_ints") {
    const auto list = node.attr_ints(form);
    if (static_cast<int64_t>(list->size()) > max_known_elements) return std::nullopt;
    return ValueFacts::of(std::span<const int64_t>(*list));
  }
  if (form != "value_int") return std::nullopt;
  ValueFacts number = ValueFacts::of(ValueType::tensor(ElementType::int64, {}));
  number.elements = std::make_shared<const Dims>(1, Dim(node.attr_int(form)));
  return number;
}

void infer(InferContext& ctx) {
  const std::string_view form = form_of(ctx);
  if (ctx.mode().symbolic_values) {
    if (std::optional<ValueFacts> known = known_without_tensor(ctx, form))
      return ctx.set_known(0, std::move(*known));
  }
  if (form != "sparse_value") {
    ctx.set_constant(0, tensor_of(ctx, form));
    return;
  }
  const SparseTensor sparse = sparse_of(ctx);
  // A large dense form is only made when it is run, under the run's memory limit.
  if (*checked_count(sparse.shape) <= max_known_elements) {
    Tensor dense(sparse.values.element_type(), sparse.shape);
    make_dense(sparse, dense.mutable_data());
    ctx.set_constant(0, std::move(dense));
  } else {
    ctx.set(0, sparse.values.element_type(), {sparse.shape.begin(), sparse.shape.end()});
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const std::string_view form = form_of(ctx);
  if (form == "sparse_value") {
    return make_step("constant.sparse", [sparse = sparse_of(ctx)](RunContext& run) {
      make_dense(sparse, run.out_data(0));
    });
  }
  return make_allocating_step(
      "constant.shared",
      [tensor = ir::aligned(tensor_of(ctx, form))](RunContext& run) { run.set_output(0, tensor); });
}

constexpr Operator operators[] = {{.name = "Constant", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace constant_unit

std::span<const Operator> constant_operators() { return constant_unit::operators; }

}  // namespace sardonyx::ops
