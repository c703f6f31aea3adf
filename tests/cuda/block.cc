// This file is compiled without the thread sanitizer, and its state is in plain arrays: the
// threads of a block share it without synchronisation, by design.
#include "tests/cuda/block.h"

#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include "tests/cuda/fiber.h"
#include "tests/cuda/sanitizers.h"

namespace msrt::cuda {
namespace {

using host::Index3;
using host::Site;

constexpr int kMaxThreads = 1024, kWarps = kMaxThreads / 32;

// Thrown on the stack of every thread of a block that failed.
struct Stop {};

enum class State : uint8_t { kNew, kRunning, kAtBarrier, kAtWarp, kReturned };

class Runner final : public host::RunningBlock {
 public:
  ~Runner();
  std::string Run(const host::Kernel& kernel, void* const* arguments, const LaunchShape& shape,
                  const LaunchOptions& options);

  void SyncThreads(Site site) override { SyncThreadsCount(site, false); }
  int SyncThreadsCount(Site site, bool predicate) override;
  void SyncWarp(Site site) override;
  const uint64_t* ExchangeInWarp(Site site, uint64_t value, uint32_t* present) override;
  void* dynamic_shared() override { return shared_; }
  [[noreturn]] void Fail(Site site, const char* message) override;
  void* Translate(Site site, const void* device_pointer) override;

 private:
  // A fiber that runs threads, one after the other; a thread that waits keeps it.
  struct Stack {
    Fiber* fiber = nullptr;
    Runner* runner = nullptr;
    int index = 0;
    Stack* next_free = nullptr;
  };
  struct Warp {
    int alive = 0, arrived = 0;
    uint32_t present[2] = {0, 0};
    uint64_t values[2][32];
    // Two buffers: a thread can only fill the other one after all have read this one.
    int turn = 0;
  };

  static void Loop(void* stack);
  void RunThreads(Stack* stack);
  void RunThread();
  void BeginBlock();
  void Wait(State state, Site site);
  void SwitchTo(Stack* to);
  Stack* StackFor(int thread);
  void MakeReady(int thread);
  void CompleteBarrier();
  void CompleteWarp(int warp);
  void ReportDivergence();
  void SetError(std::string error);
  void Enter(int thread);
  Index3 IndexOf(int thread) const;
  unsigned Random() { return random_ = random_ * 1664525u + 1013904223u; }
  unsigned RandomBelow(unsigned n) { return (Random() >> 8) % n; }
  std::string Describe(int thread) const;

  const host::Kernel* kernel_ = nullptr;
  void* const* arguments_ = nullptr;
  LaunchShape shape_;
  LaunchOptions options_;
  std::string error_;
  bool failed_ = false, ending_ = false;
  unsigned random_ = 1;

  uint64_t blocks_ = 0, begun_blocks_ = 0, block_offset_ = 0, block_step_ = 1;
  int threads_ = 0, started_ = 0, returned_ = 0, at_barrier_ = 0;
  int first_ready_ = 0, num_ready_ = 0, current_ = 0;
  int votes_ = 0, last_votes_ = 0;
  int16_t order_[kMaxThreads], ready_[kMaxThreads];
  State state_[kMaxThreads];
  Site site_[kMaxThreads];
  Stack* stack_of_[kMaxThreads];
  Warp warps_[kWarps];
  char* shared_ = nullptr;
  size_t shared_capacity_ = 0;

