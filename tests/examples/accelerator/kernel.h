// A compiled candidate (Kernel), and the same for one set of shapes (BoundKernel), as in
// msrt_delegate_api: the common base of chains of nodes (chain_kernel.cc) and control flow that is
// taken whole (owned_kernel.cc).
#pragma once

#include <memory>
#include <vector>

#include "tests/examples/accelerator/accelerator.h"
#include "tests/examples/accelerator/forms.h"

namespace accelerator {

class BoundKernel;

class Kernel {
 public:
  Kernel(Accelerator* accelerator, const msrt_candidate& candidate)
      : accelerator_(*accelerator),
        memory_(*accelerator->memories[static_cast<size_t>(candidate.device)]),
        seconds_(candidate.seconds) {}
  virtual ~Kernel() = default;
  virtual Failure Bind(const msrt_host_api* host, const msrt_bound_node* nodes,
                       std::unique_ptr<BoundKernel>* out) const = 0;
  virtual size_t bytes() const = 0;
  Accelerator& accelerator() const { return accelerator_; }
  DeviceMemory& memory() const { return memory_; }  // of the device it is compiled for
  double seconds() const { return seconds_; }       // the estimate
  Forms& forms() const { return forms_; }

 private:
  Accelerator& accelerator_;
  DeviceMemory& memory_;
  const double seconds_;
  mutable Forms forms_;
};

class BoundKernel {
 public:
  explicit BoundKernel(const Kernel& kernel) : kernel_(kernel) {}
  virtual ~BoundKernel() = default;
  virtual size_t bytes() const = 0;
  virtual Failure Prepare(const msrt_host_api* host) const = 0;
  // Checks the arguments, enqueues, and returns. Copies what is needed later: the caller's arrays
  // are valid only during the call.
  Failure Enqueue(const msrt_run_args& args) const;

 protected:
  using FormList = std::vector<std::shared_ptr<const Form>>;
  struct Tensors {  // of one run
    std::vector<DeviceMemory::Use> inputs, outputs;
    FormList forms;  // by input; null: computes with the input itself
  };
  // In the stream's thread. Several streams may run the same kernel at once, so memory for
  // temporaries belongs to the run.
  virtual Failure Run(const Tensors& tensors) const = 0;
  Accelerator& accelerator() const { return kernel_.accelerator(); }
  DeviceMemory& memory() const { return kernel_.memory(); }

  std::vector<size_t> input_bytes_, output_bytes_;
  std::vector<bool> has_form_;  // by input: a parameter, computed with in its packed form

 private:
  struct Arguments {  // addresses on the device
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    FormList forms;
  };
  Failure FindForms(const msrt_run_args& args, FormList* out) const;
  Failure Launch(const Arguments& arguments, class Stream* stream) const;
  Failure RunNow(const Tensors& tensors) const;
  const Kernel& kernel_;
};

Failure MakeChainKernel(Accelerator* a, const msrt_host_api* host, const msrt_graph_view& graph,
                        const msrt_candidate& candidate, std::unique_ptr<Kernel>* out);
Failure MakeOwnedKernel(Accelerator* a, const msrt_host_api* host, const msrt_graph_view& graph,
                        const msrt_candidate& candidate, std::unique_ptr<Kernel>* out);

}  // namespace accelerator
