// Runs pieces of a compiled model: computes boxes of any of its values, from whole inputs, from
// boxes of them or from boxes of values in between, with the kernels that were compiled for the
// whole. Large images are computed by strips or tiles of this kind.
#pragma once

#include <memory>
#include <vector>

#include "core/bind/piece_binder.h"
#include "core/run/session.h"

namespace msrt {

// A box of a value in the caller's memory: plain, with the dims of the box; `memory.strides` may
// make it a part of a larger tensor.
struct PieceMemory {
  ValueId value;
  Box box;
  TensorView memory;
};

// Used by one thread at a time. It owns an arena; the compiled model and the bound kernels are
// shared.
class PieceRunner {
 public:
  // `inputs` are the dims of the whole inputs of the entry.
  static Result<std::unique_ptr<PieceRunner>> Create(std::shared_ptr<const CompiledModel> model,
                                                     size_t entry, std::span<const Dims> inputs,
                                                     const SessionOptions& options);
  ~PieceRunner();

  const Graph& graph() const;
  const Type& type(ValueId value) const;  // of the whole value

  // Returns the boxes of all values that computing `targets` from `sources` requires; those of the
  // graph's inputs are what `sources` must contain. Memory is not looked at.
  Result<RequiredBoxes> Required(std::span<const PieceMemory> sources,
                                 std::span<const PieceMemory> targets) const;

  // Binds the piece without running it, to learn what it needs. Only the strides of memory are
  // looked at.
  Result<std::shared_ptr<const Binding>> Bind(std::span<const PieceMemory> sources,
                                              std::span<const PieceMemory> targets) const;
  // The iteration spaces of the graph's nodes, for the whole inputs.
  const GraphSpaces& spaces() const;

  // Computes the targets. Sources and targets must not overlap in memory.
  Status Run(std::span<const PieceMemory> sources, std::span<const PieceMemory> targets,
             const RunOptions& options);

  // The binding of the last run; null before the first.
  std::shared_ptr<const Binding> binding() const;
  PieceKernels::Counts kernel_counts() const;
  size_t arena_bytes() const;
  size_t scratch_bytes() const;  // of the kernels
  // The weights that the kernels have packed.
  size_t packed_bytes() const;

 private:
  class Impl;
  explicit PieceRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msrt
