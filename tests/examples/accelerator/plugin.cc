// An emulated accelerator as a plugin: memory that the host cannot access, streams that run in
// parallel with it, a memory limit, and failures on demand. The arithmetic is that of msrt's plain
// loops, so results must equal theirs bit for bit.
#include <memory>
#include <string>
#include <vector>

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
    const auto shared =
        std::make_shared<Accelerator>(options, msrt::sdk::Export(msrt::MakeReferenceDelegate()));
    std::vector<std::string> names;
    for (size_t d = 0; d < options.devices; ++d)
      names.push_back(options.devices == 1 ? "accelerator" : "accelerator" + std::to_string(d));
    std::vector<const char*> pointers;
    for (const std::string& name : names) {
      auto self = std::make_unique<Handle>(Handle{shared, pointers.size()});
      const msrt_device_api api = DeviceApi(options, name.c_str(), pointers.size());
      const msrt_status status = host->register_device(host->host, &api, self.get());
      if (status != MSRT_OK) return status;
      self.release();  // the host destroys it with api.destroy
      pointers.push_back(name.c_str());
    }
    auto self = std::make_unique<Handle>(Handle{shared});
    const msrt_delegate_api api = DelegateApi(pointers);
    const msrt_status status = host->register_delegate(host->host, &api, self.get());
    if (status == MSRT_OK) self.release();
    return status;
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}
