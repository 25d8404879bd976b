// Rules of the model's header, its imports, metadata and devices.
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "check/context.h"

namespace sardonyx::check {
namespace {

const Where model_place{.root = "model"};

void check_versions(Context& context) {
  const ir::Model& model = context.model;
  Report& report = context.report;
  if (!model.ir_version || *model.ir_version <= 0) {
    report("M-02", model_place.in("ir_version"), "set the IR version the file was written for",
           "a model says its IR version; {}",
           model.ir_version ? fmt::format("found {}", *model.ir_version) : "it is missing");
  } else if (*model.ir_version > newest_ir_version) {
    report("M-03", model_place.in("ir_version"),
           fmt::format("use a newer release; if the file has nothing that IR version {0} lacks, "
                       "declare that version: sardonyx edit --ir-version {0}",
                       newest_ir_version),
           "the newest known IR version is {}; found {}", newest_ir_version, *model.ir_version);
  }
}

void check_import(Context& context, const Where& where, const ir::OperatorSetId& import) {
  Report& report = context.report;
  const std::string_view domain = ir::canonical_domain(import.domain);
  check_version_range(context, where, import.version);
  if (import.version < 1) return;
  const int32_t latest = schema::latest_opset(domain);
  if (latest == 0 && !is_reversed_dns(domain)) {
    report("O-03", where, "", "domains should be reversed DNS names such as com.example");
  }
  if (domain.starts_with("ai.onnx.preview")) {
    report("O-14", where, "", "what a preview operator set means depends on the release of ONNX");
  }
  const int32_t needed = schema::ir_version_for_opset(domain, import.version);
  if (needed > context.ir_version) {
    report("V-10", where, fmt::format("set ir_version to {} or more", needed),
           "version {} came with IR version {}; the model says {}", import.version, needed,
           context.ir_version);
  }
}

void check_imports(Context& context) {
  const ir::Model& model = context.model;
  Report& report = context.report;
  const Where where = model_place.in("opset_import");
  if (!model.opset_imports.empty()) {
    report("M-05", where, "set ir_version to 3 or more",
           "operator sets cannot be imported before IR version 3; found IR version {}",
           context.ir_version);
  }
  if (model.opset_imports.empty()) {
    report("M-04", where, "import the version of ai.onnx the nodes are of",
           "a model imports at least one operator set; it imports none");
  } else if (ir::imported_version(model.opset_imports, "") == 0) {
    report.at_most_warning("M-04", where, "import a version of ai.onnx",
                           "ai.onnx is not among the imported operator sets");
  }
  std::map<std::string_view, int64_t> seen;
  for (const ir::OperatorSetId& import : model.opset_imports) {
    const std::string_view domain = ir::canonical_domain(import.domain);
    const Where place = model_place.in("opset_import", domain.empty() ? "ai.onnx" : domain);
    check_import(context, place, import);
    const auto [before, is_new] = seen.emplace(domain, import.version);
    if (is_new) continue;
    if (before->second == import.version) {
      report.at_most_warning("M-08", place, "remove one", "the domain is imported twice");
    } else {
      report("M-08", place, "the highest version binds; remove the others",
             "the domain is imported with the versions {} and {}", before->second, import.version);
    }
  }
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

// The keys that describe images, and their values, in lower case.
void check_image_metadata(Context& context) {
  struct ImageKey {
    std::string_view key;
    std::string_view values;  // each between bars
  };
  static constexpr std::array<ImageKey, 3> image_keys = {{
      {"image.bitmappixelformat", "|gray8|rgb8|bgr8|rgba8|bgra8|"},
      {"image.colorspacegamma", "|linear|srgb|"},
      {"image.nominalpixelrange",
       "|nominalrange_0_255|normalized_0_1|normalized_1_1|nominalrange_16_235|"},
  }};
  for (const ir::StringEntry& entry : context.model.metadata_props) {
    for (const ImageKey& known : image_keys) {
      if (lower_case(entry.key) != known.key) continue;
      if (known.values.find("|" + lower_case(entry.value) + "|") != known.values.npos) continue;
      context.report("MP-05", model_place.in(fmt::format("metadata '{}'", entry.key)), "",
                     "'{}' is none of the standard's values", entry.value);
    }
  }
}

void check_fields_of_versions(Context& context) {
  const ir::Model& model = context.model;
  Report& report = context.report;
  if (!model.functions.empty()) {
    report("M-21", model_place.in("functions"), "set ir_version to 8 or more",
           "functions came with IR version 8; the model says {}", context.ir_version);
  }
  if (!model.training_info.empty()) {
    report("TR-01", model_place.in("training_info"), "set ir_version to 7 or more",
           "training information came with IR version 7; the model says {}", context.ir_version);
  }
  if (!model.configuration.empty() && context.ir_version < 11) {
    report("M-25", model_place.in("configuration"), "set ir_version to 11 or more",
           "device configurations came with IR version 11; the model says {}", context.ir_version);
  }
}

}  // namespace

namespace {

// Whether an import is of a version newer than any known, and this is not yet reported.
bool is_new_finding(Context& context, const std::vector<ir::OperatorSetId>& imports,
                    std::string_view domain, int64_t version) {
  const int32_t latest = schema::latest_opset(domain);
  return latest > 0 && version > latest &&
         context.first_time(fmt::format("newer {} {}", static_cast<const void*>(&imports), domain));
}

}  // namespace

void check_version_range(Context& context, const Where& where, int64_t version) {
  if (version < 1) {
    context.report("M-10", where, "name the version of the operator set",
                   "versions of operator sets start at 1; found {}", version);
  } else if (version > std::numeric_limits<int32_t>::max()) {
    context.report.not_fatal("M-10", where, "name the version of the operator set",
                             "versions of operator sets fit 31 bits; found {}", version);
  }
}

void check_known_version(Context& context, const Unit& unit, const Where& where,
                         const ir::Node& node, int64_t version) {
  const std::string_view domain = ir::canonical_domain(node.domain);
  if (!is_new_finding(context, unit.imports, domain, version)) return;
  const std::string_view shown = domain.empty() ? "ai.onnx" : domain;
  context.report("M-12", unit.function ? where : model_place.in("opset_import", shown),
                 "use a newer release, or export the model for a version that is known",
                 "the newest known version of {} is {}; the {} imports {}", shown,
                 schema::latest_opset(domain), unit.function ? "function" : "model", version);
}

void check_unused_imports(Context& context) {
  for (const ir::OperatorSetId& import : context.model.opset_imports) {
    const std::string_view domain = ir::canonical_domain(import.domain);
    if (!is_new_finding(context, context.model.opset_imports, domain, import.version)) continue;
    const std::string_view shown = domain.empty() ? "ai.onnx" : domain;
    context.report.at_most_warning("M-12", model_place.in("opset_import", shown),
                                   "remove it, since no node needs it",
                                   "the newest known version of {} is {}; the model imports {}",
                                   shown, schema::latest_opset(domain), import.version);
  }
}

void check_distinct_keys(Context& context, RuleId rule, const Where& where,
                         const std::vector<ir::StringEntry>& entries) {
  if (entries.empty() || !context.report.wants(rule)) return;
  std::unordered_set<std::string_view> seen;
  for (const ir::StringEntry& entry : entries) {
    if (seen.insert(entry.key).second) continue;
    context.report(rule, where.in(fmt::format("metadata '{}'", entry.key)), "keep one of them",
                   "the key occurs more than once");
  }
}

void check_header(Context& context) {
  const ir::Model& model = context.model;
  Report& report = context.report;
  check_versions(context);
  check_imports(context);
  if (!model.graph) {
    report("M-17", model_place, "is it a model at all?", "a model has a graph; it is missing");
  }
  if (model.producer_name.empty() || model.producer_version.empty()) {
    report("M-13", model_place.in("producer_name"), "",
           "a model should say what made it, name and version");
  }
  if (!is_reversed_dns(model.domain)) {
    report("M-14", model_place.in("domain"), "",
           "a model should have a domain, a reversed DNS name; found '{}'", model.domain);
  }
  check_distinct_keys(context, "M-19", model_place, model.metadata_props);
  for (const ir::StringEntry& entry : model.metadata_props) {
    if (is_reversed_dns(entry.key) || entry.key == "model_author" || entry.key == "model_license") {
      continue;
    }
    report("MP-04", model_place.in(fmt::format("metadata '{}'", entry.key)), "",
           "keys should begin with a reversed DNS name; others may be taken by the standard");
  }
  check_image_metadata(context);
  check_fields_of_versions(context);
}

void check_devices(Context& context) {
  std::unordered_set<std::string_view> names;
  for (const ir::DeviceConfiguration& configuration : context.model.configuration) {
    const Where where = model_place.in(fmt::format("configuration '{}'", configuration.name));
    Report& report = context.report;
    if (configuration.name.empty()) {
      report("MD-02", where, "", "a device configuration has a name; it is empty");
    }
    if (configuration.num_devices < 1) {
      report("MD-02", where, "", "a device configuration has devices; found num_devices {}",
             configuration.num_devices);
    }
    if (!configuration.device.empty() &&
        static_cast<int64_t>(configuration.device.size()) != configuration.num_devices) {
      report("MD-03", where, "name all devices or none", "there are {} devices and {} names",
             configuration.num_devices, configuration.device.size());
    }
    if (!names.insert(configuration.name).second) {
      report.at_most_warning("MD-04", where, "", "two configurations have this name");
    }
  }
}

}  // namespace sardonyx::check
