// What an inference says of the values of a model.
#pragma once

#include <cstring>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>

#include "base/memory_account.h"
#include "ir/model.h"
#include "sardonyx/infer.h"
#include "tools/inferred_model.h"

namespace sardonyx {

// The memory of what an Inference's values show: block by block, given back as one.
class InferredTexts {
 public:
  InferredTexts() : memory_(std::make_shared<Memory>(first_block)) {}

  // Lets the texts last as long as the inference.
  void belong_to(Inference& inference) const { inference.texts = memory_; }

  // What is listed beside the texts counts with them while they are made.
  void charge(size_t bytes) { charge_.add(static_cast<int64_t>(bytes)); }

  std::string_view keep(std::string_view text) {
    charge(text.size());
    auto* const copy = static_cast<char*>(memory_->allocate(text.size(), 1));
    std::memcpy(copy, text.data(), text.size());
    return {copy, text.size()};
  }
  std::span<InferredSize> sizes(size_t count) {
    charge(count * sizeof(InferredSize));
    void* const room = memory_->allocate(count * sizeof(InferredSize), alignof(InferredSize));
    return {static_cast<InferredSize*>(room), count};
  }

 private:
  using Memory = std::pmr::monotonic_buffer_resource;
  static constexpr size_t first_block = 2048;

  std::shared_ptr<Memory> memory_;
  MemoryCharge charge_;
};

// Each lists the values of the main graph and of its subgraphs, and what was found.
void report(const InferredModel& inferred, const InferOptions& options, const ir::Graph& graph,
            Inference& inference);
// The same where the values of the main graph are listed already, by their names out of `texts`;
// `holders`: its nodes with subgraphs.
void report_listed(const InferredModel& inferred, const InferOptions& options,
                   const std::vector<ir::Node>& holders, InferredTexts& texts,
                   Inference& inference);
// What is known is also written into the model, subgraphs included; into the bodies of functions
// goes what holds in all their calls.
void report_written(const InferredModel& inferred, const InferOptions& options, ir::Model& model,
                    Inference& inference);

}  // namespace sardonyx
