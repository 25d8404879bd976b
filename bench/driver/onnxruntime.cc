// ONNX Runtime through its C interface, with the threads that are asked for and everything else as
// it ships: spinning, arena, optimisation. Telemetry is off.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "../ort_c_api.h"
#include "engine.h"
#include "sardonyx/files.h"
#include "sardonyx/tensor_ref.h"
#include "steps.h"

namespace driver {
namespace {

using sardonyx::ElementType;
using sardonyx::Map;
using sardonyx::NamedValue;
using sardonyx::Sequence;
using sardonyx::Shape;
using sardonyx::Tensor;
using sardonyx::Value;

class OrtEngine final : public Engine {
 public:
  explicit OrtEngine(const std::string& path) : ort_(path) {
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    ort_.require(ort_.call<ort::CreateEnv>(ort::log_errors, "bench", &env_));
    ort_.require(ort_.call<ort::DisableTelemetryEvents>(env_));
    ort_.require(
        ort_.call<ort::CreateCpuMemoryInfo>(ort::device_allocator, ort::default_memory, &memory_));
    ort_.require(ort_.call<ort::GetAllocatorWithDefaultOptions>(&allocator_));
  }
  ~OrtEngine() override {
    forget();
    ort_.call<ort::ReleaseMemoryInfo>(memory_);
    ort_.call<ort::ReleaseEnv>(env_);
  }

  std::string version() const override { return ort_.version(); }

  void load(const std::string& model, int threads) override {
    forget();
    ort::SessionOptions* options = nullptr;
    ort_.require(ort_.call<ort::CreateSessionOptions>(&options));
    ort_.require(ort_.call<ort::SetIntraOpNumThreads>(options, threads));
    ort::Status* const status =
        ort_.call<ort::CreateSession>(env_, model.c_str(), options, &session_);
    ort_.call<ort::ReleaseSessionOptions>(options);
    ort_.require(status);
  }

  void set_inputs(const std::string& npz) override {
    if (session_ == nullptr) throw std::runtime_error("no model is loaded");
    forget_values();
    for (auto& [name, value] : sardonyx::read_npz(npz)) {
      tensors_.push_back(value.tensor());
      names_.push_back(name);
      inputs_.push_back(tensor_from(tensors_.back()));
    }
    size_t count = 0;
    ort_.require(ort_.call<ort::SessionGetOutputCount>(session_, &count));
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      ort_.require(ort_.call<ort::SessionGetOutputName>(session_, i, allocator_, &name));
      output_names_.emplace_back(name);
      ort_.require(ort_.call<ort::AllocatorFree>(allocator_, static_cast<void*>(name)));
    }
    for (const std::string& name : names_) input_places_.push_back(name.c_str());
    for (const std::string& name : output_names_) output_places_.push_back(name.c_str());
    outputs_.assign(count, nullptr);
  }

  // Where all outputs are tensors of numbers of sizes that stay, they are filled where they lie
  // from the second run on. Else each run makes them anew, and those of the last one are released.
  size_t carry_on(int steps) override {
    std::vector<NamedValue> inputs;
    for (size_t i = 0; i < names_.size(); ++i) inputs.emplace_back(names_[i], tensors_[i]);
    steps_ = Steps(inputs, output_names_, steps);
    if (steps_.carried().empty()) return 0;
    reuse_ = Reuse::carried;
    first_inputs_ = inputs_;
    for (const auto& [input, of_step] : steps_.counted()) {
      counted_.emplace_back();
      for (const Tensor& tensor : of_step) counted_.back().push_back(tensor_from(tensor));
    }
    return steps_.carried().size();
  }
  void begin_anew() override { steps_.begin_anew(); }

  void run() override {
    if (reuse_ == Reuse::no) release_outputs();
    if (reuse_ == Reuse::carried) take_step();
    ort::Status* const status =
        ort_.call<ort::Run>(session_, static_cast<const ort::RunOptions*>(nullptr),
                            input_places_.data(), inputs_.data(), inputs_.size(),
                            output_places_.data(), output_places_.size(), outputs_.data());
    if (status != nullptr && reuse_ == Reuse::try_it) {  // sizes changed: never try again
      ort_.call<ort::ReleaseStatus>(status);
      reuse_ = Reuse::no;
      return run();
    }
    ort_.require(status);
    if (reuse_ == Reuse::unknown) reuse_ = all_numbers() ? Reuse::try_it : Reuse::no;
  }

