#include "tests/comm/conformance.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/clock.h"
#include "core/comm/collectives.h"
#include "core/comm/reduce_shards.h"
#include "core/comm/tree_reduce.h"
#include "tests/comm/random_operations.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

WaitLimit Within(milliseconds time) {
  WaitLimit limit;
  limit.until = std::chrono::steady_clock::now() + time;
  return limit;
}

Status Finish(Result<CommWorkPtr> work) {
  if (!work.ok()) return std::move(work).status();
  return (*work)->Wait({});
}

Status SumOf(Communicator& comm, float* data, size_t count) {
  return Finish(
      comm.AllReduce(data, count, CommType::kF32, CommReduce::kSum, CommOrder::kFixedTree));
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

CommPart Part(int rank, std::vector<std::byte>& data) { return {rank, data.data(), data.size()}; }

}  // namespace

std::string CheckSplits(Communicator& comm) {
  // Even and odd ranks, in reverse order; a third of the ranks takes part in no second split.
  auto half = comm.Split(comm.rank() % 2, -comm.rank(), StrCat("half ", comm.rank() % 2));
  if (!half.ok()) return half.status().message();
  const int members = (comm.size() + (comm.rank() % 2 == 0 ? 1 : 0)) / 2;
  const int expected_rank = members - 1 - comm.rank() / 2;
  if ((*half)->size() != members || (*half)->rank() != expected_rank)
    return StrCat("rank ", (*half)->rank(), " of ", (*half)->size(), " after the split, expected ",
                  expected_rank, " of ", members);
  if ((*half)->group() != StrCat("half ", comm.rank() % 2)) return "wrong group name";
  std::string problem = RunRandomOperations(**half, {.seed = 3, .count = 10, .max_bytes = 3000});
  if (!problem.empty()) return "in a split: " + problem;
  auto part = comm.Split(comm.rank() % 3 == 0 ? -1 : 7, 0, "part");
  if (!part.ok()) return part.status().message();
  if ((*part == nullptr) != (comm.rank() % 3 == 0)) return "a negative color must get null";
  if (*part != nullptr)
    problem = RunRandomOperations(**part, {.seed = 4, .count = 5, .max_bytes = 3000});
  if (!problem.empty()) return "in a part: " + problem;
  // Parent and child at the same time.
  std::vector<float> a(5000, 1.0f), b(5000, 2.0f);
  const auto sum = [](Communicator& c, std::vector<float>& x) {
    return c.AllReduce(x.data(), x.size(), CommType::kF32, CommReduce::kSum, CommOrder::kAny);
  };
  auto first = sum(comm, a), second = sum(**half, b);
  if (!first.ok() || !second.ok()) return "operations on parent and child did not start";
  if (const Status s = (*second)->Wait({}); !s.ok()) return s.message();
  if (const Status s = (*first)->Wait({}); !s.ok()) return s.message();
  if (a[4999] != static_cast<float>(comm.size()) || b[4999] != 2.0f * static_cast<float>(members))
    return "wrong sums on parent and child";
  return "";
}

// Each pair works by itself, at the same time as the others.
std::string CheckPairs(Communicator& comm) {
  auto pairs = comm.SplitPairs("pair");
  if (!pairs.ok()) return pairs.status().message();
  const size_t expected = comm.rank() == 0 ? static_cast<size_t>(comm.size()) - 1 : 1;
  if (pairs->size() != expected) return StrCat(pairs->size(), " pairs, expected ", expected);
  std::vector<float> sums(pairs->size(), static_cast<float>(comm.rank()));
  std::vector<CommWorkPtr> works;
  for (size_t p = 0; p < pairs->size(); ++p) {
    Communicator& pair = *(*pairs)[p];
    const int other = comm.rank() == 0 ? static_cast<int>(p) + 1 : comm.rank();
    if (pair.size() != 2 || pair.rank() != (comm.rank() == 0 ? 0 : 1))
      return "wrong rank in a pair";
    if (pair.group() != StrCat("pair ", other)) return "wrong group name of a pair";
    auto work = pair.AllReduce(&sums[p], 1, CommType::kF32, CommReduce::kSum, CommOrder::kAny);
    if (!work.ok()) return work.status().message();
    works.push_back(*std::move(work));
  }
  for (size_t p = 0; p < works.size(); ++p) {
    if (const Status s = works[p]->Wait({}); !s.ok()) return s.message();
    const int other = comm.rank() == 0 ? static_cast<int>(p) + 1 : comm.rank();
    if (sums[p] != static_cast<float>(other)) return StrCat("wrong sum in pair ", other);
  }
  return "";
}

