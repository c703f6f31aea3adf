#include "core/run/frame_stack.h"

#include <algorithm>

namespace msrt {
namespace {

// One level of recursion is a frame of the graph that calls itself and the frames of the branches
// and bodies from which it does so. No model nests more of these; more of them mean graphs that
// call each other without end.
constexpr size_t kFramesPerLevel = 8;

}  // namespace

FrameStack::FrameStack(RunContext* context)
    : context_(*context), idle_(context->model.module.graphs.size()), counts_(idle_.size()) {}

void FrameStack::BeginRun() {
  ++run_;
  calls_ = 0;
}

Status FrameStack::CheckLimits(uint32_t graph, const Frame* replaced) const {
  const RunOptions& options = context_.options;
  const std::string& name = context_.model.module.graphs[graph].name;
  const size_t active = counts_[graph] - idle_[graph].size() -
                        (replaced != nullptr && replaced->graph == graph ? 1 : 0);
  if (active >= options.max_depth) {
    return LimitExceeded("graph '", name, "' is active ", active,
                         " times at once: it may call itself without end; if it does not, raise "
                         "max_depth of the run");
  }
  if (frames_.size() / kFramesPerLevel >= options.max_depth) {
    return LimitExceeded(
        frames_.size(), " graphs are active at once, the last of them '", name,
        "': graphs may call each other without end; if they do not, raise max_depth of the run");
  }
  if (options.max_calls != 0 && calls_ >= options.max_calls) {
    return LimitExceeded("the run has made ", calls_,
                         " calls and iterations, which is its max_calls; a loop may have no end");
  }
  return OkStatus();
}

Result<FrameStack::FrameOwner> FrameStack::MakeFrame(uint32_t graph) {
  if (counts_[graph] >= idle_[graph].capacity()) idle_[graph].reserve(2 * (counts_[graph] + 1));
  auto frame = std::make_unique<Frame>();
  frame->graph = graph;
  Refresh(frame.get());
  const size_t bytes = OwnBytes(*frame);
  MSRT_RETURN_IF_ERROR(context_.budget.Reserve(
      bytes, StrCat("a frame of graph '", context_.model.module.graphs[graph].name, "'")));
  frame->own_bytes = bytes;
  ++counts_[graph];
  return frame;
}

Result<Frame*> FrameStack::Acquire(uint32_t graph, const Frame* replaced) {
  MSRT_RETURN_IF_ERROR(CheckLimits(graph, replaced));
  ++calls_;
  // Reserve room on the stack and among the idle frames: returning a frame must not fail.
  if (frames_.size() == frames_.capacity()) frames_.reserve(2 * frames_.size() + 4);
  FrameOwner frame;
  if (idle_[graph].empty()) {
    MSRT_ASSIGN_OR_RETURN(frame, MakeFrame(graph));
  } else {
    frame = std::move(idle_[graph].back());
    idle_[graph].pop_back();
  }
  if (frame->run != run_) Refresh(frame.get());
  frame->depth = 0;
  frame->profiled = Frame::kNotProfiled;
  frames_.push_back(std::move(frame));
  return frames_.back().get();
}

Result<Frame*> FrameStack::Push(uint32_t graph) { return Acquire(graph, nullptr); }

Result<Frame*> FrameStack::PushTail(uint32_t graph) { return Acquire(graph, &last()); }

void FrameStack::DropCaller() {
  std::swap(frames_[frames_.size() - 1], frames_[frames_.size() - 2]);
  Pop();
}

void FrameStack::Refresh(Frame* frame) {
  frame->run = run_;
  const ModelEntry& entry = *context_.model.graphs[frame->graph];
  if (frame->placed != nullptr && entry.IsCurrent(frame->placed)) return;
  std::shared_ptr<const EntryProgram> current = entry.current();
  ReleaseSegments(frame, &context_.budget);
  frame->request = {};
  frame->queues.assign(current->program->devices.size(), nullptr);
  frame->placed = std::move(current);
  for (ResultCell& cell : frame->held) Release(&cell, &context_.budget);
  frame->held.resize(frame->program().held_count);
  frame->inputs.resize(frame->graph_of().inputs.size());
}

void FrameStack::Pop() {
  Frame* frame = frames_.back().get();
  // Idle frames must not keep inputs alive.
  for (RunValue& v : frame->inputs) v.owner.reset();
  idle_[frame->graph].push_back(std::move(frames_.back()));
  frames_.pop_back();
}

void FrameStack::Trim() {
  for (auto& frames : idle_) {
    for (FrameOwner& frame : frames) ReleaseMemory(frame.get(), &context_.budget);
    frames.clear();
  }
  std::fill(counts_.begin(), counts_.end(), 0);
}

size_t FrameStack::arena_bytes() const {
  size_t bytes = 0;
  for (const auto& frames : idle_) {
    for (const FrameOwner& frame : frames) bytes += HostBytes(*frame);
  }
  return bytes;
}

size_t FrameStack::frame_bytes() const {
  size_t bytes = 0;
  for (const auto& frames : idle_) {
    for (const FrameOwner& frame : frames) {
      bytes += frame->own_bytes;
      for (const BoundSegment& segment : frame->segments) bytes += segment.own_bytes;
    }
  }
  return bytes;
}

size_t FrameStack::device_bytes() const {
  size_t bytes = 0;
  for (const auto& frames : idle_) {
    for (const FrameOwner& frame : frames) bytes += DeviceBytes(*frame);
  }
  return bytes;
}

}  // namespace msrt
