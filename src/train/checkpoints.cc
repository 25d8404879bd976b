#include "train/checkpoints.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/os.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view stem = "checkpoint-", ending = ".onnx";
constexpr size_t digits = 12;

// -1 where the name is none of a checkpoint's.
int64_t step_of(const std::string& name) {
  if (name.size() != stem.size() + digits + ending.size() || !name.starts_with(stem) ||
      !name.ends_with(ending))
    return -1;
  int64_t step = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = name[stem.size() + i];
    if (c < '0' || c > '9') return -1;
    step = step * 10 + (c - '0');
  }
  return step;
}

struct Written {
  fs::file_time_type at;
  int64_t step;
  std::string path;
};

// In the order in which they were written: steps that a training before this one did into the same
// folder may be more.
std::vector<Written> checkpoints_of(const std::string& folder) {
  std::vector<Written> found;
  std::error_code problem;
  fs::directory_iterator at(os::path(folder), problem), end;
  if (problem) fail_at(folder, ErrorCode::unreadable, "can't be read: {}", problem.message());
  for (; at != end; at.increment(problem)) {
    if (problem) fail_at(folder, ErrorCode::unreadable, "can't be read: {}", problem.message());
    const int64_t step = step_of(os::text(at->path().filename()));
    if (step < 0) continue;
    const fs::file_time_type time = at->last_write_time(problem);
    if (!problem) found.push_back({time, step, os::text(at->path())});
    problem.clear();  // it is gone since
  }
  std::ranges::sort(found, {}, [](const Written& one) { return std::pair(one.at, one.step); });
  return found;
}

// What a process that was killed while it wrote a checkpoint has left.
void remove_unfinished(const std::string& folder) {
  constexpr size_t whole = stem.size() + digits + ending.size();
  std::error_code problem, ignored;
  for (fs::directory_iterator at(os::path(folder), problem), end; !problem && at != end;
       at.increment(problem)) {
    const std::string name = os::text(at->path().filename());
    if (name.size() > whole && name.ends_with(".tmp") && step_of(name.substr(0, whole)) >= 0)
      fs::remove(at->path(), ignored);
  }
}

}  // namespace

Checkpoint last_checkpoint(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(os::path(folder), ignored)) return {};
  const auto found = checkpoints_of(folder);
  return found.empty() ? Checkpoint() : Checkpoint{found.back().path, found.back().step};
}

namespace train {

CheckpointFolder::CheckpointFolder(const std::string& path) : path_(path) {
  std::error_code problem;
  fs::create_directories(os::path(path), problem);
  if (problem) fail_at(path, ErrorCode::unreadable, "can't be made: {}", problem.message());
  const std::string lock = os::text(os::path(path) / "lock");
  lock_ = os::Descriptor(os::open(lock, os::Opening::lock));
  if (!lock_.is_open())
    fail_at(lock, ErrorCode::unreadable, "can't be written: {}", std::strerror(errno));
  if (os::lock(lock_.get())) {
    remove_unfinished(path);
    return;
  }
  const int reason = errno;
  if (reason == EWOULDBLOCK)
    fail_at(path, ErrorCode::unreadable,
            "another process trains into this folder; wait for it, or name another folder");
  fail_at(lock, ErrorCode::unreadable, "can't be locked: {}", std::strerror(reason));
}

std::string CheckpointFolder::write(const TrainingSession& session, int64_t step,
                                    int64_t keep) const {
  const std::string name = fmt::format("{}{:012}{}", stem, step, ending);
  std::string path = os::text(os::path(path_) / name);
  session.save(path);
  auto all = checkpoints_of(path_);
  const auto most = static_cast<size_t>(std::max<int64_t>(keep, 1));
  for (size_t i = 0; i + most < all.size(); ++i) {
    std::error_code ignored;
    if (all[i].path != path) fs::remove(os::path(all[i].path), ignored);
  }
  return path;
}

}  // namespace train
}  // namespace sardonyx
