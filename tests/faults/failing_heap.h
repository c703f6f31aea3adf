// Makes the heap of the whole process fail: operator new counts down and then throws, once or from
// then on.
#pragma once

#include <cstdint>

namespace msrt::testing {

// From now on the `n`-th call of operator new on any thread (a run happens on the team's leader)
// throws, and if `for_good` all after it.
void FailHeap(int64_t n, bool for_good);
// Ends the failures; returns whether there was one.
bool StopFailingHeap();

}  // namespace msrt::testing
