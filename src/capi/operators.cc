// Operators whose functions are C's.
#include "capi/handles.h"
#include "sardonyx/custom.h"

using namespace sardonyx;
using namespace sardonyx::capi;

// What a context gives lasts as long as it: texts and lists that the node hands out by value.
struct sardonyx_operator_node {
  SARDONYX_TAG('o', 'n');
  const CustomNode& node;
  mutable std::vector<std::shared_ptr<const void>> kept;

  template <class T>
  const T& keep(T value) const {
    auto held = std::make_shared<const T>(std::move(value));
    kept.push_back(held);
    return *held;
  }
};

struct sardonyx_shape_context {
  SARDONYX_TAG('s', 'c');
  ShapeInferenceContext& context;
  sardonyx_operator_node node;
};

struct sardonyx_kernel_builder {
  SARDONYX_TAG('k', 'b');
  KernelBuilder& context;
  sardonyx_operator_node node;
};

struct sardonyx_kernel_shapes {
  SARDONYX_TAG('k', 's');
  const CustomShapes& shapes;
  int inputs, outputs;  // of the node
};

struct sardonyx_kernel_context {
  SARDONYX_TAG('k', 'c');
  KernelContext& run;
  int inputs, outputs;  // of the node
};

namespace {

int place(size_t index, int count, const char* what) {
  if (index >= static_cast<size_t>(count))
    fail(ErrorCode::bad_input, "there is no {} {}: the node has {}", what, index, count);
  return static_cast<int>(index);
}

sardonyx_tensor_view view_of(const CustomTensor& tensor) {
  sardonyx_tensor_view view{};
  view.type = static_cast<sardonyx_element_type>(tensor.type);
  view.rank = tensor.shape.size();
  view.dims = tensor.shape.data();
  view.data = tensor.type == ElementType::string ? nullptr : tensor.data;
  view.elements = tensor.count;
  return view;
}

// The strings of a tensor that has this element.
std::span<std::string> strings_of(const CustomTensor& tensor, size_t element) {
  if (tensor.type != ElementType::string)
    fail(ErrorCode::bad_input, "the elements are {}, not strings", name_of(tensor.type));
  if (element >= static_cast<size_t>(tensor.count))
    fail(ErrorCode::bad_input, "there is no element {} of {}", element, tensor.count);
  return tensor.mutable_elements<std::string>();
}

SymbolicDim size_of(const sardonyx_shape_context& context, sardonyx_dim dim) {
  if (dim.expression == nullptr) return {dim.value};
  if (dim.expression != &context.context)
    fail(ErrorCode::bad_input, "the dimension is of another node's inference");
  return {&context.context, dim.value};
}

sardonyx_dim dim_of(const SymbolicDim& size) { return {size.context(), size.value()}; }

// A failure of one of C's functions ends the stage, which adds the node's place.
void hand_on(sardonyx_status* status) {
  if (status != nullptr) throw error_of(status);
}

// The functions, and the user's part of them.
struct Functions {
  sardonyx_operator of;
  bool is_owner = false;  // set when nothing can fail any more

  explicit Functions(const sardonyx_operator& functions) : of(functions) {}
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;
  ~Functions() {
    if (is_owner && of.release_user != nullptr) of.release_user(of.user);
  }
};

class Kernel final : public CustomKernel {
 public:
  Kernel(std::shared_ptr<const Functions> functions, int inputs, int outputs)
      : functions_(std::move(functions)), inputs_(inputs), outputs_(outputs) {}
  ~Kernel() override {
    const sardonyx_operator& of = functions_->of;
    if (kernel_ != nullptr && of.release_kernel != nullptr) of.release_kernel(kernel_, of.user);
  }

  void prepare(KernelBuilder& context) {
    const sardonyx_operator& of = functions_->of;
    if (of.prepare == nullptr) return;
    sardonyx_kernel_builder builder{{}, context, {{}, context, {}}};
    hand_on(of.prepare(&builder, of.user, &kernel_));
  }

  int64_t scratch_bytes(const CustomShapes& shapes) const override {
    const sardonyx_operator& of = functions_->of;
    if (of.scratch_bytes == nullptr) return 0;
    const sardonyx_kernel_shapes handle{{}, shapes, inputs_, outputs_};
    return of.scratch_bytes(&handle, kernel_, of.user);
  }

