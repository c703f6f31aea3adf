// Aborts of ranks that share a store. The first rank that fails writes its reason under one key; a
// thread of every rank waits for that key. Connections of Gloo cannot carry the reason reliably: it
// closes them when a wait ends at its limit, and bytes that a peer has not read yet are lost then.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/job/store.h"

namespace msrt {

// Told of an abort, on the thread that waits for it.
class AbortListener {
 public:
  virtual ~AbortListener() = default;
  virtual void HearAbort(const Status& reason) = 0;
};

// One for a group and all groups that were split from it. Thread-safe.
class StoreAbort {
 public:
  // The store outlives this object.
  StoreAbort(Store* store, std::string key);
  ~StoreAbort();
  StoreAbort(const StoreAbort&) = delete;
  StoreAbort& operator=(const StoreAbort&) = delete;

  // A listener that is added after the abort hears of it at once.
  void Add(AbortListener* listener);
  void Remove(AbortListener* listener);

  // Tells all ranks, unless another one was first. Returns when the store has the reason, or
  // soon if it does not answer.
  void Publish(const Status& reason);

 private:
  void Listen();

  Store* const store_;
  const std::string key_;
  std::mutex mutex_;
  std::vector<AbortListener*> listeners_;
  Status reason_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

// A reason as the value of a key. Foreign values give an error too, never kOk.
std::string TextOfReason(const Status& reason);
Status ReasonOfText(std::string_view text);

}  // namespace msrt
