// The order of work in streams, as far as the host established it: by enqueueing in one stream, by
// events that streams wait for, and by waits of the host. Two pieces of work that touch the same
// memory must be ordered; whether a run happens to do them in the right order does not matter. The
// host counts as one thread: what one of its threads waited for is known to all.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace accelerator {

// By stream: the number of its pieces of work that are known to be done before.
using Clock = std::map<uint64_t, uint64_t>;

// A piece of work: a stream and its number in it, from 1 on.
struct Piece {
  uint64_t stream, number;
};

// May be used from any thread.
class Order {
 public:
  uint64_t AddStream();
  void RemoveStream(uint64_t stream);  // all its work is done

  // The next piece of work of a stream: after all that the host knows.
  Piece Enqueue(uint64_t stream);
  // Returns the clock of an event that is recorded in the stream now.
  Clock At(uint64_t stream) const;
  void StreamWaits(uint64_t stream, const Clock& event);
  void HostWaits(const Clock& event);

  // Whether the earlier piece is done before the other begins, or before the host continues.
  bool Precedes(const Piece& earlier, const Piece& later) const;
  bool HostKnows(const Piece& piece) const;

 private:
  bool Covers(const Clock& clock, const Piece& piece) const;

  mutable std::mutex mutex_;
  uint64_t next_ = 1;
  Clock host_;
  std::map<uint64_t, Clock> streams_;  // those that exist
};

Order& TheOrder();

}  // namespace accelerator
