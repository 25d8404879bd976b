// Rules of how tensors are split over devices: each specification by itself, and those of one
// operator against each other.
#include <algorithm>
#include <array>
#include <optional>

#include "check/context.h"
#include "check/operator_groups.h"
#include "check/scopes.h"

namespace sardonyx::check {
namespace {

// Output shards that are looked at one by one; real models have as many as devices.
constexpr int64_t max_shards = 4096;

// What the standard's text on sharding leaves open.
constexpr auto not_covered = std::to_array<std::string_view>({"AveragePool",
                                                              "ConcatFromSequence",
                                                              "Conv",
                                                              "ConvInteger",
                                                              "ConvTranspose",
                                                              "DFT",
                                                              "DeformConv",
                                                              "GRU",
                                                              "GlobalAveragePool",
                                                              "GlobalLpPool",
                                                              "GlobalMaxPool",
                                                              "If",
                                                              "InstanceNormalization",
                                                              "LSTM",
                                                              "LayerNormalization",
                                                              "Loop",
                                                              "LpNormalization",
                                                              "LpPool",
                                                              "MaxPool",
                                                              "MaxRoiPool",
                                                              "MelWeightMatrix",
                                                              "Optional",
                                                              "OptionalGetElement",
                                                              "OptionalHasElement",
                                                              "QLinearConv",
                                                              "RNN",
                                                              "STFT",
                                                              "Scan",
                                                              "SequenceAt",
                                                              "SequenceConstruct",
                                                              "SequenceEmpty",
                                                              "SequenceErase",
                                                              "SequenceInsert",
                                                              "SequenceLength",
                                                              "SequenceMap",
                                                              "SplitToSequence",
                                                              "TfIdfVectorizer"});

using Sizes = std::vector<std::optional<int64_t>>;  // of the axes; none where it is not known

// One tensor of an operator: how it is split, and by what each of its axes is called in common with
// those of the others.
struct Operand {
  std::string_view name;
  const ir::ShardingSpec* spec = nullptr;  // null: it lies whole where it is
  Sizes sizes;
  std::vector<int> labels;
  std::vector<int64_t> shards;  // by axis
};

// Whether the axis lies in the rank; its index from 0.
std::optional<size_t> axis_index(int64_t axis, size_t rank) {
  const auto size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

int64_t shards_of(const ir::ShardedDim& dim) {
  int64_t shards = 1;
  for (const ir::SimpleShardedDim& sharding : dim.simple_sharding) {
    const int64_t count = std::clamp<int64_t>(sharding.num_shards, 1, max_shards + 1);
    shards = std::min(shards * count, max_shards + 1);
  }
  return shards;
}

std::vector<int64_t> shards_by_axis(const ir::ShardingSpec* spec, size_t rank) {
  std::vector<int64_t> shards(rank, 1);
  if (!spec) return shards;
  for (const ir::ShardedDim& dim : spec->sharded_dim) {
    if (const auto index = axis_index(dim.axis, rank)) shards[*index] = shards_of(dim);
  }
  return shards;
}

// The devices that an entry of `device` stands for, sorted.
std::vector<int64_t> devices_of(const ir::ShardingSpec& spec, int64_t entry) {
  for (const ir::IntIntListEntry& group : spec.index_to_device_group_map) {
    if (group.key != entry) continue;
    std::vector<int64_t> devices = group.value;
    std::ranges::sort(devices);
    return devices;
  }
  return {entry};
}

class ShardingPass {
 public:
  explicit ShardingPass(Context& context) : context_(context) {}

  ir::WalkCallbacks callbacks() {
    return {[this](const ir::WalkPlace& place) { return enter(place); },
            [this](const ir::WalkPlace&) { leave(); },
            [this](const ir::WalkPlace& place, const ir::Node& node, size_t index) {
              this->node({.graph = &place, .node = &node, .node_index = index});
            }};
  }

 private:
  // How a value comes out of the node that computes it, by device configuration.
  struct Produced {
    std::vector<std::pair<std::string_view, const ir::ShardingSpec*>> specs;
  };

  bool enter(const ir::WalkPlace& place);
  void leave();
  void node(const Where& where);
  void check_spec(const Where& where, const ir::ShardingSpec& spec,
                  const ir::DeviceConfiguration* configuration);
  void check_operands(const Where& where, const ir::NodeDeviceConfiguration& own);
  bool operand(const ir::Node& node, size_t index, const ir::NodeDeviceConfiguration& own,
               Operand& made) const;
  std::vector<Operand> operands(const ir::Node& node, const ir::NodeDeviceConfiguration& own) const;
  bool axes_agree(const Where& where, const std::vector<Operand>& operands);
  void check_composition(const Where& where, const std::vector<Operand>& operands);

  Context& context_;
  Scopes<Sizes> sizes_;
  Scopes<Produced> produced_;
  std::unordered_map<const ir::Graph*, int> visits_;
};

bool ShardingPass::enter(const ir::WalkPlace& place) {
  if (place.depth > max_graph_depth || (place.graph && ++visits_[place.graph] > max_visits))
    return false;
  sizes_.enter();
  produced_.enter();
  const auto declare = [&](const std::vector<ir::ValueInfo>& infos) {
    for (const ir::ValueInfo& info : infos) {
      if (!info.type || !info.type->shape) continue;
      Sizes sizes;
      for (const ir::Dimension& dim : info.type->shape->dims) sizes.push_back(dim.value);
      sizes_.add(info.name, std::move(sizes));
    }
  };
  if (!place.graph) {
    declare(place.function->value_info);
    return true;
  }
  declare(place.graph->inputs);
  declare(place.graph->outputs);
  declare(place.graph->value_info);
  for (const ir::ValueInfo& input : place.graph->inputs) produced_.add(input.name, {});
  for (const ir::TensorProto& tensor : place.graph->initializers) {
    sizes_.add(tensor.name, Sizes(tensor.dims.begin(), tensor.dims.end()));
    produced_.add(tensor.name, {});
  }
  return true;
}

void ShardingPass::leave() {
  sizes_.leave();
  produced_.leave();
}

// ---- one specification

void ShardingPass::check_spec(const Where& where, const ir::ShardingSpec& spec,
                              const ir::DeviceConfiguration* configuration) {
  Report& report = context_.report;
  const ir::Node& node = *where.node;
  const auto among = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, spec.tensor_name) != names.end();
  };
  if (spec.tensor_name.empty() || (!among(node.inputs) && !among(node.outputs))) {
    report("MD-07", where, "", "a sharding names an input or output of its node; found '{}'",
           spec.tensor_name);
  }
  for (const int64_t device : spec.device) {
    const auto in_map = [&](const ir::IntIntListEntry& entry) { return entry.key == device; };
    if (std::ranges::any_of(spec.index_to_device_group_map, in_map)) continue;
    if (!configuration || (device >= 0 && device < configuration->num_devices)) continue;
    report("MD-08", where, "", "device {} is not one of the {} devices", device,
           configuration->num_devices);
  }
  const Sizes* sizes = sizes_.find(spec.tensor_name);
  const size_t rank = sizes ? sizes->size() : 64;
  int64_t shards = 1;
  for (const ir::ShardedDim& dim : spec.sharded_dim) {
    if (!axis_index(dim.axis, rank)) {
      report("MD-09", where, "", "an axis lies in [-rank, rank){}; found {}",
             sizes ? fmt::format(" of rank {}", rank) : "", dim.axis);
    }
    for (const ir::SimpleShardedDim& sharding : dim.simple_sharding) {
      if (sharding.num_shards < 1) {
        report("MD-11", where, "", "there is at least one shard; found {}", sharding.num_shards);
      }
      if (__builtin_mul_overflow(shards, std::max<int64_t>(sharding.num_shards, 1), &shards))
        shards = 0;
    }
  }
  if (!spec.sharded_dim.empty() && !spec.device.empty() &&
      shards != static_cast<int64_t>(spec.device.size())) {
    report("MD-12", where, "", "there are {} shards for {} devices", shards, spec.device.size());
  }
}

// ---- those of one operator

// False where too little is known of the input to say anything.
bool ShardingPass::operand(const ir::Node& node, size_t index,
                           const ir::NodeDeviceConfiguration& own, Operand& made) const {
  if (index >= node.inputs.size() || node.inputs[index].empty()) return false;
  made.name = node.inputs[index];
  const auto said = std::ranges::find(own.sharding_spec, made.name, &ir::ShardingSpec::tensor_name);
  if (said != own.sharding_spec.end()) {
    made.spec = &*said;
  } else {
    const Produced* produced = produced_.find(made.name);
    if (!produced) return false;
    for (const auto& [configuration, spec] : produced->specs) {
      if (configuration == own.configuration_id) made.spec = spec;
    }
  }
  const Sizes* sizes = sizes_.find(made.name);
  if (!sizes) return false;
  made.sizes = *sizes;
  made.shards = shards_by_axis(made.spec, sizes->size());
  return true;
}

// Names axes from the last one on: 0, 1, 2 …, but for the first ones, which `last` names.
void label(Operand& operand, std::initializer_list<int> last, int next) {
  const size_t rank = operand.sizes.size();
  operand.labels.resize(rank);
  size_t done = 0;
  for (const int name : last) {
    if (done < rank) operand.labels[rank - 1 - done++] = name;
  }
  for (; done < rank; ++done) operand.labels[rank - 1 - done] = next++;
}

std::vector<Operand> ShardingPass::operands(const ir::Node& node,
                                            const ir::NodeDeviceConfiguration& own) const {
  std::vector<Operand> found;
  if (is_one_of(node.op_type, broadcasting)) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Operand made;
      if (!operand(node, i, own, made)) continue;
      label(made, {}, 0);
      found.push_back(std::move(made));
    }
    return found;
  }
  const bool quantized = node.op_type == "QLinearMatMul";
  const bool gemm = node.op_type == "Gemm";
  if (!quantized && !gemm && node.op_type != "MatMul" && node.op_type != "MatMulInteger")
    return found;
  // Rows of the first, what is summed over, columns of the second; the batch axes after them.
  constexpr int rows = 0, inner = 1, columns = 2, batch = 3;
  Operand a, b;
  if (!operand(node, 0, own, a) || !operand(node, quantized ? 3 : 1, own, b)) return found;
  const auto transposed = [&](std::string_view name) {
    const ir::Attribute* attribute = node.find(name);
    return gemm && attribute && attribute->i && *attribute->i != 0;
  };
  if (transposed("transA")) {
    label(a, {rows, inner}, batch);
  } else {
    label(a, {inner, rows}, batch);
  }
  if (b.sizes.size() == 1 || transposed("transB")) {
    label(b, {inner, columns}, batch);
  } else {
    label(b, {columns, inner}, batch);
  }
  found.push_back(std::move(a));
  found.push_back(std::move(b));
  Operand c;
  if (gemm && operand(node, 2, own, c)) {
    label(c, {columns, rows}, batch);
    found.push_back(std::move(c));
  }
  return found;
}

