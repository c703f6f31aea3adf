// This file is compiled without the thread sanitizer: a function that enters on one fiber and
// leaves on another would confuse its call stacks.
#include "tests/cuda/fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "tests/cuda/sanitizers.h"

#ifdef __x86_64__
// Saves what a function must preserve, exchanges the stacks, restores.
extern "C" void msrt_switch_stack(void** save_stack_pointer, void* stack_pointer);
extern "C" void msrt_start_stack();
asm(R"(
.text
.type msrt_switch_stack,@function
msrt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size msrt_switch_stack,.-msrt_switch_stack
.type msrt_start_stack,@function
msrt_start_stack:
  movq %r12, %rdi
  callq *%r13
  ud2
.size msrt_start_stack,.-msrt_start_stack
)");
#else
#include <ucontext.h>
#endif

namespace msrt::cuda {

Fiber::Fiber() {
#ifdef MSRT_ASAN
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* bottom = nullptr;
    pthread_attr_getstack(&attributes, &bottom, &bytes_);
    bottom_ = bottom;
    pthread_attr_destroy(&attributes);
  }
#endif
#ifdef MSRT_TSAN
  sanitizer_fiber_ = __tsan_get_current_fiber();
#endif
#ifndef __x86_64__
  stack_pointer_ = new ucontext_t;
#endif
}

Fiber::Fiber(void (*entry)(void*), void* context) : entry_(entry), context_(context) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = kStackBytes;
  // The page below the stack stays inaccessible: an overflow ends the program there.
  mapping_ =
      mmap(nullptr, bytes_ + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) abort();
  char* bottom = static_cast<char*>(mapping_) + page;
  if (mprotect(bottom, bytes_, PROT_READ | PROT_WRITE) != 0) abort();
  bottom_ = bottom;
#ifdef __x86_64__
  // As msrt_switch_stack leaves it: r15, r14, r13, r12, rbx, rbp, return address. Above it the
  // stack is aligned to 16, as a call requires.
  uintptr_t* top = reinterpret_cast<uintptr_t*>(bottom + bytes_) - 9;
  for (int i = 0; i < 9; ++i) top[i] = 0;
  top[2] = reinterpret_cast<uintptr_t>(&Fiber::Start);
  top[3] = reinterpret_cast<uintptr_t>(this);
  top[6] = reinterpret_cast<uintptr_t>(&msrt_start_stack);
  stack_pointer_ = top;
#else
  auto* ucontext = new ucontext_t;
  getcontext(ucontext);
  ucontext->uc_stack.ss_sp = bottom;
  ucontext->uc_stack.ss_size = bytes_;
  ucontext->uc_link = nullptr;
  const uintptr_t self = reinterpret_cast<uintptr_t>(this);
  auto start = +[](unsigned high, unsigned low) {
    Start(reinterpret_cast<void*>(static_cast<uintptr_t>(high) << 32 | low));
  };
  makecontext(ucontext, reinterpret_cast<void (*)()>(start), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
  stack_pointer_ = ucontext;
#endif
#ifdef MSRT_TSAN
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifndef __x86_64__
  delete static_cast<ucontext_t*>(stack_pointer_);
#endif
  if (mapping_ == nullptr) return;
#ifdef MSRT_TSAN
  __tsan_destroy_fiber(sanitizer_fiber_);
#endif
  UnpoisonMemory(const_cast<void*>(bottom_), bytes_);
  munmap(mapping_, bytes_ + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

void Fiber::Start(void* fiber) {
  auto* self = static_cast<Fiber*>(fiber);
  self->Arrive();
  self->entry_(self->context_);
  abort();
}

void Fiber::Arrive() {
#ifdef MSRT_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Leave(Fiber* from, Fiber* to, [[maybe_unused]] bool ordered,
                  [[maybe_unused]] bool end) {
#ifdef MSRT_ASAN
  __sanitizer_start_switch_fiber(end ? nullptr : &from->fake_stack_, to->bottom_, to->bytes_);
#endif
#ifdef MSRT_TSAN
  __tsan_switch_to_fiber(to->sanitizer_fiber_, ordered ? 0 : __tsan_switch_to_fiber_no_sync);
#endif
#ifdef __x86_64__
  msrt_switch_stack(&from->stack_pointer_, to->stack_pointer_);
#else
  swapcontext(static_cast<ucontext_t*>(from->stack_pointer_),
              static_cast<ucontext_t*>(to->stack_pointer_));
#endif
}

void Fiber::Switch(Fiber* from, Fiber* to, bool ordered) {
  Leave(from, to, ordered, false);
  from->Arrive();
}

void Fiber::SwitchAndEnd(Fiber* from, Fiber* to) {
  Leave(from, to, true, true);
  abort();
}

}  // namespace msrt::cuda
