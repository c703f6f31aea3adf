#include "tools/msconvert/onnx/cures.h"

#include "core/base/str_cat.h"

namespace msrt::onnx_import {
namespace {

constexpr int64_t kMeaningOpset = 23;  // all of its ops are known

constexpr std::string_view kGiveShapes =
    "give the shapes of the inputs with --shape NAME=1x3x224x224, or let onnx.shape_inference "
    "declare what is between";
constexpr std::string_view kFoldConstants =
    "fold the model's constants before (onnxsim, or ONNX Runtime's offline optimisation), or set a "
    "fixed value";
constexpr std::string_view kNoText =
    "take the part that works on text out of the model: map words to numbers before it";
constexpr std::string_view kMakeDense = "make it dense with onnx before converting";
constexpr std::string_view kInference =
    "export for inference: model.eval() in PyTorch, training=TrainingMode.EVAL";

// Reasons are written in many places; words in them decide which cure helps. The first match
// counts.
constexpr struct {
  std::string_view word, cure;
} kCures[] = {
    {"STRING", kNoText},
    {"text", kNoText},
    {"COMPLEX", "compute with real and imaginary parts as tensors of their own"},
    {"sparse", kMakeDense},
    {"SPARSE", kMakeDense},
    {"a map", "export without ZipMap (options={'zipmap': False} in skl2onnx)"},
    {"optional", "give or leave out the value when exporting"},
    {"training", kInference},
    {"is_test", kInference},
    {"constant", kFoldConstants},
    {"at most 8", "merge neighbouring dims with Reshape when exporting"},
    {"be known", kGiveShapes},
    {"known size", kGiveShapes},
    {"known shape", kGiveShapes},
    {"known rank", kGiveShapes},
    {"needs its rank", kGiveShapes},
    {"needs the rank", kGiveShapes},
    {"needs the sizes", kGiveShapes},
    {"before opset", "lift the model with onnx.version_converter.convert_version(model, 23)"},
};

}  // namespace

std::string CureForUnknownOp(std::string_view domain, std::string_view op, int64_t opset) {
  const std::string keep = StrCat("keep the node with --keep-unknown and register a kernel for ",
                                  op, " (msrt_kernel_desc)");
  if (domain.empty() || domain.starts_with("ai.onnx")) {
    if (domain.empty() && opset > kMeaningOpset) {
      return StrCat("it may have come with opset ", opset, ": export with opset ", kMeaningOpset,
                    " or older; or ", keep);
    }
    return StrCat("export it as ops of opset ", kMeaningOpset, "; or ", keep);
  }
  if (opset == 0) {
    return StrCat("the model imports no opset of '", domain, "': if ", op,
                  " is a function, export the model with it; or ", keep);
  }
  if (domain.starts_with("com.microsoft")) {
    return StrCat("ONNX Runtime made it: convert the model from before its optimisation; or ",
                  keep);
  }
  return StrCat("export the model with ", op, " as a model-local function; or ", keep);
}

std::string CureFor(std::string_view reason) {
  for (const auto& [word, cure] : kCures) {
    if (reason.find(word) != std::string_view::npos) return std::string(cure);
  }
  return "express the node by others when exporting the model";
}

}  // namespace msrt::onnx_import
