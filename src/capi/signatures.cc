// Signatures of operators, and operator set documents.
#include "sardonyx/signatures.h"

#include "capi/views.h"
#include "sardonyx/operator_set.h"

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

// Texts that C reads one after the other.
using Pointers = std::vector<const char*>;

Pointers pointers(const std::vector<std::string>& texts) {
  Pointers list;
  for (const std::string& one : texts) list.push_back(one.c_str());
  return list;
}

// A signature with its lists as C has them.
struct Told {
  OperatorSignature of;
  std::vector<Pointers> input_types, output_types, constraint_types;
  std::vector<Pointers> default_strings;

  explicit Told(OperatorSignature given) : of(std::move(given)) {
    for (const FormalParameter& one : of.inputs) input_types.push_back(pointers(one.types));
    for (const FormalParameter& one : of.outputs) output_types.push_back(pointers(one.types));
    for (const TypeConstraint& one : of.constraints)
      constraint_types.push_back(pointers(one.types));
    for (const AttributeSignature& one : of.attributes) {
      Pointers& list = default_strings.emplace_back();
      for (const std::string_view string : one.default_strings) list.push_back(text(string));
    }
  }
  Told(const Told&) = delete;  // what the lists point to must not move
  Told& operator=(const Told&) = delete;
};

template <class T>
void require_index(const std::vector<T>& list, size_t index, const char* what) {
  if (index >= list.size()) refuse_index(index, list.size(), what);
}

}  // namespace

struct sardonyx_signatures {
  SARDONYX_TAG('s', 'i');
  std::vector<std::unique_ptr<const Told>> list;
  std::shared_ptr<const CustomOperators> operators;  // whose texts these are; null: the library's
};

struct sardonyx_operator_set {
  SARDONYX_TAG('o', 's');
  OperatorSet set;
  std::vector<DocumentedOperator> operators;
};

namespace {

const Told& told(const sardonyx_signatures* signatures, size_t index) {
  const auto& list = required(signatures, "signatures").list;
  require_index(list, index, "signature");
  return *list[index];
}

sardonyx_operator_set* new_set(OperatorSet set) {
  auto operators = set.operators();
  return new sardonyx_operator_set{{}, std::move(set), std::move(operators)};
}

sardonyx_signatures* made_of(std::vector<OperatorSignature> versions,
                             std::shared_ptr<const CustomOperators> operators = nullptr) {
  auto made = std::make_unique<sardonyx_signatures>();
  made->operators = std::move(operators);
  for (OperatorSignature& one : versions)
    made->list.push_back(std::make_unique<const Told>(std::move(one)));
  return made.release();
}

}  // namespace

size_t sardonyx_domain_count(void) {
  static const size_t count = operator_domains().size();
  return count;
}

sardonyx_status* sardonyx_domain(size_t index, const char** domain, int32_t* newest) {
  return guarded([&] {
    const auto domains = operator_domains();
    require_index(domains, index, "domain");
    if (domain != nullptr) *domain = text(domains[index].domain);
    if (newest != nullptr) *newest = domains[index].newest;
  });
}

size_t sardonyx_domain_operator_count(const char* domain) {
  size_t count = 0;
  sardonyx_status_release(guarded([&] {
    if (domain != nullptr) count = operator_names(domain).size();
  }));
  return count;
}

sardonyx_status* sardonyx_domain_operator(const char* domain, size_t index, const char** name) {
  return guarded([&] {
    const auto names = operator_names(&required(domain, "domain"));
    required(name, "name");
    require_index(names, index, "operator");
    *name = text(names[index]);
  });
}

size_t sardonyx_standard_release_count(void) {
  static const size_t count = standard_releases().size();
  return count;
}

sardonyx_status* sardonyx_standard_release_get(size_t index, sardonyx_standard_release* release) {
  return guarded([&] {
    const auto releases = standard_releases();
    require_index(releases, index, "release");
    const StandardRelease& one = releases[index];
    fill(release, "release",
         sardonyx_standard_release{0, text(one.name), one.ir_version, one.onnx_opset, one.ml_opset,
                                   one.training_opset});
  });
}

sardonyx_status* sardonyx_signatures_of(const char* domain, const char* name,
                                        sardonyx_signatures** signatures) {
  return guarded([&] {
    required(signatures, "signatures");
    *signatures = made_of(operator_versions(&required(domain, "domain"), &required(name, "name")));
  });
}

sardonyx_status* sardonyx_operators_signatures(const sardonyx_operators* operators,
                                               const char* domain, const char* name,
                                               sardonyx_signatures** signatures) {
  return guarded([&] {
    const auto& of = required(operators, "operators").operators;
    required(signatures, "signatures");
    *signatures =
        made_of(operator_versions(*of, &required(domain, "domain"), &required(name, "name")), of);
  });
}

sardonyx_status* sardonyx_signatures_find(const char* domain, const char* name, int64_t opset,
                                          sardonyx_signatures** signatures) {
  return guarded([&] {
    required(signatures, "signatures");
    auto made = std::make_unique<sardonyx_signatures>();
    if (auto found = find_signature(&required(domain, "domain"), &required(name, "name"), opset))
      made->list.push_back(std::make_unique<const Told>(std::move(*found)));
    *signatures = made.release();
  });
}

size_t sardonyx_signatures_count(const sardonyx_signatures* signatures) {
  return is_usable(signatures) ? signatures->list.size() : 0;
}

