#include "core/comm/job/job_server.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

#include "core/base/turns.h"
#include "core/comm/job/peer.h"
#include "core/comm/job/store_table.h"
#include "core/comm/job/wake_pipe.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

// Strangers that connect and say nothing: the oldest makes room for the next.
constexpr size_t kMaxPending = 256;
constexpr milliseconds kIdleTick{50}, kBusyTick{5};
constexpr milliseconds kPulsePeriod{200};

}  // namespace

class JobServer::Loop {
 public:
  Loop(JobServerOptions options, Listener listener, WakePipe wake)
      : options_(std::move(options)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        monitor_(options_.size, options_.silence_limit) {}

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.Wake();
    if (thread_.joinable()) thread_.join();
  }
  const Address& address() const { return listener_.address(); }

  void ReportExit(int rank, std::string how, bool failed) {
    {
      const std::lock_guard lock(mutex_);
      exits_.push_back({rank, std::move(how), failed});
    }
    wake_.Wake();
  }
  std::optional<JobFailure> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  Status AwaitAllLeft(const WaitLimit& limit) {
    std::unique_lock lock(mutex_);
    if (AwaitTurn(lock, left_, limit, [this] { return all_left_; })) return OkStatus();
    return MakeStatus(Code::kDeadlineExceeded, "job: some ranks are still there");
  }

 private:
  struct ProcessExit {
    int rank;
    std::string how;
    bool failed;
  };

  void Run();
  // Waits for sockets, and returns whether the loop goes on.
  bool Wait();
  void AcceptAll(SteadyTime now);
  void ServePeers(SteadyTime now);
  // Handles the messages of a peer that have arrived.
  void Serve(Peer* peer, SteadyTime now);
  void Greet(Peer* peer, const std::string& message, SteadyTime now);
  void ServeStore(Peer* peer, const std::string& message);
  void ServeControl(Peer* peer, const std::string& message, SteadyTime now);
  void Watch(SteadyTime now);
  void Abort(const JobFailure& failure);
  void SendToRanks(const std::string& message);
  void DropClosed(SteadyTime now);
  Peer* Find(uint64_t id);
  Status FailureStatus() const {
    return IoError("the job was aborted: ", monitor_.failure()->message);
  }

  const JobServerOptions options_;
  Listener listener_;
  WakePipe wake_;
  Monitor monitor_;
  StoreTable table_;
  std::list<Peer> peers_;
  std::vector<pollfd> polled_;
  uint64_t next_id_ = 1;
  SteadyTime next_pulse_, accept_after_;
  bool probed_ = false, aborted_ = false;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable left_;
  std::vector<ProcessExit> exits_;
  std::optional<JobFailure> failure_;
  bool stopping_ = false, all_left_ = false;
  std::thread thread_;
};

void JobServer::Loop::Run() {
  while (Wait()) {
    const SteadyTime now = std::chrono::steady_clock::now();
    AcceptAll(now);
    ServePeers(now);
    Watch(now);
    DropClosed(now);
  }
}

