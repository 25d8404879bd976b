#include "ops/contrib/varlen.h"

#include "base/fail.h"

namespace sardonyx::ops {

void require_of_run(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::run_failed, std::string(what));
}

TokenRange tokens_of(const RunContext& run, int i, int64_t tokens, int64_t batch, int64_t b) {
  if (!run.has_input(i)) return {b * (tokens / batch), tokens / batch};
  const int32_t* sums = run.in<int32_t>(i);
  const int64_t begin = sums[b], end = sums[b + 1];
  if ((b == 0 && begin != 0) || end <= begin || end > tokens || (b + 1 == batch && end != tokens))
    throw Error(ErrorCode::run_failed,
                fmt::format("the sums of the sequences' lengths must grow from 0 to {}; sequence "
                            "{} has tokens {} to {}",
                            tokens, b, begin, end));
  return {begin, end - begin};
}

}  // namespace sardonyx::ops
