#include "tests/examples/accelerator/misuse.h"

#include <cstdio>
#include <mutex>

namespace accelerator {
namespace {

std::mutex g_mutex;
size_t g_count = 0;
char g_last[256] = "";

}  // namespace

void CountMisuse(const std::string& what) {
  std::lock_guard lock(g_mutex);
  ++g_count;
  std::snprintf(g_last, sizeof g_last, "%s", what.c_str());
}

}  // namespace accelerator

size_t msrt_accelerator_misuses(char* last, size_t bytes) {
  std::lock_guard lock(accelerator::g_mutex);
  if (last != nullptr && bytes != 0) std::snprintf(last, bytes, "%s", accelerator::g_last);
  return accelerator::g_count;
}
