// Type and shape inference: the context that an entry's infer function works on, and the rules that
// many ops share. Unknown dims are accepted everywhere; known ones must be valid.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/op_def.h"

namespace msrt {

class InferContext {
 public:
  // `outputs` has one Type for each output of the node.
  explicit InferContext(const OpView& op, std::span<Type> outputs) : op_(op), outputs_(outputs) {}

  const OpView& op() const { return op_; }
  size_t output_count() const { return outputs_.size(); }
  bool has_input(size_t i) const { return op_.has_input(i); }
  const Type& input(size_t i) const { return op_.input(i); }
  DType dtype(size_t i) const { return op_.input(i).dtype; }
  const Dims& dims(size_t i) const { return op_.input(i).dims; }

  // Outputs beyond output_count() are ignored, so optional outputs can be set unconditionally.
  void SetOutput(size_t i, Type type) {
    if (i < outputs_.size()) outputs_[i] = std::move(type);
  }
  void SetOutput(size_t i, DType dtype, const Dims& dims) {
    SetOutput(i, Type::Tensor(dtype, dims));
  }

 private:
  const OpView& op_;
  std::span<Type> outputs_;
};

// Runs every check that an entry implies (attributes, number and element types of inputs) and then
// its infer function. `outputs` has one Type for each output of the node, which is filled.
// `check_attrs` is false if the attributes were checked before and cannot have changed (each new
// binding).
Status InferTypes(const OpDef& def, const OpView& op, std::span<Type> outputs,
                  bool check_attrs = true);

// Infers the types of a node whose sizes depend on data, once all inputs named by its entry's
// `sizes` are constants of `op`. Makes `outputs` concrete. (InferTypes does so itself if that data
// is a constant of a few elements.)
Status SizeFromData(const OpDef& def, const OpView& op, std::span<Type> outputs);

// ---- shared rules -------------------------------------------------------------------------------

// NumPy broadcasting of two or more shapes; an unknown dim against 1 or another unknown one stays
// unknown.
Result<Dims> BroadcastDims(const Dims& a, const Dims& b);
// Fails unless `from` broadcasts to `to` itself (ONNX: unidirectional). Unknown dims are accepted.
Status CheckBroadcastsTo(const Dims& from, const Dims& to, std::string_view what);
// Output 0 has the broadcast dims of all inputs and `dtype`; unranked if any input is.
Status InferBroadcast(InferContext& c, DType dtype);
// Output 0 has the type of input 0.
Status InferSameAsFirst(InferContext& c);

// Returns the axis counted from the front, or an error that names the valid range.
Result<int> NormalizeAxis(int64_t axis, int rank, std::string_view what = "axis");
// The same for a list; also refuses duplicates. An empty list stays empty.
Result<std::vector<int>> NormalizeAxes(std::span<const int64_t> axes, int rank,
                                       std::string_view what = "axes");

// Returns a list of integers that is an attribute in the usual form and an input in the dynamic one
// ("shape" of Reshape, "axes" of Squeeze). nullopt if it is an input whose value is not known yet;
// empty if it is absent.
std::optional<std::vector<int64_t>> IntsAttrOrInput(const OpView& op, std::string_view attr,
                                                    size_t input);
// The same for one number ("k" of TopK), which must be present exactly once; as an input it is a
// tensor of one element.
Result<std::optional<int64_t>> IntAttrOrInput(const OpView& op, std::string_view attr,
                                              size_t input);
// Refuses a node that has both the attribute and the equivalent input.
Status RefuseAttrAndInput(const OpView& op, std::string_view attr, size_t input);
// The same for a list; also refuses an input of rank above 1 and, if `required`, a list given in
// neither form.
Status CheckListAttrOrInput(const OpView& op, std::string_view attr, size_t input,
                            bool required = false);

// Refuses a tensor of known rank other than `rank`.
Status CheckRank(const InferContext& c, size_t input, int rank);
// Whether a tensor has one element, of any rank; also true if unknown dims leave it open.
bool MayBeOneElement(const Dims& dims);

// Merges two dims that must agree: returns the known one, or an error that names both.
Result<int64_t> SameDim(int64_t a, int64_t b, std::string_view what);

}  // namespace msrt
