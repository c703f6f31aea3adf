#include "tools/msconvert/convert.h"

#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/base/clock.h"
#include "core/base/units.h"
#include "core/base/watched_io.h"
#include "core/graph/constants.h"
#include "core/model/load.h"
#include "core/model/write.h"
#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tools/files/plugin_file.h"
#include "tools/msconvert/environment.h"
#include "tools/msconvert/foreign_format.h"
#include "tools/msconvert/native.h"
#include "tools/msconvert/progress.h"
#include "tools/msconvert/slow_nodes.h"
#include "tools/msconvert/state.h"
#include "tools/msconvert/verify.h"
#include "tools/msconvert/weights.h"
#if defined(MSRT_HAVE_MINDIR)
#include "tools/msconvert/mindir/checkpoint.h"
#include "tools/msconvert/mindir/export.h"
#include "tools/msconvert/mindir/import.h"
#endif
#if defined(MSRT_HAVE_ONNX)
#include "tools/msconvert/onnx/importer.h"
#endif

namespace msrt {
namespace {

// Passes that create ops of ours, which MindSpore does not know.
constexpr std::string_view kNotForMindIr[] = {"recognize_attention", "fuse_epilogue"};

int Fail(const Status& status, ExitCode code = kFailed) {
  std::cerr << "msconvert: " << status.message() << "\n";
  return code;
}

class Conversion {
 public:
  Conversion(const ConvertArguments& arguments, const CheckedArguments& checked, FilesRead* read)
      : a_(arguments),
        checked_(checked),
        io_(DefaultIo(), read),
        progress_(!a_.quiet && (a_.progress || WantsProgress(a_.input))) {}

  Result<ExitCode> Run() {
    MSRT_RETURN_IF_ERROR(LoadPlugins());
    MSRT_ASSIGN_OR_RETURN(const ExitCode read, Read());
    if (read != kDone) return read;
    MSRT_RETURN_IF_ERROR(LoadWeights());
    MSRT_RETURN_IF_ERROR(Validate(&module_, ops()));
    nodes_read_ = module_.main().nodes.size();
    if (!a_.states.empty()) {
      MSRT_RETURN_IF_ERROR(KeepAsState(a_.states, &module_));
      MSRT_RETURN_IF_ERROR(Validate(&module_, ops()));
    }
    if (a_.check) {
      Say(StrCat(a_.input, ": ", module_.main().nodes.size(),
                 " nodes, everything can be converted\n"));
      return kDone;
    }
    MSRT_RETURN_IF_ERROR(Optimize());
    MSRT_RETURN_IF_ERROR(StoreSmall());
    MSRT_RETURN_IF_ERROR(StorePacked());
    MSRT_ASSIGN_OR_RETURN(const ExitCode written, a_.to_mindir() ? WriteMindIr() : Write());
    if (written != kDone) return written;
    WarnAboutSlowNodes();
    return Compare();
  }

  // Writes the JSON report, also of a conversion that failed half-way.
  Status WriteReport() {
    if (a_.json.empty() || report_.is_null()) return OkStatus();
    const std::string text = report_.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    if (a_.json == "-") {
      std::cout << text << "\n";
      return OkStatus();
    }
    const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
    return io_.WriteFile(a_.json, pieces);
  }

  // Describes what the process was doing when it ran out of memory, with the sizes it knows.
  std::string OutOfMemoryText() const {
    std::error_code error;
    const auto file = std::filesystem::file_size(a_.input, error);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return StrCat("out of memory while ", stage_, " '", a_.input, "'",
                  error ? "" : StrCat(" (", BytesText(static_cast<double>(file)), ")"),
                  ": the process held ", BytesText(static_cast<double>(usage.ru_maxrss) * 1024),
                  ", and the next block was refused");
  }

 private:
  void Print(const std::string& text) {
    progress_.Clear();
    if (a_.json != "-") std::cout << text << std::flush;
  }
  // Prints one warning per line.
  void Warn(const std::string& lines) {
    progress_.Clear();
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);)
      std::cerr << "msconvert: warning: " << line << "\n";
  }
  // Say prints unless --quiet, SayDetail only with --verbose.
  void Say(const std::string& text) {
    if (!a_.quiet) Print(text);
  }
  void SayDetail(const std::string& text) {
    if (a_.verbose) Print(text);
  }

