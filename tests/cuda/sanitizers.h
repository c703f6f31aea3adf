// What the sanitizers must be told about the emulation.
//
// The thread sanitizer sees only CUDA's rules: the emulation works inside Unseen scopes, in which
// neither its memory accesses nor its locks count, and states with Release and Acquire what CUDA
// orders. Otherwise each of our locks would order the work of streams by accident.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_THREAD__) && !defined(MSRT_TSAN)
#define MSRT_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !defined(MSRT_TSAN)
#define MSRT_TSAN 1
#endif
#if __has_feature(address_sanitizer) && !defined(MSRT_ASAN)
#define MSRT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(MSRT_ASAN)
#define MSRT_ASAN 1
#endif

#ifdef MSRT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef MSRT_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

namespace msrt::cuda {

#ifdef MSRT_TSAN
constexpr bool kThreadSanitizer = true;
inline constinit thread_local int unseen_depth = 0;

inline void BeginUnseen() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
inline void EndUnseen() {
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

class Unseen {
 public:
  // Fibers of one thread share the depth.
  __attribute__((no_sanitize_thread)) Unseen() {
    if (unseen_depth++ == 0) BeginUnseen();
  }
  __attribute__((no_sanitize_thread)) ~Unseen() {
    if (--unseen_depth == 0) EndUnseen();
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

// A part of an Unseen scope that the sanitizer sees: the work of streams.
class Seen {
 public:
  __attribute__((no_sanitize_thread)) Seen() : depth_(unseen_depth) {
    unseen_depth = 0;
    if (depth_ > 0) EndUnseen();
  }
  __attribute__((no_sanitize_thread)) ~Seen() {
    unseen_depth = depth_;
    if (depth_ > 0) BeginUnseen();
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

 private:
  int depth_;
};

// What this thread did before Release(x) is seen by a thread after Acquire(x).
inline void Release(const void* object) {
  if (unseen_depth > 0) EndUnseen();
  __tsan_release(const_cast<void*>(object));
  if (unseen_depth > 0) BeginUnseen();
}
inline void Acquire(const void* object) {
  if (unseen_depth > 0) EndUnseen();
  __tsan_acquire(const_cast<void*>(object));
  if (unseen_depth > 0) BeginUnseen();
}
#else
constexpr bool kThreadSanitizer = false;
struct Unseen {
  Unseen() {}
  ~Unseen() {}
};
struct Seen {
  Seen() {}
  ~Seen() {}
};
inline void Release(const void*) {}
inline void Acquire(const void*) {}
#endif

inline void PoisonMemory([[maybe_unused]] void* start, [[maybe_unused]] size_t bytes) {
#ifdef MSRT_ASAN
  __asan_poison_memory_region(start, bytes);
#endif
}
inline void UnpoisonMemory([[maybe_unused]] void* start, [[maybe_unused]] size_t bytes) {
#ifdef MSRT_ASAN
  __asan_unpoison_memory_region(start, bytes);
#endif
}

}  // namespace msrt::cuda
