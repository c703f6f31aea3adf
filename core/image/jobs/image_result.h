// Pixels of a result from boxes of an output: float bands, or the class with the largest value.
#pragma once

#include <span>
#include <vector>

#include "core/graph/tensor.h"
#include "core/image/files/image_info.h"

namespace msrt {

enum class ClassMap : uint8_t {
  kNone,  // all channels of the output as f32
  kAuto,  // the class: u8 where it suffices, else u16
  k8,
  k16,
};

// Describes the image of an output of the given type. The largest number of a class map stands for
// pixels without content; float bands have NaN there. An error if the output has no classes.
Result<ImageInfo> ResultInfo(const Type& output, ClassMap classes);

// The value of pixels without content.
double FillValue(const ImageInfo& result);

// `count` colours that are easy to tell apart; the same for everybody.
std::vector<PaletteEntry> ClassPalette(size_t count);

// Converts a box of an output, [1, channels, rows, columns] or [1, rows, columns], to pixels of the
// result. Where `content` (rows x columns, or empty) is 0, the result is `fill`. Ties of classes go
// to the lower number. An error for a class that the element type cannot hold.
Status ConvertResult(const TensorView& box, const ImageInfo& result,
                     std::span<const uint8_t> content, double fill, std::vector<std::byte>* pixels);

}  // namespace msrt
