#include "core/image/files/tiff_container.h"

#include <bit>

#include "core/base/checked_math.h"

namespace msrt {
namespace {

constexpr uint16_t kAscii = 2, kShort = 3, kLong = 4, kDouble = 12, kLong8 = 16;

template <typename T>
void PutTiff(T value, std::vector<std::byte>* out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof(T));
}

// A number of 4 bytes in TIFF and 8 in BigTIFF.
void PutWide(bool big, uint64_t value, std::vector<std::byte>* out) {
  if (big) PutTiff(value, out);
  else PutTiff(static_cast<uint32_t>(value), out);
}

}  // namespace

void TiffDirectory::Add(TiffTag tag, uint16_t type, uint64_t count,
                        std::span<const std::byte> bytes) {
  entries_[static_cast<uint16_t>(tag)] = {type, count, {bytes.begin(), bytes.end()}};
}

void TiffDirectory::AddShorts(TiffTag tag, std::span<const uint16_t> values) {
  Add(tag, kShort, values.size(), std::as_bytes(values));
}

void TiffDirectory::AddLong(TiffTag tag, uint32_t value) {
  Add(tag, kLong, 1, std::as_bytes(std::span(&value, 1)));
}

void TiffDirectory::AddOffsets(TiffTag tag, std::span<const uint64_t> values) {
  if (big_) return Add(tag, kLong8, values.size(), std::as_bytes(values));
  const std::vector<uint32_t> narrow(values.begin(), values.end());
  Add(tag, kLong, narrow.size(), std::as_bytes(std::span(narrow)));
}

void TiffDirectory::AddDoubles(TiffTag tag, std::span<const double> values) {
  if (!values.empty()) Add(tag, kDouble, values.size(), std::as_bytes(values));
}

void TiffDirectory::AddAscii(TiffTag tag, std::string_view text) {
  if (text.empty()) return;
  std::vector<char> bytes(text.begin(), text.end());
  bytes.push_back('\0');
  Add(tag, kAscii, bytes.size(), std::as_bytes(std::span(bytes)));
}

void TiffDirectory::Serialize(uint64_t offset, bool last, std::vector<std::byte>* out) const {
  const uint64_t count = entries_.size(), inline_bytes = big_ ? 8 : 4;
  const uint64_t table_bytes = big_ ? 8 + 20 * count + 8 : 2 + 12 * count + 4;
  std::vector<std::byte> values;
  const uint64_t values_offset = AlignUp(offset + table_bytes, 8);
  const size_t begin = out->size();
  if (big_) PutTiff(count, out);
  else PutTiff(static_cast<uint16_t>(count), out);
  for (const auto& [tag, entry] : entries_) {
    PutTiff(tag, out);
    PutTiff(entry.type, out);
    PutWide(big_, entry.count, out);
    if (entry.bytes.size() <= inline_bytes) {
      out->insert(out->end(), entry.bytes.begin(), entry.bytes.end());
      out->resize(out->size() + inline_bytes - entry.bytes.size());
      continue;
    }
    PutWide(big_, values_offset + values.size(), out);
    values.insert(values.end(), entry.bytes.begin(), entry.bytes.end());
    values.resize(AlignUp(values.size(), 8));
  }
  PutWide(big_, last ? 0 : values_offset + values.size(), out);
  out->resize(begin + (values_offset - offset));
  out->insert(out->end(), values.begin(), values.end());
}

std::vector<std::byte> TiffHeader(bool big, uint64_t first_directory) {
  std::vector<std::byte> header;
  const char order = std::endian::native == std::endian::little ? 'I' : 'M';
  PutTiff(order, &header);
  PutTiff(order, &header);
  PutTiff(static_cast<uint16_t>(big ? 43 : 42), &header);
  if (big) {
    PutTiff(uint16_t{8}, &header);  // bytes of an offset
    PutTiff(uint16_t{0}, &header);
  }
  PutWide(big, first_directory, &header);
  return header;
}

}  // namespace msrt
