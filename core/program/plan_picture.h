// What a picture of a program shows: boxes in columns, and the ways of tensors between them. Where
// they are drawn is explain_svg.cc's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/program/explain.h"

namespace msrt {

struct PictureColumn {
  std::string name;  // of a delegate, or "host"
  size_t nodes = 0;
  double seconds = 0;
};

// Steps that follow one another; the model's inputs; its outputs.
struct PictureBox {
  size_t column = 0;
  std::vector<uint32_t> steps = {};
  std::vector<BufferId> ends = {};  // inputs or outputs; such a box has no steps
  double seconds = 0;
};

// A tensor's way from one box to another; several of them share a line.
struct PictureLine {
  double bytes = 0;
  std::string moves;  // "plain to blocked-8"; empty: used as it is
  bool copied = false;
};

struct PlanPicture {
  std::vector<PictureColumn> columns;
  std::vector<PictureBox> boxes;  // the first is the inputs, the last the outputs
  std::map<std::pair<size_t, size_t>, PictureLine> lines;  // by boxes
  bool summary = false;                                    // boxes have several steps

  // Views of a tensor have no box: lines go through them. Beyond a few hundred steps neighbours
  // share boxes, at most a hundred in all.
  static PlanPicture Of(const Program& program);
};

}  // namespace msrt