  // This tool does not run a plugin's kernels, but it needs the ops that the plugin defines.
  Status LoadPlugins() {
    for (const std::string& text : a_.plugins) {
      const PluginFile file = ParsePluginFile(text);
      MSRT_ASSIGN_OR_RETURN(const Registration plugin, LoadPlugin(file.path, file.options));
      MSRT_RETURN_IF_ERROR(Join(plugin, &plugins_).Within(StrCat("plugin '", file.path, "'")));
      importers_.insert(importers_.end(), plugin.importers.begin(), plugin.importers.end());
    }
    return OkStatus();
  }
  const OpSet* ops() const { return plugins_.ops.get(); }

  Result<ExitCode> Read() {
    stage_ = "reading";
    if (a_.from_zoo()) {
      MSRT_ASSIGN_OR_RETURN(module_, zoo::Build(std::string_view(a_.input).substr(4), a_.zoo));
      return kDone;
    }
    if (std::filesystem::is_directory(a_.input))
      return Unsupported("'", a_.input, "' ", ForeignFolder(a_.input));
    if (a_.from_msrt()) {
      MSRT_ASSIGN_OR_RETURN(module_, LoadFile(&io_, a_.input));
      return kDone;
    }
    MSRT_ASSIGN_OR_RETURN(const Bytes bytes, io_.MapFile(a_.input));
    if (const std::string foreign = ForeignFormatOf(bytes.data); !foreign.empty())
      return Unsupported("'", a_.input, "' ", foreign);
    from_mindir_ = IsMindIr(bytes.data);
    auto read = from_mindir_ ? ReadMindIr() : ReadOnnx();
    const std::string foreign = ForeignFormatOf(a_.input);
    if (read.ok() || read.status().code() != Code::kInvalidModel || foreign.empty()) return read;
    return Unsupported("'", a_.input, "' ", foreign);
  }

  bool IsMindIr(std::span<const std::byte> bytes) const {
#if defined(MSRT_HAVE_MINDIR)
    return a_.input.ends_with(".mindir") || mindir_import::LooksLikeMindIr(bytes);
#else
    (void)bytes;
    return false;
#endif
  }

