// An ONNX file through all of msconvert.
#include "delegates/builtin.h"
#include "tests/fuzz/converted.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/onnx_seeds.h"
#include "tools/msconvert/onnx/importer.h"

namespace msrt::testing {
namespace {

constexpr size_t kMaxNodes = 500, kMaxCopiedBytes = 1 << 20;  // small models

bool FuzzOnnx(std::span<const std::byte> bytes) {
  onnx_import::ImportOptions options;
  options.evaluator = &BuiltinEvaluator();
  options.max_nodes = kMaxNodes;
  options.max_copied_bytes = kMaxCopiedBytes;
  auto imported = onnx_import::ImportBytes(bytes, "", options, DefaultIo());
  if (!imported.ok()) RequireGoodError(imported.status());
  if (!imported.ok() || !imported->problems.empty()) return false;
  return FuzzConverted(std::move(imported->module));
}

}  // namespace

const FuzzSubject kFuzzSubject = {FuzzOnnx, OnnxSeeds, MutateOnnx, nullptr};

}  // namespace msrt::testing
