#include "wire/tensor.h"

#include "ir/tensor.h"
#include "wire/external.h"

namespace sardonyx::wire {
namespace {

ir::ExternalBytes reader_of(ExternalData* external) {
  if (external == nullptr) return {};
  return [external](const ir::TensorProto& proto, uint64_t needed) {
    return external->bytes_of(proto, needed);
  };
}

}  // namespace

Tensor to_tensor(const ir::TensorProto& proto, ExternalData* external) {
  return ir::to_tensor(proto, reader_of(external));
}

ir::TensorProto to_proto(const Tensor& tensor, std::string name) {
  return ir::to_proto(tensor, std::move(name));
}

SparseTensor to_sparse_tensor(const ir::SparseTensorProto& proto, ExternalData* external) {
  return ir::to_sparse_tensor(proto, reader_of(external));
}

ir::SparseTensorProto to_proto(const SparseTensor& sparse, std::string name) {
  return ir::to_proto(sparse, std::move(name));
}

}  // namespace sardonyx::wire
