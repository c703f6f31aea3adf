// A runtime: the environment that everything made from it shares, and the application's callbacks behind it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/api/callbacks.h"
#include "core/api/handles.h"
#include "core/compile.h"

namespace msrt {

// The callbacks, in a base of their own so that they outlive all that the environment owns.
struct UserCallbacks {
  explicit UserCallbacks(const msrt_runtime_config& c) : config(c), allocator(c) {}
  UserCallbacks(const UserCallbacks&) = delete;
  UserCallbacks& operator=(const UserCallbacks&) = delete;
  ~UserCallbacks() {
    if (accepted && config.destroy_users != nullptr) config.destroy_users(config.log_user, config.allocator_user, config.parallel_user);
  }
  const msrt_runtime_config config;
  CallbackAllocator allocator;
  bool accepted = false;  // until the runtime exists, the user pointers are the caller's
};

struct RuntimeEnvironment final : UserCallbacks, Environment {
  explicit RuntimeEnvironment(const msrt_runtime_config& c) : UserCallbacks(c) {}
};

struct RuntimeObject {
  std::shared_ptr<const Environment> environment;
  std::mutex mutex;
  std::string info;  // made when somebody asks; guarded by mutex, never changed afterwards
};

}  // namespace msrt
