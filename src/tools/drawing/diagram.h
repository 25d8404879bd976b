// What a drawing of a model shows, before anything has a place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace sardonyx::drawing {

struct Diagram;

struct DiagramBox {
  enum class Kind { input, output, node, call };  // call: of one of the model's functions
  Kind kind = Kind::node;
  std::string title;               // the operator, or the value's name
  std::string name;                // of the node
  std::vector<std::string> lines;  // attributes, weights, and what it makes
  std::vector<Diagram> bodies;     // of If, Loop, Scan
};

struct DiagramEdge {
  int from = 0;
  int to = 0;
  std::string value;
  bool is_captured = false;  // a body reads it from around it
};

// A graph, or the body of a function. Constants and initializers are lines of what reads them.
struct Diagram {
  std::string title;
  std::vector<DiagramBox> boxes;
  std::vector<DiagramEdge> edges;
};

// The main graph, then the functions of the model. All texts are printable, and cut to a line's
// length. Types are those the model declares.
std::vector<Diagram> diagrams_of(const ir::Model& model);

// How many characters a text has.
size_t character_count(std::string_view text);

}  // namespace sardonyx::drawing
