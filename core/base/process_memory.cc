#include "core/base/process_memory.h"

#include <cstdio>
#include <memory>

namespace msrt {

uint64_t PeakResidentMemory() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/status", "r"),
                                                   [](FILE* f) { return f ? std::fclose(f) : 0; });
  if (file == nullptr) return 0;
  char line[256];
  unsigned long long kilobytes = 0;
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::sscanf(line, "VmHWM: %llu kB", &kilobytes) == 1) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace msrt
