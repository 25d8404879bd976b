// --dim NAME=N and --fix-dim NAME=N, as all commands take them that work with sizes.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "sardonyx/inputs.h"

namespace sardonyx::cli {

inline constexpr char open_sizes_help[] =
    "Sizes of open dimensions, by name or place: batch=4,image.2=224";

class DimOption {
 public:
  explicit DimOption(const char* name = "--dim") : name_(name) {}
  // `help`: what the option's line says of the sizes.
  void add(const Options& command, const std::string& help);
  bool is_given() const { return !texts_.empty() || !old_texts_.empty(); }
  // The sizes by name. Warns of --set, which was --dim once. Throws UsageError for what is no
  // NAME=N, and where a name is given twice. Which names there are the model decides.
  DimSizes sizes() const;

 private:
  const char* name_;
  std::vector<std::string> texts_, old_texts_;
};

}  // namespace sardonyx::cli
