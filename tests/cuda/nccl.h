// Emulated NCCL: communicators whose ranks are threads, or streams, of this process. An operation
// runs in its stream, where it waits for the other ranks; until they come, only an abort ends it.
// A world is the ranks of one communicator. Ranks that call different operations get an error here,
// where NCCL would hang or return wrong results.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/cuda/emulation.h"

namespace msrt::cuda::emulated {

enum class Collective { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };

struct Communication {
  Collective kind;
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;  // or the root
};

size_t BytesOf(ncclDataType_t type);  // 0: unknown
// Computes a collective of all ranks, parts[r] being that of rank r. Sums begin with rank `first`.
void Compute(const std::vector<Communication>& parts, int first);

struct Comm;

// One collective operation of all ranks.
struct Meeting {
  std::vector<Communication> parts;
  std::vector<bool> is_here;
  int arrived = 0, left = 0;
  bool computing = false, done = false, failed = false;
};
struct Mail {
  const void* data;
  size_t bytes;
  bool taken = false, copied = false;
};
struct SplitMeeting {
  std::vector<std::shared_ptr<Comm>> created;  // null: the rank takes no part
  std::vector<int> color, key;
  int arrived = 0;
};

struct World {
  explicit World(int n) : members(static_cast<size_t>(n)) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Comm*> members;
  int joined = 0;
  std::map<int64_t, Meeting> meetings;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Mail>>> mail;
  std::map<int64_t, SplitMeeting> splits;
};

// One rank. Fields below `world` are under the lock of the world; of a communicator that is still
// being split, under that of its parent.
struct Comm {
  std::shared_ptr<World> world;
  Device* device = nullptr;
  int rank = 0;
  bool blocking = true;
  std::atomic<bool> ready{false}, aborted{false}, killed{false};
  std::atomic<ncclResult_t> error{ncclSuccess};
  std::atomic<int> pending{0};  // operations in streams
  int64_t collectives = 0, splits = 0;
};

}  // namespace msrt::cuda::emulated
