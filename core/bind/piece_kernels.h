// The bound kernels of pieces, kept per program. Most strips of an image differ only in where they
// are, so that a few kernels per step serve them all.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/program/program.h"

namespace msrt {

// A piece of the node of a step, as its kernel is bound.
struct PieceNode {
  std::vector<msrt_shape> inputs, outputs;
  // The known inputs of which the piece has the whole; else null.
  std::vector<const ConstTensor*> known;
  // Where they differ from the node's: attributes of the piece, and names of those that it lacks.
  AttrList attrs;
  std::vector<std::string_view> removed_attrs;
  // One for each input or output; both empty if all are dense.
  std::vector<msrt_strides> input_strides, output_strides;
};

// Thread-safe. Bounded in bytes, least recently used first out; a kernel that was evicted lives on
// while a binding has it. Destroyed before the program.
class PieceKernels {
 public:
  explicit PieceKernels(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the kernel of the step bound to the nodes: a piece of its node, or all its nodes whole.
  Result<std::shared_ptr<const BoundKernel>> Get(const Program& program, uint32_t step,
                                                 std::vector<PieceNode> nodes);

  struct Counts {
    uint64_t hits = 0, misses = 0;
    size_t kernels = 0, bytes = 0;
  };
  Counts counts() const;

 private:
  struct Bound;
  struct Entry {
    std::string key;
    std::shared_ptr<const Bound> bound;
  };
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  Counts counts_;
};

}  // namespace msrt
