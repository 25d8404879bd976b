// OpenVINO through its C interface: the hint for latency, one stream, arithmetic in float32.
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "../openvino_c_api.h"
#include "engine.h"
#include "sardonyx/files.h"
#include "steps.h"

namespace driver {
namespace {

using sardonyx::ElementType;
using sardonyx::NamedValue;
using sardonyx::Shape;
using sardonyx::Tensor;
using sardonyx::Value;

// OpenVINO's number of each type that the benchmarks have.
constexpr std::array<std::pair<int, ElementType>, 13> types{{
    {1, ElementType::boolean},
    {2, ElementType::bfloat16},
    {3, ElementType::float16},
    {4, ElementType::float32},
    {5, ElementType::float64},
    {7, ElementType::int8},
    {8, ElementType::int16},
    {9, ElementType::int32},
    {10, ElementType::int64},
    {16, ElementType::uint8},
    {17, ElementType::uint16},
    {18, ElementType::uint32},
    {19, ElementType::uint64},
}};

class OpenvinoEngine final : public Engine {
 public:
  explicit OpenvinoEngine(const std::string& path) : ov_(path) {
    ov_.require(ov_.create_core(&core_));
  }
  ~OpenvinoEngine() override {
    forget();
    ov_.free_core(core_);
  }

  std::string version() const override {
    openvino::Version found;
    ov_.require(ov_.get_version(&found));
    const std::string build = found.build;  // "2026.4.1-22982-…"
    ov_.free_version(&found);
    return build.substr(0, build.find('-'));
  }

  void load(const std::string& path, int threads) override {
    forget();
    openvino::Model* model = nullptr;
    ov_.require(ov_.read_model(core_, path.c_str(), nullptr, &model));
    const std::string count = std::to_string(threads);
    const int code = ov_.compile_model(core_, model, "CPU", 8, &compiled_, "PERFORMANCE_HINT",
                                       "LATENCY", "NUM_STREAMS", "1", "INFERENCE_NUM_THREADS",
                                       count.c_str(), "INFERENCE_PRECISION_HINT", "f32");
    ov_.free_model(model);
    ov_.require(code);
    ov_.require(ov_.create_request(compiled_, &request_));
  }

  void set_inputs(const std::string& npz) override {
    if (request_ == nullptr) throw std::runtime_error("no model is loaded");
    forget_inputs();
    for (auto& [name, value] : sardonyx::read_npz(npz)) {
      tensors_.push_back(value.tensor());
      names_.push_back(name);
      inputs_.push_back(wrap(tensors_.back()));
      ov_.require(ov_.set_tensor(request_, name.c_str(), inputs_.back()));
    }
  }

  // Two requests take turns: a request writes its outputs where they lie, which its inputs must
  // not.
  size_t carry_on(int steps) override {
    std::vector<NamedValue> inputs;
    for (size_t i = 0; i < names_.size(); ++i) inputs.emplace_back(names_[i], tensors_[i]);
    steps_ = Steps(inputs, output_names(), steps);
    if (steps_.carried().empty()) return 0;
    ov_.require(ov_.create_request(compiled_, &other_request_));
    for (size_t i = 0; i < names_.size(); ++i)
      ov_.require(ov_.set_tensor(other_request_, names_[i].c_str(), inputs_[i]));
    for (const auto& [input, of_step] : steps_.counted()) {
      counted_.emplace_back();
      for (const Tensor& tensor : of_step) counted_.back().push_back(wrap(tensor));
    }
    return steps_.carried().size();
  }
  void begin_anew() override { steps_.begin_anew(); }

  void run() override {
    if (!steps_.carried().empty()) take_step();
    ov_.require(ov_.infer(request_));
  }

  std::vector<Value> outputs() override {
    size_t count = 0;
    ov_.require(ov_.count_outputs(compiled_, &count));
    std::vector<Value> found;
    for (size_t i = 0; i < count; ++i) {
      openvino::Tensor* output = nullptr;
      ov_.require(ov_.get_output(request_, i, &output));
      found.emplace_back(read(output));
      ov_.free_tensor(output);
    }
    return found;
  }

