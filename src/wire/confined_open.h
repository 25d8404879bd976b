// Opening a file that must lie inside a folder, whatever links or names say. Internal to wire.
#pragma once

#include <string>
#include <utility>

namespace sardonyx::wire {

// An open file descriptor, closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

// Opens `relative` for reading below the folder that `folder` is open on, following no link in any
// component. On failure the descriptor is not open and errno says why: ELOOP for a link. `relative`
// has no ".." component and does not start with "/". Linux resolves it in one call where it can;
// the second function goes component by component, on any system.
Descriptor open_confined(int folder, const std::string& relative);
Descriptor open_confined_by_component(int folder, const std::string& relative);

// Where an open descriptor's file really is; empty where the system does not tell.
std::string real_path_of(int descriptor);

}  // namespace sardonyx::wire
