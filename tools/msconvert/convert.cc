#include "tools/msconvert/convert.h"

#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/clock.h"
#include "core/base/watched_io.h"
#include "core/graph/constants.h"
#include "core/model/load.h"
#include "core/model/write.h"
#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tools/msconvert/native.h"
#include "tools/msconvert/progress.h"
#include "tools/msconvert/state.h"
#include "tools/msconvert/weights.h"
#include "tools/tensors/made_input.h"
#if defined(MSRT_HAVE_MINDIR)
#include "tools/msconvert/mindir/checkpoint.h"
#include "tools/msconvert/mindir/export.h"
#include "tools/msconvert/mindir/import.h"
#endif
#if defined(MSRT_HAVE_ONNX)
#include "tools/msconvert/onnx/importer.h"
#include "tools/msconvert/verify.h"
#endif

namespace msrt {
namespace {

constexpr std::string_view kZoo = "zoo:", kMsrt = ".msrt", kMindIr = ".mindir";
// Of the ops that passes make, MindSpore has none: what it is given stays in ops that others know.
constexpr std::string_view kNotForMindIr[] = {"recognize_attention", "fuse_epilogue"};

int Fail(const Status& status) {
  std::cerr << "msconvert: " << status.message() << "\n";
  return kFailed;
}

// "NAME=1x3x224x224".
Result<std::map<std::string, Dims>> ParseShapes(std::string_view option, const std::vector<std::string>& texts) {
  std::map<std::string, Dims> shapes;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    auto dims = equals == std::string::npos ? Result<Dims>(InvalidArgument("")) : ParseShape(text.substr(equals + 1));
    if (!dims.ok() || equals == 0) return InvalidArgument(option, " ", text, ": must look like NAME=1x3x224x224");
    shapes[text.substr(0, equals)] = *dims;
  }
  return shapes;
}

class Conversion {
 public:
  explicit Conversion(const ConvertArguments& arguments)
      : a_(arguments), progress_(!a_.quiet && (a_.progress || WantsProgress(a_.input))) {}

  Result<ExitCode> Run() {
    MSRT_RETURN_IF_ERROR(CheckArguments());
    MSRT_RETURN_IF_ERROR(LoadPlugins());
    MSRT_ASSIGN_OR_RETURN(const ExitCode read, Read());
    if (read != kDone) return read;
    MSRT_RETURN_IF_ERROR(LoadWeights());
    MSRT_RETURN_IF_ERROR(Validate(&module_, ops()));
    if (!a_.states.empty()) {
      MSRT_RETURN_IF_ERROR(KeepAsState(a_.states, &module_));
      MSRT_RETURN_IF_ERROR(Validate(&module_, ops()));
    }
    if (a_.check) {
      Say(StrCat(a_.input, ": ", module_.main().nodes.size(), " nodes, everything can be converted\n"));
      return kDone;
    }
    MSRT_RETURN_IF_ERROR(Optimize());
    MSRT_RETURN_IF_ERROR(StoreSmall());
    MSRT_RETURN_IF_ERROR(StorePacked());
    MSRT_ASSIGN_OR_RETURN(const ExitCode written, to_mindir() ? WriteMindIr() : Write());
    if (written != kDone) return written;
    return Compare();
  }

  // What there is to report, however far it came.
  Status WriteReport() const {
    if (a_.json.empty() || report_.is_null()) return OkStatus();
    const std::string text = report_.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    if (a_.json == "-") {
      std::cout << text << "\n";
      return OkStatus();
    }
    const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
    return DefaultIo()->WriteFile(a_.json, pieces);
  }

 private:
  bool from_zoo() const { return a_.input.starts_with(kZoo); }
  bool to_mindir() const { return a_.output.ends_with(kMindIr); }
  bool native() const { return a_.target == "native"; }

  void Say(const std::string& text) {
    progress_.Clear();
    if (!a_.quiet && a_.json != "-") std::cout << text << std::flush;
  }

