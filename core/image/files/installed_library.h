// A library of the system that is looked for at run time. msrt works without it.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace msrt {

// Loaded once and never unloaded.
class InstalledLibrary {
 public:
  explicit InstalledLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (handle_ == nullptr) handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    ok_ = handle_ != nullptr;
  }

  // Sets `*function`; afterwards ok() is false if the library lacks it.
  template <typename Function>
  void Find(const char* name, Function** function) {
    void* const symbol = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    *function = reinterpret_cast<Function*>(symbol);
    ok_ = ok_ && symbol != nullptr;
  }

  bool ok() const { return ok_; }

 private:
  void* handle_ = nullptr;
  bool ok_ = false;
};

}  // namespace msrt
