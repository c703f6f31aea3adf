#include "core/comm/job_abort.h"

#include <algorithm>

namespace msrt {

JobAbort::JobAbort(Control* control) : control_(control) {
  if (control_ != nullptr)
    callback_ = control_->OnAbort([this](const Status& reason) { End(reason); });
}

JobAbort::~JobAbort() {
  if (control_ != nullptr) control_->RemoveCallback(callback_);
}

Status JobAbort::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void JobAbort::Abort(const Status& reason) {
  End(reason);
  if (control_ != nullptr) control_->Fail(this->reason());
}

void JobAbort::Fail(const Status& error) {
  if (!aborted()) End(control_ != nullptr ? control_->Explain(error) : error);
}

void JobAbort::End(const Status& reason) {
  const std::lock_guard lock(mutex_);
  if (aborted()) return;
  reason_ = reason.ok() ? Status(Code::kCancelled, "the job was aborted") : reason;
  aborted_.store(true, std::memory_order_release);
  for (CommTransport* transport : transports_) transport->Abort(reason_);
}

void JobAbort::Add(CommTransport* transport) {
  const std::lock_guard lock(mutex_);
  transports_.push_back(transport);
  if (aborted()) transport->Abort(reason_);
}

void JobAbort::Remove(CommTransport* transport) {
  const std::lock_guard lock(mutex_);
  std::erase(transports_, transport);
}

}  // namespace msrt
