// The plans of an algorithm: one for all sizes where its gradients allow that, otherwise one for
// the sizes of the inputs at hand.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "train/method.h"

namespace sardonyx::train {

class StepMethod {
 public:
  using Make = std::function<std::shared_ptr<const Method>(MethodModel)>;

  // `make` plans a model, now and when sizes are new. Throws Error where nothing but the model is
  // to blame.
  StepMethod(MethodModel model, const StateTable& table, Make make);

  const std::vector<ValueDescription>& inputs() const { return inputs_; }
  const std::vector<ValueDescription>& outputs() const { return outputs_; }

  // The plan for inputs of these sizes. Throws Error as planning does.
  std::shared_ptr<const Method> for_inputs(const std::vector<NamedValue>& inputs) const;

 private:
  using Shapes = std::map<std::string, Shape, std::less<>>;
  std::shared_ptr<const Method> made_for(const Shapes& shapes) const;

  const StateTable& table_;
  MethodModel model_;  // where plans are made of it later
  Make make_;
  std::vector<ValueDescription> inputs_, outputs_;
  std::shared_ptr<const Method> all_sizes_;

  static constexpr size_t max_plans = 8;
  struct Sized {
    Shapes shapes;
    std::shared_ptr<const Method> method;
  };
  mutable std::mutex mutex_;
  mutable std::list<Sized> sized_;  // the last used first
};

}  // namespace sardonyx::train
