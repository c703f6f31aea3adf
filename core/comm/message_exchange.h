// Exchange over an engine that has messages: OpenMPI and Gloo. Each part is a head, which carries
// the operation and, if they are few, the bytes; many bytes follow in a body, straight from and to
// the caller's memory. A receiver posts the body's receive only when the head matched, so ranks
// that call different operations never write into each other's memory, and find out from the head.
// Aborts have a channel of their own, which a rank watches whatever else it waits for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/comm/transport.h"

namespace msrt {

struct MessageHead {
  static constexpr size_t kInlineBytes = 4096;

  MessageHeader header;
  int32_t code = 0;  // of an abort
  uint32_t content_bytes =
      0;  // of a small part, or of the reason of an abort; at most kInlineBytes
  std::byte content[kInlineBytes];

  size_t bytes() const { return offsetof(MessageHead, content) + content_bytes; }
};

// An abort as a message, and the reason in a message that arrived.
MessageHead AbortHead(const Status& reason);
Status ReasonOfAbort(const MessageHead& head);

// The messages of an engine. Messages from one rank to another on one channel arrive in order. The
// handles number the messages of the current exchange.
class MessagePort {
 public:
  enum Channel : int { kHeads = 1, kBodies = 2, kAborts = 3 };

  virtual ~MessagePort() = default;
  virtual Status Send(int to, Channel channel, const void* data, size_t bytes, int* handle) = 0;
  // The message has at most `bytes` bytes on kHeads, exactly as many on kBodies.
  virtual Status Receive(int from, Channel channel, void* data, size_t bytes, int* handle) = 0;
  // Returns when the message is sent or there; the reason if the engine was aborted meanwhile.
  // `awaited` is for the error of a wait that takes too long: the ranks of this message and of
  // those that are waited for next.
  virtual Status Wait(int handle, std::span<const int> awaited) = 0;
  // Ends an exchange. After an error the messages may still be in flight, so the port keeps
  // `memory`, where heads are, until it is sure that they are not. Null after a success.
  virtual void Finish(bool failed, std::shared_ptr<void> memory) = 0;
};

// The exchanges of one transport, one at a time. Heads are used again, which saves half of the time
// of a small message.
class MessageExchange {
 public:
  MessageExchange(MessagePort& port, const CommTransport& transport)
      : port_(port), transport_(transport) {}

  Status Run(const CommHeader& op, std::span<const CommPart> sends,
             std::span<const CommPart> receives);
  // Bodies only, for CommTransport::Continue.
  Status RunBodies(std::span<const CommPart> sends, std::span<const CommPart> receives);

 private:
  using Heads = std::vector<std::unique_ptr<MessageHead>>;
  struct AllHeads {
    Heads out, in;
  };

  Status Start(const CommHeader& op, std::span<const CommPart> sends,
               std::span<const CommPart> receives);
  Status StartBodies(std::span<const CommPart> sends, std::span<const CommPart> receives);
  Status ReceiveParts(const CommHeader& op, std::span<const CommPart> receives);
  Status AwaitAll();
  Status Finish(Status status);

  MessagePort& port_;
  const CommTransport& transport_;
  std::shared_ptr<AllHeads> heads_;
  struct Messages {
    std::vector<int> handles, ranks;
    void Add(int handle, int rank) { handles.push_back(handle), ranks.push_back(rank); }
    void Clear() { handles.clear(), ranks.clear(); }
  };
  Status Wait(const Messages& messages, size_t i);
  Messages head_messages_, messages_;
};

}  // namespace msrt