  Status CheckArguments() {
    MSRT_ASSIGN_OR_RETURN(shapes_, ParseShapes("--shape", a_.shapes));
    MSRT_ASSIGN_OR_RETURN(typical_, ParseShapes("--typical", a_.typical));
    if (!a_.weights.empty()) {
      MSRT_ASSIGN_OR_RETURN(storage_, ParseWeightStorage(a_.weights, a_.weights_block));
    }
    if (!a_.verify.empty() && from_zoo()) return InvalidArgument("--verify: a network of the zoo has no original to be compared with");
    if (!a_.verify.empty() && !a_.states.empty()) {
      return InvalidArgument("--verify: with --state the model has other inputs and outputs than the original; verify it without");
    }
    if (!a_.verify.empty() && to_mindir()) return InvalidArgument("--verify runs .msrt files; MindSpore runs a .mindir");
    if (!a_.weights.empty() && to_mindir()) return InvalidArgument("--weights: MindIR has no weights that are stored small");
    if (!a_.verify.empty() && a_.check) return InvalidArgument("--verify runs what was written, and --check writes nothing");
    return native() ? CheckNative() : CheckPortable();
  }

  Status CheckPortable() const {
    if (!a_.typical.empty()) return InvalidArgument("--typical is for --target native; a portable file is packed when it is loaded");
    if (a_.threads != 0) return InvalidArgument("--threads is for --target native; a portable file is packed when it is loaded");
    return OkStatus();
  }

  Status CheckNative() const {
    if (a_.check) return InvalidArgument("--target native packs what is written, and --check writes nothing");
    if (to_mindir()) return InvalidArgument("--target native is for .msrt files; MindIR has no packed weights");
    if (!a_.weights.empty()) {
      return InvalidArgument("--weights ", a_.weights,
                             " makes a file small and --target native makes loading fast, with weights as f32; choose one");
    }
    if (a_.optimize != "default")
      return InvalidArgument("--target native packs the weights as they are after all passes; leave --optimize out");
    return OkStatus();
  }

  // Kernels are not for this tool, but the ops that they define are.
  Status LoadPlugins() {
    for (const std::string& path : a_.plugins) {
      MSRT_ASSIGN_OR_RETURN(const Registration plugin, LoadPlugin(path, ""));
      MSRT_RETURN_IF_ERROR(Join(plugin, &plugins_).Within(StrCat("plugin '", path, "'")));
      importers_.insert(importers_.end(), plugin.importers.begin(), plugin.importers.end());
    }
    return OkStatus();
  }
  const OpSet* ops() const { return plugins_.ops.get(); }

  Result<ExitCode> Read() {
    if (from_zoo()) {
      MSRT_ASSIGN_OR_RETURN(module_, zoo::Build(std::string_view(a_.input).substr(kZoo.size()), a_.zoo));
      return kDone;
    }
    if (a_.input.ends_with(kMsrt)) {
      if (!shapes_.empty()) return InvalidArgument("--shape is for models of other formats; a .msrt file says its shapes");
      MSRT_ASSIGN_OR_RETURN(module_, LoadFile(DefaultIo(), a_.input));
      return kDone;
    }
    MSRT_ASSIGN_OR_RETURN(const bool mindir, IsMindIr());
    return mindir ? ReadMindIr() : ReadOnnx();
  }

  Result<bool> IsMindIr() const {
#if defined(MSRT_HAVE_MINDIR)
    if (a_.input.ends_with(".mindir")) return true;
    MSRT_ASSIGN_OR_RETURN(const Bytes bytes, DefaultIo()->MapFile(a_.input));
    return mindir_import::LooksLikeMindIr(bytes.data);
#else
    return false;
#endif
  }

