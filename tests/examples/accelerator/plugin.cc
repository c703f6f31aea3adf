// An emulated accelerator as a plugin: memory that the host cannot access, streams that run in
// parallel with it, a memory limit, and failures on demand. The arithmetic is that of msrt's plain
// loops, so results must equal theirs bit for bit.
#include <memory>

#include "delegates/reference/reference.h"
#include "tests/examples/accelerator/accelerator.h"
#include "tests/examples/accelerator/delegate.h"
#include "tests/examples/accelerator/device.h"

extern "C" MSRT_API msrt_status msrt_plugin_register(const msrt_plugin_host* host) {
  using namespace accelerator;
  try {
    Options options;
    if (const Failure failure = ParseOptions(host->options, &options); !failure.ok()) {
      host->fail(host->host, failure.text.c_str());
      return failure.code;
    }
    auto self =
        std::make_unique<Accelerator>(options, msrt::sdk::Export(msrt::MakeReferenceDelegate()));
    const msrt_device_api device = DeviceApi(options);
    const msrt_delegate_api api = DelegateApi(&device);
    const msrt_status status = host->register_delegate(host->host, &api, self.get());
    if (status == MSRT_OK) self.release();  // the host destroys it with api.destroy
    return status;
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}
