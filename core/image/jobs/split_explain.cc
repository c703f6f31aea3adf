#include "core/image/jobs/split_explain.h"

#include "core/image/jobs/svg_page.h"

namespace msrt {
namespace {

constexpr double kSplitPicture = 420, kSplitTable = 760, kSplitGap = 30;
constexpr size_t kMaxListedRanks = 100;  // ranks in the table

class SplitDrawing : private SvgPage {
 public:
  explicit SplitDrawing(const SplitPicture& picture)
      : p_(picture),
        scale_(kSplitPicture / static_cast<double>(std::max(picture.image[2], picture.image[3]))) {}

  std::string Draw() {
    Text(kMargin, p_.title, 15);
    Text(kMargin, StrCat("image ", p_.image[1], " x ", p_.image[2], " x ", p_.image[3], "; ",
                         p_.ranks.size(), " ranks that exchange halos; memory limit of each ",
                         Mebibytes(p_.limit_bytes)));
    const double top = y_ + kLine;
    for (size_t r = 0; r < p_.ranks.size(); ++r) DrawRead(r, top);
    for (size_t r = 0; r < p_.ranks.size(); ++r) DrawOwned(r, top);
    const double bottom = top + static_cast<double>(p_.image[2]) * scale_;
    TextAt(kMargin, bottom + kLine, "blue: the part of the result that a rank owns");
    TextAt(kMargin, bottom + 2 * kLine, "orange: the halo of the image that it reads beside");
    y_ = std::max(bottom + 3 * kLine, DrawTable(top));
    return Finish(2 * kMargin + kSplitPicture + kSplitGap + kSplitTable);
  }

 private:
  void Part(double top, double row, double column, double rows, double columns,
            std::string_view fill, std::string_view extra) {
    Rectangle(kMargin + column * scale_, top + row * scale_, columns * scale_, rows * scale_, fill,
              extra);
  }

  void DrawRead(size_t r, double top) {
    const Box& box = p_.ranks[r].inputs[0];
    if (box.empty()) return;
    Part(top, static_cast<double>(box[2].begin), static_cast<double>(box[3].begin),
         static_cast<double>(box[2].size()), static_cast<double>(box[3].size()), "#f5b45a",
         "fill-opacity=\"0.45\"");
  }

  void DrawOwned(size_t r, double top) {
    const Box& box = p_.ranks[r].outputs[0];
    const int last = box.rank() - 1;
    if (box.empty() || p_.output.rank() != box.rank()) return;
    const double down = static_cast<double>(p_.image[2]) / static_cast<double>(p_.output[last - 1]);
    const double across = static_cast<double>(p_.image[3]) / static_cast<double>(p_.output[last]);
    const double row = static_cast<double>(box[last - 1].begin) * down;
    const double column = static_cast<double>(box[last].begin) * across;
    const double rows = static_cast<double>(box[last - 1].size()) * down;
    const double columns = static_cast<double>(box[last].size()) * across;
    Part(top, row, column, rows, columns, "#7fb2e5",
         StrCat("fill-opacity=\"0.6\" stroke=\"", kLineColour, "\""));
    TextAt(kMargin + (column + columns / 2) * scale_ - kLine, top + (row + rows / 2) * scale_,
           StrCat("rank ", r));
  }

  // Returns where the table ends.
  double DrawTable(double top) {
    const double x = kMargin + kSplitPicture + kSplitGap;
    double y = top;
    for (size_t r = 0; r < std::min(p_.ranks.size(), kMaxListedRanks); ++r) {
      const RankModule& rank = p_.ranks[r];
      const Box& read = rank.inputs[0];
      const Box& owned = rank.outputs[0];
      const int last = owned.rank() - 1;
      TextAt(x, y += kLine,
             StrCat("rank ", r, ": rows ", owned[last - 1], ", columns ", owned[last],
                    " of the result; reads ", read.empty() ? 0 : read[2].size(), " x ",
                    read.empty() ? 0 : read[3].size(), " pixels"));
      TextAt(x + 50, y += kLine,
             StrCat(rank.exchanges, " exchanges, ", rank.messages_sent, " messages, ",
                    Mebibytes(static_cast<size_t>(rank.bytes_sent)), " sent; memory ",
                    Mebibytes(static_cast<size_t>(p_.expected_bytes[r]))));
    }
    if (p_.ranks.size() > kMaxListedRanks)
      TextAt(x, y += kLine, StrCat(p_.ranks.size() - kMaxListedRanks, " more"));
    return y + kLine;
  }

  const SplitPicture& p_;
  const double scale_;
};

}  // namespace

std::string SplitSvg(const SplitPicture& picture) { return SplitDrawing(picture).Draw(); }

}  // namespace msrt
