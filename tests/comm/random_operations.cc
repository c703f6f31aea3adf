#include "tests/comm/random_operations.h"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "core/base/half.h"
#include "core/comm/combine.h"

namespace msrt {
namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// The bytes that `from` has for `to` in operation number `op`; `to` is -1 for everyone.
Bytes RandomBytes(unsigned seed, int op, int from, int to, size_t bytes) {
  Bytes data(bytes);
  uint64_t state = seed * 1000003u + static_cast<uint64_t>(op) * 8191 +
                   static_cast<uint64_t>(from) * 131 + static_cast<uint64_t>(to + 1) * 17 + 1;
  for (std::byte& b : data) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::byte>(state >> 56);
  }
  return data;
}

// Numbers of one rank. Small integers have the same sum in any order; wild ones only in one.
Bytes RandomNumbers(unsigned seed, int op, int rank, size_t count, CommType type, bool wild) {
  Random random(seed * 7919u + static_cast<uint64_t>(op) * 104729 + static_cast<uint64_t>(rank));
  Bytes data(count * CommTypeBytes(type));
  for (size_t i = 0; i < count; ++i) {
    const int small = static_cast<int>(random() % 5) - 2;
    const float value =
        wild ? std::ldexp(static_cast<float>(small) + 0.37f, static_cast<int>(random() % 7) - 3)
             : static_cast<float>(small);
    void* at = data.data() + i * CommTypeBytes(type);
    const auto put = [&](auto x) { std::memcpy(at, static_cast<const void*>(&x), sizeof(x)); };
    switch (type) {
      case CommType::kF32:
        put(value);
        break;
      case CommType::kF64:
        put(static_cast<double>(value) * 1.000000119);
        break;
      case CommType::kF16:
        put(Half(value));
        break;
      case CommType::kBF16:
        put(BFloat16(value));
        break;
      case CommType::kI32:
        put(static_cast<int32_t>(random()));
        break;
      case CommType::kI64:
        put(static_cast<int64_t>(random()));
        break;
      case CommType::kU8:
        put(static_cast<uint8_t>(random()));
        break;
    }
  }
  return data;
}

// One element: neighbours at distance 1, 2, 4, ..., each result rounded to T.
template <typename T, typename Wide>
void ExpectElement(const std::vector<Bytes>& ranks, size_t at, CommReduce reduce, void* out) {
  std::vector<T> values(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r)
    std::memcpy(static_cast<void*>(&values[r]), ranks[r].data() + at, sizeof(T));
  const auto apply = [&](T x, T y) {
    const Wide a = static_cast<Wide>(x), b = static_cast<Wide>(y);
    switch (reduce) {
      case CommReduce::kSum:
        return static_cast<T>(a + b);
      case CommReduce::kProduct:
        return static_cast<T>(a * b);
      case CommReduce::kMin:
        return x < y ? x : y;
      case CommReduce::kMax:
        return x > y ? x : y;
    }
    return x;
  };
  for (size_t stride = 1; stride < values.size(); stride *= 2)
    for (size_t i = 0; i + stride < values.size(); i += 2 * stride)
      values[i] = apply(values[i], values[i + stride]);
  std::memcpy(out, static_cast<const void*>(&values[0]), sizeof(T));
}

Bytes ExpectedReduction(const std::vector<Bytes>& ranks, CommType type, CommReduce reduce) {
  Bytes out(ranks[0].size());
  for (size_t at = 0; at < out.size(); at += CommTypeBytes(type)) {
    switch (type) {
      case CommType::kF32:
        ExpectElement<float, float>(ranks, at, reduce, &out[at]);
        break;
      case CommType::kF64:
        ExpectElement<double, double>(ranks, at, reduce, &out[at]);
        break;
      case CommType::kF16:
        ExpectElement<Half, float>(ranks, at, reduce, &out[at]);
        break;
      case CommType::kBF16:
        ExpectElement<BFloat16, float>(ranks, at, reduce, &out[at]);
        break;
      case CommType::kI32:
        ExpectElement<int32_t, uint32_t>(ranks, at, reduce, &out[at]);
        break;
      case CommType::kI64:
        ExpectElement<int64_t, uint64_t>(ranks, at, reduce, &out[at]);
        break;
      case CommType::kU8:
        ExpectElement<uint8_t, uint32_t>(ranks, at, reduce, &out[at]);
        break;
    }
  }
  return out;
}

// An operation in progress with the memory it uses.
struct Pending {
  std::string name;
  std::vector<Bytes> sent, received, expected;
  CommWorkPtr work;