  void run(KernelContext& run) const override {
    const sardonyx_operator& of = functions_->of;
    sardonyx_kernel_context context{{}, run, inputs_, outputs_};
    hand_on(of.run(&context, kernel_, of.user));
  }

 private:
  std::shared_ptr<const Functions> functions_;
  int inputs_, outputs_;
  void* kernel_ = nullptr;
};

class Operator final : public CustomOperator {
 public:
  explicit Operator(std::shared_ptr<const Functions> functions)
      : functions_(std::move(functions)) {}

  void infer(ShapeInferenceContext& context) const override {
    sardonyx_shape_context shapes{{}, context, {{}, context, {}}};
    hand_on(functions_->of.infer(&shapes, functions_->of.user));
  }
  std::unique_ptr<CustomKernel> prepare(KernelBuilder& context) const override {
    auto kernel =
        std::make_unique<Kernel>(functions_, context.input_count(), context.output_count());
    kernel->prepare(context);
    return kernel;
  }

 private:
  std::shared_ptr<const Functions> functions_;
};

}  // namespace

sardonyx_status* sardonyx_operators_create(sardonyx_operators** operators) {
  return guarded([&] {
    required(operators, "operators");
    *operators = new sardonyx_operators{{}, std::make_shared<CustomOperators>()};
  });
}

void sardonyx_operators_release(sardonyx_operators* operators) { release_handle(operators); }

sardonyx_status* sardonyx_operators_add(sardonyx_operators* operators, const char* domain,
                                        const char* signature, const sardonyx_operator* functions) {
  return guarded([&] {
    required(operators, "operators");
    required(functions, "functions");
    const auto known = std::make_shared<Functions>(known_part(functions));
    if (known->of.infer == nullptr || known->of.run == nullptr)
      fail(ErrorCode::bad_input, "an operator has the functions 'infer' and 'run'; one is NULL");
    operators->operators->add(&required(domain, "domain"), &required(signature, "signature"),
                              std::make_shared<Operator>(known));
    known->is_owner = true;
  });
}

sardonyx_status* sardonyx_operators_load(sardonyx_operators* operators, const char* path) {
  return guarded(
      [&] { required(operators, "operators").operators->load(&required(path, "path")); });
}

sardonyx_status* sardonyx_operator_node_counts(const sardonyx_operator_node* node, size_t* inputs,
                                               size_t* outputs, int32_t* since) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    if (inputs != nullptr) *inputs = static_cast<size_t>(of.input_count());
    if (outputs != nullptr) *outputs = static_cast<size_t>(of.output_count());
    if (since != nullptr) *since = of.since();
  });
}

sardonyx_status* sardonyx_operator_node_input(const sardonyx_operator_node* node, size_t index,
                                              int* present, sardonyx_element_type* type,
                                              int64_t* rank) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    const int i = place(index, of.input_count(), "input");
    const bool is_there = of.has_input(i);
    if (present != nullptr) *present = is_there ? 1 : 0;
    if (type != nullptr)
      *type = is_there ? static_cast<sardonyx_element_type>(of.element(i)) : SARDONYX_UNDEFINED;
    if (rank != nullptr) *rank = is_there ? of.rank(i).value_or(-1) : -1;
  });
}

sardonyx_status* sardonyx_operator_node_output(const sardonyx_operator_node* node, size_t index,
                                               int* present) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    const int i = place(index, of.output_count(), "output");
    required(present, "present") = of.has_output(i) ? 1 : 0;
  });
}

sardonyx_status* sardonyx_operator_node_constant(const sardonyx_operator_node* node, size_t index,
                                                 sardonyx_tensor_view* constant) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    const int i = place(index, of.input_count(), "input");
    fill(constant, "constant", view_of(of.has_input(i) ? of.constant(i) : CustomTensor()));
  });
}

sardonyx_status* sardonyx_operator_node_constant_string(const sardonyx_operator_node* node,
                                                        size_t index, size_t element,
                                                        const char** text, size_t* length) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    const int i = place(index, of.input_count(), "input");
    required(text, "text");
    const CustomTensor constant = of.has_input(i) ? of.constant(i) : CustomTensor();
    if (constant.type == ElementType::undefined)
      fail(ErrorCode::bad_input, "the elements of input {} are not known before the run", index);
    const std::string& found = strings_of(constant, element)[element];
    *text = found.c_str();
    if (length != nullptr) *length = found.size();
  });
}

