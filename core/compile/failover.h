// Failover: when a delegate fails at run time, the graph is placed again without it.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

// Called when a run of `failed` got an error from `delegate`. Places the graph again without it,
// unless another session has already done so. If that is impossible (the model is strict, or no
// other delegate can run a node), the error is `why` with the obstacle. Sessions that fail at the
// same time each place the graph, and the first to finish counts: a session that waited for another
// could wait for ever, since placing calls delegates and the application, which may wait in turn.
Status RecompileWithout(const CompiledModel& model, uint32_t graph,
                        const std::shared_ptr<const EntryProgram>& failed,
                        const std::string& delegate, const Status& why);

}  // namespace msrt
