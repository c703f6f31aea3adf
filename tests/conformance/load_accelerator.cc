#include "tests/conformance/load_accelerator.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iostream>
#include <mutex>

#include "core/extend/plugin.h"

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

// The library stays loaded from the first call on, so its counts persist.
void* KeptLibrary() {
  static const std::shared_ptr<void> library = Library();
  return library.get();
}

}  // namespace

const char* AcceleratorPath() { return MSRT_ACCELERATOR; }

std::shared_ptr<const Delegate> LoadAccelerator(const std::string& options) {
  auto plugin = LoadPlugin(MSRT_ACCELERATOR, options);
  if (!plugin.ok()) {
    std::cerr << plugin.status().message() << "\n";
    std::exit(1);
  }
  return plugin->delegates.at(0);
}

uint64_t AcceleratorCount(const char* kind) {
  static const auto count =
      reinterpret_cast<uint64_t (*)(const char*)>(dlsym(KeptLibrary(), "msrt_accelerator_count"));
  const uint64_t value = count(kind);
  if (value == UINT64_MAX) {
    std::cerr << "the accelerator has no count of '" << kind << "'\n";
    std::exit(1);
  }
  return value;
}

std::string NewMisuses() {
  static const auto count =
      reinterpret_cast<size_t (*)(char*, size_t)>(dlsym(KeptLibrary(), "msrt_accelerator_misuses"));
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
  env->devices = delegates[0]->devices();
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
