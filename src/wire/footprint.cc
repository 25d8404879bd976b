#include "wire/footprint.h"

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wire/fields.h"

namespace sardonyx::wire {
namespace {

// Bytes that a text takes beside the string itself.
int64_t outside(const std::string& text) {
  static const size_t inside = std::string().capacity();
  return text.size() <= inside ? 0 : static_cast<int64_t>(text.size()) + 1;
}

class Footprint {
 public:
  template <class M>
  static int64_t of(const M& message) {
    Footprint visitor;
    fields(visitor, message);
    return static_cast<int64_t>(sizeof(M)) + visitor.bytes_;
  }

  template <class T>
  void field(uint32_t, const char*, const T& member) {
    add(member);
  }
  template <class T>
  void packed(uint32_t, const char*, const std::vector<T>& list) {
    add(list);
  }
  void fixed(uint32_t, const char*, const Bytes&, size_t) {}
  void raw(uint32_t, const char*, bool, const Bytes&) {}
  template <class T>
  void flagged(uint32_t, const char*, bool, const T& member) {
    add(member);
  }
  template <class A, class B>
  void either(uint32_t, const char*, const std::optional<A>& a, uint32_t, const char*,
              const std::optional<B>& b) {
    add(a);
    add(b);
  }
  template <class Visit>
  void choice(uint32_t, const char*, const ir::TypeProto& type, ir::TypeProto::Kind kind,
              const Visit& visit) {
    if (type.kind == kind) visit(*this);
  }
  void unknown(const ir::UnknownFields& kept) { bytes_ += outside(kept.bytes); }

 private:
  template <class T>
  void add(const T& member) {
    if constexpr (std::is_same_v<T, std::string>) {
      bytes_ += outside(member);
    } else if constexpr (requires { member.unknown; }) {
      fields(*this, member);
    }
  }
  template <class T>
  void add(const std::optional<T>& member) {
    if (member) add(*member);
  }
  template <class T>
  void add(const std::shared_ptr<const T>&) {}
  template <class T>
  void add(const std::vector<T>& list) {
    bytes_ += static_cast<int64_t>(list.size() * sizeof(T));
    if constexpr (!std::is_arithmetic_v<T>) {
      for (const T& item : list) add(item);
    }
  }

  int64_t bytes_ = 0;
};

}  // namespace

int64_t memory_of(const ir::Node& node) {
  int64_t bytes = Footprint::of(node) + outside(node.origin);
  for (const std::string& source : node.sources)
    bytes += static_cast<int64_t>(sizeof source) + outside(source);
  return bytes;
}

int64_t memory_of(const ir::ValueInfo& info) { return Footprint::of(info); }
int64_t memory_of(const ir::Graph& graph) { return Footprint::of(graph); }
int64_t memory_of(const ir::Model& model) { return Footprint::of(model); }

}  // namespace sardonyx::wire
