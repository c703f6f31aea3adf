#include "tests/cuda/nccl.h"

#include <algorithm>
#include <cstring>

namespace msrt::cuda::emulated {
namespace {

ncclResult_t ToNccl(CUresult error) {
  if (error == CUDA_SUCCESS) return ncclSuccess;
  return error == CUDA_ERROR_OUT_OF_MEMORY ? ncclSystemError : ncclUnhandledCudaError;
}

// A call returns the injected error before it does anything.
#define NCCL_CALL(name)   \
  const Call call(#name); \
  if (call.error != CUDA_SUCCESS) return ToNccl(call.error)

std::mutex registry_mutex;  // of the two maps; taken before the lock of a world, never after
std::map<std::string, std::weak_ptr<World>> worlds;
std::map<Comm*, std::shared_ptr<Comm>> comms;

std::shared_ptr<Comm> Find(ncclComm_t comm) {
  const std::lock_guard lock(registry_mutex);
  const auto found = comms.find(reinterpret_cast<Comm*>(comm));
  return found == comms.end() ? nullptr : found->second;
}

ncclComm_t Register(const std::shared_ptr<Comm>& comm) {
  {
    const std::lock_guard lock(registry_mutex);
    comms[comm.get()] = comm;
  }
  const std::lock_guard lock(emulation()->mutex);
  emulation()->objects[comm.get()] = "NCCL communicator";
  return reinterpret_cast<ncclComm_t>(comm.get());
}

void Unregister(const std::shared_ptr<Comm>& comm) {
  {
    const std::lock_guard lock(emulation()->mutex);
    emulation()->objects.erase(comm.get());
  }
  const std::lock_guard lock(registry_mutex);
  comms.erase(comm.get());
}

// ---- groups of this thread

struct Pending {
  std::shared_ptr<Comm> comm;
  Stream* stream;
  std::vector<Communication> communications;
};
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Pending> pending;
  std::vector<std::shared_ptr<Comm>> starting;  // must be ready when the group ends
};
thread_local Group group;

// ---- operations, in the threads of streams

bool IsSame(const Communication& a, const Communication& b) {
  const bool reduces = a.kind == Collective::kAllReduce || a.kind == Collective::kReduceScatter;
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.peer == b.peer &&
         (!reduces || a.op == b.op);
}

// A rank that was killed waits, too: until it is aborted.
void RunCollective(Comm& comm, const Communication& part) {
  World& world = *comm.world;
  std::unique_lock lock(world.mutex);
  const int64_t number = comm.collectives++;
  const size_t self = static_cast<size_t>(comm.rank), ranks = world.members.size();
  world.changed.wait(lock, [&] { return !comm.killed || comm.aborted; });
  if (comm.aborted) return;
  Meeting& meeting = world.meetings[number];
  if (meeting.parts.empty()) {
    meeting.parts.assign(ranks, part);
    meeting.is_here.assign(ranks, false);
  }
  for (size_t r = 0; r < ranks; ++r) {
    if (!meeting.is_here[r] || IsSame(meeting.parts[r], part) || meeting.failed) continue;
    meeting.failed = true;
    for (Comm* member : world.members) {
      if (member != nullptr) member->error = ncclInvalidUsage;
    }
    emulation()->ReportMisuse("NCCL: rank " + std::to_string(r) + " and rank " +
                              std::to_string(self) + " call different operations");
  }
  meeting.parts[self] = part;
  meeting.is_here[self] = true;
  Release(&meeting);
  if (++meeting.arrived == static_cast<int>(ranks) && !meeting.failed) {
    meeting.computing = true;
    lock.unlock();
    Acquire(&meeting);
    {
      const Seen seen;
      Compute(meeting.parts, static_cast<int>(number % static_cast<int64_t>(ranks)));
    }
    Release(&meeting);
    lock.lock();
    meeting.done = true;
    world.changed.notify_all();
  }
  world.changed.wait(lock, [&] { return meeting.done || (comm.aborted && !meeting.computing); });
  if (!meeting.done) {
    meeting.is_here[self] = false;
    --meeting.arrived;
    return;
  }
  Acquire(&meeting);
  if (++meeting.left == static_cast<int>(ranks)) world.meetings.erase(number);
}

void CopyMail(World& world, std::unique_lock<std::mutex>* lock, Mail& mail,
              const Communication& receive, size_t bytes) {
  mail.taken = true;
  lock->unlock();
  Acquire(&mail);
  {
    const Seen seen;
    memcpy(receive.receive, mail.data, std::min(bytes, mail.bytes));
  }
  Release(&mail);
  lock->lock();
  mail.copied = true;
  world.changed.notify_all();
}

// All messages of a group together, as NCCL promises.
void RunMessages(Comm& comm, const std::vector<Communication>& messages) {
  World& world = *comm.world;
  std::unique_lock lock(world.mutex);
  world.changed.wait(lock, [&] { return !comm.killed || comm.aborted; });
  std::vector<std::pair<int, std::shared_ptr<Mail>>> sent;
  for (const Communication& m : messages) {
    if (m.kind != Collective::kSend) continue;
    sent.emplace_back(
        m.peer, std::make_shared<Mail>(Mail{m.send, m.count * BytesOf(m.type), false, false}));
    Release(sent.back().second.get());
    world.mail[{comm.rank, m.peer}].push_back(sent.back().second);
  }
  world.changed.notify_all();
  for (const Communication& m : messages) {
    if (m.kind != Collective::kReceive) continue;
    auto& box = world.mail[{m.peer, comm.rank}];
    world.changed.wait(lock, [&] { return comm.aborted || !box.empty(); });
    if (comm.aborted) break;
    const std::shared_ptr<Mail> mail = box.front();
    box.pop_front();
    const size_t bytes = m.count * BytesOf(m.type);
    if (bytes != mail->bytes) {
      comm.error = ncclInvalidUsage;
      emulation()->ReportMisuse("NCCL: rank " + std::to_string(comm.rank) + " expects " +
                                std::to_string(bytes) + " bytes from rank " +
                                std::to_string(m.peer) + ", which sends " +
                                std::to_string(mail->bytes));
    }
    CopyMail(world, &lock, *mail, m, bytes);
  }
  for (auto& [peer, mail] : sent) {
    world.changed.wait(lock, [&] { return mail->copied || (comm.aborted && !mail->taken); });
    if (mail->copied) {
      Acquire(mail.get());
    } else {
      std::erase(world.mail[{comm.rank, peer}], mail);
    }
  }
}

CUresult RunCommunications(Comm& comm, const std::vector<Communication>& communications) {
  const Unseen unseen;
  {
    const std::lock_guard lock(emulation()->mutex);
    emulation()->counters.collectives += static_cast<int64_t>(communications.size());
  }
  if (const CUresult error = emulation()->BeginWork(); error != CUDA_SUCCESS) return error;
  if (comm.device->error != CUDA_SUCCESS || comm.aborted) return CUDA_SUCCESS;
  bool has_messages = false;
  for (const Communication& c : communications) {
    const bool message = c.kind == Collective::kSend || c.kind == Collective::kReceive;
    has_messages |= message;
    if (!message) RunCollective(comm, c);
  }
  if (has_messages) RunMessages(comm, communications);
  return CUDA_SUCCESS;
}

ncclResult_t EnqueueAll(std::vector<Pending> pending) {
  for (Pending& p : pending) {
    Emulation& e = *emulation();
    bool captured = false;
    {
      const std::lock_guard lock(e.mutex);
      captured = p.stream->capture != nullptr;
    }
    if (!captured) ++p.comm->pending;
    Work work = [comm = p.comm, list = std::move(p.communications), captured](unsigned) {
      const CUresult error = RunCommunications(*comm, list);
      const Unseen unseen;
      if (!captured) {
        const std::lock_guard lock(comm->world->mutex);
        --comm->pending;
        comm->world->changed.notify_all();
      }
      return error;
    };
    if (e.Enqueue(p.stream, std::move(work), {}, false) != CUDA_SUCCESS) {
      return ncclUnhandledCudaError;
    }
  }
  return ncclSuccess;
}

ncclResult_t CheckBuffer(const char* function, const Comm& comm, const void* buffer, size_t bytes) {
  Block block;
  if (bytes == 0) return ncclSuccess;
  return emulation()->CheckAccess(function, *comm.device, reinterpret_cast<uint64_t>(buffer), bytes,
                                  &block)
             ? ncclSuccess
             : ncclInvalidArgument;
}

ncclResult_t Start(const char* function, ncclComm_t handle, cudaStream_t stream,
                   Communication communication, size_t sent_count, size_t received_count) {
  const std::shared_ptr<Comm> comm = Find(handle);
  const auto fail = [](ncclResult_t error) {
    if (group.depth > 0 && group.error == ncclSuccess) group.error = error;
    return error;
  };
  if (comm == nullptr) return fail(ncclInvalidArgument);
  if (comm->aborted || !comm->ready) return fail(ncclInvalidUsage);
  if (comm->error != ncclSuccess) return fail(comm->error);
  const auto cu_stream = reinterpret_cast<CUstream>(stream);
  if (CheckStream(cu_stream) != CUDA_SUCCESS) return fail(ncclUnhandledCudaError);
  const size_t bytes = BytesOf(communication.type);
  const int ranks = static_cast<int>(comm->world->members.size());
  if (ToStream(cu_stream)->device != comm->device || bytes == 0 || communication.peer < 0 ||
      communication.peer >= ranks) {
    emulation()->ReportMisuse(std::string(function) + ": wrong device, type or peer");
    return fail(ncclInvalidArgument);
  }
  for (const auto& [buffer, count] :
       {std::pair{communication.send, sent_count},
        std::pair{static_cast<const void*>(communication.receive), received_count}}) {
    if (CheckBuffer(function, *comm, buffer, count * bytes) != ncclSuccess) {
      return fail(ncclInvalidArgument);
    }
  }
  const DeviceMemory& memory = emulation()->memory;
  communication.send = memory.ToHost(reinterpret_cast<uint64_t>(communication.send));
  communication.receive = memory.ToHost(reinterpret_cast<uint64_t>(communication.receive));
  if (group.depth == 0) return EnqueueAll({{comm, ToStream(cu_stream), {communication}}});
  for (Pending& p : group.pending) {
    if (p.comm == comm && p.stream == ToStream(cu_stream)) {
      p.communications.push_back(communication);
      return ncclSuccess;
    }
  }
  group.pending.push_back({comm, ToStream(cu_stream), {communication}});
  return ncclSuccess;
}

// ---- start and end of communicators

ncclResult_t FinishStart(const std::shared_ptr<Comm>& comm) {
  if (comm->ready) return ncclSuccess;
  if (!comm->blocking) return ncclInProgress;
  if (group.depth > 0) {
    group.starting.push_back(comm);
    return ncclSuccess;
  }
  // Of a split, the world is another until it is ready; so this polls.
  while (!comm->ready && !comm->aborted) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return comm->ready ? ncclSuccess : ncclInternalError;
}

bool IsBlocking(const ncclConfig_t* config, bool otherwise) {
  return config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT ? otherwise
                                                                        : config->blocking != 0;
}

void Abort(Comm& comm) {
  World& world = *comm.world;
  std::unique_lock lock(world.mutex);
  comm.aborted = true;
  world.changed.notify_all();
  world.changed.wait(lock, [&] { return comm.pending == 0; });
  std::replace(world.members.begin(), world.members.end(), &comm, static_cast<Comm*>(nullptr));
}

// Sorts the ranks of a split into worlds.
void FinishSplit(const SplitMeeting& split) {
  std::map<int, std::vector<size_t>> groups;
  for (size_t r = 0; r < split.created.size(); ++r) {
    if (split.created[r] != nullptr) groups[split.color[r]].push_back(r);
  }
  for (auto& [color, ranks] : groups) {
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](size_t a, size_t b) { return split.key[a] < split.key[b]; });
    auto world = std::make_shared<World>(static_cast<int>(ranks.size()));
    for (size_t i = 0; i < ranks.size(); ++i) {
      Comm& comm = *split.created[ranks[i]];
      if (comm.aborted) continue;  // its peers wait until they abort, too
      world->members[i] = &comm;
      comm.world = world;
      comm.rank = static_cast<int>(i);
    }
    for (size_t r : ranks) split.created[r]->ready = !split.created[r]->aborted;
  }
}

}  // namespace

