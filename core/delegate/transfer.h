// The state of a value (its device and layout), and the cost of having it in other states as well.
//
// Layouts are changed on the host only. Copies go between host and device in the same layout, so a
// value gets from one device to another through the host. Each conversion and copy has a price that
// depends on the value and on the state it arrives in, and on nothing else. The cost of a value
// therefore does not depend on the order in which its states are first wanted.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/tensor.h"

namespace msrt {

// A set of states is one word of bits.
inline constexpr uint32_t kMaxDevices = 64 / kLayoutCount;
inline constexpr uint32_t kMaxStates = kMaxDevices * kLayoutCount;

struct TensorState {
  uint16_t device = 0;  // 0 is the host
  Layout layout = Layout::kPlain;
  auto operator<=>(const TensorState&) const = default;
};
inline constexpr TensorState kHostPlain = {};

inline constexpr uint32_t StateIndex(TensorState s) {
  return s.device * kLayoutCount + static_cast<uint32_t>(s.layout);
}
inline constexpr TensorState StateAt(uint32_t index) {
  return {static_cast<uint16_t>(index / kLayoutCount), static_cast<Layout>(index % kLayoutCount)};
}
using StateSet = uint64_t;
inline constexpr StateSet SetOf(TensorState s) { return StateSet{1} << StateIndex(s); }
// The host's states, which have the first indices.
inline constexpr StateSet kHostStates = (StateSet{1} << kLayoutCount) - 1;

struct TransferCosts {
  double convert_seconds = 0, convert_bytes_per_second = 1;
  struct Link {
    double to_seconds = 0, to_bytes_per_second = 1;      // from the host to the device
    double from_seconds = 0, from_bytes_per_second = 1;  // and back
  };
  std::vector<Link> links;  // by device; [0] is unused
};

// The costs of moving one value.
class TransferPrices {
 public:
  // `bytes` by layout. A conversion is charged for reading and writing the bytes of the layout that
  // it makes.
  TransferPrices(const TransferCosts& costs, const std::array<double, kLayoutCount>& bytes);

  double convert(Layout to) const { return arrive_[static_cast<uint32_t>(to)]; }
  double copy_to(TensorState device_state) const { return arrive_[StateIndex(device_state)]; }
  double copy_from(TensorState device_state) const { return leave_[StateIndex(device_state)]; }

  // Returns the cost of having a value that was made in state `made` in all of `wanted` too.
  double Seconds(TensorState made, StateSet wanted) const;

 private:
  std::array<double, kMaxStates> arrive_,
      leave_;  // by state; only those of devices that exist are set
};

}  // namespace msrt
