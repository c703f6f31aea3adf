// The conversation between the processes of a job and its server (job_server.h). A client sends the
// job token; the server answers kAccepted; the client sends kHello; the server answers kAccepted
// again, or kRefused with a reason. Then the connection serves the store or the control of a rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/comm/job/message.h"
#include "core/comm/job/token.h"

namespace msrt {

inline constexpr uint32_t kProtocolVersion = 1;

enum class Wire : uint8_t {
  kAccepted = 1,  // u32 milliseconds of silence after which a rank has failed
  kRefused,       // u32 code, text
  kHello,         // u32 version, u32 purpose, u32 rank, u32 size, u64 process, text host
  // Store: one answer to each request.
  kSet,  // text key, text value -> kDone or kError
  kGet,  // text key -> kValue, perhaps much later, or kError
  kDone,
  kValue,  // text
  kError,  // u32 code, text
  // Control, from a rank.
  kBeat,  // u32 count, then for each: u8 op, u8 active, u64 sequence, u64 bytes, u64 id, text group
  kFail,  // text
  kGoodbye,  // the server closes the connection
  // Control, from the server.
  kPulse,
  kProbe,  // answer with kBeat at once
  kAbort,  // u32 rank, text
};
enum class Purpose : uint32_t { kStore = 1, kControl = 2 };

// A connection must prove its token within this time, and say hello within twice this time.
inline constexpr std::chrono::milliseconds kGreetingTime{1000};
inline constexpr std::chrono::milliseconds kHeartbeatPeriod{100};
inline constexpr size_t kMaxControlBytes = 64 << 10;
inline constexpr size_t kMaxReportedOperations = 64;
inline constexpr size_t kMaxGroupNameBytes = 256;

inline MessageWriter Message(Wire kind) { return MessageWriter(static_cast<uint8_t>(kind)); }
inline std::string BareMessage(Wire kind) { return Message(kind).Take(); }
std::string ErrorMessage(Wire kind, const Status& status);
// Reads the code and the text of kRefused or kError.
Status ReadError(MessageReader* reader);

struct Hello {
  Purpose purpose = Purpose::kStore;
  uint32_t rank = 0, size = 1;
  uint64_t process = 0;
  std::string host;
};
std::string HelloMessage(const Hello& hello);
Result<Hello> ReadHello(std::string_view message);

// Where a job's server is, and who asks.
struct JoinOptions {
  Address server;
  JobToken token{};
  Hello hello;
  bool keep_trying = false;  // the server may start later than this process
};
struct Joined {
  Socket socket;
  std::chrono::milliseconds silence_limit{0};
};
// Connects, proves the token and says hello.
Result<Joined> JoinServer(const JoinOptions& options, const WaitLimit& limit);

}  // namespace msrt
