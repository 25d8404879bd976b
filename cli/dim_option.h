// --dim NAME=N, as all commands take it that work with sizes.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "sardonyx/inputs.h"

namespace sardonyx::cli {

class DimOption {
 public:
  // `help` ends what the option's line says: "Sizes of open dimensions" and that.
  void add(const Options& command, const std::string& help);
  bool is_given() const { return !texts_.empty() || !old_texts_.empty(); }
  // The sizes by name. Warns of the option's old name. Throws UsageError for what is no NAME=N, and
  // where a name is given twice. Which names there are the model decides.
  DimSizes sizes() const;

 private:
  std::vector<std::string> texts_, old_texts_;
};

}  // namespace sardonyx::cli
