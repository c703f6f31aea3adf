#include <algorithm>
#include <cstdio>

#include "core/api/image.h"
#include "core/api/json_writer.h"
#include "core/base/process_memory.h"

namespace msrt {
namespace {

void WriteImage(const ImageInfo& info, JsonWriter* json) {
  json->Field("channels", info.channels);
  json->Field("rows", info.height);
  json->Field("columns", info.width);
  json->Field("type", StrCat(info.dtype));
  if (info.no_data) json->Field("no_data", *info.no_data);
}

void WritePlan(const ImageJob& job, JsonWriter* json) {
  const ImagePlan& plan = job.plan();
  json->Key("plan");
  json->BeginObject();
  json->Field("limit_bytes", plan.limit_bytes);
  json->Field("fixed_bytes", plan.fixed_bytes);
  json->Field("peak_bytes", plan.peak_bytes);
  json->Key("phases");
  json->BeginArray();
  for (const PhasePlan& phase : plan.phases) {
    json->BeginObject();
    json->Field("executor", ExecutorName(phase.executor));
    json->Field("rows", phase.rows);
    json->Field("columns", phase.columns);
    json->Field("piece_bytes", phase.piece_bytes);
    json->Field("stored_bytes", phase.stored_bytes);
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

void WritePhase(const ImageReport::Phase& phase, JsonWriter* json) {
  json->BeginObject();
  json->Field("executor", ExecutorName(phase.executor));
  json->Field("rows", phase.rows);
  json->Field("columns", phase.columns);
  json->Field("pieces", phase.pieces);
  json->Field("skipped_pieces", phase.skipped_pieces);
  if (phase.executor == ImageExecutor::kTiles) {
    json->Field("computed_elements", phase.computed_elements);
    json->Field("whole_elements", phase.whole_elements);
  } else {
    json->Field("computed_rows", phase.computed_rows);
    json->Field("recomputed_rows", phase.recomputed_rows);
  }
  json->Field("seconds", phase.seconds);
  json->EndObject();
}

// Messages are those of halos; one process sends none.
void WriteRanks(const std::vector<RankWork>& ranks, JsonWriter* json) {
  int64_t messages = 0, bytes = 0;
  for (const RankWork& work : ranks) messages += work.messages, bytes += work.message_bytes;
  json->Field("messages", messages);
  json->Field("message_bytes", bytes);
  if (ranks.empty()) return;
  json->Key("ranks");
  json->BeginArray();
  for (const RankWork& work : ranks) {
    json->BeginObject();
    json->Field("seconds", work.seconds);
    json->Field("exposed_seconds", work.exposed_seconds);
    json->Field("exchanges", work.exchanges);
    json->Field("messages", work.messages);
    json->Field("message_bytes", work.message_bytes);
    json->Field("result_bytes", work.result_bytes);
    json->Field("peak_bytes", work.peak_bytes);
    json->Field("expected_bytes", work.expected_bytes);
    json->Field("computed_rows", work.computed_rows);
    json->EndObject();
  }
  json->EndArray();
}

void WriteRun(const JobReport& run, JsonWriter* json) {
  json->Field("seconds", run.seconds);
  json->Field("compile_seconds", run.compile_seconds);
  json->Field("read_seconds", run.run.read_seconds);
  json->Field("write_seconds", run.run.write_seconds);
  json->Field("pixels_per_second",
              run.seconds > 0 ? static_cast<double>(run.pixels) / run.seconds : 0.0);
  json->Field("peak_bytes", run.run.peak_bytes);
  json->Field("peak_rss_bytes", static_cast<int64_t>(PeakResidentMemory()));
  json->Field("recomputed_rows", run.recomputed_rows);
  json->Field("resumed_rows", run.resumed_rows);
  json->Field("decoded_blocks", run.decoded_blocks);
  WriteRanks(run.ranks, json);
  json->Key("phases");
  json->BeginArray();
  for (const ImageReport::Phase& phase : run.run.phases) WritePhase(phase, json);
  json->EndArray();
}

}  // namespace

std::string ImageReportJson(const ImageJob& job, const JobReport* run) {
  JsonWriter json;
  json.BeginObject();
  json.Key("image");
  json.BeginObject();
  if (!job.options().input.path.empty()) json.Field("path", job.options().input.path);
  if (!job.image().format.empty()) json.Field("format", job.image().format);
  WriteImage(job.image(), &json);
  json.EndObject();
  json.Key("outputs");
  json.BeginArray();
  for (size_t o = 0; o < job.options().outputs.size(); ++o) {
    json.BeginObject();
    json.Field("name", job.output_name(o));
    if (!job.options().outputs[o].path.empty()) json.Field("path", job.options().outputs[o].path);
    WriteImage(job.result(o), &json);
    json.EndObject();
  }
  json.EndArray();
  char identity[17];
  std::snprintf(identity, sizeof identity, "%016llx",
                static_cast<unsigned long long>(job.identity()));
  json.Field("job", identity);
  WritePlan(job, &json);
  if (run != nullptr) WriteRun(*run, &json);
  json.EndObject();
  return json.Take();
}

Result<std::string> ImageReportSvg(const ImageJob& job) {
  return job.DrawPlan(job.options().input.path.empty() ? "an image" : job.options().input.path);
}

Result<std::vector<int64_t>> ParseBands(std::string_view text) {
  std::vector<int64_t> bands;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part(text.substr(begin, comma - begin));
    constexpr size_t kMaxDigits = 9;
    if (part.empty() || part.size() > kMaxDigits ||
        part.find_first_not_of("0123456789") != std::string::npos || std::stoll(part) == 0)
      return InvalidArgument("bands '", text, "': '", part,
                             "' is no band; write numbers from 1, as 3,2,1");
    bands.push_back(std::stoll(part) - 1);
    begin = comma + 1;
  }
  return bands;
}

}  // namespace msrt