void KillNcclRank(ncclComm_t handle) {
  const std::shared_ptr<Comm> comm = Find(handle);
  if (comm == nullptr) return;
  const std::lock_guard lock(comm->world->mutex);
  comm->killed = true;
  for (Comm* member : comm->world->members) {
    if (member != nullptr && member != comm.get()) member->error = ncclRemoteError;
  }
  comm->world->changed.notify_all();
}

void EndNccl() {
  std::vector<std::shared_ptr<Comm>> left;
  {
    const std::lock_guard lock(registry_mutex);
    for (const auto& [key, comm] : comms) left.push_back(comm);
    comms.clear();
    worlds.clear();
  }
  for (const auto& comm : left) {
    const std::lock_guard lock(comm->world->mutex);
    comm->aborted = true;
    comm->world->changed.notify_all();
  }
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return "emulated"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  NCCL_CALL(ncclGetUniqueId);
  static std::atomic<uint64_t> last{0};
  const uint64_t number = ++last;
  memset(id, 0, sizeof *id);
  memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  NCCL_CALL(ncclCommInitRankConfig);
  Device* device = CurrentDevice();
  if (device == nullptr || device->error != CUDA_SUCCESS) return ncclUnhandledCudaError;
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto comm = std::make_shared<Comm>();
  comm->device = device;
  comm->rank = rank;
  comm->blocking = IsBlocking(config, true);
  {
    const std::lock_guard registry_lock(registry_mutex);
    std::weak_ptr<World>& known = worlds[std::string(id.internal, sizeof id.internal)];
    comm->world = known.lock();
    if (comm->world == nullptr) known = comm->world = std::make_shared<World>(ranks);
  }
  World& world = *comm->world;
  {
    const std::lock_guard lock(world.mutex);
    if (static_cast<int>(world.members.size()) != ranks) return ncclInvalidArgument;
    for (const Comm* member : world.members) {
      if (member == nullptr) continue;
      // NCCL refuses two ranks on one GPU.
      if (member->rank == rank || member->device == device) return ncclInvalidUsage;
    }
    world.members[static_cast<size_t>(rank)] = comm.get();
    if (++world.joined == ranks) {
      for (Comm* member : world.members) {
        if (member != nullptr) member->ready = true;
      }
    }
  }
  *out = Register(comm);
  return FinishStart(comm);
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* out,
                           ncclConfig_t* config) {
  NCCL_CALL(ncclCommSplit);
  const std::shared_ptr<Comm> parent = Find(handle);
  if (parent == nullptr) return ncclInvalidArgument;
  if (!parent->ready || parent->aborted) return ncclInvalidUsage;
  std::shared_ptr<Comm> comm;
  *out = nullptr;
  if (color != NCCL_SPLIT_NOCOLOR) {
    comm = std::make_shared<Comm>();
    comm->device = parent->device;
    comm->world = std::make_shared<World>(0);  // until it is ready
    comm->blocking = IsBlocking(config, parent->blocking);
    *out = Register(comm);
  }
  World& world = *parent->world;
  {
    const std::lock_guard lock(world.mutex);
    SplitMeeting& split = world.splits[parent->splits];
    const size_t ranks = world.members.size(), self = static_cast<size_t>(parent->rank);
    split.created.resize(ranks);
    split.color.resize(ranks);
    split.key.resize(ranks);
    split.created[self] = comm;
    split.color[self] = color;
    split.key[self] = key;
    if (++split.arrived == static_cast<int>(ranks)) {
      FinishSplit(split);
      world.splits.erase(parent->splits);
    }
    ++parent->splits;
  }
  return comm == nullptr ? ncclSuccess : FinishStart(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  NCCL_CALL(ncclCommFinalize);
  const std::shared_ptr<Comm> comm = Find(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  if (comm->pending == 0) return ncclSuccess;
  if (!comm->blocking) return ncclInProgress;
  std::unique_lock lock(comm->world->mutex);
  comm->world->changed.wait(lock, [&] { return comm->pending == 0 || comm->aborted; });
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const Call call("ncclCommDestroy");
  const std::shared_ptr<Comm> comm = Find(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  {
    std::unique_lock lock(comm->world->mutex);
    comm->world->changed.wait(lock, [&] { return comm->pending == 0; });
  }
  Abort(*comm);
  Unregister(comm);
  return ToNccl(call.error);
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const Call call("ncclCommAbort");
  const std::shared_ptr<Comm> comm = Find(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  Abort(*comm);
  Unregister(comm);
  return ToNccl(call.error);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  NCCL_CALL(ncclCommGetAsyncError);
  const std::shared_ptr<Comm> comm = Find(handle);
  if (comm == nullptr) return ncclInvalidArgument;
  *error = comm->error;
  if (*error == ncclSuccess && !comm->ready) *error = ncclInProgress;
  if (*error == ncclSuccess && comm->device->error != CUDA_SUCCESS) *error = ncclUnhandledCudaError;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  NCCL_CALL(ncclGroupStart);
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const Call call("ncclGroupEnd");
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ToNccl(call.error);
  Group ended;
  std::swap(ended, group);
  if (call.error != CUDA_SUCCESS) return ToNccl(call.error);
  if (ended.error != ncclSuccess) return ended.error;
  for (const auto& comm : ended.starting) {
    if (const ncclResult_t error = FinishStart(comm); error != ncclSuccess) return error;
  }
  return EnqueueAll(std::move(ended.pending));
}

// ---- the operations

ncclResult_t ncclSend(const void* buffer, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  NCCL_CALL(ncclSend);
  return Start("ncclSend", comm, stream,
               {Collective::kSend, buffer, nullptr, count, type, ncclSum, peer}, count, 0);
}

ncclResult_t ncclRecv(void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  NCCL_CALL(ncclRecv);
  return Start("ncclRecv", comm, stream,
               {Collective::kReceive, nullptr, buffer, count, type, ncclSum, peer}, 0, count);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  NCCL_CALL(ncclAllReduce);
  return Start("ncclAllReduce", comm, stream,
               {Collective::kAllReduce, send, receive, count, type, op, 0}, count, count);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  NCCL_CALL(ncclReduceScatter);
  const std::shared_ptr<Comm> found = Find(comm);
  const size_t ranks = found == nullptr ? 0 : found->world->members.size();
  return Start("ncclReduceScatter", comm, stream,
               {Collective::kReduceScatter, send, receive, count, type, op, 0}, count * ranks,
               count);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  NCCL_CALL(ncclAllGather);
  const std::shared_ptr<Comm> found = Find(comm);
  const size_t ranks = found == nullptr ? 0 : found->world->members.size();
  return Start("ncclAllGather", comm, stream,
               {Collective::kAllGather, send, receive, count, type, ncclSum, 0}, count,
               count * ranks);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  NCCL_CALL(ncclBroadcast);
  const std::shared_ptr<Comm> found = Find(comm);
  const bool is_root = found != nullptr && found->rank == root;
  return Start(
      "ncclBroadcast", comm, stream,
      {Collective::kBroadcast, is_root ? send : receive, receive, count, type, ncclSum, root},
      count, count);
}

}  // namespace msrt::cuda::emulated