std::string CheckCounters(Communicator& comm) {
  const auto ranks = static_cast<uint64_t>(comm.size()), peers = ranks - 1;
  const auto me = static_cast<uint64_t>(comm.rank());
  CommCounters before = comm.counters();
  const auto moved = [&](uint64_t sent, uint64_t received) {
    const CommCounters now = comm.counters();
    const bool right = now.sent_bytes - before.sent_bytes == sent &&
                       now.received_bytes - before.received_bytes == received;
    const std::string text = StrCat(now.sent_bytes - before.sent_bytes, " sent, ",
                                    now.received_bytes - before.received_bytes,
                                    " received, expected ", sent, " and ", received);
    before = now;
    return right ? "" : text;
  };
  std::string problem;
  std::vector<float> large(30000);
  (void)SumOf(comm, large.data(), large.size());
  const auto [first, last] = SegmentOfRank(large.size(), comm.rank(), comm.size());
  const uint64_t own = (last - first) * 4;
  const uint64_t reduced = ranks == 1 ? 0 : 120000 - own + peers * own;
  problem = moved(reduced, reduced);
  if (!problem.empty()) return "AllReduce: " + problem;

  std::vector<size_t> counts;
  for (size_t r = 0; r < ranks; ++r) counts.push_back(100 * r);
  size_t total = 0;
  for (size_t count : counts) total += count;
  std::vector<double> send(total), receive(counts[me] + 1);
  const Status scattered =
      Finish(comm.ReduceScatter(send.data(), receive.data(), counts, CommType::kF64,
                                CommReduce::kSum, CommOrder::kFixedTree));
  if (!scattered.ok()) return scattered.message();
  problem = moved((total - counts[me]) * 8, peers * counts[me] * 8);
  if (!problem.empty()) return "ReduceScatter: " + problem;

  std::vector<std::byte> all(total), mine(counts[me]);
  (void)Finish(comm.AllGather(mine.data(), all.data(), counts));
  problem = moved(peers * counts[me], total - counts[me]);
  if (!problem.empty()) return "AllGather: " + problem;

  std::vector<CommPart> parts;
  std::vector<std::byte> out(1000), in(1000);
  // Rank s sends 10 * (s + r) bytes to rank r.
  for (uint64_t r = 0; r < ranks; ++r)
    parts.push_back({static_cast<int>(r), out.data(), 10 * (me + r)});
  std::vector<CommPart> receives = parts;
  for (CommPart& part : receives) part.data = in.data();
  (void)Finish(comm.AllToAll(parts, receives));
  uint64_t others = 0;
  for (uint64_t r = 0; r < ranks; ++r) others += r == me ? 0 : 10 * (me + r);
  problem = moved(others, others);
  if (!problem.empty()) return "AllToAll: " + problem;

  (void)Finish(comm.Broadcast(out.data(), 777, 0));
  problem = moved(me == 0 ? peers * 777 : 0, me == 0 ? 0 : 777);
  return problem.empty() ? "" : "Broadcast: " + problem;
}

std::string CheckRefusals(Communicator& comm) {
  std::vector<std::byte> data(8);
  const CommPart outside{comm.size(), data.data(), 8}, null{0, nullptr, 8};
  const CommPart own{comm.rank(), data.data(), 8};
  const std::vector<size_t> few(static_cast<size_t>(comm.size()) + 1, 1);
  const std::vector<size_t> huge(static_cast<size_t>(comm.size()), SIZE_MAX / 2);
  const auto refused = [&](const Result<CommWorkPtr>& work, std::string_view what) {
    if (work.ok() || work.status().code() != Code::kInvalidArgument) return StrCat(what, " passed");
    const std::string& text = work.status().message();
    const bool named = Contains(text, StrCat("rank ", comm.rank())) && Contains(text, "world") &&
                       Contains(text, "#");
    return named ? std::string() : StrCat(what, ": the message lacks a name: ", text);
  };
  std::string problem = refused(comm.Exchange({&outside, 1}, {}), "a rank outside");
  if (problem.empty()) problem = refused(comm.Exchange({&null, 1}, {}), "a null part");
  if (problem.empty()) problem = refused(comm.Exchange({&own, 1}, {}), "a part to itself alone");
  if (problem.empty())
    problem = refused(comm.AllReduce(nullptr, 1, CommType::kF32, CommReduce::kSum, CommOrder::kAny),
                      "null data");
  if (problem.empty())
    problem = refused(comm.AllReduce(data.data(), SIZE_MAX / 2, CommType::kF32, CommReduce::kSum,
                                     CommOrder::kAny),
                      "a huge count");
  if (problem.empty())
    problem = refused(comm.AllGather(data.data(), data.data(), few), "a count too many");
  if (problem.empty() && comm.size() > 2)
    problem = refused(comm.AllGather(data.data(), data.data(), huge), "an overflow");
  if (problem.empty()) problem = refused(comm.AllToAll({}, {}), "no parts");
  if (problem.empty()) problem = refused(comm.Broadcast(data.data(), 8, -1), "a negative root");
  if (!problem.empty()) return problem;
  // Refusals do not disturb the communicator, even if only one rank had one.
  if (comm.rank() == 0) (void)comm.Broadcast(data.data(), 8, 99);
  float one = 1;
  const Status status = SumOf(comm, &one, 1);
  return status.ok() ? "" : status.message();
}

