// What a declared dimension says. Exporters write a size of which nothing is known in many ways;
// which ones is decided here and nowhere else (docs/inference.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "ir/model.h"

namespace sardonyx::ir {

// A shape that declares more dimensions says nothing: each costs a hundred times the bytes that ask
// for it, and no session runs a model with one (L-03).
inline constexpr size_t max_declared_rank = 4096;

// Whether a dim_param names nothing: empty or blank, "?", "None", a negative number, "unk__12". Two
// of them need not be equal, even where they are spelled the same.
bool is_anonymous(std::string_view param);

// The number that a dimension must be; nullopt where it says none. Only numbers above 0 say one:
// exporters write 0 and -1 where a size is open, and a size that is 0 fits an open one.
std::optional<int64_t> declared_number(const Dimension& dim);
// Makes the dimension a number, 0 too: what a caller says, no file can. (A field that holds both a
// number and a name, which in a file exclude each other, means just the number.)
void set_number(Dimension& dim, int64_t number);
// The name of a size that must be the same wherever the name occurs; empty where it has none.
std::string_view declared_name(const Dimension& dim);
// Neither a number nor a name.
bool is_anonymous(const Dimension& dim);
// A shape of rank 1 whose size is declared as 0: no open size but a list without elements, as the
// axes, scales or sizes are that a node is not given.
bool is_empty_list(const TensorShape& shape);

// Gives every anonymous size of the graph's inputs the name of its place, "image.2" for dimension 2
// of 'image', and leaves numbers above 0 and names as they are. A name that another size has is
// made another one by underscores.
void name_open_sizes(Graph& graph);
void name_open_sizes(std::vector<ValueInfo>& inputs);

// Gives each size of the main graph's inputs whose name occurs there more than once a name of its
// own, that of its place. What else is declared to have such a size says nothing of it any more.
void separate_sizes(Model& model);

// The names of sizes that the inputs have, in order, each once.
std::vector<std::string> size_names(const std::vector<ValueInfo>& values);

// A declared type as text, "float[batch,?,3]".
std::string declared_text(const TypeProto& type);

}  // namespace sardonyx::ir
