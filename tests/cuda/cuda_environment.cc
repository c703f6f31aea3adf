#include "tests/cuda/cuda_environment.h"

#include <cstdlib>
#include <iostream>

#include "delegates/builtin.h"
#include "delegates/sdk/export.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

[[noreturn]] void Fail(const Status& status) {
  std::cerr << "the cuda delegate: " << status.message() << "\n";
  std::exit(1);
}

}  // namespace

std::shared_ptr<const Delegate> CudaOn(const cuda::CudaApi& api, const CudaOptions& options) {
  auto parts = MakeCudaDelegate(api, options);
  if (!parts.ok()) Fail(parts.status());
  std::vector<std::shared_ptr<const Device>> devices;
  for (const CudaParts::DevicePart& part : parts->devices) {
    auto device = Device::Make(part.api, part.self, nullptr);
    if (!device.ok()) Fail(device.status());
    (*device)->TakeOver();
    devices.push_back(*std::move(device));
  }
  const sdk::ExportedDelegate exported = sdk::Export(std::move(parts->delegate));
  auto delegate = Delegate::Make(exported.api, exported.self, nullptr, devices);
  if (!delegate.ok()) Fail(delegate.status());
  (*delegate)->TakeOver();
  return *std::move(delegate);
}

EmulatedEnvironment::EmulatedEnvironment(const cuda::EmulationOptions& emulation,
                                         const CudaOptions& options)
    : cuda_(emulation), environment_(TestEnvironment()) {
  std::vector<std::shared_ptr<const Delegate>> delegates{CudaOn(cuda_.api(), options)};
  for (const auto& d : environment_->delegates) {
    if (d->name() == "reference") delegates.push_back(d);
  }
  environment_->delegates = std::move(delegates);
  environment_->devices = DevicesOf(environment_->delegates);
}

EmulatedEnvironment::~EmulatedEnvironment() = default;

}  // namespace msrt::testing
