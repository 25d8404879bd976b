// The values of a graph that is being laid out: what is known of them, and their twins with
// channels last.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"
#include "passes/fresh_names.h"

namespace sardonyx::passes {

class TwoLayouts {
 public:
  // Borrows both. `scope`: what inference knows of the graph.
  TwoLayouts(ir::Graph& graph, const infer::Scope& scope);

 protected:
  ~TwoLayouts() = default;

  // --- What is known --------------------------------------------------------------------------

  const ir::Dims* shape_of(const std::string& value) const;
  int64_t rank_of(const std::string& value) const;
  bool is_image(const std::string& value) const;
  bool is_float_image(const std::string& value) const;
  const Tensor* constant(const std::string& value) const;
  std::optional<std::vector<int64_t>> integers(const std::string& value) const;
  // Made in a fusion and nowhere else.
  bool is_nhwc(const std::string& value) const { return only_nhwc_.contains(value); }
  bool is_any_nhwc(const ir::Node& node) const;
  // So many nodes and outputs of the graph read it.
  int uses(const std::string& value) const;

  // --- Values in both layouts -----------------------------------------------------------------

  void transpose(const std::string& from, std::string to, std::vector<int64_t> perm);
  void need_first(const std::string& value);
  // The name of a value's twin with channels last, made here if need be.
  std::string as_nhwc(const std::string& value);
  // Gives the output of a converted node its twin's name.
  void make_nhwc(std::string& output);
  std::string add_constant(const Tensor& tensor, std::string_view hint);
  std::string add_integers(const std::vector<int64_t>& values, std::string_view hint);
  void emit(ir::Node node);
  void keep(ir::Node node);

  ir::Graph& graph_;
  const infer::Scope& scope_;
  FreshNames names_;
  std::unordered_map<std::string, std::string> last_;  // twins with channels last
  std::set<std::string> only_nhwc_;                    // values of which only the twin exists

 private:
  std::unordered_map<std::string, int> uses_;
};

// Where an axis of the standard's layout lies with channels last.
inline int64_t moved(int64_t axis, int64_t rank) {
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

}  // namespace sardonyx::passes
