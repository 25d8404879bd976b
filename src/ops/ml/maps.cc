// ZipMap, DictVectorizer and CastMap: between tensors and maps.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "ops/ml/classic.h"
#include "ops/shared/number_text.h"

namespace sardonyx::ops {
namespace ml_maps_unit {
namespace {

using Kind = ir::TypeProto::Kind;

// --- ZipMap -------------------------------------------------------------------------------------

void infer_zip(InferContext& ctx) {
  const auto labels = ml::labels_of(ctx, "classlabels_int64s", "classlabels_strings");
  if (labels.size() == 0)
    ctx.fail("needs one of the attributes classlabels_int64s and classlabels_strings");
  if (const auto samples = ml::samples_of(ctx)) {
    ctx.require_equal(samples->features, Dim(static_cast<int64_t>(labels.size())),
                      "there must be one column per class label");
  }
  const ValueType map{
      Kind::map,
      labels.type(),
      {},
      std::make_shared<const ValueType>(ValueType::tensor(ElementType::float32, {}))};
  ctx.set(0, ValueType::sequence_of(map));
}

std::unique_ptr<Step> prepare_zip(PrepareContext& ctx) {
  const auto labels = ml::labels_of(ctx, "classlabels_int64s", "classlabels_strings");
  const auto n = static_cast<int64_t>(labels.size());
  const Tensor keys = labels.text() ? Tensor::of<std::string>(labels.strings, {n})
                                    : Tensor::of<int64_t>(labels.integers, {n});
  return make_allocating_step("ml.zip_map", [keys, n](RunContext& run) {
    const auto [rows, features] = ml::rows_of(run.in_shape(0));
    constexpr int64_t map_memory = 256, value_memory = 96;  // of a map, and of each value in it
    run.environment().charge(rows * (map_memory + n * value_memory) +
                             static_cast<int64_t>(run.in_size(0) * sizeof(float)));
    // The maps look into one copy of the input, which lives as long as the last of them.
    const Tensor copy = Tensor::of(std::span(run.in<float>(0), run.in_size(0)), {rows, features});
    const float* value = copy.elements<float>().data();
    Sequence sequence;
    sequence.items.reserve(static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row, value += features) {
      Map map;
      map.keys = keys;
      map.values.reserve(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i)
        map.values.emplace_back(
            Tensor::view(ElementType::float32, {}, value + i, sizeof *value, copy.owner()));
      sequence.items.emplace_back(std::move(map));
    }
    run.set_output(0, std::move(sequence));
  });
}

// What a caller's map has for its key `i`.
const Tensor& value_at(const Map& map, size_t i) {
  if (i >= map.values.size())
    throw Error(ErrorCode::bad_input, fmt::format("the map has {} keys and {} values",
                                                  map.keys.size(), map.values.size()));
  const Tensor& value = map.values[i].tensor();
  if (value.size() != 1)
    throw Error(ErrorCode::bad_input,
                fmt::format("value {} of the map must be one element; its shape is {}", i,
                            to_string(value.shape())));
  return value;
}

// --- DictVectorizer -----------------------------------------------------------------------------

ElementType map_value_type(const ValueType& type) {
  return type.nested ? type.nested->element : ElementType::undefined;
}

void infer_dict(InferContext& ctx) {
  const auto vocabulary = ml::labels_of(ctx, "int64_vocabulary", "string_vocabulary");
  if (vocabulary.size() == 0)
    ctx.fail("needs one of the attributes int64_vocabulary and string_vocabulary");
  const ValueType& type = ctx.type(0);
  if (type.is_known() && type.kind != Kind::map)
    ctx.fail("the input must be a map; it is {}", type.to_string());
  ctx.set(0, map_value_type(type), {Dim(static_cast<int64_t>(vocabulary.size()))});
}

// Copies the values of a map's keys to where the vocabulary has them; the other keys are left out.
template <class Key, class T>
void vectorize(const Map& map, const std::unordered_map<Key, int64_t>& places, T* y) {
  const auto keys = map.keys.elements<Key>();
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = places.find(keys[i]);
    if (found != places.end()) y[found->second] = value_at(map, i).elements<T>()[0];
  }
}

template <class Key>
std::unique_ptr<Step> dict_step(const std::vector<Key>& vocabulary, ElementType type) {
  std::unordered_map<Key, int64_t> places;
  for (size_t i = 0; i < vocabulary.size(); ++i)
    places.insert_or_assign(vocabulary[i], static_cast<int64_t>(i));
  return make_step("ml.dict_vectorizer", [places, type](RunContext& run) {
    const Value input = run.in_value(0);
    const auto fill = [&](auto zero) {
      using T = decltype(zero);
      std::fill_n(run.out<T>(0), run.out_size(0), zero);
      vectorize<Key, T>(input.map(), places, run.out<T>(0));
    };
    switch (type) {
      case ElementType::float32: fill(0.0f); break;
      case ElementType::float64: fill(0.0); break;
      case ElementType::int64: fill(int64_t{0}); break;
      case ElementType::string: fill(std::string()); break;
      default:
        throw Error(ErrorCode::unsupported,
                    fmt::format("DictVectorizer: a map of {}", name_of(type)));
    }
  });
}

std::unique_ptr<Step> prepare_dict(PrepareContext& ctx) {
  const auto vocabulary = ml::labels_of(ctx, "int64_vocabulary", "string_vocabulary");
  const ElementType type = map_value_type(ctx.in_type(0));
  return vocabulary.text() ? dict_step(vocabulary.strings, type)
                           : dict_step(vocabulary.integers, type);
}

// --- CastMap ------------------------------------------------------------------------------------

ElementType cast_target(const NodeView& node) {
  const std::string to = node.attr_string("cast_to", "TO_FLOAT");
  if (to == "TO_FLOAT") return ElementType::float32;
  if (to == "TO_INT64") return ElementType::int64;
  if (to == "TO_STRING") return ElementType::string;
  node.fail("cast_to must be TO_FLOAT, TO_INT64 or TO_STRING; got '{}'", to);
}

bool is_sparse(const NodeView& node) {
  const std::string form = node.attr_string("map_form", "DENSE");
  if (form != "DENSE" && form != "SPARSE")
    node.fail("map_form must be DENSE or SPARSE; got '{}'", form);
  return form == "SPARSE";
}

int64_t sparse_size(const NodeView& node) {
  const int64_t size = node.attr_int("max_map", 1);
  if (size < 1) node.fail("max_map must be 1 or more; got {}", size);
  return size;
}

void infer_cast_map(InferContext& ctx) {
  ctx.set(0, cast_target(ctx), {Dim(1), is_sparse(ctx) ? Dim(sparse_size(ctx)) : ctx.unknown()});
}

// Element 0 of a map's value (a float or a string) as T.
template <class T>
T cast_value(const Tensor& value) {
  if (value.element_type() == ElementType::string) {
    const std::string& text = value.elements<std::string>()[0];
    if constexpr (std::is_same_v<T, std::string>) {
      return text;
    } else {
      const auto number = [&] {
        if constexpr (std::is_same_v<T, int64_t>)
          return parse_int64(text);
        else
          return parse_float(text);
      }();
      if (!number)
        throw Error(ErrorCode::run_failed,
                    fmt::format("CastMap: '{}' is not a number", text.substr(0, 60)));
      return *number;
    }
  }
  const float number = value.elements<float>()[0];
  if constexpr (std::is_same_v<T, std::string>) {
    return text_of(number);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return std::fabs(number) < 9.2e18f ? static_cast<int64_t>(number) : 0;
  } else {
    return number;
  }
}

template <class T>
void cast_map(RunContext& run, std::optional<int64_t> size) {
  const Value input = run.in_value(0);
  const Map& map = input.map();
  const auto keys = map.keys.elements<int64_t>();
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  const int64_t length = size.value_or(static_cast<int64_t>(keys.size()));
  auto* y = static_cast<T*>(run.allocate_output(0, {1, length}));
  std::fill_n(y, length, T());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t key = keys[order[i]];
    if (size && (key < 0 || key >= *size))
      throw Error(ErrorCode::run_failed,
                  fmt::format("CastMap: key must be in [0, {}]; got {}", *size - 1, key));
    y[size ? key : static_cast<int64_t>(i)] = cast_value<T>(value_at(map, order[i]));
  }
}

std::unique_ptr<Step> prepare_cast_map(PrepareContext& ctx) {
  const auto size = is_sparse(ctx) ? std::optional(sparse_size(ctx)) : std::nullopt;
  const ElementType to = cast_target(ctx);
  return make_allocating_step("ml.cast_map", [size, to](RunContext& run) {
    if (to == ElementType::float32)
      cast_map<float>(run, size);
    else if (to == ElementType::int64)
      cast_map<int64_t>(run, size);
    else
      cast_map<std::string>(run, size);
  });
}

constexpr Operator operators[] = {
    {.name = "ZipMap", .domain = ml::domain, .infer = infer_zip, .prepare = prepare_zip},
    {.name = "DictVectorizer", .domain = ml::domain, .infer = infer_dict, .prepare = prepare_dict},
    {.name = "CastMap", .domain = ml::domain, .infer = infer_cast_map, .prepare = prepare_cast_map},
};

}  // namespace
}  // namespace ml_maps_unit

std::span<const Operator> ml_maps_operators() { return ml_maps_unit::operators; }

}  // namespace sardonyx::ops
