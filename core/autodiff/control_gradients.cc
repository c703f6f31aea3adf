#include "core/autodiff/control_gradients.h"

#include "ops/control.h"

namespace msrt {

Result<std::vector<ValueId>> AddControlGradients(Module*, uint32_t, const Node&,
                                                 const std::vector<ValueId>&,
                                                 const std::vector<bool>&, const OpSet*) {
  return Unsupported("gradients through control flow are not there yet");
}

}  // namespace msrt
