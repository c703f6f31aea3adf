#include "core/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/catch_as_status.h"

namespace msrt {
namespace {

constexpr char kMagic[] = {'M', 'S', 'R', 'T', 'C', 'K', 'P', 'T'};
constexpr uint32_t kFormat = 1;
constexpr size_t kFixedBytes = sizeof kMagic + 2 * sizeof(uint32_t) + sizeof(uint64_t);
constexpr size_t kHeaderBytes = kFixedBytes + sizeof(uint64_t);
constexpr size_t kAlign = kTensorAlignment;

uint64_t HashOf(std::span<const std::byte> bytes) { return XXH64(bytes.data(), bytes.size(), 0); }
size_t AlignedTo(size_t offset) { return (offset + kAlign - 1) / kAlign * kAlign; }

// ---- the table ----------------------------------------------------------------------------------

class TableWriter {
 public:
  template <typename T>
  void Number(T number) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&number);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof number);
  }
  void Text(std::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), bytes, bytes + text.size());
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what TableWriter wrote. After the end all numbers are 0, and ok() is false.
class TableReader {
 public:
  explicit TableReader(std::span<const std::byte> bytes) : left_(bytes) {}
  bool ok() const { return ok_; }

  template <typename T>
  T Number() {
    T number{};
    if (left_.size() < sizeof number) return ok_ = false, number;
    std::memcpy(&number, left_.data(), sizeof number);
    left_ = left_.subspan(sizeof number);
    return number;
  }
  std::string Text() {
    const auto length = Number<uint32_t>();
    if (left_.size() < length) return ok_ = false, std::string();
    std::string text(reinterpret_cast<const char*>(left_.data()), length);
    left_ = left_.subspan(length);
    return text;
  }
  // A count of things that take at least `least` bytes each.
  size_t Count(size_t least) {
    const auto count = Number<uint32_t>();
    if (count > left_.size() / least) return ok_ = false, 0;
    return count;
  }

 private:
  std::span<const std::byte> left_;
  bool ok_ = true;
};

void WriteSchedule(const Schedule& s, TableWriter* table) {
  table->Number(static_cast<uint8_t>(s.kind));
  for (double number : {s.rate, s.final_rate, s.warmup_start, s.factor, s.power, s.rising_part,
                        s.divisor, s.final_divisor}) {
    table->Number(number);
  }
  for (int64_t number : {s.total_steps, s.warmup_steps, s.step_size}) table->Number(number);
  table->Number(static_cast<uint32_t>(s.milestones.size()));
  for (int64_t milestone : s.milestones) table->Number(milestone);
}

Schedule ReadSchedule(TableReader* table) {
  Schedule s;
  s.kind = static_cast<ScheduleKind>(table->Number<uint8_t>());
  for (double* number : {&s.rate, &s.final_rate, &s.warmup_start, &s.factor, &s.power,
                         &s.rising_part, &s.divisor, &s.final_divisor}) {
    *number = table->Number<double>();
  }
  for (int64_t* number : {&s.total_steps, &s.warmup_steps, &s.step_size})
    *number = table->Number<int64_t>();
  s.milestones.resize(table->Count(sizeof(int64_t)));
  for (int64_t& milestone : s.milestones) milestone = table->Number<int64_t>();
  return s;
}

void WriteTensor(const CheckpointTensor& tensor, uint64_t offset, TableWriter* table) {
  table->Text(tensor.name);
  table->Number(static_cast<uint8_t>(tensor.role));
  table->Number(static_cast<uint8_t>(tensor.data.dtype));
  table->Number(static_cast<uint8_t>(tensor.data.dims.rank()));
  for (int64_t d : tensor.data.dims) table->Number(d);
  table->Number(offset);
  table->Number(HashOf(tensor.data.bytes));
}

constexpr size_t kLeastTensorBytes = 4 + 3 + 8 + 8;

