#include "tools/msconvert/arguments.h"

#include <filesystem>
#include <tuple>

#include "tools/files/plugin_file.h"

namespace msrt {
namespace {

// MindIR begins with its version as a text: field 1, with a length.
bool StartsLikeMindIr(std::span<const std::byte> bytes) { return bytes[0] == std::byte{0x0a}; }
constexpr FileKind kMindIrFile = {"a .mindir file", StartsLikeMindIr};

Result<std::map<std::string, std::string>> ParseInputs(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> inputs;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return InvalidArgument("--input ", text, ": must look like NAME=FILE.npy");
    }
    const std::string name = text.substr(0, equals), file = text.substr(equals + 1);
    if (!inputs.emplace(name, file).second)
      return InvalidArgument("--input ", name, " is given twice");
    if (!std::filesystem::is_regular_file(file))
      return NotFound("--input ", text, ": there is no file '", file, "'");
  }
  return inputs;
}

Status CheckVerify(const ConvertArguments& a) {
  if (a.verify.empty()) return OkStatus();
  if (a.check) return InvalidArgument("--verify runs what was written, and --check writes nothing");
  if (a.from_zoo())
    return InvalidArgument("--verify: a network of the zoo has no original to be compared with");
  if (!a.states.empty()) {
    return InvalidArgument(
        "--verify: with --state the model has other inputs and outputs than the original; verify "
        "it without");
  }
  if (a.to_mindir()) return InvalidArgument("--verify runs .msrt files; MindSpore runs a .mindir");
  if (a.verifies_folder()) {
    if (!std::filesystem::is_directory(a.verify)) {
      return NotFound("--verify=", a.verify,
                      ": there is no such folder; without a folder the original is run, by ONNX "
                      "Runtime or MindSpore");
    }
    if (!a.inputs.empty())
      return InvalidArgument("--input: --verify=", a.verify, " has its inputs in the folder");
    if (!a.verify_shapes.empty())
      return InvalidArgument("--verify-shape: --verify=", a.verify,
                             " has its inputs in the folder");
  } else if (a.from_msrt()) {
    return InvalidArgument(
        "--verify: no other runtime runs .msrt files; compare with files, --verify=FOLDER, or "
        "verify the original model");
  }
  return OkStatus();
}

Status CheckNative(const ConvertArguments& a) {
  if (!a.native()) {
    for (const auto& [given, option] :
         {std::pair(!a.typical.empty(), "--typical"), std::pair(a.threads != 0, "--threads")}) {
      if (given)
        return InvalidArgument(
            option, " is for --target native; a portable file is packed when it is loaded");
    }
    return OkStatus();
  }
  if (a.check)
    return InvalidArgument("--target native packs what is written, and --check writes nothing");
  if (a.to_mindir())
    return InvalidArgument("--target native is for .msrt files; MindIR has no packed weights");
  if (!a.weights.empty()) {
    return InvalidArgument("--weights ", a.weights,
                           " makes a file small and --target native makes loading fast, with "
                           "weights as f32; choose one");
  }
  if (a.optimize != "default") {
    return InvalidArgument(
        "--target native packs the weights as they are after all passes; leave --optimize out");
  }
  return OkStatus();
}

// Refuses options that would have no effect on such an input.
Status CheckInput(const ConvertArguments& a) {
  if (!a.from_zoo() && a.zoo_options)
    return InvalidArgument("sizes of zoo networks are for zoo:NAME; '", a.input, "' has its own");
  if (a.from_zoo() && !a.shapes.empty())
    return InvalidArgument(
        "--shape: a zoo network gets its sizes by --batch, --image and --sequence");
  if (a.from_msrt() && !a.shapes.empty())
    return InvalidArgument("--shape is for models of other formats; a .msrt file has its shapes");
  if ((a.from_zoo() || a.from_msrt()) && a.keep_unknown)
    return InvalidArgument("--keep-unknown is for ONNX models");
  if (a.optimize == "none" && !a.disabled.empty())
    return InvalidArgument("--disable: --optimize none leaves all passes out");
  if (!a.weights.empty() && a.to_mindir())
    return InvalidArgument("--weights: MindIR has no weights that are stored small");
  return OkStatus();
}

Status CheckTrain(const ConvertArguments& a) {
  if (!a.train) return OkStatus();
  if (a.from_msrt())
    return InvalidArgument("--train: '", a.input,
                           "' is as it was written; convert the original model with --train");
  if (a.to_mindir())
    return InvalidArgument("--train writes what msrt trains, a .msrt file; '", a.output,
                           "' is for MindSpore");
  for (const auto& [given, option, why] :
       {std::tuple(!a.weights.empty(), "--weights", "trained weights are f32"),
        std::tuple(a.native(), "--target native", "packed weights are for inference"),
        std::tuple(!a.disabled.empty(), "--disable", "it runs no passes"),
        std::tuple(!a.states.empty(), "--state", "a trained model keeps no state")}) {
    if (given) return InvalidArgument("--train and ", option, ": ", why, "; leave one out");
  }
  return OkStatus();
}

Status CheckFiles(const ConvertArguments& a, const CheckedArguments& checked, FilesRead* read) {
  if (!a.from_zoo()) read->Add(a.input);
  if (!a.checkpoint.empty()) read->Add(a.checkpoint);
  for (const std::string& plugin : a.plugins) read->Add(ParsePluginFile(plugin).path);
  for (const auto& [name, file] : checked.inputs) read->Add(file);
  if (!a.check) {
    if (!a.output.ends_with(".msrt") && !a.to_mindir()) {
      return InvalidArgument(
          "output '", a.output,
          "': msconvert writes .msrt and .mindir files; end the name in one of these");
    }
    MSRT_RETURN_IF_ERROR(
        CheckOutputFile("output", a.output, a.to_mindir() ? kMindIrFile : kMsrtFile, *read));
  }
  if (a.json.empty()) return OkStatus();
  if (!a.check && SamePath(a.json, a.output))
    return InvalidArgument("--json ", a.json, ": this is the output; use another name");
  return CheckOutputFile("--json", a.json, kJsonFile, *read);
}

}  // namespace

Result<CheckedArguments> Check(const ConvertArguments& a, FilesRead* read) {
  if (a.output.empty() && !a.check)
    return InvalidArgument("name the .msrt or .mindir file to write, or ask for --check");
  CheckedArguments checked;
  MSRT_ASSIGN_OR_RETURN(checked.shapes, ParseSizes("--shape", a.shapes));
  MSRT_ASSIGN_OR_RETURN(checked.typical, ParseSizes("--typical", a.typical));
  MSRT_ASSIGN_OR_RETURN(checked.verify_shapes, ParseSizes("--verify-shape", a.verify_shapes));
  MSRT_ASSIGN_OR_RETURN(checked.inputs, ParseInputs(a.inputs));
  if (!a.weights.empty()) {
    MSRT_ASSIGN_OR_RETURN(checked.storage, ParseWeightStorage(a.weights, a.weights_block));
  }
  MSRT_RETURN_IF_ERROR(CheckInput(a));
  MSRT_RETURN_IF_ERROR(CheckVerify(a));
  MSRT_RETURN_IF_ERROR(CheckNative(a));
  MSRT_RETURN_IF_ERROR(CheckTrain(a));
  MSRT_RETURN_IF_ERROR(CheckFiles(a, checked, read));
  return checked;
}

}  // namespace msrt
