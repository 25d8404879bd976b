// Any bytes as a model in ONNX Runtime's own format: an Error, or a model whose raw data lie in the
// file, and which is written and read again the same.
#include <string>

#include "base/bytes.h"
#include "ir/walk.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/ort_model.h"
#include "wire/read.h"
#include "wire/write.h"

namespace {

using namespace sardonyx;

void look_at(const ir::Model& model, const Bytes& file) {
  const auto tensor = [&](const ir::TensorProto& one) {
    const Bytes& data = one.raw_data;
    require(data.empty() || (data.data() >= file.data() &&
                             data.data() + data.size() <= file.data() + file.size()),
            "raw data lie in the file");
  };
  ir::walk(model, {.enter = [&](const ir::WalkPlace& place) {
             for (const ir::TensorProto& one : place.graph->initializers) tensor(one);
             for (const ir::SparseTensorProto& one : place.graph->sparse_initializers) {
               tensor(one.values);
               tensor(one.indices);
             }
             return true;
           }});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes file = Bytes::copy_of({reinterpret_cast<const std::byte*>(data), size});
  std::string first;
  try {
    const ir::Model model = wire::read_ort_model(file);
    look_at(model, file);
    first = wire::write_model(model);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::unreadable || error.code() == ErrorCode::unsupported,
            error.what());
    return 0;
  }
  try {
    const Bytes written(nullptr, reinterpret_cast<const std::byte*>(first.data()), first.size());
    require(wire::write_model(wire::read_model(written)) == first, "it is read again the same");
  } catch (const Error& error) {
    require(false, error.what());
  }
  return 0;
}
