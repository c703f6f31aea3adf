// The plan as a picture. Time runs downwards; every delegate has a column. Names come from files, so each goes through Xml().
#include <algorithm>
#include <cstdio>
#include <map>

#include "core/base/units.h"
#include "core/base/utf8.h"
#include "core/place/explain.h"

namespace msrt {
namespace {

// Beyond this many steps, neighbours in one column share a box.
constexpr size_t kMostSingleBoxes = 200;
constexpr double kBoxWidth = 250, kColumnGap = 150, kRowGap = 10, kLeastHeight = 20, kMostExtraHeight = 60, kMargin = 20, kLegendLine = 18;
constexpr std::string_view kFills[] = {"#e8e8e8", "#bcd7f0", "#c9e7c1", "#f5d7a9", "#e3c9ee", "#f4c4c4", "#c5eae7", "#e9e4a6"};
constexpr std::string_view kConvertColour = "#d9822b", kCopyColour = "#c0392b", kPlainColour = "#9a9a9a";

std::string Xml(std::string_view text, size_t most = SIZE_MAX) {
  std::string out;
  for (char c : Printable(text, most)) {
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

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// What a box stands for: steps that follow one another in one column; the model's inputs; its outputs.
struct Box {
  size_t column = 0;
  std::vector<uint32_t> steps = {};
  double seconds = 0;
  std::string label = {};  // of boxes without steps
  double y = 0, height = 0;
};

// A tensor's way from one box to another; several of them share a line.
struct Line {
  double bytes = 0;
  std::string moves;  // "plain -> blocked-8"; empty: used as it is
  bool copied = false;
};

class Picture {
 public:
  explicit Picture(const Program& program) : program_(program) {}

  std::string Draw() {
    FindColumns();
    MakeBoxes();
    FindLines();
    PlaceBoxes();
    std::string body;
    for (const auto& [ends, line] : lines_) AppendLine(&body, boxes_[ends.first], boxes_[ends.second], line);
    for (const Box& box : boxes_) AppendBox(&body, box);
    AppendLegend(&body);
    const double width = kMargin * 2 + static_cast<double>(columns_.size()) * (kBoxWidth + kColumnGap);
    return StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", Number(width), "\" height=\"", Number(bottom_), "\" viewBox=\"0 0 ",
                  Number(width), " ", Number(bottom_), "\" font-family=\"sans-serif\" font-size=\"11\">\n",
                  "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", body, "</svg>\n");
  }

 private:
  struct Column {
    std::string name;
    size_t nodes = 0;
    double seconds = 0;
  };

  // The host's own work and the model's ends come first, then delegates in order of their first step.
  void FindColumns() {
    columns_.push_back({"host"});
    for (const Step& step : program_.steps) {
      if (step.nodes.empty()) continue;
      Column& column = columns_[ColumnOf(step)];
      column.nodes += step.nodes.size();
      column.seconds += step.seconds;
    }
  }

  size_t ColumnOf(const Step& step) {
    const auto it = std::find_if(columns_.begin(), columns_.end(), [&](const Column& c) { return c.name == DelegateName(step); });
    if (it != columns_.end()) return static_cast<size_t>(it - columns_.begin());
    columns_.push_back({std::string(DelegateName(step))});
    return columns_.size() - 1;
  }

  void MakeBoxes() {
    boxes_.push_back({.label = StrCat(program_.input_buffers.size(), " inputs")});
    box_of_step_.resize(program_.steps.size());
    const bool together = program_.steps.size() > kMostSingleBoxes;
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      if (step.nodes.empty()) continue;
      const size_t column = ColumnOf(step);
      if (!together || boxes_.size() == 1 || boxes_.back().column != column) boxes_.push_back({.column = column});
      boxes_.back().steps.push_back(s);
      boxes_.back().seconds += step.seconds;
      box_of_step_[s] = boxes_.size() - 1;
    }
    boxes_.push_back({.label = StrCat(program_.output_buffers.size(), " outputs")});
  }

  void FindLines() {
    std::vector<uint32_t> maker(program_.buffers.size(), kInputs);
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      for (BufferId b : program_.steps[s].outputs) {
        if (b != kNoBuffer) maker[b] = s;
      }
    }
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      if (program_.steps[s].nodes.empty()) continue;
      for (BufferId b : MovingBuffers(program_, program_.steps[s].inputs)) AddLine(maker, b, box_of_step_[s]);
    }
    for (BufferId b : MovingBuffers(program_, program_.output_buffers)) AddLine(maker, b, boxes_.size() - 1);
  }

