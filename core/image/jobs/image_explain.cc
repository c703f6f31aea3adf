#include "core/image/jobs/image_explain.h"

#include <algorithm>
#include <map>

#include "core/base/utf8.h"
#include "core/image/executors/phase_memory.h"
#include "core/image/executors/tile_schedule.h"
#include "core/image/jobs/svg_page.h"

namespace msrt {
namespace {

constexpr double kMargin = SvgPage::kMargin, kLine = SvgPage::kLine, kPicture = 420, kTable = 620,
                 kGap = 30;
constexpr size_t kMaxListed = 60;        // values in the table of a phase
constexpr int64_t kMaxDrawnLines = 200;  // of strips, or of tiles along one side
constexpr std::string_view kImageFill = "#eef3f8", kStripFill = "#bcd7f0", kReadFill = "#f5d7a9";

// The largest part of a value that is retained between two strips.
struct Retained {
  ValueId value;
  Box box;
  size_t bytes = 0;
};

std::vector<Retained> RetainedOf(const PieceRunner& runner, const RowSchedule& schedule) {
  std::map<uint32_t, Retained> largest;
  for (size_t s = 0; s < schedule.strip_count(); ++s) {
    for (const ValueBox& kept : schedule.strip(s).retains) {
      const size_t bytes = BytesOfBox(runner, kept.value, kept.box);
      Retained& retained = largest[IndexOf(kept.value)];
      if (bytes > retained.bytes) retained = {kept.value, kept.box, bytes};
    }
  }
  std::vector<Retained> list;
  for (const auto& [value, retained] : largest) list.push_back(retained);
  return list;
}

class PlanDrawing : private SvgPage {
 public:
  explicit PlanDrawing(const ImageRunner& runner)
      : runner_(runner),
        pieces_(runner.pieces()),
        image_(pieces_.type(pieces_.graph().inputs[0]).dims) {}

  Result<std::string> Draw(std::string_view title) {
    const ImagePlan& plan = runner_.plan();
    Text(kMargin, title, 15);
    Text(kMargin,
         StrCat("image ", image_[1], " x ", image_[2], " x ", image_[3], "; expected memory ",
                Mebibytes(plan.peak_bytes), " of ", Mebibytes(plan.limit_bytes), ", of which ",
                Mebibytes(plan.fixed_bytes), " for weights, decoded blocks and results"));
    for (size_t p = 0; p < plan.phases.size(); ++p) {
      const PhasePlan& phase = plan.phases[p];
      y_ += kLine;
      Text(kMargin, StrCat("phase ", p + 1, " of ", plan.phases.size(), ": ", Describe(phase)), 13);
      if (phase.phase.targets.empty()) continue;
      MSRT_RETURN_IF_ERROR(phase.executor == ImageExecutor::kTiles ? DrawTiles(phase)
                                                                   : DrawStrips(phase));
    }
    return Finish(2 * kMargin + kPicture + kGap + kTable);
  }

 private:
  std::string Describe(const PhasePlan& plan) const {
    std::string names;
    for (const StreamTarget& t : plan.phase.targets)
      StrAppend(&names, names.empty() ? "" : ", ", pieces_.graph().value(t.value).name);
    if (names.empty()) return StrCat(plan.phase.derived.size(), " statistics");
    const std::string sizes = plan.executor == ImageExecutor::kTiles
                                  ? StrCat("tiles of ", plan.rows, " x ", plan.columns)
                                  : StrCat("rolling strips of ", plan.rows, " rows");
    return StrCat(sizes, " of ", names, "; ", Mebibytes(plan.piece_bytes), " for a piece, ",
                  Mebibytes(plan.stored_bytes), " stored");
  }

  double Scale() const { return kPicture / static_cast<double>(std::max(image_[2], image_[3])); }

  // The image with one part filled, at the left below the present line.
  void DrawImage(double top, const Box& part, std::string_view fill) {
    const double scale = Scale();
    Rectangle(kMargin, top, static_cast<double>(image_[3]) * scale,
              static_cast<double>(image_[2]) * scale, kImageFill,
              StrCat("stroke=\"", SvgPage::kLineColour, "\""));
    if (part.rank() != 4) return;
    Rectangle(kMargin + static_cast<double>(part[3].begin) * scale,
              top + static_cast<double>(part[2].begin) * scale,
              static_cast<double>(part[3].size()) * scale,
              static_cast<double>(part[2].size()) * scale, fill);
  }

