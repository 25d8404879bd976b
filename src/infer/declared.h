// What a graph declares of its values (value_info, outputs), held against what is inferred.
#pragma once

#include <string_view>

#include "base/name_map.h"
#include "infer/infer.h"

namespace sardonyx::infer {

// Reports that what an input's declaration says can't be: `type` is what it holds, as `source` says
// ("the initializer is"). Does nothing unless the inference is symbolic_values.
void hold_input_against(const ir::ValueInfo& input, const ir::ValueType& type,
                        std::string_view source, std::string_view graph,
                        const InferenceContext& inference);

// The same of a value that `list` declares; `place`: what messages name.
void hold_against(const ir::ValueInfo& info, const ir::ValueType& type, std::string_view list,
                  std::string_view source, std::string place, const InferenceContext& inference);

// Whether a value of this type can't be what is declared. Names of sizes say nothing here, nor does
// what is not known.
enum class Contradiction { none, shapes, types };
Contradiction contradiction(const ir::ValueType& type, const ir::TypeProto& declared);

// Does nothing unless the inference is symbolic_values. Borrows both.
class Declared {
 public:
  Declared(const ir::Graph& graph, const InferenceContext& inference);

  // One more declaration: by this list of a graph or function, there with this name. All must
  // outlive this.
  void add(const ir::ValueInfo& info, std::string_view list, std::string_view of,
           std::string_view own_name);

  // Completes what is known of a node's output by its declaration; a declaration that can't be
  // confirmed is reported, and what was inferred stays.
  void merge(const ir::Node& node, const HashedName& name, ValueFacts& known) const;

 private:
  struct Declaration {
    const ir::TypeProto* type;
    std::string_view list, of, own_name;
  };

  const InferenceContext& inference_;
  NameMap<Declaration> declarations_;
};

}  // namespace sardonyx::infer