void sardonyx_signatures_release(sardonyx_signatures* signatures) { release_handle(signatures); }

sardonyx_status* sardonyx_signatures_get(const sardonyx_signatures* signatures, size_t index,
                                         sardonyx_signature* signature) {
  return guarded([&] {
    const OperatorSignature& of = told(signatures, index).of;
    sardonyx_signature made{};
    made.domain = text(of.domain);
    made.name = text(of.name);
    made.since = of.since, made.until = of.until;
    made.is_deprecated = of.is_deprecated, made.is_experimental = of.is_experimental;
    made.is_nondeterministic = of.is_nondeterministic, made.is_extra = of.is_extra;
    made.function = static_cast<sardonyx_function_kind>(of.function);
    made.min_inputs = of.min_inputs, made.max_inputs = of.max_inputs;
    made.min_outputs = of.min_outputs, made.max_outputs = of.max_outputs;
    made.input_count = of.inputs.size(), made.output_count = of.outputs.size();
    made.attribute_count = of.attributes.size();
    made.constraint_count = of.constraints.size();
    fill(signature, "signature", made);
  });
}

sardonyx_status* sardonyx_signatures_parameter(const sardonyx_signatures* signatures, size_t index,
                                               int output, size_t which,
                                               sardonyx_parameter* parameter) {
  return guarded([&] {
    const Told& one = told(signatures, index);
    const auto& list = output != 0 ? one.of.outputs : one.of.inputs;
    require_index(list, which, output != 0 ? "formal output" : "formal input");
    const FormalParameter& of = list[which];
    const Pointers& types = (output != 0 ? one.output_types : one.input_types)[which];
    fill(parameter, "parameter",
         sardonyx_parameter{0, text(of.name), text(of.type), types.data(), types.size(),
                            static_cast<sardonyx_parameter_option>(of.option), of.homogeneous,
                            of.min_arity, static_cast<int32_t>(of.differentiable)});
  });
}

sardonyx_status* sardonyx_signatures_attribute(const sardonyx_signatures* signatures, size_t index,
                                               size_t which,
                                               sardonyx_attribute_signature* attribute) {
  return guarded([&] {
    const Told& one = told(signatures, index);
    require_index(one.of.attributes, which, "attribute");
    const AttributeSignature& of = one.of.attributes[which];
    sardonyx_attribute_signature made{};
    made.name = text(of.name);
    made.type = static_cast<sardonyx_attribute_type>(of.type);
    made.is_required = of.is_required, made.has_default = of.has_default;
    made.default_float = of.default_float, made.default_int = of.default_int;
    made.default_string = text(of.default_string);
    made.default_floats = of.default_floats.data();
    made.default_ints = of.default_ints.data();
    made.default_strings = one.default_strings[which].data();
    made.default_count =
        std::max({of.default_floats.size(), of.default_ints.size(), of.default_strings.size()});
    fill(attribute, "attribute", made);
  });
}

sardonyx_status* sardonyx_signatures_constraint(const sardonyx_signatures* signatures, size_t index,
                                                size_t which,
                                                sardonyx_type_constraint* constraint) {
  return guarded([&] {
    const Told& one = told(signatures, index);
    require_index(one.of.constraints, which, "type constraint");
    const Pointers& types = one.constraint_types[which];
    fill(constraint, "constraint",
         sardonyx_type_constraint{0, text(one.of.constraints[which].name), types.data(),
                                  types.size()});
  });
}

sardonyx_status* sardonyx_operator_set_load(const char* path, sardonyx_operator_set** set) {
  return guarded([&] {
    required(set, "set");
    *set = new_set(OperatorSet(std::string(&required(path, "path"))));
  });
}

sardonyx_status* sardonyx_operator_set_of_standard(const char* domain, int64_t version,
                                                   sardonyx_operator_set** set) {
  return guarded([&] {
    required(set, "set");
    *set = new_set(OperatorSet::of_standard(&required(domain, "domain"), version));
  });
}

void sardonyx_operator_set_release(sardonyx_operator_set* set) { release_handle(set); }

sardonyx_status* sardonyx_operator_set_describe(const sardonyx_operator_set* set,
                                                sardonyx_operator_set_info* info) {
  return guarded([&] {
    const sardonyx_operator_set& of = required(set, "set");
    fill(info, "info",
         sardonyx_operator_set_info{0, text(of.set.domain()), of.set.version(),
                                    of.set.ir_version().value_or(0), text(of.set.doc_string()),
                                    of.operators.size()});
  });
}

sardonyx_status* sardonyx_operator_set_operator(const sardonyx_operator_set* set, size_t index,
                                                sardonyx_documented_operator* op) {
  return guarded([&] {
    const auto& operators = required(set, "set").operators;
    require_index(operators, index, "operator");
    const DocumentedOperator& one = operators[index];
    fill(op, "op",
         sardonyx_documented_operator{
             0, one.name.c_str(), one.since, one.is_experimental,
             one.body ? borrowed<sardonyx_function>(*one.body) : sardonyx_function{}});
  });
}

sardonyx_status* sardonyx_operator_set_check(const sardonyx_operator_set* set,
                                             sardonyx_report** report) {
  return guarded([&] {
    const sardonyx_operator_set& of = required(set, "set");
    required(report, "report"), *report = new_report(of.set.check());
  });
}

sardonyx_status* sardonyx_operator_set_save(const sardonyx_operator_set* set, const char* path) {
  return guarded([&] { required(set, "set").set.save(&required(path, "path")); });
}
