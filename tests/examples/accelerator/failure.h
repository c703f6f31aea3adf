// An error inside the accelerator: a status of the C API with its text.
#pragma once

#include <string>
#include <utility>

#include "core/abi/msrt_plugin.h"

namespace accelerator {

struct Failure {
  msrt_status code = MSRT_OK;
  std::string text;
  bool ok() const { return code == MSRT_OK; }
};

inline Failure Failed(std::string text) { return {MSRT_DELEGATE, std::move(text)}; }

// Passes the text to the host, and returns the code.
inline msrt_status Tell(const msrt_host_api* host, const Failure& failure) {
  if (!failure.ok()) host->fail(host->host, failure.text.c_str());
  return failure.code;
}

}  // namespace accelerator