 private:
  void take_step() {
    const size_t step = steps_.next();
    std::swap(request_, other_request_);
    for (const auto [input, output] : steps_.carried()) {
      openvino::Tensor* found = nullptr;
      if (step > 0) ov_.require(ov_.get_output(other_request_, output, &found));
      const int code = ov_.set_tensor(request_, names_[input].c_str(),
                                      found != nullptr ? found : inputs_[input]);
      if (found != nullptr) ov_.free_tensor(found);
      ov_.require(code);
    }
    for (size_t i = 0; i < counted_.size(); ++i)
      ov_.require(
          ov_.set_tensor(request_, names_[steps_.counted()[i].input].c_str(), counted_[i][step]));
  }

  // In the order of the places of outputs.
  std::vector<std::string> output_names() const {
    size_t count = 0;
    ov_.require(ov_.count_outputs(compiled_, &count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      openvino::Port* port = nullptr;
      char* name = nullptr;
      ov_.require(ov_.get_output_port(compiled_, i, &port));
      const int code = ov_.get_port_name(port, &name);
      ov_.free_port(port);
      ov_.require(code);
      names.emplace_back(name);
      ov_.free_text(name);
    }
    return names;
  }

  // The tensor's memory is what OpenVINO reads.
  openvino::Tensor* wrap(const Tensor& tensor) const {
    Shape dims = tensor.shape();
    openvino::Tensor* wrapped = nullptr;
    ov_.require(ov_.wrap_tensor(number_of(tensor.element_type()),
                                {static_cast<int64_t>(dims.size()), dims.data()},
                                const_cast<void*>(tensor.data()), &wrapped));
    return wrapped;
  }

  static int number_of(ElementType type) {
    for (const auto& [number, element_type] : types)
      if (element_type == type) return number;
    throw std::runtime_error("OpenVINO is not given elements of this type");
  }

  Tensor read(const openvino::Tensor* from) const {
    int type = 0;
    openvino::Shape dims;
    void* data = nullptr;
    size_t bytes = 0;
    ov_.require(ov_.get_type(from, &type));
    // Of a scalar it says that the arguments are wrong.
    const int code = ov_.get_shape(from, &dims);
    if (code != openvino::wrong_argument) ov_.require(code);
    Shape shape;
    if (dims.dims != nullptr) {
      shape.assign(dims.dims, dims.dims + dims.rank);
      ov_.free_shape(&dims);
    }
    for (const auto& [number, element_type] : types) {
      if (number != type) continue;
      Tensor tensor(element_type, shape);
      ov_.require(ov_.get_bytes(from, &bytes));
      if (bytes != tensor.byte_size())
        throw std::runtime_error("an output of OpenVINO has another size than its type");
      if (bytes > 0) {
        ov_.require(ov_.get_data(from, &data));
        std::memcpy(tensor.mutable_data(), data, bytes);
      }
      return tensor;
    }
    throw std::runtime_error("OpenVINO gives elements of type " + std::to_string(type));
  }

  void forget_inputs() {
    for (openvino::Tensor* input : inputs_) ov_.free_tensor(input);
    for (const auto& of_step : counted_)
      for (openvino::Tensor* tensor : of_step) ov_.free_tensor(tensor);
    if (other_request_ != nullptr) ov_.free_request(std::exchange(other_request_, nullptr));
    inputs_.clear(), tensors_.clear(), names_.clear(), counted_.clear();
    steps_ = {};
  }
  void forget() {
    forget_inputs();
    if (request_ != nullptr) ov_.free_request(std::exchange(request_, nullptr));
    if (compiled_ != nullptr) ov_.free_compiled(std::exchange(compiled_, nullptr));
  }

  const openvino::Library ov_;
  openvino::Core* core_ = nullptr;
  openvino::CompiledModel* compiled_ = nullptr;
  openvino::InferRequest* request_ = nullptr;
  std::vector<Tensor> tensors_;  // the memory of the inputs
  std::vector<openvino::Tensor*> inputs_;
  std::vector<std::string> names_;                   // of the inputs
  openvino::InferRequest* other_request_ = nullptr;  // that of the step before
  Steps steps_;
  std::vector<std::vector<openvino::Tensor*>> counted_;  // of steps_.counted(), for each step
};

}  // namespace

std::unique_ptr<Engine> make_openvino(const std::string& library) {
  return std::make_unique<OpenvinoEngine>(library);
}

}  // namespace driver
