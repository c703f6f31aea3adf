// Messages on a connection: a length of four bytes, then that many bytes. Numbers are
// little-endian; a text is its length, then its bytes. The peer may send anything: every read is
// checked, and a length above the maximum ends the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/comm/job/socket.h"

namespace msrt {

class MessageWriter {
 public:
  explicit MessageWriter(uint8_t kind) : bytes_(4, '\0') { U8(kind); }
  void U8(uint8_t value) { Number(value, 1); }
  void U32(uint32_t value) { Number(value, 4); }
  void U64(uint64_t value) { Number(value, 8); }
  void Text(std::string_view text);
  // The whole message, with its length.
  std::string Take() &&;

 private:
  void Number(uint64_t value, int bytes);
  std::string bytes_;
};

// Reads the parts of a message in the order in which they were written. After the first part that
// is missing, all are zero or empty and `valid` is false.
class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : rest_(message) {}
  uint8_t U8() { return static_cast<uint8_t>(Number(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }
  std::string_view Text();
  bool valid() const { return valid_; }
  // Whether everything was there, and nothing else.
  bool complete() const { return valid_ && rest_.empty(); }

 private:
  uint64_t Number(size_t bytes);
  std::string_view rest_;
  bool valid_ = true;
};

// Cuts the bytes of a connection into messages. Memory grows with what arrived, not with what a
// length announces.
class MessageBuffer {
 public:
  explicit MessageBuffer(size_t max_bytes) : max_bytes_(max_bytes) {}
  void set_max_bytes(size_t max_bytes) { max_bytes_ = max_bytes; }
  void Append(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole message without its length, or null. kLimitExceeded if its length is above the
  // maximum; the connection is of no use then.
  Result<std::optional<std::string>> Next();

 private:
  size_t max_bytes_;
  std::string bytes_;
};

// Waits for one message of at most `max_bytes`.
Result<std::string> ReceiveMessage(Socket* socket, size_t max_bytes, const WaitLimit& limit);

}  // namespace msrt
