// Groups reductions over ranks: a gradient is small and its message costs latency, so gradients
// that become ready one after the other are reduced as one message, a bucket. The bits do not
// change: an element is added in the same tree wherever it is in a message.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

// Joins msrt.AllReduce nodes of one tensor into nodes of several, in the order of the graph, until
// a bucket has `bucket_bytes`. It runs where its last gradient is ready, in the background
// (attribute of msrt.AllReduce), so that other collectives do not wait for it. Reductions whose
// result is used before the next one begins (statistics, losses) stay alone. What only rounds or
// scales a result (a Cast after the reduction) moves to its first use, so that the host does not
// wait for it. Returns the number of buckets of several.
int GroupReductions(int64_t bucket_bytes, Graph* graph);

}  // namespace msrt
