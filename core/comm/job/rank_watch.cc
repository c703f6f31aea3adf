#include "core/comm/job/rank_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/base/units.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr milliseconds kMaxInterval{200};
constexpr size_t kNameBytes = 96, kDoingBytes = 160;

std::string SecondsOf(nanoseconds time) {
  return SecondsText(std::chrono::duration<double>(time).count());
}

void CopyText(const std::string& text, char* to, size_t bytes) {
  const size_t count = std::min(text.size(), bytes - 1);
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

std::string ProcessName() {
  char host[64] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return StrCat(" on host '", host, "' (process ", getpid(), ")");
}

}  // namespace

// Ranks of one job have the same byte order.
struct RankWatch::Beat {
  uint64_t work = 0;
  int64_t idle_nanos = 0;  // neither at work nor waiting
  uint32_t last = 0;       // the rank has stopped watching
  char name[kNameBytes] = {}, doing[kDoingBytes] = {};
};

Status AwaitAllRanks(Communicator& world, milliseconds limit) {
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, world.Barrier());
  Status status = work->Wait({.until = steady_clock::now() + limit});
  if (work->done() || status.code() != Code::kDeadlineExceeded) return status;
  status = MakeStatus(Code::kDeadlineExceeded, "the ranks of the job have not all begun within ",
                      SecondsOf(limit), ": a process is stopped or stuck");
  world.Abort(status);
  return status;
}

RankWatch::RankWatch(int rank, const WatchLimits& limits,
                     std::vector<std::unique_ptr<Communicator>> pairs,
                     std::vector<const Communicator*> awaits,
                     std::shared_ptr<std::atomic<uint64_t>> work)
    : rank_(rank),
      limits_(limits),
      interval_(std::clamp(
          std::min(limits.silence.count() == 0 ? limits.stall : limits.silence, limits.stall) / 8,
          milliseconds(1), kMaxInterval)),
      awaits_(std::move(awaits)),
      work_(std::move(work)) {
  for (auto& pair : pairs)
    peers_.push_back(
        {std::move(pair), rank == 0 ? static_cast<int>(peers_.size()) + 1 : 0, 0, {}, {}});
}

RankWatch::~RankWatch() {
  if (threads_.empty()) return;
  peers_[0].pair->Abort(MakeStatus(Code::kCancelled, "rank ", rank_, " has left the job"));
  Stop();
}

void RankWatch::Start() {
  stop_ = false;
  last_look_ = steady_clock::now();
  idle_ = all_idle_ = nanoseconds(0);
  for (Peer& peer : peers_) threads_.emplace_back([this, &peer] { Watch(&peer); });
}

void RankWatch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void RankWatch::Watch(Peer* peer) {
  for (milliseconds limit = limits_.stall;; limit = limits_.silence) {
    const Beat mine = NextBeat();
    Beat theirs;
    Status status = Exchange(peer, mine, &theirs, limit);
    if (status.ok()) status = Check(peer, theirs);
    if (!status.ok()) return peer->pair->Abort(status);  // no effect if that is what ended it
    if (mine.last != 0 && theirs.last != 0) return;
    std::unique_lock lock(mutex_);
    stop_changed_.wait_for(lock, interval_, [&] { return stop_ && mine.last == 0; });
  }
}

RankWatch::Beat RankWatch::NextBeat() {
  static const std::string name = ProcessName();
  const bool active = std::any_of(awaits_.begin(), awaits_.end(),
                                  [](const Communicator* c) { return c->active(); });
  Beat beat;
  const std::lock_guard lock(mutex_);
  // After a longer time this process was stopped itself, or the machine slept.
  const auto now = steady_clock::now();
  const nanoseconds passed = std::min<nanoseconds>(now - last_look_, 2 * interval_);
  last_look_ = now;
  beat.work = work_->load(std::memory_order_relaxed);
  const bool works = beat.work != seen_work_;
  seen_work_ = beat.work;
  idle_ = works || active || waits_.load() || stop_ ? nanoseconds(0) : idle_ + passed;
  all_idle_ = works ? nanoseconds(0) : all_idle_ + passed;
  beat.idle_nanos = idle_.count();
  beat.last = stop_ ? 1 : 0;
  CopyText(name, beat.name, sizeof beat.name);
  CopyText(Doing(), beat.doing, sizeof beat.doing);
  return beat;
}

Status RankWatch::Exchange(Peer* peer, const Beat& mine, Beat* theirs, milliseconds limit) {
  Beat sent = mine;
  const int other = 1 - peer->pair->rank();
  const CommPart send{other, reinterpret_cast<std::byte*>(&sent), sizeof sent};
  const CommPart receive{other, reinterpret_cast<std::byte*>(theirs), sizeof *theirs};
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, peer->pair->Exchange({&send, 1}, {&receive, 1}));
  for (nanoseconds waited{0};;) {
    const auto begin = steady_clock::now();
    Status status = work->Wait({.until = begin + interval_});
    if (work->done()) return work->Wait({});
    if (status.code() != Code::kDeadlineExceeded) return status;
    waited += std::min<nanoseconds>(steady_clock::now() - begin, 2 * interval_);
    if (limit.count() == 0 || waited < limit) continue;
    status = SilenceError(*peer, limit);
    peer->pair->Abort(status);  // ends the operation, which uses the memory of this call
    return status;
  }
}

Status RankWatch::SilenceError(const Peer& peer, milliseconds limit) const {
  if (peer.name.empty())
    return MakeStatus(Code::kDeadlineExceeded, "rank ", peer.rank, " has not begun within ",
                      SecondsOf(limit), ": its process is stopped or stuck");
  return MakeStatus(Code::kDeadlineExceeded, "rank ", peer.rank, peer.name,
                    " does not respond since ", SecondsOf(limit),
                    ": its process is stopped, or its host or network is gone; it was last seen ",
                    peer.doing, ", rank ", rank_, " is ", Doing());
}

Status RankWatch::Check(Peer* peer, const Beat& theirs) {
  const std::lock_guard lock(mutex_);
  if (theirs.work != peer->work || peer->name.empty()) all_idle_ = nanoseconds(0);
  peer->work = theirs.work;
  peer->name.assign(theirs.name, strnlen(theirs.name, sizeof theirs.name));
  peer->doing.assign(theirs.doing, strnlen(theirs.doing, sizeof theirs.doing));
  if (nanoseconds(theirs.idle_nanos) > limits_.stall)
    return MakeStatus(Code::kDeadlineExceeded, "rank ", peer->rank, peer->name,
                      " is stuck: it waits for no other rank and has done nothing for ",
                      SecondsOf(nanoseconds(theirs.idle_nanos)), "; it was last seen ", peer->doing,
                      ". If one step of its work takes that long, allow more time");
  if (rank_ == 0 && all_idle_ > 2 * limits_.stall) {
    std::string others;
    for (const Peer& other : peers_) StrAppend(&others, "; rank ", other.rank, " is ", other.doing);
    return MakeStatus(Code::kDeadlineExceeded, "no rank has done anything for ",
                      SecondsOf(all_idle_), ": rank 0 is ", Doing(), others);
  }
  return OkStatus();
}

// The operation that runs, else the last one of the first communicator that had any.
std::string RankWatch::Doing() const {
  std::string last;
  for (const Communicator* c : awaits_) {
    if (c->active()) return c->doing();
    const std::string doing = c->doing();
    if (last.empty() || last.starts_with("before")) last = doing;
  }
  return last.empty() ? "at work" : last;
}

}  // namespace msrt
