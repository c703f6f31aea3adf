// Engine "gloo" as a module: Gloo's connections over TCP carry messages; the collectives are ours
// (collectives.h), because Gloo's own neither compare operations nor name a failed rank.
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <net/if.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "core/base/catch_as_status.h"
#include "core/comm/comm_module.h"
#include "core/comm/gloo/pipe_signal.h"
#include "core/comm/gloo/store_abort.h"
#include "core/comm/message_exchange.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

// A rank that lost a connection waits this long for the reason: the peer may have closed it because
// it has heard of an abort first.
inline constexpr milliseconds kReasonDelay(200);

// Gloo's addresses are bytes; our store has texts.
class HexStore final : public gloo::rendezvous::Store {
 public:
  HexStore(msrt::Store& store, std::string prefix, WaitLimit limit)
      : store_(store), prefix_(std::move(prefix)), limit_(limit) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const char c : data) {
      text += kDigits[static_cast<unsigned char>(c) >> 4];
      text += kDigits[static_cast<unsigned char>(c) & 15];
    }
    const Status status = store_.Set(prefix_ + key, text);
    if (!status.ok()) throw std::runtime_error(status.message());
  }
  std::vector<char> get(const std::string& key) override {
    const Result<std::string> text = store_.Get(prefix_ + key, limit_);
    if (!text.ok()) throw std::runtime_error(text.status().message());
    std::vector<char> data;
    for (size_t i = 0; i + 1 < text->size(); i += 2)
      data.push_back(static_cast<char>(std::stoi(text->substr(i, 2), nullptr, 16)));
    return data;
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) (void)get(key);
  }
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  msrt::Store& store_;
  const std::string prefix_;
  const WaitLimit limit_;
};

using Device = std::shared_ptr<gloo::transport::Device>;
using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

class GlooTransport final : public CommTransport, private MessagePort, private AbortListener {
 public:
  GlooTransport(const CommModuleRequest& request, Device device, std::shared_ptr<StoreAbort> aborts)
      : CommTransport(request.rank, request.size, request.group),
        request_(request),
        device_(std::move(device)),
        aborts_(std::move(aborts)) {
    aborts_->Add(this);
  }
  ~GlooTransport() override { aborts_->Remove(this); }

  Status Connect();

  const std::string& engine() const override {
    static const std::string name = "gloo";
    return name;
  }
  Status Exchange(const CommHeader& op, std::span<const CommPart> sends,
                  std::span<const CommPart> receives) override;
  Status Continue(const CommHeader& op, std::span<const CommPart> sends,
                  std::span<const CommPart> receives) override;
  Result<std::unique_ptr<CommTransport>> Split(const CommSubgroup& subgroup) override;
  void Abort(const Status& reason) override;

 private:
  struct Message {
    Buffer buffer;
    int peer;
    bool is_send;
  };

  Status Send(int to, Channel channel, const void* data, size_t bytes, int* handle) override;
  Status Receive(int from, Channel channel, void* data, size_t bytes, int* handle) override;
  Status Wait(int handle, std::span<const int> awaited) override;
  void Finish(bool failed, std::shared_ptr<void> memory) override;
  Status Post(int peer, Channel channel, void* data, size_t bytes, bool is_send, int* handle);
  void AwaitConnected(HexStore& store);
  Status LostConnection(int peer, const Status& error);
  void HearAbort(const Status& reason) override { (void)End(reason); }
  bool End(const Status& reason);

  const CommModuleRequest request_;
  Device device_;
  const std::shared_ptr<StoreAbort> aborts_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  MessageExchange exchange_{*this, *this};

  // Guards what an abort touches while an exchange runs.
  std::mutex mutex_;
  std::condition_variable abort_arrived_;
  std::vector<Message> messages_;
  bool aborted_ = false;
  Status reason_;
};

Status GlooTransport::Connect() {
  const PipeSignalBlock no_signal;
  WaitLimit limit;
  limit.until = std::chrono::steady_clock::now() + request_.timeout;
  HexStore store(*request_.store, request_.key + "/", limit);
  return CatchAsStatus([&] {
           context_ = std::make_shared<gloo::rendezvous::Context>(rank(), size());
           context_->setTimeout(request_.timeout);
           if (size() == 1) return;
           context_->connectFullMesh(store, device_);
           AwaitConnected(store);
         })
      .Within(StrCat("engine gloo, rank ", rank(), " of group '", group(), "'"));
}

// A rank that left while another still connects would make that one's start fail.
void GlooTransport::AwaitConnected(HexStore& store) {
  if (rank() != 0) {
    store.set(StrCat("connected/", rank()), {});
    (void)store.get("connected");
    return;
  }
  for (int r = 1; r < size(); ++r) (void)store.get(StrCat("connected/", r));
  store.set("connected", {});
}

// The first reason counts; false for later ones.
bool GlooTransport::End(const Status& reason) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return false;
  aborted_ = true;
  reason_ = reason;
  abort_arrived_.notify_all();
  for (Message& message : messages_) {
    message.buffer->abortWaitSend();
    message.buffer->abortWaitRecv();
  }
  return true;
}

Status GlooTransport::LostConnection(int peer, const Status& error) {
  std::unique_lock lock(mutex_);
  if (abort_arrived_.wait_for(lock, kReasonDelay, [&] { return aborted_; })) return reason_;
  return IoError("group '", group(), "': rank ", rank(), " lost its connection to rank ", peer,
                 ", which has ended or closed its communicator (", error.message(), ")");
}

