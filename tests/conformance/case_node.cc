#include "tests/conformance/case_node.h"

#include <cstring>

#include "core/base/parallel_for.h"
#include "delegates/reference/kernel.h"
#include "ops/infer.h"
#include "ops/registry.h"

namespace msrt::testing {

OpView CaseNode::View() {
  input_pointers.clear(), output_pointers.clear(), constants.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_pointers.push_back(present[i] ? &input_types[i] : nullptr);
    constants.push_back(present[i] ? &inputs[i] : nullptr);
  }
  for (const Type& t : output_types) output_pointers.push_back(&t);
  return OpView(def->domain, def->name, "case", &attrs, def->attrs, input_pointers, output_pointers,
                constants);
}

Status CaseNode::Infer() {
  const OpView view = View();
  MSRT_RETURN_IF_ERROR(InferTypes(*def, view, output_types));
  return def->sizes == nullptr ? OkStatus() : SizeFromData(*def, view, output_types);
}

Result<std::vector<ConstTensor>> CaseNode::Run(int threads) {
  const OpView view = View();
  std::vector<TensorView> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorView v;
    if (present[i])
      v = {inputs[i].dtype, inputs[i].dims, Layout::kPlain,
           const_cast<std::byte*>(inputs[i].bytes.data())};
    in.push_back(v);
  }
  // Outputs start as a pattern, which reveals elements that the kernel does not write.
  std::vector<ConstTensor> results;
  for (const Type& t : output_types) {
    results.push_back(
        ConstTensor::Copy(t.dtype, t.dims, std::vector<std::byte>(t.bytes(), std::byte{0xA5})));
    out.push_back(
        {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(results.back().bytes.data())});
  }
  const auto kernel = reference::FindKernel(def->domain, def->name);
  if (kernel == nullptr) return NotFound("no reference kernel for ", def->name);
  auto parallel = threads == 1 ? MakeSerial() : MakeThreadPool(threads);
  MSRT_RETURN_IF_ERROR(kernel({view, in, out, *parallel}));
  return results;
}

CaseNode NodeOf(const OpCase& c) {
  CaseNode n;
  n.def = FindOp(c.domain, c.op);
  n.attrs = c.attrs;
  for (const CaseInput& i : c.inputs) {
    n.present.push_back(i.tensor.has_value());
    n.inputs.push_back(i.tensor.value_or(ConstTensor{}));
    n.input_types.push_back(n.inputs.back().type());
  }
  n.output_types.resize(c.expected.size());
  return n;
}

ConstTensor CutOut(const ConstTensor& t, const Box& box) {
  const Dims dims = box.dims();
  const size_t width = static_cast<size_t>(BitsOf(t.dtype)) / 8;
  std::vector<std::byte> bytes(BytesOf(t.dtype, dims.elements()));
  const Dims from = RowMajorStrides(t.dims), to = RowMajorStrides(dims);
  for (int64_t i = 0; i < dims.elements(); ++i) {
    int64_t source = 0, rest = i;
    for (int d = 0; d < dims.rank(); ++d) {
      source += (box[d].begin + rest / to[d]) * from[d];
      rest %= to[d];
    }
    std::memcpy(bytes.data() + static_cast<size_t>(i) * width,
                t.bytes.data() + static_cast<size_t>(source) * width, width);
  }
  return ConstTensor::Copy(t.dtype, dims, bytes);
}

Result<Piece> CutPiece(CaseNode& node, const ResolvedSpace& space, const Box& box) {
  const std::vector<Box> in = InputBoxes(space, box);
  Piece piece{.node = {}, .outputs = OutputBoxes(space, box)};
  piece.node.def = node.def;
  piece.node.attrs = node.attrs;
  for (size_t i = 0; i < in.size(); ++i) {
    ConstTensor t;
    const bool present = node.present[i] && IsPresent(space.inputs[i], box);
    if (present) {
      if (in[i].rank() != node.inputs[i].dims.rank() ||
          !Contains(Box::Whole(node.inputs[i].dims), in[i]))
        return InternalError("input ", i, ": box ", in[i], " is not part of ", node.inputs[i].dims);
      t = CutOut(node.inputs[i], in[i]);
    }
    piece.node.present.push_back(present);
    piece.node.inputs.push_back(t);
    piece.node.input_types.push_back(t.type());
  }
  piece.node.output_types.resize(node.output_types.size());
  const auto localize = node.def->space->localize;
  if (localize != nullptr)
    MSRT_RETURN_IF_ERROR(localize(node.View(), box, in, piece.outputs, &piece.node.attrs));
  MSRT_RETURN_IF_ERROR(piece.node.Infer());
  return piece;
}

}  // namespace msrt::testing