bool JobServer::Loop::Wait() {
  polled_.clear();
  polled_.push_back({wake_.fd(), POLLIN, 0});
  const bool accepts = std::chrono::steady_clock::now() >= accept_after_;
  polled_.push_back({accepts ? listener_.fd() : -1, POLLIN, 0});
  for (Peer& peer : peers_) {
    // A store's next request waits until the answer to the last has gone out: memory is bounded.
    const bool writes = !peer.outgoing.empty();
    polled_.push_back({peer.socket.fd(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    if (writes && peer.stage == Peer::Stage::kControl) polled_.back().events |= POLLIN;
  }
  const milliseconds tick = monitor_.suspects() && !aborted_ ? kBusyTick : kIdleTick;
  (void)poll(polled_.data(), polled_.size(), static_cast<int>(tick.count()));
  wake_.Drain();
  std::vector<ProcessExit> exits;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    exits.swap(exits_);
  }
  const SteadyTime now = std::chrono::steady_clock::now();
  for (ProcessExit& exit : exits) monitor_.Exit(exit.rank, std::move(exit.how), exit.failed, now);
  return true;
}

void JobServer::Loop::AcceptAll(SteadyTime now) {
  while (now >= accept_after_) {
    Result<Socket> accepted = listener_.Accept();
    if (!accepted.ok()) {
      // Without a descriptor left, accepting again at once would only spin.
      if (accepted.status().code() == Code::kLimitExceeded) accept_after_ = now + milliseconds(100);
      return;
    }
    peers_.emplace_back(next_id_++, *std::move(accepted), now);
    const auto pending = [](const Peer& p) { return p.stage < Peer::Stage::kStore; };
    if (std::count_if(peers_.begin(), peers_.end(), pending) > static_cast<long>(kMaxPending))
      std::find_if(peers_.begin(), peers_.end(), pending)->socket.Close();
  }
}

void JobServer::Loop::ServePeers(SteadyTime now) {
  // The order is that of `polled_`, after its first two; peers that have just come are at the end.
  size_t index = 2;
  for (Peer& peer : peers_) {
    const bool ready = index >= polled_.size() || polled_[index].revents != 0;
    ++index;
    if (!peer.socket.is_open()) continue;
    if (ready && peer.Flush() && (peer.outgoing.empty() || peer.stage == Peer::Stage::kControl) &&
        peer.Read()) {
      Serve(&peer, now);
    }
    if (peer.stage < Peer::Stage::kStore && now > peer.greet_until) peer.socket.Close();
  }
}

void JobServer::Loop::Serve(Peer* peer, SteadyTime now) {
  if (peer->stage == Peer::Stage::kToken) {
    const std::optional<bool> right = peer->CheckToken(options_.token);
    if (!right) return;
    if (!*right) {
      peer->Send(ErrorMessage(
          Wire::kRefused,
          InvalidArgument(
              "the token is not the one of this job; start all ranks with the same MSRT_TOKEN")));
      peer->CloseWhenSent();
      return;
    }
    peer->stage = Peer::Stage::kHello;
    peer->greet_until += kGreetingTime;
    peer->Send(BareMessage(Wire::kAccepted));
  }
  while (peer->socket.is_open() && !peer->closing) {
    if (peer->stage == Peer::Stage::kStore && !peer->outgoing.empty()) return;
    const auto message = peer->incoming.Next();
    if (!message.ok()) {
      peer->socket.Close();
      return;
    }
    if (!*message) return;
    switch (peer->stage) {
      case Peer::Stage::kToken:
        break;
      case Peer::Stage::kHello:
        Greet(peer, **message, now);
        break;
      case Peer::Stage::kStore:
        ServeStore(peer, **message);
        break;
      case Peer::Stage::kControl:
        ServeControl(peer, **message, now);
        break;
    }
  }
}

void JobServer::Loop::Greet(Peer* peer, const std::string& message, SteadyTime now) {
  const Result<Hello> hello = ReadHello(message);
  Status status = hello.status();
  if (status.ok() && aborted_) status = FailureStatus();
  if (status.ok() && hello->purpose == Purpose::kControl)
    status = monitor_.Join(hello->rank, hello->size, hello->host, hello->process, now);
  if (!status.ok()) {
    peer->Send(ErrorMessage(Wire::kRefused, status));
    peer->CloseWhenSent();
    return;
  }
  const bool control = hello->purpose == Purpose::kControl;
  peer->stage = control ? Peer::Stage::kControl : Peer::Stage::kStore;
  peer->rank = static_cast<int>(hello->rank);
  peer->incoming.set_max_bytes(control ? kMaxControlBytes : kMaxKeyBytes + kMaxValueBytes + 64);
  MessageWriter accepted = Message(Wire::kAccepted);
  accepted.U32(static_cast<uint32_t>(options_.silence_limit.count()));
  peer->Send(std::move(accepted).Take());
}

void JobServer::Loop::ServeStore(Peer* peer, const std::string& message) {
  MessageReader reader(message);
  const auto kind = static_cast<Wire>(reader.U8());
  const std::string_view key = reader.Text();
  if (kind == Wire::kSet) {
    const std::string_view value = reader.Text();
    if (!reader.complete()) return peer->socket.Close();
    const auto waiters = table_.Set(key, value);
    peer->Send(waiters.ok() ? BareMessage(Wire::kDone)
                            : ErrorMessage(Wire::kError, waiters.status()));
    if (!waiters.ok()) return;
    MessageWriter answer = Message(Wire::kValue);
    answer.Text(value);
    const std::string bytes = std::move(answer).Take();
    for (const uint64_t id : *waiters)
      if (Peer* waiter = Find(id)) waiter->Send(bytes);
    return;
  }
  if (kind != Wire::kGet || !reader.complete()) return peer->socket.Close();
  if (aborted_) return peer->Send(ErrorMessage(Wire::kError, FailureStatus()));
  const std::string* value = table_.Get(key, peer->id);
  if (value == nullptr) return;
  MessageWriter answer = Message(Wire::kValue);
  answer.Text(*value);
  peer->Send(std::move(answer).Take());
}

void JobServer::Loop::ServeControl(Peer* peer, const std::string& message, SteadyTime now) {
  MessageReader reader(message);
  const auto kind = static_cast<Wire>(reader.U8());
  if (kind == Wire::kBeat) {
    auto operations = ReadBeat(&reader);
    if (!operations) return peer->socket.Close();
    monitor_.Beat(peer->rank, *std::move(operations), now);
  } else if (kind == Wire::kFail) {
    monitor_.Fail(peer->rank, std::string(reader.Text()), now);
  } else if (kind == Wire::kGoodbye) {
    monitor_.Leave(peer->rank, now);
    peer->CloseWhenSent();
  } else {
    peer->socket.Close();
  }
}

// Looks for failures, and tells them.
void JobServer::Loop::Watch(SteadyTime now) {
  monitor_.Tick(now);
  if (monitor_.suspects() && !probed_) {
    probed_ = true;
    SendToRanks(BareMessage(Wire::kProbe));
  }
  if (monitor_.failure() != nullptr && !aborted_) Abort(*monitor_.failure());
  if (now >= next_pulse_) {
    next_pulse_ = now + kPulsePeriod;
    const std::string pulse = BareMessage(Wire::kPulse);
    for (Peer& peer : peers_)
      if (peer.stage == Peer::Stage::kControl && peer.outgoing.empty()) peer.Send(pulse);
  }
}

void JobServer::Loop::Abort(const JobFailure& failure) {
  aborted_ = true;
  MessageWriter abort = Message(Wire::kAbort);
  abort.U32(static_cast<uint32_t>(failure.rank));
  abort.Text(failure.message);
  SendToRanks(std::move(abort).Take());
  const std::string error = ErrorMessage(Wire::kError, FailureStatus());
  for (const uint64_t id : table_.TakeWaiting())
    if (Peer* waiter = Find(id)) waiter->Send(error);
  {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
  }
  if (options_.on_failure) options_.on_failure(failure);
}

void JobServer::Loop::SendToRanks(const std::string& message) {
  for (Peer& peer : peers_)
    if (peer.stage == Peer::Stage::kControl && !peer.closing) peer.Send(message);
}

void JobServer::Loop::DropClosed(SteadyTime now) {
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    if (peer->socket.is_open()) {
      ++peer;
      continue;
    }
    table_.Forget(peer->id);
    if (peer->stage == Peer::Stage::kControl) monitor_.Disconnect(peer->rank, now);
    peer = peers_.erase(peer);
  }
  if (!monitor_.all_left()) return;
  const std::lock_guard lock(mutex_);
  all_left_ = true;
  left_.notify_all();
}

Peer* JobServer::Loop::Find(uint64_t id) {
  for (Peer& peer : peers_)
    if (peer.id == id) return &peer;
  return nullptr;
}

Result<std::unique_ptr<JobServer>> JobServer::Start(JobServerOptions options) {
  MSRT_ASSIGN_OR_RETURN(Listener listener, Listener::Open(options.address));
  MSRT_ASSIGN_OR_RETURN(WakePipe wake, WakePipe::Open());
  auto loop = std::make_unique<Loop>(std::move(options), std::move(listener), std::move(wake));
  loop->Start();
  return std::unique_ptr<JobServer>(new JobServer(std::move(loop)));
}

JobServer::JobServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
JobServer::~JobServer() { loop_->Stop(); }
const Address& JobServer::address() const { return loop_->address(); }
void JobServer::ReportExit(int rank, std::string how, bool failed) {
  loop_->ReportExit(rank, std::move(how), failed);
}
std::optional<JobFailure> JobServer::failure() const { return loop_->failure(); }
Status JobServer::AwaitAllLeft(const WaitLimit& limit) { return loop_->AwaitAllLeft(limit); }

}  // namespace msrt
