// ONNX's own backend tests through the importer and the runtime: every case is passed, refused with
// a reason, wrong, or failed. Two kinds are counted separately:
// - random: the model draws random numbers. ONNX's runner would compare them, so ONNX leaves these
//   cases out of its own tests (test_backend_reference.py: "cannot pass"). Here types, shapes and
//   the range of the values are checked.
// - contradicted: the stored data contradict the specification; a list has the cases and the
//   reasons (known_contradictions.txt).
//
//   onnx_suite FOLDER [--filter TEXT] [--at-least N] [--contradicted LIST] [--verbose]
//
// FOLDER has one folder per case: model.onnx and test_data_set_*/{input,output}_*.pb. Exits with 1
// if a case is wrong or failed, if a case of the list passes, or if fewer than N passed.
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "delegates/builtin.h"
#include "delegates/reference/elements.h"
#include "onnx-ml.pb.h"
#include "ops/registry.h"
#include "tests/conformance/op_case.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/external_data.h"
#include "tools/msconvert/onnx/importer.h"
#include "tools/msconvert/onnx/proto_import.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

// The tolerances of ONNX's own runner.
constexpr double kRelative = 1e-3, kAbsolute = 1e-4;

enum class Outcome { kPassed, kRandom, kRefused, kContradicted, kWrong, kFailed };
constexpr const char* kOutcomes[] = {"passed",       "random", "refused",
                                     "contradicted", "wrong",  "failed"};
using Counts = std::array<size_t, std::size(kOutcomes)>;

struct CaseResult {
  Outcome outcome;
  std::string reason;
};

CaseResult Refused(std::string reason) { return {Outcome::kRefused, std::move(reason)}; }
CaseResult Failed(const Status& status) {
  return {Outcome::kFailed, StrCat(CodeName(status.code()), ": ", status.message())};
}

Result<std::string> ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError("cannot read '", path.string(), "'");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

using Declared = std::map<std::string, onnx::TypeProto>;

// The declarations of the model's inputs and outputs, by name.
Result<Declared> DeclaredTypes(const fs::path& model) {
  MSRT_ASSIGN_OR_RETURN(const std::string bytes, ReadText(model));
  onnx::ModelProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidModel("'", model.string(), "' is no model");
  Declared types;
  for (const auto& v : proto.graph().input()) types[v.name()] = v.type();
  for (const auto& v : proto.graph().output()) types[v.name()] = v.type();
  return types;
}

DType ElementType(const onnx::TypeProto& type) {
  const auto dtype = onnx_import::DTypeOf(type.tensor_type().elem_type());
  return dtype.ok() ? *dtype : DType::kNone;
}

// A value in the form of the runtime: optionals are lists of at most one element.
struct Datum {
  bool is_list = false;
  ConstTensor tensor;
  std::vector<Datum> elements;
};

// The messages SequenceProto and OptionalProto are in a separate file, onnx-data.proto. The data
// use only these of their fields.
enum DataField { kTensor = 3, kSequence = 5 };

Result<std::vector<std::pair<int, std::string>>> FieldsOf(const std::string& bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::vector<std::pair<int, std::string>> fields;
  while (const uint32_t tag = in.ReadTag()) {
    const int field = static_cast<int>(tag >> 3);
    uint32_t number = 0;
    std::string text;
    const bool read =
        (tag & 7) == 2 ? in.ReadVarint32(&number) && in.ReadString(&text, static_cast<int>(number))
                       : (tag & 7) == 0 && in.ReadVarint32(&number);
    if (!read) return InvalidModel("the data cannot be read");
    fields.emplace_back(field, std::move(text));
  }
  return fields;
}

Result<Datum> ParseTensor(const std::string& bytes) {
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidModel("the data is not a tensor");
  Datum datum;
  MSRT_ASSIGN_OR_RETURN(datum.tensor,
                        onnx_import::TakeTensor(&proto, ExternalData("", DefaultIo())));
  return datum;
}

// Parses a sequence of tensors, or an optional of a tensor or of a sequence: both have the same
// fields.
Result<Datum> ParseList(const std::string& bytes) {
  Datum datum;
  datum.is_list = true;
  MSRT_ASSIGN_OR_RETURN(const auto fields, FieldsOf(bytes));
  for (const auto& [field, text] : fields) {
    if (field != kTensor && field != kSequence) continue;
    MSRT_ASSIGN_OR_RETURN(Datum element, field == kTensor ? ParseTensor(text) : ParseList(text));
    datum.elements.push_back(std::move(element));
  }
  return datum;
}

Result<Datum> ReadDatum(const fs::path& path, const onnx::TypeProto& type) {
  MSRT_ASSIGN_OR_RETURN(const std::string bytes, ReadText(path));
  auto datum =
      type.has_sequence_type() || type.has_optional_type() ? ParseList(bytes) : ParseTensor(bytes);
  if (!datum.ok()) return std::move(datum).status().Within(StrCat("'", path.string(), "'"));
  return datum;
}

