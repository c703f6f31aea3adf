#include "core/run/value.h"

namespace msrt {

Closure::~Closure() {
  std::vector<RunValue> rest = std::move(captured);
  while (!rest.empty()) {
    RunValue value = std::move(rest.back());
    rest.pop_back();
    if (value.kind != TypeKind::kFunction || value.owner.use_count() != 1) continue;
    // This is the only reference, so its captures can be moved out before it is destroyed.
    auto& inner = const_cast<Closure&>(value.closure()).captured;
    for (RunValue& v : inner) rest.push_back(std::move(v));
    inner.clear();
  }
}

}  // namespace msrt