  std::string Finish(bool limited) {
    WaitLimit limit;
    if (limited) limit.until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    const Status status = work->Wait(limit);
    if (!status.ok()) return StrCat(name, ": ", status.message());
    for (size_t i = 0; i < expected.size(); ++i)
      if (received[i] != expected[i]) return StrCat(name, ": part ", i, " has wrong bytes");
    return "";
  }
};

// Draws the same operations on every rank.
class Generator {
 public:
  Generator(Communicator& comm, const RandomOperations& options)
      : comm_(comm), options_(options), random_(options.seed) {}

  std::string Start(int op, Pending* p) {
    op_ = op, p_ = p;
    Result<CommWorkPtr> work = Draw();
    if (!work.ok()) return StrCat(p->name, ": ", work.status().message());
    p->work = *std::move(work);
    return "";
  }
  bool Chance(unsigned n) { return random_() % n == 0; }

 private:
  size_t RandomCount(size_t max) {
    const auto kind = random_() % 8;
    if (kind == 0) return 0;
    if (kind < 5) return random_() % 50;
    return random_() % (max + 1);
  }
  std::vector<size_t> RandomCounts(size_t max) {
    std::vector<size_t> counts(static_cast<size_t>(comm_.size()));
    for (size_t& count : counts) count = RandomCount(max / counts.size());
    return counts;
  }
  size_t Sum(const std::vector<size_t>& counts) const {
    size_t sum = 0;
    for (size_t count : counts) sum += count;
    return sum;
  }
  Bytes Data(int from, int to, size_t bytes) const {
    return RandomBytes(options_.seed, op_, from, to, bytes);
  }

  Result<CommWorkPtr> Draw() {
    switch (random_() % 8) {
      case 0:
      case 1:
        return AllReduce();
      case 2:
        return ReduceScatter();
      case 3:
        return AllGather();
      case 4:
        return AllToAll();
      case 5:
        return Broadcast();
      case 6:
        return Exchange();
      default:
        p_->name = "Barrier";
        return comm_.Barrier();
    }
  }

  // The numbers of all ranks, and which of them this rank may expect.
  std::vector<Bytes> Numbers(size_t count) {
    type_ = static_cast<CommType>(random_() % 7);
    reduce_ = static_cast<CommReduce>(random_() % 4);
    std::vector<Bytes> all;
    const bool wild = options_.order == CommOrder::kFixedTree;
    for (int r = 0; r < comm_.size(); ++r)
      all.push_back(RandomNumbers(options_.seed, op_, r, count, type_, wild));
    return all;
  }

  Result<CommWorkPtr> AllReduce() {
    const size_t count = RandomCount(options_.max_bytes / 4);
    std::vector<Bytes> all = Numbers(count);
    p_->name = StrCat("AllReduce ", CommReduceName(reduce_), " ", count, " ", CommTypeName(type_));
    p_->expected.push_back(ExpectedReduction(all, type_, reduce_));
    p_->received.push_back(std::move(all[static_cast<size_t>(comm_.rank())]));
    return comm_.AllReduce(p_->received[0].data(), count, type_, reduce_, options_.order);
  }

  Result<CommWorkPtr> ReduceScatter() {
    const std::vector<size_t> counts = RandomCounts(options_.max_bytes / 4);
    std::vector<Bytes> all = Numbers(Sum(counts));
    p_->name = StrCat("ReduceScatter ", CommReduceName(reduce_), " ", CommTypeName(type_));
    const Bytes whole = ExpectedReduction(all, type_, reduce_);
    size_t begin = 0;
    const auto me = static_cast<size_t>(comm_.rank());
    for (size_t r = 0; r < me; ++r) begin += counts[r] * CommTypeBytes(type_);
    const size_t bytes = counts[me] * CommTypeBytes(type_);
    p_->expected.emplace_back(whole.begin() + static_cast<ptrdiff_t>(begin),
                              whole.begin() + static_cast<ptrdiff_t>(begin + bytes));
    p_->received.emplace_back(bytes);
    p_->sent.push_back(std::move(all[me]));
    return comm_.ReduceScatter(p_->sent[0].data(), p_->received[0].data(), counts, type_, reduce_,
                               options_.order);
  }