Status GlooTransport::Post(int peer, Channel channel, void* data, size_t bytes, bool is_send,
                           int* handle) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return reason_;
    *handle = static_cast<int>(messages_.size());
    status = CatchAsStatus([&] {
      Buffer buffer = context_->createUnboundBuffer(data, bytes);
      auto* posted = buffer.get();
      messages_.push_back({std::move(buffer), peer, is_send});
      const auto slot = static_cast<uint64_t>(channel);
      if (is_send) posted->send(peer, slot);
      else posted->recv(peer, slot);
    });
  }
  return status.ok() ? status : LostConnection(peer, status);
}

Status GlooTransport::Send(int to, Channel channel, const void* data, size_t bytes, int* handle) {
  return Post(to, channel, const_cast<void*>(data), bytes, true, handle);
}
Status GlooTransport::Receive(int from, Channel channel, void* data, size_t bytes, int* handle) {
  return Post(from, channel, data, bytes, false, handle);
}

Status GlooTransport::Wait(int handle, std::span<const int> awaited) {
  gloo::transport::UnboundBuffer* buffer = nullptr;
  int peer = 0;
  bool is_send = false;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return reason_;
    const Message& message = messages_[static_cast<size_t>(handle)];
    buffer = message.buffer.get();
    peer = message.peer, is_send = message.is_send;
  }
  // A wait of Gloo that ends at its limit closes all connections, as an abort does.
  bool complete = false;
  const auto begin = std::chrono::steady_clock::now();
  const Status status = CatchAsStatus([&] {
    complete = is_send ? buffer->waitSend(stall_limit()) : buffer->waitRecv(stall_limit());
  });
  if (complete) return OkStatus();
  if (std::chrono::steady_clock::now() - begin >= stall_limit())
    return StallError(group(), rank(), stall_limit(), awaited);
  return LostConnection(peer, status);
}

// Buffers of Gloo may be destroyed at any time: it no longer touches their memory afterwards.
void GlooTransport::Finish(bool, std::shared_ptr<void>) {
  std::vector<Message> ended;
  const std::lock_guard lock(mutex_);
  ended.swap(messages_);
}

Status GlooTransport::Exchange(const CommHeader& op, std::span<const CommPart> sends,
                               std::span<const CommPart> receives) {
  const PipeSignalBlock no_signal;
  // A message of Gloo leaves only when its receiver asks for it. The root of a broadcast therefore
  // also receives from its peers; otherwise two ranks that both believe to be the root would wait
  // for each other without learning of it.
  std::vector<CommPart> heads;
  if (op.kind == CommKind::kBroadcast) {
    for (const CommPart& part : op.detail == static_cast<uint32_t>(rank()) ? sends : receives)
      heads.push_back({part.rank, nullptr, 0});
    (sends.empty() ? sends : receives) = heads;
  }
  MSRT_RETURN_IF_ERROR(exchange_.Run(op, sends, receives));
  CountParts(sends, receives);
  return OkStatus();
}

Status GlooTransport::Continue(const CommHeader&, std::span<const CommPart> sends,
                               std::span<const CommPart> receives) {
  const PipeSignalBlock no_signal;
  MSRT_RETURN_IF_ERROR(exchange_.RunBodies(sends, receives));
  CountParts(sends, receives);
  return OkStatus();
}

Result<std::unique_ptr<CommTransport>> GlooTransport::Split(const CommSubgroup& subgroup) {
  CommModuleRequest request = request_;
  request.rank = subgroup.rank;
  request.size = static_cast<int>(subgroup.members.size());
  request.group = subgroup.name;
  StrAppend(&request.key, "/split ", subgroup.number, ".", subgroup.color);
  auto child = std::make_unique<GlooTransport>(request, device_, aborts_);
  MSRT_RETURN_IF_ERROR(child->Connect());
  return std::unique_ptr<CommTransport>(std::move(child));
}

// The peers look for the reason when they lose a connection, so the store has it first.
void GlooTransport::Abort(const Status& reason) {
  const PipeSignalBlock no_signal;
  if (End(reason)) aborts_->Publish(reason);
  if (context_ != nullptr) (void)CatchAsStatus([&] { context_->closeConnections(); });
}

Result<std::unique_ptr<CommTransport>> Make(const CommModuleRequest& request) {
  const PipeSignalBlock no_signal;  // the thread of the device keeps it
  Device device;
  MSRT_RETURN_IF_ERROR(CatchAsStatus([&] {
                         gloo::transport::tcp::attr attributes;
                         const bool is_interface = if_nametoindex(request.address.c_str()) != 0;
                         (is_interface ? attributes.iface : attributes.hostname) = request.address;
                         device = gloo::transport::tcp::CreateDevice(attributes);
                       }).Within(StrCat("engine gloo: address '", request.address, "'")));
  auto aborts = std::make_shared<StoreAbort>(request.store, request.key + "/abort");
  auto transport = std::make_unique<GlooTransport>(request, std::move(device), std::move(aborts));
  MSRT_RETURN_IF_ERROR(transport->Connect());
  return std::unique_ptr<CommTransport>(std::move(transport));
}

}  // namespace
}  // namespace msrt

extern "C" __attribute__((visibility("default"))) const msrt::CommModule* msrt_comm_module() {
  static const msrt::CommModule module{.make = msrt::Make};
  return &module;
}
