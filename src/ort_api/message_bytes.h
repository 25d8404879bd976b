// Models written as protobuf's bytes, for the engine to read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ort_api/kernels.h"

namespace sardonyx::ort_api {

// A message of protobuf's wire format; fields are numbered as in onnx.proto.
class MessageBytes {
 public:
  MessageBytes& number(int field, int64_t value) {
    put(static_cast<uint64_t>(field) << 3);
    put(static_cast<uint64_t>(value));
    return *this;
  }
  MessageBytes& real(int field, float value) {
    put(static_cast<uint64_t>(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  MessageBytes& text(int field, std::string_view value) {
    put(static_cast<uint64_t>(field) << 3 | 2);
    put(value.size());
    bytes_ += value;
    return *this;
  }
  MessageBytes& message(int field, const MessageBytes& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void put(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// AttributeProto; its type numbers are AttributeType's. (invoked_operators.cc)
MessageBytes attribute_bytes(const OrtOpAttr& attribute);

}  // namespace sardonyx::ort_api
