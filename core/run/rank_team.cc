#include "core/run/rank_team.h"

#include <map>
#include <mutex>

#include "core/comm/communicator.h"

namespace msrt {
namespace {

struct Use {
  int rank;
  int sessions;
};
struct Uses {
  std::mutex mutex;
  std::map<const ParallelFor*, Use> by_team;
};
Uses& AllUses() {
  static Uses* const uses = new Uses;  // sessions may outlive static objects
  return *uses;
}

}  // namespace

Result<RankTeam> RankTeam::Join(std::shared_ptr<const ParallelFor> team, const Communicator& comm) {
  Uses& uses = AllUses();
  RankTeam joined;
  std::lock_guard lock(uses.mutex);
  const auto [use, is_new] = uses.by_team.try_emplace(team.get(), Use{comm.rank(), 0});
  if (use->second.rank != comm.rank())
    return InvalidArgument("rank ", comm.rank(), " of group '", comm.group(),
                           "' is given the threads of rank ", use->second.rank,
                           "; each rank needs its own runtime");
  ++use->second.sessions;
  const ParallelFor* const key = team.get();
  joined.use_ = std::shared_ptr<const void>(key, [team = std::move(team)](const void*) {
    Uses& all = AllUses();
    std::lock_guard guard(all.mutex);
    const auto found = all.by_team.find(team.get());
    if (--found->second.sessions == 0) all.by_team.erase(found);
  });
  return joined;
}

}  // namespace msrt