  std::vector<Value> outputs() override {
    std::vector<Value> found;
    for (const ort::Value* output : outputs_) found.push_back(read(output));
    return found;
  }

 private:
  // carried: what is not an input of the next step is filled where it lies.
  enum class Reuse { unknown, try_it, no, carried };

  void take_step() {
    const size_t step = steps_.next();
    for (const auto [input, output] : steps_.carried()) {
      release_carried(input);
      ort::Value* const found = std::exchange(outputs_[output], nullptr);
      if (step > 0) {
        inputs_[input] = found;
      } else {
        inputs_[input] = first_inputs_[input];
        if (found != nullptr) ort_.call<ort::ReleaseValue>(found);
      }
    }
    for (size_t i = 0; i < counted_.size(); ++i)
      inputs_[steps_.counted()[i].input] = counted_[i][step];
  }
  // An input that was an output.
  void release_carried(size_t input) {
    if (inputs_[input] != first_inputs_[input])
      ort_.call<ort::ReleaseValue>(const_cast<ort::Value*>(inputs_[input]));
  }

  // A value that is released at the end.
  using Held = std::unique_ptr<ort::Value, std::function<void(ort::Value*)>>;
  Held item(const ort::Value* of, size_t index) const {
    ort::Value* found = nullptr;
    ort_.require(ort_.call<ort::GetValue>(of, static_cast<int>(index), allocator_, &found));
    return {found, [this](ort::Value* value) { ort_.call<ort::ReleaseValue>(value); }};
  }

  int kind(const ort::Value* value) const {
    int found = 0;
    ort_.require(ort_.call<ort::GetValueType>(value, &found));
    return found;
  }

  std::pair<ElementType, Shape> type_of(const ort::Value* tensor) const {
    ort::TensorInfo* info = nullptr;
    int type = 0;
    size_t rank = 0;
    ort_.require(ort_.call<ort::GetTensorTypeAndShape>(tensor, &info));
    ort_.require(ort_.call<ort::GetTensorElementType>(info, &type));
    ort_.require(ort_.call<ort::GetDimensionsCount>(info, &rank));
    Shape shape(rank);
    ort_.require(ort_.call<ort::GetDimensions>(info, shape.data(), rank));
    ort_.call<ort::ReleaseTensorTypeAndShapeInfo>(info);
    return {static_cast<ElementType>(type), shape};
  }

  bool all_numbers() const {
    for (const ort::Value* output : outputs_) {
      if (output == nullptr || kind(output) != ort::tensor ||
          type_of(output).first == ElementType::string)
        return false;
    }
    return true;
  }

  Value read(const ort::Value* value) const {
    if (value == nullptr) return {};
    size_t count = 0;
    switch (kind(value)) {
      case ort::tensor: return read_tensor(value);
      case ort::sequence: {
        Sequence sequence;
        ort_.require(ort_.call<ort::GetValueCount>(value, &count));
        for (size_t i = 0; i < count; ++i) sequence.items.push_back(read(item(value, i).get()));
        return sequence;
      }
      case ort::map: {
        Map map;
        map.keys = read_tensor(item(value, 0).get());
        const Tensor values = read_tensor(item(value, 1).get());
        for (int64_t i = 0; i < values.size(); ++i) map.values.emplace_back(element(values, i));
        return map;
      }
      default: throw std::runtime_error("an output is neither tensor nor sequence nor map");
    }
  }

  static Tensor element(const Tensor& tensor, int64_t index) {
    const size_t bytes = tensor.byte_size() / static_cast<size_t>(tensor.size());
    Tensor one(tensor.element_type(), {});
    if (tensor.element_type() == ElementType::string) {
      one.mutable_elements<std::string>()[0] =
          tensor.elements<std::string>()[static_cast<size_t>(index)];
    } else {
      std::memcpy(one.mutable_data(),
                  static_cast<const char*>(tensor.data()) + static_cast<size_t>(index) * bytes,
                  bytes);
    }
    return one;
  }

