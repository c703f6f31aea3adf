#include "tools/msrun/workload.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "core/place/plugin.h"
#include "core/run/measure.h"
#include "delegates/builtin.h"
#include "tools/msrun/value_files.h"
#include "tools/tensors/made_input.h"
#include "tools/tensors/npy.h"

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

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (comma > begin) parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

Status UnknownName(const Graph& graph, const std::string& name) {
  std::string known;
  for (ValueId v : graph.inputs) StrAppend(&known, known.empty() ? "" : ", ", graph.value(v).name);
  return NotFound("the model has no input '", name, "'; it has ", known);
}

// The tensors that a list holds, as the input that they would be.
Value TensorsIn(Value input) {
  while (input.type.kind == TypeKind::kList) input.type = Type(*input.type.element);
  return input;
}

// "PATH:OPTIONS". Options may hold colons; a path cannot.
Status AddPlugin(const std::string& text, Environment* environment) {
  const size_t colon = text.find(':');
  const std::string path = text.substr(0, colon), options = colon == std::string::npos ? "" : text.substr(colon + 1);
  MSRT_ASSIGN_OR_RETURN(const Registration plugin, LoadPlugin(path, options, {environment->allocator, environment->log}));
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

Result<Workload> Prepare(const Arguments& a) {
  Workload w;
  MSRT_ASSIGN_OR_RETURN(const auto files, SplitPairs(a.inputs, "--input"));
  MSRT_ASSIGN_OR_RETURN(const auto shape_texts, SplitPairs(a.shapes, "--shape"));
  std::map<std::string, Dims> shapes;
  for (const auto& [name, text] : shape_texts) {
    MSRT_ASSIGN_OR_RETURN(shapes[name], ParseShape(text));
  }
  // Files come first: their shapes are what the model will be run at.
  for (const auto& [name, path] : files) {
    if (std::filesystem::is_directory(path)) continue;  // a list, whose elements may differ
    MSRT_ASSIGN_OR_RETURN(const ConstTensor t, ReadNpy(path));
    shapes[name] = t.dims;
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
  for (const auto& [name, dims] : shapes) options.typical.emplace_back(name, dims);
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
  const auto known = [&](const std::string& name) {
    return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId v) { return graph.value(v).name == name; });
  };
  for (const auto& [name, dims] : shapes) {
    if (!known(name)) return UnknownName(graph, name);
  }
  for (const auto& [name, path] : files) {
    if (!known(name)) return UnknownName(graph, name);
  }
  std::mt19937_64 random(a.seed);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto file = files.find(graph.value(graph.inputs[i]).name);
    RunValue value;
    if (file != files.end()) {
      MSRT_ASSIGN_OR_RETURN(value, ReadValue(file->second, graph.value(graph.inputs[i]).type));
    } else {
      MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsFor(TensorsIn(graph.value(graph.inputs[i])), shapes));
      MSRT_ASSIGN_OR_RETURN(value, MadeValue(graph, graph.inputs[i], dims, random));
    }
    MSRT_RETURN_IF_ERROR(w.session->SetInput(i, value));
    w.inputs.push_back(std::move(value));
  }
  return w;
}

Result<double> PeakResidentBytes() {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return IoError("getrusage failed");
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace msrt
