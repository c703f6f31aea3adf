// The .msrt file: its header, its constants, and the limits of a reader.
// schema/README.md describes the format, schema/model.fbs the structure that follows the header.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/io.h"
#include "core/graph/tensor.h"

namespace msrt {

static_assert(std::endian::native == std::endian::little,
              "tensors and headers are read in place, in little-endian order");

inline constexpr uint16_t kFormatMajor = 1, kFormatMinor = 1;
inline constexpr size_t kHeaderBytes = 64;
inline constexpr uint64_t kDataAlignment = kTensorAlignment;
inline constexpr int kMinSegmentAlignmentLog2 = 12, kMaxSegmentAlignmentLog2 = 21;
inline constexpr uint64_t kSegmentAlignment = uint64_t{1} << kMinSegmentAlignmentLog2;
// The reach of FlatBuffers' 32-bit offsets. Its verifier stops the process beyond that.
inline constexpr uint64_t kMaxFlatBufferBytes = (uint64_t{1} << 31) - 1;

struct Header {
  uint16_t major = kFormatMajor, minor = kFormatMinor;
  uint64_t file_bytes = 0;
  uint64_t structure_offset = kHeaderBytes;
  uint64_t structure_bytes = 0;
  uint64_t hash = 0;  // HashOf
};

using HeaderBytes = std::array<std::byte, kHeaderBytes>;
HeaderBytes EncodeHeader(const Header& header);
// Reads the fields and checks magic and major version, nothing else.
Result<Header> DecodeHeader(std::span<const std::byte> file);
// xxh64 over the bytes of the header up to its hash, then those of the structure.
uint64_t HashOf(std::span<const std::byte, kHeaderBytes> header,
                std::span<const std::byte> structure);

// The limits of a reader. The defaults are far above those of real models; callers may change them.
struct Limits {
  uint64_t max_structure_bytes = uint64_t{1} << 30;
  uint64_t max_nodes = 1'000'000;  // in all graphs together
  uint64_t max_values = 4'000'000;
  uint64_t max_name_bytes = 4096;
  uint64_t max_attrs_per_node = 64;
  uint64_t max_attr_bytes = 64 * 1024;
  uint64_t max_metadata_bytes = 16 * 1024 * 1024;  // one entry
  uint64_t max_tensor_bytes = uint64_t{1} << 40;
  int64_t max_dim = int64_t{1} << 40;
  uint32_t max_type_parts = kMaxTypeParts;
};

// Optional parts of a file beside the module: forms of its weights and programs made for one kind
// of machine.
struct PackingId {
  std::string kernel, isa;
  uint32_t block = 0, version = 0;
  bool operator==(const PackingId&) const = default;
};
struct PackedWeight {
  ConstTensor weight;  // the constant it was made from
  PackingId id;
  Bytes data;
};
struct TunedProgram {
  uint64_t key = 0;
  Bytes data;
};
struct ModelExtras {
  std::vector<PackedWeight> packed;
  std::vector<TunedProgram> programs;
};

// Totals of packed weights, for reports.
struct PackedSummary {
  size_t weights = 0, bytes = 0;
  // Their instruction sets, each once, without the empty one that suits any machine.
  std::vector<std::string> isas;
};
PackedSummary Summarize(std::span<const PackedWeight> packed);

}  // namespace msrt
