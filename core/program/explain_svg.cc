// The placement report as a picture. Time runs downwards; every delegate has a column and a colour.
// Names come from files, so each goes through Xml().
#include <algorithm>
#include <cstdio>
#include <map>

#include "core/base/units.h"
#include "core/base/utf8.h"
#include "core/program/explain.h"
#include "core/program/placement_picture.h"

namespace msrt {
namespace {

constexpr double kBoxWidth = 300, kColumnGap = 150, kRowGap = 14, kTextLine = 13,
                 kMaxExtraHeight = 60, kMargin = 20, kLegendLine = 18;
constexpr double kCharacter = 6;       // width at the usual font size, rounded up
constexpr double kSmallCharacter = 5;  // width in small print
constexpr size_t kMaxListedEnds = 6;   // inputs or outputs
constexpr std::string_view kConvertColour = "#c26a12", kCopyColour = "#c0392b",
                           kPlainColour = "#8a8a8a";

// A delegate has the same colour in every picture.
std::string_view FillOf(const std::string& delegate) {
  static const std::map<std::string, std::string_view> kKnown = {{"host", "#e8e8e8"},
                                                                 {"onednn", "#bcd7f0"},
                                                                 {"cpu", "#a9dbd3"},
                                                                 {"reference", "#f5d7a9"},
                                                                 {"kernels", "#c9e7c1"}};
  constexpr std::string_view kOthers[] = {"#e3c9ee", "#f4c4c4", "#c5eae7",
                                          "#e9e4a6", "#d3d0f2", "#f3cde0"};
  const auto known = kKnown.find(delegate);
  if (known != kKnown.end()) return known->second;
  uint32_t hash = 2166136261;  // FNV-1a: the same on every machine
  for (char c : delegate) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return kOthers[hash % std::size(kOthers)];
}

std::string Escaped(std::string_view printable) {
  std::string out;
  for (char c : printable) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Xml(std::string_view text, size_t max_characters = SIZE_MAX) {
  return Escaped(Printable(text, max_characters));
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string CountText(size_t count, std::string_view noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
  bool Overlaps(const Rectangle& o) const {
    return x < o.x + o.width && o.x < x + width && y < o.y + o.height && o.y < y + height;
  }
};

// One program, drawn from y = 0 down.
class Drawing {
 public:
  Drawing(const Program& program, std::string title)
      : program_(program),
        picture_(PlacementPicture::Of(program)),
        title_(std::move(title)),
        places_(picture_.boxes.size()) {
    PlaceBoxes();
    for (const auto& [ends, line] : picture_.lines) AppendLine(ends.first, ends.second, line);
    for (size_t b = 0; b < picture_.boxes.size(); ++b) AppendBox(b);
    for (const std::string& label : labels_) body_ += label;  // drawn over everything else
    AppendLegend();
  }

  double width() const {
    return kMargin * 2 + static_cast<double>(picture_.columns.size()) * (kBoxWidth + kColumnGap);
  }
  double height() const { return bottom_; }
  const std::string& body() const { return body_; }

 private:
  std::string TensorText(BufferId b) const {
    const ValueId v = program_.buffers[b].value;
    return StrCat(program_.offered->typical().types[IndexOf(v)]);
  }

  static std::string Fit(std::string_view name, double width, double character) {
    return PrintableEnd(name, static_cast<size_t>(std::max(width / character, 4.0)));
  }

  // "layer1.conv (Conv)", or "40 nodes: Conv 20, Relu 12, Add 8".
  std::string Title(const PictureBox& box, double width) const {
    std::map<std::string, size_t> ops;
    size_t nodes = 0;
    for (uint32_t s : box.steps) {
      for (uint32_t n : program_.steps[s].nodes) ++nodes, ++ops[OpName(program_.graph->nodes[n])];
    }
    if (nodes == 1) {
      const Step& step = program_.steps[box.steps[0]];
      const std::string op = StrCat(" (", Printable(OpOf(program_, step), 20), ")");
      return Fit(NameOf(program_, step),
                 width - static_cast<double>(CharacterCount(op)) * kCharacter, kCharacter) +
             op;
    }
    std::vector<std::pair<size_t, std::string>> sorted;
    for (const auto& [op, count] : ops) sorted.emplace_back(count, op);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string title = StrCat(nodes, " nodes: ");
    for (size_t i = 0; i < std::min<size_t>(sorted.size(), 3); ++i)
      StrAppend(&title, i == 0 ? "" : ", ", sorted[i].second, " ", sorted[i].first);
    return Printable(sorted.size() > 3 ? title + ", ..." : title,
                     static_cast<size_t>(width / kCharacter));
  }

  // The lines below the title, in small print: the tensor that the box makes and its algorithm, or
  // the names of inputs and outputs.
  std::vector<std::string> SmallPrint(const PictureBox& box) const {
    std::vector<std::string> lines;
    for (BufferId b : box.ends) {
      if (lines.size() == kMaxListedEnds)
        return lines.push_back(StrCat("and ", box.ends.size() - kMaxListedEnds, " more")), lines;
      const std::string type = TensorText(b);
      const double room = kBoxWidth - 16 - static_cast<double>(type.size()) * kSmallCharacter;
      lines.push_back(
          StrCat(Fit(program_.graph->value(program_.buffers[b].value).name, room, kSmallCharacter),
                 " ", type));
    }
    if (box.steps.size() != 1) return lines;
    const Step& step = program_.steps[box.steps[0]];
    const std::vector<BufferId> made = MovingBuffers(program_, step.outputs);
    std::string text = made.empty() ? "" : StrCat(TensorText(made[0]), " ");
    if (step.control != nullptr) {
      text += "calls";
      for (uint32_t g : step.control->graphs) StrAppend(&text, " #", g);
    }
    StrAppend(&text, step.algorithm);
    lines.push_back(Printable(text, static_cast<size_t>((kBoxWidth - 12) / kSmallCharacter)));
    return lines;
  }

  void PlaceBoxes() {
    double longest = 0,
           y = kMargin + kLegendLine * static_cast<double>(picture_.columns.size() +
                                                           program_.failed_delegates.size() + 4);
    for (const PictureBox& box : picture_.boxes) longest = std::max(longest, box.seconds);
    for (size_t b = 0; b < picture_.boxes.size(); ++b) {
      const PictureBox& box = picture_.boxes[b];
      const double lines = 1 + static_cast<double>(SmallPrint(box).size());
      const double height =
          8 + lines * kTextLine + (longest > 0 ? kMaxExtraHeight * box.seconds / longest : 0);
      places_[b] = {kMargin + static_cast<double>(box.column) * (kBoxWidth + kColumnGap), y,
                    kBoxWidth, height};
      y += height + kRowGap;
    }
    bottom_ = y + kMargin;
  }

  // A summary of a large graph shows only lines between neighbours, and lines with a copy or a
  // layout change.
  bool IsShown(size_t from, size_t to, const PictureLine& line) const {
    constexpr size_t kNear = 3;
    return !picture_.summary || !line.moves.empty() || to - from <= kNear;
  }

  void AppendLine(size_t from, size_t to, const PictureLine& line) {
    if (!IsShown(from, to, line)) return;
    const std::string_view colour = line.moves.empty() ? kPlainColour
                                    : line.copied      ? kCopyColour
                                                       : kConvertColour;
    const char* arrow = line.moves.empty() ? "plain" : line.copied ? "copy" : "convert";
    const Rectangle &a = places_[from], &b = places_[to];
    double x1 = a.x + a.width, y1 = a.y + a.height / 2, x2 = b.x + b.width, y2 = b.y + b.height / 2;
    double bow = std::min(30 + (y2 - y1) / 12, kColumnGap * 0.8), end_bow = -bow;
    double label_x = x1 + bow * 0.75 + 3, label_y = (y1 + y2) / 2;
    if (a.x == b.x && to == from + 1) {
      x1 = x2 = a.x + kBoxWidth / 2;
      y1 = a.y + a.height;
      y2 = b.y;
      bow = end_bow = 0;
      label_x = x1 + 5;
      label_y = y2 - 3;
    } else if (a.x != b.x) {
      const bool right = b.x > a.x;
      x1 = a.x + (right ? a.width : 0);
      x2 = b.x + (right ? 0 : b.width);
      bow = end_bow = (x2 - x1) / 2;
      label_x = std::min(x1, x2) + std::abs(x2 - x1) / 2 - 40;
    }
    StrAppend(&body_, "<path d=\"M", Number(x1), " ", Number(y1), " C", Number(x1 + bow), " ",
              Number(y1), " ", Number(x2 - end_bow), " ", Number(y2), " ", Number(x2), " ",
              Number(y2), "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"",
              line.moves.empty() ? "1" : "2", "\" marker-end=\"url(#", arrow, ")\"><title>",
              BytesText(line.bytes), "</title></path>\n");
    if (!line.moves.empty())
      AddLabel(label_x, label_y, StrCat(BytesText(line.bytes), " ", line.moves), colour);
  }

  // A label that overlaps another one moves down.
  void AddLabel(double x, double y, const std::string& text, std::string_view colour) {
    Rectangle place{x, y - 8, static_cast<double>(CharacterCount(text)) * kSmallCharacter, 10};
    const auto taken = [&](const Rectangle& other) { return place.Overlaps(other); };
    for (int tries = 0;
         tries < 20 && std::any_of(label_places_.begin(), label_places_.end(), taken); ++tries)
      place.y += 10;
    label_places_.push_back(place);
    labels_.push_back(StrCat("<text x=\"", Number(x), "\" y=\"", Number(place.y + 8),
                             "\" font-size=\"9\" fill=\"", colour,
                             "\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">",
                             Xml(text), "</text>\n"));
  }

  // The tooltip of a box.
  std::string Details(const PictureBox& box) const {
    std::string text;
    for (BufferId b : box.ends)
      StrAppend(&text, text.empty() ? "" : "; ",
                program_.graph->value(program_.buffers[b].value).name, " ", TensorText(b));
    if (box.steps.empty()) return text;
    text = StrCat(picture_.columns[box.column].name, ", ", SecondsText(box.seconds));
    if (box.steps.size() != 1) return text;
    const Step& step = program_.steps[box.steps[0]];
    for (uint32_t n : step.nodes)
      StrAppend(&text, "; node ", n, " '", program_.graph->nodes[n].name, "'");
    if (!step.algorithm.empty()) StrAppend(&text, " by ", step.algorithm);
    if (!step.arithmetic.empty()) StrAppend(&text, " in ", step.arithmetic);
    for (const auto& [delegate, reason] : program_.explanations[step.node].others)
      StrAppend(&text, "; not ", delegate, ": ", reason);
    return text;
  }

  void AppendBox(size_t b) {
    const PictureBox& box = picture_.boxes[b];
    const Rectangle& at = places_[b];
    const bool end = box.steps.empty();
    const std::string time = box.seconds > 0 ? SecondsText(box.seconds) : "";
    const double title_width = at.width - 18 - static_cast<double>(time.size()) * kCharacter;
    const std::string title =
        end ? CountText(box.ends.size(), b == 0 ? "input" : "output") : Title(box, title_width);
    StrAppend(&body_, "<g class=\"box\"><title>", Xml(Details(box)), "</title><rect x=\"",
              Number(at.x), "\" y=\"", Number(at.y), "\" width=\"", Number(at.width),
              "\" height=\"", Number(at.height), "\" rx=\"3\" fill=\"",
              end ? std::string_view("white") : FillOf(picture_.columns[box.column].name),
              "\" stroke=\"#555\"/>");
    double y = at.y + kTextLine + 2;
    StrAppend(&body_, "<text x=\"", Number(at.x + 6), "\" y=\"", Number(y), "\">", Escaped(title),
              "</text>");
    if (!time.empty()) {
      StrAppend(&body_, "<text x=\"", Number(at.x + at.width - 6), "\" y=\"", Number(y),
                "\" text-anchor=\"end\">", time, "</text>");
    }
    for (const std::string& line : SmallPrint(box)) {
      y += kTextLine;
      StrAppend(&body_, "<text x=\"", Number(at.x + 6), "\" y=\"", Number(y),
                "\" font-size=\"9\" fill=\"#444\">", Escaped(line), "</text>");
    }
    body_ += "</g>\n";
  }

  void AppendLegend() {
    double y = kMargin + kLegendLine * 0.5;
    const auto text = [&](double x, const std::string& line) {
      StrAppend(&body_, "<text x=\"", Number(x), "\" y=\"", Number(y + 4), "\">", line,
                "</text>\n");
    };
    text(kMargin, StrCat(Xml(title_), CountText(program_.graph->nodes.size(), "node"), ", ",
                         SecondsText(program_.seconds), " a run expected",
                         program_.optimal ? ", the least of all placements" : ""));
    y += kLegendLine;
    for (const PictureColumn& column : picture_.columns) {
      StrAppend(&body_, "<rect x=\"", Number(kMargin), "\" y=\"", Number(y - 6),
                "\" width=\"24\" height=\"12\" fill=\"", FillOf(column.name),
                "\" stroke=\"#555\"/>\n");
      text(kMargin + 32, StrCat(Xml(column.name), ": ", CountText(column.nodes, "node"), ", ",
                                SecondsText(column.seconds)));
      y += kLegendLine;
    }
    const std::pair<std::string_view, const char*> kinds[] = {
        {kConvertColour, "layout changed"}, {kCopyColour, "copied between devices"}};
    for (const auto& [colour, meaning] : kinds) {
      StrAppend(&body_, "<path d=\"M", Number(kMargin), " ", Number(y), " h24\" stroke=\"", colour,
                "\" stroke-width=\"2\"/>\n");
      text(kMargin + 32, meaning);
      y += kLegendLine;
    }
    for (const FailedDelegate& failed : program_.failed_delegates) {
      text(kMargin, StrCat("left out: ", Xml(failed.name), ": ", Xml(failed.reason, 120)));
      y += kLegendLine;
    }
  }

  const Program& program_;
  const PlacementPicture picture_;
  const std::string title_;
  std::vector<Rectangle> places_;  // of boxes
  std::vector<Rectangle> label_places_;
  std::vector<std::string> labels_;
  std::string body_;
  double bottom_ = 0;
};

std::string Arrow(std::string_view name, std::string_view colour) {
  return StrCat("<marker id=\"", name,
                "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
                "markerUnits=\"userSpaceOnUse\" "
                "orient=\"auto\"><path d=\"M0 1 L8 4 L0 7 Z\" fill=\"",
                colour, "\"/></marker>");
}

}  // namespace

std::string PlacementSvg(std::span<const TitledProgram> programs) {
  std::string body;
  double width = 0, height = 0;
  for (const TitledProgram& p : programs) {
    const Drawing drawing(*p.program, p.title);
    StrAppend(&body, "<g transform=\"translate(0 ", Number(height), ")\">\n", drawing.body(),
              "</g>\n");
    width = std::max(width, drawing.width());
    height += drawing.height();
  }
  return StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", Number(width), "\" height=\"",
      Number(height), "\" viewBox=\"0 0 ", Number(width), " ", Number(height),
      "\" font-family=\"sans-serif\" font-size=\"11\">\n<defs>", Arrow("plain", kPlainColour),
      Arrow("convert", kConvertColour), Arrow("copy", kCopyColour),
      "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", body, "</svg>\n");
}

}  // namespace msrt