  // Back over copies and layout changes to the box that made the value.
  void AddLine(const std::vector<uint32_t>& maker, BufferId buffer, size_t to) {
    const TensorState arrives = program_.buffers[buffer].state;
    BufferId b = buffer;
    while (maker[b] != kInputs && program_.steps[maker[b]].nodes.empty()) b = program_.steps[maker[b]].inputs[0];
    const TensorState leaves = program_.buffers[b].state;
    const size_t from = maker[b] == kInputs ? 0 : box_of_step_[maker[b]];
    if (from == to) return;
    Line& line = lines_[{from, to}];
    if (arrives == leaves) {
      if (line.moves.empty()) line.bytes += TypicalBytes(program_, buffer);
      return;
    }
    if (line.moves.empty()) line.bytes = 0;  // marked lines count what moves, not what is used as it is
    line.bytes += TypicalBytes(program_, buffer);
    line.copied = line.copied || arrives.device != leaves.device;
    line.moves = line.copied ? StrCat(DeviceName(program_, leaves.device), " to ", DeviceName(program_, arrives.device))
                             : StrCat(LayoutName(leaves.layout), " to ", LayoutName(arrives.layout));
  }

  void PlaceBoxes() {
    double most = 0, y = kMargin + kLegendLine * static_cast<double>(columns_.size() + program_.lost.size() + 4);
    for (const Box& box : boxes_) most = std::max(most, box.seconds);
    for (Box& box : boxes_) {
      box.y = y;
      box.height = kLeastHeight + (most > 0 ? kMostExtraHeight * box.seconds / most : 0);
      y += box.height + kRowGap;
    }
    bottom_ = y + kMargin;
  }

  double Left(const Box& box) const { return kMargin + static_cast<double>(box.column) * (kBoxWidth + kColumnGap); }
  std::string_view Fill(size_t column) const { return kFills[column % std::size(kFills)]; }

  static bool Follows(const Box& from, const Box& to) { return from.column == to.column && to.y - from.y - from.height < kRowGap + 1; }

  void AppendLine(std::string* out, const Box& from, const Box& to, const Line& line) const {
    const std::string_view colour = line.moves.empty() ? kPlainColour : line.copied ? kCopyColour : kConvertColour;
    const std::string style = StrCat("fill=\"none\" stroke=\"", colour, "\" stroke-width=\"", line.moves.empty() ? "1" : "2", "\"");
    double x1 = Left(from) + kBoxWidth, y1 = from.y + from.height / 2, x2 = Left(to) + kBoxWidth, y2 = to.y + to.height / 2;
    double bow = std::min(30 + (y2 - y1) / 12, kColumnGap * 0.8);
    double label_x = x1 + bow * 0.75 + 3, label_y = (y1 + y2) / 2;
    if (Follows(from, to)) {
      x1 = x2 = Left(from) + kBoxWidth / 2;
      y1 = from.y + from.height;
      y2 = to.y;
      bow = 0;
      label_x = x1 + 4;
      label_y = y2 - 1;
    } else if (from.column != to.column) {
      const bool right = to.column > from.column;
      x1 = Left(from) + (right ? kBoxWidth : 0);
      x2 = Left(to) + (right ? 0 : kBoxWidth);
      bow = (x2 - x1) / 2;
      label_x = (x1 + x2) / 2;
    }
    const double x2_pull = from.column == to.column ? x2 + bow : x2 - bow;
    StrAppend(out, "<path d=\"M", Number(x1), " ", Number(y1), " C", Number(x1 + bow), " ", Number(y1), " ", Number(x2_pull), " ",
              Number(y2), " ", Number(x2), " ", Number(y2), "\" ", style, "><title>", BytesText(line.bytes), "</title></path>\n");
    if (line.moves.empty()) return;
    StrAppend(out, "<text x=\"", Number(label_x), "\" y=\"", Number(label_y), "\" font-size=\"9\" fill=\"", colour, "\">",
              BytesText(line.bytes), " ", Xml(line.moves), "</text>\n");
  }

