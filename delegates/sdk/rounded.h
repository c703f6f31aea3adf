// The ops whose results follow from their definition alone: every output element is the correctly
// rounded result for the input elements, or one of them unchanged. A kernel that computes such an
// op without other roundings claims MSRT_ARITHMETIC_ROUNDED.
#pragma once

#include "core/graph/op_view.h"

namespace msrt::sdk {

bool IsRounded(const OpView& op);

}  // namespace msrt::sdk
