// Checks that ONNX models, through .msrt and MindIR back to .msrt, return the same bits:
//   mindir_round_trip FOLDER...
// A folder has model.onnx, run_<k>/input_<n>.npy, and `shapes` with the dims of inputs: lines of a
// name and 1x3x224x224.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tests/conformance/mindir/round_trip.h"
#include "tools/msconvert/onnx/importer.h"
#include "tools/tensors/made_input.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-5;  // of the range of an output, if an op is replaced by several

Result<Module> Read(const fs::path& folder) {
  onnx_import::ImportOptions options;
  options.evaluator = &BuiltinEvaluator();
  std::ifstream shapes(folder / "shapes");
  for (std::string name, dims; shapes >> name >> dims;) {
    MSRT_ASSIGN_OR_RETURN(options.shapes[name], ParseShape(dims));
  }
  MSRT_ASSIGN_OR_RETURN(
      onnx_import::ImportResult imported,
      onnx_import::ImportFile((folder / "model.onnx").string(), options, DefaultIo()));
  if (!imported.problems.empty()) return Unsupported(imported.problems.Text());
  MSRT_RETURN_IF_ERROR(Validate(&imported.module));
  return std::move(imported.module);
}

Result<std::string> DifferenceIn(const fs::path& folder) {
  MSRT_ASSIGN_OR_RETURN(const Module imported, Read(folder));
  int runs = 0;
  for (const bool passes : {true, false}) {
    Module module = imported;
    if (passes) MSRT_RETURN_IF_ERROR(OptimizeAsWritten(&module));
    auto through = ThroughMindIr(module, Notes::kKept);
    // Shapes that only passes find are not known then.
    if (!passes && !through.ok() &&
        through.status().message().find(" is refused: ") != std::string::npos)
      continue;
    MSRT_ASSIGN_OR_RETURN(const Module back, std::move(through));
    MSRT_ASSIGN_OR_RETURN(const Module primitives, ThroughMindIr(module, Notes::kStripped));
    for (const auto& run : fs::directory_iterator(folder)) {
      if (!run.is_directory()) continue;
      MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> inputs, ReadInputs(run.path().string()));
      MSRT_ASSIGN_OR_RETURN(const double deviation, DeviationOf(module, primitives, inputs));
      if (!(deviation <= kTolerance))
        return StrCat("its primitives alone differ by ", deviation, " of the range");
      MSRT_ASSIGN_OR_RETURN(const std::string difference,
                            DifferenceOf(module, back, inputs, passes));
      if (!difference.empty())
        return StrCat(run.path().filename().string(),
                      passes ? ", with passes: " : ", as imported: ", difference);
      ++runs;
    }
  }
  return runs > 0 ? std::string() : std::string("there is no run");
}

int Main(int count, char** folders) {
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    const std::string name = fs::path(folders[i]).filename().string();
    const auto difference = DifferenceIn(folders[i]);
    if (difference.ok() && difference->empty()) continue;
    ++failed;
    std::cout << "FAIL " << name << ": "
              << (difference.ok() ? *difference : difference.status().message()) << "\n";
  }
  std::cout << count - failed << " of " << count << " models come back with the same bits\n";
  return failed == 0 && count > 0 ? 0 : 1;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) { return msrt::testing::Main(argc - 1, argv + 1); }
