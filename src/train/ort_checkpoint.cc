#include "train/ort_checkpoint.h"

#include <filesystem>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/os.h"
#include "wire/flat_buffer.h"

namespace sardonyx::train {
namespace {

using Table = wire::FlatBuffer::Table;

// Numbers of fields in ONNX Runtime's schema of checkpoints.
namespace checkpoint {
constexpr int module = 1, optimizer_groups = 2;
}
namespace module {
constexpr int trained = 0, frozen = 1, is_nominal = 2, has_external_data = 3;
}
namespace group {
constexpr int steps = 1, learning_rate = 2, states = 3;
}
namespace state {
constexpr int parameter = 0, averages = 1;
}
namespace tensor {
constexpr int name = 0, dims = 2, type = 3, raw_data = 4, external_offset = 6;
}

class Reading {
 public:
  Reading(const std::string& path, const Bytes& file, const std::function<Bytes()>& data)
      : path_(path), buffer_(file, [path] { return path; }), data_(data) {}

  OrtCheckpoint read() {
    const Table root = buffer_.root("ODTC");
    OrtCheckpoint made;
    if (const auto held = root.table(checkpoint::module)) {
      if (held->truth(module::is_nominal))
        fail_at(path_, ErrorCode::unsupported,
                "the checkpoint is nominal: it has names and no values; take one that has them");
      if (held->truth(module::has_external_data)) external_ = data_();
      for (const Table& one : held->tables(module::trained)) made.trained.push_back(named(one));
      for (const Table& one : held->tables(module::frozen)) made.frozen.push_back(named(one));
    }
    const std::vector<Table> groups = root.tables(checkpoint::optimizer_groups);
    if (groups.size() > 1)
      fail_at(path_, ErrorCode::unsupported, "the checkpoint has {} groups of parameters, not one",
              groups.size());
    if (!groups.empty()) {
      OrtCheckpoint::Optimizer optimizer;
      read_group(groups[0], optimizer);
      made.optimizer = std::move(optimizer);
    }
    return made;
  }

 private:
  void read_group(const Table& from, OrtCheckpoint::Optimizer& into) {
    into.steps = from.number<int64_t>(group::steps);
    into.learning_rate = from.number<float>(group::learning_rate);
    for (const Table& one : from.tables(group::states)) {
      auto& averages = into.averages[one.text(state::parameter)];
      for (const Table& average : one.tables(state::averages)) {
        ir::TensorProto made = read_tensor(average);
        const std::string name = made.name;
        averages[name] = std::move(made);
      }
    }
  }

  ir::TensorProto named(const Table& from) {
    ir::TensorProto made = read_tensor(from);
    if (made.name.empty()) fail_at(path_, ErrorCode::unreadable, "a parameter has no name");
    if (!names_.insert(made.name).second)
      fail_at(path_, ErrorCode::unreadable, "there are two parameters '{}'", made.name);
    return made;
  }

  ir::TensorProto read_tensor(const Table& from) {
    ir::TensorProto made;
    made.name = from.text(tensor::name);
    made.dims = from.numbers<int64_t>(tensor::dims);
    made.data_type = from.number<int32_t>(tensor::type);
    const ElementType type = made.element_type();
    const bool plain = type == ElementType::float32 || type == ElementType::float64 ||
                       type == ElementType::float16 || type == ElementType::bfloat16 ||
                       type == ElementType::int32 || type == ElementType::int64 ||
                       type == ElementType::boolean;
    if (!plain)
      fail_at(place_of(made), ErrorCode::unsupported,
              "parameters of type {} are not read; those of float, double, float16, bfloat16, "
              "int32, int64 and bool are",
              made.data_type);
    auto needed = static_cast<uint64_t>(byte_size(type, 1));
    for (const int64_t size : made.dims) {
      if (size < 0 || __builtin_mul_overflow(needed, static_cast<uint64_t>(size), &needed))
        fail_at(place_of(made), ErrorCode::unreadable, "{} is no size", size);
    }
    const int64_t offset = from.number<int64_t>(tensor::external_offset, -1);
    if (offset >= 0) {
      const auto start = static_cast<uint64_t>(offset);
      if (start > external_.size() || external_.size() - start < needed)
        fail_at(place_of(made), ErrorCode::unreadable,
                "its {} bytes from {} on would end beyond the {} of '{}.data'", needed, start,
                external_.size(), path_);
      external_taken_ += needed;
      if (external_taken_ > external_.size())
        fail_at(place_of(made), ErrorCode::unreadable, "tensors overlap in '{}.data'", path_);
      made.raw_data = external_.slice(start, needed);
    } else {
      made.raw_data = from.bytes(tensor::raw_data);
      if (made.raw_data.size() != needed)
        fail_at(place_of(made), ErrorCode::unreadable, "{} bytes are needed; the file has {}",
                needed, made.raw_data.size());
    }
    made.has_raw_data = true;
    return made;
  }

  std::string place_of(const ir::TensorProto& tensor) const {
    return fmt::format("{}, parameter '{}'", path_, tensor.name);
  }

  std::string path_;
  wire::FlatBuffer buffer_;
  const std::function<Bytes()>& data_;
  Bytes external_;
  uint64_t external_taken_ = 0;
  std::set<std::string> names_;
};

}  // namespace

OrtCheckpoint read_ort_checkpoint(const std::string& path) {
  if (std::filesystem::is_directory(os::path(path)))
    fail_at(path, ErrorCode::unsupported,
            "a checkpoint that is a folder was written by ONNX Runtime before 1.16; save it again "
            "with a later one, which writes a file");
  return read_ort_checkpoint(path, map_file(path), [&] { return map_file(path + ".data"); });
}

OrtCheckpoint read_ort_checkpoint(const std::string& path, const Bytes& file,
                                  const std::function<Bytes()>& data) {
  return Reading(path, file, data).read();
}

}  // namespace sardonyx::train
