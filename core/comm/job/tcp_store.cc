#include "core/comm/job/tcp_store.h"

#include <poll.h>

#include "core/base/utf8.h"
#include "core/comm/job/store_table.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

// A server that works answers at once; only a Get may have to wait for another rank.
constexpr milliseconds kAnswerTime{30'000};
// A call notices an abort after at most this time.
constexpr milliseconds kAbortSlice{50};

bool IsExpiry(const Status& status) {
  return status.code() == Code::kDeadlineExceeded || status.code() == Code::kCancelled;
}

}  // namespace

TcpStore::TcpStore(JoinOptions options)
    : options_([&] {
        options.hello.purpose = Purpose::kStore;
        return std::move(options);
      }()) {}

Status TcpStore::Set(std::string_view key, std::string_view value, const WaitLimit& limit) {
  // The server checks as well; a larger message would cost the connection.
  if (key.size() > kMaxKeyBytes || value.size() > kMaxValueBytes) {
    return LimitExceeded("store: key '", Printable(key, 100), "': a key has at most ", kMaxKeyBytes,
                         " bytes, a value ", kMaxValueBytes);
  }
  MessageWriter request = Message(Wire::kSet);
  request.Text(key);
  request.Text(value);
  return Ask(std::move(request).Take(), LimitWithin(limit, kAnswerTime)).status();
}

Result<std::string> TcpStore::Get(std::string_view key, const WaitLimit& limit) {
  if (key.size() > kMaxKeyBytes)
    return LimitExceeded("store: a key has at most ", kMaxKeyBytes, " bytes, not ", key.size());
  MessageWriter request = Message(Wire::kGet);
  request.Text(key);
  Result<std::string> answer = Ask(std::move(request).Take(), limit);
  if (answer.ok() || !IsExpiry(answer.status())) return answer;
  return Status(answer.status().code(), StrCat("store: key '", Printable(key), "': ",
                                               answer.status().code() == Code::kCancelled
                                                   ? "the wait was cancelled"
                                                   : "no rank has written it in time"));
}

void TcpStore::Abort(const Status& reason) {
  const std::lock_guard lock(mutex_);
  if (aborted_.ok()) aborted_ = reason;
}

Status TcpStore::abort_reason() {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

Result<Socket> TcpStore::TakeConnection(const WaitLimit& limit) {
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_.ok()) return aborted_;
    if (!idle_.empty()) {
      Socket socket = std::move(idle_.back());
      idle_.pop_back();
      return socket;
    }
  }
  MSRT_ASSIGN_OR_RETURN(Joined joined, JoinServer(options_, LimitWithin(limit, kAnswerTime)));
  return std::move(joined.socket);
}

Status TcpStore::AwaitAnswer(const Socket& socket, const WaitLimit& limit) {
  while (true) {
    const Status ready = AwaitReady(socket.fd(), POLLIN, LimitWithin(limit, kAbortSlice));
    if (!IsExpiry(ready)) return ready;
    MSRT_RETURN_IF_ERROR(abort_reason());
    if (limit.expired()) return ready;
  }
}

Result<std::string> TcpStore::Ask(const std::string& request, const WaitLimit& limit) {
  MSRT_ASSIGN_OR_RETURN(Socket socket, TakeConnection(limit));
  Status status = socket.Send(request, LimitWithin(limit, kAnswerTime));
  if (status.ok()) status = AwaitAnswer(socket, limit);
  std::string answer;
  if (status.ok()) {
    // The answer has begun to arrive.
    auto received = ReceiveMessage(&socket, kMaxValueBytes + 64, LimitWithin(limit, kAnswerTime));
    if (received.ok()) answer = *std::move(received);
    else status = std::move(received).status();
  }
  if (!status.ok()) {
    // The control connection knows more about a server that has gone.
    MSRT_RETURN_IF_ERROR(abort_reason());
    return std::move(status).Within(StrCat("store at ", options_.server));
  }
  MessageReader reader(answer);
  const auto kind = static_cast<Wire>(reader.U8());
  std::string value;
  if (kind == Wire::kError) status = ReadError(&reader);
  else if (kind == Wire::kValue) value = reader.Text();
  if (status.ok() && (!reader.complete() || (kind != Wire::kValue && kind != Wire::kDone)))
    return IoError("store at ", options_.server, ": the answer cannot be read");
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(socket));
  }
  if (!status.ok()) return status;
  return value;
}

Status StoreBarrier(Store* store, std::string_view name, int rank, int size,
                    const WaitLimit& limit) {
  const std::string ready = StrCat(name, "/ready");
  if (rank != 0) {
    MSRT_RETURN_IF_ERROR(store->Set(StrCat(name, "/", rank), ""));
    return store->Get(ready, limit).status();
  }
  std::string missing;
  Status first;
  for (int other = 1; other < size; ++other) {
    // After the limit has expired, the rest is asked with hardly any patience.
    const WaitLimit wait = first.ok() ? limit : LimitOf(milliseconds(20));
    const Status arrived = store->Get(StrCat(name, "/", other), wait).status();
    if (arrived.ok()) continue;
    if (!IsExpiry(arrived)) return arrived;
    if (first.ok()) first = arrived;
    StrAppend(&missing, missing.empty() ? "" : ", ", other);
  }
  if (!first.ok()) {
    return MakeStatus(first.code(), "barrier '", Printable(name), "': waited in vain for rank ",
                      missing);
  }
  return store->Set(ready, "");
}

}  // namespace msrt
