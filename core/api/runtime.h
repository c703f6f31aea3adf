// A runtime: the environment that everything made from it shares, and the application's callbacks
// behind it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "core/api/callbacks.h"
#include "core/api/handles.h"
#include "core/compile/compile.h"
#include "core/extend/plugin.h"

namespace msrt {

// The callbacks, in a base of their own so that they outlive all that the environment owns.
struct UserCallbacks {
  explicit UserCallbacks(const msrt_runtime_config& c) : config(c), allocator(c) {}
  UserCallbacks(const UserCallbacks&) = delete;
  UserCallbacks& operator=(const UserCallbacks&) = delete;
  ~UserCallbacks() {
    if (accepted && config.destroy_user_data != nullptr)
      config.destroy_user_data(config.log_user, config.allocator_user, config.parallel_user);
  }
  const msrt_runtime_config config;
  CallbackAllocator allocator;
  bool accepted = false;  // until the runtime exists, the user pointers are the caller's
};

struct RuntimeEnvironment final : UserCallbacks, Environment {
  explicit RuntimeEnvironment(const msrt_runtime_config& c) : UserCallbacks(c) {}
};

// An environment with more in it than the one it grew from, which owns the rest. That stands in a
// base, too, so that the application's callbacks go last.
struct ExtendedEnvironmentBase {
  std::shared_ptr<const Environment> first;
};
struct ExtendedEnvironment final : ExtendedEnvironmentBase, Environment {
  ExtendedEnvironment(const std::shared_ptr<const Environment>& first_one, const Environment& last)
      : ExtendedEnvironmentBase{first_one}, Environment(last) {}
};

// Environments are immutable: a registration puts another in place, and what was made before keeps
// the one it was made with.
class RuntimeObject {
 public:
  explicit RuntimeObject(std::shared_ptr<const Environment> first)
      : first_(first), environment_(std::move(first)) {}
  std::shared_ptr<const Environment> environment() const {
    std::lock_guard lock(mutex_);
    return environment_;
  }
  // All of it or nothing; see Join.
  Status Add(const Registration& registration);
  Status Calibrate();
  // JSON, valid while this object is.
  const char* info();

 private:
  // Puts another environment in place, with the change. No callback may come of it: it is called
  // with the lock held.
  Status Grow(FunctionRef<Status(Environment*)> change);

  mutable std::mutex mutex_;  // never held while the application or a delegate is called
  const std::shared_ptr<const Environment> first_;
  std::shared_ptr<const Environment> environment_;
  std::deque<std::string> infos_;  // one for each environment that somebody asked about; earlier
                                   // ones may still be in use
  bool info_is_current_ = false;
};

}  // namespace msrt
