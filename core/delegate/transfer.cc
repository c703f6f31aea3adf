#include "core/delegate/transfer.h"

#include <bit>

namespace msrt {

const TransferCosts::Path* TransferCosts::Direct(TensorState made, TensorState wanted) const {
  if (made.device == 0 || wanted.device == 0 || paths.empty()) return nullptr;
  if (made == wanted || (made.device != wanted.device && made.layout != wanted.layout))
    return nullptr;
  const Path& path = paths[wanted.device][made.device];
  return path.bytes_per_second > 0 ? &path : nullptr;
}

TransferPrices::TransferPrices(const TransferCosts& costs,
                               const std::array<double, kLayoutCount>& bytes)
    : costs_(costs), bytes_(bytes) {
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

double TransferPrices::direct(TensorState made, TensorState wanted) const {
  const TransferCosts::Path& path = *costs_.Direct(made, wanted);
  return path.seconds + bytes_[static_cast<size_t>(wanted.layout)] / path.bytes_per_second;
}

double TransferPrices::Seconds(TensorState made, StateSet wanted) const {
  StateSet missing = wanted & ~SetOf(made);
  if (missing == 0) return 0;
  double seconds = 0;
  for (StateSet rest = costs_.paths.empty() ? 0 : missing & ~kHostStates; rest != 0;
       rest &= rest - 1) {
    const TensorState state = StateAt(static_cast<uint32_t>(std::countr_zero(rest)));
    if (!IsDirect(made, state)) continue;
    seconds += direct(made, state);
    missing &= ~SetOf(state);
  }
  if (missing == 0) return seconds;
  if (made.device != 0) seconds += copy_from(made);
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
