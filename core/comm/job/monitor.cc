#include "core/comm/job/monitor.h"

#include <algorithm>

#include "core/base/units.h"
#include "core/base/utf8.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

// How long a failure waits for its description. A death needs a moment until the launcher has
// collected the process; an error of one rank may be the echo of a death that is not seen yet.
constexpr milliseconds kDescriptionTime{50};
constexpr size_t kMaxRanksListed = 16;
constexpr size_t kMaxGroupsKnown = 256;

std::string ElapsedText(SteadyTime from, SteadyTime to) {
  return SecondsText(std::max(0.0, std::chrono::duration<double>(to - from).count()));
}

const CommProgress* FindSame(const std::vector<CommProgress>& operations,
                             const CommProgress& like) {
  for (const CommProgress& p : operations) {
    if (p.group_id == like.group_id && p.sequence == like.sequence && IsCollective(p.op)) return &p;
  }
  return nullptr;
}

bool Agree(const CommProgress& a, const CommProgress& b) {
  return a.op == b.op && (!a.active || !b.active || a.bytes == b.bytes);
}

std::string CallText(const CommProgress& p) {
  return p.active ? StrCat("calls ", OperationText(p), " with ", p.bytes, " bytes")
                  : StrCat("called ", OperationText(p));
}

}  // namespace

Monitor::Monitor(int size, milliseconds silence_limit)
    : silence_limit_(silence_limit), ranks_(static_cast<size_t>(size)) {}

Status Monitor::Join(uint32_t rank, uint32_t size, std::string host, uint64_t pid, SteadyTime now) {
  if (size != ranks_.size()) {
    return InvalidArgument("rank ", rank, " was started for a job of ", size,
                           " ranks, but this job has ", ranks_.size(),
                           "; start all ranks with the same MSRT_SIZE");
  }
  if (rank >= ranks_.size()) {
    return InvalidArgument("rank ", rank, " does not exist in a job of ", ranks_.size(),
                           " ranks; MSRT_RANK is 0 to ", ranks_.size() - 1);
  }
  Rank& joining = ranks_[rank];
  if (joining.phase == Phase::kJoined) {
    return InvalidArgument(Name(static_cast<int>(rank)),
                           " has joined the job already; start each rank once");
  }
  if (joining.phase != Phase::kAbsent) {
    return InvalidArgument(
        "rank ", rank,
        " has left the job already; a process joins once, and a rank is one process");
  }
  joining = {Phase::kJoined, Printable(host, 255), {}, pid, now, {}};
  FindAbsentees(now);
  return OkStatus();
}

void Monitor::Beat(int rank, std::vector<CommProgress> operations, SteadyTime now) {
  Rank& beating = ranks_[static_cast<size_t>(rank)];
  beating.last_seen = now;
  // Communicators that were closed stay known by their last operation, the most recent first.
  for (CommProgress& old : beating.operations) {
    if (operations.size() >= kMaxGroupsKnown) break;
    const bool replaced =
        std::any_of(operations.begin(), operations.end(),
                    [&](const CommProgress& p) { return p.group_id == old.group_id; });
    if (replaced) continue;
    old.active = false;
    operations.push_back(std::move(old));
  }
  beating.operations = std::move(operations);
  FindDivergence(rank, now);
  FindDeserter(now);
}

void Monitor::Leave(int rank, SteadyTime now) {
  ranks_[static_cast<size_t>(rank)].phase = Phase::kLeft;
  FindDeserter(now);
}

// A rank that has left cannot take part in collectives that others start afterwards.
void Monitor::FindDeserter(SteadyTime now) {
  for (size_t left = 0; left < ranks_.size() && !suspicion_; ++left) {
    if (ranks_[left].phase != Phase::kLeft) continue;
    for (const CommProgress& last : ranks_[left].operations) {
      for (size_t i = 0; i < ranks_.size() && IsCollective(last.op); ++i) {
        if (ranks_[i].phase != Phase::kJoined) continue;
        for (const CommProgress& p : ranks_[i].operations) {
          if (p.group_id != last.group_id || !p.active || !IsCollective(p.op) ||
              p.sequence <= last.sequence) {
            continue;
          }
          Suspect(static_cast<int>(left), Cause::kDesertion,
                  StrCat("has left the job, while rank ", i, " ", CallText(p),
                         ": all ranks of a group must start the same collectives"),
                  now);
        }
      }
    }
  }
}

