#include "tools/msrun/arguments.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "core/api/version.h"
#include "core/place/pin.h"
#include "core/train/training_spec.h"
#include "tools/files/plugin_file.h"
#include "tools/msrun/launch_arguments.h"
#include "tools/msrun/model_source.h"
#include "tools/tensors/sizes.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    R"(Other forms:
  msrun MODEL [options]            the same as msrun bench MODEL
  msrun zoo:lenet                  a network that is built in (msconvert --help lists them)
  msrun image MODEL IN OUT         a model over an image of any size (msrun image --help)
  msrun train --model zoo:resnet18 --data DIR --output DIR    training (msrun train --help)
  msrun --compare A.json B.json    two reports of --json side by side
  msrun launch -n 4 -- COMMAND     four processes that form a job
  msrun VERB --help                the options of a verb
  msrun --version                  version, build, libraries and processor

Exit codes:
  0  done
  1  failed: a file cannot be read or written, the model cannot run as asked, or --check found a difference
  2  wrong command line: nothing was done)";

void AddCommonOptions(CLI::App* app, Arguments* a) {
  app->add_option(
         "--plugin", a->plugins,
         "PATH[:OPTIONS]: a shared library that brings delegates, kernels and ops (several times)")
      ->take_all();
  auto* quiet =
      app->add_flag("--quiet", a->quiet, "print errors and what an option asks for, nothing else");
  app->add_flag("--verbose", a->verbose,
                "print what the runtime logs: choices, fallbacks, what it could not measure")
      ->excludes(quiet);
}

void AddRunOptions(CLI::App* app, Arguments* a) {
  AddCommonOptions(app, a);
  app->add_option("--input", a->inputs,
                  "NAME=FILE.npy, for a list NAME=FOLDER with 0.npy, 1.npy, ...; inputs that are "
                  "not given are seeded random numbers");
  app->add_option("--shape", a->shapes,
                  "NAME=1x3x224x224, the dims of an input, or SYMBOL=8, of a symbol in all inputs "
                  "(several times)");
  app->add_option("--threads", a->threads, "0: one for each core")->check(CLI::Range(0, 4096));
  app->add_option("--delegate", a->delegates, "allow only these, comma-separated");
  app->add_option("--accuracy", a->accuracy,
                  "exact: one arithmetic for each node, whatever the costs and however work is "
                  "cut; fast: products "
                  "may be in bf16 (errors of about 1e-2 "
                  "of a result's range), which is the default for bf16 models only")
      ->check(CLI::IsMember({"exact", "default", "fast"}));
  app->add_option("--disable", a->disabled_passes, "a pass to leave out, or 'all' (several times)");
  app->add_option("--seed", a->seed, "of random inputs")->check(CLI::NonNegativeNumber);
  app->add_option("--memory-cap", a->memory_cap, "bytes that the session may take; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app->add_flag("--copy", a->copy_file, "read the file instead of mapping it");
  app->add_flag("--strict", a->strict, "a delegate that fails to compile is an error");
  app->add_option("--costs", a->costs,
                  "a file of measured costs, made by 'msrun calibrate', instead of estimates")
      ->check(CLI::ExistingFile);
  app->add_option(
         "--pin", a->pins,
         "node:NAME=DELEGATE, op:OP!=DELEGATE: where nodes must or must not run (several times)")
      ->take_all();
}

// Options for output that bench and run share.
void AddOutputOptions(CLI::App* app, Arguments* a) {
  // A flag with a value, so that a model's name may follow it.
  app->add_flag("--explain{text}", a->explain,
                "where each node runs, and why; --explain=json, =svg, =svg:FILE")
      ->check([](const std::string& how) {
        const std::string form = how.substr(0, how.find(':'));
        return form == "text" || form == "json" || form == "svg"
                   ? ""
                   : "'" + how + "' must be text, json or svg, and may end in :FILE";
      });
  app->add_option("--dump", a->dump, "print a stage")
      ->check(CLI::IsMember({"graph", "passes", "placement", "program", "binding"}));
  app->add_option("--output-dir", a->output_dir,
                  "write each output as <name>.npy, lists as folders");
  auto* check =
      app->add_option("--check", a->check_dir, "compare each output with REF_DIR/<name>.npy")
          ->check(CLI::ExistingDirectory);
  app->add_option("--rtol", a->rtol,
                  "largest difference that --check allows, as a part of the reference's range")
      ->check(CLI::NonNegativeNumber)
      ->needs(check);
}

Status CheckExclusive(const Arguments& a) {
  std::vector<std::pair<std::string, std::string>> written;
  if (!a.json.empty()) written.emplace_back("--json", a.json);
  if (!a.trace.empty()) written.emplace_back("--trace", a.trace);
  if (!a.explain.empty() && a.explain_file() != "-")
    written.emplace_back("--explain", a.explain_file());
  for (size_t i = 0; i < written.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (written[i].second == "-" || !SamePath(written[i].second, written[j].second)) continue;
      return InvalidArgument(written[j].first, " and ", written[i].first, " both write '",
                             written[i].second, "'; use another name");
    }
  }
  return OkStatus();
}

