// msconvert: brings models into .msrt files, and out of them into MindSpore's.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "tools/msconvert/convert.h"

namespace msrt {
namespace {

std::string Footer() {
  std::string text = "networks:\n";
  for (const zoo::Entry& e : zoo::Networks()) StrAppend(&text, "  zoo:", e.name, std::string(14 - e.name.size(), ' '), e.what, "\n");
  StrAppend(&text, "exit codes: 0 done, 1 failed, 2 wrong command line, ", int{kProblems},
            " the model has parts that cannot be converted, ", int{kDiffers}, " --verify found a difference\n");
  return text;
}

int Main(int argc, char** argv) {
  ConvertArguments a;
  CLI::App app("Brings models into .msrt files.", "msconvert");
  app.footer(Footer());
  app.add_option("input", a.input, "an .onnx, .mindir or .msrt file, or zoo:NAME")->required();
  auto* output = app.add_option("output", a.output,
                                "the .msrt file to write, or a .mindir file for MindSpore (then passes that make ops of our own "
                                "are left out)");
  app.add_flag("--check", a.check, "say all that stands in the way, with op, opset, nodes, reason and cure, and write nothing")
      ->excludes(output);
  app.add_option("--json", a.json, "write what is reported as JSON to this file; - is standard output");
  app.add_option("--shape", a.shapes, "NAME=1x3x224x224: the dims of an input (may be given several times)");
  app.add_option(
      "--state", a.states,
      "INPUT=OUTPUT: what the output gives is the input of the next run; the session keeps it, from zeros on (may be given several "
      "times)");
  app.add_flag("--keep-unknown", a.keep_unknown,
               "keep ops that are not known, for kernels that the application registers; the model must declare the types they give");
  app.add_option("--optimize", a.optimize, "none: write the graph as it comes; default: run the passes first")
      ->check(CLI::IsMember({"none", "default"}));
  app.add_option("--disable", a.disabled, "a pass to leave out (may be given several times)");
  app.add_option(
         "--target", a.target,
         "portable: for any machine; native: with the weights also as kernels of this machine pack them, so that loading on its like "
         "packs nothing; other machines load the file too")
      ->check(CLI::IsMember({"portable", "native"}));
  app.add_option("--typical", a.typical, "NAME=1x3x224x224: for --target native, the usual dims of an input whose dims stay open");
  app.add_option("--threads", a.threads, "for --target native, the threads of the runtime that will load the file (all cores)")
      ->check(CLI::PositiveNumber);
  auto* weights = app.add_option("--weights", a.weights, "store large weights as f16, bf16, int8 or int4; they are computed with as f32")
                      ->check(CLI::IsMember({"f16", "bf16", "int8", "int4"}));
  app.add_option("--weights-block", a.weights_block,
                 "so many weights along the input axis share a scale; 0: all of an output channel (usual for int8; int4: 32)")
      ->check(CLI::NonNegativeNumber)
      ->needs(weights);
  // A flag with a value, so that a file's name may follow it.
  auto* verify =
      app.add_flag("--verify{onnxruntime}", a.verify,
                   "run what was written against ONNX Runtime (of python3 or $MSCONVERT_PYTHON), or with --verify=FOLDER against "
                   "input_0, output_0, ... there, .npy or .pb");
  app.add_option("--tolerance", a.tolerance, "largest difference for --verify, relative to the range of an output (1e-4)")
      ->check(CLI::NonNegativeNumber)
      ->needs(verify);
  app.add_option("--ckpt", a.checkpoint, "a MindSpore checkpoint whose tensors take the place of the weights of the same names")
      ->check(CLI::ExistingFile);
  app.add_option("--plugin", a.plugins, "a shared library that brings passes, importers and ops (may be given several times)");
  app.add_flag("--progress", a.progress, "say how far it is; on a terminal it does for files beyond 200 MB");
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
