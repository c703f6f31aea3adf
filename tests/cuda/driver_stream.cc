// Emulated driver: streams, events, capture and graphs.
#include "tests/cuda/emulation.h"

namespace msrt::cuda::emulated {
namespace {

Event* ToEvent(CUevent event) { return reinterpret_cast<Event*>(event); }

bool IsLivingEvent(CUevent event) {
  const std::lock_guard lock(emulation()->mutex);
  return emulation()->IsLiving(ToEvent(event), "event");
}

// A call that a capture forbids ends it.
CUresult Invalidate(Capture* capture) {
  capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool IsAncestor(const std::vector<Node>& nodes, size_t ancestor, size_t node) {
  if (ancestor == node) return true;
  for (size_t before : nodes[node].after) {
    if (before >= ancestor && IsAncestor(nodes, ancestor, before)) return true;
  }
  return false;
}

}  // namespace

CUresult CheckStream(CUstream stream) {
  Emulation& e = *emulation();
  const std::lock_guard lock(e.mutex);
  if (!e.IsLiving(ToStream(stream), "stream")) {
    e.misuse = "the stream is none, or is destroyed";
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return ToStream(stream)->device->error;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  EMULATED_CALL(cuStreamCreateWithPriority);
  Device* device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device->error != CUDA_SUCCESS) return device->error;
  if (flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Emulation& e = *emulation();
  auto* created = new Stream(device, e.NextSeed(), e.options.delays);
  std::vector<std::unique_ptr<Stream>> idle;  // destroyed earlier; joined without the lock
  const std::lock_guard lock(e.mutex);
  for (auto& ended : e.ended_streams) {
    if (ended->IsIdle()) idle.push_back(std::move(ended));
  }
  std::erase(e.ended_streams, nullptr);
  ++e.counters.streams_created;
  e.objects[created] = "stream";
  e.streams.insert(created);
  *stream = reinterpret_cast<CUstream>(created);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  const Call call("cuStreamDestroy");
  Emulation& e = *emulation();
  std::unique_ptr<Stream> idle;
  const std::lock_guard lock(e.mutex);
  Stream* s = ToStream(stream);
  if (!e.IsLiving(s, "stream")) return CUDA_ERROR_INVALID_HANDLE;
  e.objects.erase(s);
  e.streams.erase(s);
  if (s->capture != nullptr) s->capture->invalid = true;
  // Its work goes on without the caller.
  (s->IsIdle() ? idle : e.ended_streams.emplace_back()).reset(s);
  return call.error;
}

CUresult cuStreamSynchronize(CUstream stream) {
  EMULATED_CALL(cuStreamSynchronize);
  Emulation& e = *emulation();
  if (const CUresult error = CheckStream(stream); error == CUDA_ERROR_INVALID_HANDLE) return error;
  Stream* s = ToStream(stream);
  {
    const std::lock_guard lock(e.mutex);
    if (s->capture != nullptr) return Invalidate(s->capture.get());
    ++e.counters.syncs;
    ++e.counters.host_waits;
  }
  s->PushCompletion()->Wait();
  return s->device->error;
}

CUresult cuStreamQuery(CUstream stream) {
  EMULATED_CALL(cuStreamQuery);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Stream* s = ToStream(stream);
  {
    const std::lock_guard lock(emulation()->mutex);
    if (s->capture != nullptr) return Invalidate(s->capture.get());
  }
  if (!s->IsIdle()) return CUDA_ERROR_NOT_READY;
  // Nothing is left to wait for: this only orders the stream's work before what follows.
  s->PushCompletion()->Wait();
  return s->device->error;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  EMULATED_CALL(cuStreamWaitEvent);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  if (!IsLivingEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  Event* ev = ToEvent(event);
  {
    const std::lock_guard lock(e.mutex);
    if (ev->capture != nullptr) {
      if (s->capture == nullptr) {
        if (ev->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        s->capture = ev->capture;
        s->heads.clear();
        ev->capture->streams.insert(s);
      } else if (s->capture != ev->capture) {
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
      }
      s->heads.insert(ev->heads.begin(), ev->heads.end());
      return CUDA_SUCCESS;
    }
    if (s->capture != nullptr) {
      if (ev->completion == nullptr) return CUDA_SUCCESS;
      s->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (ev->completion == nullptr) return CUDA_SUCCESS;
  }
  s->Push({s->device, ev->completion, nullptr, nullptr, false});
  return CUDA_SUCCESS;
}

// ---- events

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  EMULATED_CALL(cuEventCreate);
  Device* device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device->error != CUDA_SUCCESS) return device->error;
  auto* created = new Event{device, (flags & CU_EVENT_DISABLE_TIMING) == 0, nullptr, nullptr, {}};
  const std::lock_guard lock(emulation()->mutex);
  ++emulation()->counters.events_created;
  emulation()->objects[created] = "event";
  *event = reinterpret_cast<CUevent>(created);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  const Call call("cuEventDestroy");
  const std::lock_guard lock(emulation()->mutex);
  if (!emulation()->IsLiving(ToEvent(event), "event")) return CUDA_ERROR_INVALID_HANDLE;
  emulation()->objects.erase(ToEvent(event));
  delete ToEvent(event);
  return call.error;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  EMULATED_CALL(cuEventRecord);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  if (!IsLivingEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  Stream* s = ToStream(stream);
  Event* e = ToEvent(event);
  if (e->device != s->device) {
    emulation()->ReportMisuse("cuEventRecord: the event and the stream are of different devices");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  {
    const std::lock_guard lock(emulation()->mutex);
    e->capture = s->capture;
    e->heads = s->heads;
    if (s->capture != nullptr) {
      return s->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    }
  }
  e->completion = s->PushCompletion();
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  EMULATED_CALL(cuEventSynchronize);
  if (!IsLivingEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  Event* e = ToEvent(event);
  {
    const std::lock_guard lock(emulation()->mutex);
    if (e->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    ++emulation()->counters.syncs;
    ++emulation()->counters.host_waits;
  }
  if (e->completion != nullptr) e->completion->Wait();
  return e->device->error;
}

CUresult cuEventQuery(CUevent event) {
  EMULATED_CALL(cuEventQuery);
  if (!IsLivingEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  const Event* e = ToEvent(event);
  if (e->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (e->device->error != CUDA_SUCCESS) return e->device->error;
  return e->completion == nullptr || e->completion->done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  EMULATED_CALL(cuEventElapsedTime);
  if (!IsLivingEvent(start) || !IsLivingEvent(end)) return CUDA_ERROR_INVALID_HANDLE;
  const Event *a = ToEvent(start), *b = ToEvent(end);
  if (!a->has_time || !b->has_time) return CUDA_ERROR_INVALID_HANDLE;
  if (a->completion == nullptr || b->completion == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!a->completion->done() || !b->completion->done()) return CUDA_ERROR_NOT_READY;
  *milliseconds =
      std::chrono::duration<float, std::milli>(b->completion->time() - a->completion->time())
          .count();
  return CUDA_SUCCESS;
}

// ---- capture

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  EMULATED_CALL(cuStreamBeginCapture);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  const std::lock_guard lock(emulation()->mutex);
  Stream* s = ToStream(stream);
  if (s->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  s->capture = std::make_shared<Capture>();
  s->capture->origin = s;
  s->capture->mode = mode;
  s->capture->thread = std::this_thread::get_id();
  s->capture->streams.insert(s);
  s->heads.clear();
  emulation()->captures.insert(s->capture);
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const Call call("cuStreamEndCapture");
  Emulation& e = *emulation();
  *graph = nullptr;
  const std::lock_guard lock(e.mutex);
  Stream* s = ToStream(stream);
  if (!e.IsLiving(s, "stream")) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Capture> capture = s->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != s) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  // Every branch must have come back to the stream where the capture began.
  CUresult result = call.error;
  for (Stream* branch : capture->streams) {
    if (!e.streams.contains(branch)) continue;
    for (size_t head : branch->heads) {
      bool joined = false;
      for (size_t end : s->heads) joined |= IsAncestor(capture->nodes, head, end);
      if (!joined && result == CUDA_SUCCESS) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
  }
  for (Stream* branch : capture->streams) {
    if (!e.streams.contains(branch)) continue;
    branch->capture = nullptr;
    branch->heads.clear();
  }
  e.captures.erase(capture);
  if (capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (result != CUDA_SUCCESS) return result;
  auto* created = new Graph{capture->nodes};
  e.objects[created] = "graph";
  *graph = reinterpret_cast<CUgraph>(created);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  EMULATED_CALL(cuStreamIsCapturing);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  const std::lock_guard lock(emulation()->mutex);
  const auto& capture = ToStream(stream)->capture;
  *status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
            : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

// ---- graphs

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  EMULATED_CALL(cuGraphInstantiate);
  Emulation& e = *emulation();
  Device* device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device->error != CUDA_SUCCESS) return device->error;
  auto* g = reinterpret_cast<Graph*>(graph);
  {
    const std::lock_guard lock(e.mutex);
    if (!e.IsLiving(g, "graph")) return CUDA_ERROR_INVALID_HANDLE;
  }
  auto* created = new GraphExec(*g, device, e.NextSeed(), e.options.delays);
  const std::lock_guard lock(e.mutex);
  e.objects[created] = "executable graph";
  *exec = reinterpret_cast<CUgraphExec>(created);
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  EMULATED_CALL(cuGraphLaunch);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Emulation& e = *emulation();
  auto* graph = reinterpret_cast<GraphExec*>(exec);
  Stream* s = ToStream(stream);
  {
    const std::lock_guard lock(e.mutex);
    if (!e.IsLiving(graph, "executable graph")) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture != nullptr) return Invalidate(s->capture.get());
    ++e.counters.graph_launches;
  }
  for (const Node& node : graph->nodes) {
    for (const Block& block : node.blocks) {
      if (e.memory.IsLiving(block)) continue;
      e.ReportMisuse("cuGraphLaunch: the graph uses a block of " + std::to_string(block.bytes) +
                     " bytes that was freed");
      s->device->SetError(CUDA_ERROR_ILLEGAL_ADDRESS);
      return CUDA_SUCCESS;  // noticed when it runs
    }
  }
  graph->Launch(s);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const Call call("cuGraphExecDestroy");
  Emulation& e = *emulation();
  auto* graph = reinterpret_cast<GraphExec*>(exec);
  {
    const std::lock_guard lock(e.mutex);
    if (!e.IsLiving(graph, "executable graph")) return CUDA_ERROR_INVALID_HANDLE;
    e.objects.erase(graph);
    // Its lanes may still run.
    for (auto& lane : graph->lanes) e.ended_streams.push_back(std::move(lane));
  }
  delete graph;
  return call.error;
}

CUresult cuGraphDestroy(CUgraph graph) {
  const Call call("cuGraphDestroy");
  const std::lock_guard lock(emulation()->mutex);
  auto* g = reinterpret_cast<Graph*>(graph);
  if (!emulation()->IsLiving(g, "graph")) return CUDA_ERROR_INVALID_HANDLE;
  emulation()->objects.erase(g);
  delete g;
  return call.error;
}

}  // namespace msrt::cuda::emulated
