// Kernels of the inner delegate, one for each node: the arithmetic of everything that the
// accelerator runs.
#pragma once

#include <vector>

#include "tests/examples/accelerator/accelerator.h"

namespace accelerator {

struct InnerOffer {
  double seconds = -1;     // estimated; negative: the inner delegate or an option refuses the node
  std::string arithmetic;  // empty: no promise
  std::vector<msrt_in_place> in_place;
};

// Returns the inner delegate's offer for each node of a graph. The reasons of refusals go to
// `sink`, if there is one.
std::vector<InnerOffer> AskInner(const Accelerator& a, const msrt_host_api* host,
                                 const msrt_graph_view& graph, const msrt_query_sink* sink);

class InnerKernel {
 public:
  InnerKernel() = default;
  InnerKernel(InnerKernel&& other) noexcept
      : inner_(other.inner_), kernel_(std::exchange(other.kernel_, nullptr)) {}
  InnerKernel& operator=(InnerKernel&&) = delete;
  ~InnerKernel();
  Failure Compile(const Accelerator& a, const msrt_host_api* host, const msrt_graph_view& graph,
                  uint32_t node);
  size_t bytes() const;

 private:
  friend class InnerBound;
  const msrt::sdk::ExportedDelegate* inner_ = nullptr;
  void* kernel_ = nullptr;
};

class InnerBound {
 public:
  InnerBound() = default;
  InnerBound(InnerBound&& other) noexcept
      : inner_(other.inner_), bound_(std::exchange(other.bound_, nullptr)) {}
  InnerBound& operator=(InnerBound&&) = delete;
  ~InnerBound();
  Failure Bind(const InnerKernel& kernel, const msrt_host_api* host, const msrt_bound_node& node);
  Failure Prepare(const msrt_host_api* host) const;
  size_t bytes() const;
  // Runs in the thread of a stream. Null pointers are absent tensors.
  Failure Run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) const;

 private:
  const msrt::sdk::ExportedDelegate* inner_ = nullptr;
  void* bound_ = nullptr;
};

}  // namespace accelerator
