#include "core/program/placement_picture.h"

#include <algorithm>

namespace msrt {
namespace {

constexpr size_t kMaxSingleBoxes = 200, kMaxSharedBoxes = 100;
constexpr uint32_t kInputs = UINT32_MAX;

// Whether a step only copies, converts or views a tensor.
bool IsPassedThrough(const Step& step) {
  return step.nodes.empty() || step.kind == StepKind::kView;
}

class PictureMaker {
 public:
  explicit PictureMaker(const Program& program)
      : program_(program), box_of_step_(program.steps.size()) {}

  PlacementPicture Make() {
    MakeBoxes();
    if (out_.summary) ShareBoxes();
    NumberBoxes();
    FindLines();
    return std::move(out_);
  }

 private:
  size_t ColumnOf(const Step& step) {
    auto& columns = out_.columns;
    const auto it = std::find_if(columns.begin(), columns.end(), [&](const PictureColumn& c) {
      return c.name == DelegateName(step);
    });
    if (it != columns.end()) return static_cast<size_t>(it - columns.begin());
    columns.push_back({std::string(DelegateName(step))});
    return columns.size() - 1;
  }

  void MakeBoxes() {
    out_.boxes.push_back({.ends = program_.input_buffers});
    const auto boxed = [](const Step& step) { return !IsPassedThrough(step); };
    out_.summary = static_cast<size_t>(std::count_if(program_.steps.begin(), program_.steps.end(),
                                                     boxed)) > kMaxSingleBoxes;
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      if (!boxed(step)) continue;
      const size_t column = ColumnOf(step);
      out_.columns[column].nodes += step.nodes.size();
      out_.columns[column].seconds += step.seconds;
      const bool next =
          !out_.summary || out_.boxes.size() == 1 || out_.boxes.back().column != column;
      if (next) out_.boxes.push_back({.column = column});
      out_.boxes.back().steps.push_back(s);
      out_.boxes.back().seconds += step.seconds;
    }
    out_.boxes.push_back({.ends = program_.output_buffers});
    if (out_.columns.empty()) out_.columns.push_back({"host"});
  }

  // Boxes that take little time join the one before them, until there are few enough.
  void ShareBoxes() {
    double total = 0;
    for (const PictureBox& box : out_.boxes) total += box.seconds;
    for (double least = total / 1e6; out_.boxes.size() > kMaxSharedBoxes + 2; least *= 2) {
      std::vector<PictureBox> shared;
      for (PictureBox& box : out_.boxes) {
        if (shared.size() > 1 && box.ends.empty() &&
            std::min(box.seconds, shared.back().seconds) <= least)
          Join(box, &shared.back());
        else shared.push_back(std::move(box));
      }
      out_.boxes = std::move(shared);
    }
  }

  static void Join(const PictureBox& box, PictureBox* into) {
    if (box.seconds > into->seconds) into->column = box.column;
    into->steps.insert(into->steps.end(), box.steps.begin(), box.steps.end());
    into->seconds += box.seconds;
  }

  void NumberBoxes() {
    for (size_t b = 0; b < out_.boxes.size(); ++b) {
      for (uint32_t s : out_.boxes[b].steps) box_of_step_[s] = b;
    }
  }

  void FindLines() {
    maker_.assign(program_.buffers.size(), kInputs);
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      for (BufferId b : program_.steps[s].outputs) {
        if (b != kNoBuffer) maker_[b] = s;
      }
    }
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      if (IsPassedThrough(program_.steps[s])) continue;
      for (BufferId b : MovingBuffers(program_, program_.steps[s].inputs))
        AddLine(b, box_of_step_[s]);
    }
    for (BufferId b : MovingBuffers(program_, program_.output_buffers))
      AddLine(b, out_.boxes.size() - 1);
  }

  // Adds a line from the box that made the value, found back through copies, layout changes and
  // views.
  void AddLine(BufferId buffer, size_t to) {
    const TensorState arrives = program_.buffers[buffer].state;
    BufferId b = buffer;
    while (maker_[b] != kInputs && IsPassedThrough(program_.steps[maker_[b]]))
      b = program_.steps[maker_[b]].inputs[0];
    if (maker_[b] == kInputs &&
        program_.graph->value(program_.buffers[b].value).constant != nullptr)
      return;  // a view of a constant
    const TensorState leaves = program_.buffers[b].state;
    const size_t from = maker_[b] == kInputs ? 0 : box_of_step_[maker_[b]];
    if (from == to) return;
    PictureLine& line = out_.lines[{from, to}];
    if (arrives == leaves) {
      if (line.moves.empty()) line.bytes += TypicalBytes(program_, buffer);
      return;
    }
    if (line.moves.empty()) line.bytes = 0;  // marked lines count only bytes that move
    line.bytes += TypicalBytes(program_, buffer);
    line.copied = line.copied || arrives.device != leaves.device;
    line.moves = line.copied
                     ? StrCat(DeviceName(program_, leaves.device), " to ",
                              DeviceName(program_, arrives.device))
                     : StrCat(LayoutName(leaves.layout), " to ", LayoutName(arrives.layout));
  }

  const Program& program_;
  PlacementPicture out_;
  std::vector<size_t> box_of_step_;  // for steps that have a box
  std::vector<uint32_t> maker_;      // by buffer: the step that writes it
};

}  // namespace

PlacementPicture PlacementPicture::Of(const Program& program) {
  return PictureMaker(program).Make();
}

}  // namespace msrt
