#include "tests/examples/accelerator/counters.h"

#include <string_view>
#include <utility>

accelerator::Counters& accelerator::Count() {
  static Counters counters;
  return counters;
}

uint64_t msrt_accelerator_count(const char* kind) {
  const accelerator::Counters& c = accelerator::Count();
  const std::pair<std::string_view, const std::atomic<uint64_t>&> kinds[] = {
      {"host_waits", c.host_waits},
      {"stream_waits", c.stream_waits},
      {"kernels", c.kernels},
      {"copies_to_device", c.copies_to_device},
      {"copies_to_host", c.copies_to_host},
      {"peer_copies", c.peer_copies},
      {"conversions", c.conversions},
      {"host_allocations", c.host_allocations},
      {"captures", c.captures},
      {"replays", c.replays},
      {"packings", c.packings},
      {"urgent_streams", c.urgent_streams},
  };
  for (const auto& [name, count] : kinds) {
    if (name == kind) return count;
  }
  return UINT64_MAX;
}
