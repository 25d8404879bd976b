// The options that say what a model is given, which `run`, `explain`, `profile` and `bench` share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dim_option.h"
#include "options.h"
#include "sardonyx/inputs.h"

namespace sardonyx::cli {

class ModelInputs {
 public:
  void add_options(const Options& command);
  // Throws UsageError for options that make no sense whatever the model is. Called before the model
  // is loaded.
  void parse();

  // Whether an option says anything of them.
  bool are_given() const {
    return random_inputs_ || !input_texts_.empty() || dims_.is_given() || !from_.empty();
  }
  // Inputs that no option names get random values.
  void fill_with_random() { random_inputs_ = true; }

  // The values for the model's inputs. Throws Error (bad_input) that lists what is missing or
  // wrong.
  std::vector<NamedValue> values(const Model& model, const std::vector<ValueDescription>& inputs);
  // What the named dimensions came to be.
  const DimSizes& sizes() const { return sizes_; }
  // What `action`, a run with these values, returns. An error that it throws for their shapes ends
  // with the sizes that nothing set.
  template <class Action>
  auto explaining(const Action& action) const {
    try {
      return action();
    } catch (const Error& error) {
      throw with_unset_sizes(error);
    }
  }
  uint64_t seed() const { return seed_; }

 private:
  struct Named {
    std::string name;
    std::string text;
  };
  Error with_unset_sizes(const Error& error) const;
  const ValueDescription& find(const std::vector<ValueDescription>& inputs,
                               const std::string& name) const;
  void check_sizes(const std::vector<ValueDescription>& inputs) const;
  void take_all(const Model& model, const std::vector<ValueDescription>& inputs,
                std::vector<NamedValue>& values);
  void take_named(const Model& model, const std::vector<ValueDescription>& inputs,
                  std::vector<NamedValue>& values);
  bool is_made(const Named& input) const;
  Value made(const Named& input, const ValueDescription& wanted);
  Value read(const Named& input, const Model& model, const ValueDescription& wanted) const;

  std::vector<std::string> input_texts_;
  DimOption dims_;
  std::string from_;
  bool random_inputs_ = false;
  uint64_t seed_ = 0;
  ImageOptions image_;
  std::string layout_;

  std::vector<Named> named_;
  DimSizes given_sizes_, sizes_;
  std::vector<std::string> unset_;  // sizes that were taken as 1
  // The model's inputs, while `values` is at work.
  std::unordered_map<std::string_view, const ValueDescription*> by_name_;
};

}  // namespace sardonyx::cli