std::string CheckDeadlines(Communicator& comm) {
  float x = 1;
  std::vector<std::byte> note(1);
  const int last = comm.size() - 1;
  if (comm.rank() == last) usleep(60000);
  auto work = comm.AllReduce(&x, 1, CommType::kF32, CommReduce::kSum, CommOrder::kAny);
  if (!work.ok()) return work.status().message();
  if (comm.rank() != last) {
    const StopWatch watch;
    const Status late = (*work)->Wait(Within(milliseconds(10)));
    if (late.code() != Code::kDeadlineExceeded) return "no deadline: " + late.message();
    if (watch.Millis() > 50) return StrCat("the deadline came after ", watch.Millis(), " ms");
    if (!Contains(late.message(), "AllReduce #1") || !Contains(late.message(), "world"))
      return "the message lacks a name: " + late.message();
    std::atomic<bool> cancelled{true};
    WaitLimit limit;
    limit.cancelled = &cancelled;
    if ((*work)->Wait(limit).code() != Code::kCancelled) return "not cancelled";
  }
  const Status status = (*work)->Wait(Within(milliseconds(20000)));
  if (!status.ok()) return status.message();
  return x == static_cast<float>(comm.size()) ? "" : "wrong sum after a deadline";
}

std::string CheckAbort(Communicator& comm, int culprit, int kind) {
  // Some operations first, so that the abort meets warm connections. It may already end them.
  const std::string problem = RunRandomOperations(comm, {.seed = 5, .count = 3, .max_bytes = 1000});
  if (!problem.empty() && !Contains(problem, "ran out of coffee")) return problem;
  if (comm.rank() == culprit) {
    usleep(static_cast<useconds_t>(kind * 3000));
    comm.Abort(DelegateError("rank ", culprit, " ran out of coffee"));
  }
  const StopWatch watch;
  std::vector<float> large(200000, 1.0f);
  std::vector<std::byte> bytes(300000), in(300000);
  const CommPart send = Part(culprit, bytes), receive = Part(culprit, in);
  const std::vector<size_t> sizes(static_cast<size_t>(comm.size()), 1000);
  const auto start = [&]() -> Result<CommWorkPtr> {
    if (comm.rank() == culprit) return comm.Barrier();
    switch (kind) {
      case 0:
        return comm.Barrier();
      case 1:
        return comm.AllReduce(large.data(), large.size(), CommType::kF32, CommReduce::kSum,
                              CommOrder::kFixedTree);
      case 2:
        return comm.AllGather(bytes.data(), in.data(), sizes);
      case 3:
        return comm.Exchange({}, {&receive, 1});
      case 4:
        return comm.Exchange({&send, 1}, {&receive, 1});
      default:
        return comm.Broadcast(bytes.data(), bytes.size(), culprit);
    }
  };
  const Status failed = Finish(start());
  const Status later = Finish(comm.Barrier());
  for (const Status& status : {failed, later}) {
    if (status.ok()) return "an operation passed after the abort";
    if (!Contains(status.message(), "ran out of coffee"))
      return "not the reason: " + status.message();
    if (status.code() != Code::kDelegate) return "not the code of the reason";
    if (!Contains(status.message(), StrCat("rank ", comm.rank(), " in group 'world'")))
      return "the message lacks a name: " + status.message();
  }
  return watch.Millis() < 1000 ? "" : StrCat("the abort took ", watch.Millis(), " ms");
}

