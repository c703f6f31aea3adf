// Makes the file system fail for the whole process: open, write, fsync, close, rename and unlink
// count down, and then fail.
#pragma once

#include <cstdint>

namespace msrt::testing {

enum class FileFailure {
  kOnce,     // the call fails for want of space
  kForGood,  // and all later ones, as if the process had been killed: nothing is removed either
  kShort,    // a write writes half of its bytes, all later writes fail; other calls as kOnce
};

// From now on the `n`-th call on any thread fails. Calls of unlink count only with kForGood.
void FailFiles(int64_t n, FileFailure how);
// Ends the failures; returns whether there was one.
bool StopFailingFiles();

}  // namespace msrt::testing
