#include "delegates/builtin.h"

#include "delegates/reference/reference.h"
#if defined(MSRT_HAVE_ONEDNN)
#include "delegates/onednn/onednn.h"
#endif

namespace msrt {

std::vector<std::shared_ptr<const Delegate>> BuiltinDelegates() {
  std::vector<std::shared_ptr<const Delegate>> delegates;
#if defined(MSRT_HAVE_ONEDNN)
  delegates.push_back(MakeOneDnnDelegate(ReferenceEvaluator()));
#endif
  delegates.push_back(MakeReferenceDelegate());
  return delegates;
}

const Evaluator& BuiltinEvaluator() { return ReferenceEvaluator(); }

}  // namespace msrt
