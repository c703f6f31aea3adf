// The plan of a program as something to show: how long each part should take, what runs together,
// what moves. Text and pictures are made from it here, JSON in core/api.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/program/program.h"

namespace msrt {

// Consecutive steps of one delegate. What the runtime does itself (views, state) interrupts nobody
// and counts where it stands.
struct PlanPartition {
  std::string delegate;
  uint16_t device = 0;
  std::vector<uint32_t> nodes;  // in the order in which they run
  double seconds = 0;           // of kernels, estimated or measured
  double transfer_seconds = 0;  // of copies and layout changes made for its nodes
  double launch_seconds = 0;
  double bytes_in = 0,
         bytes_out =
             0;  // at typical shapes: what it reads that others make, and what it makes for others
};

struct Plan {
  const Program* program;
  std::vector<PlanPartition> partitions;
  std::vector<uint32_t> step_of_node, partition_of_node;
  // They add up to the program's seconds.
  double kernel_seconds = 0, transfer_seconds = 0, launch_seconds = 0;
};

// The program must outlive the plan.
Plan PlanOf(const Program& program);

// "host" for the runtime itself and for delegates without a device.
std::string_view DeviceName(const Program& program, uint16_t device);
std::string_view DelegateName(const Step& step);
// The name and op of the step's node; the value's name and the algorithm of a copy that no node
// asked for.
std::string_view NameOf(const Program& program, const Step& step);
std::string OpOf(const Program& program, const Step& step);
// Tensors that a step reads or makes at run time: its buffers without constants and what is left
// out.
std::vector<BufferId> MovingBuffers(const Program& program, const std::vector<BufferId>& buffers);
// At the typical shape, in the buffer's layout.
double TypicalBytes(const Program& program, BufferId buffer);

// The total first, then delegates that failed, partitions, transfers, and a line for each node with
// the reasons against the others below it.
std::string PlanText(const Plan& plan);
// A program with what stands before its figures in a picture, such as its name.
struct TitledProgram {
  const Program* program;
  std::string title;
};
// One picture, programs below one another: a column for each delegate, a box for each node, as high
// as it takes time, and marked arrows where tensors are copied or change their layout. Beyond a few
// hundred nodes neighbours share a box. Self-contained, without scripts.
std::string PlanSvg(std::span<const TitledProgram> programs);

}  // namespace msrt
