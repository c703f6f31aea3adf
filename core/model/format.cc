#include "core/model/format.h"

#include <cstring>
#include <set>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace msrt {
namespace {

constexpr char kMagic[4] = {'M', 'S', 'R', 'T'};
constexpr size_t kMajorAt = 4, kMinorAt = 6, kFileBytesAt = 8, kStructureOffsetAt = 16,
                 kStructureBytesAt = 24, kHashAt = 56;

template <typename T>
void Put(HeaderBytes* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof value);
}

template <typename T>
T Get(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

HeaderBytes EncodeHeader(const Header& header) {
  HeaderBytes bytes{};
  std::memcpy(bytes.data(), kMagic, sizeof kMagic);
  Put(&bytes, kMajorAt, header.major);
  Put(&bytes, kMinorAt, header.minor);
  Put(&bytes, kFileBytesAt, header.file_bytes);
  Put(&bytes, kStructureOffsetAt, header.structure_offset);
  Put(&bytes, kStructureBytesAt, header.structure_bytes);
  Put(&bytes, kHashAt, header.hash);
  return bytes;
}

Result<Header> DecodeHeader(std::span<const std::byte> file) {
  if (file.size() < kHeaderBytes) {
    return InvalidModel("header: the file has ", file.size(), " bytes, a .msrt file has at least ",
                        kHeaderBytes);
  }
  if (std::memcmp(file.data(), kMagic, sizeof kMagic) != 0) {
    return InvalidModel(
        "header: this is not a .msrt file (it does not begin with 'MSRT'); convert other formats "
        "with msconvert");
  }
  Header header;
  header.major = Get<uint16_t>(file, kMajorAt);
  header.minor = Get<uint16_t>(file, kMinorAt);
  header.file_bytes = Get<uint64_t>(file, kFileBytesAt);
  header.structure_offset = Get<uint64_t>(file, kStructureOffsetAt);
  header.structure_bytes = Get<uint64_t>(file, kStructureBytesAt);
  header.hash = Get<uint64_t>(file, kHashAt);
  if (header.major > kFormatMajor) {
    return Unsupported("header: the file has format version ", header.major, ".", header.minor,
                       ", this build reads up to ", kFormatMajor,
                       ".x; update msrt or convert the model again");
  }
  if (header.major < kFormatMajor)
    return InvalidModel("header: there is no format version ", header.major, ".", header.minor);
  return header;
}

uint64_t HashOf(std::span<const std::byte, kHeaderBytes> header,
                std::span<const std::byte> structure) {
  XXH64_state_t state;
  XXH64_reset(&state, 0);
  XXH64_update(&state, header.data(), kHashAt);
  XXH64_update(&state, structure.data(), structure.size());
  return XXH64_digest(&state);
}

PackedSummary Summarize(std::span<const PackedWeight> packed) {
  PackedSummary summary{packed.size(), 0, {}};
  std::set<std::string> isas;
  for (const PackedWeight& p : packed) {
    summary.bytes += p.data.data.size();
    if (!p.id.isa.empty()) isas.insert(p.id.isa);
  }
  summary.isas.assign(isas.begin(), isas.end());
  return summary;
}

}  // namespace msrt
