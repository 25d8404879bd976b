// Lines over TCP, for threads that can be told to stop while they wait. Nothing here knows of
// models.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace example {

// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  int get() const { return number_; }

 private:
  int number_;
};

[[noreturn]] inline void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// What every waiting thread looks at: all of them return once stop() has been called.
class Stop {
 public:
  Stop() {
    std::array<int, 2> ends;
    if (pipe(ends.data()) != 0) fail("a pipe can't be made");
    reading_ = Descriptor(ends[0]), writing_ = Descriptor(ends[1]);
  }
  void stop() { writing_.close(); }

  enum class Waited { ready, stopped, too_long };
  Waited wait_for(int descriptor, short events, int milliseconds) const {
    std::array<pollfd, 2> waiting{{{descriptor, events, 0}, {reading_.get(), POLLIN, 0}}};
    int ready = 0;
    while ((ready = poll(waiting.data(), waiting.size(), milliseconds)) < 0 && errno == EINTR) {
    }
    if (waiting[1].revents != 0) return Waited::stopped;
    return ready > 0 ? Waited::ready : Waited::too_long;
  }

 private:
  Descriptor reading_, writing_;
};

// Listens on this machine alone; port 0: any that is free.
class Listener {
 public:
  explicit Listener(uint16_t port)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (socket_.get() < 0) fail("a socket can't be made");
    setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(socket_.get(), 64) != 0 ||
        getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      fail("the port can't be listened on");
    port_ = ntohs(address.sin_port);
  }
  uint16_t port() const { return port_; }

  // The next connection; nothing once `stop` was called. Any number of threads may wait here.
  std::optional<Descriptor> accept(const Stop& stop) const {
    while (stop.wait_for(socket_.get(), POLLIN, -1) != Stop::Waited::stopped) {
      Descriptor connection(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (connection.get() >= 0) return connection;
      // Another thread was faster, or the caller has gone; else descriptors are short for a while.
      if (errno != EAGAIN && errno != ECONNABORTED) usleep(100000);
    }
    return std::nullopt;
  }

 private:
  Descriptor socket_;
  uint16_t port_ = 0;
};

// A client's lines, one after the other. Nobody can hold a thread for ever or fill the memory: both
// waiting and lines have an end.
class Connection {
 public:
  static constexpr size_t longest_line = size_t{1} << 20;
  static constexpr int patience = 30000;  // milliseconds

  Connection(Descriptor socket, const Stop& stop) : socket_(std::move(socket)), stop_(stop) {}

  enum class Read { line, ended, too_long };
  Read read(std::string& line) {
    for (;;) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        line.assign(buffer_, 0, end);
        buffer_.erase(0, end + 1);
        if (line.ends_with('\r')) line.pop_back();
        return Read::line;
      }
      if (buffer_.size() > longest_line) return Read::too_long;
      if (stop_.wait_for(socket_.get(), POLLIN, patience) != Stop::Waited::ready)
        return Read::ended;
      std::array<char, 16384> piece;
      const ssize_t got = recv(socket_.get(), piece.data(), piece.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return Read::ended;
      if (got > 0) buffer_.append(piece.data(), static_cast<size_t>(got));
    }
  }

  // False where the client does not take it.
  bool write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent >= 0)
        text.remove_prefix(static_cast<size_t>(sent));
      else if (errno != EAGAIN && errno != EINTR)
        return false;
      else if (stop_.wait_for(socket_.get(), POLLOUT, patience) != Stop::Waited::ready)
        return false;
    }
    return true;
  }

 private:
  Descriptor socket_;
  const Stop& stop_;
  std::string buffer_;
};

}  // namespace example
