// The boundary to engines in shared modules (libmsrt_comm_<engine>.so): one C function that returns
// a table. Module and host come from the same build, so objects of C++ may cross it; the host
// checks the version first.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/comm/job/store.h"
#include "core/comm/transport.h"

namespace msrt {

struct CommModuleRequest {
  int rank = 0;
  int size = 0;  // 0: rank and size come from the engine's own launcher
  Store* store = nullptr;
  std::string key;  // the prefix of this group's keys in the store
  std::string group;
  std::string address;  // the local address or network interface to listen on; empty: any
  std::chrono::milliseconds timeout{30000};  // for connecting
};

struct CommModule {
  static constexpr uint32_t kVersion = 3;  // change it with any type that crosses the boundary
  uint32_t version = kVersion;
  uint32_t request_bytes = sizeof(CommModuleRequest);
  const char* build = "";  // the version of msrt
  Result<std::unique_ptr<CommTransport>> (*make)(const CommModuleRequest& request) = nullptr;
};

// Exported by each module under this name.
inline constexpr char kCommModuleSymbol[] = "msrt_comm_module";
using CommModuleFunction = const CommModule* (*)();

}  // namespace msrt
