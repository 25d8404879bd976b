// Rules of sparse tensors.
#include <cstring>
#include <span>

#include "base/checked.h"
#include "check/context.h"

namespace sardonyx::check {
namespace {

// The int64 elements of a tensor held in the model; nothing for others.
std::vector<int64_t> int64_elements(const ir::TensorProto& tensor) {
  if (tensor.element_type() != ElementType::int64 || tensor.is_external()) return {};
  if (!tensor.int64_data.empty()) return tensor.int64_data;
  std::vector<int64_t> values(tensor.raw_data.size() / sizeof(int64_t));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor.raw_data.data(), values.size() * sizeof(int64_t));
  }
  return values;
}

bool inside(std::span<const int64_t> index, std::span<const int64_t> bounds) {
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= bounds[i]) return false;
  }
  return true;
}

// Indices ascend strictly and lie in `bounds`, one bound for each of their coordinates.
void check_order(Context& context, const Where& where, const std::vector<int64_t>& indices,
                 std::span<const int64_t> bounds) {
  const size_t rank = bounds.size();
  if (rank == 0) return;
  std::span<const int64_t> before;
  for (size_t at = 0; at + rank <= indices.size(); at += rank) {
    const std::span<const int64_t> index(indices.data() + at, rank);
    if (!inside(index, bounds)) {
      context.report("X-33", where, "", "indices lie in {}; found {} at {}", to_string(bounds),
                     to_string(index), at / rank);
      return;
    }
    if (!before.empty() &&
        !std::lexicographical_compare(before.begin(), before.end(), index.begin(), index.end())) {
      context.report("X-32", where, "sort them and remove duplicates",
                     "indices ascend strictly; found {} after {}", to_string(index),
                     to_string(before));
      return;
    }
    before = index;
  }
}

void check_indices(Context& context, const Where& where, const ir::SparseTensorProto& sparse,
                   int64_t count) {
  Report& report = context.report;
  const std::vector<int64_t>& shape = sparse.indices.dims;
  const auto rank = static_cast<int64_t>(sparse.dims.size());
  const bool linear = shape.size() == 1 && shape[0] == count;
  const bool coordinates = shape.size() == 2 && shape[0] == count && shape[1] == rank;
  if (!linear && !coordinates) {
    report("X-31", where, "", "indices are [{0}] or [{0},{1}]; found {2}", count, rank,
           to_string(shape));
    return;
  }
  if (sparse.indices.element_type() != ElementType::int64) {
    report("X-34", where, "", "indices are int64; found {}",
           name_of(sparse.indices.element_type()));
    return;
  }
  const std::optional<int64_t> total = checked_count(sparse.dims);
  if (!total) return;
  const std::vector<int64_t> indices = int64_elements(sparse.indices);
  if (linear) {
    check_order(context, where, indices, std::span(&*total, 1));
  } else {
    check_order(context, where, indices, sparse.dims);
  }
}

bool stores_zero(const ir::TensorProto& values) {
  const std::span<const std::byte> floats = values.float_data.span();
  for (size_t at = 0; at + 4 <= floats.size(); at += 4) {
    float value;
    std::memcpy(&value, floats.data() + at, sizeof value);
    if (value == 0) return true;
  }
  for (const int64_t value : values.int64_data) {
    if (value == 0) return true;
  }
  return false;
}

}  // namespace

void check_sparse_tensor(Context& context, const Where& where,
                         const ir::SparseTensorProto& sparse) {
  Report& report = context.report;
  check_tensor(context, where.in("values"), sparse.values);
  if (sparse.values.dims.size() != 1) {
    report("X-29", where.in("values"), "", "values of a sparse tensor have rank 1; found {}",
           to_string(sparse.values.dims));
    return;
  }
  if (!checked_count(sparse.dims)) {
    report("X-07", where, "",
           "dimensions are not negative and their product fits 63 bits; found {}",
           to_string(sparse.dims));
    return;
  }
  if (sparse.dims.empty()) {
    report("X-34", where, "", "a sparse tensor has at least one dimension; it has none");
    return;
  }
  for (const int64_t dim : sparse.dims) {
    if (dim > 0) continue;
    report.at_most_warning("X-34", where, "",
                           "dimensions of a sparse tensor are positive; found {}",
                           to_string(sparse.dims));
    break;
  }
  const int64_t count = sparse.values.dims[0];
  if (count == 0 && sparse.indices.data_type == 0) return;
  check_tensor(context, where.in("indices"), sparse.indices);
  check_indices(context, where.in("indices"), sparse, count);
  if (report.wants("X-35") && stores_zero(sparse.values)) {
    report("X-35", where.in("values"), "", "zeros need not be stored");
  }
}

}  // namespace sardonyx::check
