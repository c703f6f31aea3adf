// A runtime of the C API: owns the application's callbacks and the environment (delegates, threads,
// memory, log) that models, tensors and sessions made from it share.
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

// The callbacks are in a base class of their own, so that they outlive everything that the
// environment owns.
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

// An environment that extends another one, which owns the callbacks. The other one is in a base
// class, so that it is destroyed last.
struct ExtendedEnvironmentBase {
  std::shared_ptr<const Environment> first;
};
struct ExtendedEnvironment final : ExtendedEnvironmentBase, Environment {
  ExtendedEnvironment(const std::shared_ptr<const Environment>& first_one, const Environment& last)
      : ExtendedEnvironmentBase{first_one}, Environment(last) {}
};

// Environments are immutable: a registration replaces the current one, and objects made before keep
// the one they were made with.
class RuntimeObject {
 public:
  explicit RuntimeObject(std::shared_ptr<const Environment> first)
      : first_(first), environment_(std::move(first)) {}
  std::shared_ptr<const Environment> environment() const {
    std::lock_guard lock(mutex_);
    return environment_;
  }
  // Registers everything or nothing; see Join.
  Status Add(const Registration& registration);
  Status Calibrate();
  // Returns JSON, valid while this object is.
  const char* info();

 private:
  // Replaces the environment by a changed copy. `change` runs with the lock held and must not call
  // the application.
  Status Extend(FunctionRef<Status(Environment*)> change);

  mutable std::mutex mutex_;  // never held while the application or a delegate is called
  const std::shared_ptr<const Environment> first_;
  std::shared_ptr<const Environment> environment_;
  // One for each environment that info() described; callers may still use earlier ones.
  std::deque<std::string> infos_;
  bool info_is_current_ = false;
};

}  // namespace msrt