bool ShardingPass::axes_agree(const Where& where, const std::vector<Operand>& operands) {
  struct First {
    const Operand* operand;
    size_t axis;
  };
  std::map<int, First> first;
  bool agree = true;
  for (const Operand& operand : operands) {
    for (size_t axis = 0; axis < operand.labels.size(); ++axis) {
      const int64_t shards = operand.shards[axis];
      if (operand.sizes[axis] == 1) {
        if (shards == 1) continue;
        context_.report("MD-18", where.in(fmt::format("input '{}'", operand.name)),
                        "replicate it on all devices",
                        "axis {} has size 1 and is cut into {} shards", axis, shards);
        agree = false;
        continue;
      }
      const auto [entry, is_new] = first.try_emplace(operand.labels[axis], First{&operand, axis});
      const First& other = entry->second;
      if (is_new || other.operand->shards[other.axis] == shards) continue;
      const bool unsaid = !operand.spec || !other.operand->spec;
      context_.report("MD-18", where.in(fmt::format("input '{}'", operand.name)),
                      unsaid ? "say how both are split" : "split both the same way",
                      "axis {} is cut into {} shards, axis {} of '{}', which it meets, into {}",
                      axis, shards, other.axis, other.operand->name,
                      other.operand->shards[other.axis]);
      agree = false;
    }
  }
  return agree;
}

