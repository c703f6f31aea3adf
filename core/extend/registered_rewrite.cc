#include "core/extend/registered_rewrite.h"

#include "core/base/copy_known_fields.h"
#include "core/delegate/boundary.h"
#include "core/delegate/host.h"
#include "core/delegate/offered_graph.h"
#include "core/extend/graph_editor.h"

namespace msrt {
namespace {

template <typename Desc>
Status CheckDesc(const Desc& desc, size_t known, std::string_view what) {
  if (desc.struct_size < known)
    return InvalidArgument(what, ".struct_size is ", desc.struct_size, "; set it with MSRT_INIT");
  if (desc.plugin_abi == MSRT_PLUGIN_ABI) return OkStatus();
  return Unsupported(what, ".plugin_abi is ", desc.plugin_abi, ", this library has ",
                     MSRT_PLUGIN_ABI, "; build the plugin with this library's msrt_plugin.h");
}

}  // namespace

Result<AddedPass> MakeAddedPass(const msrt_pass_desc& given, std::shared_ptr<const void> library,
                                const CallbackServices& services) {
  MSRT_RETURN_IF_ERROR(CheckDesc(given, offsetof(msrt_pass_desc, run) + sizeof given.run, "pass"));
  const msrt_pass_desc d = CopyKnownFields(given);
  if (d.name == nullptr || *d.name == '\0') return InvalidArgument("pass.name is empty");
  if (d.run == nullptr) return InvalidArgument("pass.run is null");
  auto owner = std::make_shared<UserOwner>(d.user, d.destroy, std::move(library));
  owner->TakeOver();
  const auto run = [user = d.user, callback = d.run, owner, services](const PassContext& context,
                                                                      Graph* graph) -> Status {
    // The view is of a copy, so that its pointers stay valid while the graph grows.
    const Graph before = *graph;
    MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<OfferedGraph> view,
                          OfferedGraph::Make(before, *context.evaluator, {}));
    const Host host(services);
    GraphEditor editor(graph, context.ops);
    const msrt_graph_editor api = editor.api();
    MSRT_RETURN_IF_ERROR(
        CallCallback([&] { return callback(user, host.api(), view->api(), &api); }));
    editor.Finish();
    return OkStatus();
  };
  return AddedPass{d.name, run};
}

Result<RegisteredImporter> RegisteredImporter::Make(const msrt_importer_desc& given,
                                                    std::shared_ptr<const void> library,
                                                    const CallbackServices& services) {
  MSRT_RETURN_IF_ERROR(
      CheckDesc(given, offsetof(msrt_importer_desc, import) + sizeof given.import, "importer"));
  const msrt_importer_desc d = CopyKnownFields(given);
  if (d.op == nullptr || *d.op == '\0') return InvalidArgument("importer.op is empty");
  if (d.import == nullptr) return InvalidArgument("importer.import is null");
  RegisteredImporter importer{d.domain == nullptr ? "" : d.domain,
                              d.op,
                              d.user,
                              d.import,
                              std::make_shared<UserOwner>(d.user, d.destroy, std::move(library)),
                              services};
  importer.owner->TakeOver();
  return importer;
}

Result<std::vector<ValueId>> RegisteredImporter::Import(const Node& node, Graph* graph,
                                                        const OpSet* ops,
                                                        const Evaluator& evaluator) const {
  // The importer sees a graph with this node alone and the same values.
  Graph around = *graph;
  around.nodes = {node};
  around.outputs.clear();
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<OfferedGraph> view,
                        OfferedGraph::Make(around, evaluator, {}));
  const Host host(services);
  GraphEditor editor(graph, ops);
  const msrt_graph_editor api = editor.api();
  std::vector<int64_t> ids(node.outputs.size(), -1);
  const auto call = [&] { return import(user, host.api(), &view->node(0), &api, ids.data()); };
  MSRT_RETURN_IF_ERROR(CallCallback(call).Within("the plugin's importer"));
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= graph->value_count()) {
      return InvalidArgument("the plugin's importer returned no value for output ", i);
    }
    outputs.push_back(ValueId(static_cast<uint32_t>(ids[i])));
  }
  return outputs;
}

}  // namespace msrt
