// The hosts of a launch and the ranks on each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace msrt {

// Where one rank runs.
struct RankPlace {
  std::string host;
  bool local = true;  // on this host: started directly
  int local_rank = 0, local_size = 1;
};

struct HostSlots {
  std::string host;
  int slots = 1;
};
// One host on each line, "NAME" or "NAME slots=N"; '#' begins a comment. `path` is for messages.
Result<std::vector<HostSlots>> ParseHosts(std::string_view path, std::string_view text);

// Fills the slots in order. `ranks` 0: all slots.
Result<std::vector<RankPlace>> PlaceRanks(const std::vector<HostSlots>& hosts, int ranks);

// All ranks on this host.
std::vector<RankPlace> PlaceLocally(int ranks);

}  // namespace msrt