// Each shard of what the operator computes needs a device that has the shards of all inputs for it.
void ShardingPass::check_composition(const Where& where, const std::vector<Operand>& operands) {
  std::map<int, int64_t> counts;  // shards by label
  for (const Operand& operand : operands) {
    if (!operand.spec || operand.spec->device.empty()) continue;
    int64_t total = 1;
    for (size_t axis = 0; axis < operand.labels.size(); ++axis) {
      int64_t& count = counts.try_emplace(operand.labels[axis], 1).first->second;
      count = std::max(count, operand.shards[axis]);
      total *= operand.shards[axis];
      if (total > max_shards) return;
    }
    if (!operand.spec->sharded_dim.empty() &&
        total != static_cast<int64_t>(operand.spec->device.size())) {
      return;  // MD-12
    }
  }
  int64_t combinations = 1;
  for (const auto& [label, count] : counts) {
    combinations *= count;
    if (combinations > max_shards) return;
  }
  for (int64_t combination = 0; combination < combinations; ++combination) {
    std::map<int, int64_t> at;
    int64_t rest = combination;
    for (const auto& [label, count] : counts) {
      at[label] = rest % count;
      rest /= count;
    }
    std::optional<std::vector<int64_t>> common;
    for (const Operand& operand : operands) {
      if (!operand.spec || operand.spec->device.empty()) continue;
      const ir::ShardingSpec& spec = *operand.spec;
      std::vector<int64_t> devices;
      if (spec.sharded_dim.empty()) {
        for (const int64_t entry : spec.device) {
          const auto group = devices_of(spec, entry);
          devices.insert(devices.end(), group.begin(), group.end());
        }
        std::ranges::sort(devices);
      } else {
        // The first axis listed is the outermost.
        int64_t shard = 0;
        for (const ir::ShardedDim& dim : spec.sharded_dim) {
          const auto axis = axis_index(dim.axis, operand.labels.size());
          if (!axis) return;
          shard = shard * operand.shards[*axis] + at[operand.labels[*axis]];
        }
        if (shard >= static_cast<int64_t>(spec.device.size())) return;
        devices = devices_of(spec, spec.device[static_cast<size_t>(shard)]);
      }
      if (!common) {
        common = std::move(devices);
        continue;
      }
      std::vector<int64_t> both;
      std::ranges::set_intersection(*common, devices, std::back_inserter(both));
      common = std::move(both);
    }
    if (!common || !common->empty()) continue;
    context_.report("MD-18", where, "replicate shards on the devices that need them",
                    "no device has the shards of all inputs that one shard of the output needs");
    return;
  }
}

