// The contents of a picture of a program: boxes in columns, and lines for the tensors between them.
// explain_svg.cc decides where they are drawn.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/program/explain.h"

namespace msrt {

struct PictureColumn {
  std::string name;  // name of a delegate, or "host"
  size_t nodes = 0;
  double seconds = 0;
};

// Consecutive steps, the model's inputs, or its outputs.
struct PictureBox {
  size_t column = 0;
  std::vector<uint32_t> steps = {};
  std::vector<BufferId> ends = {};  // inputs or outputs; such a box has no steps
  double seconds = 0;
};

// The tensors that go from one box to another.
struct PictureLine {
  double bytes = 0;
  std::string moves;  // "plain to blocked-8"; empty: used as it is
  bool copied = false;
};

struct PlacementPicture {
  std::vector<PictureColumn> columns;
  std::vector<PictureBox> boxes;  // the first is the inputs, the last the outputs
  std::map<std::pair<size_t, size_t>, PictureLine> lines;  // by box that makes and box that reads
  bool summary = false;                                    // boxes have several steps

  // Views of a tensor have no box: lines go through them. Beyond a few hundred steps neighbours
  // share boxes, at most a hundred in all.
  static PlacementPicture Of(const Program& program);
};

}  // namespace msrt
