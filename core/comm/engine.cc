#include "core/comm/engine.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "core/comm/comm_module.h"
#include "core/comm/queued_communicator.h"
#include "core/comm/shm_arena.h"
#include "core/comm/shm_engine.h"
#include "core/comm/thread_engine.h"

namespace msrt {
namespace {

using TransportResult = Result<std::unique_ptr<CommTransport>>;

// The folder of the library or program that contains this code.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr)
    return ".";
  // A program may have been started by a relative name from another folder, or through PATH.
  char* path = realpath(info.dli_fname, nullptr);
  if (path == nullptr) path = realpath("/proc/self/exe", nullptr);
  std::string folder = path != nullptr ? path : "./x";
  free(path);
  return folder.substr(0, folder.find_last_of('/'));
}

// Modules stay loaded: MPI cannot be initialised twice, and Gloo's threads may outlive a group.
Result<const CommModule*> OpenModule(const std::string& engine, std::string_view package,
                                     const CommOptions& options) {
  const std::string file = StrCat("libmsrt_comm_", engine, ".so");
  std::string folders[] = {options.module_folder, ""};
  if (options.module_folder.empty()) {
    folders[0] = OwnFolder();
    folders[1] = folders[0] + "/../lib";
  }
  std::string problems;
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    // Global, because OpenMPI's own plugins expect its symbols there.
    void* handle = dlopen(StrCat(folder, "/", file).c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
      const char* error = dlerror();
      const std::string problem = error != nullptr ? error : "unknown error";
      if (access(StrCat(folder, "/", file).c_str(), R_OK) == 0)
        return NotFound("engine ", engine, ": ", folder, "/", file, " cannot be loaded (", problem,
                        "); install the library that is missing, of the package ", package,
                        ", or use another engine");
      StrAppend(&problems, problems.empty() ? "" : "; ", problem);
      continue;
    }
    const auto get = reinterpret_cast<CommModuleFunction>(dlsym(handle, kCommModuleSymbol));
    const CommModule* module = get != nullptr ? get() : nullptr;
    if (module == nullptr || module->version != CommModule::kVersion ||
        module->request_bytes != sizeof(CommModuleRequest))
      return Unsupported("engine ", engine, ": ", folder, "/", file,
                         " belongs to another version of msrt; use the one of this build");
    return module;
  }
  return NotFound("engine ", engine, ": no module ", file, " (", problems,
                  "); install the package ", package,
                  ", configure and build msrt again, or use another engine");
}

TransportResult MakeFromModule(const std::string& engine, std::string_view package, int rank,
                               int size, Store* store, const CommOptions& options) {
  MSRT_ASSIGN_OR_RETURN(const CommModule* module, OpenModule(engine, package, options));
  CommModuleRequest request;
  request.rank = rank;
  request.size = size;
  request.store = store;
  request.key = StrCat(options.key, "/", engine);
  request.group = options.group;
  request.address = options.address;
  request.timeout = options.timeout;
  return module->make(request);
}

// True if all ranks are on one host, as they tell each other through the store.
Result<bool> OnOneHost(int rank, int size, Store& store, const CommOptions& options,
                       std::chrono::steady_clock::time_point until) {
  const std::string mine = StrCat(HostId());
  MSRT_RETURN_IF_ERROR(store.Set(StrCat(options.key, "/host/", rank), mine));
  WaitLimit limit;
  limit.until = until;
  bool same = true;
  for (int r = 0; r < size; ++r) {
    MSRT_ASSIGN_OR_RETURN(const std::string host,
                          store.Get(StrCat(options.key, "/host/", r), limit));
    same &= host == mine;
  }
  return same;
}

Result<std::unique_ptr<Communicator>> MakeSingleRank(int rank, int size,
                                                     const CommOptions& options) {
  if (rank != 0 || size != 1)
    return InvalidArgument("engine threads: rank ", rank, " of ", size,
                           ", a process that makes its ranks one by one can have only one; use ",
                           "engine shm, or MakeThreadCommunicators for several threads");
  MSRT_ASSIGN_OR_RETURN(
      auto all,
      MakeThreadCommunicators(1, options.group, options.stall_limit.value_or(kDefaultStallLimit)));
  return std::move(all[0]);
}

}  // namespace

bool StartedByMpi() {
  return getenv("OMPI_COMM_WORLD_SIZE") != nullptr || getenv("PMI_SIZE") != nullptr ||
         getenv("PMIX_RANK") != nullptr;
}

Result<std::unique_ptr<Communicator>> MakeCommunicator(std::string_view engine, int rank, int size,
                                                       Store* store, const CommOptions& options) {
  const auto until = std::chrono::steady_clock::now() + options.timeout;
  std::string name(engine);
  if (name == "auto" && store == nullptr && StartedByMpi()) name = "mpi";
  if (name == "auto" && store == nullptr && size == 1) name = "threads";
  if (name == "threads") return MakeSingleRank(rank, size, options);
  const bool asks_mpi = name == "mpi" && store == nullptr;
  if (!asks_mpi && (size < 1 || rank < 0 || rank >= size))
    return InvalidArgument("engine ", name, ": rank ", rank, " of ", size,
                           ", the rank must be from 0 to the number of ranks minus 1");
  if (!asks_mpi && store == nullptr)
    return InvalidArgument("engine ", name, ": needs a store to find the other ranks; start the ",
                           "ranks with msrun launch, or use mpirun and engine mpi");
  if (name == "auto") {
    MSRT_ASSIGN_OR_RETURN(const bool one_host, OnOneHost(rank, size, *store, options, until));
    name = one_host ? "shm" : "gloo";
  }
  TransportResult transport = InvalidArgument(
      "engine '", name, "' does not exist; there are auto, ", "threads, shm, mpi and gloo");
  if (name == "shm")
    transport = MakeShmTransport(rank, size, *store, options.key + "/shm", options.group, until);
  else if (name == "mpi")
    transport = MakeFromModule(name, "libopenmpi-dev", rank, asks_mpi ? 0 : size, store, options);
  else if (name == "gloo")
    transport = MakeFromModule(name, "libgloo-dev", rank, size, store, options);
  if (!transport.ok()) return std::move(transport).status();
  (*transport)->set_stall_limit(options.stall_limit.value_or(kDefaultStallLimit));
  const std::vector<size_t> key(options.key.begin(), options.key.end());
  return MakeQueuedCommunicator(*std::move(transport), options.control, HashNumbers(key));
}

}  // namespace msrt