void ShardingPass::check_operands(const Where& where, const ir::NodeDeviceConfiguration& own) {
  const ir::Node& node = *where.node;
  if (own.sharding_spec.empty() || !ir::canonical_domain(node.domain).empty()) return;
  const auto is_split = [](const ir::ShardingSpec& spec) { return !spec.sharded_dim.empty(); };
  if (is_one_of(node.op_type, not_covered)) {
    if (std::ranges::any_of(own.sharding_spec, is_split)) {
      context_.report("MD-19", where, "",
                      "the standard does not say how the tensors of {} may be split", node.op_type);
    }
    return;
  }
  const std::vector<Operand> all = operands(node, own);
  if (all.size() > 1 && axes_agree(where, all)) check_composition(where, all);
}

void ShardingPass::node(const Where& where) {
  const ir::Node& node = *where.node;
  const std::vector<ir::DeviceConfiguration>& known = context_.model.configuration;
  for (const ir::NodeDeviceConfiguration& own : node.device_configurations) {
    const Where place = where.in(fmt::format("device configuration '{}'", own.configuration_id));
    const auto found =
        std::ranges::find(known, own.configuration_id, &ir::DeviceConfiguration::name);
    if (own.configuration_id.empty() || found == known.end()) {
      context_.report("MD-04", place, "", "no configuration of the model has this name");
    }
    for (const ir::ShardingSpec& spec : own.sharding_spec) {
      check_spec(place.in(fmt::format("sharding of '{}'", spec.tensor_name)), spec,
                 found == known.end() ? nullptr : &*found);
    }
    check_operands(place, own);
  }
  for (const std::string& output : node.outputs) {
    Produced produced;
    for (const ir::NodeDeviceConfiguration& own : node.device_configurations) {
      const auto said =
          std::ranges::find(own.sharding_spec, output, &ir::ShardingSpec::tensor_name);
      if (said != own.sharding_spec.end())
        produced.specs.emplace_back(own.configuration_id, &*said);
    }
    // What a node does not say of its outputs follows from its inputs and is left to who runs it.
    if (!produced.specs.empty()) produced_.add(output, std::move(produced));
  }
}

}  // namespace

void check_shardings(Context& context) {
  if (!context.has_device_annotations || !context.report.wants("MD-04")) return;
  ShardingPass pass(context);
  ir::walk(context.model, pass.callbacks());
}

}  // namespace sardonyx::check
