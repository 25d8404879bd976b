// Any bytes as a model file that is read through a window on its descriptor: the same model or the
// same error as from memory, whatever sizes the pieces come in.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/read.h"
#include "wire/write.h"

namespace {

// How long the next pieces are: drawn from the input, so that an input always reads the same way.
uint64_t draws = 0;
uint64_t pieces = 0;

uint64_t draw() {
  draws ^= draws << 13;
  draws ^= draws >> 7;
  draws ^= draws << 17;
  return draws;
}

void seed_draws(const uint8_t* data, size_t size) {
  draws = 0xcbf29ce484222325;
  for (size_t i = 0; i < std::min<size_t>(size, 4096); ++i)
    draws = (draws ^ data[i]) * 0x100000001b3;
  draws |= 1;
  pieces = 0;
}

size_t piece_of(size_t size) {
  switch (draw() % 4) {
    case 0: return 1 + draw() % std::min<size_t>(size, 3);
    case 1: return 1 + draw() % size;
    case 2: return std::max<size_t>(1, size - draw() % std::min<size_t>(size, 9));
    default: return size;
  }
}

}  // namespace

// What the window reads with: as the system may, it gives less than was asked for, and is
// interrupted at times.
extern "C" ssize_t pread(int descriptor, void* to, size_t size, off_t offset) {
  ++pieces;
  if (draw() % 16 == 0) {
    errno = EINTR;
    return -1;
  }
  return syscall(SYS_pread64, descriptor, to, size == 0 ? 0 : piece_of(size), offset);
}

namespace {

using namespace sardonyx;

class File {
 public:
  File() : descriptor_(memfd_create("model", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "there is memory for a file");
  }
  void hold(const uint8_t* data, size_t size) const {
    require(ftruncate(descriptor_, static_cast<off_t>(size)) == 0, "the file has its size");
    size_t done = 0;
    while (done < size) {
      const ssize_t put = pwrite(descriptor_, data + done, size - done, static_cast<off_t>(done));
      require(put > 0, "the file is written");
      done += static_cast<size_t>(put);
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// The model written again, or the error.
template <class Read>
std::string outcome(const Read& read) {
  try {
    return "model " + wire::write_model(read());
  } catch (const Error& error) {
    return "error " + error.message();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const File file;
  file.hold(data, size);
  seed_draws(data, size);
  const std::string from_memory = outcome([&] {
    return wire::read_model(Bytes(nullptr, reinterpret_cast<const std::byte*>(data), size));
  });
  const std::string from_file = outcome([&] { return wire::read_model(MappedFile(file.path())); });
  require(from_file == from_memory, "a file is read as its bytes are");
  require(size == 0 || pieces != 0, "the file was read piece by piece");
  return 0;
}
