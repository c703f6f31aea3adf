#include "core/comm/job/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <thread>

namespace msrt {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

// A cancelled caller notices after at most this time.
constexpr milliseconds kCancelSlice{20};

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

Result<AddressList> Resolve(const Address& address, int type, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = StrCat(address.port);
  const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list);
  if (error == 0) return AddressList(list);
  return NotFound("host '", address.host,
                  "': ", error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error),
                  "; use a name that this host resolves, or a numeric address");
}

Socket NewSocket(const addrinfo& found) {
  return Socket(socket(found.ai_family, found.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void SendAtOnce(int fd) {
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Status ExpiredStatus(const WaitLimit& limit) {
  if (limit.cancelled != nullptr && limit.cancelled->load())
    return MakeStatus(Code::kCancelled, "cancelled");
  return MakeStatus(Code::kDeadlineExceeded, "no answer in time");
}

Status ConnectOne(const addrinfo& found, const WaitLimit& limit, Socket* connected) {
  Socket attempt = NewSocket(found);
  if (!attempt.is_open()) return IoError(std::strerror(errno));
  int error = connect(attempt.fd(), found.ai_addr, found.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) {
    MSRT_RETURN_IF_ERROR(AwaitReady(attempt.fd(), POLLOUT, limit));
    socklen_t length = sizeof error;
    if (getsockopt(attempt.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  }
  if (error != 0) return IoError(std::strerror(error));
  SendAtOnce(attempt.fd());
  *connected = std::move(attempt);
  return OkStatus();
}

uint16_t PortOf(const sockaddr_storage& name) {
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

}  // namespace

Result<Address> ParseAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  const Status wrong =
      InvalidArgument("address '", text, "': must be HOST:PORT, with an IPv6 address in brackets");
  if (colon == std::string_view::npos || colon == 0) return wrong;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos) return wrong;
  Address address{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (host.empty() || error != std::errc() || end != port.data() + port.size()) return wrong;
  return address;
}

std::string AddressText(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return StrCat(v6 ? "[" : "", address.host, v6 ? "]:" : ":", address.port);
}

WaitLimit LimitWithin(const WaitLimit& outer, milliseconds duration) {
  return {std::min(outer.until, std::chrono::steady_clock::now() + duration), outer.cancelled};
}

Status AwaitReady(int fd, short events, const WaitLimit& limit) {
  while (true) {
    milliseconds wait{60'000};
    if (limit.until != SteadyTime::max()) {
      const auto left = limit.until - std::chrono::steady_clock::now();
      wait = std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds(0), wait);
    }
    if (limit.cancelled != nullptr) wait = std::min(wait, kCancelSlice);
    pollfd ready{fd, events, 0};
    const int count = poll(&ready, 1, static_cast<int>(wait.count()));
    if (count > 0) return OkStatus();
    if (count < 0 && errno != EINTR) return IoError(std::strerror(errno));
    if (limit.expired()) return ExpiredStatus(limit);
  }
}

void Socket::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void Socket::ShutdownSending() { (void)shutdown(fd_, SHUT_WR); }

Result<size_t> Socket::SendSome(std::string_view bytes) {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return size_t{0};
  return IoError(std::strerror(errno));
}

Result<size_t> Socket::ReceiveSome(std::span<char> bytes) {
  const ssize_t received = recv(fd_, bytes.data(), bytes.size(), 0);
  if (received > 0) return static_cast<size_t>(received);
  if (received == 0) return IoError("the connection was closed");
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return size_t{0};
  return IoError(std::strerror(errno));
}

Status Socket::Send(std::string_view bytes, const WaitLimit& limit) {
  while (!bytes.empty()) {
    MSRT_ASSIGN_OR_RETURN(const size_t sent, SendSome(bytes));
    bytes.remove_prefix(sent);
    if (sent == 0) MSRT_RETURN_IF_ERROR(AwaitReady(fd_, POLLOUT, limit));
  }
  return OkStatus();
}

Status Socket::Receive(std::span<char> bytes, const WaitLimit& limit) {
  while (!bytes.empty()) {
    MSRT_ASSIGN_OR_RETURN(const size_t received, ReceiveSome(bytes));
    bytes = bytes.subspan(received);
    if (received == 0) MSRT_RETURN_IF_ERROR(AwaitReady(fd_, POLLIN, limit));
  }
  return OkStatus();
}

Result<Socket> Connect(const Address& address, bool keep_trying, const WaitLimit& limit) {
  MSRT_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, SOCK_STREAM, 0));
  milliseconds pause{10};
  while (true) {
    Status last;
    for (const addrinfo* found = list.get(); found != nullptr; found = found->ai_next) {
      Socket connected;
      last = ConnectOne(*found, limit, &connected);
      if (last.ok()) return connected;
    }
    const bool expired = limit.expired();
    if (!keep_trying || expired) {
      return std::move(last).Within(StrCat("cannot connect to ", address));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds(200));
  }
}

Result<Listener> Listener::Open(const Address& address) {
  MSRT_ASSIGN_OR_RETURN(const AddressList list, Resolve(address, SOCK_STREAM, AI_PASSIVE));
  Socket listening = NewSocket(*list);
  if (!listening.is_open()) return IoError("address ", address, ": ", std::strerror(errno));
  // A port of a connection that ended a moment ago may be used again; one with a listener may not.
  const int on = 1;
  (void)setsockopt(listening.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listening.fd(), list->ai_addr, list->ai_addrlen) != 0 ||
      listen(listening.fd(), 1024) != 0) {
    const int error = errno;
    return IoError("cannot listen at ", address, ": ", std::strerror(error),
                   error == EADDRINUSE ? "; choose another port, or end the process that uses it"
                   : error == EADDRNOTAVAIL ? "; use an address of this host"
                                            : "");
  }
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(listening.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0)
    return IoError("address ", address, ": ", std::strerror(errno));
  return Listener(std::move(listening), {address.host, PortOf(name)});
}

Result<Socket> Listener::Accept() {
  Socket accepted(accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.is_open()) {
    SendAtOnce(accepted.fd());
    return accepted;
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
    return LimitExceeded("no file descriptor is left: ", std::strerror(errno));
  // Everything else concerns one connection, which ended before it was accepted.
  return NotFound("nobody connects");
}

Result<std::string> OwnAddressToward(const std::string& host) {
  MSRT_ASSIGN_OR_RETURN(const AddressList list, Resolve({host, 9}, SOCK_DGRAM, 0));
  const Socket probe = NewSocket(*list);
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  char text[NI_MAXHOST];
  if (!probe.is_open() || connect(probe.fd(), list->ai_addr, list->ai_addrlen) != 0 ||
      getsockname(probe.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return IoError("host '", host, "' cannot be reached: ", std::strerror(errno));
  }
  const int error = getnameinfo(reinterpret_cast<sockaddr*>(&name), length, text, sizeof text,
                                nullptr, 0, NI_NUMERICHOST);
  if (error != 0) return IoError("host '", host, "': ", gai_strerror(error));
  return std::string(text);
}

}  // namespace msrt
