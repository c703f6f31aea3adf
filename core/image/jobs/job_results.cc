#include "core/image/jobs/job_results.h"

#include <filesystem>

#include "core/image/files/pixel_convert.h"
#include "core/image/files/unfinished_file.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  return fs::absolute(a, error).lexically_normal() == fs::absolute(b, error).lexically_normal();
}

ImageWindow WindowOf(const Box& box) {
  const Interval rows = box[box.rank() - 2], columns = box[box.rank() - 1];
  return {rows.begin, columns.begin, rows.size(), columns.size()};
}

// The same box from row `first` on, `rows` rows. `*strides` belong to the result.
TensorView RowsOfBox(const TensorView& box, int64_t first, int64_t rows, Dims* strides) {
  const int rank = box.dims.rank();
  *strides = box.strides != nullptr ? Dims({box.strides, static_cast<size_t>(rank)})
                                    : RowMajorStrides(box.dims);
  TensorView part = box;
  part.dims[rank - 2] = rows;
  part.strides = strides->begin();
  part.data = static_cast<std::byte*>(box.data) + BytesOf(box.dtype, first * (*strides)[rank - 2]);
  return part;
}

Status CheckResultFile(const JobOutput& output, const JobOptions& options, bool some_unfinished) {
  if (output.write != nullptr || options.overwrite) return OkStatus();
  const bool part = Exists(PartPath(output.path));
  if (part && !options.resume)
    return InvalidArgument("'", PartPath(output.path),
                           "' is an unfinished result of an earlier job; resume that job, or let ",
                           "this one overwrite it");
  if (Exists(output.path) && !(options.resume && some_unfinished))
    return InvalidArgument("'", output.path, "' exists already and is complete; ",
                           "remove it, let the job overwrite it, or choose another name");
  return OkStatus();
}

}  // namespace

Status CheckResultFiles(const std::string& model, const JobOptions& options) {
  bool some_unfinished = false;
  for (const JobOutput& output : options.outputs)
    some_unfinished |= output.write == nullptr && Exists(PartPath(output.path));
  for (size_t i = 0; i < options.outputs.size(); ++i) {
    const JobOutput& output = options.outputs[i];
    if (output.write != nullptr) continue;
    if (output.path.empty()) return InvalidArgument("a result has no file name");
    for (const std::string* read : {&model, &options.input.path, &options.mask}) {
      if (!read->empty() && SameFile(*read, output.path))
        return InvalidArgument("'", output.path, "' is read by the job; choose another name for ",
                               "the result");
    }
    for (size_t j = 0; j < i; ++j) {
      if (options.outputs[j].write == nullptr && SameFile(options.outputs[j].path, output.path))
        return InvalidArgument("two results have the name '", output.path, "'");
    }
    MSRT_RETURN_IF_ERROR(CheckResultFile(output, options, some_unfinished));
  }
  return OkStatus();
}

Result<std::unique_ptr<JobResults>> JobResults::Create(const JobOptions& options,
                                                       std::vector<ImageInfo> infos,
                                                       uint64_t identity,
                                                       const ResultPieces& pieces,
                                                       ImageContent* content) {
  std::unique_ptr<JobResults> results(new JobResults(options, std::move(infos), content));
  for (size_t o = 0; o < options.outputs.size(); ++o) {
    const JobOutput& output = options.outputs[o];
    const ImageInfo& info = results->infos_[o];
    if (output.write != nullptr) {
      MSRT_ASSIGN_OR_RETURN(std::unique_ptr<ImageSink> sink, MakeCallbackSink(info, output.write));
      results->sinks_.push_back(std::move(sink));
      continue;
    }
    const bool part = Exists(PartPath(output.path));
    if (options.resume && !part && Exists(output.path)) {
      results->sinks_.push_back(nullptr);
      continue;
    }
    CreateOptions create = options.create;
    create.resume = options.resume;
    create.job = identity;
    create.overviews = !info.palette.empty() && !output.path.ends_with(".npy");
    // The plan has counted as much, so more than the default is no mistake.
    create.max_pending_bytes =
        std::max(create.max_pending_bytes, OpenBlockBytes(options, output, info, pieces));
    if (options.overwrite && !options.resume) RemoveUnfinished(output.path);
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<ImageSink> sink, CreateImage(output.path, info, create));
    results->sinks_.push_back(std::move(sink));
  }
  return results;
}

