// Tables that signals and spectra are multiplied by: the windows HannWindow, HammingWindow,
// BlackmanWindow, and MelWeightMatrix.
#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

DType TableType(const OpView& op) {
  return op.Has("output_datatype") ? op.Dtype("output_datatype") : DType::kF32;
}

Status CheckTableType(const OpView& op) {
  if (kNumberTypes.Has(TableType(op))) return OkStatus();
  return InvalidModel("output_datatype = ", TableType(op), ", must be one of ",
                      kNumberTypes.Names());
}

Status InferWindow(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckTableType(c.op()));
  MSRT_ASSIGN_OR_RETURN(const auto size, IntAttrOrInput(c.op(), "size", 0));
  if (size && *size < 0) return InvalidModel("size = ", *size, ", must be at least 0");
  c.SetOutput(0, TableType(c.op()), {size.value_or(kUnknownDim)});
  return OkStatus();
}

// A frequency is an attribute or an input of one element.
Status CheckEdge(const InferContext& c, std::string_view attr, size_t input) {
  MSRT_RETURN_IF_ERROR(RefuseAttrAndInput(c.op(), attr, input));
  if (!c.op().Has(attr) && !c.has_input(input))
    return InvalidModel("'", attr, "' is missing: give it as an attribute or as input ", input);
  if (!c.has_input(input) || !c.input(input).concrete() || c.input(input).elements() == 1)
    return OkStatus();
  return InvalidModel("input ", input, " '", attr, "' has shape ", c.dims(input),
                      ", must have one element");
}

Status InferMelWeights(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckTableType(c.op()));
  MSRT_ASSIGN_OR_RETURN(const auto bands, IntAttrOrInput(c.op(), "num_mel_bins", 0));
  MSRT_ASSIGN_OR_RETURN(const auto length, IntAttrOrInput(c.op(), "dft_length", 1));
  MSRT_ASSIGN_OR_RETURN(const auto rate, IntAttrOrInput(c.op(), "sample_rate", 2));
  if (bands && *bands < 0) return InvalidModel("num_mel_bins = ", *bands, ", must be at least 0");
  if (length && *length < 0) return InvalidModel("dft_length = ", *length, ", must be at least 0");
  if (rate && *rate < 1) return InvalidModel("sample_rate = ", *rate, ", must be at least 1");
  MSRT_RETURN_IF_ERROR(CheckEdge(c, "lower_edge_hertz", 3));
  MSRT_RETURN_IF_ERROR(CheckEdge(c, "upper_edge_hertz", 4));
  c.SetOutput(0, TableType(c.op()),
              {length ? *length / 2 + 1 : kUnknownDim, bands.value_or(kUnknownDim)});
  return OkStatus();
}

constexpr AttrDef kWindowAttrs[] = {
    {.name = "periodic", .default_int = 1, .min_int = 0, .max_int = 1},
    {.name = "output_datatype", .kind = AttrKind::kDType},
    {.name = "size", .min_int = 0},
};
constexpr AttrDef kMelAttrs[] = {
    {.name = "output_datatype", .kind = AttrKind::kDType},
    {.name = "num_mel_bins", .min_int = 0},
    {.name = "dft_length", .min_int = 0},
    {.name = "sample_rate", .min_int = 1},
    {.name = "lower_edge_hertz", .kind = AttrKind::kFloat, .min_float = 0},
    {.name = "upper_edge_hertz", .kind = AttrKind::kFloat, .min_float = 0},
};
constexpr ParamDef kWindowInputs[] = {{"size", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kMelInputs[] = {
    {"num_mel_bins", kIndexTypes, ParamDef::kOptional},
    {"dft_length", kIndexTypes, ParamDef::kOptional},
    {"sample_rate", kIndexTypes, ParamDef::kOptional},
    {"lower_edge_hertz", kFloatTypes, ParamDef::kOptional},
    {"upper_edge_hertz", kFloatTypes, ParamDef::kOptional},
};

// Tables are small compared to their signals, so they have no iteration space.
constexpr OpDef kSignalTableOps[] = {
    {.name = "HannWindow", .attrs = kWindowAttrs, .inputs = kWindowInputs, .infer = InferWindow},
    {.name = "HammingWindow", .attrs = kWindowAttrs, .inputs = kWindowInputs, .infer = InferWindow},
    {.name = "BlackmanWindow",
     .attrs = kWindowAttrs,
     .inputs = kWindowInputs,
     .infer = InferWindow},
    {.name = "MelWeightMatrix", .attrs = kMelAttrs, .inputs = kMelInputs, .infer = InferMelWeights},
};

}  // namespace

std::span<const OpDef> SignalTableOps() { return kSignalTableOps; }

}  // namespace msrt
