#include "ir/topological_order.h"

#include <queue>

#include "base/name_map.h"

namespace sardonyx::ir {

std::vector<size_t> topological_order(
    const std::vector<Node>& nodes,
    const std::function<void(size_t index, const std::function<void(std::string_view)>& use)>&
        for_each_use) {
  NameMap<size_t> producers;
  producers.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (!output.empty()) producers.emplace(output, i);
    }
  }
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waits_for(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for_each_use(i, [&](std::string_view name) {
      const size_t* producer = producers.find(name);
      if (producer == nullptr) return;
      readers[*producer].push_back(i);
      ++waits_for[i];
    });
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const size_t reader : readers[next]) {
      if (--waits_for[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

}  // namespace sardonyx::ir
