#include "delegates/builtin.h"

#include "delegates/reference/reference.h"
#include "delegates/sdk/export.h"
#if defined(MSRT_HAVE_ONEDNN)
#include "delegates/onednn/onednn.h"
#endif

namespace msrt {
namespace {

std::shared_ptr<const Delegate> Registered(std::unique_ptr<const sdk::Delegate> delegate) {
  const sdk::ExportedDelegate exported = sdk::Export(std::move(delegate));
  std::unique_ptr<void, void (*)(void*)> owner(exported.self, exported.api.destroy);  // until somebody else is
  auto registered = Delegate::Make(exported.api, exported.self, nullptr);
  MSRT_CHECK(registered.ok());
  (*registered)->TakeOver();
  owner.release();
  return *std::move(registered);
}

}  // namespace

std::vector<std::shared_ptr<const Delegate>> BuiltinDelegates() {
  std::vector<std::shared_ptr<const Delegate>> delegates;
#if defined(MSRT_HAVE_ONEDNN)
  delegates.push_back(Registered(MakeOneDnnDelegate(ReferenceEvaluator())));
#endif
  delegates.push_back(Registered(MakeReferenceDelegate()));
  return delegates;
}

const Evaluator& BuiltinEvaluator() { return ReferenceEvaluator(); }

}  // namespace msrt
