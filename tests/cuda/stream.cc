#include "tests/cuda/stream.h"

#include "tests/cuda/emulation.h"
#include "tests/cuda/sanitizers.h"

namespace msrt::cuda::emulated {

// ---- completions

void Completion::Finish() {
  Release(this);
  const std::lock_guard lock(mutex_);
  done_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Completion::Wait() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
  }
  Acquire(this);
}

bool Completion::done() const {
  {
    const std::lock_guard lock(mutex_);
    if (!done_) return false;
  }
  Acquire(this);
  return true;
}

std::chrono::steady_clock::time_point Completion::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

// ---- streams

Stream::Stream(Device* on, unsigned seed, bool delays)
    : device(on),
      random_(seed * 2654435761u + 12345u),
      delays_(delays),
      thread_([this] { Loop(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Stream::Push(std::vector<Operation> operations) {
  const std::lock_guard lock(mutex_);
  for (Operation& operation : operations) {
    queue_.push_back(std::make_unique<Operation>(std::move(operation)));
    Release(queue_.back().get());
  }
  changed_.notify_all();
}

void Stream::Push(Operation operation) {
  std::vector<Operation> one;
  one.push_back(std::move(operation));
  Push(std::move(one));
}

std::shared_ptr<Completion> Stream::PushCompletion() {
  auto completion = std::make_shared<Completion>();
  Push({device, nullptr, completion, nullptr, false});
  return completion;
}

bool Stream::IsIdle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

void Stream::Loop() {
  const Unseen unseen;
  for (;;) {
    std::unique_ptr<Operation> operation;
    {
      std::unique_lock lock(mutex_);
      busy_ = false;
      changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      operation = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    }
    Acquire(operation.get());
    random_ = random_ * 1664525u + 1013904223u;
    if (delays_ && (random_ >> 16) % 4 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds((random_ >> 8) % 300));
    }
    Run(*operation);
  }
}

void Stream::Run(const Operation& operation) {
  if (operation.wait != nullptr) operation.wait->Wait();
  if (operation.work != nullptr) {
    CUresult error = operation.can_fail ? emulation()->BeginWork() : CUDA_SUCCESS;
    // After an error, the GPU does no more work, but everything ends.
    if (error == CUDA_SUCCESS && (!operation.can_fail || operation.device->error == CUDA_SUCCESS)) {
      const Seen seen;
      error = operation.work(random_);
    }
    if (error != CUDA_SUCCESS) operation.device->SetError(error);
    emulation()->EndWork();
  }
  if (operation.finish != nullptr) operation.finish->Finish();
}

// ---- graphs

GraphExec::GraphExec(const Graph& graph, Device* device, unsigned seed, bool delays)
    : nodes(graph.nodes), lane(graph.nodes.size()) {
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> tail;  // the last node of each lane
  for (size_t n = 0; n < nodes.size(); ++n) {
    size_t chosen = kNone;
    for (size_t l = 0; l < tail.size() && chosen == kNone; ++l) {
      for (size_t before : nodes[n].after) {
        if (tail[l] == before) chosen = l;
      }
    }
    if (chosen == kNone) {
      chosen = tail.size();
      tail.push_back(0);
    }
    tail[chosen] = n;
    lane[n] = chosen;
  }
  for (size_t l = 1; l < tail.size(); ++l) {
    lanes.push_back(std::make_unique<Stream>(device, seed + static_cast<unsigned>(l), delays));
  }
}

void GraphExec::Launch(Stream* stream) {
  const auto start = std::make_shared<Completion>(), end = std::make_shared<Completion>();
  std::vector<std::vector<Operation>> work(lanes.size() + 1);
  // A graph runs once at a time.
  work[0].push_back({stream->device, last, start, nullptr, false});
  for (size_t l = 1; l < work.size(); ++l) {
    work[l].push_back({stream->device, start, nullptr, nullptr, false});
  }
  std::vector<std::shared_ptr<Completion>> done(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    std::vector<Operation>& queue = work[lane[n]];
    for (size_t before : node.after) {
      if (lane[before] != lane[n]) {
        queue.push_back({node.device, done[before], nullptr, nullptr, false});
      }
    }
    done[n] = std::make_shared<Completion>();
    queue.push_back({node.device, nullptr, done[n], node.work, node.can_fail});
  }
  for (size_t l = 1; l < work.size(); ++l) {
    auto lane_end = std::make_shared<Completion>();
    work[l].push_back({stream->device, nullptr, lane_end, nullptr, false});
    work[0].push_back({stream->device, lane_end, nullptr, nullptr, false});
  }
  work[0].push_back({stream->device, nullptr, end, nullptr, false});
  stream->Push(std::move(work[0]));
  for (size_t l = 1; l < work.size(); ++l) lanes[l - 1]->Push(std::move(work[l]));
  last = end;
}

}  // namespace msrt::cuda::emulated
