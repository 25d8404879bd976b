// Rules of types and shapes.
#include <algorithm>
#include <array>

#include "check/context.h"
#include "ir/dimension.h"

namespace sardonyx::check {
namespace {

using Kind = ir::TypeProto::Kind;

constexpr int max_type_depth = 16;

template <size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& choices) {
  return std::ranges::find(choices, text) != choices.end();
}

int ir_version_of(ElementType type) {
  switch (type) {
    case ElementType::bfloat16: return 4;
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz: return 9;
    case ElementType::int4:
    case ElementType::uint4: return 10;
    case ElementType::float4e2m1: return 11;
    case ElementType::float8e8m0: return 12;
    case ElementType::int2:
    case ElementType::uint2: return 13;
    case ElementType::float6e2m3:
    case ElementType::float6e3m2: return 14;
    default: return 1;
  }
}

bool is_map_key(ElementType type) {
  return type == ElementType::string || (is_integer(type) && bit_width(type) >= 8);
}

// Reports a broken type, which keeps the model from running where running needs the type.
struct TypeReport {
  Context& context;
  const Where& where;
  bool essential;

  template <class... Args>
  void operator()(RuleId rule, std::string_view advice, fmt::format_string<Args...> format,
                  Args&&... args) const {
    if (essential) {
      context.report(rule, where, advice, format, std::forward<Args>(args)...);
    } else {
      context.report.not_fatal(rule, where, advice, format, std::forward<Args>(args)...);
    }
  }
};

void check_dimension(Context& context, const Where& where, const ir::Dimension& dim) {
  Report& report = context.report;
  if (dim.value && *dim.value < 0) {
    report("SH-07", where, "leave it open with '?' or a name",
           "dimensions are not negative; found {}", *dim.value);
  }
  if (dim.param) check_utf8(context, where, "dimension", *dim.param);
  if (dim.param && dim.param->empty()) {
    report("SH-06", where, "leave both value and name out for an unknown size",
           "the name of a dimension is empty");
  } else if (dim.param && *dim.param == "*") {
    report("SH-04", where, "leave the shape out for an unknown rank",
           "no name stands for several dimensions; found '*'");
  } else if (dim.param && !is_c_identifier(*dim.param) &&
             context.first_time("SH-08" + *dim.param)) {
    report("SH-08", where, "", "names of dimensions should be C identifiers; found '{}'",
           *dim.param);
  }
  static constexpr std::array<std::string_view, 7> known = {
      "DATA_BATCH",        "DATA_CHANNEL",       "DATA_TIME",     "DATA_FEATURE",
      "FILTER_IN_CHANNEL", "FILTER_OUT_CHANNEL", "FILTER_SPATIAL"};
  if (dim.denotation.empty()) return;
  context.has_denotations = true;
  if (!is_one_of(dim.denotation, known)) {
    report("SH-14", where, "", "the denotation '{}' is not the standard's", dim.denotation);
  }
}

// One layer of a type.
void check_layer(Context& context, const TypeReport& report, const ir::TypeProto& type) {
  const bool held = type.nested && type.nested->kind != Kind::none;
  switch (type.kind) {
    case Kind::none:
      if (report.essential) report("T-13", "say what it is", "the type says nothing");
      return;
    case Kind::sparse_tensor:
      report("T-04", "set ir_version to 8 or more",
             "sparse tensor types came with IR version 8; the model says {}", context.ir_version);
      [[fallthrough]];
    case Kind::tensor:
      if (!is_known(type.element_type())) {
        report("T-06", "", "a tensor has an element type of the standard; found {}",
               type.elem_type);
      }
      check_element_version(context, report.where, type.elem_type);
      return;
    case Kind::sequence:
      report("T-02", "set ir_version to 6 or more",
             "sequences came with IR version 6; the model says {}", context.ir_version);
      if (!held) report("T-07", "", "a sequence says the type of its elements; it is missing");
      return;
    case Kind::map:
      report("T-02", "set ir_version to 6 or more",
             "maps came with IR version 6; the model says {}", context.ir_version);
      if (!is_map_key(type.element_type())) {
        report("T-08", "", "keys of a map are integers of 8 to 64 bits or strings; found {}",
               name_of(type.element_type()));
      }
      if (!held) report("T-08", "", "a map says the type of its values; it is missing");
      return;
    case Kind::optional:
      report("T-03", "set ir_version to 8 or more",
             "optional types came with IR version 8; the model says {}", context.ir_version);
      if (!held) report("T-09", "", "an optional says the type of its element; it is missing");
      if (held && (type.nested->kind == Kind::optional || type.nested->kind == Kind::opaque)) {
        context.report.at_most_warning("T-09", report.where, "",
                                       "an optional holds a tensor, a sequence or a map");
      }
      return;
    case Kind::opaque:
      if (type.opaque_name.empty()) report("T-11", "", "an opaque type has a name; it is empty");
      return;
  }
}

}  // namespace

void check_element_version(Context& context, const Where& where, int32_t element_type) {
  const auto type = static_cast<ElementType>(element_type);
  const int needed = ir_version_of(type);
  if (needed <= context.ir_version) return;
  context.report("E-17", where, fmt::format("set ir_version to {} or more", needed),
                 "{} came with IR version {}; the model says {}", name_of(type), needed,
                 context.ir_version);
}

void check_type(Context& context, const Where& where, const ir::TypeProto& type, bool essential) {
  const TypeReport report{context, where, essential};
  static constexpr std::array<std::string_view, 4> denotations = {"TENSOR", "IMAGE", "AUDIO",
                                                                  "TEXT"};
  int depth = 0;
  for (const ir::TypeProto* layer = &type; layer; layer = layer->nested.get()) {
    if (++depth > max_type_depth) {
      return report("L-02", "", "types nest at most {} deep", max_type_depth);
    }
    if (layer != &type && layer->kind == Kind::none) return;  // reported for the layer around it
    check_layer(context, report, *layer);
    if (!layer->denotation.empty() && !is_one_of(layer->denotation, denotations)) {
      report("T-16", "", "the denotation '{}' is not the standard's", layer->denotation);
    }
    if (!layer->shape) continue;
    if (layer->shape->dims.size() > ir::max_declared_rank) {
      return report("L-03", "leave the shape out, or declare one that tensors have",
                    "a shape has at most {} dimensions; this one has {}", ir::max_declared_rank,
                    layer->shape->dims.size());
    }
    for (size_t i = 0; i < layer->shape->dims.size(); ++i) {
      const ir::Dimension& dim = layer->shape->dims[i];
      if (dim.denotation.empty() && (!dim.value || *dim.value >= 0) &&
          (!dim.param || is_c_identifier(*dim.param)))
        continue;
      check_dimension(context, where.in(fmt::format("dimension {}", i)), dim);
    }
  }
}

}  // namespace sardonyx::check
