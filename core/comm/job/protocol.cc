#include "core/comm/job/protocol.h"

#include <thread>

#include "core/base/utf8.h"

namespace msrt {
namespace {

constexpr size_t kMaxErrorBytes = 60'000;

Result<MessageReader> ReadAnswer(std::string_view answer, Wire expected) {
  MessageReader reader(answer);
  const auto kind = static_cast<Wire>(reader.U8());
  if (kind == Wire::kRefused) return ReadError(&reader);
  if (kind != expected || !reader.valid())
    return Unsupported("the answer is not one of a job's server; use the address of this job");
  return reader;
}

// Sets `refused` if the server answers, and not with consent.
Result<Joined> Greet(const JoinOptions& options, Socket socket, const WaitLimit& limit,
                     bool* refused) {
  Joined joined{std::move(socket), {}};
  const std::string_view token(reinterpret_cast<const char*>(options.token.data()),
                               options.token.size());
  MSRT_RETURN_IF_ERROR(joined.socket.Send(token, limit));
  MSRT_ASSIGN_OR_RETURN(std::string answer,
                        ReceiveMessage(&joined.socket, kMaxControlBytes, limit));
  *refused = !ReadAnswer(answer, Wire::kAccepted).ok();
  MSRT_RETURN_IF_ERROR(ReadAnswer(answer, Wire::kAccepted).status());
  MSRT_RETURN_IF_ERROR(joined.socket.Send(HelloMessage(options.hello), limit));
  MSRT_ASSIGN_OR_RETURN(answer, ReceiveMessage(&joined.socket, kMaxControlBytes, limit));
  *refused = !ReadAnswer(answer, Wire::kAccepted).ok();
  MSRT_ASSIGN_OR_RETURN(MessageReader reader, ReadAnswer(answer, Wire::kAccepted));
  joined.silence_limit = std::chrono::milliseconds(reader.U32());
  return joined;
}

}  // namespace

std::string ErrorMessage(Wire kind, const Status& status) {
  MessageWriter writer = Message(kind);
  writer.U32(static_cast<uint32_t>(status.code()));
  writer.Text(std::string_view(status.message()).substr(0, kMaxErrorBytes));
  return std::move(writer).Take();
}

Status ReadError(MessageReader* reader) {
  const uint32_t code = reader->U32();
  const std::string text = Printable(reader->Text());
  if (!reader->complete() || code == 0 || code > static_cast<uint32_t>(Code::kInternal))
    return IoError("the server sent an error that cannot be read");
  return Status(static_cast<Code>(code), text);
}

std::string HelloMessage(const Hello& hello) {
  MessageWriter writer = Message(Wire::kHello);
  writer.U32(kProtocolVersion);
  writer.U32(static_cast<uint32_t>(hello.purpose));
  writer.U32(hello.rank);
  writer.U32(hello.size);
  writer.U64(hello.process);
  writer.Text(hello.host);
  return std::move(writer).Take();
}

Result<Hello> ReadHello(std::string_view message) {
  MessageReader reader(message);
  Hello hello;
  const bool is_hello = reader.U8() == static_cast<uint8_t>(Wire::kHello);
  const uint32_t version = reader.U32();
  // Other versions may continue in another way.
  if (is_hello && reader.valid() && version != kProtocolVersion) {
    return Unsupported("this process speaks version ", version,
                       " of the protocol, the job's server ", kProtocolVersion,
                       "; run the same release of msrt everywhere");
  }
  const uint32_t purpose = reader.U32();
  hello.rank = reader.U32();
  hello.size = reader.U32();
  hello.process = reader.U64();
  hello.host = reader.Text();
  if (!is_hello || !reader.complete() || (purpose != 1 && purpose != 2))
    return InvalidArgument("the greeting cannot be read");
  hello.purpose = static_cast<Purpose>(purpose);
  return hello;
}

Result<Joined> JoinServer(const JoinOptions& options, const WaitLimit& limit) {
  const std::string context = StrCat("job server at ", options.server);
  while (true) {
    Result<Socket> socket = Connect(options.server, options.keep_trying, limit);
    if (!socket.ok()) return std::move(socket).status().Within(context);
    bool refused = false;
    Result<Joined> joined = Greet(options, *std::move(socket), limit, &refused);
    if (joined.ok()) return joined;
    // The server drops the oldest connections before their greeting if too many come at once. That
    // a job was aborted is an I/O error, too, but an answer.
    const bool dropped = !refused && joined.status().code() == Code::kIo;
    if (!dropped || limit.expired()) return std::move(joined).status().Within(context);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace msrt
