// The store of a job, as its ranks see it: a client of the job's server.
#pragma once

#include <mutex>
#include <vector>

#include "core/comm/job/protocol.h"
#include "core/comm/job/store.h"

namespace msrt {

// Each call has a connection to itself, which later calls use again: a thread that waits in Get
// keeps no other from its work.
class TcpStore : public Store {
 public:
  explicit TcpStore(JoinOptions options);
  using Store::Set;
  Status Set(std::string_view key, std::string_view value, const WaitLimit& limit) override;
  Result<std::string> Get(std::string_view key, const WaitLimit& limit) override;

  // Every call that waits, and every later one, fails with `reason`.
  void Abort(const Status& reason);

 private:
  Result<std::string> Ask(const std::string& request, const WaitLimit& limit);
  Result<Socket> TakeConnection(const WaitLimit& limit);
  Status AwaitAnswer(const Socket& socket, const WaitLimit& limit);
  Status abort_reason();

  const JoinOptions options_;
  std::mutex mutex_;
  std::vector<Socket> idle_;
  Status aborted_;
};

// Returns when all `size` ranks have called it with the same name, which can be used once. If the
// limit expires, the error names the ranks that are missing on rank 0.
Status StoreBarrier(Store* store, std::string_view name, int rank, int size,
                    const WaitLimit& limit);

}  // namespace msrt
