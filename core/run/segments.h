// Binds the segments of frames: the first to the types of the inputs, each later one when the data
// or the results exist that its sizes depend on. A segment keeps its binding while these stay the
// same.
#pragma once

#include <memory>
#include <vector>

#include "core/run/device_values.h"
#include "core/run/frame.h"
#include "core/run/run_context.h"

namespace msrt {

class Segments {
 public:
  Segments(RunContext* context, DeviceValues* values)
      : context_(*context), values_(*values), continuations_(context->model.module.graphs.size()) {}

  // Binds the first segment to the frame's inputs, which are moved to where the program expects
  // them.
  Status BindFirst(Frame* frame);
  // Binds the steps after the one that ended the segment in progress, which has run.
  Status BindNext(Frame* frame);
  void Trim();

 private:
  Status AfterData(Frame* frame);
  Result<bool> DataUnchanged(Frame* frame, const BoundSegment& next);
  Status AfterControl(Frame* frame, const Step& control);
  Status BindAfterControl(Frame* frame, BoundSegment* next);
  Status SetOwnBinding(BoundSegment* segment, std::shared_ptr<const Binding> binding);
  // Copies the bytes of a buffer that exists by now, on the host or on a device.
  Status Read(Frame* frame, BufferId buffer, void* to, size_t bytes);

  // The last binding after a control step, with the types it was made for.
  struct Continuation {
    std::shared_ptr<const EntryProgram> placed;  // destroyed after the binding
    std::shared_ptr<const Binding> binding;
    std::vector<Type> results, states;
  };

  RunContext& context_;
  DeviceValues& values_;
  std::vector<std::vector<Continuation>> continuations_;  // by graph, then by segment
  std::vector<std::byte> read_;                           // data that determines sizes
};

}  // namespace msrt