  // Takes the module; if there are problems, lists everything that blocks conversion instead.
  template <typename ImportResult>
  ExitCode Take(ImportResult imported) {
    report_ = nlohmann::json::parse(imported.problems.Json());
    if (!imported.problems.empty()) {
      progress_.Clear();
      std::cerr << "msconvert: '" << a_.input << "' cannot be converted:\n"
                << imported.problems.Text();
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
    const mindir_import::ImportOptions options{
        .shapes = checked_.shapes, .for_training = a_.train, .progress = ImportProgress()};
    MSRT_ASSIGN_OR_RETURN(mindir_import::ImportResult imported,
                          mindir_import::ImportFile(a_.input, options, &io_));
    return Take(std::move(imported));
#else
    return Unsupported("'", a_.input,
                       "': this build does not read MindIR; build it with protobuf (tools/setup)");
#endif
  }

  // Replaces the model's weights by those of a checkpoint.
  Status LoadWeights() {
    if (a_.checkpoint.empty()) return OkStatus();
#if defined(MSRT_HAVE_MINDIR)
    MSRT_ASSIGN_OR_RETURN(const mindir_import::CheckpointLoad load,
                          mindir_import::LoadCheckpoint(a_.checkpoint, &io_, &module_));
    std::string text = StrCat(a_.checkpoint, ": ", load.loaded, " weights\n");
    for (const std::string& name : load.unused)
      StrAppend(&text, "  '", name, "' is no weight of the model\n");
    Say(text);
    return OkStatus();
#else
    return Unsupported(
        "--ckpt: this build does not read checkpoints; build it with protobuf (tools/setup)");
#endif
  }

  Result<ExitCode> ReadOnnx() {
#if defined(MSRT_HAVE_ONNX)
    const onnx_import::ImportOptions options{.shapes = checked_.shapes,
                                             .keep_unknown = a_.keep_unknown,
                                             .for_training = a_.train,
                                             .progress = ImportProgress(),
                                             .importers = importers_,
                                             .ops = ops(),
                                             .evaluator = &BuiltinEvaluator()};
    MSRT_ASSIGN_OR_RETURN(onnx_import::ImportResult imported,
                          onnx_import::ImportFile(a_.input, options, &io_));
    return Take(std::move(imported));
#else
    return Unsupported("'", a_.input,
                       "': this build reads no ONNX; build it with protobuf and ONNX's message "
                       "definitions (tools/setup)");
#endif
  }

  Status Optimize() {
    // Training needs the parameters, normalisations and dropouts that passes fold and fuse; they
    // run when the trainer has added gradients.
    if (a_.optimize != "default" || a_.train) return OkStatus();
    const PassContext context{
        .evaluator = &BuiltinEvaluator(), .ops = ops(), .added = plugins_.passes};
    PassOptions options{.disabled = a_.disabled, .validate = true};
    // These passes decide how to compute, which is up to the machine that loads the file.
    options.disabled.insert(options.disabled.end(), {"widen_half", "recognize_quantized"});
    if (a_.to_mindir())
      options.disabled.insert(options.disabled.end(), std::begin(kNotForMindIr),
                              std::end(kNotForMindIr));
    else options.disabled.emplace_back("widen_weights");  // small weights stay small in the file
    stage_ = "optimising";
    progress_.At(stage_, 0);
    MSRT_ASSIGN_OR_RETURN(const std::vector<PassReport> reports,
                          RunPasses(context, options, &module_));
    progress_.At(stage_, 1);
    std::string text;
    for (const PassReport& r : reports) {
      char line[128];
      std::snprintf(line, sizeof line, "%-22s %5zu -> %5zu nodes %8.1f ms\n",
                    std::string(r.name).c_str(), r.nodes_before, r.nodes_after, r.millis);
      text += line;
    }
    passes_ = reports.size();
    SayDetail(text);
    return OkStatus();
  }

  Status StoreSmall() {
    if (checked_.storage.dtype == DType::kNone) return OkStatus();
    if (!a_.verify.empty()) before_weights_ = module_;
    MSRT_ASSIGN_OR_RETURN(const WeightReport weights, StoreWeights(checked_.storage, &module_));
    Say(weights.Text());
    report_["weights"] = nlohmann::json::parse(weights.Json());
    return Validate(&module_, ops());
  }

  Status StorePacked() {
    if (!a_.native()) return OkStatus();
    const NativeOptions options{a_.threads, checked_.typical, a_.disabled};
    stage_ = "packing";
    progress_.At(stage_, 0);
    MSRT_ASSIGN_OR_RETURN(NativeModel packed,
                          PackForThisMachine(plugins_, std::move(module_), options));
    progress_.At(stage_, 1);
    Say(packed.Text());
    report_["native"] = nlohmann::json::parse(packed.Json());
    module_ = std::move(packed.module);
    extras_ = std::move(packed.extras);
    return OkStatus();
  }

  Result<ExitCode> Write() {
    stage_ = "writing";
    const std::unique_ptr<Io> watched = MakeWatchedIo([this](uint64_t written, uint64_t total) {
      progress_.At(stage_, static_cast<double>(written) / static_cast<double>(total));
    });
    io_.WriteThrough(watched.get());
    MSRT_RETURN_IF_ERROR(WriteModel(module_, a_.output, &io_, {.extras = &extras_}));
    io_.WriteThrough(DefaultIo());
    SayWritten();
    return kDone;
  }

  Result<ExitCode> WriteMindIr() {
#if defined(MSRT_HAVE_MINDIR)
    MSRT_ASSIGN_OR_RETURN(const auto refusals, mindir_export::WriteFile(module_, a_.output, &io_));
    if (!refusals.empty()) {
      Problems problems(mindir_export::CureFor);
      for (const mindir_export::Refusal& r : refusals) problems.Add(r.op, 0, r.node, r.reason);
      report_ = nlohmann::json::parse(problems.Json());
      progress_.Clear();
      std::cerr << "msconvert: '" << a_.input << "' cannot be written as MindIR:\n"
                << problems.Text();
      return kProblems;
    }
    SayWritten();
    return kDone;
#else
    return Unsupported("'", a_.output,
                       "': this build writes .msrt only; build it with protobuf (tools/setup)");
#endif
  }

  void SayWritten() {
    const size_t nodes = module_.main().nodes.size();
    std::string text = StrCat(a_.output, ": ", nodes, " nodes");
    if (passes_ != 0) StrAppend(&text, " (", nodes_read_, " before ", passes_, " passes)");
    char figures[96];
    std::snprintf(figures, sizeof figures, ", %.1f MB of weights, %.0f ms\n",
                  static_cast<double>(ConstantBytes(module_)) * 1e-6, watch_.Millis());
    Say(text + figures);
  }

  // Says nothing if the model cannot be estimated, such as one with ops that only the application
  // knows.
  void WarnAboutSlowNodes() {
    constexpr size_t kLargeBytes = size_t{256} << 20;
    if (a_.to_mindir()) return;
    stage_ = "estimating";
    PassOptions passes{.disabled = a_.disabled};
    // Making large weights f32 again would take longer than all the rest.
    if (ConstantBytes(module_) > kLargeBytes) passes.disabled.emplace_back("widen_weights");
    const auto warning =
        SlowNodesWarning(LocalEnvironment(plugins_, a_.threads), module_, checked_.typical, passes);
    if (!warning.ok() || warning->empty()) return;
    report_["warnings"].push_back(*warning);
    Warn(*warning);
  }

  Result<ExitCode> Compare() {
    if (a_.verify.empty()) return kDone;
    stage_ = "verifying";
    VerifyRequest request;
    request.environment = LocalEnvironment(plugins_);
    request.original_path = a_.input;
    request.msrt_path = a_.output;
    if (a_.verifies_folder()) request.folder = a_.verify;
    else request.runtime = from_mindir_ ? &MindSporeKind() : &OnnxRuntimeKind();
    request.shapes = checked_.shapes;
    request.sizes = checked_.verify_shapes;
    request.inputs = checked_.inputs;
    const bool judged = a_.tolerance >= 0;
    if (judged) request.tolerance = a_.tolerance;
    // A tolerance given by the user applies to the file. Otherwise the module before its weights
    // were stored small must agree, and the error of the weights is only reported.
    if (before_weights_ && !judged) request.before_weights = &*before_weights_;
    MSRT_ASSIGN_OR_RETURN(const VerifyReport verified, Verify(request));
    report_["verify"] = nlohmann::json::parse(verified.Json());
    Print(verified.Text());
    Warn(verified.warnings);
    if (verified.agrees) return kDone;
    std::cerr << "msconvert: '" << a_.output
              << "' was written, but verification failed: " << verified.problem << "\n";
    return kDiffers;
  }

  const ConvertArguments& a_;
  const CheckedArguments& checked_;
  GuardedIo io_;
  const StopWatch watch_;
  Environment plugins_;
  std::vector<RegisteredImporter> importers_;
  Progress progress_;
  std::string stage_ = "starting";
  size_t nodes_read_ = 0, passes_ = 0;
  bool from_mindir_ = false;
  Module module_;
  ModelExtras extras_;
  std::optional<Module> before_weights_;
  nlohmann::json report_;
};

}  // namespace

int Convert(const ConvertArguments& arguments) {
  FilesRead read;
  const auto checked = Check(arguments, &read);
  if (!checked.ok()) return Fail(checked.status(), kWrongCommandLine);
  Conversion conversion(arguments, *checked, &read);
  const auto done = [&]() -> Result<ExitCode> {
    try {
      return conversion.Run();
    } catch (const std::bad_alloc&) {
      return Status(Code::kOutOfMemory, conversion.OutOfMemoryText());
    }
  }();
  const Status reported = conversion.WriteReport();
  if (!done.ok()) return Fail(done.status());
  return reported.ok() ? *done : Fail(reported);
}

}  // namespace msrt
