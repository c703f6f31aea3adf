// Shared by the parts of the executor during a run: the session's services, the options of the
// run, and its results besides outputs (profile, failure).
#pragma once

#include <atomic>
#include <string>

#include "core/compile/compile.h"
#include "core/run/budget.h"
#include "core/run/profile.h"
#include "core/run/run_options.h"
#include "core/run/state_store.h"

namespace msrt {

class Communicator;  // core/comm/communicator.h

// The delegate or device that failed in a run and whose work another could do; the name is empty if
// there is none.
struct RunFailure {
  std::string delegate;
  uint32_t graph = 0;  // placed again without it
  std::shared_ptr<const EntryProgram> placed;
};

// The communication of one run.
struct ExchangeTotals {
  int64_t exchanges = 0;      // Exchange nodes that ran
  int64_t messages_sent = 0;  // parts for one rank are one message
  int64_t bytes_sent = 0, bytes_received = 0;
  int64_t nanos = 0;          // from packing the first byte of an exchange to unpacking its last
  int64_t exposed_nanos = 0;  // of these: the host had nothing else to do

  void Add(const ExchangeTotals& other) {
    exchanges += other.exchanges, messages_sent += other.messages_sent;
    bytes_sent += other.bytes_sent, bytes_received += other.bytes_received;
    nanos += other.nanos, exposed_nanos += other.exposed_nanos;
  }
  // The part of the time that computation hides.
  double hidden() const {
    return nanos <= 0 || exposed_nanos >= nanos
               ? 0
               : 1 - static_cast<double>(exposed_nanos) / static_cast<double>(nanos);
  }
};

struct RunContext {
  const CompiledModel& model;
  Budget& budget;
  StateStore& states;
  const std::atomic<bool>& cancelled;
  int32_t stream_priority = 0;           // of the session's streams on devices
  Communicator* communicator = nullptr;  // null: the session has none
  Communicator* background = nullptr;    // for collectives in the background; null: there is none
  RunOptions options = {};
  RunFailure failure = {};
  RunProfile profile = {};
  // Complete when the run has synchronized.
  ExchangeTotals exchanges = {};
  size_t arena_lower_bound = 0;
  bool reads_caller = false;  // devices may still read stable inputs of calls (Frame::stable_from)

  // Returns an error if the run was cancelled or has passed its deadline. `step` is the next one.
  Status CheckStopped(const Program& program, const Step& step) const {
    if (cancelled.load(std::memory_order_relaxed) || options.deadline_nanos != 0)
      return CheckSlowly(program, step);
    return OkStatus();
  }

 private:
  Status CheckSlowly(const Program& program, const Step& step) const;
};

}  // namespace msrt
