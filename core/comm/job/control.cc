#include "core/comm/job/control.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/turns.h"
#include "core/base/units.h"
#include "core/base/utf8.h"
#include "core/comm/job/peer.h"
#include "core/comm/job/wake_pipe.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

// How long a rank that leaves waits for the server to take notice.
constexpr milliseconds kGoodbyeTime{1000};
// How long an error waits for the server to say which rank caused it.
constexpr milliseconds kVerdictTime{1000};

}  // namespace

class Control::Thread {
 public:
  Thread(ControlOptions options, Joined joined, WakePipe wake)
      : options_(std::move(options)),
        silence_limit_(joined.silence_limit),
        server_(0, std::move(joined.socket), std::chrono::steady_clock::now()),
        wake_(std::move(wake)) {
    server_.stage = Peer::Stage::kControl;
    server_.incoming.set_max_bytes(kMaxControlBytes);
  }

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.Wake();
    thread_.join();
    Leave();
  }

  ProgressBoard& progress() { return board_; }
  uint64_t OnAbort(std::function<void(const Status&)> callback) {
    const std::lock_guard lock(callbacks_mutex_);
    const Status reason = status();
    if (!reason.ok()) callback(reason);
    callbacks_[++last_id_] = std::move(callback);
    return last_id_;
  }
  void RemoveCallback(uint64_t id) {
    const std::lock_guard lock(callbacks_mutex_);
    callbacks_.erase(id);
  }
  Status status() const {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }
  void Fail(const Status& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (!aborted_.ok() || !own_error_.empty()) return;
      own_error_ = reason.message().empty() ? "without a message" : reason.message();
    }
    wake_.Wake();
  }
  Status Explain(const Status& error) {
    Fail(error);
    std::unique_lock lock(mutex_);
    const auto is_aborted = [this] { return !aborted_.ok(); };
    return AwaitTurn(lock, verdict_, LimitOf(kVerdictTime), is_aborted) ? aborted_ : error;
  }

 private:
  void Run();
  bool Wait(SteadyTime now);
  void Read();
  void SendReports(SteadyTime now);
  std::string TakeOwnError();
  void CheckServer(SteadyTime now);
  void Abort(const Status& reason);
  void Leave();

  const ControlOptions options_;
  const milliseconds silence_limit_;
  Peer server_;
  WakePipe wake_;
  ProgressBoard board_;
  SteadyTime last_heard_, last_loop_, next_beat_, aborted_at_;

  std::mutex callbacks_mutex_;  // locked before mutex_
  std::map<uint64_t, std::function<void(const Status&)>> callbacks_;
  uint64_t last_id_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  Status aborted_;
  std::condition_variable verdict_;  // aborted_ was set
  std::string own_error_;
  bool own_error_sent_ = false, stopping_ = false;
  std::thread thread_;
};

void Control::Thread::Run() {
  SteadyTime now = std::chrono::steady_clock::now();
  last_heard_ = last_loop_ = next_beat_ = now;
  while (Wait(now)) {
    now = std::chrono::steady_clock::now();
    if (server_.socket.is_open()) Read();
    CheckServer(now);
    SendReports(now);
    if (!server_.socket.is_open()) {
      Abort(IoError(options_.server_name, " at ", options_.join.server,
                    " has ended or cannot be reached: its connection was closed; this rank is ",
                    DoingText(board_.Read(kMaxReportedOperations))));
    }
    if (options_.exit_after_abort.count() > 0 && aborted_at_ != SteadyTime() &&
        now - aborted_at_ > options_.exit_after_abort) {
      std::fprintf(stderr, "msrt: rank %u ends: the job was aborted %s ago\n",
                   options_.join.hello.rank,
                   SecondsText(std::chrono::duration<double>(now - aborted_at_).count()).c_str());
      _exit(1);
    }
  }
}

bool Control::Thread::Wait(SteadyTime now) {
  const auto left = std::chrono::ceil<milliseconds>(next_beat_ - now);
  pollfd polled[] = {{wake_.fd(), POLLIN, 0}, {server_.socket.fd(), POLLIN, 0}};
  (void)poll(polled, 2,
             static_cast<int>(std::clamp(left, milliseconds(0), kHeartbeatPeriod).count()));
  wake_.Drain();
  const std::lock_guard lock(mutex_);
  return !stopping_;
}

