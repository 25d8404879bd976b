// The table of rules, and names for its rows that are checked at compile time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "check/check.h"

namespace sardonyx::check {

namespace levels {
// How a rule is reported by the three profiles: runnable, standard, strict.
struct Levels {
  Level runnable, standard, strict;
};
inline constexpr Levels fatal{Level::error, Level::error, Level::error};   // cannot run
inline constexpr Levels error{Level::off, Level::error, Level::error};     // forbidden, can run
inline constexpr Levels said{Level::warning, Level::error, Level::error};  // and a run warns of it
inline constexpr Levels lax{Level::off, Level::warning, Level::error};  // forbidden, often broken
inline constexpr Levels warning{Level::off, Level::warning, Level::warning};
inline constexpr Levels tolerated{Level::warning, Level::warning, Level::error};  // runs, is said
inline constexpr Levels advice{Level::off, Level::info, Level::warning};
inline constexpr Levels info{Level::off, Level::info, Level::info};
}  // namespace levels

constexpr Rule row(std::string_view id, levels::Levels levels, std::string_view title,
                   int ir_from = 1, int ir_to = newest_known) {
  return {id, title, levels.runnable, levels.standard, levels.strict, ir_from, ir_to};
}

inline constexpr auto rule_table = std::to_array<Rule>({
    // Model
    row("M-02", levels::error, "ir_version is present and positive"),
    row("M-03", levels::fatal, "ir_version is one of the standard's"),
    row("M-04", levels::error, "opset_import names the operator sets, ai.onnx among them", 3),
    row("M-05", levels::error, "opset_import exists from IR version 3", 1, 2),
    row("M-06", levels::fatal, "nodes of ai.onnx need its version in opset_import", 3),
    row("M-08", levels::error, "a domain is imported once"),
    row("M-10", levels::fatal, "an imported version is positive"),
    row("M-12", levels::fatal, "an imported version is one of the standard's"),
    row("M-13", levels::info, "producer_name and producer_version say who made the model"),
    row("M-14", levels::info, "the model's domain is a reversed DNS name"),
    row("M-17", levels::fatal, "a model has a graph"),
    row("M-19", levels::error, "keys of the model's metadata are distinct"),
    row("M-21", levels::warning, "functions exist from IR version 8", 1, 7),
    row("M-25", levels::lax, "fields are not newer than ir_version"),
    row("V-10", levels::lax, "ir_version is at least that of the release with this opset"),
    // Operator sets
    row("O-03", levels::info, "domains of operator sets are reversed DNS names"),
    row("O-04", levels::fatal, "an operator is defined by an imported operator set or a function"),
    row("O-11", levels::warning, "experimental operators may change"),
    row("O-12", levels::tolerated, "experimental operators of ai.onnx are gone"),
    row("O-13", levels::error, "a deprecated operator is not used"),
    row("O-14", levels::warning, "preview operator sets may change in place"),
    row("D-25", levels::info, "operators of unknown domains cannot be checked"),
    // Functions
    row("F-03", levels::fatal, "domain, name and overload of a function are unique"),
    row("F-04", levels::fatal, "a function has a name"),
    row("F-06", levels::error, "the domain of a called function is imported"),
    row("F-07", levels::fatal, "nodes of a function are in topological order"),
    row("F-08", levels::fatal, "values of a function are assigned once"),
    row("F-09", levels::fatal, "a function sees its own values only"),
    row("F-10", levels::fatal, "inputs and outputs of a function have distinct names"),
    row("F-11", levels::fatal, "outputs of a function are defined in it"),
    row("F-12", levels::fatal, "attributes of a function are declared once"),
    row("F-13", levels::warning, "defaults of a function's attributes exist from IR version 9", 8,
        8),
    row("F-15", levels::fatal, "an attribute a body needs is given by the call or has a default"),
    row("F-16", levels::fatal, "a function imports the operator sets its body uses, each once"),
    row("F-17", levels::error, "a function's operators mean the same under the model's imports"),
    row("F-18", levels::fatal, "a function does not call itself"),
    row("F-19", levels::warning, "a function does not have the name of a standard operator"),
    row("F-21", levels::warning, "a function's value_info names values of its body, each once"),
    row("F-22", levels::warning, "keys of a function's metadata are distinct"),
    row("F-23", levels::warning, "an overload selects a function of the model"),
    row("F-24", levels::fatal, "a call has no more inputs and outputs than the function"),
    row("F-25", levels::lax, "a call gives attributes the function declares"),
    row("F-28", levels::fatal, "at most 10000 functions, calls at most 64 deep"),
    // Graphs
    row("G-02", levels::fatal, "nodes form no cycle"),
    row("G-03", levels::fatal, "nodes of the main graph are in topological order"),
    row("G-04", levels::fatal, "nodes of a nested graph are in topological order"),
    row("G-05", levels::error, "a graph has a name"),
    row("G-06", levels::fatal, "inputs and outputs of the main graph have types"),
    row("G-07", levels::lax, "inputs and outputs of the main graph have a rank"),
    row("G-10", levels::fatal, "initializers have distinct names"),
    row("G-13", levels::lax, "initializers are graph inputs up to IR version 3", 1, 3),
    row("G-15", levels::info, "constants are initializers, not inputs", 4),
    row("G-17", levels::fatal, "an initializer agrees with the input of its name"),
    row("G-19", levels::warning, "value_info names inner values, each once"),
    row("G-21", levels::fatal, "a value is assigned once"),
    row("G-22", levels::fatal, "a name is an input, an initializer or an output of a node"),
    row("G-23", levels::fatal, "outputs of a graph are values of it"),
    row("G-25", levels::warning, "outputs of a graph have distinct names"),
    row("G-26", levels::info, "doc_string holds no HTML"),
    row("G-27", levels::warning, "keys of a graph's metadata are distinct"),
    row("G-28", levels::warning,
        "quantization annotations use the standard's keys and known names"),
    // Names
    row("N-01", levels::advice, "names are C identifiers"),
    row("N-05", levels::warning, "names of nodes are distinct in a graph"),
    row("N-06", levels::info, "names of graphs are distinct"),
    row("N-09", levels::fatal, "values have non-empty names"),
    row("N-11", levels::warning, "names are UTF-8"),
    // Nodes
    row("D-01", levels::fatal, "a node has an op_type"),
    row("D-07", levels::error, "a node has outputs"),
    row("D-08", levels::fatal, "an input of a node is a value known to its graph"),
    row("D-10", levels::fatal, "a node has the inputs, outputs and attributes of its operator"),
    row("D-11", levels::fatal, "a variadic operator has its least number of values"),
    row("D-15", levels::fatal, "a required input or output is given"),
    row("D-16", levels::warning, "empty names after the last parameter are no arguments"),
    row("D-22", levels::fatal, "a required attribute is given"),
    row("D-23", levels::said, "an attribute is one of the operator's"),
    row("D-24", levels::warning,
        "overload and metadata of nodes exist from IR version 10, "
        "devices from 11; metadata keys are distinct"),
    // Attributes
    row("A-01", levels::fatal, "an attribute has a name"),
    row("A-02", levels::fatal, "an attribute's type is the kind of its value", 2),
    row("A-04", levels::error, "an attribute has one value", 2),
    row("A-05", levels::fatal, "an attribute of a message kind has its message"),
    row("A-06", levels::error, "an attribute says its type", 2),
    row("A-08", levels::warning, "strings are UTF-8"),
    row("A-10", levels::warning, "sparse tensor attributes exist from IR version 6, types from 8"),
    row("A-12", levels::error, "a reference to an attribute carries no value"),
    row("A-13", levels::fatal, "references to attributes occur in functions only"),
    row("A-14", levels::fatal, "a referenced attribute is declared by the function"),
    row("A-16", levels::fatal, "attributes of a node have distinct names"),
    // Nested graphs
    row("S-01", levels::fatal, "inputs and outputs of nested graphs have names"),
    row("S-03", levels::fatal, "nested graphs see what is defined before their node"),
    row("S-04", levels::error, "outputs of nested nodes differ from outer names"),
    row("S-05", levels::lax, "inputs and initializers of nested graphs differ from outer names"),
    row("S-07", levels::error, "outputs of a nested graph are values of it"),
    row("S-08", levels::error, "an input of a nested graph is no initializer", 4),
    row("S-09", levels::fatal,
        "further inputs of a nested graph are constants, after the actual ones", 1, 3),
    row("S-11", levels::fatal,
        "a nested graph has the inputs and outputs its operator gives and takes", 4),
    // Types
    row("T-02", levels::warning, "sequences and maps exist from IR version 6", 1, 5),
    row("T-03", levels::warning, "optional types exist from IR version 8", 1, 7),
    row("T-04", levels::warning, "sparse tensor types exist from IR version 8", 1, 7),
    row("T-06", levels::fatal, "tensor types have an element type"),
    row("T-07", levels::fatal, "sequence types have an element type"),
    row("T-08", levels::fatal, "map types have an integer or string key type and a value type"),
    row("T-09", levels::fatal, "optional types hold a tensor, sequence, map or sparse tensor"),
    row("T-11", levels::error, "opaque types have a name"),
    row("T-13", levels::fatal, "a type says what it is"),
    row("T-15", levels::warning, "an entry of value_info has a name"),
    row("T-16", levels::info, "denotations of types are the standard's"),
    row("E-15", levels::warning, "elements of string tensors are UTF-8"),
    row("E-17", levels::warning, "element types are not newer than ir_version"),
    // Tensors
    row("X-06", levels::fatal, "a tensor has an element type of the standard"),
    row("X-07", levels::fatal, "dimensions are not negative, their product fits 63 bits"),
    row("X-09", levels::fatal, "one field holds the elements of a tensor"),
    row("X-10", levels::fatal, "float_data holds float and complex64"),
    row("X-11", levels::fatal, "int32_data holds integers of up to 32 bits, bool and small floats"),
    row("X-12", levels::fatal,
        "int64_data, uint64_data, double_data and string_data hold their types"),
    row("X-14", levels::fatal, "raw_data holds no strings"),
    row("X-17", levels::warning, "bool elements are 0 or 1"),
    row("X-21", levels::fatal, "int32_data holds two 4-bit or four 2-bit elements an entry"),
    row("X-23", levels::warning, "elements in int32_data fit their type"),
    row("X-24", levels::warning, "uint32 elements in uint64_data fit 32 bits"),
    row("X-25", levels::warning, "strings have no NUL at the end and no byte-order mark"),
    row("X-26", levels::fatal, "a tensor has as many elements as its shape says"),
    row("X-27", levels::fatal, "segmented tensors are not supported"),
    row("X-29", levels::fatal, "the values of a sparse tensor have rank 1"),
    row("X-30", levels::fatal, "a sparse initializer has a name"),
    row("X-31", levels::fatal, "indices of a sparse tensor are [NNZ] or [NNZ, rank]"),
    row("X-32", levels::fatal, "indices of a sparse tensor ascend"),
    row("X-33", levels::fatal, "indices of a sparse tensor lie in its shape"),
    row("X-34", levels::fatal, "indices of a sparse tensor are int64, its dimensions positive"),
    row("X-35", levels::info, "a sparse tensor stores no zeros"),
    // External data
    row("XD-02", levels::fatal, "data_location is default or external"),
    row("XD-03", levels::fatal, "external data has a location"),
    row("XD-04", levels::error, "an external tensor has no other data"),
    row("XD-05", levels::fatal, "a location is a relative path without '..'"),
    row("XD-09", levels::fatal, "offset and length are decimal numbers"),
    row("XD-10", levels::info, "offsets are multiples of 4096"),
    row("XD-14", levels::warning, "external tensors do not overlap"),
    row("XD-16", levels::fatal, "strings are not external"),
    row("XD-18", levels::warning, "keys of external data are the standard's, each once"),
    row("XD-19", levels::warning, "external_data needs data_location"),
    // Shapes
    row("SH-04", levels::warning, "no name stands for several dimensions"),
    row("SH-06", levels::warning, "names of dimensions are not empty"),
    row("SH-07", levels::lax, "dimensions are not negative"),
    row("SH-08", levels::advice, "names of dimensions are C identifiers"),
    row("SH-14", levels::info, "denotations of dimensions are the standard's"),
    row("SH-15", levels::warning, "operators carry denotations along and are given their layout"),
    // Training
    row("TR-01", levels::warning, "training information exists from IR version 7", 1, 6),
    row("TR-05", levels::error, "an initialization graph has no inputs"),
    row("TR-07", levels::error, "initialization bindings need an initialization graph"),
    row("TR-08", levels::error, "a binding sets an initializer"),
    row("TR-09", levels::error, "an initialization binding takes an output of the initialization"),
    row("TR-10", levels::error, "an initialization binding occurs once"),
    row("TR-11", levels::error, "an update binding occurs once"),
    row("TR-12", levels::error, "an update binding takes an output of the algorithm"),
    row("TR-14", levels::error, "main graph and algorithm together obey the rules of graphs"),
    row("TR-21", levels::error, "what a binding assigns has the type of its initializer"),
    row("TR-23", levels::error, "a binding does not set a sparse initializer"),
    // Multi-device
    row("MD-02", levels::error, "a device configuration has a name and devices"),
    row("MD-03", levels::error, "a device configuration names all devices or none"),
    row("MD-04", levels::error, "a node's configuration is one of the model's"),
    row("MD-07", levels::error, "a sharding names an input or output of its node"),
    row("MD-08", levels::warning, "devices are in the configuration or the group map"),
    row("MD-09", levels::error, "a sharded axis lies in the rank"),
    row("MD-11", levels::error, "a sharding has at least one shard"),
    row("MD-12", levels::warning, "there are as many devices as shards"),
    row("MD-18", levels::warning, "the inputs of an operator are split in ways that fit together"),
    row("MD-19", levels::info,
        "the operators whose tensors are split are those the standard covers"),
    // Metadata
    row("MP-03", levels::warning,
        "metadata of graphs, functions, values and tensors exists from IR "
        "version 10, its keys are distinct"),
    row("MP-04", levels::info, "metadata keys have a reversed DNS prefix", 10),
    row("MP-05", levels::info, "metadata of images has the standard's values"),
    // Limits of ours
    row("L-01", levels::fatal, "graphs nest at most 64 deep"),
    row("L-02", levels::fatal, "types nest at most 16 deep"),
    row("L-03", levels::fatal, "shapes have at most 4096 dimensions"),
});

// A row of the table by its id; an unknown id does not compile.
class RuleId {
 public:
  consteval RuleId(const char* id) : index_(find(id)) {}  // NOLINT: written as rule ids in calls
  constexpr const Rule& operator*() const { return rule_table[index_]; }
  constexpr const Rule* operator->() const { return &rule_table[index_]; }

 private:
  static consteval size_t find(std::string_view id) {
    for (size_t i = 0; i < rule_table.size(); ++i) {
      if (rule_table[i].id == id) return i;
    }
    throw "no such rule";
  }

  size_t index_;
};

}  // namespace sardonyx::check
