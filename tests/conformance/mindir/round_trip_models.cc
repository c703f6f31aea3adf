// ONNX models through .msrt and MindIR back to .msrt: the same bits?
//   mindir_round_trip FOLDER...
// A folder has model.onnx and run_<k>/input_<n>.npy.
#include <filesystem>
#include <iostream>

#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tests/conformance/mindir/round_trip.h"
#include "tools/msconvert/onnx/importer.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

Result<Module> Read(const std::string& path) {
  onnx_import::ImportOptions options;
  options.evaluator = &BuiltinEvaluator();
  MSRT_ASSIGN_OR_RETURN(onnx_import::Imported imported, onnx_import::ImportFile(path, options, DefaultIo()));
  if (!imported.problems.empty()) return Unsupported(imported.problems.Text());
  MSRT_RETURN_IF_ERROR(Validate(&imported.module));
  return std::move(imported.module);
}

Result<std::string> DifferenceIn(const fs::path& folder) {
  MSRT_ASSIGN_OR_RETURN(const Module imported, Read((folder / "model.onnx").string()));
  int runs = 0;
  for (const bool passes : {true, false}) {
    Module module = imported;
    if (passes) MSRT_RETURN_IF_ERROR(OptimizeAsWritten(&module));
    MSRT_ASSIGN_OR_RETURN(const Module back, ThroughMindIr(module, Notes::kKept));
    for (const auto& run : fs::directory_iterator(folder)) {
      if (!run.is_directory()) continue;
      MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> inputs, ReadInputs(run.path().string()));
      MSRT_ASSIGN_OR_RETURN(const std::string difference, DifferenceOf(module, back, inputs, passes));
      if (!difference.empty()) return StrCat(run.path().filename().string(), passes ? ", with passes: " : ", as imported: ", difference);
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
    std::cout << "FAIL " << name << ": " << (difference.ok() ? *difference : difference.status().message()) << "\n";
  }
  std::cout << count - failed << " of " << count << " models come back with the same bits\n";
  return failed == 0 && count > 0 ? 0 : 1;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) { return msrt::testing::Main(argc - 1, argv + 1); }
