// A registered delegate as the rest of core sees it: the C interface of msrt_plugin.h behind owning
// types. Built-in delegates and plugins both come through here, and their answers are checked here.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/delegate/device.h"
#include "core/graph/tensor.h"

namespace msrt {

class OfferedGraph;

// A set of nodes that a delegate can run as one kernel, and how; see msrt_candidate.
struct Candidate {
  std::vector<uint32_t> nodes;
  std::vector<Layout> input_layouts, output_layouts;
  double seconds = 0;
  size_t workspace_bytes = 0;
  bool packs_constants = false, reduced = false, asynchronous = false;
  std::string arithmetic;  // empty: no promise
  std::string algorithm;
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
  uint64_t tag = 0;
  int32_t device = 0;  // index among the delegate's devices; 0 on the host
  uint64_t strided_inputs = 0, strided_outputs = 0;
  Dims granule = {};  // by dim of output 0; empty: none
};

struct Refusal {
  uint32_t node;
  std::string reason;
};

struct QueryResult {
  std::vector<Candidate> candidates;
  std::vector<Refusal> refusals;
};

// Whether another delegate may succeed where one failed with this code. Bad data and a host without
// memory fail everywhere; a full or failing device affects only its delegate.
bool MayRunElsewhere(Code code, bool on_device);
// The key of the error detail that names the delegate.
inline constexpr const char* kFailedDelegate = "delegate";

class Delegate;

// A kernel for one set of shapes. Shared by the sessions that use the same shapes.
class BoundKernel {
 public:
  BoundKernel() = default;
  BoundKernel(std::shared_ptr<const Delegate> delegate, int32_t device, void* handle)
      : delegate_(std::move(delegate)), device_(device), handle_(handle) {}
  BoundKernel(BoundKernel&& other) noexcept { *this = std::move(other); }
  BoundKernel& operator=(BoundKernel&& other) noexcept {
    std::swap(delegate_, other.delegate_);
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~BoundKernel();
  explicit operator bool() const { return handle_ != nullptr; }
  // Index among the delegate's devices.
  int32_t device() const { return device_; }
  // Does what Run would otherwise do on its first call (generating code, allocating).
  Status Prepare(const Host& host) const;
  Status Run(const msrt_run_args& args) const;
  // Memory that Run needs while it runs, on the device of the candidate.
  size_t workspace_bytes() const;
  // Memory held beyond a few hundred bytes; counts against the binding cache.
  size_t bytes() const;

 private:
  std::shared_ptr<const Delegate> delegate_;
  int32_t device_ = 0;
  void* handle_ = nullptr;
};

// A compiled candidate: owns its packed weights; immutable, shared by all sessions of a model.
class Kernel {
 public:
  Kernel() = default;
  Kernel(std::shared_ptr<const Delegate> delegate, int32_t device, void* handle)
      : delegate_(std::move(delegate)), device_(device), handle_(handle) {}
  Kernel(Kernel&& other) noexcept { *this = std::move(other); }
  Kernel& operator=(Kernel&& other) noexcept {
    std::swap(delegate_, other.delegate_);
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Kernel();
  explicit operator bool() const { return handle_ != nullptr; }
  Result<BoundKernel> Bind(const Host& host, std::span<const msrt_bound_node> nodes) const;
  size_t packed_bytes() const;

 private:
  std::shared_ptr<const Delegate> delegate_;
  int32_t device_ = 0;
  void* handle_ = nullptr;
};

class Delegate : public std::enable_shared_from_this<Delegate> {
 public:
  // Checks the table. The caller owns `self` until TakeOver. `library` (may be null) stays loaded
  // as long as the delegate lives. `devices`: those that it may refer to.
  static Result<std::shared_ptr<const Delegate>> Make(
      const msrt_delegate_api& api, void* self, std::shared_ptr<const void> library,
      std::span<const std::shared_ptr<const Device>> devices = {});

  // From now on this object owns `self`.
  void TakeOver() const;

  std::string_view name() const { return name_; }
  // Those that its candidates run on; empty for a delegate that works in the host's memory.
  const std::vector<std::shared_ptr<const Device>>& devices() const { return devices_; }
  // The device of one of its candidates; null: the host.
  std::shared_ptr<const Device> DeviceOf(const Candidate& candidate) const {
    return devices_.empty() ? nullptr : devices_[static_cast<size_t>(candidate.device)];
  }

  // Whether the delegate declares that it computes in this type, besides f32.
  bool ComputesNatively(DType dtype) const {
    return (native_types_ >> static_cast<int>(dtype) & 1) != 0;
  }

  // Returns candidates in any order. A failing query refuses every node; a malformed candidate
  // counts as a refusal.
  void Query(const Host& host, const OfferedGraph& graph, QueryResult* out) const;
  // `candidate` is one that Query returned for this graph, which outlives the kernel.
  Result<Kernel> Compile(const Host& host, const OfferedGraph& graph,
                         const Candidate& candidate) const;

 private:
  friend class Kernel;
  friend class BoundKernel;
  struct Table;  // owns self
  Delegate() = default;
  std::string name_;
  uint32_t native_types_ = 0;
  std::shared_ptr<const Table> table_;
  std::vector<std::shared_ptr<const Device>> devices_;
};

}  // namespace msrt
