// Reading a model file whose main graph's nodes are wanted one after another.
#pragma once

#include <memory>
#include <string_view>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "ir/model.h"
#include "ir/node_source.h"

namespace sardonyx::wire {

// Everything of a model but the nodes of its main graph, which come one at a time: all in the
// memory of one, which a graph of thousands otherwise takes from the system and gives back.
class StreamingReader : public ir::NodeSource {
 public:
  // `descriptor`: of the file that `bytes` map, if they do; it is used while this is. Here and in
  // the reading of nodes Error is thrown where read_model throws it, which says more of what is
  // wrong: those who catch it read the whole model.
  explicit StreamingReader(const Bytes& bytes, int descriptor = -1);
  // The same of a file that stays open. Sets model.path and model.folder.
  explicit StreamingReader(const MappedFile& file);
  ~StreamingReader() override;

  ir::Model model;  // as read_model makes it; its graph has no nodes

  // From now on, long attributes of the main graph's nodes of which `unread` says so, given the
  // node's operator and their name, are left out.
  void leave_out(bool (*unread)(std::string_view domain, std::string_view op_type,
                                std::string_view attribute));

  size_t size() const override;
  ir::Node* next() override;

 private:
  struct Reading;
  std::unique_ptr<Reading> reading_;
};

}  // namespace sardonyx::wire
