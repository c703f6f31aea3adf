// Delegates for tests of placement: tables of functions that offer what a test says, at the cost it
// says, and compute nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/delegate/delegate.h"
#include "core/delegate/offered_graph.h"

namespace msrt::testing {

struct FakeDelegate {
  std::string name;
  std::vector<Candidate> offers;
  std::map<const OfferedGraph*, std::vector<Candidate>> offers_in =
      {};  // in graphs of a module; `offers` are for any other
  bool has_device = false;
  double launch_seconds = 0;
  size_t capacity_bytes = SIZE_MAX;
  int compile_failures = 0;     // the first so many compilations fail
  int compile_fails_every = 0;  // and every n-th one does; 0: none
  int compilations = 0;         // so far
  std::function<void(msrt_delegate_api*, msrt_device_api*)> change =
      {};  // modifies the tables before registration, for tests of misbehaving delegates
};

// Returns the delegate. Its device memory is host memory.
std::shared_ptr<const Delegate> MakeFake(FakeDelegate fake);

// Returns a candidate that runs these nodes as one kernel, with all inputs in one layout and all
// outputs in one.
Candidate OfferFor(const OfferedGraph& offered, std::vector<uint32_t> nodes, double seconds,
                   Layout inputs = Layout::kPlain, Layout outputs = Layout::kPlain);

// One thread, no log.
std::shared_ptr<const Host> TestHost();

}  // namespace msrt::testing
