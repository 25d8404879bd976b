#include <optional>
#include <stdexcept>

#include "engine.h"
#include "sardonyx/inputs.h"
#include "sardonyx/session.h"
#include "steps.h"

namespace driver {
namespace {

using namespace sardonyx;

class SardonyxEngine final : public Engine {
 public:
  std::string version() const override { return std::string(sardonyx::version()); }

  void load(const std::string& model, int threads) override {
    session_.reset();
    first_inputs_.clear(), inputs_.clear(), outputs_.clear();
    steps_ = {};
    SessionOptions options;
    options.threads = threads;
    options.packed = packed_;
    session_.emplace(model, options);
  }

  void set_inputs(const std::string& npz) override {
    if (!session_) throw std::runtime_error("no model is loaded");
    const auto& wanted = session_->inputs();
    std::vector<Value> inputs(wanted.size());
    for (NamedValue& value : read_npz_values(npz, wanted)) {
      size_t i = 0;
      while (i < wanted.size() && wanted[i].name != value.first) ++i;
      if (i == wanted.size())
        throw std::runtime_error("the model has no input '" + value.first + "'");
      inputs[i] = std::move(value.second);
    }
    inputs_ = first_inputs_ = std::move(inputs);
    outputs_.assign(session_->outputs().size(), {});
    steps_ = {};
  }

  size_t carry_on(int steps) override {
    std::vector<NamedValue> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs.emplace_back(session_->inputs()[i].name, inputs_[i]);
    std::vector<std::string> outputs;
    for (const ValueDescription& output : session_->outputs()) outputs.push_back(output.name);
    steps_ = Steps(inputs, outputs, steps);
    return steps_.carried().size();
  }
  void begin_anew() override { steps_.begin_anew(); }

  void run() override {
    if (!steps_.carried().empty()) take_step();
    session_->run(inputs_, outputs_);
  }
  std::vector<Value> outputs() override { return outputs_; }
  void set_packed(const std::string& file) override { packed_ = file; }

 private:
  void take_step() {
    const size_t step = steps_.next();
    for (const auto [input, output] : steps_.carried())
      inputs_[input] = step == 0 ? first_inputs_[input] : std::move(outputs_[output]);
    for (const auto& [input, of_step] : steps_.counted()) inputs_[input] = of_step[step];
  }

  std::optional<Session> session_;
  std::string packed_;
  std::vector<Value> first_inputs_, inputs_, outputs_;
  Steps steps_;
};

}  // namespace

std::unique_ptr<Engine> make_sardonyx() { return std::make_unique<SardonyxEngine>(); }

}  // namespace driver
