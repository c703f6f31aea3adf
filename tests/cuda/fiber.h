// A fiber: a stack and a place in a function, to which a thread can switch. The threads of a CUDA
// block are fibers of one thread, so that a barrier costs two jumps instead of two system calls.
// The sanitizers are told about each switch.
#pragma once

#include <cstddef>

namespace msrt::cuda {

// Belongs to one thread, which alone creates, switches to and destroys it.
class Fiber {
 public:
  // The calling thread as it is: the fiber to return to.
  Fiber();
  // entry(context) starts with the first switch to the fiber and must never return: it ends by
  // SwitchAndEnd.
  Fiber(void (*entry)(void*), void* context);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves `from`, which is running, and continues `to`. Returns when something switches back to
  // `from`. With `ordered`, the thread sanitizer takes the switch for a synchronisation.
  static void Switch(Fiber* from, Fiber* to, bool ordered);
  // The same for the last time: `from` can then be destroyed.
  static void SwitchAndEnd(Fiber* from, Fiber* to);

 private:
  static constexpr size_t kStackBytes = size_t{256} << 10;
  static void Start(void* fiber);
  static void Leave(Fiber* from, Fiber* to, bool ordered, bool end);
  void Arrive();

  void* stack_pointer_ = nullptr;  // or the ucontext
  void* mapping_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* context_ = nullptr;
  const void* bottom_ = nullptr;  // of the stack, for the address sanitizer
  size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
  void* sanitizer_fiber_ = nullptr;
};

}  // namespace msrt::cuda
