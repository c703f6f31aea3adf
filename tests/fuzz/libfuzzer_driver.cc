#include <cstdint>
#include <cstring>

#include "tests/fuzz/driver.h"

extern "C" {

size_t LLVMFuzzerMutate(uint8_t* data, size_t bytes, size_t max_bytes);  // of libFuzzer
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t bytes, size_t max_bytes, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  msrt::testing::kFuzzSubject.run({reinterpret_cast<const std::byte*>(data), bytes});
  return 0;
}

// Mostly our own edits, which respect the format; sometimes libFuzzer's, which target comparisons.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t bytes, size_t max_bytes, unsigned seed) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  msrt::testing::FuzzFile file;
  if (seed % 8 == 0) {
    bytes = LLVMFuzzerMutate(data, bytes, max_bytes);
    file.assign(begin, begin + bytes);
    if (msrt::testing::kFuzzSubject.repair != nullptr) msrt::testing::kFuzzSubject.repair(&file);
  } else {
    file = msrt::testing::kFuzzSubject.mutate({begin, bytes}, seed);
  }
  if (file.empty() || file.size() > max_bytes) return LLVMFuzzerMutate(data, bytes, max_bytes);
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

}  // extern "C"
