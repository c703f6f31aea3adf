// Streams, events and captured graphs of the emulated driver. A stream is a thread with a queue of
// operations. A completion is a point in a stream's work for which the host and other streams
// wait; an event refers to the completion of its last record. While a stream records, operations
// become nodes of a graph.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/cuda/device_memory.h"

namespace msrt::cuda::emulated {

struct Device;

class Completion {
 public:
  void Finish();
  void Wait();
  bool done() const;
  std::chrono::steady_clock::time_point time() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::chrono::steady_clock::time_point time_;
};

using Work = std::function<CUresult(unsigned seed)>;

// In this order: waits, runs, finishes. Each part may be missing.
struct Operation {
  Device* device = nullptr;
  std::shared_ptr<Completion> wait, finish;
  Work work;
  bool can_fail = true;  // a piece of work that FailWorkAt counts
};

struct Node {
  Device* device = nullptr;
  Work work;
  bool can_fail = true;
  std::vector<Block> blocks;  // that must be living when the graph runs
  std::vector<size_t> after;
};

struct Stream;
struct Capture {
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool invalid = false;
  std::vector<Node> nodes;
  std::set<Stream*> streams;
};

struct Event {
  Device* device = nullptr;
  bool has_time = true;
  std::shared_ptr<Completion> completion;  // null: never recorded
  std::shared_ptr<Capture> capture;        // where it was last recorded, if it was in a capture
  std::set<size_t> heads;
};

struct Stream {
  Stream(Device* device, unsigned seed, bool delays);
  ~Stream();  // waits for its work
  // Takes all or none, so that the operations of a graph stay together.
  void Push(std::vector<Operation> operations);
  void Push(Operation operation);
  std::shared_ptr<Completion> PushCompletion();
  bool IsIdle() const;

  Device* const device;
  // Of a stream that records: the nodes on which the next one depends. Under the emulation's lock.
  std::shared_ptr<Capture> capture;
  std::set<size_t> heads;

 private:
  void Loop();
  void Run(const Operation& operation);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Operation>> queue_;
  bool busy_ = false, ending_ = false;
  unsigned random_;
  const bool delays_;
  std::thread thread_;
};

struct Graph {
  std::vector<Node> nodes;
};

// Nodes that follow one another are a lane; each lane but the first has a stream of its own, so
// that only the edges of the graph order the others.
struct GraphExec {
  explicit GraphExec(const Graph& graph, Device* device, unsigned seed, bool delays);
  void Launch(Stream* stream);

  std::vector<Node> nodes;
  std::vector<size_t> lane;
  std::vector<std::unique_ptr<Stream>> lanes;  // of lanes 1, 2, ...
  std::shared_ptr<Completion> last;
};

}  // namespace msrt::cuda::emulated
