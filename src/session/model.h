// What a Model holds.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "ir/model.h"
#include "ops/custom.h"
#include "ops/prepare_context.h"
#include "sardonyx/session.h"
#include "session/variants.h"
#include "wire/external.h"

namespace sardonyx {

struct Model::Implementation {
  ir::Model model;                 // as the file says, external data resolved to views of its files
  Bytes file;                      // the mapped file; empty for models from text
  ops::CustomTable custom;         // operators from outside that it may call
  mutable std::once_flag checked;  // whether it can run at all
  mutable ops::PackCache packs;
  mutable Variants variants;  // after the packs, which their plans use
};

}  // namespace sardonyx
