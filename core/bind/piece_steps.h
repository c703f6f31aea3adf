// Makes the bound steps of one piece: finds where every needed box is in memory, binds the kernels
// and inserts the copies between parts that a kernel cannot address.
#pragma once

#include <optional>

#include "core/bind/part.h"
#include "core/bind/piece_binder.h"

namespace msrt {

class PieceSteps {
 public:
  PieceSteps(const PieceBinder& binder, const PieceRequest& request, const RequiredBoxes& required,
             PieceKernels* kernels, Binding* out);

  Status Make();

 private:
  struct Block {  // a contiguous stretch of an arena
    size_t bytes = 0;
    uint16_t device = 0;
    uint32_t first = UINT32_MAX, last = 0;  // indices of bound steps
  };
  // The boxes that a step with nodes reads and writes, by input and output of the step; rank 0 and
  // not present if the piece does not have the tensor.
  struct StepBoxes {
    std::vector<std::optional<Box>> inputs, outputs;
  };

  const Type& TypeOf(BufferId b) const { return binder_.type(program_.buffers[b].value); }
  const std::optional<Box>& RequiredOf(BufferId b) const {
    return required_.values[IndexOf(program_.buffers[b].value)];
  }

  // Before steps are made.
  void FindSources();
  Status CheckSources() const;
  Status FindNeeded();
  BufferId BufferForTarget(ValueId value) const;

  // Parts.
  Location NewBlock(size_t bytes, uint16_t device);
  Part NewPart(DType dtype, const Box& box, TensorState state);
  // The part of a known value, or of a source that contains all that is required.
  std::optional<Part> Existing(BufferId b) const;
  Result<Part> PartOf(BufferId b, const Box& box) const;
  // Where the producer of a buffer writes: the target's memory if possible, otherwise new memory
  // that also holds what a source has of the box.
  Result<Part> PlaceOutput(BufferId b, const Box& written, bool takes_strides);
  Result<Part> Dense(uint32_t step, const Part& part);

  // Steps.
  Status AddStep(uint32_t s);
  Status AddKernel(uint32_t s);
  Status AddView(uint32_t s);
  Status AddTransfer(uint32_t s);
  Status Join(uint32_t step, const Part& computed, BufferId b);
  Status ImportSource(BufferId b, const std::vector<bool>& copied);
  Status Deliver(uint32_t step, BufferId b);
  Status DeliverExisting();
  void AddCopy(StepKind kind, uint32_t step, QueueId queue, const Part& from, const Part& to);
  StepBoxes BoxesOf(const Step& step) const;
  Result<std::vector<PieceNode>> PieceNodes(const Step& step, const StepBoxes& boxes,
                                            std::span<const Part> parts) const;
  Status Localize(uint32_t n, const Box& piece, PieceNode* out) const;
  void AddArgument(const Part& part, BoundStep* bound);
  void Push(BoundStep bound);
  void UseBlock(const Location& place, uint32_t step);
  void PlanArenas();

  const PieceBinder& binder_;
  const Program& program_;
  const Graph& graph_;
  const PieceRequest& request_;
  const RequiredBoxes& required_;
  PieceKernels& kernels_;
  Binding& out_;
  std::vector<int32_t> source_of_;          // by value; -1: none
  std::vector<bool> runs_;                  // by step
  std::vector<bool> needed_;                // by buffer
  std::vector<std::optional<Part>> parts_;  // by buffer
  // By buffer on a device of which a source has a part: all of it on the host, where that part and
  // what its step computes are joined, because devices have no strided copies.
  std::vector<std::optional<Part>> joined_;
  std::vector<BufferId> target_buffers_;  // by target
  std::vector<bool> delivered_;           // by target
  std::vector<Block> blocks_;
};

}  // namespace msrt
