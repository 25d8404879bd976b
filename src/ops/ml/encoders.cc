// LabelEncoder, CategoryMapper and OneHotEncoder: values looked up in lists.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/checked.h"
#include "ir/tensor.h"
#include "kernels/rows/grain.h"
#include "ops/ml/classic.h"
#include "ops/objections.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace ml_encoders_unit {
namespace {

// --- LabelEncoder -------------------------------------------------------------------------------

// A list of keys or values, from whichever attribute holds it.
std::optional<Tensor> list_of(const NodeView& node, std::string_view what) {
  const auto name = [&](const char* suffix) { return fmt::format("{}_{}", what, suffix); };
  const auto row = [](const auto& list) {
    using T = typename std::decay_t<decltype(list)>::value_type;
    return Tensor::of<T>(list, {static_cast<int64_t>(list.size())});
  };
  if (const auto* proto = node.attr_tensor(name("tensor")))
    return ir::aligned(ir::to_tensor(*proto));
  if (const auto strings = node.attr_strings(name("strings")); strings && !strings->empty())
    return row(*strings);
  if (const auto integers = node.attr_ints(name("int64s")); integers && !integers->empty())
    return row(*integers);
  if (const auto floats = node.attr_floats(name("floats")); floats && !floats->empty())
    return row(*floats);
  return std::nullopt;
}

Tensor required_list(const NodeView& node, std::string_view what) {
  auto list = list_of(node, what);
  if (!list)
    node.fail("needs one of the attributes {}_strings, {}_int64s, {}_floats and {}_tensor", what,
              what, what, what);
  return *list;
}

void check_default(const NodeView& node, ElementType values) {
  const ir::TensorProto* found = node.attr_tensor("default_tensor");
  if (found != nullptr && (checked_count(found->dims) != 1 || found->element_type() != values))
    node.fail("default_tensor must hold one {}, as the values are", name_of(values));
}

template <class T>
Tensor default_value(const NodeView& node) {
  check_default(node, element_type_of<T>::value);
  if (const auto* proto = node.attr_tensor("default_tensor"))
    return ir::aligned(ir::to_tensor(*proto));
  if constexpr (std::is_same_v<T, std::string>) {
    return Tensor::scalar<T>(node.attr_string("default_string", "_Unused"));
  } else if constexpr (std::is_floating_point_v<T>) {
    return Tensor::scalar<T>(static_cast<T>(node.attr_float("default_float", -0.0f)));
  } else {
    return Tensor::scalar<T>(static_cast<T>(node.attr_int("default_int64", -1)));
  }
}

// Keys as a table has them: any NaN is one key, and so are the two zeros.
template <class T>
auto hashable(const T& key) {
  if constexpr (std::is_floating_point_v<T>) {
    const double value = static_cast<double>(key) + 0.0;  // makes 0 of -0
    return std::bit_cast<uint64_t>(std::isnan(value) ? std::nan("") : value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(key);
  } else {
    return key;
  }
}

// Numbers to labels: a key stands at its hash or at the next free place. For few keys a hash is
// sought under which none meet, since every way around is one that a processor does not
// infer_outputs.
template <class Label>
class NumberTable {
 public:
  // Of keys that are equal the last counts.
  NumberTable(const std::vector<uint64_t>& keys, std::span<const Label> labels)
      : places_(std::bit_ceil((keys.size() <= few ? 8 : 2) * keys.size() + 1)),
        // No file can know which keys meet: that depends on the address.
        seed_(reinterpret_cast<uintptr_t>(places_.data()) * 0xd6e8feb86659fd93) {
    bool meet = true;
    for (int attempts = keys.size() <= few ? 32 : 1; meet && attempts > 0; --attempts) {
      std::ranges::fill(places_, Place());
      meet = false;
      ++seed_;
      for (size_t i = 0; i < keys.size(); ++i) {
        const size_t at = place_of(keys[i]);
        meet = meet || at != first_place_of(keys[i]);
        places_[at] = {keys[i], true, labels[i]};
      }
    }
  }

  const Label* find(uint64_t key) const {
    const Place& place = places_[place_of(key)];
    return place.taken ? &place.label : nullptr;
  }

 private:
  static constexpr size_t few = 128;
  struct Place {
    uint64_t key = 0;
    bool taken = false;
    Label label{};
  };
  size_t first_place_of(uint64_t key) const {
    constexpr uint64_t golden = 0x9e3779b97f4a7c15;
    const auto mixed = static_cast<unsigned __int128>(key ^ seed_) * golden;
    return static_cast<size_t>(static_cast<uint64_t>(mixed >> 64) ^ static_cast<uint64_t>(mixed)) &
           (places_.size() - 1);
  }
  // Where the key is, or would be.
  size_t place_of(uint64_t key) const {
    size_t at = first_place_of(key);
    while (places_[at].taken && places_[at].key != key) at = (at + 1) & (places_.size() - 1);
    return at;
  }

  std::vector<Place> places_;
  uint64_t seed_;
};

template <class Label>
class TextTable {
 public:
  TextTable(const std::vector<std::string>& keys, std::span<const Label> labels) {
    labels_.reserve(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) labels_.insert_or_assign(keys[i], labels[i]);
  }
  const Label* find(const std::string& key) const {
    const auto found = labels_.find(key);
    return found == labels_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string, Label> labels_;
};

template <class Call>
decltype(auto) by_label_type(ElementType type, Call&& call) {
  switch (type) {
    case ElementType::string: return call(std::string());
    case ElementType::int64: return call(int64_t{});
    case ElementType::int32: return call(int32_t{});
    case ElementType::int16: return call(int16_t{});
    case ElementType::float64: return call(double{});
    case ElementType::float32: return call(float{});
    default: throw Error(ErrorCode::unsupported, fmt::format("labels of type {}", name_of(type)));
  }
}

void infer_label_encoder(InferContext& ctx) {
  const Tensor keys = required_list(ctx, "keys"), values = required_list(ctx, "values");
  for (const std::string_view what : {"keys", "values"}) {
    int given = 0;
    for (const std::string_view kind : {"strings", "int64s", "floats", "tensor"})
      given += ctx.has_attribute(fmt::format("{}_{}", what, kind));
    if (given > 1) object(ctx, "one attribute must give the {}; {} do", what, given);
  }
  if (keys.size() != values.size())
    ctx.fail("there must be as many values as keys, {}; there are {}", keys.size(), values.size());
  if (ctx.element(0) != ElementType::undefined && keys.element_type() != ctx.element(0)) {
    ctx.fail("keys must have the input's type, {}; they are {}", name_of(ctx.element(0)),
             name_of(keys.element_type()));
  }
  check_default(ctx, values.element_type());
  ValueType type = ctx.type(0);
  type.kind = ir::TypeProto::Kind::tensor;
  type.element = values.element_type();
  ctx.set(0, std::move(type));
}

template <class Key, class Label>
auto table_of(std::span<const Key> keys, std::span<const Label> labels) {
  std::vector<decltype(hashable(Key()))> hashed;
  for (const Key& key : keys) hashed.push_back(hashable(key));
  if constexpr (std::is_same_v<Key, std::string>)
    return TextTable<Label>(hashed, labels);
  else
    return NumberTable<Label>(hashed, labels);
}

template <class Key, class Label>
std::unique_ptr<Step> encode(const NodeView& node, const Tensor& keys, const Tensor& values) {
  auto table = table_of<Key, Label>(keys.elements<Key>(), values.elements<Label>());
  const Label otherwise = default_value<Label>(node).template elements<Label>()[0];
  return make_step("ml.label_encoder", [table = std::move(table), otherwise](RunContext& run) {
    const Key* x = run.in<Key>(0);
    Label* y = run.out<Label>(0);
    kernels::for_rows_of(run.in_size(0), 16, run.pool(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Label* found = table.find(hashable(x[i]));
        y[i] = found != nullptr ? *found : otherwise;
      }
    });
  });
}

std::unique_ptr<Step> prepare_label_encoder(PrepareContext& ctx) {
  const Tensor keys = required_list(ctx, "keys"), values = required_list(ctx, "values");
  return by_label_type(keys.element_type(), [&](const auto& key) {
    return by_label_type(values.element_type(), [&](const auto& value) {
      return encode<std::decay_t<decltype(key)>, std::decay_t<decltype(value)>>(ctx, keys, values);
    });
  });
}

// Version 1 had one list of classes and chose the direction by the input's type: a string became
// its place in the list, a number the class at that place.
void upgrade_label_encoder(UpgradeContext& ctx) {
  if (ctx.since() >= 2) return;
  const auto old = ctx.old();
  const auto classes = old.attr_strings("classes_strings").value_or(std::vector<std::string>());
  ElementType from = ctx.element(0);
  if (from == ElementType::undefined)
    from = old.has_attribute("default_string") && !old.has_attribute("default_int64")
               ? ElementType::int64
               : ElementType::string;
  std::vector<std::string> names;
  std::vector<int64_t> places;
  for (size_t i = 0; i < classes.size(); ++i) {
    // A class named twice was found at its first place.
    if (from == ElementType::string &&
        std::find(names.begin(), names.end(), classes[i]) != names.end())
      continue;
    names.push_back(classes[i]);
    places.push_back(static_cast<int64_t>(i));
  }
  const bool to_places = from == ElementType::string;
  ir::Attribute text;
  text.name = to_places ? "keys_strings" : "values_strings";
  text.kind = ir::AttributeKind::strings;
  text.strings = std::move(names);
  ctx.remove_attribute("classes_strings");
  ctx.remove_attribute(to_places ? "default_string" : "default_int64");
  ctx.node().attributes.push_back(std::move(text));
  ctx.set_attribute(to_places ? "values_int64s" : "keys_int64s", std::move(places));
}

// --- CategoryMapper -----------------------------------------------------------------------------

struct Categories {
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
};

Categories categories_of(const NodeView& node) {
  Categories found{node.attr_strings("cats_strings").value_or(std::vector<std::string>()),
                   node.attr_ints("cats_int64s").value_or(std::vector<int64_t>())};
  if (found.names.size() != found.numbers.size())
    node.fail("cats_strings and cats_int64s must have one length; they have {} and {}",
              found.names.size(), found.numbers.size());
  return found;
}

void infer_category_mapper(InferContext& ctx) {
  if (categories_of(ctx).names.empty())
    object(ctx, "cats_strings and cats_int64s are required; without them nothing is mapped");
  ValueType type = ctx.type(0);
  type.kind = ir::TypeProto::Kind::tensor;
  const ElementType from = ctx.element(0);
  if (from != ElementType::undefined)
    type.element = from == ElementType::string ? ElementType::int64 : ElementType::string;
  ctx.set(0, std::move(type));
}

std::unique_ptr<Step> prepare_category_mapper(PrepareContext& ctx) {
  const auto [names, numbers] = categories_of(ctx);
  if (ctx.in_element(0) == ElementType::string) {
    std::unordered_map<std::string, int64_t> table;
    for (size_t i = 0; i < names.size(); ++i) table.insert_or_assign(names[i], numbers[i]);
    return make_step("ml.category_mapper",
                     [table, otherwise = ctx.attr_int("default_int64", -1)](RunContext& run) {
                       for (int64_t i = 0; i < run.in_size(0); ++i) {
                         const auto found = table.find(run.in<std::string>(0)[i]);
                         run.out<int64_t>(0)[i] = found != table.end() ? found->second : otherwise;
                       }
                     });
  }
  std::unordered_map<int64_t, std::string> table;
  for (size_t i = 0; i < names.size(); ++i) table.insert_or_assign(numbers[i], names[i]);
  return make_step(
      "ml.category_mapper",
      [table, otherwise = ctx.attr_string("default_string", "_Unused")](RunContext& run) {
        for (int64_t i = 0; i < run.in_size(0); ++i) {
          const auto found = table.find(run.in<int64_t>(0)[i]);
          run.out<std::string>(0)[i] = found != table.end() ? found->second : otherwise;
        }
      });
}

// --- OneHotEncoder ------------------------------------------------------------------------------

void infer_one_hot(InferContext& ctx) {
  const auto categories = ml::labels_of(ctx, "cats_int64s", "cats_strings");
  if (categories.size() == 0) ctx.fail("needs one of the attributes cats_int64s and cats_strings");
  if (ctx.element(0) != ElementType::undefined &&
      categories.text() != (ctx.element(0) == ElementType::string)) {
    ctx.fail("a {} input needs attribute {}", name_of(ctx.element(0)),
             categories.text() ? "cats_int64s" : "cats_strings");
  }
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ValueType::tensor(ElementType::float32));
    return;
  }
  Dims out = *in;
  out.push_back(Dim(static_cast<int64_t>(categories.size())));
  ctx.set(0, ElementType::float32, std::move(out));
}

