// Rules for ops on images and signals that changed between opsets.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// Before opset 20 the modes had the names of two dimensions.
Status LiftGridSample(NodeLift& n) {
  if (n.opset() < 20) {
    const std::string mode = n.String("mode", "bilinear");
    n.attrs().Set("mode", std::string(mode == "bilinear"  ? "linear"
                                      : mode == "bicubic" ? "cubic"
                                                          : mode));
  }
  return n.Pass();
}

// Before opset 16 regions were not shifted by half a pixel.
Status LiftRoiAlign(NodeLift& n) {
  if (n.opset() < 16)
    n.attrs().Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return n.Pass();
}

// Before opset 20 the axis was an attribute, and the first after the batch by default.
Status LiftDft(NodeLift& n) {
  if (n.opset() < 20) n.attrs().Set("axis", n.Int("axis", 1));
  return n.Pass();
}

constexpr LiftRule kVisionLifts[] = {
    {"", "GridSample", LiftGridSample},
    {"", "RoiAlign", LiftRoiAlign},
    {"", "DFT", LiftDft},
};

}  // namespace

std::span<const LiftRule> VisionLifts() { return kVisionLifts; }

}  // namespace msrt::onnx_import
