#include "tests/hostile/model_draft.h"

#include "core/base/checked_math.h"

namespace msrt::testing {
namespace {

constexpr int64_t kMaxBoundElements = 1 << 20;

}  // namespace

ModelDraft::ModelDraft() {
  module.name = "draft";
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
}

ValueId ModelDraft::Input(Dims dims, DType dtype) { return InputOf(Type::Tensor(dtype, dims)); }

ValueId ModelDraft::InputOf(Type type) {
  ConstTensor zeros;
  Dims dims = type.dims;
  for (int64_t& d : dims) d = IsKnown(d) ? d : 2;
  int64_t elements = 0;
  if (IsDType(static_cast<uint32_t>(type.dtype)) && CheckedProduct(dims, &elements) &&
      elements <= kMaxBoundElements) {
    zeros =
        ConstTensor::Copy(type.dtype, dims, std::vector<std::byte>(BytesOf(type.dtype, elements)));
  }
  data.push_back(std::move(zeros));
  return graph().AddInput(StrCat("x", graph().inputs.size()), std::move(type));
}

ValueId ModelDraft::Given(ConstTensor tensor) {
  data.push_back(tensor);
  return graph().AddInput(StrCat("x", graph().inputs.size()), tensor.type());
}

ValueId ModelDraft::Ones(Dims dims, DType dtype) {
  std::vector<std::byte> bytes(BytesOf(dtype, dims.elements()), std::byte{1});
  if (dtype == DType::kF32) {
    const std::vector<float> ones(static_cast<size_t>(dims.elements()), 1.0f);
    return graph().AddConstant("ones", ConstTensor::Floats(dims, ones));
  }
  return graph().AddConstant("ones", ConstTensor::Copy(dtype, dims, bytes));
}

ValueId ModelDraft::List(const Ints& values) {
  return graph().AddConstant("list", ConstTensor::Int64s(values));
}

void ModelDraft::Add(std::string op, std::vector<ValueId> inputs, AttrList attrs, size_t outputs,
                     std::string domain) {
  Node bad;
  bad.name = "bad";
  bad.domain = std::move(domain);
  bad.op = std::move(op);
  bad.inputs = std::move(inputs);
  bad.attrs = std::move(attrs);
  for (size_t i = 0; i < outputs; ++i) {
    bad.outputs.push_back(graph().AddValue(StrCat("y", graph().outputs.size()), UndeclaredType()));
    graph().outputs.push_back(bad.outputs.back());
  }
  graph().nodes.push_back(std::move(bad));
}

ValueId ModelDraft::Good(std::string op, std::vector<ValueId> inputs, AttrList attrs) {
  Add(std::move(op), std::move(inputs), std::move(attrs));
  node().name = StrCat("good", graph().nodes.size());
  graph().outputs.pop_back();
  return node().outputs[0];
}

}  // namespace msrt::testing
