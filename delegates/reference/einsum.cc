// Einsum by its definition: each output element is a sum over all points of the summed indices.
#include "ops/einsum.h"

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// Returns how far each operand moves when an index increases by one:
// strides[operand * indices + index].
std::vector<int64_t> OperandStrides(const KernelArgs& args, const EinsumPlan& plan) {
  const auto indices = static_cast<size_t>(plan.index_count());
  std::vector<int64_t> strides(args.inputs.size() * indices);
  for (size_t o = 0; o < args.inputs.size(); ++o) {
    const Dims& dims = args.inputs[o].dims;
    const Dims dense = RowMajorStrides(dims);
    for (int d = 0; d < dims.rank(); ++d) {
      const auto index = static_cast<size_t>(plan.operands[o][static_cast<size_t>(d)]);
      // A letter that occurs twice walks along a diagonal; a dim of 1 is repeated.
      if (dims[d] != 1) strides[o * indices + index] += dense[d];
    }
  }
  return strides;
}

// A point in the space of all indices, and the offset of each operand there.
class Cursor {
 public:
  Cursor(const EinsumPlan& plan, std::span<const int64_t> strides, size_t operands)
      : plan_(plan), strides_(strides), at_(plan.extents.size()), offsets_(operands) {}

  std::span<const int64_t> offsets() const { return offsets_; }

  void Move(int index, int64_t to) {
    const auto i = static_cast<size_t>(index);
    for (size_t o = 0; o < offsets_.size(); ++o)
      offsets_[o] += (to - at_[i]) * strides_[o * at_.size() + i];
    at_[i] = to;
  }
  void MoveToOutput(int64_t element) {
    for (int i = plan_.output_rank - 1; i >= 0; --i) {
      const int64_t extent = plan_.extents[static_cast<size_t>(i)];
      Move(i, element % extent);
      element /= extent;
    }
  }
  // Moves to the next point of the summed indices. After the last it returns to the first and
  // returns false.
  bool Next() {
    for (int i = plan_.index_count() - 1; i >= plan_.output_rank; --i) {
      const int64_t next = at_[static_cast<size_t>(i)] + 1;
      if (next < plan_.extents[static_cast<size_t>(i)]) {
        Move(i, next);
        return true;
      }
      Move(i, 0);
    }
    return false;
  }

 private:
  const EinsumPlan& plan_;
  std::span<const int64_t> strides_;
  std::vector<int64_t> at_, offsets_;
};

Status Einsum(const KernelArgs& args) {
  std::vector<const Type*> operands;
  for (size_t i = 0; i < args.op.input_count(); ++i) operands.push_back(&args.op.input(i));
  MSRT_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanEinsum(args.op.String("equation"), operands));
  const std::vector<int64_t> strides = OperandStrides(args, plan);
  const TensorView& out = args.outputs[0];
  bool sums_nothing = false;
  for (size_t i = static_cast<size_t>(plan.output_rank); i < plan.extents.size(); ++i)
    sums_nothing |= plan.extents[i] == 0;
  return DispatchNumber(out.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, out.elements(), 16, [&](int64_t begin, int64_t end) {
      Cursor cursor(plan, strides, args.inputs.size());
      for (int64_t element = begin; element < end; ++element) {
        Wide<T> sum = 0;
        cursor.MoveToOutput(element);
        for (bool more = !sums_nothing; more; more = cursor.Next()) {
          Wide<T> product = 1;
          for (size_t o = 0; o < args.inputs.size(); ++o)
            product *= ToWide(args.inputs[o].As<T>()[cursor.offsets()[o]]);
          sum += product;
        }
        out.As<T>()[element] = FromWide<T>(sum);
      }
    });
  });
}

constexpr KernelDef kEinsumKernels[] = {{"", "Einsum", Einsum}};

}  // namespace

std::span<const KernelDef> EinsumKernels() { return kEinsumKernels; }

}  // namespace msrt::reference
