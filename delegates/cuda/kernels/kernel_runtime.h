// What kernels in their host form (kernel_host.h) and the emulation that runs them (tests/cuda)
// share: the position of the running thread, the block that it belongs to, and the list of all
// kernels of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace msrt::cuda::host {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

// Where the running thread is. Changes whenever the block switches to another thread.
struct Position {
  Index3 thread, block, block_dim{1, 1, 1}, grid_dim{1, 1, 1};
};
inline constinit thread_local Position position;

// Where in the source a thread waits.
struct Site {
  const char* file;
  int line;
};

enum class Vote { kAny, kAll, kCount };

// The block whose thread is running, with everything for which a thread may have to wait.
class RunningBlock {
 public:
  virtual void SyncThreads(Site site) = 0;
  // A barrier that returns the number of threads whose predicate is true.
  virtual int SyncThreadsCount(Site site, bool predicate) = 0;
  virtual void SyncWarp(Site site) = 0;
  // Waits until all threads of the warp are here. Returns the 32 values; `present` has a bit for
  // every thread that took part.
  virtual const uint64_t* ExchangeInWarp(Site site, uint64_t value, uint32_t* present) = 0;
  virtual void* dynamic_shared() = 0;
  // Stops the block, and the launch, with an error.
  [[noreturn]] virtual void Fail(Site site, const char* message) = 0;
  // The address at which the host finds the byte of a device pointer.
  virtual void* Translate(Site site, const void* device_pointer) = 0;

 protected:
  ~RunningBlock() = default;
};
inline constinit thread_local RunningBlock* running_block = nullptr;

// ---- registration

struct Kernel {
  const char* name;
  const size_t* argument_bytes;
  int arguments;
  int max_threads;  // of a block
  void (*call)(void* const* arguments);
  Kernel* next;
};
inline constinit Kernel* first_kernel = nullptr;

template <typename... Args>
struct ArgumentSizes {
  static constexpr size_t kBytes[sizeof...(Args) + 1] = {sizeof(Args)..., 0};
};

template <auto Function, typename... Args>
struct Caller {
  static void Call(void* const* arguments) {
    Unpack(arguments, std::index_sequence_for<Args...>());
  }
  template <size_t... I>
  static void Unpack([[maybe_unused]] void* const* arguments, std::index_sequence<I...>) {
    Function(*static_cast<std::remove_cv_t<Args>*>(arguments[I])...);
  }
};

// Adds a kernel to the list of all kernels of this program.
template <auto Function>
class Registration {
 public:
  explicit Registration(const char* name, int max_threads = 1024)
      : Registration(name, max_threads, Function) {}

 private:
  template <typename... Args>
  Registration(const char* name, int max_threads, void (*)(Args...))
      : kernel_{name,        ArgumentSizes<Args...>::kBytes,   static_cast<int>(sizeof...(Args)),
                max_threads, &Caller<Function, Args...>::Call, first_kernel} {
    first_kernel = &kernel_;
  }
  Kernel kernel_;
};

}  // namespace msrt::cuda::host