bool StartsWith(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}
constexpr FileKind kSvgFile = {
    "an SVG picture", [](std::span<const std::byte> bytes) { return StartsWith(bytes, "<svg"); }};
constexpr FileKind kCostsFile = {"a file of costs", [](std::span<const std::byte> bytes) {
                                   return StartsWith(bytes, "msrt costs");
                                 }};
constexpr FileKind kTextFile = {"a text", [](std::span<const std::byte> bytes) {
                                  return std::find(bytes.begin(), bytes.end(), std::byte{0}) ==
                                         bytes.end();
                                }};

// Returns an error unless the folder is writable or can be created.
Status CheckOutputFolder(std::string_view option, const std::string& path) {
  fs::path at = fs::absolute(path).lexically_normal();
  while (!fs::exists(at) && at.has_relative_path()) at = at.parent_path();
  if (!fs::is_directory(at))
    return InvalidArgument(option, " '", path, "': '", at.string(), "' is no folder");
  if (access(at.c_str(), W_OK | X_OK) == 0) return OkStatus();
  return IoError(option, " '", path, "' cannot be written: folder '", at.string(),
                 "': ", std::strerror(errno));
}

Status CheckOutputs(const Arguments& a) {
  const FilesRead read = FilesReadBy(a);
  if (!a.json.empty()) MSRT_RETURN_IF_ERROR(CheckOutputFile("--json", a.json, kJsonFile, read));
  if (!a.trace.empty()) MSRT_RETURN_IF_ERROR(CheckOutputFile("--trace", a.trace, kJsonFile, read));
  if (!a.explain.empty()) {
    const FileKind& kind = a.explain_form() == "svg"    ? kSvgFile
                           : a.explain_form() == "json" ? kJsonFile
                                                        : kTextFile;
    MSRT_RETURN_IF_ERROR(
        CheckOutputFile(StrCat("--explain=", a.explain_form()), a.explain_file(), kind, read));
  }
  if (!a.output_dir.empty()) MSRT_RETURN_IF_ERROR(CheckOutputFolder("--output-dir", a.output_dir));
  if (a.verb == Arguments::Verb::kCalibrate) {
    MSRT_RETURN_IF_ERROR(CheckOutputFile("--output", a.costs_file(), kCostsFile, read));
  }
  return CheckExclusive(a);
}

Status CheckInputs(const Arguments& a) {
  MSRT_ASSIGN_OR_RETURN(const auto files, SplitPairs("--input", a.inputs));
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (files[i].first == files[j].first)
        return InvalidArgument("--input ", files[i].first, " is given twice");
    }
    if (!fs::exists(files[i].second))
      return NotFound("--input ", a.inputs[i], ": there is no file '", files[i].second, "'");
  }
  MSRT_RETURN_IF_ERROR(ParseSizes("--shape", a.shapes).status());
  for (const std::string& pin : a.pins) MSRT_RETURN_IF_ERROR(ParsePin(pin).status());
  for (const std::string& text : a.plugins) {
    const PluginFile plugin = ParsePluginFile(text);
    // The system may find a bare name among its libraries.
    if (plugin.path.find('/') != std::string::npos && !fs::exists(plugin.path)) {
      return NotFound("--plugin ", text, ": there is no file '", plugin.path, "'");
    }
  }
  return OkStatus();
}

