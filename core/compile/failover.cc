#include "core/compile/failover.h"

#include "core/compile/graph_compiler.h"

namespace msrt {

Status RecompileWithout(const CompiledModel& model, uint32_t graph,
                        const std::shared_ptr<const EntryProgram>& failed,
                        const std::string& delegate, const Status& why) {
  if (model.options.place.strict) return why;
  const std::string reason = StrCat("failed at run time (", why.message(), ")");
  const auto placed = GraphCompiler::Replace(model, graph, failed, {delegate, "it " + reason});
  if (!placed.ok()) {
    return MakeStatus(why.code(), why.message(), "; without delegate ", delegate,
                      " the model cannot run: ", placed.status().message());
  }
  if (*placed)
    model.environment->log(LogLevel::kWarning, "delegate ", delegate, " ", reason,
                           "; the model was placed again without it");
  return OkStatus();
}

}  // namespace msrt