void Monitor::Disconnect(int rank, SteadyTime now) {
  Rank& gone = ranks_[static_cast<size_t>(rank)];
  if (gone.phase != Phase::kJoined) return;
  gone.phase = Phase::kGone;
  Suspect(
      rank, Cause::kDeath,
      "lost its connection: the process died, ended without leaving the job, or its network failed",
      now);
}

void Monitor::Fail(int rank, std::string reason, SteadyTime now) {
  Suspect(rank, Cause::kOwnError, StrCat("failed: ", Printable(reason, 4000)), now);
}

void Monitor::Exit(int rank, std::string how, bool failed, SteadyTime now) {
  Rank& ended = ranks_[static_cast<size_t>(rank)];
  ended.exit = std::move(how);
  if (failed) Suspect(rank, Cause::kDeath, ended.exit, now);
  // The end of the connection is on its way if there is one.
  if (ended.phase == Phase::kAbsent) ended.phase = Phase::kGone;
  FindAbsentees(now);
}

// A process that ended well and never joined is an error only in a job that others have joined.
void Monitor::FindAbsentees(SteadyTime now) {
  const bool joined = std::any_of(ranks_.begin(), ranks_.end(),
                                  [](const Rank& r) { return r.phase == Phase::kJoined; });
  for (size_t i = 0; joined && i < ranks_.size(); ++i) {
    if (ranks_[i].phase != Phase::kGone || ranks_[i].last_seen != SteadyTime()) continue;
    Suspect(static_cast<int>(i), Cause::kDeath, StrCat(ranks_[i].exit, " before it joined the job"),
            now);
  }
}

void Monitor::Suspect(int rank, Cause cause, std::string problem, SteadyTime now,
                      const CommProgress& call) {
  if (failure_) return;
  // A death or a divergence is the reason for errors that ranks report, never the other way round.
  const bool first = !suspicion_;
  if (!first) {
    const bool echo = suspicion_->cause == Cause::kDesertion ||
                      (suspicion_->cause == Cause::kOwnError &&
                       (suspicion_->rank != rank || cause == Cause::kDivergence));
    const bool explains = cause == Cause::kDeath || cause == Cause::kDivergence;
    // Each further report may show that another rank is the one that differs.
    const bool corrects = cause == Cause::kDivergence && suspicion_->cause == cause;
    if (!(echo && explains) && !corrects) return;
  }
  suspicion_ = {rank, cause, std::move(problem), first ? now : suspicion_->since, call};
}

// The ranks that call what most of them call are right; of equally many, those with the lowest
// rank. The message names the lowest wrong rank and the lowest right one, whatever the order in
// which the ranks reported.
void Monitor::FindDivergence(int rank, SteadyTime now) {
  for (const CommProgress& mine : ranks_[static_cast<size_t>(rank)].operations) {
    if (!IsCollective(mine.op)) continue;
    struct Call {
      int rank;
      const CommProgress* call;
    };
    std::vector<Call> calls;
    bool differ = false;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const CommProgress* call = FindSame(ranks_[i].operations, mine);
      if (call == nullptr) continue;
      calls.push_back({static_cast<int>(i), call});
      differ |= !Agree(mine, *call);
    }
    if (!differ) continue;
    const auto agreeing = [&](const Call& with) {
      return std::count_if(calls.begin(), calls.end(),
                           [&](const Call& c) { return Agree(*c.call, *with.call); });
    };
    const Call right =
        *std::max_element(calls.begin(), calls.end(),
                          [&](const Call& a, const Call& b) { return agreeing(a) < agreeing(b); });
    const auto wrong = std::find_if(calls.begin(), calls.end(),
                                    [&](const Call& c) { return !Agree(*c.call, *right.call); });
    if (wrong == calls.end()) continue;  // some no longer tell how many bytes they passed
    Suspect(wrong->rank, Cause::kDivergence,
            StrCat(CallText(*wrong->call), " while rank ", right.rank, " ", CallText(*right.call),
                   ": all ranks of a group must start the same collectives in the same order"),
            now, *wrong->call);
    return;
  }
}