template <class Table, class At>
void write_one_hot(RunContext& run, const Table& table, int64_t width, bool zeros, At&& at) {
  kernels::for_rows_of(run.in_size(0), 16 + width, run.pool(), [&](int64_t begin, int64_t end) {
    float* y = run.out<float>(0) + begin * width;
    std::fill_n(y, (end - begin) * width, 0.0f);
    for (int64_t i = begin; i < end; ++i, y += width) {
      if (const int64_t* found = table.find(at(i))) {
        y[*found] = 1;
      } else if (!zeros) {
        throw Error(
            ErrorCode::run_failed,
            fmt::format(
                "OneHotEncoder: element {} is none of the {} categories; set zeros=1 to allow that",
                i, width));
      }
    }
  });
}

std::unique_ptr<Step> prepare_one_hot(PrepareContext& ctx) {
  const auto categories = ml::labels_of(ctx, "cats_int64s", "cats_strings");
  const auto width = static_cast<int64_t>(categories.size());
  const bool zeros = ctx.attr_int("zeros", 1) != 0;
  std::vector<int64_t> columns(categories.size());
  std::iota(columns.begin(), columns.end(), 0);
  if (categories.text()) {
    const auto table = table_of<std::string, int64_t>(categories.strings, columns);
    return make_step("ml.one_hot_encoder", [table, width, zeros](RunContext& run) {
      write_one_hot(run, table, width, zeros,
                    [&](int64_t i) -> const std::string& { return run.in<std::string>(0)[i]; });
    });
  }
  const auto table = table_of<int64_t, int64_t>(categories.integers, columns);
  return make_step("ml.one_hot_encoder", [table, width, zeros](RunContext& run) {
    write_one_hot(run, table, width, zeros, [&](int64_t i) {
      if (run.in_type(0) == ElementType::int64) return hashable(run.in<int64_t>(0)[i]);
      double value = 0;
      ml::read_numbers(run.in_type(0), run.data(0), i, 1, &value);
      return hashable(std::fabs(value) < 9e18 ? static_cast<int64_t>(value) : INT64_MIN);
    });
  });
}

constexpr Operator operators[] = {
    {.name = "LabelEncoder",
     .domain = ml::domain,
     .infer = infer_label_encoder,
     .prepare = prepare_label_encoder,
     .upgrade = upgrade_label_encoder},
    {.name = "CategoryMapper",
     .domain = ml::domain,
     .infer = infer_category_mapper,
     .prepare = prepare_category_mapper},
    {.name = "OneHotEncoder",
     .domain = ml::domain,
     .infer = infer_one_hot,
     .prepare = prepare_one_hot},
};

}  // namespace
}  // namespace ml_encoders_unit

std::span<const Operator> ml_encoders_operators() { return ml_encoders_unit::operators; }

}  // namespace sardonyx::ops
