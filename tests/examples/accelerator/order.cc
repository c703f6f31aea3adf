#include "tests/examples/accelerator/order.h"

#include <algorithm>

namespace accelerator {
namespace {

void Merge(const Clock& from, Clock* to) {
  for (const auto& [stream, number] : from) {
    uint64_t& known = (*to)[stream];
    known = std::max(known, number);
  }
}

}  // namespace

uint64_t Order::AddStream() {
  std::lock_guard lock(mutex_);
  streams_[next_];
  return next_++;
}

void Order::RemoveStream(uint64_t stream) {
  std::lock_guard lock(mutex_);
  streams_.erase(stream);
  host_.erase(stream);
  for (auto& [id, clock] : streams_) clock.erase(stream);
}

Piece Order::Enqueue(uint64_t stream) {
  std::lock_guard lock(mutex_);
  Clock& clock = streams_[stream];
  Merge(host_, &clock);
  return {stream, ++clock[stream]};
}

Clock Order::At(uint64_t stream) const {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  return found == streams_.end() ? Clock{} : found->second;
}

void Order::StreamWaits(uint64_t stream, const Clock& event) {
  std::lock_guard lock(mutex_);
  Merge(event, &streams_[stream]);
}

void Order::HostWaits(const Clock& event) {
  std::lock_guard lock(mutex_);
  Merge(event, &host_);
}

// Work of a stream that no longer exists is done.
bool Order::Covers(const Clock& clock, const Piece& piece) const {
  if (streams_.find(piece.stream) == streams_.end()) return true;
  const auto known = clock.find(piece.stream);
  return known != clock.end() && known->second >= piece.number;
}

bool Order::Precedes(const Piece& earlier, const Piece& later) const {
  std::lock_guard lock(mutex_);
  if (earlier.stream == later.stream) return earlier.number <= later.number;
  const auto clock = streams_.find(later.stream);
  return clock == streams_.end() || Covers(clock->second, earlier);
}

bool Order::HostKnows(const Piece& piece) const {
  std::lock_guard lock(mutex_);
  return Covers(host_, piece);
}

Order& TheOrder() {
  static Order order;
  return order;
}

}  // namespace accelerator
