#include "core/base/platform.h"

#include <unistd.h>

namespace msrt {

std::string_view DefaultThreadsName() {
#if defined(MSRT_HAVE_OPENMP)
  return "OpenMP";
#else
  return "own";
#endif
}

std::vector<std::string_view> InstructionSets() {
  std::vector<std::string_view> names;
#if defined(__x86_64__)  // the compiler's test takes literals only
  if (__builtin_cpu_supports("avx2")) names.push_back("avx2");
  if (__builtin_cpu_supports("fma")) names.push_back("fma");
  if (__builtin_cpu_supports("avx512f")) names.push_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) names.push_back("avx512bw");
  if (__builtin_cpu_supports("avx512vl")) names.push_back("avx512vl");
  if (__builtin_cpu_supports("avx512vnni")) names.push_back("avx512vnni");
  if (__builtin_cpu_supports("avx512bf16")) names.push_back("avx512bf16");
#endif
  return names;
}

uint64_t PhysicalMemoryBytes() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGE_SIZE);
  return pages <= 0 || page_bytes <= 0
             ? UINT64_MAX
             : static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

}  // namespace msrt
