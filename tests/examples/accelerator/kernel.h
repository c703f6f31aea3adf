// A compiled candidate and the same for one set of shapes: kernels of the inner delegate, one after the other.
#pragma once

#include <memory>
#include <vector>

#include "tests/examples/accelerator/accelerator.h"
#include "tests/examples/accelerator/chain.h"

namespace accelerator {

class Kernel {
 public:
  static Failure Make(Accelerator* accelerator, const msrt_host_api* host, const msrt_graph_view& graph, const msrt_candidate& candidate,
                      std::unique_ptr<Kernel>* out);
  ~Kernel();
  Accelerator& accelerator() const { return *accelerator_; }
  const Wiring& wiring() const { return wiring_; }
  double seconds() const { return seconds_; }
  void* inner(size_t node) const { return inner_[node]; }
  size_t bytes() const;

 private:
  explicit Kernel(Accelerator* accelerator) : accelerator_(accelerator) {}
  Accelerator* accelerator_;
  Wiring wiring_;
  double seconds_ = 0;
  std::vector<void*> inner_;  // by node of the candidate
};

class BoundKernel {
 public:
  static Failure Make(const Kernel& kernel, const msrt_host_api* host, const msrt_bound_node* nodes, std::unique_ptr<BoundKernel>* out);
  ~BoundKernel();
  size_t bytes() const;
  Failure Prepare(const msrt_host_api* host) const;
  // Checks the arguments, enqueues, and returns. What is needed later is copied: the caller's arrays end with the call.
  Failure Enqueue(const msrt_run_args& args) const;

 private:
  explicit BoundKernel(const Kernel& kernel) : kernel_(kernel) {}
  struct Tensors;  // of one run
  Failure RunNow(Tensors* tensors) const;
  Failure RunNode(size_t node, const Tensors& tensors) const;

  const Kernel& kernel_;
  std::vector<void*> inner_;
  std::vector<size_t> input_bytes_, output_bytes_, inside_bytes_;
};

}  // namespace accelerator
