// msconvert: brings models into .msrt files.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "core/base/clock.h"
#include "core/model/write.h"
#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tools/msconvert/zoo.h"

namespace msrt {
namespace {

struct Arguments {
  std::string input, output, optimize = "default";
  std::vector<std::string> disabled;
  zoo::Options zoo;
  bool quiet = false;
};

int Fail(const Status& status) {
  std::cerr << "msconvert: " << status.message() << "\n";
  return 1;
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

Result<Module> Read(const Arguments& a) {
  constexpr std::string_view kZoo = "zoo:";
  if (a.input.starts_with(kZoo)) return zoo::Build(std::string_view(a.input).substr(kZoo.size()), a.zoo);
  return Unsupported("'", a.input, "': this version reads zoo:NAME only");
}

int Convert(const Arguments& a) {
  const StopWatch watch;
  auto module = Read(a);
  if (!module.ok()) return Fail(module.status());
  Status status = Validate(&*module);
  if (!status.ok()) return Fail(status);
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
  return 0;
}

int Main(int argc, char** argv) {
  Arguments a;
  CLI::App app("Brings models into .msrt files.", "msconvert");
  app.footer(ZooList());
  app.add_option("input", a.input, "zoo:NAME")->required();
  app.add_option("output", a.output, "the .msrt file to write")->required();
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
