// The frames of a session: those in use on an explicit stack, innermost last, and the idle ones by
// graph, which the next activations reuse with their memory. Limits on depth and calls act here.
#pragma once

#include <memory>
#include <vector>

#include "core/run/frame.h"
#include "core/run/run_context.h"

namespace msrt {

class FrameStack {
 public:
  explicit FrameStack(RunContext* context);

  void BeginRun();
  // Pushes a frame of this graph. Its inputs and outputs are to be set.
  Result<Frame*> Push(uint32_t graph);
  // The same for a tail call, which does not count against the depth: DropCaller follows.
  Result<Frame*> PushTail(uint32_t graph);
  // Ends the caller of the last frame.
  void DropCaller();
  void Pop();

  bool empty() const { return frames_.empty(); }
  size_t size() const { return frames_.size(); }
  Frame& operator[](size_t i) const { return *frames_[i]; }
  Frame& last() const { return *frames_.back(); }
  // The caller of the last frame. Requires that there is one.
  Frame& caller() const { return *frames_[frames_.size() - 2]; }

  // Between runs: frees the memory of all frames.
  void Trim();
  size_t arena_bytes() const;   // arenas and other values of frames
  size_t frame_bytes() const;   // of frames themselves
  size_t device_bytes() const;  // arenas and other values on devices

 private:
  using FrameOwner = std::unique_ptr<Frame>;
  // `replaced` (may be null): the caller, which ends with this call.
  Result<Frame*> Acquire(uint32_t graph, const Frame* replaced);
  Result<FrameOwner> MakeFrame(uint32_t graph);
  Status CheckLimits(uint32_t graph, const Frame* replaced) const;
  // The program of the graph may have been replaced since the frame was last used.
  void Refresh(Frame* frame);

  RunContext& context_;
  uint64_t run_ = 0, calls_ = 0;
  std::vector<FrameOwner> frames_;
  std::vector<std::vector<FrameOwner>> idle_;  // by graph
  std::vector<size_t> counts_;                 // by graph: idle or not
};

}  // namespace msrt
