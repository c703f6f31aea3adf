#include "delegates/builtin.h"

#include <algorithm>

#include "delegates/cpu/cpu.h"
#include "delegates/kernels/kernels.h"
#include "delegates/reference/reference.h"
#include "delegates/sdk/export.h"
#if defined(MSRT_HAVE_ONEDNN)
#include "delegates/onednn/onednn.h"
#endif
#if defined(MSRT_HAVE_CUDA)
#include "delegates/cuda/cuda.h"
#endif

namespace msrt {
namespace {

std::shared_ptr<const Delegate> Registered(
    const sdk::ExportedDelegate& exported,
    std::span<const std::shared_ptr<const Device>> devices = {}) {
  std::unique_ptr<void, void (*)(void*)> owner(exported.self,
                                               exported.api.destroy);  // until `registered` owns it
  auto registered = Delegate::Make(exported.api, exported.self, nullptr, devices);
  MSRT_CHECK(registered.ok());
  (*registered)->TakeOver();
  owner.release();
  return *std::move(registered);
}

#if defined(MSRT_HAVE_CUDA)
// The delegate of this machine's GPUs; null if there are none.
std::shared_ptr<const Delegate> CudaDelegate() {
  auto parts = MakeSystemCudaDelegate();
  if (!parts.ok()) return nullptr;
  std::vector<std::shared_ptr<const Device>> devices;
  for (const CudaParts::DevicePart& part : parts->devices) {
    auto device = Device::Make(part.api, part.self, nullptr);
    MSRT_CHECK(device.ok());
    (*device)->TakeOver();
    devices.push_back(*std::move(device));
  }
  return Registered(sdk::Export(std::move(parts->delegate)), devices);
}
#endif

constexpr std::string_view kKernels = "kernels";

Status RefuseName(std::span<const std::shared_ptr<const Delegate>> delegates,
                  std::string_view name) {
  const auto has_it = [&](const auto& delegate) { return delegate->name() == name; };
  if (std::none_of(delegates.begin(), delegates.end(), has_it)) return OkStatus();
  return InvalidArgument(
      "'", name, "' is the name of the delegate that registered kernels make up; choose another");
}

// `kernels` are those before it.
Status CheckKernel(const RegisteredKernel& added, const OpSet& ops,
                   std::span<const RegisteredKernel> kernels) {
  const auto same = [&](const RegisteredKernel& k) {
    return k.name == added.name && k.OpName() == added.OpName();
  };
  if (std::any_of(kernels.begin(), kernels.end(), same)) {
    return InvalidArgument("the runtime has a kernel of this name for ", added.OpName(),
                           " already");
  }
  const OpDef* def = FindOp(added.domain, added.op, &ops);
  if (def == nullptr) {
    if (added.domain == "msrt")
      return InvalidArgument("there is no op ", added.OpName(),
                             ", and domain msrt is the library's own");
    return OkStatus();
  }
  if (added.desc.version != 0 && added.desc.version != def->version) {
    return Unsupported("it has version ", added.desc.version, " of ", added.OpName(),
                       ", this runtime version ", def->version);
  }
  if ((def->traits & (kView | kRunByExecutor)) != 0 || def->effect == Effect::kState ||
      def->effect == Effect::kComm) {
    return InvalidArgument(added.OpName(),
                           " moves no data that a kernel could: the runtime itself does it");
  }
  return OkStatus();
}

}  // namespace

std::vector<std::shared_ptr<const Delegate>> BuiltinDelegates() {
  std::vector<std::shared_ptr<const Delegate>> delegates;
#if defined(MSRT_HAVE_CUDA)
  if (auto cuda = CudaDelegate(); cuda != nullptr) delegates.push_back(std::move(cuda));
#endif
#if defined(MSRT_HAVE_ONEDNN)
  delegates.push_back(Registered(sdk::Export(MakeOneDnnDelegate(ReferenceEvaluator()))));
#endif
  delegates.push_back(Registered(sdk::Export(MakeCpuDelegate())));
  delegates.push_back(Registered(sdk::Export(MakeReferenceDelegate())));
  return delegates;
}

std::vector<std::shared_ptr<const Device>> DevicesOf(
    std::span<const std::shared_ptr<const Delegate>> delegates) {
  std::vector<std::shared_ptr<const Device>> devices;
  for (const auto& delegate : delegates) {
    for (const auto& device : delegate->devices()) {
      if (std::find(devices.begin(), devices.end(), device) == devices.end())
        devices.push_back(device);
    }
  }
  return devices;
}

std::vector<UnavailableDelegate> UnavailableDelegates() {
#if defined(MSRT_HAVE_CUDA)
  if (std::string reason = WhyNoCuda(); !reason.empty()) return {{"cuda", std::move(reason)}};
#endif
  return {};
}

std::vector<LibraryInfo> BuiltinLibraries() {
#if defined(MSRT_HAVE_ONEDNN)
  return {{"oneDNN", OneDnnVersion(), OneDnnInstructions()}};
#else
  return {};
#endif
}

Status Join(const Registration& added, Environment* environment) {
  std::vector<std::shared_ptr<const Delegate>> delegates = environment->delegates;
  MSRT_RETURN_IF_ERROR(RefuseName(added.delegates, kKernels));
  MSRT_RETURN_IF_ERROR(AddDelegates(added.delegates, &delegates));
  std::vector<std::shared_ptr<const Device>> devices = environment->devices;
  MSRT_RETURN_IF_ERROR(AddDevices(added.devices, &devices));
  if (!added.kernels.empty()) {
    auto ops = environment->ops == nullptr ? std::make_shared<OpSet>()
                                           : std::make_shared<OpSet>(*environment->ops);
    std::vector<RegisteredKernel> kernels = environment->kernels;
    for (const RegisteredKernel& kernel : added.kernels) {
      Status status = kernel.meaning == nullptr ? OkStatus() : ops->Add(kernel.meaning);
      if (status.ok()) status = CheckKernel(kernel, *ops, kernels);
      if (!status.ok()) return std::move(status).Within(StrCat("kernel '", kernel.name, "'"));
      kernels.push_back(kernel);
    }
    std::erase_if(delegates, [](const auto& delegate) { return delegate->name() == kKernels; });
    delegates.push_back(Registered(MakeKernelsDelegate(kernels)));
    environment->kernels = std::move(kernels);
    environment->ops = std::move(ops);
  }
  for (const AddedPass& pass : added.passes) {
    const auto same = [&](std::string_view name) { return name == pass.name; };
    const bool taken = std::any_of(AllPasses().begin(), AllPasses().end(),
                                   [&](const PassInfo& p) { return same(p.name); }) ||
                       std::any_of(environment->passes.begin(), environment->passes.end(),
                                   [&](const AddedPass& p) { return same(p.name); });
    if (taken) return InvalidArgument("there is a pass '", pass.name, "' already");
  }
  environment->passes.insert(environment->passes.end(), added.passes.begin(), added.passes.end());
  environment->delegates = std::move(delegates);
  environment->devices = std::move(devices);
  return OkStatus();
}

const Evaluator& BuiltinEvaluator() { return ReferenceEvaluator(); }

}  // namespace msrt
