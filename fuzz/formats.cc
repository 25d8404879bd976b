// Any bytes as each of the smaller formats: tensors and values, .npy, .npz, JSON and images.
#include <string>

#include "base/bytes.h"
#include "formats/image.h"
#include "formats/json_tensor.h"
#include "formats/npy.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/read.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace {

using namespace sardonyx;

Bytes borrowed(const void* begin, size_t count) {
  return Bytes(nullptr, static_cast<const std::byte*>(begin), count);
}

// Runs `body`; an Error is an answer, too, but not one that blames Sardonyx itself.
template <class Body>
void answer(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    require(error.code() != ErrorCode::internal, error.what());
  }
}

void value(const Bytes& bytes, ir::TypeProto::Kind kind) {
  ir::TypeProto type;
  type.kind = kind;
  const Value read = wire::read_value(bytes, type);
  const std::string first = wire::write_value(read);
  const std::string second =
      wire::write_value(wire::read_value(borrowed(first.data(), first.size()), type));
  require(first == second, "a value that was written is read back");
}

void npy(const Bytes& bytes, ElementType expected) {
  const Tensor read = formats::read_npy(bytes, expected);
  const std::string first = formats::write_npy(read);
  const Tensor again = formats::read_npy(borrowed(first.data(), first.size()), read.element_type());
  require(again.element_type() == read.element_type() && again.shape() == read.shape(),
          "an array that was written is read back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = borrowed(data, size);
  using Kind = ir::TypeProto::Kind;
  for (const Kind kind :
       {Kind::tensor, Kind::sparse_tensor, Kind::sequence, Kind::map, Kind::optional}) {
    answer([&] { value(bytes, kind); });
  }
  for (const auto expected :
       {ElementType::undefined, ElementType::int4, ElementType::float8e5m2fnuz}) {
    answer([&] { npy(bytes, expected); });
  }
  answer([&] { formats::read_npz(bytes); });
  answer([&] { formats::tensor_from_text(bytes.text()); });
  answer([&] {
    formats::json_from_tensor(
        formats::tensor_from_text(bytes.text(), {ElementType::float16, Shape{-1, 2}}));
  });
  answer([&] { formats::decode_image(bytes, 3); });
  return 0;
}
