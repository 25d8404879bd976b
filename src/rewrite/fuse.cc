#include "rewrite/fuse.h"

namespace sardonyx::rewrite {

void fuse(ir::Graph&, const infer::Scope&) {}

}  // namespace sardonyx::rewrite
