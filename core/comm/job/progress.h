// The operation in which each communicator of a rank is. Engines write it without locks; the
// control connection reads it with each heartbeat, so that a rank that dies, stops or diverges can
// be named together with its operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/comm_op.h"

namespace msrt {

// All ranks of a group take part, in the same order. Exchanges are between some of them.
inline bool IsCollective(CommKind op) { return op != CommKind::kExchange; }

// The last operation of one communicator.
struct CommProgress {
  std::string group;      // for messages: "world"
  uint64_t group_id = 0;  // tells communicators with the same name apart
  CommKind op = CommKind::kExchange;
  uint64_t sequence = 0;  // from 1; 0: no operation yet
  uint64_t bytes = 0;
  bool active = false;  // false: the operation has ended
};
// "AllReduce #17 of group 'world'".
std::string OperationText(const CommProgress& progress);
// What a rank does: "in " its active operation, else "after " its last one.
std::string DoingText(const std::vector<CommProgress>& operations);

// One communicator on one rank. One thread at a time writes; any may read.
class ProgressSlot {
 public:
  ProgressSlot(std::string group, uint64_t group_id)
      : group_(std::move(group)), group_id_(group_id) {}

  // The control server compares ranks: collectives of one group with the same sequence number must
  // have the same op and bytes. Therefore only collectives of the group count up the sequence
  // number of a collective, and `bytes` is a size on which all ranks agree. Exchanges are not
  // compared and have a sequence of their own.
  void Enter(CommKind op, uint64_t sequence, uint64_t bytes);
  void Leave();
  CommProgress Read() const;

 private:
  const std::string group_;
  const uint64_t group_id_;
  // The active bit, the op in 7 bits and the sequence number in 56 change together. `bytes_` is
  // written while the operation is not active: who reads the same active word before and after it
  // has read the bytes of this operation.
  std::atomic<uint64_t> word_{0};
  std::atomic<uint64_t> bytes_{0};
};

// The slots of a rank. Thread-safe.
class ProgressBoard {
 public:
  // `group_id` is the same on all ranks of the communicator and on no other communicator of the
  // job. After its last owner has dropped it, the slot is read once more.
  std::shared_ptr<ProgressSlot> Open(std::string group, uint64_t group_id);
  // Active operations first; at most `max_count`.
  std::vector<CommProgress> Read(size_t max_count);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const ProgressSlot>> slots_;
};

}  // namespace msrt
