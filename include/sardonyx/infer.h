// Types and shapes of a model's values, without running it.
//
//   sardonyx::Inference inference = sardonyx::infer_types("model.onnx");
//   for (const auto& value : inference.values) std::cout << value.name << ": " << value.type();
//
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/element_type.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class CustomOperators;
class Model;

struct InferOptions {
  // Sizes that are to be numbers: of the model's names ("batch"), and of places that inputs leave
  // open ("image.2"). A name that the model does not have is refused: Error (bad_input).
  std::map<std::string, int64_t, std::less<>> sizes = {};
  // Declarations that contradict what was inferred are errors instead of warnings, and so is what
  // the standard forbids though a run does it, such as negative pads of a convolution.
  bool strict = false;
  // As in LoadOptions, for models that are read from a file here.
  std::shared_ptr<const CustomOperators> custom_operators = nullptr;
  std::vector<std::string> libraries = {};
  // Documents of operator sets, as in LoadOptions; what they define is not written to the model.
  std::vector<std::string> operator_sets = {};
  // Most bytes that reading and inferring may take, the result included; 0: any number. What is
  // counted: sardonyx/session.h.
  int64_t memory_limit = 0;
};

// A size of a tensor.
struct InferredSize {
  int64_t number = -1;          // -1: not a number
  std::string_view expression;  // where it is none: "batch", "2*h + 1", "u3" for an unknown

  std::string text() const;  // "7", "2*h + 1"
};

// A value of the model: a graph's input, an initializer that is an input, or a node's output. Its
// texts and sizes belong to the Inference that lists it, and last as long as one copy of that.
struct InferredValue {
  enum class State {
    known,    // type and shape are known; sizes are numbers or expressions of names of the inputs
    bounded,  // some sizes are unknowns that the run decides, each with an upper bound
    open,     // some sizes are unknowns without a bound
    partial,  // the rank, or a part of the type, is unknown
    unknown,  // nothing is known
  };
  std::string_view graph;  // "" for the main graph, "If 'choice' then_branch" for subgraphs
  std::string_view name;
  State state = State::unknown;
  ElementType element = ElementType::undefined;
  std::optional<std::span<const InferredSize>> shape;  // of a tensor whose rank is known
  // Of what is no tensor of known rank, its type as text.
  std::string_view other_type;

  std::string type() const;  // "float[batch,2*h + 1]", "seq(float[n])"
};

// A size that only a run decides.
struct InferredUnknown {
  std::string name;   // "u3", as it stands in the types
  std::string bound;  // "batch*seq"; "" where none is known
  std::string node;   // what makes it: "NonZero 'hits'"
  std::string reason;
};

// A name that the model declares, explained by others, "seq = past + 1", or that of an element of
// one of its inputs: "v0 = value of 'trips'".
struct InferredName {
  std::string name;
  std::string expression;
};

struct InferFinding {
  bool is_error = false;
  std::string place;  // "Add 'sum'"
  std::string message;
};

struct Inference {
  std::vector<InferredValue> values;  // in the order of the file, subgraphs after the main graph
  std::vector<InferredUnknown> unknowns;
  std::vector<InferredName> names;
  std::vector<InferFinding> findings;  // nodes that can't run, declarations that can't be confirmed
  std::shared_ptr<const void> texts;   // what the values show; copies share it

  // How many values are in this state.
  int64_t count(InferredValue::State state) const;
  bool has_errors() const;
};

// Infers the model of a file; external data need not be there. Throws Error (unreadable,
// invalid_model) where the file can't be read as a model; what is wrong inside it is a finding.
Inference infer_types(const std::string& path, const InferOptions& options = {});

// The same of a model that is read, with the operators that were loaded with it.
Inference infer_types(const Model& model, const InferOptions& options = {});

// The model with all that is inferred of it: value_info, types of outputs and of the values of
// subgraphs, `sizes` in the shapes of inputs. `inference` (may be null) gets what infer_types
// gives. What is wrong with the model is a finding there; the model returned has what is known all
// the same. Throws Error (invalid_model) where the model can't be lowered.
Model with_inferred_types(const Model& model, const InferOptions& options = {},
                          Inference* inference = nullptr);

// The same, and writes the model with all it learned as value_info, types of outputs and of the
// values of subgraphs included, to `output`, which may be the model's own path. Weights are copied
// from file to file without being held in memory; external data stays where it is, so that a model
// that has some can only be written to its own folder: Error (bad_input) otherwise.
Inference infer_file(const std::string& path, const std::string& output,
                     const InferOptions& options = {});

// The same in the file itself, without reading or writing its weights: what the main graph does not
// declare yet is appended, as a second `graph` field that readers of protobuf join to the first.
// Whatever interrupts it, the file stays sound: it holds some or all of what was added; on an error
// it has its old length. Declarations that the file holds already stay as they are, subgraphs and
// functions get none; a finding counts those that know less than was inferred. Throws Error:
// bad_input with `sizes`, unsupported for other forms than the binary one.
Inference infer_in_place(const std::string& path, const InferOptions& options = {});

}  // namespace sardonyx

#pragma GCC visibility pop