  // "layer1.conv (Conv)", or "40 nodes: Conv 20, Relu 12, Add 8".
  std::string Label(const Box& box) const {
    if (box.steps.empty()) return box.label;
    std::map<std::string, size_t> ops;
    size_t nodes = 0;
    for (uint32_t s : box.steps) {
      for (uint32_t n : program_.steps[s].nodes) ++nodes, ++ops[OpName(program_.graph->nodes[n])];
    }
    if (nodes == 1) {
      const Node& node = program_.graph->nodes[program_.steps[box.steps[0]].node];
      return StrCat(Printable(node.name, 22), " (", Printable(OpName(node), 14), ")");
    }
    std::vector<std::pair<size_t, std::string>> most;
    for (const auto& [op, count] : ops) most.emplace_back(count, op);
    std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string label = StrCat(nodes, " nodes: ");
    for (size_t i = 0; i < std::min<size_t>(most.size(), 2); ++i) StrAppend(&label, i == 0 ? "" : ", ", most[i].second, " ", most[i].first);
    return most.size() > 2 ? label + ", ..." : label;
  }

  // What the mouse shows.
  std::string Details(const Box& box) const {
    std::string text = StrCat(columns_[box.column].name, ", ", SecondsText(box.seconds));
    if (box.steps.size() != 1) return text;
    const Step& step = program_.steps[box.steps[0]];
    for (uint32_t n : step.nodes) StrAppend(&text, "; node ", n, " '", program_.graph->nodes[n].name, "'");
    if (!step.algorithm.empty()) StrAppend(&text, " by ", step.algorithm);
    for (const auto& [delegate, reason] : program_.explanations[step.node].others) StrAppend(&text, "; not ", delegate, ": ", reason);
    return text;
  }

  void AppendBox(std::string* out, const Box& box) const {
    const double x = Left(box);
    StrAppend(out, "<g><title>", Xml(Details(box)), "</title><rect x=\"", Number(x), "\" y=\"", Number(box.y), "\" width=\"",
              Number(kBoxWidth), "\" height=\"", Number(box.height), "\" rx=\"3\" fill=\"", Fill(box.column), "\" stroke=\"#555\"/>");
    StrAppend(out, "<text x=\"", Number(x + 6), "\" y=\"", Number(box.y + 14), "\">", Xml(Label(box), 42), "</text>");
    if (box.seconds > 0) {
      StrAppend(out, "<text x=\"", Number(x + kBoxWidth - 6), "\" y=\"", Number(box.y + box.height - 6),
                "\" font-size=\"9\" text-anchor=\"end\">", SecondsText(box.seconds), "</text>");
    }
    *out += "</g>\n";
  }

  void AppendLegend(std::string* out) const {
    double y = kMargin + kLegendLine * 0.5;
    const auto text = [&](double x, const std::string& line) {
      StrAppend(out, "<text x=\"", Number(x), "\" y=\"", Number(y + 4), "\">", line, "</text>\n");
    };
    text(kMargin, StrCat(Xml(program_.graph->name, 60), ": ", program_.graph->nodes.size(), " nodes, ", SecondsText(program_.seconds),
                         " a run expected", program_.optimal ? ", the least of all placements" : ""));
    y += kLegendLine;
    for (size_t c = 0; c < columns_.size(); ++c, y += kLegendLine) {
      StrAppend(out, "<rect x=\"", Number(kMargin), "\" y=\"", Number(y - 6), "\" width=\"24\" height=\"12\" fill=\"", Fill(c),
                "\" stroke=\"#555\"/>\n");
      text(kMargin + 32, StrCat(Xml(columns_[c].name), ": ", columns_[c].nodes, " nodes, ", SecondsText(columns_[c].seconds)));
    }
    const std::pair<std::string_view, const char*> kinds[] = {{kConvertColour, "layout changed"}, {kCopyColour, "copied between devices"}};
    for (const auto& [colour, meaning] : kinds) {
      StrAppend(out, "<path d=\"M", Number(kMargin), " ", Number(y), " h24\" stroke=\"", colour, "\" stroke-width=\"2\"/>\n");
      text(kMargin + 32, meaning);
      y += kLegendLine;
    }
    for (const LostDelegate& lost : program_.lost) {
      text(kMargin, StrCat("left out: ", Xml(lost.name), ": ", Xml(lost.reason, 120)));
      y += kLegendLine;
    }
  }

  static constexpr uint32_t kInputs = UINT32_MAX;
  const Program& program_;
  std::vector<Column> columns_;
  std::vector<Box> boxes_;                           // the first is the inputs, the last the outputs
  std::vector<size_t> box_of_step_;                  // of steps that run nodes
  std::map<std::pair<size_t, size_t>, Line> lines_;  // by boxes
  double bottom_ = 0;
};

}  // namespace

std::string PlanSvg(const Plan& plan) { return Picture(*plan.program).Draw(); }

}  // namespace msrt
