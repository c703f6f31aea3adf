#include "core/run/frame.h"

namespace msrt {
namespace {

// Visits every cell in which a frame holds a value.
template <typename FrameRef, typename Visit>
void ForEachCell(FrameRef& frame, const Visit& visit) {
  for (auto* cells : {&frame.held, &frame.unwanted, &frame.arguments, &frame.loop.slices}) {
    for (auto& cell : *cells) visit(cell);
  }
  visit(frame.loop.condition);
  for (auto& carried : frame.loop.carried) {
    for (auto& cell : carried.cells) visit(cell);
  }
  for (auto& scanned : frame.loop.scanned) {
    visit(scanned.slice);
    visit(scanned.whole);
  }
}

}  // namespace

void Release(ResultCell* cell, Budget* budget) {
  budget->Release(&cell->block);
  cell->device_block.reset();
  cell->value = {};
}

void ReleaseSegments(Frame* frame, Budget* budget) {
  for (BoundSegment& segment : frame->segments) {
    budget->Release(&segment.arena);
    budget->Release(segment.own_bytes);
  }
  frame->segments.clear();
}

void ReleaseMemory(Frame* frame, Budget* budget) {
  ReleaseSegments(frame, budget);
  budget->Release(frame->own_bytes);
  frame->own_bytes = 0;
  for (CarriedValue& c : frame->loop.carried) c.now = {};
  ForEachCell(*frame, [&](ResultCell& cell) { Release(&cell, budget); });
  frame->queues.clear();
}

size_t OwnBytes(const Frame& frame) {
  const size_t values = frame.inputs.size() * (sizeof(RunValue) + sizeof(Type)) +
                        frame.held.size() * sizeof(ResultCell);
  return sizeof(Frame) + values + sizeof(BoundSegment);
}

size_t HostBytes(const Frame& frame) {
  size_t bytes = 0;
  for (const BoundSegment& segment : frame.segments) bytes += segment.arena.bytes();
  ForEachCell(frame, [&](const ResultCell& cell) {
    bytes += cell.block == nullptr ? 0 : cell.block->bytes();
  });
  return bytes;
}

size_t DeviceBytes(const Frame& frame) {
  size_t bytes = 0;
  for (const BoundSegment& segment : frame.segments) {
    for (const DeviceBlock& arena : segment.device_arenas) bytes += arena.bytes();
  }
  ForEachCell(frame, [&](const ResultCell& cell) {
    bytes += cell.device_block == nullptr ? 0 : cell.device_block->bytes();
  });
  return bytes;
}

}  // namespace msrt
