// The placement report of a program: the expected time of each part, which nodes run together,
// which tensors move. Text and pictures are made from it here, JSON in core/api.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/program/program.h"

namespace msrt {

// Consecutive steps of one delegate. Steps of the runtime itself (views, state) do not end a
// partition and belong to the one around them.
struct PlacementPartition {
  std::string delegate;
  uint16_t device = 0;
  std::vector<uint32_t> nodes;  // in the order in which they run
  double seconds = 0;           // of kernels, estimated or measured
  double transfer_seconds = 0;  // of copies and layout changes made for its nodes
  double launch_seconds = 0;
  double bytes_in = 0,
         bytes_out = 0;  // at typical shapes: tensors it reads from others and makes for others
};

struct PlacementReport {
  const Program* program;
  std::vector<PlacementPartition> partitions;
  std::vector<uint32_t> step_of_node, partition_of_node;
  // They add up to the program's seconds.
  double kernel_seconds = 0, transfer_seconds = 0, launch_seconds = 0;
};

// The program must outlive the report.
PlacementReport MakePlacementReport(const Program& program);

// Names a memory or a queue: "host" for the runtime itself and for delegates without a device,
// "host thread" for kThreadQueue and kBackgroundQueue.
std::string_view DeviceName(const Program& program, uint16_t device);
std::string_view DelegateName(const Step& step);
// The name and op of the step's node. For a copy without a node: the value's name, and the
// algorithm.
std::string_view NameOf(const Program& program, const Step& step);
std::string OpOf(const Program& program, const Step& step);
// The tensors that a step reads or makes at run time: `buffers` without constants and kNoBuffer.
std::vector<BufferId> MovingBuffers(const Program& program, const std::vector<BufferId>& buffers);
// The bytes at the typical shape, in the buffer's layout.
double TypicalBytes(const Program& program, BufferId buffer);

// The total first, then delegates that failed, partitions, transfers, and a line for each node with
// the reasons against the others below it.
std::string PlacementText(const PlacementReport& report);
// A program with the text before its figures in a picture, such as its name.
struct TitledProgram {
  const Program* program;
  std::string title;
};
// One picture, with the programs below one another. Each delegate has a column. Each node has a
// box, whose height grows with its time. Marked arrows show where tensors are copied or change
// their layout. Beyond a few hundred nodes, neighbours share a box. The SVG is self-contained,
// without scripts.
std::string PlacementSvg(std::span<const TitledProgram> programs);

}  // namespace msrt
