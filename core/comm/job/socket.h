// TCP sockets of the rendezvous and the control connections. Nothing here blocks beyond its limit,
// raises SIGPIPE or survives an exec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/parallel_for.h"
#include "core/base/status.h"

namespace msrt {

struct Address {
  std::string host;
  uint16_t port = 0;  // 0, where a listener opens: any free port
};
// "host:port"; an IPv6 address is in brackets.
Result<Address> ParseAddress(std::string_view text);
std::string AddressText(const Address& address);
inline void AppendTo(std::string* out, const Address& address) { *out += AddressText(address); }

// Owns a non-blocking socket.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() { Close(); }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close();
  void ShutdownSending();

  // Moves some bytes without waiting. 0: none can be moved now. kIo: the peer has closed or reset
  // the connection.
  Result<size_t> SendSome(std::string_view bytes);
  Result<size_t> ReceiveSome(std::span<char> bytes);

  // Moves all bytes. kDeadlineExceeded or kCancelled if the limit expires first.
  Status Send(std::string_view bytes, const WaitLimit& limit);
  Status Receive(std::span<char> bytes, const WaitLimit& limit);

 private:
  int fd_ = -1;
};

// Tries the addresses of a host until one answers. `keep_trying`: also after all refused, until the
// limit expires, for servers that may start later than their clients.
Result<Socket> Connect(const Address& address, bool keep_trying, const WaitLimit& limit);

class Listener {
 public:
  static Result<Listener> Open(const Address& address);
  // With the port that the system chose.
  const Address& address() const { return address_; }
  int fd() const { return socket_.fd(); }
  // kNotFound if nobody waits. kLimitExceeded if the process has no file descriptor left.
  Result<Socket> Accept();

 private:
  Listener(Socket socket, Address address)
      : socket_(std::move(socket)), address_(std::move(address)) {}
  Socket socket_;
  Address address_;
};

// Returns the address of this host that is used to reach `host`. Sends nothing.
Result<std::string> OwnAddressToward(const std::string& host);

// Waits until the descriptor is ready for `events` (of poll). Errors as in Socket::Send.
Status AwaitReady(int fd, short events, const WaitLimit& limit);

// The limit that expires after `duration`, or with `outer`.
WaitLimit LimitWithin(const WaitLimit& outer, std::chrono::milliseconds duration);
inline WaitLimit LimitOf(std::chrono::milliseconds duration) { return LimitWithin({}, duration); }

}  // namespace msrt
