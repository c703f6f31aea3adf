// Packed forms of the inputs of a kernel, as msrt_run_args.packed_input returns them.
#pragma once

#include <memory>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/base/allocator.h"
#include "core/base/parallel_for.h"

namespace msrt {

// Lives as long as a kernel uses the forms that it got: those of calls on the host until the call
// returns, those of enqueued work until that is done.
class PackedInputs {
 public:
  virtual ~PackedInputs() = default;
  // Sets the fields of `args` that refer to this object.
  void AddTo(msrt_run_args* args);

 protected:
  using Pack = FunctionRef<Status(std::byte*)>;
  // Returns a form of `bytes` bytes that `pack` has written.
  virtual Result<const void*> Get(size_t input, const msrt_packing& packing, size_t bytes,
                                  Pack pack) = 0;
};

}  // namespace msrt