  Stack stacks_[kMaxThreads];
  int num_stacks_ = 0;
  Stack* free_stack_ = nullptr;
  Stack* running_ = nullptr;
  Fiber* caller_ = nullptr;
  // For the thread sanitizer: a block begins after the end of all threads of the one before; within
  // it, barriers alone order its threads.
  char block_begin_ = 0, block_end_ = 0, barrier_order_ = 0, warp_order_[kWarps] = {};
};

Runner::~Runner() {
  ending_ = true;
  Fiber caller;
  caller_ = &caller;
  for (Stack& stack : stacks_) {
    if (stack.fiber == nullptr) continue;
    running_ = &stack;
    Fiber::Switch(&caller, stack.fiber, true);
    const Unseen unseen;
    delete stack.fiber;
  }
  free(shared_);
}

Index3 Runner::IndexOf(int thread) const {
  const unsigned i = static_cast<unsigned>(thread);
  const Index3& dim = shape_.block;
  return {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
}

std::string Runner::Describe(int thread) const {
  const Index3 t = IndexOf(thread), b = host::position.block;
  const auto text = [](const Index3& i) {
    return std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z);
  };
  return "thread " + text(t) + " of block " + text(b);
}

std::string Line(Site site) {
  std::string file = site.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
}

void Runner::SetError(std::string error) {
  if (!failed_) error_ = "kernel " + std::string(kernel_->name) + ": " + std::move(error);
  failed_ = true;
}

// ---- the loop of a stack

void Runner::Loop(void* stack) {
  auto* self = static_cast<Stack*>(stack);
  self->runner->RunThreads(self);
}

void Runner::RunThreads(Stack* stack) {
  for (;;) {
    if (ending_) Fiber::SwitchAndEnd(stack->fiber, caller_);
    Stack* next = nullptr;
    if (started_ < threads_ && !failed_) {
      Stack* wanted = options_.check_races ? StackFor(order_[started_]) : stack;
      if (wanted == stack) {
        RunThread();
        continue;
      }
      next = wanted;
    } else if (num_ready_ > 0) {
      next = stack_of_[ready_[first_ready_]];
    } else if (returned_ < started_) {
      ReportDivergence();
      continue;
    } else if (begun_blocks_ < blocks_ && !failed_) {
      BeginBlock();
      continue;
    }
    if (!options_.check_races) {
      stack->next_free = free_stack_;
      free_stack_ = stack;
    }
    if (next != nullptr) {
      SwitchTo(next);
    } else {
      running_ = nullptr;
      Fiber::Switch(stack->fiber, caller_, !options_.check_races);
    }
  }
}

void Runner::RunThread() {
  const int thread = order_[started_++];
  stack_of_[thread] = running_;
  Enter(thread);
  if (options_.check_races) Acquire(&block_begin_);
  try {
    kernel_->call(arguments_);
  } catch (const Stop&) {
  }
  if (options_.check_races) Release(&block_end_);
  // The thread may have returned on this stack long after others ran.
  const int self = current_;
  state_[self] = State::kReturned;
  ++returned_;
  Warp& warp = warps_[self / 32];
  --warp.alive;
  if (failed_) return;
  if (at_barrier_ > 0 && at_barrier_ + returned_ == threads_) {
    CompleteBarrier();
  } else if (warp.arrived > 0 && warp.arrived == warp.alive) {
    CompleteWarp(self / 32);
  }
}

void Runner::Enter(int thread) {
  current_ = thread;
  state_[thread] = State::kRunning;
  host::position.thread = IndexOf(thread);
}

Runner::Stack* Runner::StackFor(int thread) {
  Stack* stack = nullptr;
  if (options_.check_races) {
    stack = &stacks_[thread];
  } else if (free_stack_ != nullptr) {
    stack = std::exchange(free_stack_, free_stack_->next_free);
  } else {
    stack = &stacks_[num_stacks_++];
  }
  if (stack->fiber == nullptr) {
    const Unseen unseen;
    stack->runner = this;
    stack->index = static_cast<int>(stack - stacks_);
    stack->fiber = new Fiber(&Runner::Loop, stack);
  }
  return stack;
}

void Runner::SwitchTo(Stack* to) {
  Stack* from = std::exchange(running_, to);
  if (from != to) Fiber::Switch(from->fiber, to->fiber, !options_.check_races);
}

// ---- blocks

void Runner::BeginBlock() {
  if (options_.check_races) {
    Acquire(&block_end_);
    Release(&block_begin_);
  }
  const uint64_t number = (block_offset_ + begun_blocks_++ * block_step_) % blocks_;
  const Index3& grid = shape_.grid;
  host::position.block = {static_cast<unsigned>(number % grid.x),
                          static_cast<unsigned>(number / grid.x % grid.y),
                          static_cast<unsigned>(number / grid.x / grid.y)};
  started_ = returned_ = at_barrier_ = num_ready_ = votes_ = 0;
  for (int i = 0; i < threads_; ++i) state_[i] = State::kNew;
  for (int w = 0; w * 32 < threads_; ++w) {
    warps_[w].alive = threads_ - w * 32 < 32 ? threads_ - w * 32 : 32;
    warps_[w].arrived = warps_[w].turn = 0;
    warps_[w].present[0] = warps_[w].present[1] = 0;
  }
  if (options_.shuffle) {
    for (int i = threads_ - 1; i > 0; --i) {
      std::swap(order_[i], order_[RandomBelow(static_cast<unsigned>(i) + 1)]);
    }
  }
  // What a block finds in shared memory is undefined: NaN, most likely to be noticed.
  for (size_t i = 0; i < shape_.shared_bytes; ++i) {
    static_cast<volatile char*>(shared_)[i] = static_cast<char>(0xff);
  }
}

std::string Runner::Run(const host::Kernel& kernel, void* const* arguments,
                        const LaunchShape& shape, const LaunchOptions& options) {
  kernel_ = &kernel;
  arguments_ = arguments;
  shape_ = shape;
  options_ = options;
  options_.check_races &= kThreadSanitizer;
  error_.clear();
  failed_ = false;
  random_ = options.seed * 2654435761u + 1;
  threads_ = static_cast<int>(shape.block.x * shape.block.y * shape.block.z);
  blocks_ = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  if (threads_ < 1 || threads_ > kMaxThreads || blocks_ == 0) return "empty or too large launch";
  begun_blocks_ = block_offset_ = 0;
  block_step_ = 1;
  if (options.shuffle && blocks_ > 2) {
    block_offset_ = Random() % blocks_;
    do {
      block_step_ = 1 + Random() % (blocks_ - 1);
    } while (std::gcd(block_step_, blocks_) != 1);
  }
  for (int i = 0; i < threads_; ++i) order_[i] = static_cast<int16_t>(i);
  // Exactly as many bytes as asked for, so that the address sanitizer finds the end.
  if (shape.shared_bytes != shared_capacity_) {
    free(shared_);
    shared_ = static_cast<char*>(malloc(shape.shared_bytes));
    shared_capacity_ = shape.shared_bytes;
  }
  started_ = threads_;  // nothing to start until the first block begins
  returned_ = threads_;
  num_ready_ = 0;
  free_stack_ = nullptr;
  if (!options_.check_races) {
    for (int i = 0; i < num_stacks_; ++i) {
      stacks_[i].next_free = std::exchange(free_stack_, &stacks_[i]);
    }
  }
  host::RunningBlock* outer = std::exchange(host::running_block, this);
  const host::Position outer_position = host::position;
  host::position.block_dim = shape.block;
  host::position.grid_dim = shape.grid;
  Fiber caller;
  caller_ = &caller;
  Release(&block_begin_);
  Release(&block_end_);
  running_ = StackFor(0);
  Fiber::Switch(&caller, running_->fiber, !options_.check_races);
  Acquire(&block_end_);
  host::running_block = outer;
  host::position = outer_position;
  return error_;
}

// ---- waiting

void Runner::MakeReady(int thread) {
  ready_[(first_ready_ + num_ready_++) % kMaxThreads] = static_cast<int16_t>(thread);
}

void Runner::Wait(State state, Site site) {
  const int thread = current_;
  state_[thread] = state;
  site_[thread] = site;
  bool ready = false;
  if (state == State::kAtBarrier) {
    if (++at_barrier_ + returned_ == threads_) CompleteBarrier(), ready = true;
  } else {
    Warp& warp = warps_[thread / 32];
    if (++warp.arrived == warp.alive) CompleteWarp(thread / 32), ready = true;
  }
  while (!(ready && num_ready_ > 0 && ready_[first_ready_] == thread)) {
    if (started_ < threads_ && !failed_) {
      SwitchTo(StackFor(order_[started_]));
    } else if (num_ready_ > 0) {
      SwitchTo(stack_of_[ready_[first_ready_]]);
    } else {
      ReportDivergence();
    }
    // Something switched back here only because this thread is the first that is ready.
    ready = true;
  }
  first_ready_ = (first_ready_ + 1) % kMaxThreads;
  --num_ready_;
  Enter(thread);
  if (failed_) throw Stop();
}

int Runner::SyncThreadsCount(Site site, bool predicate) {
  if (failed_) throw Stop();
  votes_ += predicate;
  if (options_.check_races) Release(&barrier_order_);
  Wait(State::kAtBarrier, site);
  if (options_.check_races) Acquire(&barrier_order_);
  return last_votes_;
}

void Runner::CompleteBarrier() {
  const Unseen unseen;  // texts allocate memory
  int first = -1;
  for (int i = 0; i < threads_; ++i) {
    if (state_[i] == State::kReturned) {
      for (int j = 0; j < threads_; ++j) {
        if (state_[j] == State::kAtBarrier) first = j;
      }
      SetError(Describe(first) + " waits at the barrier " + Line(site_[first]) + ", but " +
               Describe(i) + " has returned");
      break;
    }
    if (first < 0) first = i;
    if (site_[i].line != site_[first].line || site_[i].file != site_[first].file) {
      SetError("divergent barrier: " + Describe(first) + " waits at " + Line(site_[first]) + ", " +
               Describe(i) + " at " + Line(site_[i]));
      break;
    }
  }
  last_votes_ = std::exchange(votes_, 0);
  at_barrier_ = 0;
  // A rotation is enough to give every thread the chance to be first.
  const int offset =
      options_.shuffle ? static_cast<int>(RandomBelow(static_cast<unsigned>(threads_))) : 0;
  for (int k = 0; k < threads_; ++k) {
    const int thread = order_[(k + offset) % threads_];
    if (state_[thread] == State::kAtBarrier) MakeReady(thread);
  }
}

void Runner::SyncWarp(Site site) {
  if (failed_) throw Stop();
  char* order = &warp_order_[current_ / 32];
  if (options_.check_races) Release(order);
  Wait(State::kAtWarp, site);
  if (options_.check_races) Acquire(order);
}

// A shuffle exchanges values and, unlike __syncwarp, orders no memory.
const uint64_t* Runner::ExchangeInWarp(Site site, uint64_t value, uint32_t* present) {
  if (failed_) throw Stop();
  Warp& warp = warps_[current_ / 32];
  const int lane = current_ % 32, turn = warp.turn;
  warp.values[turn][lane] = value;
  warp.present[turn] |= 1u << lane;
  Wait(State::kAtWarp, site);
  *present = warp.present[turn];
  return warp.values[turn];
}

void Runner::CompleteWarp(int w) {
  const Unseen unseen;
  Warp& warp = warps_[w];
  int first = -1;
  for (int thread = w * 32; thread < w * 32 + 32 && thread < threads_; ++thread) {
    if (state_[thread] != State::kAtWarp) continue;
    if (first < 0) first = thread;
    if (site_[thread].line != site_[first].line || site_[thread].file != site_[first].file) {
      SetError("divergent warp: " + Describe(first) + " waits at " + Line(site_[first]) + ", " +
               Describe(thread) + " at " + Line(site_[thread]));
    }
    MakeReady(thread);
  }
  warp.arrived = 0;
  warp.turn ^= 1;
  warp.present[warp.turn] = 0;
}

// Nothing can run, so some threads wait for others that wait elsewhere.
void Runner::ReportDivergence() {
  const Unseen unseen;
  int barrier = -1, warp = -1;
  for (int i = 0; i < threads_; ++i) {
    if (state_[i] == State::kAtBarrier && barrier < 0) barrier = i;
    if (state_[i] == State::kAtWarp && warp < 0) warp = i;
  }
  if (barrier >= 0 && warp >= 0) {
    SetError("divergent barrier: " + Describe(barrier) + " waits at " + Line(site_[barrier]) +
             ", " + Describe(warp) + " at " + Line(site_[warp]));
  } else {
    SetError("threads wait for each other");
  }
  for (int i = 0; i < threads_; ++i) {
    if (state_[i] == State::kAtBarrier || state_[i] == State::kAtWarp) MakeReady(i);
  }
}

void Runner::Fail(Site site, const char* message) {
  const Unseen unseen;
  // The loop of a stack makes all that wait ready, one after the other, to be stopped.
  SetError(Describe(current_) + " at " + Line(site) + ": " + message);
  throw Stop();
}

void* Runner::Translate(Site site, const void* device_pointer) {
  if (options_.translate == nullptr) return const_cast<void*>(device_pointer);
  void* host_pointer = options_.translate(device_pointer);
  if (host_pointer == nullptr) Fail(site, "the pointer is in no living block of device memory");
  return host_pointer;
}

}  // namespace

std::string RunKernel(const host::Kernel& kernel, void* const* arguments, const LaunchShape& shape,
                      const LaunchOptions& options) {
  thread_local Runner runner;
  return runner.Run(kernel, arguments, shape, options);
}

}  // namespace msrt::cuda
