#include "tests/cuda/emulated_cuda.h"

#include <cstdlib>

#include "tests/cuda/emulation.h"

namespace msrt::cuda {
namespace emulated {
namespace {

std::atomic<Emulation*> current{nullptr};
std::atomic<uint64_t> generations{0};

}  // namespace

Emulation* emulation() {
  Emulation* e = current.load();
  if (e == nullptr) abort();  // a table outlives its EmulatedCuda
  return e;
}

const Properties& PropertiesOf(int capability) {
  static constexpr Properties kProperties[] = {
      {75, "Emulated T4", 40, 65536, 65536, 1024, 1590000, 5001000, 256, 4 << 20},
      {80, "Emulated A100", 108, 167936, 166912, 2048, 1410000, 1215000, 5120, 40 << 20},
      {90, "Emulated H100", 132, 233472, 232448, 2048, 1980000, 2619000, 5120, 50 << 20},
      {100, "Emulated B200", 148, 233472, 232448, 2048, 1965000, 3996000, 8192, 126 << 20},
      {120, "Emulated RTX 5090", 170, 102400, 101376, 1536, 2407000, 14001000, 512, 96 << 20},
  };
  for (const Properties& properties : kProperties) {
    if (properties.capability == capability) return properties;
  }
  abort();
}

Emulation::Emulation(const EmulationOptions& o)
    : options(o),
      memory(o.devices, o.memory_bytes),
      generation(++generations),
      fail_at(o.fail_at),
      fail_work_at(o.fail_work_at),
      fail_with(o.fail_with),
      fail_work_with(o.fail_work_with),
      last_seed(o.seed) {
  for (int d = 0; d < o.devices; ++d) {
    devices.push_back(std::make_unique<Device>());
    devices.back()->index = d;
    devices.back()->default_pool.device = devices.back().get();
    pools.push_back(&devices.back()->default_pool);
  }
}

Emulation::~Emulation() {
  // Streams that were not destroyed end with their work.
  for (Stream* stream : streams) delete stream;
  ended_streams.clear();
}

CUresult Emulation::BeginCall(const char* function) {
  const Unseen unseen;
  const std::lock_guard lock(mutex);
  ++counters.calls;
  ++calls_of[function];
  if (fail_at < 0 || fail_at-- > 0) return CUDA_SUCCESS;
  failed_call = function;
  return fail_with;
}

CUresult Emulation::BeginWork() {
  const std::lock_guard lock(mutex);
  ++work_count;
  if (fail_work_at < 0 || fail_work_at-- > 0) return CUDA_SUCCESS;
  return fail_work_with;
}

void Emulation::EndWork() {
  const std::lock_guard lock(mutex);
  ++counters.finished_work;
}

void Emulation::ReportMisuse(const std::string& text) {
  const Unseen unseen;
  const std::lock_guard lock(mutex);
  misuse = text;
}

unsigned Emulation::NextSeed() {
  const std::lock_guard lock(mutex);
  return last_seed = last_seed * 1664525u + 1013904223u;
}

bool Emulation::IsPinned(const void* address, size_t bytes) const {
  const std::lock_guard lock(mutex);
  const uint64_t first = reinterpret_cast<uint64_t>(address);
  auto next = pinned.upper_bound(first);
  if (next == pinned.begin()) return false;
  const auto& [start, size] = *std::prev(next);
  return first - start <= size && bytes <= size - (first - start);
}

bool Emulation::MayAccess(const Device& device, const Block& block) const {
  if (block.device == device.index) return true;
  if (block.pool != nullptr) return block.pool->readers.contains(device.index);
  return device.peers.contains(block.device);
}

bool Emulation::CheckAccess(const char* function, const Device& device, uint64_t address,
                            size_t bytes, Block* block) {
  std::string problem;
  *block = memory.Find(address, bytes);
  if (block->id == 0) {
    problem = memory.InWindow(address) ? "not within a living block" : "no device memory";
  } else {
    const std::lock_guard lock(mutex);
    if (!MayAccess(device, *block)) {
      problem = "memory of device " + std::to_string(block->device) + ", to which device " +
                std::to_string(device.index) + " has no access";
    }
  }
  if (problem.empty()) return true;
  ReportMisuse(std::string(function) + ": " + std::to_string(bytes) + " bytes at " +
               std::to_string(address) + " are " + problem);
  return false;
}

CUresult Emulation::Enqueue(Stream* stream, Work work, std::vector<Block> blocks, bool can_fail) {
  {
    const std::lock_guard lock(mutex);
    if (stream->capture != nullptr) {
      Capture& capture = *stream->capture;
      if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      capture.nodes.push_back({stream->device,
                               std::move(work),
                               can_fail,
                               std::move(blocks),
                               {stream->heads.begin(), stream->heads.end()}});
      stream->heads = {capture.nodes.size() - 1};
      return CUDA_SUCCESS;
    }
  }
  stream->Push({stream->device, nullptr, nullptr, std::move(work), can_fail});
  return CUDA_SUCCESS;
}

}  // namespace emulated

using emulated::emulation;

EmulatedCuda::EmulatedCuda(const EmulationOptions& options) {
  const Unseen unseen;
  auto* e = new emulated::Emulation(options);
  emulated::Emulation* none = nullptr;
  if (!emulated::current.compare_exchange_strong(none, e)) abort();  // one at a time
#define FILL(f) api_.driver.f = &emulated::f;
  MSRT_CUDA_DRIVER(FILL)
#undef FILL
#define FILL(f) api_.blas.f = &emulated::f;
  if (options.has_blas) {
    MSRT_CUBLASLT(FILL)
  } else {
    api_.blas_missing = "libcublasLt.so.13 not found";
  }
#undef FILL
#define FILL(f) api_.nccl.f = &emulated::f;
  if (options.has_nccl) {
    MSRT_NCCL(FILL)
  } else {
    api_.nccl_missing = "libnccl.so.2 not found";
  }
#undef FILL
  api_.dnn_missing = "libcudnn.so.9 not found";
}

EmulatedCuda::~EmulatedCuda() {
  const Unseen unseen;
  // Work that still runs uses the emulation to its end.
  emulated::EndNccl();
  emulated::Emulation* e = emulation();
  delete e;
  emulated::current = nullptr;
}

CudaApi EmulatedCuda::api() const { return api_; }

EmulationCounters EmulatedCuda::counters() const {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  return emulation()->counters;
}

int64_t EmulatedCuda::CallsOf(const std::string& function) const {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  const auto found = emulation()->calls_of.find(function);
  return found == emulation()->calls_of.end() ? 0 : found->second;
}

void EmulatedCuda::FailAt(int64_t n, CUresult error) {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  emulation()->fail_at = n;
  emulation()->fail_with = error;
  emulation()->failed_call.clear();
}

void EmulatedCuda::FailWorkAt(int64_t n, CUresult error) {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  emulation()->fail_work_at = n;
  emulation()->fail_work_with = error;
}

std::string EmulatedCuda::failed_call() const {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  return emulation()->failed_call;
}

void EmulatedCuda::LoseDevice(int device, CUresult error) {
  const Unseen unseen;
  emulated::Device& lost = *emulation()->devices.at(static_cast<size_t>(device));
  lost.is_lost = true;
  lost.SetError(error);
}

void EmulatedCuda::KillRank(ncclComm_t comm) {
  const Unseen unseen;
  emulated::KillNcclRank(comm);
}

std::string EmulatedCuda::misuse() const {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  return emulation()->misuse;
}

std::string EmulatedCuda::LiveObjects() const {
  const Unseen unseen;
  const auto* e = emulation();
  const std::lock_guard lock(e->mutex);
  std::string text;
  for (const auto& [handle, kind] : e->objects) text += std::string(kind) + "\n";
  for (const emulated::Block& block : e->memory.Living()) {
    text += std::to_string(block.bytes) + " bytes of device " + std::to_string(block.device) + "\n";
  }
  for (const auto& [address, bytes] : e->pinned) {
    text += std::to_string(bytes) + " bytes of pinned memory\n";
  }
  for (const auto& device : e->devices) {
    if (device->retained > 0) text += "context of device " + std::to_string(device->index) + "\n";
  }
  return text;
}

size_t EmulatedCuda::used_bytes(int device) const {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  return emulation()->devices.at(static_cast<size_t>(device))->used;
}

size_t EmulatedCuda::peak_bytes(int device) const {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  return emulation()->devices.at(static_cast<size_t>(device))->peak;
}

}  // namespace msrt::cuda
