#include "tests/faults/failing_heap.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> news_left{-1};  // calls until one fails; negative: none fails
std::atomic<bool> fails_for_good{false}, has_failed{false};

void* TryNew(size_t bytes, size_t alignment) noexcept {
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(bytes == 0 ? 1 : bytes)
                                                : std::aligned_alloc(alignment, rounded);
}

bool MustFail() noexcept {
  if (news_left < 0) return false;
  const int64_t left = news_left.fetch_sub(1);
  if (left > 1) return false;
  if (left == 1 || fails_for_good) has_failed = true;
  // Stays between "counting" and "off", so that later calls fail as well, or pass.
  news_left = fails_for_good ? 1 : -1;
  return has_failed;
}

void* CountedNew(size_t bytes, size_t alignment) {
  void* pointer = MustFail() ? nullptr : TryNew(bytes, alignment);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

namespace msrt::testing {

void FailHeap(int64_t n, bool for_good) {
  has_failed = false;
  fails_for_good = for_good;
  news_left = n;
}

bool StopFailingHeap() {
  news_left = -1;
  return has_failed;
}

}  // namespace msrt::testing

// These pairs match: all of them call malloc and free, which the compiler cannot know where it
// inlines only one side.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t bytes) { return CountedNew(bytes, 1); }
void* operator new[](size_t bytes) { return CountedNew(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return CountedNew(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return CountedNew(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return TryNew(bytes, 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return TryNew(bytes, 1); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
