// One connection of a job's server: what has arrived, what goes out, and how far its greeting is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/comm/job/monitor.h"
#include "core/comm/job/protocol.h"

namespace msrt {

struct Peer {
  enum class Stage { kToken, kHello, kStore, kControl };

  Peer(uint64_t peer_id, Socket accepted, SteadyTime now)
      : id(peer_id), socket(std::move(accepted)), greet_until(now + kGreetingTime) {}

  // Queues a message and sends what the socket takes.
  void Send(std::string_view message);
  // Sends what is queued. Returns whether the connection is still open.
  bool Flush();
  // Reads what has arrived. Returns whether there is something to look at.
  bool Read();
  // Null until enough bytes have arrived.
  std::optional<bool> CheckToken(const JobToken& token) const;
  // The peer reads the last message before the connection ends.
  void CloseWhenSent();

  uint64_t id;
  Socket socket;
  Stage stage = Stage::kToken;
  int rank = -1;
  SteadyTime greet_until;
  bool closing = false;
  std::string token_bytes;
  MessageBuffer incoming{4096};
  std::string outgoing;
};

// The operations of a kBeat, or null if it cannot be read.
std::optional<std::vector<CommProgress>> ReadBeat(MessageReader* reader);
std::string BeatMessage(const std::vector<CommProgress>& operations);

}  // namespace msrt
