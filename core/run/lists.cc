// List ops, which the executor runs between the segments of a frame. Each element has its own
// memory, shared by all lists that contain it.
#include <algorithm>
#include <cstring>

#include "core/run/executor.h"
#include "ops/infer.h"

namespace msrt {
namespace {

// Resolves a position, which counts from the end if it is negative. `count` itself is one past the
// last.
Result<size_t> PositionIn(int64_t position, size_t count, bool past_end) {
  const auto n = static_cast<int64_t>(count);
  if (position < -n || position > n || (position == n && !past_end)) {
    return InvalidArgument("position ", position, " is outside of a list of ", count, " elements");
  }
  return static_cast<size_t>(position < 0 ? position + n : position);
}

Status CheckAxis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return OkStatus();
  return InvalidArgument("axis ", axis, " does not exist in tensors of rank ", rank);
}

RunValue ListOf(std::vector<RunValue> elements) {
  return RunValue::Of(std::make_shared<const ListValue>(ListValue{std::move(elements)}));
}

int64_t IntAttr(const Node& node, std::string_view name, int64_t fallback) {
  const AttrValue* value = node.attrs.Find(name);
  return value == nullptr ? fallback : std::get<int64_t>(*value);
}

// Copies [begin, end) of a tensor along an axis to contiguous memory.
void CopyPiece(const TensorView& whole, int axis, int64_t begin, int64_t end, std::byte* to) {
  const size_t inner = BytesOf(whole.dtype, whole.dims.product(axis + 1, whole.dims.rank()));
  const size_t row = static_cast<size_t>(whole.dims[axis]) * inner,
               piece = static_cast<size_t>(end - begin) * inner;
  const int64_t outer = whole.dims.product(0, axis);
  for (int64_t o = 0; o < outer && piece != 0; ++o) {
    std::memcpy(
        to + static_cast<size_t>(o) * piece,
        whole.As<std::byte>() + static_cast<size_t>(o) * row + static_cast<size_t>(begin) * inner,
        piece);
  }
}

// Returns the lengths of the pieces: 1 each if `split` is absent, equal ones for a scalar, else as
// listed.
Result<std::vector<int64_t>> PieceLengths(const RunValue& split, int64_t length) {
  std::vector<int64_t> lengths;
  if (!split.present()) return std::vector<int64_t>(static_cast<size_t>(length), 1);
  lengths = IntValues(split.tensor.dtype, split.tensor.data, split.tensor.elements());
  if (split.tensor.dims.empty()) {
    const int64_t each = lengths[0];
    if (each <= 0) return InvalidArgument("split = ", each, ", must be positive");
    lengths.clear();
    for (int64_t at = 0; at < length; at += each) lengths.push_back(std::min(each, length - at));
    return lengths;
  }
  int64_t sum = 0;
  for (int64_t l : lengths) {
    if (l < 0 || l > length - sum)
      return InvalidArgument("the pieces of 'split' do not fit into ", length);
    sum += l;
  }
  if (sum != length)
    return InvalidArgument("the pieces of 'split' add up to ", sum, ", the axis has ", length);
  return lengths;
}

Result<Type> JoinedType(const ListValue& list, int64_t axis, bool stack, int* at) {
  if (list.elements.empty()) return InvalidArgument("an empty list cannot be joined to a tensor");
  const TensorView& first = list.elements[0].tensor;
  if (BitsOf(first.dtype) < 8)
    return Unsupported("elements of ", first.dtype,
                       " are packed within bytes and cannot be joined; cast them first");
  const int rank = first.dims.rank() + (stack ? 1 : 0);
  MSRT_RETURN_IF_ERROR(CheckAxis(axis, rank));
  *at = static_cast<int>(axis < 0 ? axis + rank : axis);
  Dims dims = first.dims;
  if (stack) dims.insert(*at, 0);
  else dims[*at] = 0;
  for (const RunValue& e : list.elements) {
    Dims piece = e.tensor.dims;
    if (stack) piece.insert(*at, 1);
    Dims rest = piece, all = dims;
    if (piece.rank() == rank) rest[*at] = all[*at] = 0;
    if (e.tensor.dtype != first.dtype || !(rest == all)) {
      return InvalidArgument("elements of ", first.dtype, first.dims, " and ", e.tensor.dtype,
                             e.tensor.dims, " cannot be joined along axis ", axis);
    }
    dims[*at] += piece[*at];
  }
  return Type::Tensor(first.dtype, dims);
}

}  // namespace

Result<RunValue> Executor::LastingCopy(const RunValue& value) {
  if (value.kind != TypeKind::kTensor || value.lasting || !value.present()) return value;
  const TensorView& from = value.tensor;
  const size_t bytes = BytesOf(from.dtype, from.elements());
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<Block> block,
                        budget_.Make(bytes, "an element of a list"));
  if (bytes != 0) std::memcpy(block->data(), from.data, bytes);
  RunValue copy = RunValue::Of({from.dtype, from.dims, Layout::kPlain, block->data()}, block);
  copy.lasting = true;
  return copy;
}

