// What all rules see, and the rules by the kind of thing they look at.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/similar.h"
#include "check/report.h"
#include "ir/imports.h"
#include "ir/model.h"
#include "sardonyx/value.h"
#include "schema/schema.h"
#include "schema/signature_text.h"

namespace sardonyx::check {

inline constexpr int newest_ir_version = 14;
// Deeper graphs are reported and left alone; a graph that is met more often has been told enough
// of.
inline constexpr int max_graph_depth = 64;
inline constexpr int max_visits = 100;

// A file and the part of it that an external tensor takes.
struct ExternalRange {
  std::string_view location;
  int64_t offset = 0;
  int64_t length = 0;
  std::string tensor;
};

struct Context {
  const ir::Model& model;
  const Options& options;
  Report report;
  int64_t ir_version;  // the newest, where the model says none that is known

  // Model-local functions by domain ("" for ai.onnx), name and overload.
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const ir::Function*>
      functions;
  std::set<std::string_view> function_domains;
  // Parameters of functions that a call must give, since an operator in the body requires them.
  std::map<const ir::Function*, std::vector<std::string_view>> needed_parameters;
  // What is reported once for each.
  std::unordered_set<std::string> reported;
  std::vector<ExternalRange> external_ranges;
  // Whether there is anything for the rules of denotation_rules.cc and sharding_rules.cc.
  bool has_denotations = false;
  bool has_device_annotations = false;

  mutable ir::ImportIndex imports = {};

  bool first_time(std::string key) { return reported.insert(std::move(key)).second; }
};

// What nodes bind against: the model, or a function of it.
struct Unit {
  const std::vector<ir::OperatorSetId>& imports;
  const ir::Function* function = nullptr;
};

// Names and what they stand for in the outermost graph, kept for training graphs.
using NameSet = std::unordered_set<std::string_view>;

// model_rules.cc
void check_header(Context& context);
void check_devices(Context& context);
void check_version_range(Context& context, const Where& where, int64_t version);
// After all nodes: imports newer than known of which no node makes use.
void check_unused_imports(Context& context);
// function_rules.cc
void index_functions(Context& context);
void check_functions(Context& context);
const ir::Function* called_function(const Context& context, const ir::Node& node);
// Names of the main graph that a training graph may use, and may or may not define again.
struct Outer {
  const NameSet* names = nullptr;
  bool may_define = true;
};
// graph_rules.cc: a graph or function body with all that is nested in it. Gives the names that the
// graph itself defines.
NameSet check_graph(Context& context, const Unit& unit, const ir::Graph& graph,
                    std::string_view root, const Outer& outer = {});
void check_body(Context& context, const Unit& unit, const ir::Function& function);
// Inputs, outputs, initializers and annotations of a graph, without its nodes.
void check_interface(Context& context, const ir::WalkPlace& place);
void check_subgraph_arity(Context& context, const Unit& unit, const ir::WalkPlace& place);
// model_rules.cc: the version of a node's domain, once for each import.
void check_known_version(Context& context, const Unit& unit, const Where& where,
                         const ir::Node& node, int64_t version);
// history.cc: what to do about what the bound version of an operator does not have, by the
// operator's other versions. Empty where those say nothing.
using Versions = std::span<const schema::Signature>;
std::string advice_on_attribute(Versions versions, const schema::Signature& bound,
                                std::string_view name);
std::string advice_on_kind(Versions versions, const schema::Signature& bound, std::string_view name,
                           ir::AttributeKind found);
std::string advice_on_input(Versions versions, const schema::Signature& bound, size_t position);
std::string advice_on_output(Versions versions, const schema::Signature& bound, size_t position);
std::string advice_on_missing_attribute(Versions versions, const schema::Signature& bound,
                                        std::string_view name);
std::string advice_on_missing_input(Versions versions, const schema::Signature& bound,
                                    std::string_view name);
// node_rules.cc
void check_node(Context& context, const Unit& unit, const Where& where);
// attribute_rules.cc
void check_attribute(Context& context, const Unit& unit, const Where& where,
                     const ir::Attribute& attribute);
// tensor_rules.cc, external_rules.cc, sparse_rules.cc
void check_tensor(Context& context, const Where& where, const ir::TensorProto& tensor);
void check_sparse_tensor(Context& context, const Where& where, const ir::SparseTensorProto& tensor);
void check_external_data(Context& context, const Where& where, const ir::TensorProto& tensor);
void check_external_overlaps(Context& context);
// type_rules.cc. `essential`: running needs the type, since it is the main graph's.
void check_type(Context& context, const Where& where, const ir::TypeProto& type, bool essential);
void check_element_version(Context& context, const Where& where, int32_t element_type);
// training_rules.cc
void check_training(Context& context, const NameSet& main_names);
// denotation_rules.cc, sharding_rules.cc: after all graphs and functions
void check_denotations(Context& context);
void check_shardings(Context& context);
// metadata
void check_distinct_keys(Context& context, RuleId rule, const Where& where,
                         const std::vector<ir::StringEntry>& entries);

// text.cc
bool is_utf8(std::string_view text);
// Reports a name that is no UTF-8; `what` says what has it.
void check_utf8(Context& context, const Where& where, std::string_view what, std::string_view name);
bool is_c_identifier(std::string_view text);
bool is_reversed_dns(std::string_view text);
// "; did you mean 'x'?" or a plain advice where there is no candidate.
std::string did_you_mean(std::string_view candidate, std::string_view otherwise = "");

}  // namespace sardonyx::check