template <typename Body>
Status JobResults::ForEachBand(size_t output, const ImageWindow& window, const Body& body) {
  const int64_t block = options_.create.tile > 0 ? options_.create.tile : 1;
  const int64_t most = ConvertedRows(infos_[output], window.cols);
  std::vector<std::byte> pixels;
  for (int64_t row = window.row; row < window.row + window.rows;) {
    const int64_t end = std::min({(row / block + 1) * block, row + most, window.row + window.rows});
    MSRT_RETURN_IF_ERROR(body(ImageWindow{row, window.col, end - row, window.cols}, &pixels));
    row = end;
  }
  return SyncNowAndThen();
}

Status JobResults::Write(size_t output, const Box& box, const TensorView& memory) {
  if (sinks_[output] == nullptr) return OkStatus();
  const ImageWindow whole = WindowOf(box);
  return ForEachBand(output, whole, [&](const ImageWindow& window, auto* pixels) {
    Dims strides;
    return WriteBand(output, window,
                     RowsOfBox(memory, window.row - whole.row, window.rows, &strides), pixels);
  });
}

Status JobResults::WriteBand(size_t output, const ImageWindow& window, const TensorView& memory,
                             std::vector<std::byte>* pixels) {
  ImageSink& sink = *sinks_[output];
  if (sink.IsFinished(window)) return OkStatus();
  const ImageInfo& info = infos_[output];
  std::vector<uint8_t> content;
  if (!content_.empty()) {
    MSRT_ASSIGN_OR_RETURN(content, content_.Read(output, window));
  }
  const int rank = memory.dims.rank();
  const int64_t* const strides = memory.strides;
  if (content.empty() && memory.dtype == info.dtype && strides[rank - 1] == 1)
    return sink.Write(
        window, {memory.data, info.dtype, rank == 4 ? strides[1] : window.rows * strides[rank - 2],
                 strides[rank - 2]});
  MSRT_RETURN_IF_ERROR(ConvertResult(memory, info, content, FillValue(info), pixels));
  return sink.Write(window, {pixels->data(), info.dtype, window.rows * window.cols, window.cols});
}

Status JobResults::Skip(size_t output, const Box& box) {
  if (sinks_[output] == nullptr) return OkStatus();
  return ForEachBand(output, WindowOf(box), [&](const ImageWindow& window, auto* pixels) {
    return SkipBand(output, window, pixels);
  });
}

Status JobResults::SkipBand(size_t output, const ImageWindow& window,
                            std::vector<std::byte>* pixels) {
  ImageSink& sink = *sinks_[output];
  if (sink.IsFinished(window)) return OkStatus();
  const ImageInfo& info = infos_[output];
  const int64_t elements = info.channels * window.rows * window.cols;
  pixels->resize(static_cast<size_t>(elements * ElementBytes(info.dtype)));
  FillPixels(FillValue(info), info.dtype, pixels->data(), elements);
  return sink.Write(window, {pixels->data(), info.dtype, window.rows * window.cols, window.cols});
}

Result<bool> JobResults::Wanted(size_t output, const Box& box) {
  const ImageWindow window = WindowOf(box);
  const ImageSink* const sink = sinks_[output].get();
  if (sink == nullptr || sink->IsFinished(window)) return false;
  if (content_.empty()) return true;
  return content_.Any(output, window);
}

int64_t JobResults::finished_rows() const {
  return sinks_[0] == nullptr ? infos_[0].height : sinks_[0]->finished_rows();
}

Status JobResults::Sync() {
  for (const auto& sink : sinks_) {
    if (sink != nullptr) MSRT_RETURN_IF_ERROR(sink->Sync());
  }
  return OkStatus();
}

Status JobResults::SyncNowAndThen() {
  {
    const std::lock_guard lock(sync_mutex_);
    if (since_sync_.Millis() < options_.sync_seconds * 1e3) return OkStatus();
    since_sync_ = StopWatch();  // the others go on meanwhile
  }
  return Sync();
}

Status JobResults::Finish() {
  // All or nothing, as far as possible: what can fail comes before the first file has its name.
  MSRT_RETURN_IF_ERROR(Sync());
  for (const auto& sink : sinks_) {
    if (sink != nullptr) MSRT_RETURN_IF_ERROR(sink->Finish());
  }
  return OkStatus();
}

}  // namespace msrt
