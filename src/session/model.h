// What a Model holds.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_account.h"
#include "check/check.h"
#include "ir/model.h"
#include "ops/custom.h"
#include "ops/prepare_context.h"
#include "sardonyx/session.h"
#include "session/variants.h"
#include "wire/external.h"

namespace sardonyx {

struct Model::Implementation {
  ir::Model model;          // as the file says, external data resolved to views of its files
  Bytes file;               // the mapped file; empty for models from text
  ops::CustomTable custom;  // operators from outside that it may call
  bool strict = false;      // no lenient reading
  std::function<void(const Warning&)> warn;  // may be null
  SharedAccount memory;                      // that the model charges; null: nobody counts
  mutable ops::PackCache packs;
  mutable Variants variants;  // after the packs, which their plans use

  // Whether the model can run, found out when it is first asked, which is when `warn` is told.
  struct Judged {
    MemoryCharge memory;  // of the mended model
    std::optional<ir::Model>
        mended;  // what runs instead of `model`, where lenient reading mended it
    std::vector<check::Diagnostic> findings;  // of the checker's runnable profile, after mending
  };
  const Judged& judged() const;
  const ir::Model& runnable() const { return judged().mended ? *judged().mended : model; }

 private:
  void judge() const;

  mutable std::once_flag once_;
  mutable Judged judged_;
};

}  // namespace sardonyx
