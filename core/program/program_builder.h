// Turns a placement into the steps of a Program: buffers, copies and layout changes, views,
// kernels.
#pragma once

#include "core/program/program.h"

namespace msrt {

class ProgramBuilder {
 public:
  // `program` has its graph, host, offered graph and devices. The placement and `uploads` outlive
  // the builder.
  ProgramBuilder(const Placement& placement, UploadedConstants* uploads, Program* program);

  ~ProgramBuilder();
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;

  // Adds one step of the placement; call in their order.
  Status AddKernel(const Placement::Step& step, std::string_view delegate, Kernel kernel);
  void AddHostWork(const Placement::Step& step);
  // Waits for the constants. On an error, failed_device() is the device that did not take them.
  Status Finish();
  uint16_t failed_device() const { return failed_device_; }

 private:
  void AddExchange(uint32_t node);
  void FindWanted(const Placement& placement);
  // The state in which the caller has an input or wants an output.
  TensorState HomeOf(ValueId value) const;
  BufferId NewBuffer(ValueId value, TensorState state);
  BufferId Produce(ValueId value, TensorState state);
  void Hold(BufferId buffer);
  BufferId Find(ValueId value, TensorState state) const;
  BufferId Need(uint32_t node, ValueId value, TensorState state);
  Result<BufferId> NeedConstant(ValueId value, uint16_t device);
  Result<std::shared_ptr<const DeviceBlock>> Upload(ValueId value, uint16_t device);
  Status FinishUploads();
  void AddOutputs();
  void MarkTailCall();
  void DropUnusedDevices();
  BufferId Transfer(StepKind kind, uint32_t node, BufferId from, TensorState to);
  double SecondsOf(StepKind kind, TensorState from, TensorState to, ValueId value) const;
  // Copies a device value that others want as soon as it is made, so that the copy overlaps other
  // steps.
  void SendOn(uint32_t node, BufferId buffer);

  const Graph& graph_;
  Program& program_;
  const TransferCosts& transfers_;
  const std::vector<std::pair<ValueId, uint16_t>>& device_values_;
  std::vector<StateSet> wanted_;                // by value
  std::vector<BufferId> produced_;              // by value: the buffer its producer writes
  std::vector<std::vector<BufferId>> buffers_;  // by value: one for each state it is in
  UploadedConstants& uploads_;
  struct PendingUpload {
    std::span<const std::byte> constant;
    std::shared_ptr<const DeviceBlock> copy;
  };
  std::vector<PendingUpload> pending_uploads_;
  std::vector<std::unique_ptr<Stream>> upload_streams_;  // by device, made when needed
  uint16_t failed_device_ = 0;
};

}  // namespace msrt
