#include "tests/examples/accelerator/kernel.h"

#include <chrono>
#include <new>
#include <thread>

#include "delegates/sdk/graph_image.h"
#include "tests/examples/accelerator/stream.h"

namespace accelerator {
namespace {

using Place = Wiring::Place;

size_t BytesOf(const msrt_shape& shape) { return shape.dtype == 0 ? 0 : msrt::sdk::TypeOf(shape).bytes(); }

// What the inner kernels see of a host while they run in a stream: no threads but the stream's own, and a place for the text of an error.
// The host's own table must not be used there: its `fail` speaks for the thread in which the host called.
class StreamHost {
 public:
  StreamHost() : api_(MSRT_INIT(msrt_host_api)) {
    api_.threads = 1;
    api_.host = this;
    api_.fail = [](void* host, const char* message) { static_cast<StreamHost*>(host)->text_ = message; };
    api_.log = [](void*, int32_t, const char*) {};
    api_.allocate = [](void*, size_t bytes, size_t alignment) { return ::operator new(bytes, std::align_val_t(alignment), std::nothrow); };
    api_.deallocate = [](void*, void* pointer, size_t, size_t alignment) { ::operator delete(pointer, std::align_val_t(alignment)); };
    api_.parallel_for = [](void*, int64_t count, void (*task)(void*, int64_t), void* context) -> msrt_status {
      for (int64_t i = 0; i < count; ++i) task(context, i);
      return MSRT_OK;
    };
  }
  const msrt_host_api* api() const { return &api_; }
  Failure Take(msrt_status code) { return {code, code == MSRT_OK ? "" : std::move(text_)}; }
  void* Scratch(size_t bytes) {
    scratch_.resize(bytes + 64);
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch_.data()) + 63) / 64 * 64);
  }

 private:
  msrt_host_api api_;
  std::string text_;
  std::vector<std::byte> scratch_;
};

// Memory that lasts as long as one run, inside the stream.
class Temporary {
 public:
  explicit Temporary(DeviceMemory* memory) : memory_(memory) {}
  Temporary(Temporary&& other) noexcept
      : memory_(other.memory_), pointer_(std::exchange(other.pointer_, nullptr)), bytes_(other.bytes_), use_(std::move(other.use_)) {}
  ~Temporary() {
    use_ = {};
    if (pointer_ != nullptr) memory_->Free(pointer_, bytes_);
  }
  Failure Allocate(size_t bytes) {
    bytes_ = bytes;
    const Failure failure = memory_->Allocate(bytes, &pointer_);
    return failure.ok() ? memory_->Find(pointer_, bytes, "a temporary", &use_) : failure;
  }
  void* data() const { return use_.data(); }

 private:
  DeviceMemory* memory_;
  void* pointer_ = nullptr;
  size_t bytes_ = 0;
  DeviceMemory::Use use_;
};

}  // namespace

Failure Kernel::Make(Accelerator* a, const msrt_host_api* host, const msrt_graph_view& graph, const msrt_candidate& candidate,
                     std::unique_ptr<Kernel>* out) {
  if (Failure failure = a->faults.OnCompile(); !failure.ok()) return failure;
  std::unique_ptr<Kernel> kernel(new Kernel(a));
  kernel->wiring_ = WiringOf(graph, candidate.nodes, candidate.node_count);
  kernel->seconds_ = candidate.seconds;
  kernel->inner_.reserve(candidate.node_count);
  for (size_t n = 0; n < candidate.node_count; ++n) {
    // The inner delegate knows single nodes only, in plain layouts.
    msrt_candidate one = MSRT_INIT(msrt_candidate);
    one.nodes = &candidate.nodes[n];
    one.node_count = 1;
    one.input_count = NodeAt(graph, candidate.nodes[n]).input_count;
    one.output_count = NodeAt(graph, candidate.nodes[n]).output_count;
    one.algorithm = candidate.algorithm;
    one.exact = candidate.exact;
    void* inner = nullptr;
    // An error has its text already: the inner delegate was given the same host.
    if (const msrt_status code = a->inner.api.compile(a->inner.self, host, &graph, &one, &inner); code != MSRT_OK)
      return {code, "an inner kernel failed to compile"};
    kernel->inner_.push_back(inner);
  }
  *out = std::move(kernel);
  return {};
}

Kernel::~Kernel() {
  for (void* k : inner_) accelerator_->inner.api.kernel_destroy(accelerator_->inner.self, k);
}

size_t Kernel::bytes() const {
  size_t bytes = 0;
  for (const void* k : inner_) bytes += accelerator_->inner.api.kernel_bytes(accelerator_->inner.self, k);
  return bytes;
}

