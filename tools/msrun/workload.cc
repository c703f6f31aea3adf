#include "tools/msrun/workload.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iostream>
#include <map>
#include <random>

#include "core/base/half.h"
#include "core/place/plugin.h"
#include "core/run/measure.h"
#include "delegates/builtin.h"
#include "tools/msrun/npy.h"

namespace msrt {
namespace {

Result<std::map<std::string, std::string>> SplitPairs(const std::vector<std::string>& pairs, std::string_view option) {
  std::map<std::string, std::string> out;
  for (const std::string& p : pairs) {
    const size_t equals = p.rfind('=');
    if (equals == std::string::npos || equals == 0) return InvalidArgument(option, " ", p, ": must be NAME=VALUE");
    out[p.substr(0, equals)] = p.substr(equals + 1);
  }
  return out;
}

Result<Dims> ParseShape(const std::string& text) {
  Dims dims;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    int64_t dim = -1;
    const auto [next, error] = std::from_chars(p, end, dim);
    if (error != std::errc() || dim < 0 || dims.rank() == kMaxRank || (next != end && *next != 'x')) {
      return InvalidArgument("shape '", text, "' must be like 1x3x224x224, with at most ", kMaxRank, " dims");
    }
    dims.push_back(dim);
    p = next == end ? end : next + 1;
  }
  return dims;
}

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (comma > begin) parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

// Dims to run an input at: what the user says, what the model says, or a usual size.
Result<Dims> DimsFor(const Value& input, const std::map<std::string, std::string>& shapes) {
  const auto it = shapes.find(input.name);
  if (it != shapes.end()) return ParseShape(it->second);
  if (!input.type.rank_known) return InvalidArgument("input '", input.name, "' has no declared rank: give --shape ", input.name, "=...");
  Dims dims = input.type.dims;
  for (int d = 0; d < dims.rank(); ++d) {
    if (!IsKnown(dims[d])) dims[d] = d == 0 ? 1 : dims.rank() == 4 ? 224 : 128;
  }
  return dims;
}

template <typename T, typename Draw>
ConstTensor Fill(DType dtype, const Dims& dims, Draw draw) {
  std::vector<T> values(static_cast<size_t>(dims.elements()));
  for (T& v : values) v = draw();
  return ConstTensor::Of<T>(dtype, dims, values);
}

Result<ConstTensor> RandomInput(const Value& input, const Dims& dims, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  const bool mask = input.name.find("mask") != std::string::npos;
  const auto token = [&] { return mask ? 1 : static_cast<int>(random() % 100); };
  const DType t = input.type.dtype;
  switch (t) {
    case DType::kF64:
      return Fill<double>(t, dims, [&] { return static_cast<double>(normal(random)); });
    case DType::kF32:
      return Fill<float>(t, dims, [&] { return normal(random); });
    case DType::kF16:
      return Fill<Half>(t, dims, [&] { return Half(normal(random)); });
    case DType::kBF16:
      return Fill<BFloat16>(t, dims, [&] { return BFloat16(normal(random)); });
    case DType::kI64:
    case DType::kU64:
      return Fill<int64_t>(t, dims, token);
    case DType::kI32:
    case DType::kU32:
      return Fill<int32_t>(t, dims, token);
    case DType::kI16:
    case DType::kU16:
      return Fill<int16_t>(t, dims, [&] { return static_cast<int16_t>(token()); });
    case DType::kI8:
    case DType::kU8:
      return Fill<int8_t>(t, dims, [&] { return static_cast<int8_t>(token()); });
    case DType::kBool:
      return Fill<uint8_t>(t, dims, [&] { return static_cast<uint8_t>(mask || random() % 2 == 0); });
    default:
      return Unsupported("input '", input.name, "' has type ", t, ": give it with --input");
  }
}

Status UnknownName(const Graph& graph, const std::string& name) {
  std::string known;
  for (ValueId v : graph.inputs) StrAppend(&known, known.empty() ? "" : ", ", graph.value(v).name);
  return NotFound("the model has no input '", name, "'; it has ", known);
}

// "PATH:OPTIONS". Options may hold colons; a path cannot.
Status AddPlugin(const std::string& text, Environment* environment) {
  const size_t colon = text.find(':');
  const std::string path = text.substr(0, colon), options = colon == std::string::npos ? "" : text.substr(colon + 1);
  MSRT_ASSIGN_OR_RETURN(const Registration plugin, LoadPlugin(path, options));
  return Join(plugin, environment).Within(StrCat("plugin '", path, "'"));
}

}  // namespace

