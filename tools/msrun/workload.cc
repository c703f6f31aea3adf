#include "tools/msrun/workload.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "core/extend/plugin.h"
#include "core/run/measure.h"
#include "core/train/training_module.h"
#include "delegates/builtin.h"
#include "tools/files/plugin_file.h"
#include "tools/msrun/model_source.h"
#include "tools/msrun/training_workload.h"
#include "tools/msrun/value_files.h"
#include "tools/tensors/npy.h"
#include "tools/tensors/sizes.h"

namespace msrt {
namespace {

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

Status AddPlugin(const std::string& text, Environment* environment) {
  const PluginFile plugin = ParsePluginFile(text);
  MSRT_ASSIGN_OR_RETURN(
      const Registration added,
      LoadPlugin(plugin.path, plugin.options, {environment->allocator, environment->log},
                 environment->devices));
  return Join(added, environment).Within(StrCat("plugin '", plugin.path, "'"));
}

// Checks the files that --output-dir will write and --check will read, before the run.
Status CheckOutputFiles(const Arguments& a, const Graph& graph) {
  const FilesRead read = FilesReadBy(a);
  std::map<std::string, std::string> names;  // by file
  for (ValueId v : graph.outputs) {
    const Value& output = graph.value(v);
    const std::string file =
        StrCat("/", FileNameFor(output.name), output.type.is_tensor() ? ".npy" : "");
    if (!a.output_dir.empty())
      MSRT_RETURN_IF_ERROR(read.Refuse("--output-dir: output", a.output_dir + file));
    const auto [other, added] = names.emplace(file, output.name);
    if (!added && !(a.output_dir.empty() && a.check_dir.empty())) {
      return Unsupported("outputs '", other->second, "' and '", output.name,
                         "' have the same file name, '", file.substr(1), "'; rename one of them");
    }
    if (!a.check_dir.empty() && !std::filesystem::exists(a.check_dir + file)) {
      return NotFound("--check: there is no '", a.check_dir, file, "' for output '", output.name,
                      "'");
    }
  }
  return OkStatus();
}

}  // namespace

Result<std::shared_ptr<const Environment>> MakeEnvironment(const Arguments& a) {
  auto env = std::make_shared<Environment>();
  env->parallel = a.streams > 1 ? MakeSerial()
                                : MakeDefaultParallel(a.threads > 0 ? a.threads : AvailableCores());
  env->delegates = BuiltinDelegates();
  env->evaluator = &BuiltinEvaluator();
  env->log = Log([](LogLevel, const std::string& line) { std::cerr << "msrun: " << line << "\n"; },
                 a.verbose ? LogLevel::kDebug
                 : a.quiet ? LogLevel::kError
                           : LogLevel::kWarning);
  for (const std::string& plugin : a.plugins) MSRT_RETURN_IF_ERROR(AddPlugin(plugin, env.get()));
  return std::shared_ptr<const Environment>(std::move(env));
}

namespace {

using InputFiles = std::map<std::string, std::string>;  // by the name of the input

// Checks the arguments against the model before it is compiled.
Status CheckForModel(const Arguments& a, const InputFiles& files, const Graph& graph) {
  for (const auto& [name, path] : files) {
    const auto called = [&](ValueId v) { return graph.value(v).name == name; };
    if (std::none_of(graph.inputs.begin(), graph.inputs.end(), called))
      return UnknownName(graph, name);
  }
  return CheckOutputFiles(a, graph);
}

// Returns the dims that inputs will have: from files, --shape, the model, or guessed.
Result<std::vector<Dims>> SizesOf(const Arguments& a, const InputFiles& files,
                                  const Module& module) {
  MSRT_ASSIGN_OR_RETURN(GivenSizes given, ParseSizes("--shape", a.shapes));
  for (const auto& [name, path] : files) {
    if (std::filesystem::is_directory(path)) continue;  // a list, whose elements may differ
    MSRT_ASSIGN_OR_RETURN(const ConstTensor t, ReadNpy(path));
    given[name] = t.dims;
  }
  return SizesToRun("--shape", given, module);
}

}  // namespace

Result<CompileOptions> CompileOptionsFor(const Arguments& a, const Environment& env) {
  CompileOptions options;
  options.load_by_copy = a.copy_file;
  options.passes.disabled = a.disabled_passes;
  options.place.delegates = SplitCommas(a.delegates);
  options.place.exact = a.accuracy == "exact";
  options.place.reduced = a.accuracy == "fast";
  options.place.strict = a.strict;
  if (!a.costs.empty()) {
    MSRT_ASSIGN_OR_RETURN(options.place.costs, ReadCosts(env, a.costs, msrt_version()));
  }
  for (const std::string& text : a.pins) {
    MSRT_ASSIGN_OR_RETURN(Pin pin, ParsePin(text));
    options.place.pins.push_back(std::move(pin));
  }
  return options;
}

namespace {

Result<Module> ModelFor(const Arguments& a, Io* io) {
  zoo::Options options;
  options.image = a.image;
  return IsZooName(a.model) ? BuildFromZoo(a.model, options) : ReadModel(io, a.model);
}

// The model, or a training form of it with the same inputs as the one that runs.
Result<Module> ModuleWithInputs(const Arguments& a, Io* io) {
  Result<Module> model = ModelFor(a, io);
  if (!model.ok() || a.training.empty()) return model;
  MSRT_ASSIGN_OR_RETURN(const TrainingSpec spec, TrainingSpecOf(a));
  return MakeTrainingModule(*std::move(model), spec);
}

// The training form of the model, for the typical dims in `compile`.
Result<Module> TrainingFormFor(const Arguments& a, const Environment& env, CompileOptions* compile,
                               Workload* w) {
  MSRT_ASSIGN_OR_RETURN(Module model, ModelFor(a, env.io));
  MSRT_ASSIGN_OR_RETURN(TrainingSpec spec, TrainingSpecOf(a));
  double rate = 0;  // an input of the step
  const TrainingSettings settings{&spec, compile, &rate};
  MSRT_ASSIGN_OR_RETURN(const Boost boost, ApplySpeedOptions(a.speed, env.evaluator, settings));
  // Only single steps are measured, so that what changes a whole run has no place here.
  spec.freezing_stages = 0;
  spec.accumulation = 1;
  SpecReport report;
  MSRT_ASSIGN_OR_RETURN(Module module,
                        MakeTrainingModule(std::move(model), spec, env.ops.get(), &report));
  w->changes = ListChanges(boost, settings, report);
  if (spec.activations.is_set()) w->activations = report.activations;
  return module;
}

}  // namespace

Result<Workload> Prepare(const Arguments& a) {
  Workload w;
  MSRT_ASSIGN_OR_RETURN(const auto pairs, SplitPairs("--input", a.inputs));
  const InputFiles files(pairs.begin(), pairs.end());
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Environment> env, MakeEnvironment(a));
  MSRT_ASSIGN_OR_RETURN(CompileOptions options, CompileOptionsFor(a, *env));
  // The model is placed for the sizes that this run will use, and these depend on its inputs, so it
  // is read twice.
  std::vector<Dims> sizes;
  {
    MSRT_ASSIGN_OR_RETURN(const Module module, ModuleWithInputs(a, env->io));
    MSRT_RETURN_IF_ERROR(CheckForModel(a, files, module.main()));
    MSRT_ASSIGN_OR_RETURN(sizes, SizesOf(a, files, module));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Value& input = module.main().value(module.main().inputs[i]);
      if (input.type.is_tensor()) options.typical.emplace_back(input.name, sizes[i]);
    }
  }
  const StopWatch watch;
  int64_t classes = 0;
  if (!a.training.empty()) {
    MSRT_ASSIGN_OR_RETURN(Module module, TrainingFormFor(a, *env, &options, &w));
    classes = std::max<int64_t>(1, OutputClasses(module));
    MSRT_ASSIGN_OR_RETURN(w.model, CompileModule(env, std::move(module), options));
  } else if (a.image != 0) {
    MSRT_ASSIGN_OR_RETURN(Module module, ModelFor(a, env->io));
    MSRT_ASSIGN_OR_RETURN(w.model, CompileModule(env, std::move(module), options));
  } else {
    MSRT_ASSIGN_OR_RETURN(w.model, CompileNamed(env, a.model, options));
  }
  MSRT_ASSIGN_OR_RETURN(w.session, Session::Create(w.model, 0, {.memory_cap_bytes = a.memory_cap}));
  w.load_millis = watch.Millis();

  const Graph& graph = w.session->graph();
  std::mt19937_64 random(a.seed);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto file = files.find(graph.value(graph.inputs[i]).name);
    RunValue value;
    if (file != files.end()) {
      MSRT_ASSIGN_OR_RETURN(value, ReadValue(file->second, graph.value(graph.inputs[i]).type));
    } else if (!a.training.empty()) {
      MSRT_ASSIGN_OR_RETURN(value,
                            RandomTrainingValue(graph, graph.inputs[i], sizes[i], classes, random));
    } else {
      MSRT_ASSIGN_OR_RETURN(value, RandomValue(graph, graph.inputs[i], sizes[i], random));
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
