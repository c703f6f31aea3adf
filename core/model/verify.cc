#include "core/model/verify.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/model/structure_check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace msrt {
namespace {

Status CheckHeader(const Header& header, uint64_t file_bytes, const Limits& limits) {
  if (header.file_bytes != file_bytes) {
    return InvalidModel(
        "header: the file has ", file_bytes, " bytes, its header says ", header.file_bytes,
        file_bytes < header.file_bytes ? "; it was cut short" : "; something was appended");
  }
  if (header.structure_offset < kHeaderBytes || header.structure_offset % kDataAlignment != 0) {
    return InvalidModel("header: the structure begins at byte ", header.structure_offset,
                        ", must be a multiple of 64 behind the header");
  }
  if (!RangeFits(header.structure_offset, header.structure_bytes, file_bytes)) {
    return InvalidModel("header: the structure (", header.structure_bytes, " bytes at ",
                        header.structure_offset, ") ends beyond the file");
  }
  const uint64_t limit = std::min(limits.max_structure_bytes, kMaxFlatBufferBytes - 1);
  if (header.structure_bytes > limit) {
    return LimitExceeded("header: the structure has ", header.structure_bytes,
                         " bytes, the limit is ", limit);
  }
  return OkStatus();
}

// Each table takes at least 4 bytes and an offset of 4 bytes that refers to it.
uint32_t MaxTables(uint64_t structure_bytes) {
  return static_cast<uint32_t>(structure_bytes / 8 + 1);
}

Result<const fbs::Model*> CheckFlatBuffer(std::span<const std::byte> structure) {
  const auto* data = reinterpret_cast<const uint8_t*>(structure.data());
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;  // the schema nests 5 deep and no table contains itself
  options.max_tables = MaxTables(structure.size());
  flatbuffers::Verifier verifier(data, structure.size(), options);
  if (!verifier.VerifyBuffer<fbs::Model>())
    return InvalidModel("structure: not a FlatBuffer of schema/model.fbs");
  return flatbuffers::GetRoot<fbs::Model>(data);
}

// Checks the bytes between structure and first segment, up to the end of the structure's last page:
// the weights' pages stay untouched.
Status CheckPadding(std::span<const std::byte> head, const Header& header) {
  const uint64_t begin = header.structure_offset + header.structure_bytes;
  const uint64_t end = std::min<uint64_t>(head.size(), AlignUp(begin, kSegmentAlignment));
  for (uint64_t i = begin; i < end; ++i) {
    if (head[i] != std::byte{0})
      return InvalidModel("byte ", i, " between structure and segments is not zero");
  }
  return OkStatus();
}

Result<const fbs::Model*> VerifyParts(std::span<const std::byte> head, const Header& header,
                                      uint64_t file_bytes, const Limits& limits) {
  MSRT_RETURN_IF_ERROR(CheckHeader(header, file_bytes, limits));
  if (!RangeFits(header.structure_offset, header.structure_bytes, head.size())) {
    return MakeStatus(Code::kInvalidArgument, "the structure is not among the bytes to verify");
  }
  const auto structure = head.subspan(header.structure_offset, header.structure_bytes);
  const uint64_t hash = HashOf(head.first<kHeaderBytes>(), structure);
  if (hash != header.hash)
    return InvalidModel("header: the hash of the structure does not match; the file is damaged");
  MSRT_ASSIGN_OR_RETURN(const fbs::Model* model, CheckFlatBuffer(structure));
  MSRT_RETURN_IF_ERROR(StructureCheck(*model, header, limits).Run());
  MSRT_RETURN_IF_ERROR(CheckPadding(head, header));
  return model;
}

}  // namespace

std::span<const std::byte> VerifiedModel::Data(uint32_t index) const {
  const fbs::Data* data = structure_->data()->Get(index);
  const fbs::Segment* segment = structure_->segments()->Get(data->segment());
  return bytes_.data.subspan(segment->offset() + data->offset(), data->bytes());
}

Result<VerifiedModel> Verify(Bytes bytes, const Limits& limits) {
  if (reinterpret_cast<uintptr_t>(bytes.data.data()) % kDataAlignment != 0) {
    return MakeStatus(Code::kInvalidArgument, "the bytes of a model must begin at a multiple of ",
                      kDataAlignment);
  }
  VerifiedModel verified;
  MSRT_ASSIGN_OR_RETURN(verified.header_, DecodeHeader(bytes.data));
  MSRT_ASSIGN_OR_RETURN(verified.structure_,
                        VerifyParts(bytes.data, verified.header_, bytes.data.size(), limits));
  verified.bytes_ = std::move(bytes);
  return verified;
}

Status VerifyHead(std::span<const std::byte> head, uint64_t file_bytes, const Limits& limits) {
  MSRT_ASSIGN_OR_RETURN(const Header header, DecodeHeader(head));
  return VerifyParts(head, header, file_bytes, limits).status();
}

Status VerifyDigests(const VerifiedModel& model) {
  const auto* records = model.structure().data();
  for (uint32_t i = 0; i < CountOf(records); ++i) {
    const auto digest = records->Get(i)->digest();
    const auto data = model.Data(i);
    if (digest.has_value() && *digest != XXH64(data.data(), data.size(), 0)) {
      return InvalidModel("data ", i, " (", data.size(),
                          " bytes): the digest does not match; the weights are damaged");
    }
  }
  return OkStatus();
}

}  // namespace msrt
