#include "core/comm/job/peer.h"

#include <cstring>

#include "core/base/utf8.h"

namespace msrt {

void Peer::Send(std::string_view message) {
  if (!socket.is_open()) return;
  outgoing.append(message);
  (void)Flush();
}

bool Peer::Flush() {
  while (socket.is_open() && !outgoing.empty()) {
    const Result<size_t> sent = socket.SendSome(outgoing);
    if (!sent.ok()) socket.Close();
    else if (*sent == 0) break;
    else outgoing.erase(0, *sent);
  }
  if (closing && outgoing.empty()) socket.Close();
  return socket.is_open();
}

bool Peer::Read() {
  char bytes[64 << 10];
  // The token alone: what follows a wrong one is never read.
  const size_t wanted = stage == Stage::kToken ? kTokenBytes - token_bytes.size() : sizeof bytes;
  const Result<size_t> received = socket.ReceiveSome({bytes, wanted});
  if (!received.ok()) {
    socket.Close();
    return false;
  }
  if (stage == Stage::kToken) token_bytes.append(bytes, *received);
  else incoming.Append({bytes, *received});
  return true;
}

std::optional<bool> Peer::CheckToken(const JobToken& token) const {
  JobToken claimed;
  if (token_bytes.size() < claimed.size()) return std::nullopt;
  std::memcpy(claimed.data(), token_bytes.data(), claimed.size());
  return SameToken(claimed, token);
}

void Peer::CloseWhenSent() {
  closing = true;
  (void)Flush();
}

std::optional<std::vector<CommProgress>> ReadBeat(MessageReader* reader) {
  const uint32_t count = reader->U32();
  if (count > kMaxReportedOperations) return std::nullopt;
  std::vector<CommProgress> operations;
  for (uint32_t i = 0; i < count && reader->valid(); ++i) {
    CommProgress p;
    const uint8_t op = reader->U8();
    if (op >= static_cast<uint8_t>(CommKind::kAborted)) return std::nullopt;
    p.op = static_cast<CommKind>(op);
    p.active = reader->U8() != 0;
    p.sequence = reader->U64();
    p.bytes = reader->U64();
    p.group_id = reader->U64();
    p.group = Printable(reader->Text(), kMaxGroupNameBytes);
    operations.push_back(std::move(p));
  }
  if (!reader->complete()) return std::nullopt;
  return operations;
}

std::string BeatMessage(const std::vector<CommProgress>& operations) {
  MessageWriter writer = Message(Wire::kBeat);
  writer.U32(static_cast<uint32_t>(operations.size()));
  for (const CommProgress& p : operations) {
    writer.U8(static_cast<uint8_t>(p.op));
    writer.U8(p.active ? 1 : 0);
    writer.U64(p.sequence);
    writer.U64(p.bytes);
    writer.U64(p.group_id);
    writer.Text(std::string_view(p.group).substr(0, kMaxGroupNameBytes));
  }
  return std::move(writer).Take();
}

}  // namespace msrt