RunValue ValueOf(const Datum& datum) {
  if (!datum.is_list) {
    const ConstTensor& t = datum.tensor;
    RunValue value = RunValue::Of(
        {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())}, t.owner);
    value.lasting = true;
    return value;
  }
  ListValue list;
  for (const Datum& e : datum.elements) list.elements.push_back(ValueOf(e));
  return RunValue::Of(std::make_shared<const ListValue>(std::move(list)));
}

Datum DatumOf(const RunValue& value) {
  Datum datum;
  datum.is_list = value.kind == TypeKind::kList;
  if (datum.is_list) {
    for (const RunValue& e : value.list().elements) datum.elements.push_back(DatumOf(e));
  } else {
    const TensorView& t = value.tensor;
    datum.tensor =
        ConstTensor::Copy(t.dtype, t.dims, {t.As<std::byte>(), BytesOf(t.dtype, t.elements())});
  }
  return datum;
}

// Test data of type bf16 is stored as u16, the type that NumPy has for it; the model declares the
// actual type.
bool IsStoredAsU16(DType stored, DType declared) {
  return stored == DType::kU16 && declared == DType::kBF16;
}

std::vector<fs::path> DataSets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

bool DrawsRandomNumbers(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    const OpDef* def = FindOp(node.domain, node.op);
    return def != nullptr && def->effect == Effect::kRandom;
  });
}

std::vector<double> Numbers(const ConstTensor& t) {
  return reference::Doubles(
      {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())});
}

// Checks random numbers: empty if they have the right type and shape and are in the range of the
// stored ones.
std::string DifferenceInKind(const ConstTensor& have, const ConstTensor& want) {
  if (have.dtype != want.dtype || !(have.dims == want.dims))
    return StrCat("type ", have.type(), ", expected ", want.type());
  const std::vector<double> values = Numbers(have), stored = Numbers(want);
  if (stored.empty()) return {};
  const auto [least, most] = std::minmax_element(stored.begin(), stored.end());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= *least && values[i] <= *most)) {
      return StrCat("element ", i, " is ", values[i], ", must be in [", *least, ", ", *most, "]");
    }
  }
  return {};
}

// bf16 has steps of up to 2^-7 of a value; the runner of onnx 1.23 allows two of them.
double RelativeTolerance(DType dtype) { return dtype == DType::kBF16 ? 0x1p-6 : kRelative; }

// Returns the difference; empty if they agree.
std::string Difference(const Datum& have, const Datum& want) {
  if (have.is_list != want.is_list)
    return have.is_list ? "is a list, must be a tensor" : "is a tensor, must be a list";
  if (!have.is_list)
    return testing::Difference(have.tensor, want.tensor, RelativeTolerance(want.tensor.dtype),
                               kAbsolute);
  if (have.elements.size() != want.elements.size()) {
    return StrCat("has ", have.elements.size(), " elements, must have ", want.elements.size());
  }
  for (size_t i = 0; i < have.elements.size(); ++i) {
    const std::string difference = Difference(have.elements[i], want.elements[i]);
    if (!difference.empty()) return StrCat("element ", i, " of the list: ", difference);
  }
  return {};
}

CaseResult RunSet(const Module& module, const Declared& types, const fs::path& set) {
  const Graph& graph = module.main();
  const auto type_of = [&](ValueId v) {
    const auto found = types.find(graph.value(v).name);
    return found == types.end() ? onnx::TypeProto() : found->second;
  };
  const auto failed = [](const Status& status) {
    return status.code() == Code::kUnsupported ? Refused(std::string(status.message()))
                                               : Failed(status);
  };
  const bool random = DrawsRandomNumbers(graph);
  auto model = CompileModule(TestEnvironment(), module, {});
  if (!model.ok()) return failed(model.status());
  auto session = Session::Create(*model, 0, {});
  if (!session.ok()) return failed(session.status());
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    auto datum = ReadDatum(set / StrCat("input_", i, ".pb"), type_of(graph.inputs[i]));
    if (!datum.ok()) return failed(datum.status());
    const DType declared = ElementType(type_of(graph.inputs[i]));
    if (IsStoredAsU16(datum->tensor.dtype, declared)) datum->tensor.dtype = declared;
    inputs.push_back(*std::move(datum));
    const Status status = (*session)->SetInput(i, ValueOf(inputs.back()));
    if (!status.ok()) return failed(status);
  }
  if (const Status status = (*session)->Run({}); !status.ok()) return failed(status);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    auto want = ReadDatum(set / StrCat("output_", i, ".pb"), type_of(graph.outputs[i]));
    if (!want.ok()) return Failed(want.status());
    const auto result = (*session)->OutputValue(i);
    if (!result.ok()) return Failed(result.status());
    Datum have = DatumOf(*result);
    // Compared as they are stored, like in ONNX's own runner: its bf16 data was truncated, not
    // rounded, so the last bit differs.
    const bool cut = have.tensor.dtype == DType::kBF16 &&
                     IsStoredAsU16(want->tensor.dtype, ElementType(type_of(graph.outputs[i])));
    if (cut) have.tensor.dtype = want->tensor.dtype;
    const std::string difference =
        random ? DifferenceInKind(have.tensor, want->tensor) : Difference(have, *want);
    if (!difference.empty()) return {Outcome::kWrong, StrCat("output ", i, ": ", difference)};
  }
  if (random)
    return {Outcome::kRandom, "types, shapes and ranges are right; values cannot be compared"};
  return {Outcome::kPassed, ""};
}

