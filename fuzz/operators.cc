// A node of any operator, drawn from the bytes: planned and plain, both refuse or both give the
// same kinds, types, shapes and integers, which are what inference says; and no error is a defect
// of our own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/session.h"
#include "schema/schema.h"
#include "single_node.h"
#include "target.h"
#include "tools/inferred_model.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace {

using namespace sardonyx;
using fuzzing::SingleNode;

// How often each definition was run to its end, told when the program ends: by the destructor,
// which still has what is to be told.
class Tally {
 public:
  ~Tally() { print(); }
  static Tally& get() {
    static Tally tally;
    return tally;
  }
  void add(const schema::Signature* signature, bool ran) {
    ++drawn_;
    if (ran) ++ran_[signature];
  }

 private:
  Tally() = default;
  void print() const {
    long long runs = 0;
    for (const auto& [signature, count] : ran_) runs += count;
    std::printf("%lld nodes drawn, %lld ran; of %zu definitions %zu\n", drawn_, runs,
                schema::all_signatures().size(), ran_.size());
    if (std::getenv("SARDONYX_FUZZ_TALLY") == nullptr) return;
    for (const schema::Signature& signature : schema::all_signatures()) {
      const auto found = ran_.find(&signature);
      std::printf("%8lld %s %s %d\n", found == ran_.end() ? 0 : found->second,
                  std::string(signature.domain).c_str(), std::string(signature.name).c_str(),
                  signature.since);
    }
  }

  long long drawn_ = 0;
  std::map<const schema::Signature*, long long> ran_;
};

// With SARDONYX_FUZZ_SHOW set: what a crash's file stands for.
void show(const SingleNode& drawn) {
  std::fprintf(stderr, "%s\n", wire::print(drawn.model).c_str());
}

struct Outcome {
  std::optional<std::vector<Value>> outputs;
  bool limited = false;  // a limit of time or memory was met
  std::string error;
};

Outcome outcome_of(const Model& model, const std::vector<NamedValue>& inputs, bool plain) {
  SessionOptions options;
  options.threads = 1;
  options.reference = plain;
  RunOptions limits;
  limits.memory_limit = 64 << 20;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  Outcome outcome;
  try {
    const Session session(model, options);
    outcome.outputs = session.run(inputs, limits);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::fprintf(stderr, "%s\n", error.what());
    require(error.code() != ErrorCode::internal, "no error is a defect of our own");
    outcome.limited =
        error.code() == ErrorCode::out_of_memory || error.code() == ErrorCode::cancelled;
    outcome.error = error.what();
  }
  return outcome;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.element_type() == ElementType::string) {
    const auto left = a.elements<std::string>(), right = b.elements<std::string>();
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
  }
  if (a.byte_size() == 0) return true;
  // What is left of the last byte behind small elements stands for nothing.
  const int64_t used = a.size() * bit_width(a.element_type()) % 8;
  const size_t whole = a.byte_size() - (used == 0 ? 0 : 1);
  if (std::memcmp(a.data(), b.data(), whole) != 0) return false;
  const auto last = [&](const Tensor& tensor) {
    return static_cast<const uint8_t*>(tensor.data())[whole] & ((1 << used) - 1);
  };
  return used == 0 || last(a) == last(b);
}

void compare(const Value& a, const Value& b, bool exact) {
  require(a.kind() == b.kind(), "planned and plain give the same kinds");
  if (!a.is_tensor()) return;
  const Tensor &left = a.tensor(), &right = b.tensor();
  require(left.element_type() == right.element_type(), "the same element types");
  require(left.shape() == right.shape(), "the same shapes");
  const ElementType type = left.element_type();
  if (exact && (is_integer(type) || type == ElementType::boolean || type == ElementType::string))
    require(same_bytes(left, right), "the same integers");
}

// Inference takes the standard at its word where old versions ask for shapes that fit; a run
// broadcasts as today.
bool broadcasts_less(const schema::Signature& signature) {
  if (!signature.domain.empty() || signature.since >= 8) return false;
  const auto has_name = [&](std::string_view name) { return signature.name == name; };
  const auto is_broadcast = [](const schema::Attribute& each) { return each.name == "broadcast"; };
  return has_name("Max") || has_name("Mean") || has_name("Min") || has_name("Sum") ||
         std::any_of(signature.attributes.begin(), signature.attributes.end(), is_broadcast);
}

void hold_against(const ir::ValueType& inferred, const Value& value) {
  if (!inferred.is_tensor() || !value.is_tensor()) return;
  const Tensor& tensor = value.tensor();
  require(inferred.element == ElementType::undefined || inferred.element == tensor.element_type(),
          "the element type is the inferred one");
  if (!inferred.shape) return;
  require(inferred.shape->size() == tensor.shape().size(), "the rank is the inferred one");
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    const auto low = (*inferred.shape)[i].lower(), high = (*inferred.shape)[i].upper();
    require((!low || *low <= tensor.shape()[i]) && (!high || *high >= tensor.shape()[i]),
            "the sizes are the inferred ones");
  }
}

void check_inference(const ir::Model& model, const std::vector<Value>* outputs) {
  InferredModel made;
  try {
    infer_model(model, {}, {}, made);
  } catch (const Error& error) {
    require(error.code() != ErrorCode::internal, "inference meets no defect of our own");
    return;
  }
  if (outputs == nullptr) return;
  for (size_t i = 0; i < outputs->size(); ++i)
    hold_against(made.type(model.graph->outputs[i].name), (*outputs)[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const SingleNode drawn = fuzzing::draw_single_node(data, size);
  const std::string bytes = wire::write_model(drawn.model);
  if (std::getenv("SARDONYX_FUZZ_SHOW") != nullptr) show(drawn);
  bool ran = false;
  try {
    const Model model(bytes.data(), bytes.size());
    const Outcome planned = outcome_of(model, drawn.inputs, false);
    const Outcome plain = outcome_of(model, drawn.inputs, true);
    ran = plain.outputs.has_value();
    // A plan does not look at the axes that leave a scalar of a vector: there is one choice.
    const bool lenient = drawn.signature->name == "Squeeze" && planned.outputs;
    if (!planned.limited && !plain.limited && !lenient) {
      if (planned.outputs.has_value() != plain.outputs.has_value())
        std::fprintf(stderr, "planned: %s\nplain: %s\n", planned.error.c_str(),
                     plain.error.c_str());
      require(planned.outputs.has_value() == plain.outputs.has_value(),
              "planned and plain both refuse");
    }
    if (planned.outputs && plain.outputs) {
      require(planned.outputs->size() == plain.outputs->size(),
              "planned and plain give as many outputs");
      for (size_t i = 0; i < plain.outputs->size(); ++i)
        compare((*planned.outputs)[i], (*plain.outputs)[i], !drawn.signature->nondeterministic);
    }
    const bool holds = plain.outputs && !broadcasts_less(*drawn.signature);
    check_inference(drawn.model, holds ? &*plain.outputs : nullptr);
  } catch (const Error&) {
  }
  Tally::get().add(drawn.signature, ran);
  return 0;
}