// The last rank differs from some other one: the message names both with group, operation and
// sequence number.
static std::string CheckMismatchText(const Communicator& comm, const std::string& text) {
  // What precedes is the rank that got the error.
  const size_t begin = text.find(": group 'world'");
  if (begin == std::string::npos || !Contains(text, " must ")) return "not a mismatch: " + text;
  const std::string problem = text.substr(begin);
  size_t operations = 0;
  for (const CommKind kind : {CommKind::kExchange, CommKind::kAllReduce, CommKind::kAllGather,
                              CommKind::kBroadcast, CommKind::kBarrier})
    operations += Contains(problem, StrCat(CommKindName(kind), " #")) ? 1 : 0;
  bool other = false;
  for (int r = 0; r + 1 < comm.size(); ++r)
    other = other || Contains(problem, StrCat(": rank ", r, " "));
  const bool last = Contains(problem, StrCat(", rank ", comm.size() - 1, " "));
  return operations != 0 && other && last ? "" : "the message lacks a name: " + text;
}

std::string CheckMismatch(Communicator& comm, int kind) {
  const bool odd = comm.rank() == comm.size() - 1;  // the rank that differs
  std::vector<float> x(4000), y(4000);
  std::vector<std::byte> bytes(500000), in(500000);
  std::vector<size_t> sizes(static_cast<size_t>(comm.size()), 100);
  const int peer = odd ? 0 : comm.size() - 1;
  CommPart part = Part(peer, bytes), into = Part(peer, in);
  const auto reduce = [&](size_t count, CommType type, CommReduce op) {
    return comm.AllReduce(x.data(), count, type, op, CommOrder::kFixedTree);
  };
  const auto start = [&]() -> Result<CommWorkPtr> {
    switch (kind) {
      case 0:
        return odd ? comm.Barrier() : reduce(10, CommType::kF32, CommReduce::kSum);
      case 1:
        return reduce(odd ? 10 : 11, CommType::kF32, CommReduce::kSum);
      case 2:
        return reduce(4000, odd ? CommType::kI32 : CommType::kF32, CommReduce::kSum);
      case 3:
        return reduce(10, CommType::kF32, odd ? CommReduce::kMax : CommReduce::kSum);
      case 4:
        return comm.Broadcast(bytes.data(), 100, odd ? comm.size() - 1 : 0);
      case 5:
        if (odd) sizes.back() = 101;
        return comm.AllGather(bytes.data(), in.data(), sizes);
      case 6:
        return odd ? comm.Barrier() : comm.Exchange({}, {&into, 1});
      case 7:
        if (odd) return comm.Barrier();
        return comm.rank() == 0 ? comm.Exchange({&part, 1}, {}) : comm.Barrier();
      case 8:  // sizes of an exchange between the first and the last rank
        if (!odd && comm.rank() != 0) return comm.Barrier();
        part.bytes = 100, into.bytes = odd ? 100 : 99;
        return comm.Exchange({&part, 1}, {&into, 1});
      default:
        return odd ? comm.AllGather(bytes.data(), in.data(), sizes)
                   : comm.Broadcast(bytes.data(), 100, 0);
    }
  };
  // All ranks together first: the time then is that of the detection.
  // A rank that is slow to leave the barrier may find the error of the others there.
  Status status = Finish(comm.Barrier());
  const StopWatch watch;
  if (status.ok()) status = Finish(start());
  if (status.ok()) status = Finish(comm.Barrier());  // a root ends before its peers begin
  const double millis = watch.Millis();
  if (status.ok()) return "the mismatch was not found";
  const std::string problem = CheckMismatchText(comm, status.message());
  if (!problem.empty()) return problem;
  return millis < 100 ? "" : StrCat("found after ", millis, " ms: ", status.message());
}

std::string CheckStall(Communicator& comm, milliseconds limit) {
  std::vector<std::byte> data(100000);
  Status status = Finish(comm.Barrier());
  if (comm.rank() == comm.size() - 1) usleep(static_cast<useconds_t>(limit.count() + 150) * 1000);
  const StopWatch watch;
  if (status.ok()) status = Finish(comm.Broadcast(data.data(), data.size(), comm.size() - 1));
  if (status.ok()) status = Finish(comm.Barrier());
  if (status.ok()) return "no error although a rank was late";
  const std::string& text = status.message();
  const size_t waited = text.find("waited");
  if (comm.rank() != comm.size() - 1 &&
      (waited == std::string::npos || !Contains(text.substr(waited), StrCat(comm.size() - 1, ";"))))
    return "not a stall that names the late rank: " + text;
  const double most = static_cast<double>(limit.count()) + 1000;
  return watch.Millis() < most ? "" : StrCat("the error came after ", watch.Millis(), " ms");
}