// The data is a part of `file`, from `first` on.
Status ReadTensor(const Bytes& file, size_t first, TableReader* table, CheckpointTensor* tensor) {
  tensor->name = table->Text();
  const auto role = table->Number<uint8_t>(), dtype = table->Number<uint8_t>(),
             rank = table->Number<uint8_t>();
  if (role >= kStateRoleCount || dtype == 0 || dtype >= kDTypeCount || rank > kMaxRank)
    return InvalidModel("tensor '", tensor->name, "' has an invalid type");
  tensor->role = static_cast<StateRole>(role);
  tensor->data.dtype = static_cast<DType>(dtype);
  uint64_t elements = 1;
  for (uint8_t i = 0; i < rank; ++i) {
    const auto d = table->Number<int64_t>();
    if (d < 0 || (d > 0 && elements > file.data.size() * 8 / static_cast<uint64_t>(d)))
      return InvalidModel("tensor '", tensor->name, "' is larger than the file");
    elements *= static_cast<uint64_t>(d);
    tensor->data.dims.push_back(d);
  }
  const auto offset = table->Number<uint64_t>(), hash = table->Number<uint64_t>();
  const size_t bytes = BytesOf(tensor->data.dtype, static_cast<int64_t>(elements));
  const size_t available = file.data.size() - first;
  if (!table->ok() || offset % kAlign != 0 || offset > available || bytes > available - offset)
    return InvalidModel("tensor '", tensor->name, "' ends after the file: the file is truncated");
  tensor->data.bytes = file.data.subspan(first + offset, bytes);
  tensor->data.owner = file.owner;
  if (HashOf(tensor->data.bytes) != hash)
    return InvalidModel("tensor '", tensor->name, "' is damaged: its checksum differs");
  return OkStatus();
}

std::vector<std::byte> TableOf(const Checkpoint& c) {
  TableWriter table;
  table.Text(c.model);
  for (int64_t number : {c.steps, c.micro_batches, c.position.epoch, c.position.batch})
    table.Number(number);
  WriteSchedule(c.schedule, &table);
  table.Number(c.metric);
  table.Number(static_cast<uint8_t>(c.has_metric));
  table.Number(static_cast<uint32_t>(c.notes.size()));
  for (const auto& [key, value] : c.notes) {
    table.Text(key);
    table.Text(value);
  }
  table.Number(static_cast<uint32_t>(c.tensors.size()));
  uint64_t offset = 0;
  for (const CheckpointTensor& tensor : c.tensors) {
    WriteTensor(tensor, offset, &table);
    offset = AlignedTo(offset + tensor.data.bytes.size());
  }
  return table.bytes();
}

Result<Checkpoint> ParseCheckpoint(const Bytes& file) {
  if (file.data.size() < kHeaderBytes ||
      std::memcmp(file.data.data(), kMagic, sizeof kMagic) != 0) {
    return InvalidModel("not a checkpoint: it does not begin with MSRTCKPT");
  }
  TableReader header(file.data.subspan(sizeof kMagic, kHeaderBytes - sizeof kMagic));
  const auto format = header.Number<uint32_t>();
  header.Number<uint32_t>();
  const auto table_bytes = header.Number<uint64_t>(), hash = header.Number<uint64_t>();
  if (format != kFormat)
    return Unsupported("format ", format, " is not known; this build reads format ", kFormat);
  if (table_bytes > file.data.size() - kHeaderBytes)
    return InvalidModel("truncated: the table ends after the file");
  const auto table = file.data.subspan(kHeaderBytes, table_bytes);
  std::vector<std::byte> hashed(file.data.begin(), file.data.begin() + kFixedBytes);
  hashed.insert(hashed.end(), table.begin(), table.end());
  if (HashOf(hashed) != hash) return InvalidModel("damaged: the checksum of the table differs");
  Checkpoint c;
  TableReader reader(table);
  c.model = reader.Text();
  for (int64_t* number : {&c.steps, &c.micro_batches, &c.position.epoch, &c.position.batch})
    *number = reader.Number<int64_t>();
  c.schedule = ReadSchedule(&reader);
  c.metric = reader.Number<double>();
  c.has_metric = reader.Number<uint8_t>() != 0;
  c.notes.resize(reader.Count(8));
  for (auto& [key, value] : c.notes) {
    key = reader.Text();
    value = reader.Text();
  }
  c.tensors.resize(reader.Count(kLeastTensorBytes));
  const size_t first = AlignedTo(kHeaderBytes + table_bytes);
  if (!reader.ok() || (first > file.data.size() && !c.tensors.empty()))
    return InvalidModel("the table is not valid");
  for (CheckpointTensor& tensor : c.tensors)
    MSRT_RETURN_IF_ERROR(ReadTensor(file, first, &reader, &tensor));
  return c;
}

