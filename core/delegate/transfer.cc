#include "core/delegate/transfer.h"

#include <bit>

namespace msrt {

TransferPrices::TransferPrices(const TransferCosts& costs,
                               const std::array<double, kLayoutCount>& bytes) {
  for (uint32_t l = 0; l < kLayoutCount; ++l)
    arrive_[l] = costs.convert_seconds + 2 * bytes[l] / costs.convert_bytes_per_second;
  for (uint32_t d = 1; d < costs.links.size(); ++d) {
    const TransferCosts::Link& link = costs.links[d];
    for (uint32_t l = 0; l < kLayoutCount; ++l) {
      arrive_[d * kLayoutCount + l] = link.to_seconds + bytes[l] / link.to_bytes_per_second;
      leave_[d * kLayoutCount + l] = link.from_seconds + bytes[l] / link.from_bytes_per_second;
    }
  }
}

double TransferPrices::Seconds(TensorState made, StateSet wanted) const {
  const StateSet missing = wanted & ~SetOf(made);
  if (missing == 0) return 0;
  double seconds = made.device == 0 ? 0 : copy_from(made);
  StateSet layouts =
      missing & kHostStates;  // that the host must have, for itself or to copy to a device
  for (StateSet rest = missing & ~kHostStates; rest != 0; rest &= rest - 1) {
    const auto state = static_cast<uint32_t>(std::countr_zero(rest));
    seconds += arrive_[state];
    layouts |= StateSet{1} << state % kLayoutCount;
  }
  layouts &= ~(StateSet{1} << static_cast<uint32_t>(made.layout));
  for (; layouts != 0; layouts &= layouts - 1)
    seconds += arrive_[static_cast<uint32_t>(std::countr_zero(layouts))];
  return seconds;
}

}  // namespace msrt
