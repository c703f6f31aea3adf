#include "core/comm/message_exchange.h"

#include <algorithm>
#include <cstring>

namespace msrt {
namespace {

Status CheckHead(const MessageHead& head, const CommTransport& t, const CommHeader& op,
                 const CommPart& part) {
  MSRT_RETURN_IF_ERROR(CheckMessage(t.group(), t.rank(), op, part.bytes, part.rank, head.header));
  const size_t expected = part.bytes <= MessageHead::kInlineBytes ? part.bytes : 0;
  if (head.content_bytes == expected) return OkStatus();
  return IoError("group '", t.group(), "': rank ", part.rank, " sent a malformed message");
}

// Heads do not move while messages use them.
MessageHead& HeadAt(std::vector<std::unique_ptr<MessageHead>>& heads, size_t i) {
  if (i == heads.size()) heads.push_back(std::make_unique_for_overwrite<MessageHead>());
  return *heads[i];
}

}  // namespace

MessageHead AbortHead(const Status& reason) {
  MessageHead head;
  head.header.op.kind = CommKind::kAborted;
  head.code = static_cast<int32_t>(reason.code());
  head.content_bytes =
      static_cast<uint32_t>(std::min(reason.message().size(), MessageHead::kInlineBytes));
  std::memcpy(head.content, reason.message().data(), head.content_bytes);
  return head;
}

Status ReasonOfAbort(const MessageHead& head) {
  const auto* text = reinterpret_cast<const char*>(head.content);
  const bool is_error = head.code > 0 && head.code <= static_cast<int32_t>(Code::kInternal);
  const size_t bytes = std::min<size_t>(head.content_bytes, MessageHead::kInlineBytes);
  return Status(is_error ? static_cast<Code>(head.code) : Code::kCancelled,
                std::string(text, bytes));
}

Status MessageExchange::Start(const CommHeader& op, std::span<const CommPart> sends,
                              std::span<const CommPart> receives) {
  int handle = 0;
  for (size_t i = 0; i < receives.size(); ++i) {
    MSRT_RETURN_IF_ERROR(port_.Receive(receives[i].rank, MessagePort::kHeads,
                                       &HeadAt(heads_->in, i), sizeof(MessageHead), &handle));
    head_messages_.Add(handle, receives[i].rank);
  }
  for (size_t i = 0; i < sends.size(); ++i) {
    const CommPart& part = sends[i];
    MessageHead& head = HeadAt(heads_->out, i);
    head.header = {op, part.bytes};
    head.code = 0;
    const bool fits = part.bytes <= MessageHead::kInlineBytes;
    head.content_bytes = fits ? static_cast<uint32_t>(part.bytes) : 0;
    if (fits && part.bytes != 0) std::memcpy(head.content, part.data, part.bytes);
    MSRT_RETURN_IF_ERROR(port_.Send(part.rank, MessagePort::kHeads, &head, head.bytes(), &handle));
    messages_.Add(handle, part.rank);
    if (fits) continue;
    MSRT_RETURN_IF_ERROR(
        port_.Send(part.rank, MessagePort::kBodies, part.data, part.bytes, &handle));
    messages_.Add(handle, part.rank);
  }
  return OkStatus();
}

Status MessageExchange::ReceiveParts(const CommHeader& op, std::span<const CommPart> receives) {
  int handle = 0;
  for (size_t i = 0; i < receives.size(); ++i) {
    const CommPart& part = receives[i];
    MSRT_RETURN_IF_ERROR(Wait(head_messages_, i));
    const MessageHead& head = *heads_->in[i];
    MSRT_RETURN_IF_ERROR(CheckHead(head, transport_, op, part));
    if (part.bytes <= MessageHead::kInlineBytes) {
      if (part.bytes != 0) std::memcpy(part.data, head.content, part.bytes);
      continue;
    }
    MSRT_RETURN_IF_ERROR(
        port_.Receive(part.rank, MessagePort::kBodies, part.data, part.bytes, &handle));
    messages_.Add(handle, part.rank);
  }
  return OkStatus();
}

Status MessageExchange::StartBodies(std::span<const CommPart> sends,
                                    std::span<const CommPart> receives) {
  int handle = 0;
  for (const CommPart& part : receives) {
    if (part.bytes == 0) continue;
    MSRT_RETURN_IF_ERROR(
        port_.Receive(part.rank, MessagePort::kBodies, part.data, part.bytes, &handle));
    messages_.Add(handle, part.rank);
  }
  for (const CommPart& part : sends) {
    if (part.bytes == 0) continue;
    MSRT_RETURN_IF_ERROR(
        port_.Send(part.rank, MessagePort::kBodies, part.data, part.bytes, &handle));
    messages_.Add(handle, part.rank);
  }
  return OkStatus();
}

Status MessageExchange::Wait(const Messages& messages, size_t i) {
  return port_.Wait(messages.handles[i], std::span(messages.ranks).subspan(i));
}

Status MessageExchange::AwaitAll() {
  for (size_t i = 0; i < messages_.handles.size(); ++i) MSRT_RETURN_IF_ERROR(Wait(messages_, i));
  return OkStatus();
}

Status MessageExchange::Finish(Status status) {
  std::shared_ptr<AllHeads> memory;
  if (!status.ok()) memory.swap(heads_);
  port_.Finish(!status.ok(), std::move(memory));
  head_messages_.Clear();
  messages_.Clear();
  return status;
}

Status MessageExchange::Run(const CommHeader& op, std::span<const CommPart> sends,
                            std::span<const CommPart> receives) {
  if (heads_ == nullptr) heads_ = std::make_shared<AllHeads>();
  Status status = Start(op, sends, receives);
  if (status.ok()) status = ReceiveParts(op, receives);
  if (status.ok()) status = AwaitAll();
  return Finish(std::move(status));
}

Status MessageExchange::RunBodies(std::span<const CommPart> sends,
                                  std::span<const CommPart> receives) {
  Status status = StartBodies(sends, receives);
  if (status.ok()) status = AwaitAll();
  return Finish(std::move(status));
}

}  // namespace msrt