  // Lines between `count` parts, of which each has `size` elements of `extent`.
  void DrawCuts(double top, bool rows, int64_t size, int64_t extent) {
    const double height = static_cast<double>(image_[2]) * Scale();
    const double width = static_cast<double>(image_[3]) * Scale();
    const int64_t count = (extent + size - 1) / size;
    const int64_t step = std::max<int64_t>(1, count / kMaxDrawnLines);
    for (int64_t i = step; i < count; i += step) {
      const double at = static_cast<double>(i * size) / static_cast<double>(extent);
      if (rows) LineTo(kMargin, top + at * height, kMargin + width, top + at * height);
      else LineTo(kMargin + at * width, top, kMargin + at * width, top + height);
    }
  }

  int64_t Extent(const PhasePlan& plan, bool rows) const {
    int64_t extent = 1;
    for (const StreamTarget& t : plan.phase.targets) {
      const Dims& dims = pieces_.type(t.value).dims;
      if (rows) extent = std::max(extent, RowsOf(pieces_, t));
      else if (t.dim >= 0 && t.dim + 2 == dims.rank()) extent = std::max(extent, dims.back());
    }
    return extent;
  }

  Status DrawStrips(const PhasePlan& plan) {
    MSRT_ASSIGN_OR_RETURN(const RowSchedule schedule,
                          RowSchedule::Make(pieces_, plan.phase, plan.rows));
    const double top = y_ + kLine / 2;
    const StreamStrip middle = schedule.strip(schedule.strip_count() / 2);
    DrawImage(top, middle.image.value_or(Box()), kStripFill);
    DrawCuts(top, true, plan.rows, Extent(plan, true));
    const double bottom = top + static_cast<double>(image_[2]) * Scale();
    TextAt(kMargin, bottom + kLine,
           StrCat(schedule.strip_count(), " strips; filled: rows of the image in memory for one"));
    const double end = DrawRetained(RetainedOf(pieces_, schedule), top);
    y_ = std::max(bottom + 2 * kLine, end);
    return OkStatus();
  }

  // Returns where the table ends.
  double DrawRetained(const std::vector<Retained>& list, double top) {
    const double x = kMargin + kPicture + kGap;
    size_t largest = 1, total = 0;
    for (const Retained& r : list) largest = std::max(largest, r.bytes), total += r.bytes;
    double y = top + kLine;
    TextAt(x, y, StrCat("retained between strips: ", list.size(), " values, ", Mebibytes(total)));
    for (size_t i = 0; i < std::min(list.size(), kMaxListed); ++i) {
      const Retained& r = list[i];
      y += kLine;
      TextAt(x, y, Printable(pieces_.graph().value(r.value).name, 40));
      TextAt(x + 260, y,
             StrCat(r.box.rank() >= 2 ? r.box[r.box.rank() - 2].size() : 1, " rows, ",
                    Mebibytes(r.bytes)));
      Rectangle(x + 430, y - 10, 180 * static_cast<double>(r.bytes) / static_cast<double>(largest),
                12, kStripFill);
    }
    if (list.size() > kMaxListed) TextAt(x, y += kLine, StrCat(list.size() - kMaxListed, " more"));
    return y + kLine;
  }

  Status DrawTiles(const PhasePlan& plan) {
    const TileSchedule schedule(pieces_, plan.phase, plan.rows, plan.columns);
    const int64_t columns = Extent(plan, false);
    const int64_t across = (columns + plan.columns - 1) / plan.columns;
    const int64_t middle = schedule.tile_count() / across / 2 * across + across / 2;
    std::vector<PieceMemory> sources, targets;
    for (ValueId v : plan.phase.known) sources.push_back({v, Box::Whole(pieces_.type(v).dims), {}});
    for (const ValueBox& b : schedule.targets(middle)) targets.push_back({b.value, b.box, {}});
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, pieces_.Required(sources, targets));
    const Box read = required.values[IndexOf(pieces_.graph().inputs[0])].value_or(Box());
    const double top = y_ + kLine / 2;
    DrawImage(top, read, kReadFill);
    DrawCuts(top, true, plan.rows, Extent(plan, true));
    DrawCuts(top, false, plan.columns, columns);
    const double bottom = top + static_cast<double>(image_[2]) * Scale();
    y_ = bottom;
    Text(kMargin, StrCat(schedule.tile_count(), " tiles, ", across, " in a row; filled: the part ",
                         "of the image that one tile reads"));
    if (read.rank() == 4)
      Text(kMargin, StrCat("it has ", read[2].size(), " x ", read[3].size(),
                           " pixels; neighbours read and compute the overlap again"));
    return OkStatus();
  }

  const ImageRunner& runner_;
  const PieceRunner& pieces_;
  const Dims image_;
};

}  // namespace

Result<std::string> ImagePlanSvg(const ImageRunner& runner, std::string_view title) {
  return PlanDrawing(runner).Draw(title);
}

}  // namespace msrt