void Control::Thread::Read() {
  if (!server_.Read()) return;
  while (true) {
    const auto message = server_.incoming.Next();
    if (!message.ok()) server_.socket.Close();
    if (!message.ok() || !*message) return;
    last_heard_ = std::chrono::steady_clock::now();
    MessageReader reader(**message);
    const auto kind = static_cast<Wire>(reader.U8());
    if (kind == Wire::kProbe) {
      next_beat_ = SteadyTime();
    } else if (kind == Wire::kAbort) {
      const uint32_t culprit = reader.U32();
      const std::string text = Printable(reader.Text());
      Abort(IoError(text).With("rank", StrCat(culprit)));
    }
  }
}

void Control::Thread::CheckServer(SteadyTime now) {
  // A process that did not run for a while (stopped, a laptop that slept) has heard nobody.
  if (now - last_loop_ > std::min(milliseconds(1000), silence_limit_ / 2)) last_heard_ = now;
  last_loop_ = now;
  if (now - last_heard_ > silence_limit_ && server_.socket.is_open()) {
    Abort(IoError(options_.server_name, " at ", options_.join.server, " does not respond since ",
                  SecondsText(std::chrono::duration<double>(now - last_heard_).count()),
                  ": the process is stopped, or its host or network is gone; this rank is ",
                  DoingText(board_.Read(kMaxReportedOperations))));
  }
}

void Control::Thread::SendReports(SteadyTime now) {
  (void)server_.Flush();
  // A server that does not read gets no more than one report; the next one is newer anyway.
  if (!server_.outgoing.empty()) return;
  server_.Send(TakeOwnError());
  if (now < next_beat_) return;
  next_beat_ = now + kHeartbeatPeriod;
  server_.Send(BeatMessage(board_.Read(kMaxReportedOperations)));
}

// The message that reports an error of this rank, once; else nothing.
std::string Control::Thread::TakeOwnError() {
  const std::lock_guard lock(mutex_);
  if (own_error_.empty() || own_error_sent_) return {};
  own_error_sent_ = true;
  MessageWriter message = Message(Wire::kFail);
  message.Text(Printable(own_error_, 4000));
  return BeatMessage(board_.Read(kMaxReportedOperations)) + std::move(message).Take();
}

void Control::Thread::Abort(const Status& reason) {
  const std::lock_guard calling(callbacks_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = reason;
  }
  verdict_.notify_all();
  aborted_at_ = std::chrono::steady_clock::now();
  for (const auto& [id, callback] : callbacks_) callback(reason);
}

// On the thread of the destructor. The server closes the connection when it has read the goodbye;
// closing here before that could lose it.
void Control::Thread::Leave() {
  if (!server_.socket.is_open()) return;
  server_.outgoing += TakeOwnError();
  server_.outgoing += BeatMessage(board_.Read(kMaxReportedOperations));
  server_.outgoing += BareMessage(Wire::kGoodbye);
  const WaitLimit limit = LimitOf(kGoodbyeTime);
  if (!server_.socket.Send(server_.outgoing, limit).ok()) return;
  while (server_.Read() && !limit.expired()) {
    if (!AwaitReady(server_.socket.fd(), POLLIN, limit).ok()) return;
  }
}

Result<std::unique_ptr<Control>> Control::Join(ControlOptions options, const WaitLimit& limit) {
  options.join.hello.purpose = Purpose::kControl;
  MSRT_ASSIGN_OR_RETURN(WakePipe wake, WakePipe::Open());
  MSRT_ASSIGN_OR_RETURN(Joined joined, JoinServer(options.join, limit));
  auto thread = std::make_unique<Thread>(std::move(options), std::move(joined), std::move(wake));
  thread->Start();
  return std::unique_ptr<Control>(new Control(std::move(thread)));
}

Control::Control(std::unique_ptr<Thread> thread) : thread_(std::move(thread)) {}
Control::~Control() { thread_->Stop(); }
ProgressBoard& Control::progress() { return thread_->progress(); }
uint64_t Control::OnAbort(std::function<void(const Status&)> callback) {
  return thread_->OnAbort(std::move(callback));
}
void Control::RemoveCallback(uint64_t id) { thread_->RemoveCallback(id); }
Status Control::status() const { return thread_->status(); }
void Control::Fail(const Status& reason) { thread_->Fail(reason); }
Status Control::Explain(const Status& error) { return thread_->Explain(error); }

}  // namespace msrt
