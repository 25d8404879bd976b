#include "ops/families/iteration.h"

#include <cstring>

#include "base/bits.h"
#include "base/checked.h"
#include "base/fail.h"

namespace sardonyx::ops {
namespace {

// Elements of a tensor in blocks: the first one, and from one block to the next.
struct Blocks {
  int64_t first, stride;
};

// Copies `outer` blocks of `inner` elements.
void copy_blocks(ElementType type, const void* from, Blocks at, void* to, Blocks target,
                 int64_t outer, int64_t inner) {
  const int width = bit_width(type);
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t source = at.first + o * at.stride, place = target.first + o * target.stride;
    if (type == ElementType::string) {
      std::copy_n(static_cast<const std::string*>(from) + source, inner,
                  static_cast<std::string*>(to) + place);
    } else if (width % 8 == 0) {
      if (inner == 0) return;
      std::memcpy(static_cast<std::byte*>(to) + place * (width / 8),
                  static_cast<const std::byte*>(from) + source * (width / 8),
                  static_cast<size_t>(inner * (width / 8)));
    } else {  // elements that share bytes with their neighbours
      const auto* bytes = static_cast<const uint8_t*>(from);
      for (int64_t i = 0; i < inner; ++i) {
        put_element_bits(static_cast<uint8_t*>(to), static_cast<size_t>(place + i), width,
                         element_bits(bytes, static_cast<size_t>(source + i), width));
      }
    }
  }
}

// Elements that share bytes are put in one at a time: the others of a byte are 0 until then.
void clear_packed(Tensor& tensor) {
  if (bit_width(tensor.element_type()) % 8 != 0 && tensor.byte_size() != 0)
    std::memset(tensor.mutable_data(), 0, tensor.byte_size());
}

// True where `made` can stand for `carried` in the next iteration; widens `carried` otherwise.
bool widen(InferContext& ctx, Known& carried, const Known& made, int first_symbol) {
  ValueType& type = carried.type;
  const ValueType& next = made.type;
  if (!next.is_known() || !type.is_known()) {
    const bool stable = !type.is_known();
    type = {};
    return stable;
  }
  if (type.kind != next.kind &&
      (type.kind == ir::TypeProto::Kind::optional || next.kind == ir::TypeProto::Kind::optional)) {
    type = {};  // present in some iterations, perhaps absent in others
    return false;
  }
  if (type.kind != next.kind || (type.is_tensor() && type.element != next.element)) {
    ctx.fail("a carried value starts as {} and comes out of the body as {}", type.to_string(),
             next.to_string());
  }
  if (!type.is_tensor()) {
    if (type.nested && next.nested && type.nested->is_known() && type.nested->shape &&
        (!next.nested->shape || *next.nested->shape != *type.nested->shape)) {
      ValueType item = *type.nested;
      item.shape.reset();
      type.nested = std::make_shared<const ValueType>(std::move(item));
      return false;
    }
    if (type.nested && !type.nested->is_known() && next.nested && next.nested->is_known()) {
      ValueType item = *next.nested;
      item.shape.reset();
      type.nested = std::make_shared<const ValueType>(std::move(item));
      return false;
    }
    return true;
  }
  if (!type.shape) return true;
  if (!next.shape || next.shape->size() != type.shape->size()) {
    type.shape.reset();
    return false;
  }
  bool stable = true;
  for (size_t d = 0; d < type.shape->size(); ++d) {
    Dim& size = (*type.shape)[d];
    const ir::Symbol* symbol = size.as_symbol();
    if (symbol != nullptr && symbol->id >= first_symbol) continue;  // already left open
    if (size == (*next.shape)[d]) continue;
    size = ctx.unknown();
    stable = false;
  }
  return stable;
}

}  // namespace

std::vector<Known> settle_carried(
    InferContext& ctx, std::vector<Known>& carried, size_t first,
    const std::function<std::vector<Known>(std::span<const Known> carried)>& infer_body) {
  const int first_symbol = ctx.symbols().size();
  for (Known& value : carried) {
    value.constant.reset();
    value.elements = nullptr;
  }
  for (;;) {                 // every round opens at least one size, rank or type
    if (ctx.is_hurried()) {  // any type a body could give
      for (Known& value : carried)
        value.type = value.type.is_tensor() ? ValueType::tensor(value.type.element) : ValueType();
      return infer_body(carried);
    }
    std::vector<Known> made = infer_body(carried);
    bool stable = true;
    for (size_t i = 0; i < carried.size() && first + i < made.size(); ++i) {
      stable &= widen(ctx, carried[i], made[first + i], first_symbol);
    }
    if (stable) return made;
  }
}

Tensor slice_at(const Tensor& tensor, int64_t axis, int64_t index) {
  Shape shape = tensor.shape();
  const auto at = static_cast<size_t>(axis);
  const int64_t length = shape[at];
  const int64_t inner = count_of(std::span(shape).subspan(at + 1)),
                outer = count_of(std::span(shape).first(at));
  shape.erase(shape.begin() + axis);
  const ElementType type = tensor.element_type();
  if (axis == 0 && type != ElementType::string && inner * bit_width(type) % 8 == 0) {
    const int64_t bytes = byte_size(type, inner);
    return Tensor::view(type, shape, static_cast<const std::byte*>(tensor.data()) + index * bytes,
                        static_cast<size_t>(bytes), tensor.owner());
  }
  Tensor slice(type, shape);
  clear_packed(slice);
  copy_blocks(type, tensor.data(), {index * inner, length * inner}, slice.mutable_data(),
              {0, inner}, outer, inner);
  return slice;
}

void HeldValues::carry(size_t i, const Value& value) {
  environment_.give_back(carried_[i]);
  carried_[i] = 0;
  const int64_t bytes = owned_bytes(value);
  environment_.charge(bytes);
  carried_[i] = bytes;
}

void set_made_output(RunContext& run, int i, Value value) {
  if (!value.is_tensor()) run.environment().charge(owned_bytes(value));
  run.set_output(i, std::move(value));
}

Tensor stacked(const RunEnvironment& environment, std::span<const Value> items, int64_t axis,
               bool reverse, const ValueType& item_type) {
  Shape shape;
  ElementType type = item_type.element;
  if (!items.empty()) {
    shape = items[0].tensor().shape();
    type = items[0].tensor().element_type();
  } else if (item_type.shape) {
    for (const Dim& dim : *item_type.shape) shape.push_back(dim.value().value_or(0));
  }
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank - 1 || axis > rank)
    fail(ErrorCode::invalid_model, "a scan output axis must be in [{}, {}]; got {}", -rank - 1,
         rank, axis);
  if (axis < 0) axis += rank + 1;
  const auto count = static_cast<int64_t>(items.size());
  const int64_t inner = count_of(std::span(shape).subspan(static_cast<size_t>(axis)));
  const int64_t outer = count_of(std::span(shape).first(static_cast<size_t>(axis)));
  Shape whole = shape;
  whole.insert(whole.begin() + axis, count);
  if (const auto elements = checked_count(whole)) environment.require(byte_size(type, *elements));
  Tensor result(type, whole);
  clear_packed(result);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& item = items[static_cast<size_t>(reverse ? count - 1 - i : i)].tensor();
    if (item.shape() != shape || item.element_type() != type) {
      fail(ErrorCode::run_failed, "scan outputs of iterations differ: {} of {} and {} of {}",
           name_of(type), to_string(shape), name_of(item.element_type()), to_string(item.shape()));
    }
    copy_blocks(type, item.data(), {0, inner}, result.mutable_data(), {i * inner, count * inner},
                outer, inner);
  }
  return result;
}

}  // namespace sardonyx::ops
