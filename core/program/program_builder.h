// Turns a placement into the steps of a Program: buffers, copies and layout changes, views,
// kernels.
#pragma once

#include "core/program/program.h"

namespace msrt {

class ProgramBuilder {
 public:
  // `program` has its graph, host, offered graph and devices. The placement outlives the builder.
  ProgramBuilder(const Placement& placement, Program* program);

  // Adds one step of the placement; call in their order.
  Status AddKernel(const Placement::Step& step, std::string_view delegate, Kernel kernel);
  void AddHostWork(const Placement::Step& step);
  void Finish();

 private:
  void FindWanted(const Placement& placement);
  // The state in which the caller has an input or wants an output.
  TensorState HomeOf(ValueId value) const;
  BufferId NewBuffer(ValueId value, TensorState state);
  BufferId Produce(ValueId value, TensorState state);
  void Hold(BufferId buffer);
  BufferId Find(ValueId value, TensorState state) const;
  BufferId Need(uint32_t node, ValueId value, TensorState state);
  Result<BufferId> NeedConstant(ValueId value, uint16_t device);
  void DropUnusedDevices();
  BufferId Transfer(StepKind kind, uint32_t node, BufferId from, TensorState to);
  // Copies a device value that the host wants as soon as it is made, so that the copy overlaps
  // other steps.
  void SendHome(uint32_t node, BufferId buffer);

  const Graph& graph_;
  Program& program_;
  const TransferCosts& transfers_;
  const std::vector<std::pair<ValueId, uint16_t>>& device_values_;
  std::vector<StateSet> wanted_;                         // by value
  std::vector<BufferId> produced_;                       // by value: the buffer its producer writes
  std::vector<std::vector<BufferId>> buffers_;           // by value: one for each state it is in
  std::vector<std::unique_ptr<Stream>> upload_streams_;  // by device, made when needed
};

}  // namespace msrt