Result<std::shared_ptr<const Environment>> MakeEnvironment(const Arguments& a) {
  auto env = std::make_shared<Environment>();
  env->parallel = MakeDefaultParallel(a.threads > 0 ? a.threads : AvailableCores());
  env->delegates = BuiltinDelegates();
  env->evaluator = &BuiltinEvaluator();
  env->log = Log([](LogLevel, const std::string& line) { std::cerr << "msrun: " << line << "\n"; }, LogLevel::kWarning);
  for (const std::string& plugin : a.plugins) MSRT_RETURN_IF_ERROR(AddPlugin(plugin, env.get()));
  return std::shared_ptr<const Environment>(std::move(env));
}

std::string ShapeText(const Dims& dims) {
  std::string out;
  for (int i = 0; i < dims.rank(); ++i) StrAppend(&out, i == 0 ? "" : "x", dims[i]);
  return dims.empty() ? "scalar" : out;
}

Result<Workload> Prepare(const Arguments& a) {
  Workload w;
  MSRT_ASSIGN_OR_RETURN(const auto files, SplitPairs(a.inputs, "--input"));
  MSRT_ASSIGN_OR_RETURN(auto shapes, SplitPairs(a.shapes, "--shape"));
  // Files come first: their shapes are what the model will be run at.
  std::map<std::string, ConstTensor> given;
  for (const auto& [name, path] : files) {
    MSRT_ASSIGN_OR_RETURN(const ConstTensor t, ReadNpy(path));
    given[name] = t;
    shapes[name] = ShapeText(t.dims) == "scalar" ? "" : ShapeText(t.dims);
  }
  CompileOptions options;
  options.load_by_copy = a.copy_file;
  options.passes.disabled = a.disabled_passes;
  options.place.delegates = SplitCommas(a.delegates);
  options.place.exact = a.accuracy == "exact";
  options.place.strict = a.strict;
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Environment> env, MakeEnvironment(a));
  if (!a.costs.empty()) {
    MSRT_ASSIGN_OR_RETURN(options.place.costs, ReadCosts(*env, a.costs, msrt_version()));
  }
  for (const std::string& text : a.pins) {
    MSRT_ASSIGN_OR_RETURN(Pin pin, ParsePin(text));
    options.place.pins.push_back(std::move(pin));
  }
  // Open dims are typical at the sizes this run will use; the names come from the model, so it is read twice where dims are open.
  for (const auto& [name, text] : shapes) {
    MSRT_ASSIGN_OR_RETURN(const Dims dims, ParseShape(text));
    options.typical.emplace_back(name, dims);
  }
  if (shapes.empty()) {
    MSRT_ASSIGN_OR_RETURN(const Module module, LoadFile(env->io, a.model));
    for (ValueId v : module.main().inputs) {
      const Value& input = module.main().value(v);
      if (!input.type.is_tensor() || input.type.dims.known()) continue;
      MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsFor(input, {}));
      options.typical.emplace_back(input.name, dims);
    }
  }
  const StopWatch watch;
  MSRT_ASSIGN_OR_RETURN(w.model, CompileFile(env, a.model, options));
  MSRT_ASSIGN_OR_RETURN(w.session, Session::Create(w.model, 0, {.memory_cap_bytes = a.memory_cap}));
  w.load_millis = watch.Millis();

  const Graph& graph = w.session->graph();
  for (const auto& [name, text] : shapes) {
    if (std::none_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId v) { return graph.value(v).name == name; }))
      return UnknownName(graph, name);
  }
  std::mt19937_64 random(a.seed);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    const auto file = files.find(input.name);
    ConstTensor tensor;
    if (file != files.end()) {
      MSRT_ASSIGN_OR_RETURN(tensor, ReadNpy(file->second, input.type.dtype));
    } else {
      MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsFor(input, shapes));
      MSRT_ASSIGN_OR_RETURN(tensor, RandomInput(input, dims, random));
    }
    MSRT_RETURN_IF_ERROR(
        w.session->SetInput(i, {tensor.dtype, tensor.dims, Layout::kPlain, const_cast<std::byte*>(tensor.bytes.data())}, tensor.owner));
    w.inputs.push_back(std::move(tensor));
  }
  return w;
}

Result<double> PeakResidentBytes() {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return IoError("getrusage failed");
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace msrt
