#include "delegates/cuda/cuda.h"

#include <algorithm>

#include "core/abi/msrt_plugin.h"
#include "delegates/cuda/device.h"
#include "delegates/cuda/launch.h"
#include "delegates/sdk/piece.h"

namespace msrt {
namespace cuda {
namespace {

using sdk::GraphView;
using sdk::Kernel;
using sdk::QueryResult;

// Every rule, in one list: a candidate's tag has its rule's number in the high half.
const std::vector<const Rule*>& AllRules() {
  static const std::vector<const Rule*> rules = [] {
    static constexpr std::span<const Rule> (*kFamilies[])() = {
        PointwiseRules, CastRules,   CopyRules,   ReductionRules, SoftmaxRules, NormalizationRules,
        PoolRules,      ResizeRules, GatherRules, BlasRules,      MatMulRules,  ConvRules};
    std::vector<const Rule*> all;
    for (const auto family : kFamilies) {
      for (const Rule& rule : family()) all.push_back(&rule);
    }
    return all;
  }();
  return rules;
}

// Local attributes of pieces that change nothing that kernels here depend on, or that they read.
constexpr std::string_view kLocalAttrs[] = {"divisor", "row_offset"};

std::string ShapeRefusal(const NodeInfo& node) {
  constexpr const char* kOpen = "the rank or typical shape of a tensor is not known";
  const auto refusal = [](const Type& declared, const Type& typical) -> std::string {
    if (!declared.is_tensor() || !declared.rank_known || !typical.concrete()) return kOpen;
    if (typical.dims.elements() > kMaxElementsOfKernel)
      return StrCat("a tensor of ", typical.dims.elements(), " elements; kernels count to 2^31");
    return {};
  };
  std::string reason;
  for (size_t i = 0; i < node.op->input_count() && reason.empty(); ++i) {
    if (node.op->has_input(i)) reason = refusal(node.op->input(i), node.typical->input(i));
  }
  for (size_t o = 0; o < node.op->output_count() && reason.empty(); ++o) {
    if (node.op->has_output(o)) reason = refusal(node.op->output(o), node.typical->output(o));
  }
  return reason;
}

class CudaKernel final : public Kernel {
 public:
  CudaKernel(const Rule& rule, Candidate candidate, std::shared_ptr<Gpu> gpu)
      : rule_(rule), candidate_(std::move(candidate)), gpu_(std::move(gpu)) {}

  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    const std::string reason = rule_.takes_pieces ? "" : sdk::PieceRefusal(op, kLocalAttrs);
    if (!reason.empty()) return Unsupported("cuda: ", reason);
    bool empty = true;
    for (size_t o = 0; o < op.output_count(); ++o) {
      if (!op.has_output(o)) continue;
      if (op.output(o).dims.elements() > kMaxElementsOfKernel)
        return Unsupported("cuda: an output of ", op.output(o).dims.elements(), " elements");
      empty = empty && op.output(o).dims.elements() == 0;
    }
    if (empty) return BoundNothing();
    for (size_t i = 0; i < op.input_count(); ++i) {
      if (op.has_input(i) && op.input(i).dims.elements() > kMaxElementsOfKernel)
        return Unsupported("cuda: an input of ", op.input(i).dims.elements(), " elements");
    }
    return rule_.bind(op, candidate_, *gpu_);
  }

 private:
  const Rule& rule_;
  const Candidate candidate_;
  const std::shared_ptr<Gpu> gpu_;
};

class CudaDelegate final : public sdk::Delegate {
 public:
  explicit CudaDelegate(std::vector<std::shared_ptr<Gpu>> gpus) : gpus_(std::move(gpus)) {
    const auto same = [&](const auto& gpu) {
      return gpu->properties().name == gpus_[0]->properties().name;
    };
    alike_ = std::all_of(gpus_.begin(), gpus_.end(), same);
  }
  const char* name() const override { return "cuda"; }
  uint32_t native_types() const override { return MSRT_BIT(MSRT_F16) | MSRT_BIT(MSRT_BF16); }
  std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const auto& gpu : gpus_) names.push_back(gpu->name());
    return names;
  }

  void Query(const GraphView& graph, QueryResult* out) const override {
    for (size_t n = 0; n < graph.node_count(); ++n) {
      const NodeInfo node = graph.node(n);
      const size_t before = out->candidates.size();
      std::string reason = ShapeRefusal(node);
      if (reason.empty()) reason = OfferOnDevices(node, static_cast<uint32_t>(n), out);
      if (out->candidates.size() == before)
        out->refusals.push_back({static_cast<uint32_t>(n), std::move(reason)});
    }
  }

  Result<std::unique_ptr<Kernel>> Compile(const GraphView&, const Candidate& candidate,
                                          const sdk::CompileContext&) const override {
    const std::shared_ptr<Gpu>& gpu = gpus_[static_cast<size_t>(candidate.device)];
    MSRT_RETURN_IF_ERROR(gpu->Alive());
    return std::unique_ptr<Kernel>(
        std::make_unique<CudaKernel>(*AllRules()[candidate.tag >> 32], candidate, gpu));
  }

