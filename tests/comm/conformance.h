// The promises of communicator.h as checks that every engine joins with one row.
#pragma once

#include "tests/comm/running_ranks.h"

namespace msrt {

// Each runs on every rank of a fresh communicator and returns the first problem.
std::string CheckSplits(Communicator& comm);
std::string CheckPairs(Communicator& comm);  // of two ranks or more
std::string CheckCounters(Communicator& comm);
std::string CheckRefusals(Communicator& comm);
std::string CheckDeadlines(Communicator& comm);
// Rank `culprit` aborts while the others wait in an operation of number `kind`.
inline constexpr int kAbortKinds = 6;
std::string CheckAbort(Communicator& comm, int culprit, int kind);
// Two ranks or more call different operations; pair number `kind`.
inline constexpr int kMismatchKinds = 10;
std::string CheckMismatch(Communicator& comm, int kind);
// A rank is late by more than the stall limit, which is `limit`.
std::string CheckStall(Communicator& comm, std::chrono::milliseconds limit);
// A reduction over shards has the bits of one rank, and a sum in fixed-tree order too where the
// number of ranks is a power of two.
std::string CheckFixedTree(Communicator& comm);
// A rank leaves while the others wait for it.
std::string CheckLeaving(Communicator& comm);

// All of the above, and random operations, on 1 to row.max_ranks ranks. Fails the current test.
void RunConformance(const EngineRow& row);

}  // namespace msrt
