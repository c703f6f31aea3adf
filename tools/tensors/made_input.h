// Inputs to run a model with when the user provides none: seeded random numbers in the range that
// the model expects.
#pragma once

#include <random>
#include <vector>

#include "core/graph/graph.h"
#include "tools/tensors/sizes.h"

namespace msrt {

// The meaning of an input, guessed from its name, its type and how the graph uses it.
enum class InputRole {
  kData,       // floats, pixels
  kTokens,     // indices into a table
  kMask,       // which positions count: 1 keeps a position (Hugging Face) or hides it (PyTorch)
  kLengths,    // how much of each sequence of another input counts
  kPositions,  // 0, 1, 2, ...
  kSegments,   // 0 for the first part of a sequence, 1 for the second
};
InputRole RoleOf(const Value& input);

// Masks along their last dim. Each of the first two keeps some positions and hides others, whether
// 0 or 1 hides.
enum class MaskPattern { kOnesFirst, kZerosFirst, kOnes, kZeros };
inline constexpr MaskPattern kMaskPatterns[] = {MaskPattern::kOnesFirst, MaskPattern::kZerosFirst,
                                                MaskPattern::kOnes, MaskPattern::kZeros};

struct InputHints {
  MaskPattern masks = MaskPattern::kOnesFirst;
  int64_t length = 0;  // of the sequences that kLengths inputs describe; 0: not known
};
// Returns the hint for lengths: the extent of the first input of rank 2 or more along its sequence,
// which is the first open dim after the batch, else the second dim. `sizes` are the dims that the
// graph's inputs will have.
int64_t SequenceLength(const Graph& graph, const std::vector<Dims>& sizes);

// Returns numbers for the input's role: normal floats, bytes for images, tokens below the size of
// every table that they index.
Result<ConstTensor> RandomInput(const Graph& graph, ValueId input, const Dims& dims,
                                std::mt19937_64& random, const InputHints& hints = {});

}  // namespace msrt
