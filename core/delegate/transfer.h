// The state of a value (its device and layout), and the cost of having it in other states as well.
//
// A value reaches a state directly from the state it was made in, if a device can do it: a device
// that reaches another copies from it in the same layout, and a device that converts changes the
// layout in its own memory. All other states are reached through the host, which changes layouts
// and copies from and to devices in the same layout. Each of these steps has a price that depends
// on the value, on the state it was made in and on the state it arrives in, and on nothing else.
// The cost of a value therefore does not depend on the order in which its states are first wanted.
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
  // A copy within devices; a rate of 0: there is none.
  struct Path {
    double seconds = 0, bytes_per_second = 0;
  };
  // By the device it arrives on, then by that it comes from: copies between peers, and on the
  // diagonal changes of layout. Empty: there are none.
  std::vector<std::vector<Path>> paths = {};

  // Returns the path by which a value made in one state directly reaches another; null: there is
  // none.
  const Path* Direct(TensorState made, TensorState wanted) const;
};

// The costs of moving one value.
class TransferPrices {
 public:
  // `bytes` by layout. A conversion is charged for reading and writing the bytes of the layout that
  // it makes. The costs outlive this object.
  TransferPrices(const TransferCosts& costs, const std::array<double, kLayoutCount>& bytes);

  double convert(Layout to) const { return arrive_[static_cast<uint32_t>(to)]; }
  double copy_to(TensorState device_state) const { return arrive_[StateIndex(device_state)]; }
  double copy_from(TensorState device_state) const { return leave_[StateIndex(device_state)]; }

  // Requires TransferCosts::Direct(made, wanted).
  double direct(TensorState made, TensorState wanted) const;
  bool IsDirect(TensorState made, TensorState wanted) const {
    return costs_.Direct(made, wanted) != nullptr;
  }

  // Returns the cost of having a value that was made in state `made` in all of `wanted` too.
  double Seconds(TensorState made, StateSet wanted) const;

 private:
  const TransferCosts& costs_;
  const std::array<double, kLayoutCount> bytes_;
  std::array<double, kMaxStates> arrive_,
      leave_;  // by state; only those of devices that exist are set
};

}  // namespace msrt