  // Everything that stands in the way, in the report and to the user; or the module.
  template <typename Imported>
  ExitCode Take(Imported imported) {
    report_ = nlohmann::json::parse(imported.problems.Json());
    if (!imported.problems.empty()) {
      progress_.Clear();
      std::cerr << "msconvert: '" << a_.input << "' cannot be converted:\n" << imported.problems.Text();
      return kProblems;
    }
    module_ = std::move(imported.module);
    return kDone;
  }

  std::function<void(std::string_view, double)> ImportProgress() {
    if (!progress_.on()) return {};
    return [this](std::string_view stage, double part) { progress_.At(stage, part); };
  }

  Result<ExitCode> ReadMindIr() {
#if defined(MSRT_HAVE_MINDIR)
    const mindir_import::ImportOptions options{.shapes = shapes_, .progress = ImportProgress()};
    MSRT_ASSIGN_OR_RETURN(mindir_import::Imported imported, mindir_import::ImportFile(a_.input, options, DefaultIo()));
    return Take(std::move(imported));
#else
    return Unsupported("'", a_.input, "': this build does not read MindIR; build it with protobuf (tools/setup)");
#endif
  }

  // The weights of a checkpoint instead of the model's own.
  Status LoadWeights() {
    if (a_.checkpoint.empty()) return OkStatus();
#if defined(MSRT_HAVE_MINDIR)
    MSRT_ASSIGN_OR_RETURN(const mindir_import::CheckpointLoad load, mindir_import::LoadCheckpoint(a_.checkpoint, DefaultIo(), &module_));
    std::string text = StrCat(a_.checkpoint, ": ", load.loaded, " weights\n");
    for (const std::string& name : load.unused) StrAppend(&text, "  '", name, "' is no weight of the model\n");
    Say(text);
    return OkStatus();
#else
    return Unsupported("--ckpt: this build does not read checkpoints; build it with protobuf (tools/setup)");
#endif
  }

  Result<ExitCode> ReadOnnx() {
#if defined(MSRT_HAVE_ONNX)
    const onnx_import::ImportOptions options{.shapes = shapes_,
                                             .keep_unknown = a_.keep_unknown,
                                             .progress = ImportProgress(),
                                             .importers = importers_,
                                             .ops = ops(),
                                             .evaluator = &BuiltinEvaluator()};
    MSRT_ASSIGN_OR_RETURN(onnx_import::Imported imported, onnx_import::ImportFile(a_.input, options, DefaultIo()));
    return Take(std::move(imported));
#else
    return Unsupported("'", a_.input, "': this build reads no ONNX; build it with protobuf and ONNX's message definitions (tools/setup)");
#endif
  }

  Status Optimize() {
    if (a_.optimize != "default") return OkStatus();
    const PassContext context{.evaluator = &BuiltinEvaluator(), .ops = ops(), .added = plugins_.passes};
    PassOptions options{.disabled = a_.disabled, .validate = true};
    if (to_mindir()) options.disabled.insert(options.disabled.end(), std::begin(kNotForMindIr), std::end(kNotForMindIr));
    else options.disabled.emplace_back("widen_weights");  // what is stored small stays so in the file
    progress_.At("optimising", 0);
    MSRT_ASSIGN_OR_RETURN(const std::vector<PassReport> reports, RunPasses(context, options, &module_));
    progress_.At("optimising", 1);
    std::string text;
    for (const PassReport& r : reports) {
      char line[128];
      std::snprintf(line, sizeof line, "%-22s %5zu -> %5zu nodes %8.1f ms\n", std::string(r.name).c_str(), r.nodes_before, r.nodes_after,
                    r.millis);
      text += line;
    }
    Say(text);
    return OkStatus();
  }

  Status StoreSmall() {
    if (storage_.dtype == DType::kNone) return OkStatus();
    if (!a_.verify.empty()) before_weights_ = module_;
    MSRT_ASSIGN_OR_RETURN(const WeightReport weights, StoreWeights(storage_, &module_));
    Say(weights.Text());
    report_["weights"] = nlohmann::json::parse(weights.Json());
    return Validate(&module_, ops());
  }

