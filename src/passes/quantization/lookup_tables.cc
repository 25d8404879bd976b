#include "passes/quantization/lookup_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/elementwise/fused_elementwise.h"
#include "kernels/elementwise/lookup_table.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/node.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {
namespace {

using kernels::ElementwiseExtent;
using kernels::ElementwiseProgram;
using ops::internal::FusedElementwise;
using ops::internal::LookupTable;
using Table = std::array<uint8_t, kernels::lookup_table_size>;

class TableMaker {
 public:
  explicit TableMaker(GraphIndex& index) : index_(index) {
    std::iota(own_.begin(), own_.end(), uint8_t{0});
  }

  void run() {
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i) && ops::internal::is<FusedElementwise>(index_.node(i))) replace(i);
    }
  }

 private:
  // The table that makes `value`, where one does; null elsewhere.
  const ir::Node* table_of(const std::string& value) const {
    const ir::Node* made = index_.producer(value);
    return ops::internal::is<LookupTable>(made) ? made : nullptr;
  }
  const uint8_t* elements_of(const ir::Node& table) const {
    return static_cast<const uint8_t*>(index_.constant(table.inputs[LookupTable::table])->data());
  }

  // The value of bytes that all whole inputs of a FusedElementwise are functions of; nullopt where
  // there is none. It may be what a table makes, of which other tables are made.
  std::optional<std::string> argument_of(const ir::Node& node,
                                         const ElementwiseProgram& program) const {
    const auto fits = [&](const std::string& value) {
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        const std::string& input = node.inputs[k];
        if (program.extents[k] != ElementwiseExtent::whole || input == value) continue;
        const ir::Node* table = table_of(input);
        if (table == nullptr || table->inputs[LookupTable::x] != value) return false;
      }
      return true;
    };
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (program.extents[k] != ElementwiseExtent::whole) continue;
      // What the table reads comes first: tables of tables are one.
      const std::string& input = node.inputs[k];
      if (const ir::Node* table = table_of(input);
          table != nullptr && fits(table->inputs[LookupTable::x]))
        return table->inputs[LookupTable::x];
      if (fits(input)) return input;
    }
    return std::nullopt;
  }

  void replace(size_t i) {
    const ir::Node& node = index_.node(i);
    const ElementwiseProgram program =
        ops::internal::elementwise_program(ops::NodeView(node, nullptr));
    if (!kernels::gives_bytes(program)) return;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const bool whole = program.extents[k] == ElementwiseExtent::whole;
      if (whole ? !kernels::takes_bytes(program, static_cast<int>(k))
                : program.extents[k] != ElementwiseExtent::single ||
                      index_.constant(node.inputs[k]) == nullptr)
        return;
    }
    const auto argument = argument_of(node, program);
    if (!argument) return;
    const void* inputs[ElementwiseProgram::max_inputs];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const std::string& input = node.inputs[k];
      if (program.extents[k] == ElementwiseExtent::single) {
        inputs[k] = index_.constant(input)->data();
      } else {
        inputs[k] = input == *argument ? own_.data() : elements_of(*table_of(input));
      }
    }
    Tensor table(program.steps.back().bytes.type, {kernels::lookup_table_size});
    kernels::run_fused_elementwise(program, inputs, table.mutable_data(),
                                   kernels::lookup_table_size, kernels::lookup_table_size,
                                   ThreadPool::single());
    index_.replace(
        i, ops::internal::to_node(LookupTable{}, node.name,
                                  {{LookupTable::x, *argument},
                                   {LookupTable::table, index_.add_initializer(table, "table")}},
                                  node.outputs));
  }

  GraphIndex& index_;
  Table own_{};  // of what changes nothing
};

}  // namespace

void make_lookup_tables(GraphIndex& index) { TableMaker(index).run(); }

}  // namespace sardonyx::passes
