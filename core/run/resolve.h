// Resolves the locations of a binding to addresses in a frame.
#pragma once

#include "core/run/frame.h"
#include "core/run/state_store.h"

namespace msrt {

inline std::byte* ArenaOf(const Frame& frame, uint16_t device, uint32_t depth) {
  const BoundSegment& segment = frame.segments[depth];
  return device == 0 ? segment.arena.data() : segment.device_arenas[device].data();
}

// `depth`: the segment whose binding the location is in.
inline void* Resolve(const Frame& frame, const StateStore& states, const Location& place,
                     uint32_t depth) {
  switch (place.kind) {
    case Location::kNowhere:
      return nullptr;
    case Location::kArena:
      return ArenaOf(frame, place.device, depth) + place.offset;
    case Location::kEarlier:
      return ArenaOf(frame, place.device, place.index) + place.offset;
    case Location::kConstant:
      return const_cast<std::byte*>(place.data);
    case Location::kInput:
      return frame.inputs[place.index].tensor.As<std::byte>() + place.offset;
    case Location::kOutput:
      return frame.outputs[place.index]->value.tensor.As<std::byte>() + place.offset;
    case Location::kState:
      return states.Memory(place.index, place.offset != 0);
    case Location::kStateCopy: {
      const auto copy = states.FindCopy(place.index, place.offset % 2 != 0,
                                        frame.program().devices[place.device].get(),
                                        static_cast<Layout>(place.offset / 2));
      return copy == nullptr ? nullptr : copy->data();
    }
    case Location::kHeld:
      return frame.held[place.index].value.tensor.data;
  }
  return nullptr;
}

}  // namespace msrt
