#include "wire/window.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/os.h"

namespace sardonyx::wire {

Window::Window(const Bytes& bytes, int descriptor)
    : file_(bytes.data()), file_size_(bytes.size()), descriptor_(descriptor), seen_(bytes.data()) {
  if (descriptor < 0) end_ = file_size_;
}

const std::byte* Window::move(size_t offset, size_t size) {
  if (size > most) return file_ + offset;
  // Weights are jumped over one at a time; nodes stand together, so that what follows is wanted.
  const bool goes_on = offset >= begin_ && offset <= end_;
  size_t wanted = goes_on ? std::max(2 * (end_ - begin_), 8 * least) : least;
  if (copy_ == nullptr) {  // a small model's nodes are in sight then, and what follows them
    copy_ = std::make_unique_for_overwrite<std::byte[]>(most);
    wanted = most;
  }
  const size_t length = std::min({std::max(wanted, size), most, file_size_ - offset});
  size_t done = 0;
  while (done < length) {
    const int64_t got = os::read_at(descriptor_, copy_.get() + done, length - done, offset + done);
    if (got < 0) fail(ErrorCode::unreadable, "cannot read: {}", std::strerror(errno));
    if (got == 0) fail(ErrorCode::unreadable, "the file became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  seen_ = copy_.get();
  begin_ = offset;
  end_ = offset + length;
  return seen_;
}

}  // namespace sardonyx::wire