Status Check(const Arguments& a) {
  if (!a.compare.empty()) {
    if (!a.model.empty())
      return InvalidArgument("--compare reads two reports and runs no model; leave '", a.model,
                             "' out");
    for (const std::string& report : a.compare) {
      if (!fs::is_regular_file(report))
        return NotFound("--compare: there is no file '", report, "'");
    }
    return OkStatus();
  }
  if (a.model.empty() && a.verb != Arguments::Verb::kInfo)
    return InvalidArgument("which model? msrun MODEL.msrt, or msrun --help");
  if (!a.model.empty() && IsZooName(a.model)) {
    if (a.verb == Arguments::Verb::kCalibrate && a.output_file.empty())
      return InvalidArgument("name the file to write: --output FILE");
  } else if (!a.model.empty() && fs::is_directory(a.model)) {
    return InvalidArgument("model '", a.model, "' is a folder; name a .msrt file");
  } else if (!a.model.empty() && !fs::exists(a.model)) {
    return NotFound("model '", a.model, "': there is no such file");
  }
  if (a.image > 0 && !IsZooName(a.model))
    return InvalidArgument("--image is for models of the zoo; use --shape");
  if (!a.training.empty()) MSRT_RETURN_IF_ERROR(ParseOptimizer(a.training).status());
  MSRT_RETURN_IF_ERROR(CheckSpeedOptions(a.speed));
  if (a.streams > 1 && a.threads > 1) {
    return InvalidArgument("--threads ", a.threads, " with --streams ", a.streams,
                           ": each stream runs on one thread; leave --threads out");
  }
  MSRT_RETURN_IF_ERROR(CheckInputs(a));
  return CheckOutputs(a);
}

class CommandLine {
 public:
  explicit CommandLine(Arguments* arguments) : a_(*arguments) {
    app_.require_subcommand(1);
    app_.footer(kFooter);
    app_.set_version_flag("--version", BuildInfoText);
    AddBench();
    run_ = app_.add_subcommand("run", "run once and show the outputs");
    run_->add_option("model", a_.model, "a .msrt file, or zoo:NAME")->required();
    AddRunOptions(run_, &a_);
    AddOutputOptions(run_, &a_);
    calibrate_ =
        app_.add_subcommand("calibrate", "measure every way of running every node, for --costs");
    calibrate_->add_option("model", a_.model, "a .msrt file, or zoo:NAME")->required();
    AddRunOptions(calibrate_, &a_);
    calibrate_
        ->add_option("--seconds", calibrate_seconds_,
                     "nodes that are not measured by then keep their estimates")
        ->check(CLI::NonNegativeNumber);
    calibrate_->add_option("--output", a_.output_file, "the file to write instead of MODEL.costs");
    info_ = app_.add_subcommand(
        "info", "describe a model without compiling it, or, without one, what can run models here");
    info_->add_option("model", a_.model, "a .msrt file, or zoo:NAME");
    AddCommonOptions(info_, &a_);
    info_->add_option("--json", a_.json, "as JSON; - is standard output");
    launch_ = AddLaunch(&app_, &a_.launch);
  }

  // Returns as ParseArguments does.
  bool Parse(int argc, char** argv, int* exit_code) {
    // The short form: without a verb, --help or --version, the verb is bench.
    std::vector<std::string> texts(argv + 1, argv + argc);
    constexpr std::string_view kFirst[] = {"bench",  "run",    "calibrate", "info",
                                           "launch", "--help", "-h",        "--version"};
    const bool verb = texts.empty() ||
                      std::find(std::begin(kFirst), std::end(kFirst), texts[0]) != std::end(kFirst);
    if (!verb) texts.insert(texts.begin(), "bench");
    std::vector<std::string> launched;
    if (!texts.empty() && texts[0] == "launch") launched = CutLaunchCommand(&texts);
    std::reverse(texts.begin(), texts.end());  // the order that CLI11 takes
    try {
      app_.parse(texts);
    } catch (const CLI::ParseError& e) {
      *exit_code = app_.exit(e) == 0 ? kDone : kWrongCommandLine;
      return false;
    }
    using Verb = Arguments::Verb;
    a_.verb = run_->parsed()         ? Verb::kRun
              : calibrate_->parsed() ? Verb::kCalibrate
              : info_->parsed()      ? Verb::kInfo
              : launch_->parsed()    ? Verb::kLaunch
                                     : Verb::kBench;
    if (a_.verb == Verb::kCalibrate) a_.seconds = calibrate_seconds_;
    if (a_.verb == Verb::kLaunch) {
      const Status status = TakeLaunchCommand(*launch_, std::move(launched), &a_.launch);
      if (!status.ok()) {
        std::cerr << "msrun: " << status.message() << "\n";
        *exit_code = kWrongCommandLine;
        return false;
      }
    }
    return true;
  }