sardonyx_status* sardonyx_operator_node_int(const sardonyx_operator_node* node, const char* name,
                                            int64_t* value) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    required(value, "value") = of.attribute_int(&required(name, "name"));
  });
}

sardonyx_status* sardonyx_operator_node_float(const sardonyx_operator_node* node, const char* name,
                                              float* value) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    required(value, "value") = of.attribute_float(&required(name, "name"));
  });
}

sardonyx_status* sardonyx_operator_node_string(const sardonyx_operator_node* node, const char* name,
                                               const char** text, size_t* length) {
  return guarded([&] {
    const sardonyx_operator_node& of = required(node, "node");
    required(text, "text");
    const std::string& kept = of.keep(of.node.attribute_string(&required(name, "name")));
    *text = kept.c_str();
    if (length != nullptr) *length = kept.size();
  });
}

sardonyx_status* sardonyx_operator_node_ints(const sardonyx_operator_node* node, const char* name,
                                             const int64_t** values, size_t* count) {
  return guarded([&] {
    const sardonyx_operator_node& of = required(node, "node");
    required(values, "values");
    required(count, "count");
    const auto& kept = of.keep(of.node.attribute_ints(&required(name, "name")));
    *values = kept.data();
    *count = kept.size();
  });
}

sardonyx_status* sardonyx_operator_node_floats(const sardonyx_operator_node* node, const char* name,
                                               const float** values, size_t* count) {
  return guarded([&] {
    const sardonyx_operator_node& of = required(node, "node");
    required(values, "values");
    required(count, "count");
    const auto& kept = of.keep(of.node.attribute_floats(&required(name, "name")));
    *values = kept.data();
    *count = kept.size();
  });
}

sardonyx_status* sardonyx_operator_node_tensor(const sardonyx_operator_node* node, const char* name,
                                               sardonyx_tensor_view* tensor) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    fill(tensor, "tensor", view_of(of.attribute_tensor(&required(name, "name"))));
  });
}

sardonyx_status* sardonyx_operator_node_strings(const sardonyx_operator_node* node,
                                                const char* name, const char* const** texts,
                                                const size_t** lengths, size_t* count) {
  return guarded([&] {
    const sardonyx_operator_node& of = required(node, "node");
    required(texts, "texts");
    required(count, "count");
    const auto& strings = of.keep(of.node.attribute_strings(&required(name, "name")));
    std::vector<const char*> pointers;
    std::vector<size_t> sizes;
    for (const std::string& one : strings) {
      pointers.push_back(one.c_str());
      sizes.push_back(one.size());
    }
    *count = strings.size();
    *texts = of.keep(std::move(pointers)).data();
    if (lengths != nullptr) *lengths = of.keep(std::move(sizes)).data();
  });
}

sardonyx_status* sardonyx_operator_node_tensor_string(const sardonyx_operator_node* node,
                                                      const char* name, size_t element,
                                                      const char** text, size_t* length) {
  return guarded([&] {
    const CustomNode& of = required(node, "node").node;
    const CustomTensor tensor = of.attribute_tensor(&required(name, "name"));
    required(text, "text");
    const std::string& found = strings_of(tensor, element)[element];
    *text = found.c_str();
    if (length != nullptr) *length = found.size();
  });
}

int sardonyx_operator_node_has(const sardonyx_operator_node* node, const char* name) {
  return is_usable(node) && name != nullptr && node->node.has_attribute(name) ? 1 : 0;
}

const sardonyx_operator_node* sardonyx_shape_node(const sardonyx_shape_context* of) {
  return !is_usable(of) ? nullptr : &of->node;
}

sardonyx_status* sardonyx_shape_input(sardonyx_shape_context* context, size_t input, size_t axis,
                                      sardonyx_dim* dim) {
  return guarded([&] {
    ShapeInferenceContext& of = required(context, "context").context;
    const int i = place(input, of.input_count(), "input");
    const auto rank = of.has_input(i) ? of.rank(i) : std::nullopt;
    if (!rank) fail(ErrorCode::bad_input, "the rank of input {} is not known", input);
    if (axis >= static_cast<size_t>(*rank))
      fail(ErrorCode::bad_input, "input {} has {} dimensions, and none is number {}", input, *rank,
           axis);
    required(dim, "dim") = dim_of(of.size(i, static_cast<int64_t>(axis)));
  });
}

