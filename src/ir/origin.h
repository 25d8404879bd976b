// What stands behind a node that rewrites made: the nodes of the model whose work it does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/model.h"

namespace sardonyx::ir {

// How errors call a node: what it is and, where it is not in the file as such, where it came from.
std::string place_of(const Node& node);

// A node as messages name it: "Add 'attn/sum'"; one without a name by what it makes, "Add making
// 'y'".
std::string identify(const Node& node);

// How messages name a value that a node reads or makes: as the file does. Values that came to be
// inside a function have its name for them, those of nodes that stand for another one have none:
// "".
std::string_view told_name(const Node& node, std::string_view value);

// How a node is named among the sources of another: "Add 'attn/sum'"; one without a name by what it
// makes, "Add making 'y'"; with its origin in parentheses where it has one.
std::string source_text(const Node& node);

// To be called before what a node is known by changes: its operator, or the outputs of one without
// a name.
void keep_source(Node& node);

// Makes `node`, which does the work of `parts`, say so: its sources are theirs, each part without
// sources being one itself, and helpers being none. Of a single part that is no helper it takes the
// origin, too, and keeps no list where it is that part in another form.
void set_sources(Node& node, std::span<const Node* const> parts);

// What to tell of a node's sources: nothing where the only one is the node itself.
std::vector<std::string> told_sources(const Node& node);

}  // namespace sardonyx::ir