CaseResult RunCase(const fs::path& folder) {
  onnx_import::ImportOptions options;
  options.evaluator = &BuiltinEvaluator();
  auto imported = onnx_import::ImportFile((folder / "model.onnx").string(), options, DefaultIo());
  if (!imported.ok()) return Failed(imported.status());
  if (!imported->problems.empty()) {
    const Problem& p = imported->problems.list()[0];
    return Refused(StrCat(p.op, p.op.empty() ? "" : ": ", p.reason));
  }
  const auto types = DeclaredTypes(folder / "model.onnx");
  if (!types.ok()) return Failed(types.status());
  CaseResult result{Outcome::kPassed, ""};
  for (const fs::path& set : DataSets(folder)) {
    result = RunSet(imported->module, *types, set);
    if (result.outcome != Outcome::kPassed && result.outcome != Outcome::kRandom) return result;
  }
  return result;
}

// Returns the op that a case tests, according to its name; for whole networks the name itself.
std::string Subject(const std::string& name) {
  std::string subject = name.starts_with("test_") ? name.substr(5) : name;
  return subject.substr(0, subject.find('_'));
}

// Lines "case: reason"; those that begin with '#' explain.
Result<std::map<std::string, std::string>> ReadContradictions(const fs::path& path) {
  std::map<std::string, std::string> reasons;
  if (path.empty()) return reasons;
  std::ifstream file(path);
  if (!file) return IoError("cannot read '", path.string(), "'");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos)
      return InvalidArgument("'", path.string(), "': no reason in the line '", line, "'");
    reasons[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return reasons;
}

// A listed case is expected to differ. One that passes shows that the list, or our result, is
// wrong.
CaseResult Judge(CaseResult result, const std::string* contradiction) {
  if (contradiction == nullptr) return result;
  if (result.outcome == Outcome::kWrong) return {Outcome::kContradicted, *contradiction};
  if (result.outcome == Outcome::kPassed)
    return {Outcome::kFailed,
            "passes although its data are listed as contradicting the specification"};
  return result;
}

void PrintRow(const std::string& name, const Counts& counts) {
  std::printf("%-32s", name.c_str());
  for (size_t count : counts) std::printf(" %12zu", count);
  std::printf("\n");
}

struct Options {
  fs::path folder, contradicted;
  std::string filter;
  size_t at_least = 0;
  bool verbose = false;
};

int RunAll(const Options& options) {
  const auto contradictions = ReadContradictions(options.contradicted);
  if (!contradictions.ok()) {
    std::fprintf(stderr, "%s\n", contradictions.status().message().c_str());
    return 2;
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.find(options.filter) != std::string::npos)
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::map<std::string, Counts> by_subject;
  Counts total = {};
  for (const std::string& name : names) {
    const auto listed = contradictions->find(name);
    const CaseResult result = Judge(RunCase(options.folder / name),
                                    listed == contradictions->end() ? nullptr : &listed->second);
    const auto outcome = static_cast<size_t>(result.outcome);
    ++by_subject[Subject(name)][outcome];
    ++total[outcome];
    if (options.verbose || result.outcome != Outcome::kPassed)
      std::printf("%-12s %s: %s\n", kOutcomes[outcome], name.c_str(), result.reason.c_str());
  }
  std::printf("\n%-32s", "");
  for (const char* outcome : kOutcomes) std::printf(" %12s", outcome);
  std::printf("\n");
  for (const auto& [subject, counts] : by_subject) PrintRow(subject, counts);
  PrintRow(StrCat("all ", names.size()), total);
  const auto count = [&](Outcome outcome) { return total[static_cast<size_t>(outcome)]; };
  return count(Outcome::kWrong) + count(Outcome::kFailed) != 0 ||
         count(Outcome::kPassed) < options.at_least;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  msrt::testing::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--verbose") options.verbose = true;
    else if (argument == "--filter" && i + 1 < argc) options.filter = argv[++i];
    else if (argument == "--contradicted" && i + 1 < argc) options.contradicted = argv[++i];
    else if (argument == "--at-least" && i + 1 < argc)
      options.at_least = std::strtoul(argv[++i], nullptr, 10);
    else options.folder = argument;
  }
  if (!std::filesystem::is_directory(options.folder)) {
    std::fprintf(stderr,
                 "usage: onnx_suite FOLDER [--filter TEXT] [--at-least N] [--contradicted LIST] "
                 "[--verbose]\n");
    return 2;
  }
  return msrt::testing::RunAll(options);
}