sardonyx_status* sardonyx_shape_combine(sardonyx_shape_context* context, char operation,
                                        sardonyx_dim a, sardonyx_dim b, sardonyx_dim* dim) {
  return guarded([&] {
    const sardonyx_shape_context& of = required(context, "context");
    const SymbolicDim left = size_of(of, a), right = size_of(of, b);
    const auto combined = [&]() -> SymbolicDim {
      switch (operation) {
        case '+': return left + right;
        case '-': return left - right;
        case '*': return left * right;
        case '/': return floor_div(left, right);
        case '^': return ceil_div(left, right);
        case '<': return min(left, right);
        case '>': return max(left, right);
        default: fail(ErrorCode::bad_input, "'{}' is no operation on dimensions", operation);
      }
    };
    required(dim, "dim");
    try {
      *dim = dim_of(combined());
    } catch (const std::domain_error& error) {
      fail(ErrorCode::invalid_model, "{}", error.what());
    } catch (const std::overflow_error& error) {
      fail(ErrorCode::invalid_model, "{}", error.what());
    }
  });
}

sardonyx_status* sardonyx_shape_broadcast(sardonyx_shape_context* context, sardonyx_dim a,
                                          sardonyx_dim b, sardonyx_dim* dim) {
  return guarded([&] {
    const sardonyx_shape_context& of = required(context, "context");
    required(dim, "dim") = dim_of(of.context.broadcast(size_of(of, a), size_of(of, b)));
  });
}

sardonyx_status* sardonyx_shape_unknown(sardonyx_shape_context* context, const sardonyx_dim* bound,
                                        sardonyx_dim* dim) {
  return guarded([&] {
    const sardonyx_shape_context& of = required(context, "context");
    required(dim, "dim") =
        dim_of(bound != nullptr ? of.context.unknown(size_of(of, *bound)) : of.context.unknown());
  });
}

sardonyx_status* sardonyx_shape_require_equal(sardonyx_shape_context* context, sardonyx_dim a,
                                              sardonyx_dim b, const char* rule) {
  return guarded([&] {
    const sardonyx_shape_context& of = required(context, "context");
    of.context.require_equal(size_of(of, a), size_of(of, b), &required(rule, "rule"));
  });
}

sardonyx_status* sardonyx_shape_set_output(sardonyx_shape_context* context, size_t output,
                                           sardonyx_element_type type, size_t rank,
                                           const sardonyx_dim* dims) {
  return guarded([&] {
    const sardonyx_shape_context& of = required(context, "context");
    const int i = place(output, of.context.output_count(), "output");
    if (rank > 0) required(dims, "dims");
    std::vector<SymbolicDim> shape;
    for (size_t d = 0; d < rank; ++d) shape.push_back(size_of(of, dims[d]));
    of.context.set_output(i, static_cast<ElementType>(type), shape);
  });
}

sardonyx_status* sardonyx_shape_set_any_rank(sardonyx_shape_context* context, size_t output,
                                             sardonyx_element_type type) {
  return guarded([&] {
    ShapeInferenceContext& of = required(context, "context").context;
    of.set_output_of_any_rank(place(output, of.output_count(), "output"),
                              static_cast<ElementType>(type));
  });
}

sardonyx_status* sardonyx_shape_set_like(sardonyx_shape_context* context, size_t output,
                                         size_t input) {
  return guarded([&] {
    ShapeInferenceContext& of = required(context, "context").context;
    of.set_output_like(place(output, of.output_count(), "output"),
                       place(input, of.input_count(), "input"));
  });
}

const sardonyx_operator_node* sardonyx_builder_node(const sardonyx_kernel_builder* of) {
  return !is_usable(of) ? nullptr : &of->node;
}

sardonyx_status* sardonyx_builder_may_share(sardonyx_kernel_builder* builder, size_t output,
                                            size_t input) {
  return guarded([&] {
    KernelBuilder& of = required(builder, "builder").context;
    of.may_share(place(output, of.output_count(), "output"),
                 place(input, of.input_count(), "input"));
  });
}

sardonyx_status* sardonyx_builder_allocates_outputs(sardonyx_kernel_builder* builder) {
  return guarded([&] { required(builder, "builder").context.allocates_outputs(); });
}

