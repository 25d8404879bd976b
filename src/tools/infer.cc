#include "sardonyx/infer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/memory_account.h"
#include "base/name_map.h"
#include "base/os.h"
#include "check/check.h"
#include "infer/infer.h"
#include "ir/dim_hash.h"
#include "ir/dimension.h"
#include "ir/may_agree.h"
#include "ir/walk.h"
#include "session/custom.h"
#include "session/model.h"
#include "session/operator_sets.h"
#include "session/reading.h"
#include "tools/infer_report.h"
#include "tools/inferred_model.h"
#include "tools/saving.h"
#include "wire/append.h"
#include "wire/footprint.h"
#include "wire/ort_model.h"
#include "wire/store.h"
#include "wire/streaming_reader.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

bool is_undefined_input(const InferFinding& finding) {
  return finding.is_error && finding.message.find(infer::undefined_input) != std::string::npos;
}

// Why nodes read what is not there yet, in the checker's words: it sees cycles, and nodes that are
// out of order, where inference only sees a name that nothing has made.
void explain_undefined(const ir::Model& model, Inference& inference) {
  if (std::ranges::none_of(inference.findings, is_undefined_input)) return;
  constexpr std::string_view rules[] = {"D-08", "F-07", "G-02", "G-03", "G-04"};
  std::vector<InferFinding> explained;
  for (const check::Diagnostic& found : check::check(model)) {
    if (std::ranges::find(rules, found.rule) == std::end(rules)) continue;
    std::string message = found.message;
    if (!found.advice.empty()) message += "; " + found.advice;
    explained.push_back(
        {true, found.place.to_string(), fmt::format("{} [{}]", message, found.rule)});
  }
  if (explained.empty()) return;
  std::erase_if(inference.findings, is_undefined_input);
  inference.findings.insert(inference.findings.begin(), explained.begin(), explained.end());
}

// Infers the model and writes what is known into it.
Inference infer_into(ir::Model& model, const InferOptions& options,
                     const ops::CustomTable& custom) {
  const size_t own_functions = model.functions.size();
  add_operator_sets(model, read_operator_sets(options.operator_sets));
  InferredModel inferred;
  inferred.keep_nodes = false;
  infer_model(model, options, custom, inferred);
  Inference inference;
  report_written(inferred, options, model, inference);
  explain_undefined(model, inference);
  model.functions.erase(model.functions.begin() + static_cast<std::ptrdiff_t>(own_functions),
                        model.functions.end());
  return inference;
}

Inference infer_only(const ir::Model& model, const InferOptions& options,
                     const ops::CustomTable& custom) {
  InferredModel inferred;
  inferred.keep_nodes = false;
  infer_model(model, options, custom, inferred);
  Inference inference;
  report(inferred, options, *model.graph, inference);
  explain_undefined(model, inference);
  return inference;
}

// The main graph's nodes on their way from the file to inference, with a list of what they make.
class ListedNodes : public ir::NodeSource {
 public:
  ListedNodes(wire::StreamingReader& reader, std::vector<InferredValue>& values,
              InferredTexts& texts)
      : reader_(reader), values_(values), texts_(texts) {
    const std::vector<ir::ValueInfo>& inputs = reader.model.graph->inputs;
    texts_.charge((inputs.size() + reader.size()) * sizeof(InferredValue));
    values_.reserve(inputs.size() + reader.size());
    for (const ir::ValueInfo& input : inputs) values_.emplace_back().name = texts_.keep(input.name);
  }

  size_t size() const override { return reader_.size(); }
  ir::Node* next() override {
    ir::Node* node = reader_.next();
    if (node == nullptr) return nullptr;
    for (const std::string& name : node->outputs) {
      if (name.empty()) continue;
      if (values_.size() == values_.capacity())
        texts_.charge(values_.capacity() * sizeof(InferredValue));
      values_.emplace_back().name = texts_.keep(name);
    }
    if (has_graphs(*node)) keep(*node);
    return node;
  }
  // Those with subgraphs: what finds and names these.
  const std::vector<ir::Node>& holders() const { return holders_; }

