#include "core/image/jobs/job_identity.h"

#include <sys/stat.h>

#include <cstring>

#include "core/base/str_cat.h"
#include "core/image/files/image_file.h"
#include "core/image/files/sink_journal.h"

namespace msrt {
namespace {

// Contents decide, not the name: a file may be moved. Of a large file a few parts stand for all;
// the time of the last change covers the rest.
Result<uint64_t> FileIdentity(const std::string& path) {
  MSRT_ASSIGN_OR_RETURN(const ImageFile file, ImageFile::OpenForReading(path));
  MSRT_ASSIGN_OR_RETURN(const int64_t bytes, file.Bytes());
  struct stat status {};
  if (fstat(file.fd(), &status) != 0) return IoError("file '", path, "': fstat failed");
  const std::string text = StrCat(bytes, " ", status.st_mtim.tv_sec, " ", status.st_mtim.tv_nsec);
  uint64_t hash = HashBytes(std::as_bytes(std::span(text.data(), text.size())));
  constexpr int64_t kParts = 16, kPartBytes = 4096;
  std::vector<std::byte> part(static_cast<size_t>(std::min(bytes, kPartBytes)));
  for (int64_t i = 0; i < kParts && !part.empty(); ++i) {
    const int64_t offset = (bytes - static_cast<int64_t>(part.size())) * i / (kParts - 1);
    MSRT_RETURN_IF_ERROR(file.Read(offset, part));
    hash = HashBytes(part, hash);
  }
  return hash;
}

void AppendNumber(double number, std::string* text) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  StrAppend(text, " ", bits);
}

void AppendNumbers(std::string* text, std::string_view name, const std::vector<float>& numbers) {
  StrAppend(text, " ", name);
  for (const float number : numbers) {
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    StrAppend(text, ",", bits);
  }
}

// A pixel's bits follow from the model's arithmetic, which these options choose.
void AppendCompileOptions(const CompileOptions& options, std::string* text) {
  for (const std::string& name : options.place.delegates) StrAppend(text, " delegate ", name);
  for (const std::string& name : options.passes.disabled) StrAppend(text, " disabled ", name);
  for (const Pin& pin : options.place.pins) StrAppend(text, " pin ", Describe(pin));
}

}  // namespace

Result<uint64_t> JobIdentity(const Environment& environment, const std::string& model,
                             const ImageInfo& image, const JobOptions& options) {
  MSRT_ASSIGN_OR_RETURN(const Bytes bytes, environment.io->MapFile(model));
  std::string text =
      StrCat("msrt " MSRT_VERSION " image job 3 model ", HashBytes(bytes.data), " image ",
             image.channels, " ", image.height, " ", image.width, " ", image.dtype);
  if (options.input.source == nullptr) {
    MSRT_ASSIGN_OR_RETURN(const uint64_t identity, FileIdentity(options.input.path));
    StrAppend(&text, " file ", identity, " level ", options.input.open.level, " page ",
              options.input.open.page);
  } else {
    if (options.resume && options.input.identity.empty())
      return InvalidArgument(
          "a job on an image that the application reads is continued only if its "
          "source has an identity: a text that differs for images that differ");
    StrAppend(&text, " source ", options.input.identity.size(), " ", options.input.identity);
    if (image.no_data.has_value()) AppendNumber(*image.no_data, &text);
  }
  for (const int64_t band : options.input.bands) StrAppend(&text, " band ", band);
  for (const JobOutput& output : options.outputs)
    StrAppend(&text, " output ", output.name, " ", static_cast<int>(output.classes));
  AppendNumbers(&text, "mean", options.normalization.mean);
  AppendNumbers(&text, "std", options.normalization.std);
  AppendNumbers(&text, "scale", options.normalization.scale);
  AppendNumbers(&text, "offset", options.normalization.offset);
  StrAppend(&text, " no data ", options.use_no_data && image.no_data.has_value());
  if (!options.mask.empty()) {
    MSRT_ASSIGN_OR_RETURN(const uint64_t identity, FileIdentity(options.mask));
    StrAppend(&text, " mask ", identity);
  }
  AppendCompileOptions(options.compile, &text);
  return HashBytes(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace msrt