sardonyx_status* sardonyx_builder_does_not_read(sardonyx_kernel_builder* builder, size_t input) {
  return guarded([&] {
    KernelBuilder& of = required(builder, "builder").context;
    of.does_not_read(place(input, of.input_count(), "input"));
  });
}

sardonyx_status* sardonyx_kernel_shape(const sardonyx_kernel_shapes* shapes, int output,
                                       size_t index, size_t* rank, const int64_t** dims) {
  return guarded([&] {
    const sardonyx_kernel_shapes& handle = required(shapes, "shapes");
    const CustomShapes& of = handle.shapes;
    const int i =
        output != 0 ? place(index, handle.outputs, "output") : place(index, handle.inputs, "input");
    if (output != 0 ? !of.has_output(i) : !of.has_input(i))
      fail(ErrorCode::bad_input, "the node has no {} {}", output != 0 ? "output" : "input", index);
    const std::span<const int64_t> shape = output != 0 ? of.output_shape(i) : of.input_shape(i);
    if (rank != nullptr) *rank = shape.size();
    if (dims != nullptr) *dims = shape.data();
  });
}

sardonyx_status* sardonyx_kernel_input(const sardonyx_kernel_context* context, size_t index,
                                       sardonyx_tensor_view* input) {
  return guarded([&] {
    const sardonyx_kernel_context& of = required(context, "context");
    const int i = place(index, of.inputs, "input");
    fill(input, "input", view_of(of.run.has_input(i) ? of.run.input(i) : CustomTensor()));
  });
}

sardonyx_status* sardonyx_kernel_output(const sardonyx_kernel_context* context, size_t index,
                                        sardonyx_tensor_view* output) {
  return guarded([&] {
    const sardonyx_kernel_context& of = required(context, "context");
    const int i = place(index, of.outputs, "output");
    fill(output, "output", view_of(of.run.has_output(i) ? of.run.output(i) : CustomTensor()));
  });
}

sardonyx_status* sardonyx_kernel_allocate(sardonyx_kernel_context* context, size_t output,
                                          size_t rank, const int64_t* dims,
                                          sardonyx_tensor_view* made) {
  return guarded([&] {
    const sardonyx_kernel_context& of = required(context, "context");
    required(made, "made");
    fill(made, "made",
         view_of(of.run.allocate(place(output, of.outputs, "output"), shape_of(rank, dims))));
  });
}

sardonyx_status* sardonyx_kernel_string(const sardonyx_kernel_context* context, size_t input,
                                        size_t element, const char** text, size_t* length) {
  return guarded([&] {
    const sardonyx_kernel_context& of = required(context, "context");
    const int i = place(input, of.inputs, "input");
    required(text, "text");
    const CustomTensor tensor = of.run.has_input(i) ? of.run.input(i) : CustomTensor();
    const std::string& found = strings_of(tensor, element)[element];
    *text = found.c_str();
    if (length != nullptr) *length = found.size();
  });
}

sardonyx_status* sardonyx_kernel_set_string(sardonyx_kernel_context* context, size_t output,
                                            size_t element, const char* text, size_t length) {
  return guarded([&] {
    const sardonyx_kernel_context& of = required(context, "context");
    const int i = place(output, of.outputs, "output");
    if (length > 0) required(text, "text");
    const CustomTensor tensor = of.run.has_output(i) ? of.run.output(i) : CustomTensor();
    strings_of(tensor, element)[element].assign(length > 0 ? text : "", length);
  });
}

void* sardonyx_kernel_scratch(const sardonyx_kernel_context* context) {
  return !is_usable(context) ? nullptr : context->run.scratch();
}

sardonyx_status* sardonyx_kernel_parallel_for(const sardonyx_kernel_context* context, int64_t count,
                                              int64_t grain,
                                              void (*body)(void* user, int64_t begin, int64_t end),
                                              void* user) {
  return guarded([&] {
    const sardonyx_kernel_context& of = required(context, "context");
    if (body == nullptr) fail(ErrorCode::bad_input, "the argument 'body' is NULL");
    of.run.parallel_for(count, grain, [&](int64_t begin, int64_t end) { body(user, begin, end); });
  });
}

int sardonyx_kernel_is_cancelled(const sardonyx_kernel_context* context) {
  return is_usable(context) && context->run.is_cancelled() ? 1 : 0;
}
