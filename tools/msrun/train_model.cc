#include "tools/msrun/train_model.h"

#include "core/model/load.h"
#include "tools/msrun/model_source.h"

namespace msrt {
namespace {

Result<const Type*> PictureType(const TrainArguments& a, const Module& model) {
  const Graph& graph = model.main();
  if (graph.inputs.size() != 1)
    return Unsupported("model '", a.common.model, "' has ", graph.inputs.size(),
                       " inputs; msrun train needs one, other models are trained with the C API");
  const Type& type = graph.value(graph.inputs[0]).type;
  if (!type.is_tensor() || type.dtype != DType::kF32 || !type.rank_known || type.rank() < 2)
    return Unsupported("model '", a.common.model, "': its input is ", type,
                       "; msrun train needs f32 samples in a batch");
  return &type;
}

Result<Module> ZooModel(const TrainArguments& a, const DataLoader& data) {
  const Dims& dims = data.sample_dims();
  if (dims.rank() != 3 || dims[1] != dims[2])
    return InvalidArgument("model '", a.common.model, "' needs square pictures, the data has ",
                           dims, "; use --size");
  zoo::Options options;
  options.seed = a.seed;
  options.image = dims[1];
  options.classes = NumClasses(data.source());
  return BuildFromZoo(a.common.model, options);
}

// Requires that known dims are equal. The first is the batch, which must be open.
Status CheckDims(const std::string& what, const Type& type, std::span<const int64_t> dims) {
  bool fits = type.rank() == static_cast<int>(dims.size()) + 1;
  for (int d = 1; fits && d < type.rank(); ++d)
    fits = !IsKnown(type.dims[d]) || type.dims[d] == dims[static_cast<size_t>(d - 1)];
  if (!fits)
    return InvalidArgument(what, " is ", type, ", the data has samples of ", dims,
                           "; use --size, or another model");
  if (IsKnown(type.dims[0]))
    return InvalidArgument(what, " is ", type,
                           ": training needs an open batch; convert the model with an open one");
  return OkStatus();
}

}  // namespace

Result<int64_t> ChannelsOf(const TrainArguments& a) {
  Result<Module> model = Unsupported("");
  if (IsZooName(a.common.model)) {
    // The channels do not depend on these sizes, which make the network small.
    zoo::Options options;
    options.width = 8;
    options.classes = 2;
    model = BuildFromZoo(a.common.model, options);
  } else {
    model = LoadFile(DefaultIo(), a.common.model);
  }
  if (!model.ok()) return std::move(model).status();
  MSRT_ASSIGN_OR_RETURN(const Type* type, PictureType(a, *model));
  return type->rank() == 4 && IsKnown(type->dims[1]) ? type->dims[1] : 3;
}

Result<Module> ModelFor(const TrainArguments& a, const DataLoader& data) {
  Result<Module> model = IsZooName(a.common.model) ? ZooModel(a, data)
                                                   : LoadFile(DefaultIo(), a.common.model);
  if (!model.ok()) return model;
  MSRT_ASSIGN_OR_RETURN(const Type* type, PictureType(a, *model));
  const std::string what = StrCat("model '", a.common.model, "': its input");
  MSRT_RETURN_IF_ERROR(
      CheckDims(what, *type, {data.sample_dims().begin(), data.sample_dims().size()}));
  const Graph& graph = model->main();
  if (graph.outputs.empty()) return Unsupported("model '", a.common.model, "' has no output");
  const Type& output = graph.value(graph.outputs[0]).type;
  const int64_t classes = NumClasses(data.source());
  if (output.rank_known && output.rank() >= 2 && IsKnown(output.dims[1]) &&
      output.dims[1] < classes)
    return InvalidArgument("model '", a.common.model, "' has ", output.dims[1],
                           " classes, the data has ", classes);
  return model;
}

}  // namespace msrt