  Result<CommWorkPtr> AllGather() {
    const std::vector<size_t> counts = RandomCounts(options_.max_bytes);
    p_->name = "AllGather";
    Bytes expected;
    for (int r = 0; r < comm_.size(); ++r) {
      const Bytes part = Data(r, -1, counts[static_cast<size_t>(r)]);
      expected.insert(expected.end(), part.begin(), part.end());
      if (r == comm_.rank()) p_->sent.push_back(part);
    }
    p_->received.emplace_back(expected.size());
    p_->expected.push_back(std::move(expected));
    return comm_.AllGather(p_->sent[0].data(), p_->received[0].data(), counts);
  }

  Result<CommWorkPtr> AllToAll() {
    p_->name = "AllToAll";
    std::vector<CommPart> sends, receives;
    const size_t n = static_cast<size_t>(comm_.size());
    std::vector<std::vector<size_t>> counts(n);
    for (auto& row : counts) row = RandomCounts(options_.max_bytes);
    for (int r = 0; r < comm_.size(); ++r) AddPair(r, counts);
    for (size_t r = 0; r < n; ++r) {
      sends.push_back({static_cast<int>(r), p_->sent[r].data(), p_->sent[r].size()});
      receives.push_back({static_cast<int>(r), p_->received[r].data(), p_->received[r].size()});
    }
    return comm_.AllToAll(sends, receives);
  }

  void AddPair(int peer, const std::vector<std::vector<size_t>>& counts, int salt = 0) {
    const auto me = static_cast<size_t>(comm_.rank()), other = static_cast<size_t>(peer);
    p_->sent.push_back(Data(comm_.rank() + salt, peer, counts[me][other]));
    p_->expected.push_back(Data(peer + salt, comm_.rank(), counts[other][me]));
    p_->received.emplace_back(counts[other][me]);
  }

  Result<CommWorkPtr> Broadcast() {
    const int root = static_cast<int>(random_() % static_cast<unsigned>(comm_.size()));
    const Bytes data = Data(root, -1, RandomCount(options_.max_bytes));
    p_->name = StrCat("Broadcast from ", root);
    p_->received.push_back(comm_.rank() == root ? data : Bytes(data.size()));
    p_->expected.push_back(data);
    return comm_.Broadcast(p_->received[0].data(), data.size(), root);
  }

  // Each rank sends up to three parts to a random subset of ranks, itself included.
  Result<CommWorkPtr> Exchange() {
    p_->name = "Exchange";
    const size_t n = static_cast<size_t>(comm_.size());
    std::vector<CommPart> sends, receives;
    std::vector<int> peers;
    for (int round = 0; round < 3; ++round) {
      std::vector<std::vector<size_t>> counts(n);
      for (auto& row : counts) row = RandomCounts(options_.max_bytes);
      const auto subset = random_();
      for (int r = 0; r < comm_.size(); ++r) {
        // A symmetric rule: both ranks of a pair know whether they take part.
        if ((subset >> ((r + comm_.rank()) % 64) & 1) == 0) continue;
        AddPair(r, counts, 1000 * (round + 1));
        peers.push_back(r);
      }
    }
    for (size_t i = 0; i < peers.size(); ++i) {
      sends.push_back({peers[i], p_->sent[i].data(), p_->sent[i].size()});
      receives.push_back({peers[i], p_->received[i].data(), p_->received[i].size()});
    }
    if (peers.empty()) p_->name = "empty Exchange";
    return comm_.Exchange(sends, receives);
  }

  Communicator& comm_;
  const RandomOperations options_;
  Random random_;  // equal on all ranks
  int op_ = 0;
  Pending* p_ = nullptr;
  CommType type_ = CommType::kF32;
  CommReduce reduce_ = CommReduce::kSum;
};

}  // namespace

std::string RunRandomOperations(Communicator& comm, const RandomOperations& options) {
  Generator generator(comm, options);
  Random own(options.seed * 31u + static_cast<unsigned>(comm.rank()));  // differs between ranks
  std::deque<Pending> pending;
  for (int op = 0; op < options.count || !pending.empty(); ++op) {
    if (op < options.count) {
      pending.emplace_back();
      const std::string problem = generator.Start(op, &pending.back());
      if (!problem.empty()) return StrCat("operation ", op, ", ", problem);
    }
    if (options.delays && own() % 16 == 0) usleep(static_cast<useconds_t>(own() % 300));
    const size_t keep = op < options.count ? own() % 4 : 0;
    while (pending.size() > keep) {
      const std::string problem = pending.front().Finish(own() % 4 == 0);
      if (!problem.empty()) return StrCat("before operation ", op, ", ", problem);
      pending.pop_front();
    }
  }
  return "";
}

}  // namespace msrt
