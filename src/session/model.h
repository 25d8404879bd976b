// What a Model holds.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "ir/model.h"
#include "ops/prepare_context.h"
#include "sardonyx/session.h"
#include "wire/external.h"

namespace sardonyx {

struct Model::Implementation {
  ir::Model model;         // as the file says, external data resolved to views of its files
  Bytes file;              // the mapped file; empty for models from text
  mutable ops::PackCache packs;

  // The file's pages are read again when they are needed; until then they need no memory.
  void give_back_pages() const;
};

}  // namespace sardonyx
