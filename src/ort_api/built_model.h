// What the handles of the model editor hold: models that callers build of nodes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ort_api/kernels.h"
#include "ort_api/model_editor.h"

namespace sardonyx::ort_api {

struct OrtValueInfo {
  std::string name;
  OrtTypeInfo type;
};

struct OrtNode {
  std::string type, domain, name;
  std::vector<std::string> inputs, outputs;  // "": absent
  std::vector<OrtOpAttr> attributes;
};

// What it is given belongs to it.
struct OrtGraph {
  struct Initializer {
    std::string name;
    std::unique_ptr<OrtValue> value;
    bool is_external;  // its memory stays until all sessions are gone
  };
  using Places = std::vector<std::unique_ptr<OrtValueInfo>>;
  std::optional<Places> inputs, outputs;  // nothing: not set
  std::vector<std::unique_ptr<OrtNode>> nodes;
  std::vector<Initializer> initializers;
  std::set<std::string, std::less<>> initializer_names;
  std::map<const void*, std::string> members;  // the nodes and values that it has, by name
};

struct OrtModel {
  std::map<std::string, int, std::less<>> opsets;  // by domain, "" for "ai.onnx"
  std::unique_ptr<OrtGraph> graph;
};

void add_model_editor_sessions(OrtModelEditorApi& table);

}  // namespace sardonyx::ort_api