 private:
  void keep(const ir::Node& node) {
    ir::Node& kept = holders_.emplace_back();
    kept.op_type = node.op_type;
    kept.domain = node.domain;
    kept.name = node.name;
    kept.outputs = node.outputs;
    for (const ir::Attribute& attribute : node.attributes) {
      if (ir::has_graphs(attribute)) kept.attributes.push_back(attribute);
    }
  }

  wire::StreamingReader& reader_;
  std::vector<InferredValue>& values_;
  InferredTexts& texts_;
  std::vector<ir::Node> holders_;
};

// Whether an attribute says nothing of types.
bool is_unread(std::string_view domain, std::string_view op_type, std::string_view attribute) {
  const ops::Operator* op = ops::find_operator(domain, op_type);
  if (op == nullptr || op->upgrade != nullptr || !op->infer_reads) return false;
  return std::ranges::find(*op->infer_reads, attribute) == op->infer_reads->end();
}

// Infers a file whose nodes are read one after another. Nullopt where that doesn't do: what
// has to be said of it then is said by reading all first.
std::optional<Inference> infer_in_passing(const MappedFile& file, const InferOptions& options) {
  if (form_of(file.path()) != ModelForm::binary || !options.operator_sets.empty())
    return std::nullopt;
  try {
    wire::StreamingReader reader(file);
    if (reader.model.functions.empty()) reader.leave_out(is_unread);
    Inference inference;
    InferredTexts texts;
    ListedNodes nodes(reader, inference.values, texts);
    InferredModel inferred;
    inferred.keep_nodes = false;
    infer_model(reader.model, nodes, options,
                custom_table(options.custom_operators.get(), options.libraries), inferred);
    report_listed(inferred, options, nodes.holders(), texts, inference);
    if (std::ranges::any_of(inference.findings, is_undefined_input)) return std::nullopt;
    return inference;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::filesystem::path folder_at(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(os::path(os::folder_of(path)), ignored);
}

}  // namespace

std::string InferredSize::text() const {
  return number >= 0 ? std::to_string(number) : std::string(expression);
}

std::string InferredValue::type() const {
  if (!other_type.empty() || !shape) return std::string(other_type);
  std::string text(name_of(element));
  char before = '[';
  for (const InferredSize& size : *shape) {
    text.append(1, before).append(size.text());
    before = ',';
  }
  if (shape->empty()) text += '[';
  return text += ']';
}

int64_t Inference::count(InferredValue::State state) const {
  return std::count_if(values.begin(), values.end(),
                       [&](const InferredValue& value) { return value.state == state; });
}

bool Inference::has_errors() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const InferFinding& finding) { return finding.is_error; });
}

namespace {

SharedAccount account_of(const InferOptions& options) {
  if (options.memory_limit == 0) return nullptr;
  return std::make_shared<MemoryAccount>(options.memory_limit, "InferOptions::memory_limit");
}

Inference types_of(const std::string& path, const InferOptions& options) {
  const MappedFile file(path);
  if (std::optional<Inference> inference = infer_in_passing(file, options))
    return std::move(*inference);
  ir::Model model = read_model_file(file);
  add_operator_sets(model, read_operator_sets(options.operator_sets));
  return infer_only(model, options,
                    custom_table(options.custom_operators.get(), options.libraries));
}

}  // namespace

Inference infer_types(const std::string& path, const InferOptions& options) {
  return within_limit(account_of(options), [&] {
    try {
      return types_of(path, options);
    } catch (MemoryLimitReached& reached) {
      reached.locate(path);
      throw;
    }
  });
}

Inference infer_types(const Model& model, const InferOptions& options) {
  return within_limit(account_of(options), [&] {
    return infer_only(model.implementation().model, options, model.implementation().custom);
  });
}

