// msconvert: brings models into .msrt files.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>

#include "core/base/clock.h"
#include "core/model/write.h"
#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tools/msconvert/zoo.h"
#if defined(MSRT_HAVE_ONNX)
#include "tools/msconvert/onnx/importer.h"
#endif

namespace msrt {
namespace {

// What the process returns.
enum ExitCode { kDone = 0, kFailed = 1, kProblems = 3 };  // 2 is a wrong command line

struct Arguments {
  std::string input, output, optimize = "default", json;
  std::vector<std::string> disabled, shapes;
  zoo::Options zoo;
  bool quiet = false, check = false;
};

int Fail(const Status& status) {
  std::cerr << "msconvert: " << status.message() << "\n";
  return kFailed;
}

[[maybe_unused]] Status WriteText(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text << "\n";
    return OkStatus();
  }
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

std::string ZooList() {
  std::string list = "networks:\n";
  for (const zoo::Entry& e : zoo::Networks()) StrAppend(&list, "  zoo:", e.name, std::string(14 - e.name.size(), ' '), e.what, "\n");
  return list;
}

size_t WeightBytes(const Module& module) {
  size_t bytes = 0;
  for (const Graph& g : module.graphs) {
    for (uint32_t v = 0; v < g.value_count(); ++v) {
      if (g.value(ValueId(v)).constant) bytes += g.value(ValueId(v)).constant->bytes.size();
    }
  }
  return bytes;
}

#if defined(MSRT_HAVE_ONNX)
// "NAME=1x3x224x224".
Status ParseShape(const std::string& text, std::map<std::string, Dims>* shapes) {
  const size_t equals = text.rfind('=');
  const auto wrong = [&] { return InvalidArgument("--shape ", text, ": must look like NAME=1x3x224x224"); };
  if (equals == std::string::npos || equals == 0) return wrong();
  Dims dims;
  for (size_t at = equals + 1; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    int64_t dim = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, dim);
    if (error != std::errc() || stop != text.data() + end || dim < 0 || dims.rank() == kMaxRank) return wrong();
    dims.push_back(dim);
    at = end + 1;
  }
  (*shapes)[text.substr(0, equals)] = dims;
  return OkStatus();
}

// The module, or nothing if there are problems, which have been told then.
Result<std::optional<Module>> ReadOnnx(const Arguments& a) {
  onnx_import::ImportOptions options;
  for (const std::string& shape : a.shapes) MSRT_RETURN_IF_ERROR(ParseShape(shape, &options.shapes));
  MSRT_ASSIGN_OR_RETURN(onnx_import::Imported imported, onnx_import::ImportFile(a.input, options, DefaultIo()));
  if (!a.json.empty()) MSRT_RETURN_IF_ERROR(WriteText(a.json, imported.problems.Json()));
  if (imported.problems.empty()) return std::optional<Module>(std::move(imported.module));
  std::cerr << "msconvert: '" << a.input << "' cannot be converted:\n" << imported.problems.Text();
  return std::optional<Module>();
}
#endif

Result<std::optional<Module>> Read(const Arguments& a) {
  constexpr std::string_view kZoo = "zoo:";
  if (a.input.starts_with(kZoo)) {
    MSRT_ASSIGN_OR_RETURN(Module module, zoo::Build(std::string_view(a.input).substr(kZoo.size()), a.zoo));
    return std::optional<Module>(std::move(module));
  }
#if defined(MSRT_HAVE_ONNX)
  return ReadOnnx(a);
#else
  return Unsupported("'", a.input,
                     "': this build reads zoo:NAME only; build it with protobuf and ONNX's message definitions (tools/setup)");
#endif
}

int Convert(const Arguments& a) {
  const StopWatch watch;
  auto read = Read(a);
  if (!read.ok()) return Fail(read.status());
  if (!read->has_value()) return kProblems;
  std::optional<Module>& module = *read;
  Status status = Validate(&*module);
  if (!status.ok()) return Fail(status);
  if (a.check) {
    if (!a.quiet) std::printf("%s: %zu nodes, everything can be converted\n", a.input.c_str(), module->main().nodes.size());
    return kDone;
  }
  if (a.optimize == "default") {
    const PassContext context{.evaluator = &BuiltinEvaluator()};
    auto reports = RunPasses(context, {.disabled = a.disabled, .validate = true}, &*module);
    if (!reports.ok()) return Fail(reports.status());
    for (const PassReport& r : *reports) {
      if (!a.quiet)
        std::printf("%-16s %5zu -> %5zu nodes %8.1f ms\n", std::string(r.name).c_str(), r.nodes_before, r.nodes_after, r.millis);
    }
  }
  status = WriteModel(*module, a.output, DefaultIo());
  if (!status.ok()) return Fail(status);
  if (!a.quiet) {
    std::printf("%s: %zu nodes, %.1f MB of weights, %.0f ms\n", a.output.c_str(), module->main().nodes.size(),
                static_cast<double>(WeightBytes(*module)) * 1e-6, watch.Millis());
  }
  return kDone;
}

int Main(int argc, char** argv) {
  Arguments a;
  CLI::App app("Brings models into .msrt files.", "msconvert");
  app.footer(ZooList());
  app.add_option("input", a.input, "an .onnx file, or zoo:NAME")->required();
  auto* output = app.add_option("output", a.output, "the .msrt file to write");
  app.add_flag("--check", a.check, "say all that stands in the way, and write nothing")->excludes(output);
  app.add_option("--json", a.json, "write the report as JSON to this file; - is standard output");
  app.add_option("--shape", a.shapes, "NAME=1x3x224x224: the dims of an input (may be given several times)");
  app.add_option("--optimize", a.optimize, "none: write the graph as it comes; default: run the passes first")
      ->check(CLI::IsMember({"none", "default"}));
  app.add_option("--disable", a.disabled, "a pass to leave out (may be given several times)");
  app.add_flag("--quiet", a.quiet, "print errors only");
  auto* sizes = app.add_option_group("sizes of zoo networks", "0 or absent: the usual value; batch and sequence are open unless given");
  sizes->add_option("--seed", a.zoo.seed, "of the weights");
  sizes->add_option("--batch", a.zoo.batch);
  sizes->add_option("--image", a.zoo.image, "height and width");
  sizes->add_flag("--open-image", a.zoo.open_image, "height and width stay open");
  sizes->add_option("--width", a.zoo.width, "channels of the first stage, or hidden size");
  sizes->add_option("--classes", a.zoo.classes, "classes, or vocabulary");
  sizes->add_option("--layers", a.zoo.layers);
  sizes->add_option("--heads", a.zoo.heads);
  sizes->add_option("--sequence", a.zoo.sequence, "tokens");
  CLI11_PARSE(app, argc, argv);
  if (a.output.empty() && !a.check) {
    std::cerr << "msconvert: name the .msrt file to write, or ask for --check\n";
    return 2;
  }
  return Convert(a);
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  try {
    return msrt::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "msconvert: out of memory\n");
    return 1;
  }
}
