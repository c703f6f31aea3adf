// Shared by the rules for ONNX Runtime's attention ops, plain and quantised.
#pragma once

#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {

// Query, key and value are [batch, rows, heads * width]; the rest may be absent.
struct AttentionParts {
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;
  ValueId past_key = kNoValue, past_value = kNoValue;  // [batch, heads, rows, width]
  ValueId key_mask = kNoValue;                         // which keys count, in one of several forms
  ValueId bias = kNoValue;                             // added to the scores
};

// Splits a projection into query, key and value along the last axis; in equal parts if `sizes` is
// empty.
Status SplitProjection(NodeLift& n, ValueId projection, const std::vector<int64_t>& sizes,
                       AttentionParts* parts);
// Sets the past from a tensor [2, batch, heads, rows, width], which may be absent.
Status SetJoinedPast(NodeLift& n, ValueId past, AttentionParts* parts);
// Sets output 0, and from `present_output` on the caches, if they are used.
Status LiftAttentionOfParts(NodeLift& n, const AttentionParts& parts, size_t present_output);

// Returns dim `axis` of a value as a tensor of shape [1].
Result<ValueId> DimOf(NodeLift& n, ValueId value, int64_t axis);
// Returns 0 .. count - 1, where count is a tensor of shape [1].
Result<ValueId> CountTo(NodeLift& n, ValueId count);
// Convert [batch, heads, rows, width] to [batch, rows, heads * width], and back.
Result<ValueId> Packed(NodeLift& n, ValueId value);
Result<ValueId> Unpacked(NodeLift& n, ValueId value, int64_t heads);

}  // namespace msrt::onnx_import