  Status StorePacked() {
    if (!native()) return OkStatus();
    const NativeOptions options{a_.threads, typical_, a_.disabled};
    progress_.At("packing", 0);
    MSRT_ASSIGN_OR_RETURN(NativeModel packed, PackForThisMachine(plugins_, std::move(module_), options));
    progress_.At("packing", 1);
    Say(packed.Text());
    report_["native"] = nlohmann::json::parse(packed.Json());
    module_ = std::move(packed.module);
    extras_ = std::move(packed.extras);
    return OkStatus();
  }

  Result<ExitCode> Write() {
    const std::unique_ptr<Io> watched = MakeWatchedIo(
        [this](uint64_t written, uint64_t total) { progress_.At("writing", static_cast<double>(written) / static_cast<double>(total)); });
    MSRT_RETURN_IF_ERROR(WriteModel(module_, a_.output, progress_.on() ? watched.get() : DefaultIo(), {.extras = &extras_}));
    SayWritten();
    return kDone;
  }

  Result<ExitCode> WriteMindIr() {
#if defined(MSRT_HAVE_MINDIR)
    MSRT_ASSIGN_OR_RETURN(const auto refusals, mindir_export::WriteFile(module_, a_.output, DefaultIo()));
    if (!refusals.empty()) {
      Problems problems(mindir_export::CureFor);
      for (const mindir_export::Refusal& r : refusals) problems.Add(r.op, 0, r.node, r.reason);
      report_ = nlohmann::json::parse(problems.Json());
      progress_.Clear();
      std::cerr << "msconvert: '" << a_.input << "' cannot be written as MindIR:\n" << problems.Text();
      return kProblems;
    }
    SayWritten();
    return kDone;
#else
    return Unsupported("'", a_.output, "': this build writes .msrt only; build it with protobuf (tools/setup)");
#endif
  }

  void SayWritten() {
    char figures[96];
    std::snprintf(figures, sizeof figures, ": %zu nodes, %.1f MB of weights, %.0f ms\n", module_.main().nodes.size(),
                  static_cast<double>(ConstantBytes(module_)) * 1e-6, watch_.Millis());
    Say(a_.output + figures);
  }

  Result<ExitCode> Compare() {
#if defined(MSRT_HAVE_ONNX)
    if (a_.verify.empty()) return kDone;
    VerifyRequest request{.onnx_path = a_.input, .msrt_path = a_.output, .against = a_.verify, .shapes = shapes_};
    const bool judged = a_.tolerance >= 0;
    if (judged) request.tolerance = a_.tolerance;
    // A user who names a tolerance means the file; otherwise the weights' errors are told, and all the rest must agree.
    if (before_weights_ && !judged) request.before_weights = &*before_weights_;
    MSRT_ASSIGN_OR_RETURN(const VerifyReport verified, Verify(request));
    report_["verify"] = nlohmann::json::parse(verified.Json());
    Say(verified.Text());
    if (verified.agrees) return kDone;
    std::cerr << "msconvert: '" << a_.output << "' was written, but differs from the reference by more than " << verified.tolerance
              << " of an output's range; " << verified.culprit << "\n";
    return kDiffers;
#else
    return kDone;
#endif
  }

  const ConvertArguments& a_;
  const StopWatch watch_;
  Environment plugins_;
  std::vector<RegisteredImporter> importers_;
  Progress progress_;
  std::map<std::string, Dims> shapes_, typical_;
  WeightStorage storage_;
  Module module_;
  ModelExtras extras_;
  std::optional<Module> before_weights_;
  nlohmann::json report_;
};

}  // namespace

int Convert(const ConvertArguments& arguments) {
  Conversion conversion(arguments);
  const auto done = conversion.Run();
  const Status reported = conversion.WriteReport();
  if (!done.ok()) return Fail(done.status());
  return reported.ok() ? *done : Fail(reported);
}

}  // namespace msrt
