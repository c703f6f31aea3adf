#include "tools/msconvert/environment.h"

#include "delegates/builtin.h"

namespace msrt {

std::shared_ptr<const Environment> LocalEnvironment(const Environment& plugins, int threads) {
  auto environment = std::make_shared<Environment>(plugins);
  environment->parallel = MakeDefaultParallel(threads > 0 ? threads : AvailableCores());
  environment->evaluator = &BuiltinEvaluator();
  environment->delegates = BuiltinDelegates();
  environment->delegates.insert(environment->delegates.end(), plugins.delegates.begin(),
                                plugins.delegates.end());
  return environment;
}

}  // namespace msrt
