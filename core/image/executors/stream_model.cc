#include "core/image/executors/stream_model.h"

#include "core/base/checked_math.h"

namespace msrt {
namespace {

// Types are inferred again from the new size.
void ForgetTypes(Graph* graph) {
  for (const Node& node : graph->nodes) {
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      Type& type = graph->value(v).type;
      if (type.is_tensor()) type = Type::UnrankedTensor(type.dtype);
    }
  }
}

}  // namespace

Status SetImageSize(const ImageSize& size, Module* module) {
  if (module->entries.empty()) return InvalidArgument("the model has no entry to run");
  if (!module->states.empty())
    return Unsupported("the model has state ('", module->states[0].name,
                       "'); images are computed by models without state");
  Graph& graph = module->main();
  if (graph.inputs.size() != 1)
    return Unsupported("the model has ", graph.inputs.size(),
                       " inputs; a model for images has one, the image");
  Value& input = graph.value(graph.inputs[0]);
  const Type& type = input.type;
  const auto refuse = [&](const auto&... why) {
    return Unsupported("input '", input.name, "' is ", type, "; ", why...);
  };
  if (!type.is_tensor() || type.dtype != DType::kF32) return refuse("an image is a tensor of f32");
  if (size.channels <= 0 || size.rows <= 0 || size.columns <= 0)
    return InvalidArgument("an image of ", size.channels, " channels, ", size.rows, " rows and ",
                           size.columns, " columns is empty");
  if (type.rank_known && type.rank() != 4)
    return refuse("an image is [batch, channels, rows, columns]");
  if (type.rank_known && IsKnown(type.dims[0]) && type.dims[0] != 1)
    return refuse("an image is a batch of 1");
  if (type.rank_known && IsKnown(type.dims[1]) && type.dims[1] != size.channels)
    return refuse("the image has ", size.channels,
                  " channels; select as many channels of the image");
  const Dims dims{1, size.channels, size.rows, size.columns};
  if (int64_t elements; !CheckedProduct({dims.begin(), dims.size()}, &elements))
    return InvalidArgument("an image of ", dims, " is too large");
  input.type = Type::Tensor(DType::kF32, dims);
  for (Graph& g : module->graphs) ForgetTypes(&g);
  return OkStatus();
}

Result<std::shared_ptr<const CompiledModel>> CompileForImage(
    std::shared_ptr<const Environment> environment, Module module, const ImageSize& size,
    CompileOptions options) {
  MSRT_RETURN_IF_ERROR(SetImageSize(size, &module));
  options.place.exact = true;
  options.place.single_nodes = true;
  options.prepare_first_run = false;
  return CompileModule(std::move(environment), std::move(module), options);
}

Status CheckOutputsFollowImage(const Graph& graph, std::span<const Type> outputs) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Type& type = outputs[o];
    const std::string& name = graph.value(graph.outputs[o]).name;
    if (!type.is_tensor() || !type.concrete() || type.rank() < 3 || type.rank() > 4 ||
        type.dims[0] != 1) {
      return Unsupported("output '", name, "' is ", type,
                         ", which does not follow the rows and columns of the image (detections, ",
                         "classes of the whole image); run the model whole, or use an output of ",
                         "[1, channels, rows, columns]");
    }
    if (type.elements() == 0)
      return InvalidArgument("output '", name, "' is empty (", type,
                             ") for this image; the image is too small for the model");
  }
  return OkStatus();
}

}  // namespace msrt
