// Damage with a purpose for files that are protobuf messages: the message is parsed, and fields
// anywhere in its tree get other values, go, come twice or are exchanged for others of their kind.
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

// A file one to four edits away, the same for the same seed. Of what is no such message, bytes are
// changed. `words` are texts that mean something in the format; `scratch` is an empty message of
// the kind that the file holds.
std::vector<std::byte> MutateMessage(std::span<const std::byte> file, uint64_t seed,
                                     std::span<const std::string> words,
                                     google::protobuf::Message* scratch);

}  // namespace msrt::testing