 private:
  void AddBench() {
    CLI::App* bench =
        app_.add_subcommand("bench", "measure latency, memory and where the time goes");
    bench->add_option("model", a_.model, "a .msrt file, or zoo:NAME");
    AddRunOptions(bench, &a_);
    AddOutputOptions(bench, &a_);
    bench->add_option("--seconds", a_.seconds, "how long to measure")
        ->check(CLI::NonNegativeNumber);
    bench->add_option("--warmup", a_.warmup, "runs before measuring")
        ->check(CLI::NonNegativeNumber);
    bench
        ->add_option(
            "--streams", a_.streams,
            "measure throughput: number of concurrent sessions of one model, each on one thread")
        ->check(CLI::Range(1, 4096));
    auto* training = bench->add_option(
        "--training", a_.training,
        "measure a training step, with this optimizer (momentum:0.9, adamw, ...)");
    bench->add_option("--loss", a_.loss, "of --training: cross-entropy, mse")
        ->check(CLI::IsMember({"cross-entropy", "mse"}))
        ->needs(training);
    AddSpeedOptions(bench, &a_.speed, training);
    bench->add_option("--image", a_.image, "height and width of a zoo model's images")
        ->check(CLI::Range(1, 1 << 16));
    bench->add_option("--json", a_.json, "write the report as JSON; - is standard output");
    bench->add_option("--trace", a_.trace,
                      "write a Chrome trace of a few runs (ui.perfetto.dev shows it)");
    bench->add_flag("!--no-ops", a_.per_op, "leave out the tables of ops");
    bench->add_option("--compare", a_.compare, "two JSON reports to compare")->expected(2);
  }

  Arguments& a_;
  CLI::App app_{"Runs and measures .msrt models.", "msrun"};
  CLI::App *run_ = nullptr, *calibrate_ = nullptr, *info_ = nullptr, *launch_ = nullptr;
  double calibrate_seconds_ = 60;
};

}  // namespace

std::string Arguments::explain_file() const {
  const size_t colon = explain.find(':');
  return colon == std::string::npos ? "-" : explain.substr(colon + 1);
}

Result<std::vector<std::pair<std::string, std::string>>> SplitPairs(
    std::string_view option, const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return InvalidArgument(option, " ", text, ": must look like NAME=VALUE");
    }
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

FilesRead FilesReadBy(const Arguments& a) {
  FilesRead read;
  if (!IsZooName(a.model)) read.Add(a.model);
  if (!a.costs.empty() && a.verb != Arguments::Verb::kCalibrate)
    read.Add(a.costs);  // calibrate may extend the file
  for (const std::string& text : a.plugins) read.Add(ParsePluginFile(text).path);
  for (const std::string& report : a.compare) read.Add(report);
  for (const std::string& text : a.inputs) {
    const std::string path = text.substr(std::min(text.rfind('='), text.size() - 1) + 1);
    if (!fs::is_directory(path)) {
      read.Add(path);
      continue;
    }
    std::error_code error;
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(path, error))
      read.Add(file.path().string());
  }
  return read;
}

bool ParseArguments(int argc, char** argv, Arguments* a, int* exit_code) {
  if (!CommandLine(a).Parse(argc, argv, exit_code)) return false;
  if (a->verb == Arguments::Verb::kLaunch) return true;  // the ranks check their own
  const Status status = Check(*a);
  if (status.ok()) return true;
  std::cerr << "msrun: " << status.message() << "\n";
  *exit_code = kWrongCommandLine;
  return false;
}

}  // namespace msrt
