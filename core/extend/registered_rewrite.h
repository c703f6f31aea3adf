// User-defined passes and importers: checked copies of msrt_pass_desc and msrt_importer_desc.
#pragma once

#include <memory>
#include <string>

#include "core/abi/msrt_plugin.h"
#include "core/delegate/callback_services.h"
#include "core/extend/user_owner.h"
#include "core/passes/pass.h"

namespace msrt {

// The pass owns `desc.user` and keeps `library` loaded.
Result<AddedPass> MakeAddedPass(const msrt_pass_desc& desc, std::shared_ptr<const void> library,
                                const CallbackServices& services);

struct RegisteredImporter {
  std::string domain, op;
  void* user = nullptr;
  decltype(msrt_importer_desc::import) import = nullptr;
  std::shared_ptr<UserOwner> owner;
  CallbackServices services = {};

  static Result<RegisteredImporter> Make(const msrt_importer_desc& desc,
                                         std::shared_ptr<const void> library,
                                         const CallbackServices& services);
  // Appends the imported form of the node to `graph` and returns the values of its outputs.
  Result<std::vector<ValueId>> Import(const Node& node, Graph* graph, const OpSet* ops,
                                      const Evaluator& evaluator) const;
};

}  // namespace msrt
