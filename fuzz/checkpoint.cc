// Any bytes as a checkpoint of ONNX Runtime's training API: what is read lies in the file, and is
// no more than that.
#include "base/bytes.h"
#include "sardonyx/error.h"
#include "target.h"
#include "train/ort_checkpoint.h"

namespace {

using namespace sardonyx;

class Look {
 public:
  explicit Look(const Bytes& file) : file_(file) {}

  void at(const ir::TensorProto& tensor) {
    const Bytes& data = tensor.raw_data;
    size_ += data.size() + tensor.name.size() + 8 * tensor.dims.size();
    require(data.empty() || (data.data() >= file_.data() &&
                             data.data() + data.size() <= file_.data() + file_.size()),
            "elements lie in the file");
  }
  void end() const { require(size_ <= file_.size(), "no more than the file is read of it"); }

 private:
  const Bytes& file_;
  size_t size_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes file = Bytes::copy_of({reinterpret_cast<const std::byte*>(data), size});
  try {
    const auto read = train::read_ort_checkpoint("fuzzed", file, [&] { return file; });
    Look look(file);
    for (const ir::TensorProto& one : read.trained) look.at(one);
    for (const ir::TensorProto& one : read.frozen) look.at(one);
    look.end();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::unreadable || error.code() == ErrorCode::unsupported,
            error.what());
  }
  return 0;
}
