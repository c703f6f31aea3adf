#include "tests/conformance/mindir/round_trip.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "mindir.pb.h"
#include "ops/validate.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/mindir/export.h"
#include "tools/msconvert/mindir/import.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/npy.h"

namespace msrt::testing {
namespace {

// Keeps the written file in memory.
class MemoryFile : public Io {
 public:
  Result<Bytes> MapFile(const std::string& path) override {
    return NotFound("'", path, "' is not to be read");
  }
  Result<Bytes> ReadFile(const std::string& path, Allocator*) override { return MapFile(path); }
  Status WriteFile(const std::string&,
                   std::span<const std::span<const std::byte>> pieces) override {
    for (const auto& piece : pieces)
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return OkStatus();
  }
  std::string text;
};

void Strip(mindir::GraphProto* graph) {
  for (auto& node : *graph->mutable_node()) node.clear_origin();
}

Result<std::unique_ptr<Session>> Started(const Module& module, bool passes) {
  CompileOptions options;
  options.passes.validate = true;
  if (!passes) options.passes.disabled = {"all"};
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(TestEnvironment(), module, options));
  return Session::Create(std::move(model), 0, {});
}

bool SameBits(const ConstTensor& a, const ConstTensor& b) {
  return a.dtype == b.dtype && a.dims == b.dims &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

}  // namespace

Status OptimizeAsWritten(Module* module) {
  const PassContext context{.evaluator = &BuiltinEvaluator()};
  return RunPasses(
             context,
             {.disabled = {"widen_half", "recognize_quantized", "widen_weights"}, .validate = true},
             module)
      .status();
}

Result<Module> ThroughMindIr(const Module& module, Notes notes) {
  MemoryFile file;
  MSRT_ASSIGN_OR_RETURN(const auto refusals,
                        mindir_export::WriteFile(module, "kept.mindir", &file));
  if (!refusals.empty()) return Unsupported(refusals[0].op, " is refused: ", refusals[0].reason);
  if (notes == Notes::kStripped) {
    mindir::ModelProto model;
    if (!model.ParseFromString(file.text)) return InvalidModel("what was written cannot be read");
    Strip(model.mutable_graph());
    for (auto& function : *model.mutable_functions()) Strip(&function);
    file.text = model.SerializeAsString();
  }
  MSRT_ASSIGN_OR_RETURN(
      mindir_import::ImportResult back,
      mindir_import::ImportBytes(std::as_bytes(std::span(file.text)), "", {}, DefaultIo()));
  if (!back.problems.empty()) return Unsupported(back.problems.Text());
  MSRT_RETURN_IF_ERROR(Validate(&back.module));
  return std::move(back.module);
}

Result<std::string> DifferenceOf(const Module& a, const Module& b,
                                 const std::vector<ConstTensor>& inputs, bool passes, int runs) {
  MSRT_ASSIGN_OR_RETURN(const auto first, Started(a, passes));
  MSRT_ASSIGN_OR_RETURN(const auto second, Started(b, passes));
  for (int run = 0; run < runs; ++run) {
    MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> want, RunSession(*first, inputs));
    MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> got, RunSession(*second, inputs));
    if (want.size() != got.size()) return StrCat(got.size(), " outputs instead of ", want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      if (!SameBits(want[i], got[i])) return StrCat("run ", run, ", output ", i, ": other bits");
      const std::string &name = a.main().value(a.main().outputs[i]).name,
                        &other = b.main().value(b.main().outputs[i]).name;
      if (name != other)
        return StrCat("output ", i, " is called '", other, "' instead of '", name, "'");
    }
  }
  return std::string();
}

Result<double> DeviationOf(const Module& a, const Module& b,
                           const std::vector<ConstTensor>& inputs) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> want, RunModule(a, inputs, {"reference"}));
  MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> got, RunModule(b, inputs, {"reference"}));
  if (want.size() != got.size())
    return InvalidModel(got.size(), " outputs instead of ", want.size());
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i].dtype != want[i].dtype)
      return InvalidModel("output ", i, " has element type ", got[i].dtype);
    MSRT_ASSIGN_OR_RETURN(const Deviation deviation, Compare(ViewOf(got[i]), ViewOf(want[i])));
    largest = std::max(largest, deviation.relative);
  }
  return largest;
}

Result<std::vector<ConstTensor>> ReadInputs(const std::string& folder) {
  std::vector<ConstTensor> inputs;
  for (;;) {
    const auto path = std::filesystem::path(folder) / StrCat("input_", inputs.size(), ".npy");
    if (!std::filesystem::exists(path)) return inputs;
    MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, ReadNpy(path.string()));
    inputs.push_back(std::move(tensor));
  }
}

}  // namespace msrt::testing