// ---- folders ------------------------------------------------------------------------------------

std::string PathOfStep(const std::string& folder, int64_t step) {
  char name[40];
  std::snprintf(name, sizeof name, "/step-%012lld.ckpt", static_cast<long long>(step));
  return folder + name;
}

// The step of a checkpoint's file name; nothing for other files.
std::optional<int64_t> StepOf(const std::string& path) {
  constexpr std::string_view kBegin = "step-", kEnd = ".ckpt";
  const std::string name = std::filesystem::path(path).filename().string();
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  const char* const first = name.data() + kBegin.size();
  const char* const last = name.data() + name.size() - kEnd.size();
  int64_t step = 0;
  const auto [end, error] = std::from_chars(first, last, step);
  if (first >= last || end != last || error != std::errc()) return std::nullopt;
  return step;
}

// Whether a file cannot be read for what is in it or below it. Others, such as want of memory or
// the format of a newer version, are no reason to go on from an older checkpoint.
bool IsDamage(const Status& status) {
  return status.code() == Code::kInvalidModel || status.code() == Code::kIo;
}

Status FolderError(const std::string& path, std::string_view doing, const std::error_code& error) {
  return IoError("folder '", path, "': ", doing, ": ", error.message());
}

}  // namespace

Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& path, Io* io) {
  const std::vector<std::byte> table = TableOf(checkpoint);
  TableWriter header;
  for (char c : kMagic) header.Number(c);
  header.Number(kFormat);
  header.Number(uint32_t{0});
  header.Number(static_cast<uint64_t>(table.size()));
  std::vector<std::byte> hashed = header.bytes();
  hashed.insert(hashed.end(), table.begin(), table.end());
  header.Number(HashOf(hashed));
  constexpr std::byte kZeros[kAlign] = {};
  std::vector<std::span<const std::byte>> pieces{header.bytes(), table};
  size_t offset = kHeaderBytes + table.size();
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    pieces.push_back(std::span(kZeros).first(AlignedTo(offset) - offset));
    pieces.push_back(tensor.data.bytes);
    offset = AlignedTo(offset) + tensor.data.bytes.size();
  }
  return io->WriteFile(path, pieces);
}

Result<Checkpoint> ReadCheckpoint(const std::string& path, Io* io, Allocator* allocator) {
  MSRT_ASSIGN_OR_RETURN(const Bytes file, io->ReadFile(path, allocator));
  auto checkpoint = ParseCheckpoint(file);
  if (!checkpoint.ok())
    return std::move(checkpoint).status().Within(StrCat("checkpoint '", path, "'"));
  return checkpoint;
}

Result<CheckpointFolder> CheckpointFolder::Open(std::string folder, const Options& options,
                                                Io* io) {
  if (options.keep_last < 1)
    return InvalidArgument("keep_last = 0: at least one checkpoint must be kept");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FolderError(folder, "create", error);
  CheckpointFolder opened(std::move(folder), options, io);
  for (const auto& entry : std::filesystem::directory_iterator(opened.folder_, error)) {
    if (entry.path().filename().string().find(".ckpt.tmp-") != std::string::npos) {
      std::error_code ignored;  // a file that another run is writing
      std::filesystem::remove(entry.path(), ignored);
    }
  }
  if (error) return FolderError(opened.folder_, "list", error);
  if (options.keep_best) {
    const auto best = opened.LoadBest();
    if (best.ok() && best->has_metric) {
      opened.has_best_ = true;
      opened.best_ = best->metric;
    }
  }
  return opened;
}

