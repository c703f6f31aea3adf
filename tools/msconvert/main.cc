// msconvert: converts models to .msrt files, and .msrt files to MindSpore's.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "core/api/version.h"
#include "tools/msconvert/convert.h"

namespace msrt {
namespace {

std::string Footer() {
  std::string text = "networks:\n";
  for (const zoo::Entry& e : zoo::Networks())
    StrAppend(&text, "  zoo:", e.name, std::string(14 - e.name.size(), ' '), e.what, "\n");
  StrAppend(&text, "exit codes:\n  ", int{kDone}, "  done\n  ", int{kFailed},
            "  failed: a file cannot be read or written, or is damaged\n  ", int{kWrongCommandLine},
            "  wrong command line: nothing was done\n  ", int{kProblems},
            "  the model has parts that cannot be converted; all are listed\n  ", int{kDiffers},
            "  verification found a difference, or had nothing to compare; the file was written\n");
  return text;
}

int Main(int argc, char** argv) {
  ConvertArguments a;
  CLI::App app("Brings models into .msrt files.", "msconvert");
  app.footer(Footer());
  app.set_version_flag("--version", BuildInfoText,
                       "print version, build, libraries and the machine's instruction sets");
  app.add_option("input", a.input, "an .onnx, .mindir or .msrt file, or zoo:NAME")->required();
  auto* output = app.add_option("output", a.output,
                                "the .msrt file to write, or a .mindir file for MindSpore (without "
                                "the passes that make ops which MindSpore does not know)");
  app.add_flag("--check", a.check,
               "list everything that blocks the conversion, with op, opset, nodes, reason and "
               "cure, and write nothing")
      ->excludes(output);
  app.add_option("--json", a.json,
                 "write what is reported as JSON to this file; - is standard output");
  app.add_option("--shape", a.shapes,
                 "NAME=1x3x224x224, the dims of an input, or SYMBOL=8, of a symbol in all inputs "
                 "(may be given several times)");
  app.add_option(
      "--state", a.states,
      "INPUT=OUTPUT: the output of a run is the input of the next run; the session keeps "
      "it, initially zero (may be given several times)");
  app.add_flag("--keep-unknown", a.keep_unknown,
               "keep ops that are not known, for kernels that the application registers; the model "
               "must declare the types of their outputs");
  app.add_option("--optimize", a.optimize,
                 "none: write the graph unchanged; default: run the passes first")
      ->check(CLI::IsMember({"none", "default"}));
  app.add_flag("--train", a.train,
               "keep what training needs: parameters, batch normalisations and dropouts, which are "
               "folded or left out otherwise; for msrun train, msrt_trainer_create, msrt.Trainer");
  app.add_option("--disable", a.disabled, "a pass to leave out (may be given several times)");
  app.add_option("--target", a.target,
                 "portable: for any machine; native: with the weights also as kernels of this "
                 "machine pack them, so that loading on the same kind of machine packs nothing; "
                 "other machines load the file too")
      ->check(CLI::IsMember({"portable", "native"}));
  app.add_option("--typical", a.typical,
                 "NAME=1x3x224x224 or SYMBOL=8: for --target native, usual sizes of dims that stay "
                 "open (may be given several times)");
  app.add_option(
         "--threads", a.threads,
         "for --target native, the threads of the runtime that will load the file (all cores)")
      ->check(CLI::PositiveNumber);
  auto* weights =
      app.add_option(
             "--weights", a.weights,
             "store large weights as f16, bf16, int8 or int4; they are computed with as f32")
          ->check(CLI::IsMember({"f16", "bf16", "int8", "int4"}));
  app.add_option("--weights-block", a.weights_block,
                 "so many weights along the input axis share a scale; 0: all of an output channel "
                 "(usual for int8; int4: 32)")
      ->check(CLI::NonNegativeNumber)
      ->needs(weights);
  // A flag with a value, so that a file's name may follow it.
  auto* verify = app.add_flag(
      "--verify{original}", a.verify,
      "run what was written and the original, by ONNX Runtime (of $MSCONVERT_PYTHON or python3) or "
      "MindSpore, and "
      "compare; with --verify=FOLDER against input_0, output_0, ... there, .npy or .pb");
  app.add_option(
         "--verify-shape", a.verify_shapes,
         "NAME=1x3x224x224 or SYMBOL=8: sizes to verify open dims at (may be given several times)")
      ->needs(verify);
  app.add_option(
         "--input", a.inputs,
         "NAME=FILE.npy: an input to verify with; others are made up (may be given several times)")
      ->needs(verify);
  app.add_option("--tolerance", a.tolerance,
                 "largest difference for --verify, relative to the range of an output (by the "
                 "narrowest type that it is computed in: f64 1e-9, "
                 "f32 1e-4, f16 4e-3, bf16 3e-2, 8 bits 2e-2)")
      ->check(CLI::NonNegativeNumber)
      ->needs(verify);
  app.add_option(
         "--ckpt", a.checkpoint,
         "a MindSpore checkpoint whose tensors take the place of the weights of the same names")
      ->check(CLI::ExistingFile);
  app.add_option("--plugin", a.plugins,
                 "PATH[:OPTIONS]: a shared library that brings passes, importers and ops (may be "
                 "given several times)");
  auto* quiet =
      app.add_flag("--quiet", a.quiet, "print only warnings, errors and the result of --verify");
  app.add_flag("--progress", a.progress,
               "show progress; on a terminal this is the default for files beyond 200 MB")
      ->excludes(quiet);
  app.add_flag("--verbose", a.verbose, "print what every pass did")->excludes(quiet);
  auto* sizes = app.add_option_group(
      "sizes of zoo networks",
      "0 or absent: the usual value; batch and sequence are open unless given");
  sizes->add_option("--seed", a.zoo.seed, "of the weights");
  sizes->add_option("--batch", a.zoo.batch, "images or sequences");
  sizes->add_option("--image", a.zoo.image, "height and width");
  sizes->add_flag("--open-image", a.zoo.open_image, "height and width stay open");
  sizes->add_option("--width", a.zoo.width, "channels of the first stage, or hidden size");
  sizes->add_option("--classes", a.zoo.classes, "classes, or vocabulary");
  sizes->add_option("--layers", a.zoo.layers, "transformer blocks");
  sizes->add_option("--heads", a.zoo.heads, "of attention");
  sizes->add_option("--sequence", a.zoo.sequence, "tokens");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongCommandLine;
  }
  a.zoo_options = sizes->count_all() != 0;
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