Failure BoundKernel::Make(const Kernel& kernel, const msrt_host_api* host, const msrt_bound_node* nodes,
                          std::unique_ptr<BoundKernel>* out) {
  const msrt::sdk::ExportedDelegate& inner = kernel.accelerator().inner;
  const Wiring& wiring = kernel.wiring();
  std::unique_ptr<BoundKernel> bound(new BoundKernel(kernel));
  bound->input_bytes_.resize(wiring.input_count);
  bound->output_bytes_.resize(wiring.output_count);
  bound->inside_bytes_.resize(wiring.inside_count);
  bound->inner_.reserve(wiring.nodes.size());
  const auto note = [&](const Place& place, const msrt_shape& shape) {
    if (place.kind == Place::kInput) bound->input_bytes_[place.index] = BytesOf(shape);
    if (place.kind == Place::kOutput) bound->output_bytes_[place.index] = BytesOf(shape);
    if (place.kind == Place::kInside) bound->inside_bytes_[place.index] = BytesOf(shape);
  };
  for (size_t n = 0; n < wiring.nodes.size(); ++n) {
    for (size_t i = 0; i < nodes[n].input_count; ++i) note(wiring.nodes[n].inputs[i], nodes[n].inputs[i]);
    for (size_t i = 0; i < nodes[n].output_count; ++i) note(wiring.nodes[n].outputs[i], nodes[n].outputs[i]);
    void* b = nullptr;
    if (const msrt_status code = inner.api.bind(inner.self, host, kernel.inner(n), &nodes[n], 1, &b); code != MSRT_OK)
      return {code, "an inner kernel cannot be bound"};
    bound->inner_.push_back(b);
  }
  *out = std::move(bound);
  return {};
}

BoundKernel::~BoundKernel() {
  const msrt::sdk::ExportedDelegate& inner = kernel_.accelerator().inner;
  for (void* b : inner_) inner.api.bound_destroy(inner.self, b);
}

size_t BoundKernel::bytes() const {
  const msrt::sdk::ExportedDelegate& inner = kernel_.accelerator().inner;
  size_t bytes = 0;
  for (const void* b : inner_) bytes += inner.api.bound_bytes(inner.self, b);
  return bytes;
}

Failure BoundKernel::Prepare(const msrt_host_api* host) const {
  const msrt::sdk::ExportedDelegate& inner = kernel_.accelerator().inner;
  for (void* b : inner_) {
    if (const msrt_status code = inner.api.prepare(inner.self, host, b); code != MSRT_OK)
      return {code, "an inner kernel failed to prepare"};
  }
  return {};
}

struct BoundKernel::Tensors {
  std::vector<DeviceMemory::Use> inputs, outputs;
  std::vector<Temporary> inside;
  void* At(const Place& place) const {
    switch (place.kind) {
      case Place::kInput:
        return inputs[place.index].data();
      case Place::kOutput:
        return outputs[place.index].data();
      case Place::kInside:
        return inside[place.index].data();
      case Place::kNone:
        break;
    }
    return nullptr;
  }
};

Failure BoundKernel::Enqueue(const msrt_run_args& args) const {
  Accelerator& a = kernel_.accelerator();
  const bool late = a.options.fails_late;
  if (!late) {
    if (Failure failure = a.faults.OnRun(); !failure.ok()) return failure;
  }
  if (args.input_count != input_bytes_.size() || args.output_count != output_bytes_.size()) {
    return {MSRT_INTERNAL, "a kernel is run with a wrong number of arguments"};
  }
  auto tensors = std::make_shared<Tensors>();
  tensors->inputs.resize(args.input_count);
  tensors->outputs.resize(args.output_count);
  for (size_t i = 0; i < args.input_count; ++i) {
    if (Failure f = a.memory.Find(args.inputs[i], input_bytes_[i], "an input", &tensors->inputs[i]); !f.ok()) return f;
  }
  for (size_t i = 0; i < args.output_count; ++i) {
    if (Failure f = a.memory.Find(args.outputs[i], output_bytes_[i], "an output", &tensors->outputs[i]); !f.ok()) return f;
  }
  static_cast<Stream*>(args.stream)->Enqueue([this, &a, late, tensors] {
    const Failure failure = late ? a.faults.OnRun() : Failure{};
    return failure.ok() ? RunNow(tensors.get()) : failure;
  });
  return {};
}

// In the stream's thread. Several streams may run the same kernel at once, so what stays inside a chain belongs to the run.
Failure BoundKernel::RunNow(Tensors* tensors) const {
  Accelerator& a = kernel_.accelerator();
  if (a.options.pretend > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kernel_.seconds() * a.options.pretend));
    return {};
  }
  for (size_t bytes : inside_bytes_) {
    if (Failure failure = tensors->inside.emplace_back(&a.memory).Allocate(bytes); !failure.ok()) return failure;
  }
  Failure failure;
  for (size_t n = 0; n < inner_.size() && failure.ok(); ++n) failure = RunNode(n, *tensors);
  return failure;
}

Failure BoundKernel::RunNode(size_t node, const Tensors& tensors) const {
  const Wiring::NodePlaces& places = kernel_.wiring().nodes[node];
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const Place& p : places.inputs) inputs.push_back(tensors.At(p));
  for (const Place& p : places.outputs) outputs.push_back(tensors.At(p));
  StreamHost host;
  const msrt_scratch scratch{&host, [](void* h, size_t bytes) { return static_cast<StreamHost*>(h)->Scratch(bytes); }};
  msrt_run_args args = MSRT_INIT(msrt_run_args);
  args.host = host.api();
  args.inputs = inputs.data();
  args.input_count = inputs.size();
  args.outputs = outputs.data();
  args.output_count = outputs.size();
  args.scratch = &scratch;
  const msrt::sdk::ExportedDelegate& inner = kernel_.accelerator().inner;
  return host.Take(inner.api.run(inner.self, inner_[node], &args));
}

}  // namespace accelerator
