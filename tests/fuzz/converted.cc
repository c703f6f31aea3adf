#include "tests/fuzz/converted.h"

#include <cstdio>
#include <cstdlib>

#include "core/model/load.h"
#include "core/model/sample_models.h"
#include "core/model/write.h"
#include "ops/validate.h"
#include "tests/fuzz/targets.h"

namespace msrt::testing {
namespace {

// A module that was accepted so far must be accepted by all following stages.
void RequireOk(const Status& status, const char* stage) {
  if (status.ok()) return;
  std::fprintf(stderr, "finding: %s: %s\n", stage, status.message().c_str());
  std::abort();
}

}  // namespace

bool FuzzConverted(Module module) {
  const Status valid = Validate(&module);
  RequireGoodError(valid);
  if (!valid.ok()) return false;
  if (!PassesAccept(&module)) return false;
  const auto file = SerializeModel(module);
  if (!file.ok()) RequireGoodError(file.status());
  if (!file.ok()) return false;
  auto loaded = Load(AlignedCopy(*file), Limits());
  RequireOk(loaded.status(), "the file that was written");
  RequireOk(Validate(&*loaded), "the module that was written");
  return true;
}

}  // namespace msrt::testing
