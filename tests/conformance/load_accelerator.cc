#include "tests/conformance/load_accelerator.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iostream>
#include <mutex>

#include "core/api/msrt_plugin.h"
#include "delegates/builtin.h"

namespace msrt::testing {
namespace {

std::shared_ptr<void> Library() {
  void* handle = dlopen(MSRT_ACCELERATOR, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::cerr << "cannot load " << MSRT_ACCELERATOR << ": " << dlerror() << "\n";
    std::exit(1);
  }
  return std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
}

struct Registration {
  std::shared_ptr<void> library = Library();
  std::shared_ptr<const Delegate> delegate;
};

}  // namespace

const char* AcceleratorPath() { return MSRT_ACCELERATOR; }

std::shared_ptr<const Delegate> LoadAccelerator(const std::string& options) {
  Registration registration;
  const auto entry = reinterpret_cast<msrt_plugin_register_fn>(dlsym(registration.library.get(), MSRT_PLUGIN_ENTRY));
  msrt_plugin_host host = MSRT_INIT(msrt_plugin_host);
  host.plugin_abi = MSRT_PLUGIN_ABI;
  host.host = &registration;
  host.fail = [](void*, const char* message) { std::cerr << "accelerator: " << message << "\n"; };
  host.register_delegate = [](void* r, const msrt_delegate_api* api, void* self) -> msrt_status {
    auto& target = *static_cast<Registration*>(r);
    auto delegate = Delegate::Make(*api, self, target.library);
    if (!delegate.ok()) return static_cast<msrt_status>(delegate.status().code());
    (*delegate)->TakeOver();
    target.delegate = *std::move(delegate);
    return MSRT_OK;
  };
  host.options = options.c_str();
  if (entry == nullptr || entry(&host) != MSRT_OK) {
    std::cerr << "the accelerator cannot be registered with options '" << options << "'\n";
    std::exit(1);
  }
  return registration.delegate;
}

std::string NewMisuses() {
  // The library stays loaded from the first call on, so that its count does too.
  static const std::shared_ptr<void> library = Library();
  static const auto count = reinterpret_cast<size_t (*)(char*, size_t)>(dlsym(library.get(), "msrt_accelerator_misuses"));
  static size_t before = 0;
  char last[256] = "";
  const size_t now = count(last, sizeof last);
  const size_t fresh = now - before;
  before = now;
  return fresh == 0 ? "" : StrCat(fresh, " mistakes, the last: ", last);
}

std::shared_ptr<Environment> AcceleratedEnvironment(const std::string& options, std::string* log) {
  std::shared_ptr<Environment> env = TestEnvironment();
  std::vector<std::shared_ptr<const Delegate>> delegates{LoadAccelerator(options)};
  for (const auto& d : env->delegates) {
    if (d->name() == "reference") delegates.push_back(d);
  }
  env->delegates = std::move(delegates);
  if (log != nullptr) {
    auto mutex = std::make_shared<std::mutex>();
    env->log = Log(
        [log, mutex](LogLevel, const std::string& line) {
          std::lock_guard lock(*mutex);
          StrAppend(log, line, "\n");
        },
        LogLevel::kInfo);
  }
  return env;
}

}  // namespace msrt::testing
