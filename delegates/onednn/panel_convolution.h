// A convolution, transposed or not, in channels-last that reads weights as the library's kernels
// pack them: in panels of output channels, each with a row for every kernel position and input
// channel, all input channels together or in blocks.
//
// The library chooses the form from the size of the output, and has no kernel for any other. For
// pieces of a node it may thus want another form than for the whole, and the weights would be
// packed a second time. This convolution takes the form that is there. It is for pieces that are
// small; a larger output is worth packing again.
#pragma once

#include <memory>

#include "delegates/onednn/library.h"
#include "delegates/onednn/panel_tiles.h"
#include "delegates/onednn/plan.h"
#include "ops/window.h"

namespace msrt::onednn {

class PanelConvolution {
 public:
  // `weights` is the form, of a node with concrete types; null if it does not consist of panels, or
  // of panels that the vectors of this processor do not divide.
  static std::shared_ptr<const PanelConvolution> Make(const OpView& op, const Windows& windows,
                                                      bool transposed, const memory::desc& weights);

  struct Tensors {
    const float *x, *weights;
    const float* bias;      // null: none
    const float* residual;  // null: none; in channels-last, may be `y`
    float* y;
  };
  Status Run(const Tensors& t, ParallelFor& parallel) const;

 private:
  // The taps of one output along an axis: `count` of them, `step` apart, from the inputs `in`,
  // `in + in_step`, ...
  struct Taps {
    int64_t first = 0, step = 1, count = 0;
    int64_t in = 0, in_step = 1;
  };
  // Columns [begin, end) of one row of results in one panel.
  struct Task;
  PanelConvolution() = default;
  Taps TapsOf(const WindowAxis& axis, int64_t output) const;
  void RunRow(const Tensors& t, const Task& task) const;

  PanelTiles tiles_;
  bool transposed_ = false;
  int64_t images_ = 0, groups_ = 1, inputs_ = 0, outputs_ = 0;  // channels of a group
  int64_t panel_ = 0, panels_ = 0;                              // width; of a group
  int64_t block_ = 0;                                           // input channels
  int64_t group_step_ = 0, panel_step_ = 0, block_step_ = 0;    // in the weights
  int64_t tap_step_[kMaxSpace] = {};                            // the same
  WindowAxis axis_[kMaxSpace];                                  // the last is the innermost
  // Outputs of the innermost axis that are `column_step_` apart read inputs `in_column_step_`
  // apart.
  int64_t column_step_ = 1, in_column_step_ = 1;
  std::vector<Taps> columns_;  // by output of the innermost axis
};

}  // namespace msrt::onednn