void Monitor::Tick(SteadyTime now) {
  // A server that did not run for a while (stopped, a laptop that slept) has seen nobody.
  const bool was_delayed = now - last_tick_ > std::min(milliseconds(1000), silence_limit_ / 2);
  last_tick_ = now;
  size_t silent = ranks_.size();
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].phase != Phase::kJoined) continue;
    if (was_delayed) ranks_[i].last_seen = now;
    if (now - ranks_[i].last_seen < silence_limit_) continue;
    if (silent == ranks_.size() || ranks_[i].last_seen < ranks_[silent].last_seen) silent = i;
  }
  if (silent < ranks_.size() && !suspicion_) {
    Suspect(static_cast<int>(silent), Cause::kSilence,
            StrCat("does not respond since ", ElapsedText(ranks_[silent].last_seen, now),
                   ": the process is stopped, or its host or network is gone"),
            now);
  }
  if (suspicion_ && !failure_) Describe(now);
}

// A rank that is about to make the call may still turn the minority into the majority.
bool Monitor::IsDecided(const Suspicion& divergence) const {
  return std::none_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) {
    return r.phase == Phase::kJoined &&
           std::any_of(r.operations.begin(), r.operations.end(), [&](const CommProgress& p) {
             return p.group_id == divergence.call.group_id && IsCollective(p.op) &&
                    p.sequence < divergence.call.sequence;
           });
  });
}

void Monitor::Describe(SteadyTime now) {
  const Suspicion& s = *suspicion_;
  const Rank& culprit = ranks_[static_cast<size_t>(s.rank)];
  const bool answered = std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) {
    return &r == &culprit || r.phase != Phase::kJoined || r.last_seen > s.since;
  });
  const bool explained =
      s.cause == Cause::kDeath
          ? !culprit.exit.empty()
          : s.cause == Cause::kSilence || (s.cause == Cause::kDivergence && IsDecided(s));
  if (now - s.since < kDescriptionTime && !(answered && explained)) return;
  const std::string& problem = s.cause == Cause::kDeath && !culprit.exit.empty() &&
                                       s.problem.find(culprit.exit) == std::string::npos
                                   ? culprit.exit
                                   : s.problem;
  std::string last;
  if (s.cause != Cause::kDivergence && culprit.pid != 0)
    last = StrCat(", last seen ", DoingText(culprit.operations));
  failure_ = {s.rank, StrCat(Name(s.rank), " ", problem, last, Others(s.rank, now))};
}

std::string Monitor::Name(int rank) const {
  const Rank& named = ranks_[static_cast<size_t>(rank)];
  if (named.pid == 0) return StrCat("rank ", rank);
  return StrCat("rank ", rank, " on host '", named.host, "' (process ", named.pid, ")");
}

std::string Monitor::Others(int culprit, SteadyTime now) const {
  std::string text;
  size_t listed = 0;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& r = ranks_[i];
    if (static_cast<int>(i) == culprit) continue;
    if (++listed > kMaxRanksListed) continue;
    StrAppend(&text, text.empty() ? ". Of the others, rank " : "; rank ", i, " is ",
              r.phase == Phase::kAbsent   ? "not there yet"
              : r.phase == Phase::kJoined ? DoingText(r.operations)
                                          : "gone");
    if (r.phase == Phase::kJoined && now - r.last_seen > silence_limit_ / 2)
      StrAppend(&text, " (silent for ", ElapsedText(r.last_seen, now), ")");
  }
  if (listed > kMaxRanksListed) StrAppend(&text, "; and ", listed - kMaxRanksListed, " more");
  return text;
}

bool Monitor::all_left() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) {
    return r.phase == Phase::kLeft || r.phase == Phase::kGone;
  });
}

}  // namespace msrt
