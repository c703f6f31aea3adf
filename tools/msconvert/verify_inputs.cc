#include "tools/msconvert/verify_inputs.h"

#include <algorithm>
#include <filesystem>

#include "tools/tensors/npy.h"
#if defined(MSRT_HAVE_ONNX)
#include "tools/msconvert/onnx/probe.h"
#endif

namespace msrt {
namespace {

// NumPy has no bf16 and no types of few bits: such a file holds the bits as integers, and the model
// declares their type.
ConstTensor ReinterpretAs(ConstTensor tensor, DType declared) {
  const bool bits = tensor.dtype == DType::kU16 || tensor.dtype == DType::kU8;
  if (bits && declared != DType::kNone && BitsOf(declared) == BitsOf(tensor.dtype))
    tensor.dtype = declared;
  return tensor;
}

Status CheckNames(const VerifyRequest& request, const Graph& graph) {
  for (const auto& [name, file] : request.inputs) {
    std::string known;
    bool found = false;
    for (ValueId v : graph.inputs) {
      found = found || graph.value(v).name == name;
      StrAppend(&known, known.empty() ? "" : ", ", graph.value(v).name);
    }
    if (!found)
      return NotFound("--input ", name, "=", file, ": the model has no input '", name, "'; it has ",
                      known);
  }
  return OkStatus();
}

// Reads the files that the request names, by input; nullopt for inputs without a file.
Result<std::vector<std::optional<ConstTensor>>> ReadFiles(const VerifyRequest& request,
                                                          const Graph& graph) {
  MSRT_RETURN_IF_ERROR(CheckNames(request, graph));
  std::vector<std::optional<ConstTensor>> tensors;
  for (ValueId v : graph.inputs) {
    const Value& input = graph.value(v);
    const auto file = request.inputs.find(input.name);
    tensors.emplace_back();
    if (file == request.inputs.end()) continue;
    auto tensor = ReadNpy(file->second, input.type.dtype);
    if (!tensor.ok()) return std::move(tensor).status().Within(StrCat("--input ", input.name));
    tensors.back() = *std::move(tensor);
  }
  return tensors;
}

ConstTensor ReversedTensor(const ConstTensor& tensor) {
  const auto width = static_cast<size_t>(BitsOf(tensor.dtype) / 8);
  if (width == 0) return tensor;  // two elements in a byte
  std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
  for (size_t low = 0, high = bytes.size() - width; low < high && high < bytes.size();
       low += width, high -= width) {
    std::swap_ranges(bytes.begin() + static_cast<ptrdiff_t>(low),
                     bytes.begin() + static_cast<ptrdiff_t>(low + width),
                     bytes.begin() + static_cast<ptrdiff_t>(high));
  }
  return ConstTensor::Copy(tensor.dtype, tensor.dims, bytes);
}

}  // namespace

std::string VerifyInputs::Text() const {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", tensors[i].first, " ", ShapeText(tensors[i].second.dims),
              made[i] ? " made up" : " from a file");
  }
  return text;
}

std::string VerifyInputs::Cure() const {
  std::string shapes, names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!made[i]) continue;
    StrAppend(&names, names.empty() ? "" : " ", "--input ", tensors[i].first, "=FILE.npy");
    if (!tensors[i].second.dims.empty()) {
      StrAppend(&shapes, shapes.empty() ? "" : " ", "--verify-shape ", tensors[i].first, "=",
                ShapeText(tensors[i].second.dims));
    }
  }
  if (names.empty()) return {};
  return StrCat("inputs were made up", shapes.empty() ? "" : " at these sizes: ", shapes,
                "; give sizes that fit with --verify-shape, or inputs: ", names);
}

Result<VerifyInputs> MakeInputs(const VerifyRequest& request, const Module& module,
                                MaskPattern masks, uint64_t seed) {
  const Graph& graph = module.main();
  MSRT_ASSIGN_OR_RETURN(const auto files, ReadFiles(request, graph));
  GivenSizes given = request.sizes;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i]) given[graph.value(graph.inputs[i]).name] = files[i]->dims;
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<Dims> sizes, SizesToRun("--verify-shape", given, module));
  const InputHints hints{masks, SequenceLength(graph, sizes)};
  std::mt19937_64 random(seed);
  VerifyInputs inputs;
  for (size_t i = 0; i < files.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    if (!input.type.is_tensor())
      return Unsupported("--verify: input '", input.name, "' is ", input.type,
                         "; only tensors can be compared");
    inputs.made.push_back(!files[i]);
    if (files[i]) {
      inputs.tensors.emplace_back(input.name, *files[i]);
      continue;
    }
    MSRT_ASSIGN_OR_RETURN(ConstTensor tensor,
                          RandomInput(graph, graph.inputs[i], sizes[i], random, hints));
    inputs.tensors.emplace_back(input.name, std::move(tensor));
    inputs.masks = inputs.masks || RoleOf(input) == InputRole::kMask;
  }
  return inputs;
}

Result<VerifyInputs> ReadInputs(const VerifyRequest& request, const Module& module) {
  VerifyInputs inputs;
  const Graph& graph = module.main();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    MSRT_ASSIGN_OR_RETURN(ConstTensor tensor,
                          ReadTensor(StrCat(request.folder, "/input_", i), input.type.dtype));
    inputs.tensors.emplace_back(input.name, std::move(tensor));
    inputs.made.push_back(false);
  }
  return inputs;
}

VerifyInputs Reversed(const VerifyInputs& inputs) {
  VerifyInputs reversed = inputs;
  for (auto& [name, tensor] : reversed.tensors) tensor = ReversedTensor(tensor);
  return reversed;
}

Result<ConstTensor> ReadTensor(const std::string& stem, DType declared) {
  if (std::filesystem::exists(stem + ".npy")) {
    MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, ReadNpy(stem + ".npy"));
    return ReinterpretAs(std::move(tensor), declared);
  }
#if defined(MSRT_HAVE_ONNX)
  if (std::filesystem::exists(stem + ".pb")) {
    MSRT_ASSIGN_OR_RETURN(ConstTensor tensor,
                          onnx_import::ReadTensorFile(stem + ".pb", DefaultIo()));
    return ReinterpretAs(std::move(tensor), declared);
  }
#endif
  return NotFound("there is neither ", stem, ".npy nor ", stem, ".pb");
}

}  // namespace msrt