namespace {

// Sizes that are given become those of the inputs.
void declare_sizes(ir::Graph& graph, const InferOptions& options) {
  for (ir::ValueInfo& info : graph.inputs) {
    if (!info.type || !info.type->shape) continue;
    for (ir::Dimension& dim : info.type->shape->dims) {
      const auto found = options.sizes.find(ir::declared_name(dim));
      if (found == options.sizes.end()) continue;
      dim.value = found->second;
      dim.param.reset();
    }
  }
}

Inference write_inferred(const std::string& path, const std::string& output,
                         const InferOptions& options) {
  if (const std::string problem = ending_problem(output, path); !problem.empty())
    fail_at(output, ErrorCode::bad_input, "{}", problem);
  const MappedFile file(path);
  ir::Model model = read_model_file(file);
  if (wire::has_external_data(model) && folder_at(path) != folder_at(output)) {
    fail_at(output, ErrorCode::bad_input,
            "the model has external data beside it and can only be written to its own folder, {}",
            os::folder_of(path));
  }
  Inference inference =
      infer_into(model, options, custom_table(options.custom_operators.get(), options.libraries));
  declare_sizes(*model.graph, options);
  save_model(std::move(model), output, {}, &file);
  return inference;
}

// What can only be said by changing bytes of the file: declarations that know less.
int64_t count_left_out(const ir::Model& model, const ir::Model& typed) {
  const auto differ = [](const std::vector<ir::ValueInfo>& a, const std::vector<ir::ValueInfo>& b) {
    int64_t count = 0;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
      count += wire::write_value_info(a[i]) != wire::write_value_info(b[i]);
    return count;
  };
  return differ(model.graph->value_info, typed.graph->value_info) +
         differ(model.graph->outputs, typed.graph->outputs);
}

Inference add_inferred(const std::string& path, const InferOptions& options) {
  if (!options.sizes.empty()) {
    fail_at(path, ErrorCode::bad_input,
            "sizes for named dimensions change what the file declares; adding to it cannot");
  }
  if (form_of(path) != ModelForm::binary)
    fail_at(path, ErrorCode::unsupported, "only a file in the binary form can be added to");
  const MappedFile file(path, MappedFile::Access::append);
  if (wire::is_ort_model(file.bytes().text()))
    fail_at(path, ErrorCode::unsupported,
            "files in ONNX Runtime's own format are only read; write another file");
  const uint64_t size = file.bytes().size();
  const ir::Model model = read_model_file(file);
  const MemoryCharge copied(wire::memory_of(model));
  ir::Model typed = model;
  Inference inference =
      infer_into(typed, options, custom_table(options.custom_operators.get(), options.libraries));
  const size_t before = model.graph->value_info.size();
  const auto added = std::span<const ir::ValueInfo>(typed.graph->value_info).subspan(before);
  if (!added.empty() && !wire::can_append(size)) {
    wire::write_model(typed, path, &file);
    return inference;
  }
  const size_t written = wire::append_value_info(file.descriptor(), path, size, added);
  const int64_t left = count_left_out(model, typed) + static_cast<int64_t>(added.size() - written);
  if (left > 0) {
    inference.findings.push_back(
        {false, path,
         fmt::format("{} values are declared already with less than was inferred; adding to the "
                     "file cannot change that, writing it anew (-o) does",
                     left)});
  }
  return inference;
}

}  // namespace

Model with_inferred_types(const Model& model, const InferOptions& options, Inference* inference) {
  const Model::Implementation& given = model.implementation();
  return within_limit(account_of(options), [&] {
    charge_memory(wire::memory_of(given.model));
    ir::Model typed = given.model;
    if (!typed.graph) fail_at(typed.path, ErrorCode::invalid_model, "the model has no graph");
    Inference made = infer_into(typed, options, given.custom);
    declare_sizes(*typed.graph, options);
    if (inference != nullptr) *inference = std::move(made);
    return ModelMaker::derive_same_weights(model, std::move(typed));
  });
}

Inference infer_file(const std::string& path, const std::string& output,
                     const InferOptions& options) {
  return within_limit(account_of(options), [&] { return write_inferred(path, output, options); });
}

Inference infer_in_place(const std::string& path, const InferOptions& options) {
  return within_limit(account_of(options), [&] { return add_inferred(path, options); });
}

}  // namespace sardonyx
