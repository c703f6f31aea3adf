#include "tools/msconvert/net.h"

#include <cmath>
#include <numbers>

namespace msrt::zoo {
namespace {

Module EmptyModule(std::string_view name) {
  Module module;
  module.name = name;
  module.producer = "msconvert zoo";
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
  return module;
}

}  // namespace

Net::Net(std::string_view name, const Options& options)
    : module_(EmptyModule(name)),
      builder_(&module_.graphs[0]),
      random_(options.seed * 0x9e3779b97f4a7c15u + 1) {
  module_.metadata.emplace_back("seed", std::to_string(options.seed));
}

// splitmix64, two uniforms and Box-Muller: the same weights on every machine and for every library
// version.
double Net::NextNormal() {
  const auto uniform = [&] {
    uint64_t z = (random_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::string Net::NextName(std::string_view op) { return StrCat(prefix_, op, "_", count_++); }

ValueId Net::Normal(std::string_view what, Dims dims, double deviation, double mean) {
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& v : values) v = static_cast<float>(mean + deviation * NextNormal());
  return builder_.graph().AddConstant(NextName(what), ConstTensor::Floats(dims, values));
}

ValueId Net::Input(std::string_view name, DType dtype, Dims dims) {
  return builder_.graph().AddInput(std::string(name), Type::Tensor(dtype, dims));
}

ValueId Net::Op(std::string_view op, std::vector<ValueId> inputs, AttrList attrs) {
  if (!status_.ok()) return inputs[0];
  auto out = builder_.Add(op, NextName(op), inputs, std::move(attrs));
  if (!out.ok()) {
    status_ = std::move(out).status();
    return inputs[0];
  }
  return *out;
}

ValueId Net::Conv(ValueId x, const ConvSpec& s) {
  const int64_t in = DimsOf(x)[1];
  const double deviation = std::sqrt(2.0 / static_cast<double>(in / s.group * s.kernel * s.kernel));
  std::vector<ValueId> inputs{
      x, Normal("weight", {s.out, in / s.group, s.kernel, s.kernel}, deviation)};
  if (s.bias) inputs.push_back(Normal("bias", {s.out}, 0.05));
  AttrList attrs{{"strides", std::vector<int64_t>{s.stride, s.stride}},
                 {"pads", std::vector<int64_t>{s.pad, s.pad, s.pad, s.pad}}};
  if (s.group != 1) attrs.Set("group", s.group);
  if (s.dilation != 1) attrs.Set("dilations", std::vector<int64_t>{s.dilation, s.dilation});
  return Op("Conv", std::move(inputs), std::move(attrs));
}

ValueId Net::Deconv2x2(ValueId x, int64_t out) {
  const int64_t in = DimsOf(x)[1];
  const ValueId weight =
      Normal("weight", {in, out, 2, 2}, std::sqrt(2.0 / static_cast<double>(in)));
  return Op("ConvTranspose", {x, weight, Normal("bias", {out}, 0.05)},
            {{"strides", std::vector<int64_t>{2, 2}}});
}

ValueId Net::BatchNorm(ValueId x) {
  const Dims channels{DimsOf(x)[1]};
  std::vector<ValueId> inputs{x, Normal("scale", channels, 0.1, 1), Normal("shift", channels, 0.1),
                              Normal("mean", channels, 0.1)};
  std::vector<float> variance(static_cast<size_t>(channels[0]));
  for (float& v : variance) v = static_cast<float>(1 + 0.1 * std::tanh(NextNormal()));
  inputs.push_back(
      builder_.graph().AddConstant(NextName("variance"), ConstTensor::Floats(channels, variance)));
  return Op("BatchNormalization", std::move(inputs));
}

ValueId Net::MaxPool(ValueId x, int64_t kernel, int64_t stride, int64_t pad) {
  return Op("MaxPool", {x},
            {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
             {"strides", std::vector<int64_t>{stride, stride}},
             {"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
}

ValueId Net::Linear(ValueId x, int64_t out) {
  const int64_t in = DimsOf(x).back();
  const ValueId weight = Normal("weight", {out, in}, std::sqrt(1.0 / static_cast<double>(in)));
  return Op("Gemm", {x, weight, Normal("bias", {out}, 0.02)}, {{"transB", int64_t{1}}});
}

ValueId Net::Dense(ValueId x, int64_t out) {
  const int64_t in = DimsOf(x).back();
  const ValueId weight = Normal("weight", {in, out}, std::sqrt(1.0 / static_cast<double>(in)));
  return Op("Add", {Op("MatMul", {x, weight}), Normal("bias", {out}, 0.02)});
}

ValueId Net::LayerNorm(ValueId x) {
  const Dims columns{DimsOf(x).back()};
  return Op("LayerNormalization",
            {x, Normal("scale", columns, 0.05, 1), Normal("shift", columns, 0.05)},
            {{"axis", int64_t{-1}}});
}

ValueId Net::Embedding(ValueId ids, int64_t rows, int64_t columns) {
  return Op("Gather", {Normal("embedding", {rows, columns}, 0.5), ids});
}

void Net::Output(ValueId v, std::string_view name) {
  builder_.graph().value(v).name = name;
  builder_.graph().outputs.push_back(v);
}

Result<Module> Net::Finish() && {
  if (!status_.ok()) return std::move(status_).Within(StrCat("zoo:", module_.name));
  return std::move(module_);
}

}  // namespace msrt::zoo
