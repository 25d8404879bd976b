// What a model says, and models made of it: sardonyx/_model.py and sardonyx/_tools.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "convert.h"
#include "errors.h"
#include "model.h"
#include "sardonyx/check.h"
#include "sardonyx/compose.h"
#include "sardonyx/convert.h"
#include "sardonyx/infer.h"
#include "sardonyx/model.h"
#include "sardonyx/signatures.h"
#include "text.h"

namespace sardonyx::python {

namespace nb = nanobind;

namespace {

using Names = std::vector<std::string>;

template <class Work>
auto unlocked(Work&& work) {
  const nb::gil_scoped_release released;
  return work();
}

// A model that others are made of tells its warnings to the same listener.
HeldModel beside(const HeldModel& held, Model&& model) {
  return {std::move(model), held.warnings, held.listener};
}

ModelForm form_named(const std::string& name) {
  if (name == "binary") return ModelForm::binary;
  if (name == "text") return ModelForm::text;
  if (name == "json") return ModelForm::json;
  if (name == "textproto") return ModelForm::textproto;
  refuse("there is no form '" + name + "' of a model; they are binary, text, json and textproto");
}

nb::object bytes_of(const HeldModel& held, const std::string& form) {
  const ModelForm chosen = form_named(form);
  const std::string bytes = unlocked([&] { return held.model.to_bytes(chosen); });
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object text_of(const HeldModel& held, std::optional<size_t> max_elements, bool annotations) {
  TextOptions options;
  if (max_elements) options.max_elements = *max_elements;
  options.annotations = annotations;
  return text_object(unlocked([&] { return held.model.to_text(options); }));
}

nb::object save(const HeldModel& held, const std::string& path, const std::string& external_data,
                uint64_t threshold, bool embed, bool checksum, const std::string& trusted_folder,
                const std::optional<std::string>& form) {
  SaveOptions options;
  options.external_data = external_data;
  options.threshold = threshold;
  options.embed = embed;
  options.checksum = checksum;
  options.trusted_folder = trusted_folder;
  if (form) options.form = form_named(*form);
  const Saved saved = unlocked([&] { return held.model.save(path, options); });
  nb::list notes;
  for (const auto& note : saved.notes) notes.append(note);
  return nb::make_tuple(saved.model_bytes, saved.data_bytes, notes);
}

nb::dict header(const HeldModel& held) {
  const Model& model = held.model;
  nb::dict made;
  made["ir_version"] = model.ir_version() ? nb::cast(*model.ir_version()) : nb::none();
  made["producer_name"] = text_object(model.producer_name());
  made["producer_version"] = text_object(model.producer_version());
  made["domain"] = text_object(model.domain());
  made["model_version"] = model.model_version();
  made["doc_string"] = text_object(model.doc_string());
  nb::dict metadata, imports;
  for (const auto& entry : model.metadata())
    metadata[text_object(entry.key())] = text_object(entry.value());
  for (const auto& one : model.opset_imports()) imports[text_object(one.domain())] = one.version();
  made["metadata"] = metadata;
  made["opset_imports"] = imports;
  if (model.has_graph()) {
    made["graph_name"] = text_object(model.graph().name());
    made["graph_doc_string"] = text_object(model.graph().doc_string());
  }
  return made;
}

nb::list declared(const ViewList<ValueInfoView>& values) {
  nb::list made;
  for (const auto& one : values)
    made.append(nb::make_tuple(text_object(one.name()),
                               text_object(one.type_text()).attr("replace")(", ", ",")));
  return made;
}

// Of tensors with a shape, also of those that may be absent.
nb::list dimensions(const ViewList<ValueInfoView>& values) {
  nb::list made;
  for (const auto& one : values) {
    auto type = one.type();
    if (type && type->kind() == TypeView::Kind::optional) type = type->nested();
    if (!type || type->kind() != TypeView::Kind::tensor || !type->has_shape()) continue;
    nb::list of_dimensions;
    for (const auto& dimension : type->shape())
      of_dimensions.append(
          nb::make_tuple(text_object(dimension.name()), text_object(dimension.denotation())));
    made.append(nb::make_tuple(text_object(one.name()), of_dimensions));
  }
  return made;
}

nb::list nodes(const HeldModel& held) {
  nb::list made;
  for (const auto& node : held.model.graph().nodes()) {
    nb::list inputs, outputs, attributes;
    for (const auto& name : node.inputs()) inputs.append(text_object(name));
    for (const auto& name : node.outputs()) outputs.append(text_object(name));
    for (const auto& attribute : node.attributes())
      attributes.append(text_object(attribute.to_string()));
    made.append(nb::make_tuple(text_object(node.domain()), text_object(node.op_type()),
                               text_object(node.name()), inputs, outputs, attributes));
  }
  return made;
}

nb::list initializer_names(const HeldModel& held) {
  nb::list made;
  for (const auto& tensor : held.model.graph().initializers())
    made.append(text_object(tensor.name()));
  return made;
}

// A view without a copy; None where there is no such initializer.
nb::object initializer(const HeldModel& held, const std::string& name) {
  const auto found = held.model.graph().initializer(name);
  return found ? view_of(found->tensor(), false) : nb::none();
}

nb::list described(const CheckReport& report) {
  nb::list made;
  for (const auto& one : report.diagnostics) {
    made.append(nb::make_tuple(std::string(name_of(one.severity)), std::string(one.rule),
                               text_object(one.place.to_string()), text_object(one.message),
                               text_object(one.advice)));
  }
  return made;
}

CheckOptions check_options(const std::string& profile, bool full, bool data,
                           bool unknown_domains_are_errors, const Names& operator_sets,
                           const Names& libraries) {
  CheckOptions options;
  if (profile == "runnable")
    options.profile = CheckProfile::runnable;
  else if (profile == "strict")
    options.profile = CheckProfile::strict;
  else if (profile != "standard")
    refuse("there is no profile '" + profile + "'; they are runnable, standard and strict");
  options.full = full;
  options.data = data;
  options.unknown_domains_are_errors = unknown_domains_are_errors;
  options.operator_sets = operator_sets;
  options.libraries = libraries;
  return options;
}

HeldModel convert(const HeldModel& held, int64_t opset, bool assume_inference) {
  ConvertOptions options;
  options.opset = opset;
  options.assume_inference = assume_inference;
  return beside(held, unlocked([&] { return convert_version(held.model, options); }));
}

HeldModel merged(const HeldModel& first, const HeldModel& second,
                 const std::vector<std::pair<std::string, std::string>>& connections,
                 const std::string& first_prefix, const std::string& second_prefix,
                 const Names& outputs) {
  MergeOptions options;
  options.connections = connections;
  options.first_prefix = first_prefix;
  options.second_prefix = second_prefix;
  options.outputs = outputs;
  return beside(first, unlocked([&] { return merge(first.model, second.model, options); }));
}

HeldModel renamed(const HeldModel& held, const std::map<std::string, std::string>& values,
                  const std::map<std::string, std::string>& nodes,
                  const std::map<std::string, std::string>& dimensions,
                  const std::map<std::string, std::string>& functions, const std::string& prefix) {
  Renaming renaming;
  renaming.values = values;
  renaming.nodes = nodes;
  renaming.dimensions = dimensions;
  renaming.functions = functions;
  renaming.prefix = prefix;
  return beside(held, unlocked([&] { return rename(held.model, renaming); }));
}

struct TooLarge {};

// Of at most `max_bytes` bytes; None: it would be larger.
nb::object drawing_of(const HeldModel& held, const std::string& form, size_t max_bytes) {
  const auto named = drawing_form_of("drawing." + form);
  if (!named) refuse("there is no form '" + form + "' of a drawing; they are svg and dot");
  std::string drawn;
  try {
    unlocked([&] {
      held.model.draw(
          [&](std::string_view piece) {
            if (piece.size() > max_bytes - drawn.size()) throw TooLarge();
            drawn += piece;
          },
          *named);
      return 0;
    });
  } catch (const TooLarge&) {
    return nb::none();
  }
  return text_object(drawn);
}

nb::object differences(const HeldModel& first, const HeldModel& second, double relative,
                       double absolute, bool weights, bool annotations) {
  DiffOptions options;
  options.relative = relative;
  options.absolute = absolute;
  options.weights = weights;
  options.annotations = annotations;
  const DiffResult found = unlocked([&] { return diff(first.model, second.model, options); });
  nb::list made;
  for (const auto& one : found.differences) {
    const char* kind = one.kind == ModelDifference::Kind::changed         ? "changed"
                       : one.kind == ModelDifference::Kind::only_in_first ? "only in first"
                                                                          : "only in second";
    made.append(nb::make_tuple(kind, text_object(one.place), text_object(one.first),
                               text_object(one.second)));
  }
  return nb::make_tuple(made, found.left_out);
}

nb::object parameters(const std::vector<FormalParameter>& all) {
  nb::list made;
  for (const auto& one : all) {
    const char* option = one.option == FormalParameter::Option::single     ? "single"
                         : one.option == FormalParameter::Option::optional ? "optional"
                                                                           : "variadic";
    made.append(nb::make_tuple(std::string(one.name), std::string(one.type), one.types, option));
  }
  return made;
}

nb::object default_of(const AttributeSignature& one) {
  if (!one.has_default) return nb::none();
  switch (one.type) {
    case AttributeType::float_: return nb::cast(one.default_float);
    case AttributeType::int_: return nb::cast(one.default_int);
    case AttributeType::string: return text_object(one.default_string);
    case AttributeType::floats: return nb::cast(one.default_floats);
    case AttributeType::ints: return nb::cast(one.default_ints);
    case AttributeType::strings: {
      nb::list made;
      for (const auto& item : one.default_strings) made.append(text_object(item));
      return made;
    }
    default: return nb::none();
  }
}

nb::object described(const OperatorSignature& one) {
  nb::list attributes;
  for (const auto& attribute : one.attributes) {
    attributes.append(nb::make_tuple(std::string(attribute.name),
                                     std::string(name_of(attribute.type)), attribute.is_required,
                                     default_of(attribute)));
  }
  nb::dict constraints;
  for (const auto& constraint : one.constraints)
    constraints[text_object(constraint.name)] = nb::cast(constraint.types);
  return nb::make_tuple(std::string(one.domain), std::string(one.name), one.since, one.until,
                        one.is_deprecated, parameters(one.inputs), parameters(one.outputs),
                        attributes, constraints);
}

}  // namespace

void bind_tools(nb::module_& module) {
  module.def("model_bytes", &bytes_of);
  module.def("model_text", &text_of, nb::arg("model"), nb::arg("max_elements").none(),
             nb::arg("annotations"));
  module.def("model_drawing", &drawing_of, nb::arg("model"), nb::arg("form"), nb::arg("max_bytes"));
  module.def("save_model", &save, nb::arg("model"), nb::arg("path"), nb::arg("external_data"),
             nb::arg("threshold"), nb::arg("embed"), nb::arg("checksum"), nb::arg("trusted_folder"),
             nb::arg("form").none());
  module.def("model_header", &header);
  module.def("declared_inputs",
             [](const HeldModel& held) { return declared(held.model.graph().inputs()); });
  module.def("input_dimensions",
             [](const HeldModel& held) { return dimensions(held.model.graph().inputs()); });
  module.def("declared_outputs",
             [](const HeldModel& held) { return declared(held.model.graph().outputs()); });
  module.def("output_dimensions",
             [](const HeldModel& held) { return dimensions(held.model.graph().outputs()); });
  module.def("model_nodes", &nodes);
  module.def("node_count", [](const HeldModel& held) { return held.model.graph().nodes().size(); });
  module.def("initializer_names", &initializer_names);
  module.def("initializer", &initializer);
  module.def(
      "check_path", [](const std::string& path, const std::string& profile, bool full, bool data,
                       bool unknown, const Names& operator_sets, const Names& libraries) {
        const auto options = check_options(profile, full, data, unknown, operator_sets, libraries);
        return described(unlocked([&] { return check_file(path, options); }));
      });
  module.def(
      "check_model", [](const HeldModel& held, const std::string& profile, bool full, bool data,
                        bool unknown, const Names& operator_sets, const Names& libraries) {
        const auto options = check_options(profile, full, data, unknown, operator_sets, libraries);
        return described(unlocked([&] { return check_model(held.model, options); }));
      });
  module.def("convert_version", &convert);
  module.def("inline_functions", [](const HeldModel& held) {
    return beside(held, unlocked([&] { return inline_functions(held.model); }));
  });
  module.def("extract", [](const HeldModel& held, const Names& inputs, const Names& outputs) {
    return beside(held, unlocked([&] { return extract(held.model, inputs, outputs); }));
  });
  module.def("merge", &merged);
  module.def("rename", &renamed);
  module.def("diff", &differences);
  module.def("typed_model", [](const HeldModel& held, const std::map<std::string, int64_t>& sizes) {
    InferOptions options;
    options.sizes.insert(sizes.begin(), sizes.end());
    return beside(held, unlocked([&] { return with_inferred_types(held.model, options); }));
  });
  module.def("operator_domains", [] {
    nb::dict made;
    for (const auto& one : operator_domains()) made[text_object(one.domain)] = one.newest;
    return made;
  });
  module.def("operator_names", [](const std::string& domain) {
    nb::list made;
    for (const auto& name : operator_names(domain)) made.append(text_object(name));
    return made;
  });
  module.def("operator_versions", [](const std::string& domain, const std::string& name) {
    nb::list made;
    for (const auto& one : operator_versions(domain, name)) made.append(described(one));
    return made;
  });
}

}  // namespace sardonyx::python
