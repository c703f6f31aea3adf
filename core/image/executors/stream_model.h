// Compiles a model for one image: its image input gets the size of the image before the passes run,
// so that shape arithmetic folds, and accuracy is exact, so that pieces equal the whole.
#pragma once

#include "core/compile/compile.h"

namespace msrt {

struct ImageSize {
  int64_t channels = 0, rows = 0, columns = 0;
};

// Sets the dims of the module's only input to [1, channels, rows, columns]. The model's own rows
// and columns may be open or fixed. The error says why the module does not take such an image.
Status SetImageSize(const ImageSize& size, Module* module);

// Both steps. `options.place.exact` is set; nothing is prepared for a run of the whole.
Result<std::shared_ptr<const CompiledModel>> CompileForImage(
    std::shared_ptr<const Environment> environment, Module module, const ImageSize& size,
    CompileOptions options);

// Checks that every output of the compiled model follows the image: [1, channels, rows, columns] or
// [1, rows, columns], none of them empty.
Status CheckOutputsFollowImage(const Graph& graph, std::span<const Type> outputs);

}  // namespace msrt
