#include "ops/contrib/padding.h"

#include "ops/contrib/heads.h"

namespace sardonyx::ops {

std::string token_places(Body& body, size_t offsets, const std::string& tokens) {
  const std::string all = body.reshape(body.cast(body.input(offsets), ElementType::int64), {-1});
  const std::string last = body.op("Sub", {body.size_of(all, 0), body.ints({1})});
  return in_range(body, body.op("Slice", {all, body.ints({0}), tokens, body.ints({0})}), 0, last,
                  "token_offset");
}

std::string with_padding(Body& body, const std::string& rows, size_t offsets) {
  if (body.rank(offsets) != 2)
    body.context().fail(ErrorCode::invalid_model,
                        "token_offset must be [batch, length]; its rank is {}", body.rank(offsets));
  const std::string tokens = body.size_of(rows, 0), hidden = body.size_of(rows, 1);
  const std::string places = body.unsqueeze(token_places(body, offsets, tokens), {1});
  const auto join = [&](const std::string& first) {
    return body.op("Concat", {first, hidden}, {int_attribute("axis", 0)});
  };
  const std::string sizes = body.op("Shape", {body.input(offsets)});
  const std::string count = body.op("ReduceProd", {sizes}, {int_attribute("keepdims", 1)});
  const std::string zero = body.op("CastLike", {body.op("ConstantOfShape", {body.ints({})}), rows});
  const std::string zeros = body.op("Expand", {zero, join(count)});
  return body.op("Reshape", {body.op("ScatterND", {zeros, places, rows}), join(sizes)},
                 {int_attribute("allowzero", 1)});
}

}  // namespace sardonyx::ops
