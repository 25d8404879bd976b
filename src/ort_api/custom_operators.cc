// Operators of the caller's: how options come to have them, and how models do.
#include <algorithm>
#include <set>

#include "base/os.h"
#include "ort_api/overloads.h"

namespace sardonyx::ort_api {

namespace {

// --- Kernels and shapes ---------------------------------------------------------------------

// What an operator of the caller's has made for a node.
class CallersKernel {
 public:
  CallersKernel(const Overload& overload, std::shared_ptr<KernelNode> node)
      : overload_(overload), op_(*overload.functions), info_{std::move(node)} {
    if (op_.version >= 16 && op_.CreateKernelV2 != nullptr) {
      throw_status(op_.CreateKernelV2(&op_, served_table(), &info_, &kernel_));
    } else {
      kernel_ = op_.CreateKernel(&op_, served_table(), &info_);
    }
    info_.node->builder = nullptr;
  }
  CallersKernel(const CallersKernel&) = delete;
  CallersKernel& operator=(const CallersKernel&) = delete;
  ~CallersKernel() { op_.KernelDestroy(kernel_); }

  bool is_of(const Overload& overload) const { return &overload == &overload_; }
  const KernelNode& node() const { return *info_.node; }

  void run(KernelContext& run) const {
    OrtKernelContext context(run, *info_.node);
    try {
      if (op_.version >= 16 && op_.KernelComputeV2 != nullptr) {
        throw_status(op_.KernelComputeV2(kernel_, &context));
      } else {
        op_.KernelCompute(kernel_, &context);
      }
    } catch (const Failure& failure) {
      throw Error(error_code_of(failure.code), failure.message);
    }
    context.finish();
  }

 private:
  const Overload& overload_;
  const OrtCustomOp& op_;
  OrtKernelInfo info_;
  void* kernel_ = nullptr;
};

class PreparedNode final : public CustomKernel {
 public:
  explicit PreparedNode(std::shared_ptr<const CallersKernel> kernel) : kernel_(std::move(kernel)) {}
  std::string name() const override { return "custom." + kernel_->node().type; }
  void run(KernelContext& run) const override { kernel_->run(run); }

 private:
  std::shared_ptr<const CallersKernel> kernel_;
};

// All operators of one name and domain.
class CallersOperator final : public CustomOperator {
 public:
  std::string domain, name;
  std::vector<Overload> overloads;
  AttributeTypes attributes;  // that nodes of the model have
  ConfigEntries config;
  OrtLogger logger;
  std::vector<LoadedLibrary> libraries;  // that their code may be in

  void infer(ShapeInferenceContext& context) const override {
    for (int i = 0; i < context.input_count(); ++i) {
      if (context.has_input(i) && context.element(i) == ElementType::undefined) return;
    }
    try {
      infer_by(choose(overloads, context), context);
    } catch (const Failure& failure) {
      fail_node(context, ErrorCode::invalid_model, failure.message);
    }
  }

  bool prepares_without_ranks() const override { return true; }

  // A kernel is made once for a node: it may hold what takes long to load, or state.
  std::unique_ptr<CustomKernel> prepare(KernelBuilder& builder) const override {
    const Overload& overload = choose(overloads, builder);
    builder.allocates_outputs();
    auto kernel = std::static_pointer_cast<const CallersKernel>(
        builder.once([&]() -> std::shared_ptr<void> { return made_kernel(overload, builder); }));
    // Where types are open, other ones may have come first.
    if (!kernel->is_of(overload)) kernel = made_kernel(overload, builder);
    return std::make_unique<PreparedNode>(std::move(kernel));
  }

 private:
  std::shared_ptr<CallersKernel> made_kernel(const Overload& overload,
                                             const KernelBuilder& builder) const {
    const auto node = std::make_shared<KernelNode>(builder, attributes);
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      KernelNode::Place& output = node->outputs[i];
      // Of a list, those that nobody uses have lost their names.
      const auto kind = Overload::place_of(overload.outputs, static_cast<int>(i)).kind;
      output.is_there |= kind != INPUT_OUTPUT_OPTIONAL;
      if (output.is_there && output.type == ElementType::undefined)
        output.type = output_type(overload, builder, static_cast<int>(i), std::nullopt);
    }
    node->domain = domain;
    node->type = name;
    node->config = config;
    node->logger = logger;
    std::string problem;
    try {
      return std::make_shared<CallersKernel>(overload, node);
    } catch (const Failure& failure) {
      problem = failure.message;
    } catch (const std::exception& thrown) {
      problem = thrown.what();
    }
    node->builder = nullptr;
    fail_node(builder, ErrorCode::run_failed, problem);
  }

