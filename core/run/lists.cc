#include "core/run/lists.h"

#include <algorithm>
#include <cstring>

#include "core/run/results.h"
#include "core/run/step_values.h"
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

// One list step of a frame.
class ListStep {
 public:
  ListStep(Frame* frame, const Step& step, const StateStore& states, Budget* budget)
      : frame_(frame), step_(step), states_(states), budget_(budget) {}

  Status Run() {
    using Make = Result<RunValue> (ListStep::*)();
    constexpr std::pair<std::string_view, Make> kSteps[] = {
        {"SequenceEmpty", &ListStep::MakeList},      {"SequenceConstruct", &ListStep::MakeList},
        {"SequenceInsert", &ListStep::ChangeList},   {"SequenceErase", &ListStep::ChangeList},
        {"SplitToSequence", &ListStep::SplitToList}, {"SequenceAt", &ListStep::ElementOfList},
    };
    ResultCell* cell = CellOf(frame_, step_, 0);
    const std::string& name = frame_->graph_of().value(node().outputs[0]).name;
    for (const auto& [op, make] : kSteps) {
      if (op != node().op) continue;
      MSRT_ASSIGN_OR_RETURN(const RunValue result, (this->*make)());
      return Deliver(cell, result, nullptr, name, budget_);
    }
    const RunValue input = Input(0);
    const ListValue& list = input.list();
    if (node().op == "ConcatFromSequence") return JoinList(list, cell, name);
    MSRT_ASSIGN_OR_RETURN(const TensorView length,
                          AllocateResult(cell, Type::Tensor(DType::kI64, {}), name, budget_));
    *length.As<int64_t>() = static_cast<int64_t>(list.elements.size());
    return OkStatus();
  }

 private:
  const Node& node() const { return NodeOf(*frame_, step_); }
  RunValue Input(size_t i) const { return InputOf(frame_, states_, step_, i); }

  // SequenceEmpty, SequenceConstruct.
  Result<RunValue> MakeList() {
    std::vector<RunValue> elements;
    for (size_t i = 0; i < step_.inputs.size(); ++i) {
      MSRT_ASSIGN_OR_RETURN(RunValue element, LastingCopy(Input(i), budget_));
      elements.push_back(std::move(element));
    }
    return ListOf(std::move(elements));
  }

  // SequenceInsert, SequenceErase: a new list that shares the elements.
  Result<RunValue> ChangeList() {
    const bool insert = node().op == "SequenceInsert";
    const size_t position_input = insert ? 2 : 1;
    std::vector<RunValue> elements = Input(0).list().elements;
    int64_t position = insert ? static_cast<int64_t>(elements.size()) : -1;
    if (position_input < step_.inputs.size() && step_.inputs[position_input] != kNoBuffer) {
      MSRT_ASSIGN_OR_RETURN(position, NumberOf(frame_, states_, step_, position_input));
    }
    MSRT_ASSIGN_OR_RETURN(const size_t at, PositionIn(position, elements.size(), insert));
    if (!insert) {
      elements.erase(elements.begin() + static_cast<ptrdiff_t>(at));
      return ListOf(std::move(elements));
    }
    MSRT_ASSIGN_OR_RETURN(RunValue element, LastingCopy(Input(1), budget_));
    elements.insert(elements.begin() + static_cast<ptrdiff_t>(at), std::move(element));
    return ListOf(std::move(elements));
  }

  Result<RunValue> ElementOfList() {
    const RunValue list = Input(0);
    MSRT_ASSIGN_OR_RETURN(const int64_t position, NumberOf(frame_, states_, step_, 1));
    MSRT_ASSIGN_OR_RETURN(const size_t at,
                          PositionIn(position, list.list().elements.size(), false));
    return list.list().elements[at];
  }

  Result<RunValue> SplitToList() {
    const TensorView whole = Input(0).tensor;
    if (BitsOf(whole.dtype) < 8)
      return Unsupported("elements of ", whole.dtype,
                         " are packed within bytes and cannot be split; cast them first");
    const int64_t given = IntAttr(node(), "axis", 0);
    MSRT_RETURN_IF_ERROR(CheckAxis(given, whole.dims.rank()));
    const int axis = static_cast<int>(given < 0 ? given + whole.dims.rank() : given);
    const RunValue split = Input(1);
    MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                          PieceLengths(split, whole.dims[axis]));
    std::vector<RunValue> elements;
    int64_t begin = 0;
    for (int64_t length : lengths) {
      Dims dims = whole.dims;
      dims[axis] = length;
      MSRT_ASSIGN_OR_RETURN(
          const std::shared_ptr<Block> block,
          budget_->Make(BytesOf(whole.dtype, dims.elements()), "an element of a list"));
      CopyPiece(whole, axis, begin, begin + length, block->data());
      begin += length;
      if (!split.present() && IntAttr(node(), "keepdims", 1) == 0) dims.erase(axis);
      elements.push_back(RunValue::Of({whole.dtype, dims, Layout::kPlain, block->data()}, block));
      elements.back().lasting = true;
    }
    return ListOf(std::move(elements));
  }

  Status JoinList(const ListValue& list, ResultCell* cell, std::string_view name) {
    int axis = 0;
    MSRT_ASSIGN_OR_RETURN(const Type type, JoinedType(list, IntAttr(node(), "axis", 0),
                                                      IntAttr(node(), "new_axis", 0) != 0, &axis));
    MSRT_ASSIGN_OR_RETURN(const TensorView whole, AllocateResult(cell, type, name, budget_));
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

  Frame* const frame_;
  const Step& step_;
  const StateStore& states_;
  Budget* const budget_;
};

}  // namespace

Status RunListStep(Frame* frame, const Step& step, const StateStore& states, Budget* budget) {
  return ListStep(frame, step, states, budget).Run();
}

}  // namespace msrt