  Tensor read_tensor(const ort::Value* value) const {
    const auto [type, shape] = type_of(value);
    Tensor tensor(type, shape);
    const auto count = static_cast<size_t>(tensor.size());
    if (type == ElementType::string) {
      size_t bytes = 0;
      ort_.require(ort_.call<ort::GetStringTensorDataLength>(value, &bytes));
      std::string text(bytes, '\0');
      std::vector<size_t> begins(count + 1, bytes);
      ort_.require(ort_.call<ort::GetStringTensorContent>(value, static_cast<void*>(text.data()),
                                                          bytes, begins.data(), count));
      for (size_t i = 0; i < count; ++i)
        tensor.mutable_elements<std::string>()[i] =
            text.substr(begins[i], begins[i + 1] - begins[i]);
    } else if (count > 0) {
      void* data = nullptr;
      ort_.require(ort_.call<ort::GetTensorMutableData>(const_cast<ort::Value*>(value), &data));
      std::memcpy(tensor.mutable_data(), data, tensor.byte_size());
    }
    return tensor;
  }

  ort::Value* tensor_from(const Tensor& tensor) const {
    ort::Value* value = nullptr;
    const auto type = static_cast<int>(tensor.element_type());
    const Shape& shape = tensor.shape();
    if (tensor.element_type() != ElementType::string) {
      ort_.require(ort_.call<ort::CreateTensorWithDataAsOrtValue>(
          memory_, const_cast<void*>(tensor.data()), tensor.byte_size(), shape.data(), shape.size(),
          type, &value));
      return value;
    }
    std::vector<const char*> texts;
    for (const std::string& text : tensor.elements<std::string>()) texts.push_back(text.c_str());
    ort_.require(ort_.call<ort::CreateTensorAsOrtValue>(allocator_, shape.data(), shape.size(),
                                                        type, &value));
    ort_.require(ort_.call<ort::FillStringTensor>(value, texts.data(), texts.size()));
    return value;
  }

  void release_outputs() {
    for (ort::Value*& output : outputs_)
      if (output != nullptr) ort_.call<ort::ReleaseValue>(std::exchange(output, nullptr));
  }
  void forget_values() {
    release_outputs();
    for (const Steps::Carried& carried : steps_.carried()) release_carried(carried.input);
    for (const auto& of_step : counted_)
      for (const ort::Value* value : of_step)
        ort_.call<ort::ReleaseValue>(const_cast<ort::Value*>(value));
    counted_.clear();
    if (!first_inputs_.empty()) inputs_ = std::exchange(first_inputs_, {});
    steps_ = {};
    for (const ort::Value* input : inputs_)
      ort_.call<ort::ReleaseValue>(const_cast<ort::Value*>(input));
    inputs_.clear(), outputs_.clear(), tensors_.clear();
    names_.clear(), output_names_.clear(), input_places_.clear(), output_places_.clear();
    reuse_ = Reuse::unknown;
  }
  void forget() {
    forget_values();
    if (session_ != nullptr) ort_.call<ort::ReleaseSession>(std::exchange(session_, nullptr));
  }

  const ort::Library ort_;
  ort::Env* env_ = nullptr;
  ort::MemoryInfo* memory_ = nullptr;
  ort::Allocator* allocator_ = nullptr;
  ort::Session* session_ = nullptr;
  std::vector<Tensor> tensors_;  // the memory of the inputs
  std::vector<std::string> names_, output_names_;
  std::vector<const char*> input_places_, output_places_;
  std::vector<const ort::Value*> inputs_, first_inputs_;
  std::vector<ort::Value*> outputs_;
  Reuse reuse_ = Reuse::unknown;
  Steps steps_;
  std::vector<std::vector<const ort::Value*>> counted_;  // of steps_.counted(), for each step
};

}  // namespace

std::unique_ptr<Engine> make_onnxruntime(const std::string& library) {
  return std::make_unique<OrtEngine>(library);
}

}  // namespace driver