  void infer_by(const Overload& overload, ShapeInferenceContext& context) const {
    OrtShapeInferContext shapes(context, attributes);
    if (overload.has(17) && overload.functions->InferOutputShapeFn != nullptr) {
      // What it could not infer stays open.
      OrtStatus* const status = overload.functions->InferOutputShapeFn(overload.functions, &shapes);
      served_table()->ReleaseStatus(status);
    }
    const bool can_rely = shapes.knows_all_ranks();
    for (int i = 0; i < context.output_count(); ++i) {
      if (!context.has_output(i)) continue;
      const auto& set = shapes.outputs[static_cast<size_t>(i)];
      const ElementType type = output_type(overload, context, i, set);
      if (set && can_rely) {
        context.set_output(i, type, shapes.sizes_of(*set, overload.says_sizes()));
      } else {
        context.set_output_of_any_rank(i, type);
      }
    }
  }

  // What the operator says, then what its inference has set, then the type of the input that may be
  // of any type.
  ElementType output_type(const Overload& overload, const CustomNode& node, int output,
                          const std::optional<OrtTensorTypeAndShapeInfo>& set) const {
    const ElementType said = Overload::place_of(overload.outputs, output).type;
    if (said != ElementType::undefined) return said;
    if (set && set->type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
      return element_type_of(set->type);
    for (int i = 0; i < node.input_count(); ++i) {
      if (node.has_input(i) &&
          Overload::place_of(overload.inputs, i).type == ElementType::undefined)
        return node.element(i);
    }
    fail_node(node, ErrorCode::invalid_model,
              fmt::format("output {} may be of any type, and neither an input nor the operator's "
                          "inference says which",
                          output));
  }
};

// --- The operators of one model -------------------------------------------------------------

using OperatorName = std::pair<std::string, std::string>;  // domain, name

// The attributes that nodes of each of these operators have.
std::map<OperatorName, AttributeTypes> attributes_in(const Model& model,
                                                     const std::set<OperatorName>& names) {
  std::map<OperatorName, AttributeTypes> found;
  model.for_each_node([&](const NodePlace&, const NodeView& node) {
    OperatorName name(node.domain(), node.op_type());
    if (!names.contains(name)) return true;
    AttributeTypes& types = found[std::move(name)];
    for (const AttributeView& attribute : node.attributes())
      types.emplace(attribute.name(), attribute.type());
    return true;
  });
  return found;
}

// For other devices there are no kernels: an operator may have some for several.
bool is_for_the_processor(const OrtCustomOp& op) {
  const char* const provider = op.GetExecutionProviderType(&op);
  return provider == nullptr || std::string_view(provider) == "CPUExecutionProvider";
}

// --- Options --------------------------------------------------------------------------------

OrtStatus* CreateCustomOpDomain(const char* name, OrtCustomOpDomain** out) {
  return guarded([&] { give(out, "out", new OrtCustomOpDomain{text_of(name, "domain")}); });
}
void ReleaseCustomOpDomain(OrtCustomOpDomain* domain) { delete domain; }

OrtStatus* CustomOpDomain_Add(OrtCustomOpDomain* domain, const OrtCustomOp* op) {
  return guarded(
      [&] { required(domain, "custom_op_domain").operators->push_back(&required(op, "op")); });
}
OrtStatus* AddCustomOpDomain(OrtSessionOptions* options, OrtCustomOpDomain* domain) {
  return guarded([&] {
    required(options, "options").domains.push_back(required(domain, "custom_op_domain"));
  });
}

using RegisterOperators = OrtStatus*(OrtSessionOptions* options, const OrtApiBase* base);

void register_operators(OrtSessionOptions& options, void* function) {
  throw_status(reinterpret_cast<RegisterOperators*>(function)(&options, served_base()));
}

// Loads a library and adds its operators, of either interface. Without `handle` it stays loaded as
// long as what was made with it.
void register_library(OrtSessionOptions& options, const std::string& path, void** handle) {
  std::string problem;
  void* const library = os::load_library(path, problem);
  if (library == nullptr) refuse(ORT_FAIL, "the library {} can't be loaded: {}", path, problem);
  LoadedLibrary held;
  if (handle != nullptr) {
    *handle = library;
  } else {
    held = LoadedLibrary(library, os::unload_library);
  }
  void* const function = os::find_symbol(library, "RegisterCustomOps");
  if (function != nullptr) {
    if (held != nullptr) options.libraries.push_back(held);
    return register_operators(options, function);
  }
  if (os::find_symbol(library, "sardonyx_add_operators") == nullptr)
    refuse(ORT_FAIL, "{} is no library of operators: it exports no RegisterCustomOps", path);
  options.sardonyx_libraries.push_back(path);
}

OrtStatus* RegisterCustomOpsLibrary(OrtSessionOptions* options, const char* path, void** handle) {
  return guarded([&] {
    required(handle, "library_handle") = nullptr;
    register_library(required(options, "options"), text_of(path, "library_path"), handle);
  });
}
OrtStatus* RegisterCustomOpsLibrary_V2(OrtSessionOptions* options, const PathChar* path) {
  return guarded([&] {
    register_library(required(options, "options"), path_of(path, "library_name"), nullptr);
  });
}
OrtStatus* RegisterCustomOpsUsingFunction(OrtSessionOptions* options, const char* name) {
  return guarded([&] {
    required(options, "options");
    // No library: the program itself and what it is linked with.
    void* const function =
        os::find_symbol(nullptr, text_of(name, "registration_func_name").c_str());
    if (function == nullptr)
      refuse(ORT_FAIL, "neither the program nor a library it is linked with exports {}", name);
    register_operators(*options, function);
  });
}
OrtStatus* EnableOrtCustomOps(OrtSessionOptions* options) {
  return guarded([&] {
    required(options, "options");
    refuse(
        ORT_FAIL,
        "the operators of onnxruntime-extensions are not part of Sardonyx; give the path of that "
        "library to RegisterCustomOpsLibrary_V2()");
  });
}

}  // namespace

std::shared_ptr<CustomOperators> operators_for(const Model& model, const OrtSessionOptions& options,
                                               const OrtLogger& logger) {
  std::map<OperatorName, std::vector<const OrtCustomOp*>> given;
  std::set<OperatorName> names;
  for (const OrtCustomOpDomain& domain : options.domains) {
    for (const OrtCustomOp* op : *domain.operators) {
      OperatorName name(domain.name, text_of(op->GetName(op), "the name of an operator"));
      names.insert(name);
      if (is_for_the_processor(*op)) given[std::move(name)].push_back(op);
    }
  }
  if (names.empty()) return nullptr;
  auto operators = std::make_shared<CustomOperators>();
  for (const auto& [name, attributes] : attributes_in(model, names)) {
    const auto found = given.find(name);
    if (found == given.end())
      refuse(ORT_NOT_IMPLEMENTED,
             "the program's operator {}.{} is for other devices than the processor", name.first,
             name.second);
    auto made = std::make_shared<CallersOperator>();
    made->domain = name.first;
    made->name = name.second;
    for (const OrtCustomOp* op : found->second) made->overloads.emplace_back(*op);
    made->attributes = attributes;
    made->config = options.config;
    made->logger = logger;
    made->libraries = options.libraries;
    operators->add(name.first, signature_of(name.second, made->overloads, attributes), made);
  }
  return operators;
}

void add_custom_operators(OrtApi& table) {
  table.CreateCustomOpDomain = CreateCustomOpDomain;
  table.ReleaseCustomOpDomain = ReleaseCustomOpDomain;
  table.CustomOpDomain_Add = CustomOpDomain_Add;
  table.AddCustomOpDomain = AddCustomOpDomain;
  table.RegisterCustomOpsLibrary = RegisterCustomOpsLibrary;
  table.RegisterCustomOpsLibrary_V2 = RegisterCustomOpsLibrary_V2;
  table.RegisterCustomOpsUsingFunction = RegisterCustomOpsUsingFunction;
  table.EnableOrtCustomOps = EnableOrtCustomOps;
}

}  // namespace sardonyx::ort_api
