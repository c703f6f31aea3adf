// Compilation calls the stages in order: bytes -> Module -> passes -> programs. Binding and running
// need input shapes and belong to core/run.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

Result<std::shared_ptr<const CompiledModel>> CompileFile(
    std::shared_ptr<const Environment> environment, const std::string& path,
    const CompileOptions& options);
// `mapped`: the bytes, if they are a mapping of the environment's io; empty otherwise.
Result<std::shared_ptr<const CompiledModel>> CompileBytes(
    std::shared_ptr<const Environment> environment, Bytes bytes, const CompileOptions& options,
    std::span<const std::byte> mapped = {});
// For graphs that were built, not loaded.
Result<std::shared_ptr<const CompiledModel>> CompileModule(
    std::shared_ptr<const Environment> environment, Module module, const CompileOptions& options);

}  // namespace msrt