std::string CheckFixedTree(Communicator& comm) {
  constexpr size_t kCount = 3001;
  std::vector<std::vector<float>> all(kVirtualShards, std::vector<float>(kCount));
  std::mt19937 random(5);
  std::uniform_real_distribution<float> distribution(-1, 1);
  for (auto& shard : all)
    for (float& x : shard) x = distribution(random) * std::exp2(distribution(random) * 20);
  // The definition, written out for eight shards.
  std::vector<float> expected(kCount), out(kCount);
  for (size_t i = 0; i < kCount; ++i)
    expected[i] = ((all[0][i] + all[1][i]) + (all[2][i] + all[3][i])) +
                  ((all[4][i] + all[5][i]) + (all[6][i] + all[7][i]));
  const auto [first, last] = ShardsOfRank(comm.rank(), comm.size());
  std::vector<const void*> shards;
  for (int s = first; s < last; ++s) shards.push_back(all[static_cast<size_t>(s)].data());
  const Status status = ReduceShards(comm, shards, out.data(), kCount, CommType::kF32,
                                     CommReduce::kSum, Within(milliseconds(20000)));
  if (!status.ok()) return status.message();
  const bool equal = std::memcmp(out.data(), expected.data(), kCount * sizeof(float)) == 0;
  if (!equal) return StrCat("the bits depend on the number of ranks, ", comm.size());
  shards.push_back(out.data());
  const Status refused =
      ReduceShards(comm, shards, out.data(), kCount, CommType::kF32, CommReduce::kSum, {});
  return refused.code() == Code::kInvalidArgument ? "" : "a shard too many passed";
}

std::string CheckLeaving(Communicator& comm) {
  if (comm.rank() == comm.size() - 1) return "";
  float x = 0;
  const Status status = SumOf(comm, &x, 1);
  return status.ok() ? "an operation passed without a rank that left" : "";
}

namespace {

void CheckFailures(const EngineRow& row) {
  const int few = std::min(3, row.max_ranks);
  for (int kind = 0; kind < kAbortKinds; ++kind) {
    for (int culprit : {0, few - 1})
      EXPECT_EQ(row.run(few, [&](Communicator& c) { return CheckAbort(c, culprit, kind); }), "")
          << row.name << ", abort by rank " << culprit << " during operation " << kind;
  }
  for (int ranks : {2, few}) {
    for (int kind = 0; kind < kMismatchKinds; ++kind)
      EXPECT_EQ(row.run(ranks, [&](Communicator& c) { return CheckMismatch(c, kind); }), "")
          << row.name << ", mismatch " << kind << " of " << ranks << " ranks";
    EXPECT_EQ(row.run(ranks, CheckLeaving), "") << row.name;
  }
}

}  // namespace

void RunConformance(const EngineRow& row) {
  for (int ranks = 1; ranks <= row.max_ranks; ++ranks) {
    const auto operations = [&](Communicator& comm) {
      std::string problem;
      for (const CommOrder order : {CommOrder::kFixedTree, CommOrder::kAny}) {
        RandomOperations options{.seed = static_cast<unsigned>(ranks), .order = order};
        options.count = static_cast<int>(120 * row.share);
        if (problem.empty()) problem = RunRandomOperations(comm, options);
      }
      // Larger than every buffer of an engine.
      RandomOperations large{.seed = 77, .count = 12, .max_bytes = 2000000, .delays = false};
      if (problem.empty() && ranks <= 3) problem = RunRandomOperations(comm, large);
      if (problem.empty()) problem = CheckSplits(comm);
      if (problem.empty() && comm.size() > 1) problem = CheckPairs(comm);
      if (problem.empty()) problem = CheckFixedTree(comm);
      if (problem.empty()) problem = CheckCounters(comm);
      if (problem.empty()) problem = CheckRefusals(comm);
      return problem;
    };
    EXPECT_EQ(row.run(ranks, operations), "") << row.name << ", " << ranks << " ranks";
  }
  EXPECT_EQ(row.run(2, CheckDeadlines), "") << row.name;
  const milliseconds limit(120);
  const auto stall = [&](Communicator& comm) { return CheckStall(comm, limit); };
  for (int ranks : {2, 3}) EXPECT_EQ(row.run_limited(ranks, stall, limit), "") << row.name;
  CheckFailures(row);
}

}  // namespace msrt
