// Inputs to run a model with when none are given: seeded random numbers that the model can work
// with.
#pragma once

#include <random>
#include <vector>

#include "core/graph/graph.h"
#include "tools/tensors/sizes.h"

namespace msrt {

// What an input means, by its name, its type and how the graph uses it.
enum class InputRole {
  kData,       // floats, pixels
  kTokens,     // numbers that look up a table
  kMask,       // which positions count: 1 keeps one (Hugging Face), or hides it (PyTorch)
  kLengths,    // how much of each sequence of another input counts
  kPositions,  // 0, 1, 2, ...
  kSegments,   // 0 for the first part of a sequence, 1 for the second
};
InputRole RoleOf(const Value& input);

// Masks along their last dim. Each of the first two leaves some positions and hides others,
// whichever of the two numbers hides.
enum class MaskPattern { kOnesFirst, kZerosFirst, kOnes, kZeros };
inline constexpr MaskPattern kMaskPatterns[] = {MaskPattern::kOnesFirst, MaskPattern::kZerosFirst,
                                                MaskPattern::kOnes, MaskPattern::kZeros};

struct InputHints {
  MaskPattern masks = MaskPattern::kOnesFirst;
  int64_t length = 0;  // of the sequences that lengths are about; 0: not known
};
// The hint for lengths: the extent of the first input of rank 2 or more along its sequence, which
// is the first open dim after the batch, else the second dim. `sizes` are those that the graph's
// inputs will have.
int64_t SequenceLength(const Graph& graph, const std::vector<Dims>& sizes);

// Numbers for the input's role: normal floats, bytes for images, tokens below the size of every
// table that they look up.
Result<ConstTensor> RandomInput(const Graph& graph, ValueId input, const Dims& dims,
                                std::mt19937_64& random, const InputHints& hints = {});

}  // namespace msrt