Status Executor::RunListStep(Frame* frame, const Step& step) {
  using ListStep = Result<RunValue> (Executor::*)(Frame*, const Step&);
  constexpr std::pair<std::string_view, ListStep> kSteps[] = {
      {"SequenceEmpty", &Executor::MakeList},      {"SequenceConstruct", &Executor::MakeList},
      {"SequenceInsert", &Executor::ChangeList},   {"SequenceErase", &Executor::ChangeList},
      {"SplitToSequence", &Executor::SplitToList}, {"SequenceAt", &Executor::ElementOfList},
  };
  const Node& node = frame->graph_of().nodes[step.node];
  ResultCell* cell = CellOf(frame, step, 0);
  const std::string& name = frame->graph_of().value(node.outputs[0]).name;
  for (const auto& [op, run] : kSteps) {
    if (op != node.op) continue;
    MSRT_ASSIGN_OR_RETURN(const RunValue result, (this->*run)(frame, step));
    return Deliver(cell, result, nullptr, name);
  }
  const RunValue input = InputOf(frame, step, 0);
  const ListValue& list = input.list();
  if (node.op == "ConcatFromSequence") return JoinList(list, node, cell, name);
  MSRT_ASSIGN_OR_RETURN(const TensorView length,
                        AllocateResult(cell, Type::Tensor(DType::kI64, {}), name));
  *length.As<int64_t>() = static_cast<int64_t>(list.elements.size());
  return OkStatus();
}

// SequenceEmpty, SequenceConstruct.
Result<RunValue> Executor::MakeList(Frame* frame, const Step& step) {
  std::vector<RunValue> elements;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(RunValue element, LastingCopy(InputOf(frame, step, i)));
    elements.push_back(std::move(element));
  }
  return ListOf(std::move(elements));
}

// SequenceInsert, SequenceErase: a new list that shares the elements.
Result<RunValue> Executor::ChangeList(Frame* frame, const Step& step) {
  const bool insert = frame->graph_of().nodes[step.node].op == "SequenceInsert";
  const size_t position_input = insert ? 2 : 1;
  std::vector<RunValue> elements = InputOf(frame, step, 0).list().elements;
  int64_t position = insert ? static_cast<int64_t>(elements.size()) : -1;
  if (position_input < step.inputs.size() && step.inputs[position_input] != kNoBuffer) {
    MSRT_ASSIGN_OR_RETURN(position, NumberOf(frame, step, position_input));
  }
  MSRT_ASSIGN_OR_RETURN(const size_t at, PositionIn(position, elements.size(), insert));
  if (!insert) {
    elements.erase(elements.begin() + static_cast<ptrdiff_t>(at));
    return ListOf(std::move(elements));
  }
  MSRT_ASSIGN_OR_RETURN(RunValue element, LastingCopy(InputOf(frame, step, 1)));
  elements.insert(elements.begin() + static_cast<ptrdiff_t>(at), std::move(element));
  return ListOf(std::move(elements));
}

Result<RunValue> Executor::ElementOfList(Frame* frame, const Step& step) {
  const RunValue list = InputOf(frame, step, 0);
  MSRT_ASSIGN_OR_RETURN(const int64_t position, NumberOf(frame, step, 1));
  MSRT_ASSIGN_OR_RETURN(const size_t at, PositionIn(position, list.list().elements.size(), false));
  return list.list().elements[at];
}

Result<RunValue> Executor::SplitToList(Frame* frame, const Step& step) {
  const Node& node = frame->graph_of().nodes[step.node];
  const TensorView whole = InputOf(frame, step, 0).tensor;
  if (BitsOf(whole.dtype) < 8)
    return Unsupported("elements of ", whole.dtype,
                       " are packed within bytes and cannot be split; cast them first");
  const int64_t given = IntAttr(node, "axis", 0);
  MSRT_RETURN_IF_ERROR(CheckAxis(given, whole.dims.rank()));
  const int axis = static_cast<int>(given < 0 ? given + whole.dims.rank() : given);
  const RunValue split = InputOf(frame, step, 1);
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, PieceLengths(split, whole.dims[axis]));
  std::vector<RunValue> elements;
  int64_t begin = 0;
  for (int64_t length : lengths) {
    Dims dims = whole.dims;
    dims[axis] = length;
    MSRT_ASSIGN_OR_RETURN(
        const std::shared_ptr<Block> block,
        budget_.Make(BytesOf(whole.dtype, dims.elements()), "an element of a list"));
    CopyPiece(whole, axis, begin, begin + length, block->data());
    begin += length;
    if (!split.present() && IntAttr(node, "keepdims", 1) == 0) dims.erase(axis);
    elements.push_back(RunValue::Of({whole.dtype, dims, Layout::kPlain, block->data()}, block));
    elements.back().lasting = true;
  }
  return ListOf(std::move(elements));
}

Status Executor::JoinList(const ListValue& list, const Node& node, ResultCell* cell,
                          std::string_view name) {
  int axis = 0;
  MSRT_ASSIGN_OR_RETURN(const Type type, JoinedType(list, IntAttr(node, "axis", 0),
                                                    IntAttr(node, "new_axis", 0) != 0, &axis));
  MSRT_ASSIGN_OR_RETURN(const TensorView whole, AllocateResult(cell, type, name));
  const size_t row = BytesOf(type.dtype, type.dims.product(axis, type.rank()));
  const int64_t outer = type.dims.product(0, axis);
  size_t at = 0;
  for (const RunValue& e : list.elements) {
    const size_t bytes = BytesOf(type.dtype, e.tensor.elements());
    const size_t piece = outer == 0 ? 0 : bytes / static_cast<size_t>(outer);
    for (int64_t o = 0; o < outer && piece != 0; ++o) {
      std::memcpy(whole.As<std::byte>() + static_cast<size_t>(o) * row + at,
                  e.tensor.As<std::byte>() + static_cast<size_t>(o) * piece, piece);
    }
    at += piece;
  }
  return OkStatus();
}

}  // namespace msrt
