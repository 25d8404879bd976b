// The annotations of multi-device models: records of our own, on "#@" lines.
#include "base/fail.h"
#include "wire/text_parser.h"

namespace sardonyx::wire {
ir::DeviceConfiguration TextParser::device_configuration() {
  ir::DeviceConfiguration configuration;
  record("a device configuration", [&](std::string_view key) {
    if (key == "name") return configuration.name = scan_.string(key), true;
    if (key == "num_devices") return configuration.num_devices = int32_value(scan_, key), true;
    if (key == "device") return configuration.device = strings(key), true;
    return false;
  });
  return configuration;
}

ir::NodeDeviceConfiguration TextParser::node_device_configuration() {
  ir::NodeDeviceConfiguration configuration;
  record("a node's device configuration", [&](std::string_view key) {
    if (key == "configuration_id") return configuration.configuration_id = scan_.string(key), true;
    if (key == "pipeline_stage") {
      configuration.has_pipeline_stage = true;
      return configuration.pipeline_stage = int32_value(scan_, key), true;
    }
    if (key == "sharding_spec") {
      list('[', ']', key, [&] { configuration.sharding_spec.push_back(sharding_spec()); });
      return true;
    }
    return false;
  });
  return configuration;
}

ir::ShardingSpec TextParser::sharding_spec() {
  ir::ShardingSpec spec;
  record("a sharding", [&](std::string_view key) {
    if (key == "tensor_name") return spec.tensor_name = scan_.string(key), true;
    if (key == "device") return spec.device = integers(key), true;
    if (key == "index_to_device_group_map") {
      list('[', ']', key, [&] {
        ir::IntIntListEntry& entry = spec.index_to_device_group_map.emplace_back();
        entry.key = scan_.integer("the index of a device group");
        scan_.expect(':', "after the index of a device group");
        entry.value = integers("a device group");
      });
      return true;
    }
    if (key == "sharded_dim") {
      list('[', ']', key, [&] { spec.sharded_dim.push_back(sharded_dim()); });
      return true;
    }
    return false;
  });
  return spec;
}

ir::ShardedDim TextParser::sharded_dim() {
  ir::ShardedDim dim;
  record("a sharded axis", [&](std::string_view key) {
    if (key == "axis") return dim.axis = scan_.integer(key), true;
    if (key == "simple_sharding") {
      list('[', ']', key, [&] { dim.simple_sharding.push_back(simple_sharding()); });
      return true;
    }
    return false;
  });
  return dim;
}

ir::SimpleShardedDim TextParser::simple_sharding() {
  ir::SimpleShardedDim sharding;
  record("a simple sharding", [&](std::string_view key) {
    if (key == "dim_value") return sharding.dim_value = scan_.integer(key), true;
    if (key == "dim_param") return sharding.dim_param = scan_.string(key), true;
    if (key == "num_shards") return sharding.num_shards = scan_.integer(key), true;
    return false;
  });
  return sharding;
}

}  // namespace sardonyx::wire
