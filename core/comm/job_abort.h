// The first error of a rank's job. It ends the operations of all communicators of this rank, and
// through their engines, and the control connection if there is one, those of the other ranks.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "core/comm/job/control.h"
#include "core/comm/transport.h"

namespace msrt {

class JobAbort {
 public:
  // `control` may be null; otherwise it outlives this object, and aborts of the job end here too.
  explicit JobAbort(Control* control = nullptr);
  ~JobAbort();
  JobAbort(const JobAbort&) = delete;
  JobAbort& operator=(const JobAbort&) = delete;

  Control* control() const { return control_; }
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  Status reason() const;
  void Abort(const Status& reason);
  // An operation has failed. If there is a control connection, the reason of the abort is the
  // job's, which names the rank that caused the error.
  void Fail(const Status& error);

  // A transport that is added after the abort is aborted at once.
  void Add(CommTransport* transport);
  void Remove(CommTransport* transport);

 private:
  void End(const Status& reason);

  Control* const control_;
  uint64_t callback_ = 0;
  mutable std::mutex mutex_;
  std::atomic<bool> aborted_{false};
  Status reason_;
  std::vector<CommTransport*> transports_;
};

}  // namespace msrt
