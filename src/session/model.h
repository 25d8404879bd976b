// What a Model holds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/check.h"
#include "ir/model.h"
#include "ops/custom.h"
#include "ops/prepare_context.h"
#include "sardonyx/session.h"
#include "session/variants.h"
#include "wire/external.h"

namespace sardonyx {

struct Model::Implementation {
  ir::Model model;  // as the file says, external data resolved to views of its files
  // What runs instead, where lenient reading mended the model.
  std::optional<ir::Model> mended;
  Bytes file;                                // the mapped file; empty for models from text
  ops::CustomTable custom;                   // operators from outside that it may call
  std::vector<check::Diagnostic> findings;   // of the checker's runnable profile, after mending
  std::function<void(const Warning&)> warn;  // may be null
  mutable ops::PackCache packs;
  mutable Variants variants;  // after the packs, which their plans use

  const ir::Model& runnable() const { return mended ? *mended : model; }
};

}  // namespace sardonyx