 private:
  // Equal GPUs share a candidate; others get one each, with costs of their own. A lost GPU gets
  // none.
  std::string OfferOnDevices(const NodeInfo& node, uint32_t n, QueryResult* out) const {
    const bool any_lost =
        std::any_of(gpus_.begin(), gpus_.end(), [](const auto& gpu) { return gpu->lost(); });
    if (alike_ && !any_lost) return Offer(node, n, *gpus_[0], sdk::kAnyDevice, out);
    std::string reason = "every GPU was lost";
    for (size_t d = 0; d < gpus_.size(); ++d) {
      if (!gpus_[d]->lost()) reason = Offer(node, n, *gpus_[d], static_cast<int32_t>(d), out);
    }
    return reason;
  }

  // Adds what the rules of the op offer for the node; returns the reasons of those that do not.
  static std::string Offer(const NodeInfo& node, uint32_t n, const Gpu& gpu, int32_t device,
                           QueryResult* out) {
    std::vector<Candidate> candidates;
    std::string reasons;
    const std::vector<const Rule*>& rules = AllRules();
    for (size_t r = 0; r < rules.size(); ++r) {
      const Rule& rule = *rules[r];
      if (rule.op != node.op->op() || rule.domain != node.op->domain()) continue;
      std::string reason = rule.takes_pieces ? "" : sdk::PieceRefusal(*node.op, kLocalAttrs);
      if (reason.empty()) reason = rule.query(node, gpu.properties(), &candidates);
      if (!reason.empty()) StrAppend(&reasons, reasons.empty() ? "" : "; ", reason);
      for (Candidate& c : candidates) {
        c.node = n;
        c.device = device;
        c.tag = static_cast<uint64_t>(r) << 32 | (c.tag & UINT32_MAX);
        out->candidates.push_back(std::move(c));
      }
      candidates.clear();
    }
    return reasons.empty() ? "the cuda delegate has no kernel for this op" : reasons;
  }

  const std::vector<std::shared_ptr<Gpu>> gpus_;
  bool alike_ = true;
};

Status CheckDriver(const CudaDriver& driver, CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return OkStatus();
  const char* name = nullptr;
  (void)driver.cuGetErrorName(result, &name);
  return DelegateError("no GPU: ", call, ": ",
                       name != nullptr ? name : StrCat("error ", static_cast<int>(result)));
}

Result<std::vector<int>> Ordinals(const CudaDriver& driver, const CudaOptions& options) {
  MSRT_RETURN_IF_ERROR(CheckDriver(driver, driver.cuInit(0), "cuInit"));
  int count = 0;
  MSRT_RETURN_IF_ERROR(CheckDriver(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count <= 0) return DelegateError("no GPU: the driver finds none");
  std::vector<int> ordinals = options.devices;
  for (int d = 0; options.devices.empty() && d < count; ++d) ordinals.push_back(d);
  for (int ordinal : ordinals) {
    if (ordinal < 0 || ordinal >= count)
      return InvalidArgument("GPU ", ordinal, ": there are ", count, ", numbered from 0");
  }
  return ordinals;
}

}  // namespace
}  // namespace cuda

Result<CudaParts> MakeCudaDelegate(const cuda::CudaApi& tables, const CudaOptions& options) {
  const auto api = std::make_shared<const cuda::CudaApi>(tables);
  MSRT_ASSIGN_OR_RETURN(const std::vector<int> ordinals, cuda::Ordinals(api->driver, options));
  CudaParts parts;
  std::vector<std::shared_ptr<cuda::Gpu>> gpus;
  Status first_failure;
  for (int ordinal : ordinals) {
    auto gpu = cuda::Gpu::Open(api, ordinal, {options.memory_limit, options.keep_bytes});
    if (gpu.ok()) {
      gpus.push_back(*std::move(gpu));
      continue;
    }
    // The other GPUs are there nevertheless.
    parts.notes.push_back(gpu.status().message());
    if (first_failure.ok()) first_failure = gpu.status();
  }
  if (gpus.empty()) return first_failure;
  for (const auto& a : gpus) {
    for (const auto& b : gpus) {
      if (a != b) MSRT_RETURN_IF_ERROR(a->ConnectPeer(*b));
    }
  }
  for (const std::string& missing : {api->blas_missing, api->dnn_missing, api->nccl_missing}) {
    if (!missing.empty()) parts.notes.push_back(missing);
  }
  for (const auto& gpu : gpus) {
    const cuda::ExportedDevice device = cuda::ExportDevice(gpu);
    parts.devices.push_back({device.api, device.self});
  }
  parts.delegate = std::make_unique<cuda::CudaDelegate>(std::move(gpus));
  return parts;
}

namespace {

// The libraries stay loaded, so they are looked for once.
struct SystemCuda {
  SystemCuda() : missing(cuda::LoadCuda(&api)) {}
  cuda::CudaApi api;
  const std::string missing;
};
const SystemCuda& TheSystem() {
  static const SystemCuda system;
  return system;
}

}  // namespace

Result<CudaParts> MakeSystemCudaDelegate(const CudaOptions& options) {
  const SystemCuda& system = TheSystem();
  if (!system.missing.empty()) return DelegateError(system.missing);
  return MakeCudaDelegate(system.api, options);
}

std::string WhyNoCuda() {
  const SystemCuda& system = TheSystem();
  if (!system.missing.empty()) return system.missing;
  const auto ordinals = cuda::Ordinals(system.api.driver, {});
  return ordinals.ok() ? std::string() : ordinals.status().message();
}

}  // namespace msrt
