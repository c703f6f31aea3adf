// Verifies the bytes of a file: the only way to a model whose structure can be trusted. The check
// is always complete, linear in the bytes of the structure, and never touches the weights. Validate
// (ops/validate.h) checks the semantics of ops later.
#pragma once

#include "core/base/io.h"
#include "core/model/format.h"

namespace msrt {

namespace fbs {
struct Model;
}

// A file that passed Verify. Every index in it is in range, every constant has as many bytes as its
// type needs, each value has one source and nodes are in an order in which they can run. Copying
// shares the bytes.
class VerifiedModel {
 public:
  const Header& header() const { return header_; }
  const fbs::Model& structure() const { return *structure_; }
  const Bytes& bytes() const { return bytes_; }
  // The bytes of data record `index`; requires index in range. Never null, even if it is
  // empty.
  std::span<const std::byte> Data(uint32_t index) const;

 private:
  friend Result<VerifiedModel> Verify(Bytes bytes, const Limits& limits);
  Header header_;
  Bytes bytes_;
  const fbs::Model* structure_ = nullptr;
};

// `bytes` is a whole file and begins at a multiple of 64 (kInvalidArgument otherwise; Load copies
// such bytes). Codes: kInvalidModel for what no reader can read, kUnsupported for a newer major
// version or an unknown required feature, kLimitExceeded beyond `limits`.
Result<VerifiedModel> Verify(Bytes bytes, const Limits& limits = {});

// The part of Verify that needs no weights: `head` is the file up to the end of the structure, at
// least. For writers and for tools that read only the structure.
Status VerifyHead(std::span<const std::byte> head, uint64_t file_bytes, const Limits& limits = {});

// Compares all weights with their stored digests. Reads the whole file; only for tools and tests.
Status VerifyDigests(const VerifiedModel& model);

}  // namespace msrt
