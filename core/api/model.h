// A model of the C API: a compiled model, immutable and shared by its sessions.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/api/handles.h"
#include "core/api/json_writer.h"
#include "core/compile/compile.h"

namespace msrt {

struct ModelObject {
  std::shared_ptr<const CompiledModel> compiled;
  std::mutex mutex;
  std::string info;  // made on request; guarded by mutex, never changed afterwards
};

// Checks the config of a load and converts it to core's options.
Result<CompileOptions> CompileOptionsOf(const msrt_model_config* config,
                                        const Environment& environment);
// Checks that options.typical names inputs of the model, which are known only after loading.
Status CheckTypicalNames(const CompileOptions& options, const CompiledModel& model);

// {"name": "x", "type": "f32", "dims": ["n", 3, null]}: symbols by name, unknown dims as null, an
// unknown rank as null dims. A state also has a "role".
void WriteTensorType(JsonWriter* json, std::string_view name, const Type& type,
                     std::span<const std::string> symbols, std::string_view role = {});
std::string ModelInfo(const CompiledModel& model);

}  // namespace msrt
