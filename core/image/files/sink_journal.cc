#include "core/image/files/sink_journal.h"

#include <cstring>

namespace msrt {
namespace {

constexpr uint64_t kJournalMagic = 0x314c4e524a54534du;  // "MSTJRNL1"
constexpr size_t kJournalHeaderBytes = 24;               // magic, job, checksum
constexpr size_t kEntryBytes = 24;  // level, number of extents, block, checksum
constexpr uint32_t kMaxExtents = 65535;
constexpr int64_t kMaxJournalBytes = int64_t{4} << 30;

template <typename T>
void PutBytes(T value, std::vector<std::byte>* out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof(T));
}

template <typename T>
T TakeBytes(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::vector<std::byte> MakeHeader(uint64_t job) {
  std::vector<std::byte> header;
  PutBytes(kJournalMagic, &header);
  PutBytes(job, &header);
  PutBytes(HashBytes(header), &header);
  return header;
}

// Parses the entry at the front. Returns its bytes, or 0 if it is cut off or damaged.
size_t ParseEntry(std::span<const std::byte> bytes, StoredBlock* block) {
  if (bytes.size() < kEntryBytes) return 0;
  const auto count = TakeBytes<uint32_t>(bytes, 4);
  if (count > kMaxExtents) return 0;
  const size_t total = kEntryBytes + size_t{16} * count;
  if (bytes.size() < total) return 0;
  if (TakeBytes<uint64_t>(bytes, total - 8) != HashBytes(bytes.first(total - 8))) return 0;
  block->level = TakeBytes<int32_t>(bytes, 0);
  block->block = TakeBytes<int64_t>(bytes, 8);
  block->extents.resize(count);
  for (size_t i = 0; i < count; ++i) {
    block->extents[i] = {TakeBytes<int64_t>(bytes, 16 + 16 * i),
                         TakeBytes<int64_t>(bytes, 24 + 16 * i)};
  }
  return total;
}

Status AnotherJob(const std::string& path) {
  return InvalidArgument("file '", path,
                         "': belongs to a job with another model, image or options; run that job, "
                         "or start this one without resuming");
}

}  // namespace

uint64_t HashBytes(std::span<const std::byte> bytes, uint64_t seed) {
  for (const std::byte byte : bytes) seed = (seed ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  return seed;
}

Result<SinkJournal> SinkJournal::Open(const std::string& path, uint64_t job, bool resume,
                                      std::vector<StoredBlock>* blocks) {
  MSRT_ASSIGN_OR_RETURN(ImageFile file, ImageFile::OpenForWriting(path));
  SinkJournal journal(std::move(file));
  MSRT_ASSIGN_OR_RETURN(const int64_t bytes, journal.file_.Bytes());
  const std::vector<std::byte> header = MakeHeader(job);
  if (!resume || bytes < static_cast<int64_t>(kJournalHeaderBytes)) {
    MSRT_RETURN_IF_ERROR(journal.file_.Truncate(0));
    MSRT_RETURN_IF_ERROR(journal.file_.Write(0, header));
    MSRT_RETURN_IF_ERROR(journal.file_.Sync());
    journal.end_ = kJournalHeaderBytes;
    return journal;
  }
  if (bytes > kMaxJournalBytes) return AnotherJob(path);
  std::vector<std::byte> contents(static_cast<size_t>(bytes));
  MSRT_RETURN_IF_ERROR(journal.file_.Read(0, contents));
  if (std::memcmp(contents.data(), header.data(), kJournalHeaderBytes) != 0)
    return AnotherJob(path);
  size_t end = kJournalHeaderBytes;
  StoredBlock block;
  while (const size_t entry = ParseEntry(std::span(contents).subspan(end), &block)) {
    blocks->push_back(block);
    end += entry;
  }
  journal.end_ = static_cast<int64_t>(end);
  MSRT_RETURN_IF_ERROR(journal.file_.Truncate(journal.end_));
  return journal;
}

Status SinkJournal::Append(std::span<const StoredBlock> blocks) {
  std::vector<std::byte> entries, entry;
  for (const StoredBlock& block : blocks) {
    entry.clear();
    PutBytes(static_cast<int32_t>(block.level), &entry);
    PutBytes(static_cast<uint32_t>(block.extents.size()), &entry);
    PutBytes(block.block, &entry);
    for (const FileExtent& extent : block.extents) {
      PutBytes(extent.offset, &entry);
      PutBytes(extent.bytes, &entry);
    }
    PutBytes(HashBytes(entry), &entry);
    entries.insert(entries.end(), entry.begin(), entry.end());
  }
  MSRT_RETURN_IF_ERROR(file_.Write(end_, entries));
  end_ += static_cast<int64_t>(entries.size());
  return file_.Sync();
}

}  // namespace msrt
