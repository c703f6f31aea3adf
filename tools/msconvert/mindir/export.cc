#include "tools/msconvert/mindir/export.h"

#include <filesystem>

#include "core/base/checked_math.h"
#include "tools/msconvert/mindir/export_expand.h"
#include "tools/msconvert/mindir/export_module.h"

namespace msrt::mindir_export {
namespace {

constexpr uint64_t kAlignment = 64;  // of tensors in a data file, and the length of its header

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void PutInside(const std::vector<Weight>& weights) {
  for (const Weight& w : weights)
    w.parameter->set_raw_data(w.tensor.bytes.data(), w.tensor.bytes.size());
}

// Writes MindSpore's data file: a header whose first byte says that numbers are little-endian, then
// the tensors.
Status PutBeside(const std::vector<Weight>& weights, const std::string& path, Io* io) {
  namespace fs = std::filesystem;
  const fs::path model(path);
  const std::string folder = StrCat(model.stem().string(), "_variables");
  std::error_code made;
  fs::create_directories(model.parent_path() / folder, made);
  if (made)
    return IoError("'", (model.parent_path() / folder).string(),
                   "': cannot be made: ", made.message());

  static constexpr std::array<std::byte, kAlignment> kZeros{};
  std::array<std::byte, kAlignment> header{};
  header[0] = std::byte{1};
  std::vector<std::span<const std::byte>> pieces{header};
  uint64_t offset = kAlignment;
  for (const Weight& w : weights) {
    auto* place = w.parameter->mutable_external_data();
    place->set_location(StrCat(folder, "/data_0"));
    place->set_offset(static_cast<int64_t>(offset));
    place->set_length(static_cast<int64_t>(w.tensor.bytes.size()));
    pieces.push_back(w.tensor.bytes);
    pieces.push_back(
        std::span(kZeros).first(Aligned(w.tensor.bytes.size()) - w.tensor.bytes.size()));
    offset += Aligned(w.tensor.bytes.size());
  }
  return io->WriteFile((model.parent_path() / folder / "data_0").string(), pieces);
}

uint64_t BytesOf(const std::vector<Weight>& weights) {
  uint64_t bytes = 0;
  for (const Weight& w : weights) bytes += w.tensor.bytes.size();
  return bytes;
}

}  // namespace

std::string CureFor(std::string_view reason) {
  if (reason.find("known") == std::string_view::npos)
    return "convert to .msrt instead, or build the model of other ops";
  return "fix the sizes of the inputs: make the .msrt file from the original with --shape "
         "NAME=1x3x224x224";
}

Result<std::vector<Refusal>> WriteFile(const Module& module, const std::string& path, Io* io,
                                       const WriteOptions& options) {
  Module portable = module;  // constants are shared
  MSRT_ASSIGN_OR_RETURN(const std::vector<ExpandedNode> expanded, ExpandRecurrent(&portable));
  FileWriter file;
  std::vector<Refusal> refusals = ModuleExport(portable, expanded, &file).Run();
  if (!refusals.empty()) return refusals;
  if (BytesOf(file.weights()) <= options.max_bytes_inside) PutInside(file.weights());
  else MSRT_RETURN_IF_ERROR(PutBeside(file.weights(), path, io));
  std::string bytes;
  if (file.model().ByteSizeLong() > INT32_MAX || !file.model().SerializeToString(&bytes)) {
    return LimitExceeded("'", path,
                         "': constants inside graphs that are called make the file larger than 2 "
                         "GB; MindIR has no other place");
  }
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(bytes))};
  MSRT_RETURN_IF_ERROR(io->WriteFile(path, pieces));
  return refusals;
}

}  // namespace msrt::mindir_export
