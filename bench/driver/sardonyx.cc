#include <optional>
#include <stdexcept>

#include "engine.h"
#include "sardonyx/inputs.h"
#include "sardonyx/session.h"

namespace driver {
namespace {

using namespace sardonyx;

class SardonyxEngine final : public Engine {
 public:
  std::string version() const override { return std::string(sardonyx::version()); }

  void load(const std::string& model, int threads) override {
    session_.reset();
    inputs_.clear(), outputs_.clear();
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
    inputs_ = std::move(inputs);
    outputs_.assign(session_->outputs().size(), {});
  }

  void run() override { session_->run(inputs_, outputs_); }
  std::vector<Value> outputs() override { return outputs_; }
  void set_packed(const std::string& file) override { packed_ = file; }

 private:
  std::optional<Session> session_;
  std::string packed_;
  std::vector<Value> inputs_, outputs_;
};

}  // namespace

std::unique_ptr<Engine> make_sardonyx() { return std::make_unique<SardonyxEngine>(); }

}  // namespace driver
