// A model of the C API: compiled, immutable, shared.
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
  std::string info;  // made when somebody asks; guarded by mutex, never changed afterwards
};

// The config of a load, checked and as core understands it.
Result<CompileOptions> CompileOptionsOf(const msrt_model_config* config,
                                        const Environment& environment);
// What can be checked of the options only once the model's inputs are known.
Status CheckTypicalNames(const CompileOptions& options, const CompiledModel& model);

// {"name": "x", "type": "f32", "dims": ["n", 3, null]}: symbols by name, unknown dims as null, an
// unknown rank as null dims.
void WriteTensorType(JsonWriter* json, std::string_view name, const Type& type,
                     std::span<const std::string> symbols);
std::string ModelInfo(const CompiledModel& model);

}  // namespace msrt
