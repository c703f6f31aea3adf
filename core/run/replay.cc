#include "core/run/replay.h"

#include <algorithm>

namespace msrt {

ReplayMode ChooseReplay(const std::shared_ptr<const Binding>& binding,
                        std::span<const uint64_t> key, Replays* replays, Replay** replay) {
  // The carried values of a loop alternate between two cells, and begin with those of the caller.
  constexpr size_t kMaxReplays = 4;
  *replay = nullptr;
  if (replays->binding != binding) {
    replays->known.clear();  // before their binding
    replays->binding = binding;
    replays->refused = false;
  }
  if (replays->refused) return ReplayMode::kEnqueue;
  const auto known =
      std::find_if(replays->known.begin(), replays->known.end(), [&](const Replay& r) {
        return std::equal(r.key.begin(), r.key.end(), key.begin(), key.end());
      });
  if (known != replays->known.end()) {
    *replay = &*known;
    return known->recording == nullptr ? ReplayMode::kCapture : ReplayMode::kRun;
  }
  // The key changed: the oldest one is forgotten.
  if (replays->known.size() == kMaxReplays) replays->known.erase(replays->known.begin());
  replays->known.push_back({{key.begin(), key.end()}, nullptr});
  return ReplayMode::kEnqueue;
}

}  // namespace msrt
