// Attributes of nodes: those that kernels read, and those that callers make for operators they
// call.
#include <algorithm>

#include "ir/tensor.h"
#include "ort_api/kernels.h"

namespace sardonyx::ort_api {

namespace {

OrtOpAttrType kind_of_attribute(const OrtOpAttr& attribute) {
  if (std::holds_alternative<Tensor>(attribute.value)) return ORT_OP_ATTR_TENSOR;
  return static_cast<OrtOpAttrType>(attribute.value.index());
}

template <class T>
std::vector<T> list_of(const void* data, int count) {
  const T* const first = items(static_cast<const T*>(data), static_cast<size_t>(count), "data");
  return {first, first + count};
}

std::vector<std::string> texts_of(const void* data, int count) {
  std::vector<std::string> texts;
  for (const char* text : list_of<const char*>(data, count)) texts.push_back(text_of(text, "data"));
  return texts;
}

OrtStatus* CreateOpAttr(const char* name, const void* data, int count, OrtOpAttrType type,
                        OrtOpAttr** out) {
  return guarded([&] {
    auto made = std::make_unique<OrtOpAttr>();
    made->name = text_of(name, "name");
    count = std::max(count, 0);
    const auto one = [&](auto* typed) { return required(typed, "data"); };
    switch (type) {
      case ORT_OP_ATTR_INT: made->value = one(static_cast<const int64_t*>(data)); break;
      case ORT_OP_ATTR_FLOAT: made->value = one(static_cast<const float*>(data)); break;
      case ORT_OP_ATTR_INTS: made->value = list_of<int64_t>(data, count); break;
      case ORT_OP_ATTR_FLOATS: made->value = list_of<float>(data, count); break;
      case ORT_OP_ATTR_STRINGS: made->value = texts_of(data, count); break;
      case ORT_OP_ATTR_STRING: {
        const std::vector<char> text = list_of<char>(data, count);
        made->value = std::string(text.begin(), text.end());
        break;
      }
      default:
        refuse(ORT_FAIL, "attribute '{}': attributes of type {} can't be made here", name,
               static_cast<int>(type));
    }
    give(out, "op_attr", made.release());
  });
}
void ReleaseOpAttr(OrtOpAttr* attribute) { delete attribute; }

OrtStatus* OpAttr_GetType(const OrtOpAttr* attribute, OrtOpAttrType* type) {
  return guarded(
      [&] { required(type, "type") = kind_of_attribute(required(attribute, "attribute")); });
}
OrtStatus* OpAttr_GetName(const OrtOpAttr* attribute, const char** name) {
  return guarded([&] { required(name, "name") = required(attribute, "attribute").name.c_str(); });
}

OrtStatus* OpAttr_GetTensorAttributeAsOrtValue(const OrtOpAttr* attribute, OrtValue** out) {
  return guarded([&] {
    const Tensor* const tensor = std::get_if<Tensor>(&required(attribute, "attribute").value);
    if (tensor == nullptr) refuse(ORT_INVALID_ARGUMENT, "'{}' is no tensor", attribute->name);
    give(out, "attr_tensor", new OrtValue{*tensor});
  });
}

// The bytes of an attribute as callers read them: strings of a list follow each other, each with a
// zero at its end.
std::string bytes_of_attribute(const OrtOpAttr& attribute) {
  const auto raw = [](const auto* first, size_t count) {
    return std::string(reinterpret_cast<const char*>(first), count * sizeof *first);
  };
  switch (kind_of_attribute(attribute)) {
    case ORT_OP_ATTR_INT: return raw(&std::get<int64_t>(attribute.value), 1);
    case ORT_OP_ATTR_FLOAT: return raw(&std::get<float>(attribute.value), 1);
    case ORT_OP_ATTR_STRING: return std::get<std::string>(attribute.value);
    case ORT_OP_ATTR_INTS: {
      const auto& list = std::get<std::vector<int64_t>>(attribute.value);
      return raw(list.data(), list.size());
    }
    case ORT_OP_ATTR_FLOATS: {
      const auto& list = std::get<std::vector<float>>(attribute.value);
      return raw(list.data(), list.size());
    }
    case ORT_OP_ATTR_STRINGS: {
      std::string all;
      for (const std::string& text : std::get<std::vector<std::string>>(attribute.value))
        all.append(text.c_str(), text.size() + 1);
      return all;
    }
    default: refuse(ORT_INVALID_ARGUMENT, "'{}' can't be read as bytes", attribute.name);
  }
}

OrtStatus* ReadOpAttr(const OrtOpAttr* attribute, OrtOpAttrType type, void* data, size_t room,
                      size_t* out) {
  return guarded([&] {
    const OrtOpAttr& from = required(attribute, "op_attr");
    if (kind_of_attribute(from) != type)
      refuse(ORT_INVALID_ARGUMENT, "'{}' is of type {} and not {}", from.name,
             static_cast<int>(kind_of_attribute(from)), static_cast<int>(type));
    const std::string bytes = bytes_of_attribute(from);
    required(out, "out") = bytes.size();
    if (room < bytes.size() || (data == nullptr && !bytes.empty()))
      refuse(ORT_INVALID_ARGUMENT, "'{}' takes {} bytes, and there is room for {}", from.name,
             bytes.size(), data == nullptr ? 0 : room);
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  });
}

}  // namespace

Attributes attributes_of(const CustomNode& node, const AttributeTypes& types) {
  Attributes found;
  for (const auto& [name, type] : types) {
    if (!node.has_attribute(name)) continue;
    OrtOpAttr attribute{name, {}};
    switch (type) {
      case AttributeType::int_: attribute.value = node.attribute_int(name); break;
      case AttributeType::float_: attribute.value = node.attribute_float(name); break;
      case AttributeType::string: attribute.value = node.attribute_string(name); break;
      case AttributeType::ints: attribute.value = node.attribute_ints(name); break;
      case AttributeType::floats: attribute.value = node.attribute_floats(name); break;
      case AttributeType::strings: attribute.value = node.attribute_strings(name); break;
      case AttributeType::tensor:
        attribute.value = copy_of_tensor(node.attribute_tensor(name));
        break;
      default: break;  // there, with nothing that could be read
    }
    found.emplace(name, std::move(attribute));
  }
  return found;
}

void fill_text(std::string_view text, char* out, size_t* size) {
  const size_t room = required(size, "size");
  *size = text.size() + 1;
  if (out == nullptr) return;
  if (room < *size)
    refuse(ORT_INVALID_ARGUMENT, "the text takes {} bytes, and there is room for {}", *size, room);
  std::copy(text.begin(), text.end(), out);
  out[text.size()] = 0;
}

Tensor copy_of_tensor(const CustomTensor& tensor) {
  Tensor copy(tensor.type, Shape(tensor.shape.begin(), tensor.shape.end()));
  if (tensor.type == ElementType::string) {
    const auto texts = tensor.elements<std::string>();
    std::copy(texts.begin(), texts.end(), copy.mutable_elements<std::string>().begin());
  } else if (copy.byte_size() > 0) {
    std::memcpy(copy.mutable_data(), tensor.data, copy.byte_size());
  }
  return copy;
}

ir::Attribute to_proto(const OrtOpAttr& attribute) {
  ir::Attribute made;
  made.name = attribute.name;
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
    made.i = *i, made.kind = ir::AttributeKind::int_;
  } else if (const auto* f = std::get_if<float>(&attribute.value)) {
    made.f = *f, made.kind = ir::AttributeKind::float_;
  } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
    made.s = *s, made.kind = ir::AttributeKind::string;
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    made.ints = *ints, made.kind = ir::AttributeKind::ints;
  } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute.value)) {
    made.floats = *floats, made.kind = ir::AttributeKind::floats;
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    made.strings = *texts, made.kind = ir::AttributeKind::strings;
  } else if (const auto* tensor = std::get_if<Tensor>(&attribute.value)) {
    made.t = std::make_shared<ir::TensorProto>(ir::to_proto(*tensor));
    made.kind = ir::AttributeKind::tensor;
  }
  return made;
}

void add_attributes(OrtApi& table) {
  table.CreateOpAttr = CreateOpAttr;
  table.ReleaseOpAttr = ReleaseOpAttr;
  table.OpAttr_GetType = OpAttr_GetType;
  table.OpAttr_GetName = OpAttr_GetName;
  table.OpAttr_GetTensorAttributeAsOrtValue = OpAttr_GetTensorAttributeAsOrtValue;
  table.ReadOpAttr = ReadOpAttr;
}

}  // namespace sardonyx::ort_api
