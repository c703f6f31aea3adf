// ONNX's own backend tests through the importer and the runtime: every case is passed, refused with a reason, wrong, or failed.
//   onnx_suite FOLDER [--filter TEXT] [--at-least N] [--verbose]
// FOLDER holds one folder a case: model.onnx and test_data_set_*/{input,output}_*.pb. Exits with 1 if a case is wrong or failed, or if
// fewer than N passed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/base/half.h"
#include "onnx-ml.pb.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/onnx/external_data.h"
#include "tools/msconvert/onnx/importer.h"
#include "tools/msconvert/onnx/proto_import.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

// What ONNX's own runner allows.
constexpr double kRelative = 1e-3, kAbsolute = 1e-4;

enum class Outcome { kPassed, kRefused, kWrong, kFailed };
struct CaseResult {
  Outcome outcome;
  std::string reason;
};

CaseResult Refused(std::string reason) { return {Outcome::kRefused, std::move(reason)}; }
CaseResult Failed(const Status& status) { return {Outcome::kFailed, StrCat(CodeName(status.code()), ": ", status.message())}; }

Result<std::string> ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError("cannot read '", path.string(), "'");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The element types that the model declares, by the names of its inputs and outputs.
Result<std::map<std::string, DType>> DeclaredTypes(const fs::path& model) {
  MSRT_ASSIGN_OR_RETURN(const std::string bytes, ReadText(model));
  onnx::ModelProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidModel("'", model.string(), "' is no model");
  std::map<std::string, DType> types;
  const auto add = [&](const auto& values) {
    for (const auto& v : values) {
      const auto dtype = onnx_import::DTypeOf(v.type().tensor_type().elem_type());
      if (dtype.ok()) types[v.name()] = *dtype;
    }
  };
  add(proto.graph().input());
  add(proto.graph().output());
  return types;
}

Result<ConstTensor> ReadTensor(const fs::path& path) {
  MSRT_ASSIGN_OR_RETURN(const std::string bytes, ReadText(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidModel("'", path.string(), "' is no tensor");
  return onnx_import::TakeTensor(&proto, onnx_import::ExternalData("", DefaultIo()));
}

// Test data of type bf16 is stored as u16, the type that NumPy has for it; the model says what is meant.
bool IsStoredAsU16(DType stored, DType declared) { return stored == DType::kU16 && declared == DType::kBF16; }

double ElementAt(const ConstTensor& t, size_t i) {
  switch (t.dtype) {
    case DType::kF64:
      return t.As<double>()[i];
    case DType::kF32:
      return t.As<float>()[i];
    case DType::kF16:
      return t.As<Half>()[i];
    case DType::kBF16:
      return t.As<BFloat16>()[i];
    case DType::kI8:
      return t.As<int8_t>()[i];
    case DType::kI16:
      return t.As<int16_t>()[i];
    case DType::kI32:
      return t.As<int32_t>()[i];
    case DType::kI64:
      return static_cast<double>(t.As<int64_t>()[i]);
    case DType::kU16:
      return t.As<uint16_t>()[i];
    case DType::kU32:
      return t.As<uint32_t>()[i];
    case DType::kU64:
      return static_cast<double>(t.As<uint64_t>()[i]);
    default:
      return static_cast<double>(t.As<uint8_t>()[i]);  // bytes; small types are compared bit by bit
  }
}

// Empty if they agree.
std::string Difference(const ConstTensor& have, const ConstTensor& want) {
  if (have.dtype != want.dtype || !(have.dims == want.dims)) return StrCat("is ", have.type(), ", must be ", want.type());
  if (BitsOf(have.dtype) < 8) {
    return std::equal(have.bytes.begin(), have.bytes.end(), want.bytes.begin()) ? "" : "bits differ";
  }
  for (size_t i = 0; i < static_cast<size_t>(want.dims.elements()); ++i) {
    const double a = ElementAt(have, i), b = ElementAt(want, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= kAbsolute + kRelative * std::abs(b))) return StrCat("element ", i, " is ", a, ", must be ", b);
  }
  return {};
}

std::vector<fs::path> DataSets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

CaseResult RunSet(const Module& module, const std::map<std::string, DType>& types, const fs::path& set) {
  const Graph& graph = module.main();
  const auto type_of = [&](ValueId v) {
    const auto found = types.find(graph.value(v).name);
    return found == types.end() ? DType::kNone : found->second;
  };
  std::vector<ConstTensor> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    auto tensor = ReadTensor(set / StrCat("input_", i, ".pb"));
    if (!tensor.ok()) return tensor.status().code() == Code::kUnsupported ? Refused(tensor.status().message()) : Failed(tensor.status());
    const DType declared = type_of(graph.inputs[i]);
    if (IsStoredAsU16(tensor->dtype, declared)) tensor->dtype = declared;
    inputs.push_back(*std::move(tensor));
  }
  auto outputs = RunModule(module, inputs);
  if (!outputs.ok()) return outputs.status().code() == Code::kUnsupported ? Refused(outputs.status().message()) : Failed(outputs.status());
  for (size_t i = 0; i < outputs->size(); ++i) {
    const auto want = ReadTensor(set / StrCat("output_", i, ".pb"));
    if (!want.ok()) return Failed(want.status());
    // Compared as they are stored, which is what ONNX's own runner does: its bf16 data was cut, not rounded, so the last bit differs.
    ConstTensor& have = (*outputs)[i];
    if (have.dtype == DType::kBF16 && IsStoredAsU16(want->dtype, type_of(graph.outputs[i]))) have.dtype = want->dtype;
    const std::string difference = Difference(have, *want);
    if (!difference.empty()) return {Outcome::kWrong, StrCat("output ", i, ": ", difference)};
  }
  return {Outcome::kPassed, ""};
}

