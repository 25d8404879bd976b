// The options that say what a model is given, which `run`, `explain`, `profile` and `bench` share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "session/input.h"

namespace sardonyx::cli {

// "batch=4" to sizes. Throws UsageError.
DimSizes parse_sizes(const std::vector<std::string>& texts);

class ModelInputs {
 public:
  void add_options(CLI::App& command);
  // Throws UsageError for options that make no sense whatever the model is. Called before the model
  // is loaded.
  void parse();

  // Whether an option says anything of them.
  bool are_given() const {
    return random_inputs_ || !input_texts_.empty() || !set_texts_.empty() || !from_.empty();
  }
  // Inputs that no option names get random values.
  void fill_with_random() { random_inputs_ = true; }

  // The values for the model's inputs. Throws Error (bad_input) that lists what is missing or
  // wrong.
  std::vector<NamedValue> values(const Model& model, const std::vector<ValueDescription>& inputs);
  // What the named dimensions came to be.
  const DimSizes& sizes() const { return sizes_; }
  uint64_t seed() const { return seed_; }

 private:
  struct Named {
    std::string name;
    std::string text;
  };
  const ValueDescription& find(const std::vector<ValueDescription>& inputs,
                               const std::string& name) const;
  void check_sizes(const std::vector<ValueDescription>& inputs) const;
  void take_all(const Model& model, const std::vector<ValueDescription>& inputs,
                std::vector<NamedValue>& values);
  void take_named(const Model& model, const std::vector<ValueDescription>& inputs,
                  std::vector<NamedValue>& values);
  bool is_made(const Named& input) const;
  Value made(const Named& input, const ValueDescription& wanted) const;
  Value read(const Named& input, const Model& model, const ValueDescription& wanted) const;

  std::vector<std::string> input_texts_, set_texts_;
  std::string from_;
  bool random_inputs_ = false;
  uint64_t seed_ = 0;
  PictureOptions picture_;
  std::string layout_;

  std::vector<Named> named_;
  DimSizes given_sizes_, sizes_;
};

}  // namespace sardonyx::cli
