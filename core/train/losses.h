// Losses as nodes of a graph, built of ops that have gradients. Definitions are those of PyTorch.
#pragma once

#include <optional>

#include "core/graph/graph.h"

namespace msrt {

class GraphBuilder;  // ops/builder.h

enum class LossKind : uint8_t {
  // Prediction: scores [N, C, ...]. Target: classes [N, ...] of type i32 or i64, or probabilities
  // with the shape of the scores.
  kCrossEntropy,
  // Prediction and target of one shape.
  kMeanSquares,
  kMeanAbsolute,
  kHuber,
  kBinaryCrossEntropy,            // prediction: probabilities
  kBinaryCrossEntropyWithLogits,  // prediction: their logarithms of odds
  kKullbackLeibler,  // prediction: log-probabilities; target: probabilities; a mean is per sample
  // Prediction: probabilities [N, C, ...]; target: the same shape. One loss for each sample and
  // class, over all other dims.
  kDice,
  // Prediction: log-probabilities [T, N, C] with known T. Target: classes [N, S] with known S, in
  // which `input_lengths` and `target_lengths`, i64 [N], count at least 1. One loss for each
  // sample; a mean divides each by the length of its target first.
  kCtc,
};

enum class LossReduction : uint8_t { kMean, kSum, kNone };

struct LossSpec {
  LossKind kind = LossKind::kCrossEntropy;
  LossReduction reduction = LossReduction::kMean;
  // Cross-entropy: the part of each target that is spread evenly over the classes.
  double label_smoothing = 0;
  // Cross-entropy: samples of this class do not count.
  std::optional<int64_t> ignore_index = std::nullopt;
  ValueId class_weights = kNoValue;  // cross-entropy: [C], or none
  double delta = 1;                  // Huber: where the parabola becomes a line
  double smooth = 1;                 // Dice: added to both sides of the quotient
  int64_t blank = 0;                 // CTC
  ValueId input_lengths = kNoValue, target_lengths = kNoValue;  // CTC
};

// Appends the nodes of a loss to the graph of the builder and returns its value: a scalar, or the
// single losses if they are not reduced. The prediction must be of a float type and have a known
// rank. Errors name the loss.
Result<ValueId> AddLoss(GraphBuilder& builder, const LossSpec& spec, ValueId prediction,
                        ValueId target);

}  // namespace msrt