CaseResult RunCase(const fs::path& folder) {
  auto imported = onnx_import::ImportFile((folder / "model.onnx").string(), {}, DefaultIo());
  if (!imported.ok()) return Failed(imported.status());
  if (!imported->problems.empty()) {
    const onnx_import::Problem& p = imported->problems.list()[0];
    return Refused(StrCat(p.op, p.op.empty() ? "" : ": ", p.reason));
  }
  const auto types = DeclaredTypes(folder / "model.onnx");
  if (!types.ok()) return Failed(types.status());
  for (const fs::path& set : DataSets(folder)) {
    const CaseResult result = RunSet(imported->module, *types, set);
    if (result.outcome != Outcome::kPassed) return result;
  }
  return {Outcome::kPassed, ""};
}

// The op that a case is about, as its name says it; for whole networks the name itself.
std::string Subject(const std::string& name) {
  std::string subject = name.starts_with("test_") ? name.substr(5) : name;
  return subject.substr(0, subject.find('_'));
}

int RunAll(const fs::path& folder, const std::string& filter, size_t at_least, bool verbose) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.find(filter) != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  constexpr const char* kOutcomes[] = {"passed", "refused", "wrong", "failed"};
  std::map<std::string, std::array<size_t, 4>> by_subject;
  std::array<size_t, 4> total = {};
  for (const std::string& name : names) {
    const CaseResult result = RunCase(folder / name);
    const auto outcome = static_cast<size_t>(result.outcome);
    ++by_subject[Subject(name)][outcome];
    ++total[outcome];
    if (verbose || result.outcome != Outcome::kPassed)
      std::printf("%-8s %s: %s\n", kOutcomes[outcome], name.c_str(), result.reason.c_str());
  }
  std::printf("\n%-32s %7s %7s %7s %7s\n", "", "passed", "refused", "wrong", "failed");
  for (const auto& [subject, counts] : by_subject) {
    std::printf("%-32s %7zu %7zu %7zu %7zu\n", subject.c_str(), counts[0], counts[1], counts[2], counts[3]);
  }
  std::printf("%-32s %7zu %7zu %7zu %7zu of %zu\n", "all", total[0], total[1], total[2], total[3], names.size());
  return total[2] + total[3] != 0 || total[0] < at_least;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  std::string folder, filter;
  size_t at_least = 0;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--verbose") verbose = true;
    else if (argument == "--filter" && i + 1 < argc) filter = argv[++i];
    else if (argument == "--at-least" && i + 1 < argc) at_least = std::strtoul(argv[++i], nullptr, 10);
    else folder = argument;
  }
  if (!std::filesystem::is_directory(folder)) {
    std::fprintf(stderr, "usage: onnx_suite FOLDER [--filter TEXT] [--at-least N] [--verbose]\n");
    return 2;
  }
  return msrt::testing::RunAll(folder, filter, at_least, verbose);
}