Result<std::vector<std::string>> CheckpointFolder::List() const {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (StepOf(entry.path().string()).has_value()) paths.push_back(entry.path().string());
  }
  if (error) return FolderError(folder_, "list", error);
  std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
    return std::pair(StepOf(a), a) < std::pair(StepOf(b), b);
  });
  return paths;
}

Status CheckpointFolder::SaveBest(const Checkpoint& checkpoint) {
  if (!options_.keep_best || !checkpoint.has_metric) return OkStatus();
  const bool better =
      options_.higher_is_better ? checkpoint.metric > best_ : checkpoint.metric < best_;
  if (has_best_ && !better) return OkStatus();
  MSRT_RETURN_IF_ERROR(WriteCheckpoint(checkpoint, BestPath(), io_));
  has_best_ = true;
  best_ = checkpoint.metric;
  return OkStatus();
}

Status CheckpointFolder::Save(const Checkpoint& checkpoint) {
  MSRT_RETURN_IF_ERROR(WriteCheckpoint(checkpoint, PathOfStep(folder_, checkpoint.steps), io_));
  MSRT_RETURN_IF_ERROR(SaveBest(checkpoint));
  MSRT_ASSIGN_OR_RETURN(std::vector<std::string> paths, List());
  std::erase_if(paths, [&](const std::string& path) { return StepOf(path) > checkpoint.steps; });
  for (size_t i = 0; i + options_.keep_last < paths.size(); ++i) {
    std::error_code error;
    std::filesystem::remove(paths[i], error);
    if (error) return FolderError(folder_, StrCat("remove '", paths[i], "'"), error);
  }
  return OkStatus();
}

Result<Checkpoint> CheckpointFolder::Newest(const Log& log,
                                            std::vector<std::string>* damaged) const {
  MSRT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, List());
  for (size_t i = paths.size(); i-- > 0;) {
    auto checkpoint = ReadCheckpoint(paths[i], io_);
    if (checkpoint.ok() || !IsDamage(checkpoint.status())) return checkpoint;
    log(LogLevel::kWarning, checkpoint.status().message(), "; the one before it is used");
    if (damaged != nullptr) damaged->push_back(paths[i]);
  }
  auto best = LoadBest();
  if (best.ok() || (best.status().code() != Code::kNotFound && !IsDamage(best.status())))
    return best;
  return NotFound("folder '", folder_, "' has no checkpoint that can be read");
}

Result<Checkpoint> CheckpointFolder::LoadNewest(const Log& log) const {
  return Newest(log, nullptr);
}

Result<Checkpoint> CheckpointFolder::Resume(const Log& log) {
  std::vector<std::string> damaged;
  Result<Checkpoint> newest = Newest(log, &damaged);
  if (!newest.ok() && newest.status().code() != Code::kNotFound) return newest;
  for (const std::string& path : damaged) {
    std::error_code error;
    std::filesystem::rename(path, path + ".unreadable", error);
    if (error) return FolderError(folder_, StrCat("rename '", path, "'"), error);
  }
  return newest;
}

Result<bool> CheckpointFolder::HasCheckpoints() const {
  MSRT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, List());
  std::error_code error;
  return !paths.empty() || std::filesystem::exists(BestPath(), error);
}

Result<Checkpoint> CheckpointFolder::LoadBest() const { return ReadCheckpoint(BestPath(), io_); }

Status CheckpointWriter::Save(Checkpoint checkpoint) {
  MSRT_RETURN_IF_ERROR(Wait());
  thread_ = std::thread([this, written = std::move(checkpoint)] {
    Status thrown = CatchAsStatus([&] { status_ = folder_->Save(written); });
    if (!thrown.ok()) status_ = std::move(thrown);
  });
  return OkStatus();
}

Status CheckpointWriter::Wait() {
  if (thread_.joinable()) thread_.join();
  return std::exchange(status_, OkStatus());
}

}  // namespace msrt
