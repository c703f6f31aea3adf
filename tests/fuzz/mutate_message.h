// Structured damage for files that are protobuf messages: the message is parsed, and fields
// anywhere in its tree get other values, are removed, duplicated, or replaced by others of their
// kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace msrt::testing {

// Returns the file after one to four edits, determined by the seed. If the file is not such a
// message, bytes are changed. `words` are strings with a meaning in the format; `scratch` is an
// empty message of the file's kind.
std::vector<std::byte> MutateMessage(std::span<const std::byte> file, uint64_t seed,
                                     std::span<const std::string> words,
                                     google::protobuf::Message* scratch);

}  // namespace msrt::testing
