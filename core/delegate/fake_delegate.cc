#include "core/delegate/fake_delegate.h"

#include <cstdlib>
#include <cstring>

namespace msrt::testing {
namespace {

FakeDelegate& Fake(void* self) { return *static_cast<FakeDelegate*>(self); }

msrt_status Query(void* self, const msrt_host_api*, const msrt_graph_view* graph,
                  const msrt_query_sink* sink) {
  const auto in = Fake(self).offers_in.find(static_cast<const OfferedGraph*>(graph->graph));
  for (const Candidate& offer : in == Fake(self).offers_in.end() ? Fake(self).offers : in->second) {
    std::vector<msrt_layout> inputs, outputs;
    for (Layout l : offer.input_layouts) inputs.push_back(static_cast<msrt_layout>(l));
    for (Layout l : offer.output_layouts) outputs.push_back(static_cast<msrt_layout>(l));
    msrt_candidate c = MSRT_INIT(msrt_candidate);
    c.nodes = offer.nodes.data();
    c.node_count = offer.nodes.size();
    c.input_layouts = inputs.data();
    c.output_layouts = outputs.data();
    c.input_count = inputs.size();
    c.output_count = outputs.size();
    c.seconds = offer.seconds;
    c.algorithm = offer.algorithm.c_str();
    c.arithmetic = offer.arithmetic.empty() ? nullptr : offer.arithmetic.c_str();
    c.packs_constants = 1;
    for (int d = 0; d < offer.granule.rank(); ++d) c.granule[d] = offer.granule[d];
    sink->candidate(sink->sink, &c);
  }
  return MSRT_OK;
}

msrt_status Compile(void* self, const msrt_host_api* host, const msrt_graph_view*,
                    const msrt_candidate*, void** kernel) {
  FakeDelegate& fake = Fake(self);
  const int number = ++fake.compilations;
  if (number <= fake.compile_failures ||
      (fake.compile_fails_every != 0 && number % fake.compile_fails_every == 0)) {
    host->fail(host->host, "this one does not compile");
    return MSRT_DELEGATE;
  }
  *kernel = self;
  return MSRT_OK;
}

// Copies are memcpy, so every stream is idle and every event has happened.
msrt_device_api FakeDevice(const char* name, double launch_seconds) {
  msrt_device_api d = MSRT_INIT(msrt_device_api);
  d.plugin_abi = MSRT_PLUGIN_ABI;
  d.name = name;
  d.launch_seconds = launch_seconds;
  d.memory = [](void* self, size_t* bytes) -> msrt_status {
    return *bytes = Fake(self).capacity_bytes, MSRT_OK;
  };
  d.allocate = [](void*, const msrt_host_api*, size_t bytes, void** out) -> msrt_status {
    *out = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *out == nullptr ? MSRT_OUT_OF_MEMORY : MSRT_OK;
  };
  d.deallocate = [](void*, void* pointer, size_t) { std::free(pointer); };
  d.stream_create = [](void* self, const msrt_host_api*, int32_t, void** out) -> msrt_status {
    return *out = self, MSRT_OK;
  };
  d.stream_destroy = [](void*, void*) {};
  d.stream_synchronize = [](void*, const msrt_host_api*, void*) -> msrt_status { return MSRT_OK; };
  d.copy_to_device = d.copy_to_host = [](void*, const msrt_host_api*, void*, void* to,
                                         const void* from, size_t bytes) -> msrt_status {
    std::memcpy(to, from, bytes);
    return MSRT_OK;
  };
  d.event_create = [](void* self, const msrt_host_api*, void** out) -> msrt_status {
    return *out = self, MSRT_OK;
  };
  d.event_destroy = [](void*, void*) {};
  d.event_record = [](void*, const msrt_host_api*, void*, void*) -> msrt_status { return MSRT_OK; };
  d.event_wait = [](void*, const msrt_host_api*, void*) -> msrt_status { return MSRT_OK; };
  return d;
}

}  // namespace

std::shared_ptr<const Delegate> MakeFake(FakeDelegate fake) {
  auto self = std::make_unique<FakeDelegate>(std::move(fake));
  msrt_device_api device = FakeDevice(self->name.c_str(), self->launch_seconds);
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = self->name.c_str();
  api.query = Query;
  api.compile = Compile;
  api.kernel_destroy = [](void*, void*) {};
  api.bind = [](void* s, const msrt_host_api*, void*, const msrt_bound_node*, size_t,
                void** out) -> msrt_status { return *out = s, MSRT_OK; };
  api.bound_destroy = [](void*, void*) {};
  api.run = [](void*, void*, const msrt_run_args*) -> msrt_status { return MSRT_OK; };
  const char* const name = self->name.c_str();
  api.devices = &name;
  api.device_count = self->has_device ? 1 : 0;
  api.destroy = [](void* s) { delete static_cast<FakeDelegate*>(s); };
  if (self->change) self->change(&api, &device);
  // The device does not own the fake: tests end it with its delegate.
  std::vector<std::shared_ptr<const Device>> devices;
  if (self->has_device) {
    auto made = Device::Make(device, self.get(), nullptr);
    MSRT_CHECK(made.ok());
    devices.push_back(*std::move(made));
  }
  auto delegate = Delegate::Make(api, self.get(), nullptr, devices);
  MSRT_CHECK(delegate.ok());
  (*delegate)->TakeOver();
  self.release();
  return *std::move(delegate);
}

Candidate OfferFor(const OfferedGraph& offered, std::vector<uint32_t> nodes, double seconds,
                   Layout inputs, Layout outputs) {
  const CandidateBorder border = offered.BorderOf(nodes);
  Candidate c;
  c.nodes = std::move(nodes);
  c.input_layouts.assign(border.inputs.size(), inputs);
  c.output_layouts.assign(border.outputs.size(), outputs);
  c.seconds = seconds;
  return c;
}

std::shared_ptr<const Host> TestHost() {
  return std::make_shared<const Host>(DefaultAllocator(),
                                      std::shared_ptr<ParallelFor>(MakeSerial()), Log());
}

}  // namespace msrt::testing
