// The kernel and the binding around every recipe: copies shapes when bound, builds the plan when
// prepared or first run, and runs the fallback where the library has nothing for just these shapes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"
#include "delegates/sdk/piece.h"

namespace msrt::onednn {
namespace {

// Approximate memory of a primitive with its JIT code (measured: 20 to 70 KB).
constexpr size_t kBytesPerPrimitive = 40 << 10;

bool IsUnimplemented(const dnnl::error& error) {
  return error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
}

// Types of a node's inputs and outputs, owned, as an OpView.
class OwnedTypes {
 public:
  explicit OwnedTypes(const OpView& op) {
    const size_t inputs = op.input_count(), outputs = op.output_count();
    types_.reserve(inputs + outputs);
    for (size_t i = 0; i < inputs; ++i)
      pointers_.push_back(op.has_input(i) ? Keep(op.input(i)) : nullptr);
    for (size_t o = 0; o < outputs; ++o)
      pointers_.push_back(op.has_output(o) ? Keep(op.output(o)) : nullptr);
    inputs_ = inputs;
  }
  std::span<const Type* const> inputs() const { return std::span(pointers_).first(inputs_); }
  std::span<const Type* const> outputs() const { return std::span(pointers_).subspan(inputs_); }

 private:
  const Type* Keep(const Type& type) {
    types_.push_back(type);
    return &types_.back();
  }
  std::vector<Type> types_;  // never grows beyond what was reserved: pointers_ points into it
  std::vector<const Type*> pointers_;
  size_t inputs_ = 0;
};

// The fallback between copies to and from plain memory.
class FallbackRun {
 public:
  Status Build(const Recipe& recipe, const OpView& op, const Evaluator& fallback) {
    if (!fallback.Knows(op))
      return DelegateError("oneDNN has no implementation of ", op.op(),
                           " for these shapes, and neither has the fallback");
    fallback_ = &fallback;
    for (size_t i = 0; i < op.input_count(); ++i) {
      input_offsets_.push_back(kInPlace);
      // Plain data is copied too: the fallback must not read what it writes, and inputs may share
      // memory with outputs.
      if (!op.has_input(i) || !IsData(op.input(i).dtype) || op.input(i).elements() == 0) continue;
      input_offsets_.back() = before_.Reserve(op.input(i).bytes());
    }
    for (size_t o = 0; o < op.output_count(); ++o) {
      output_offsets_.push_back(kInPlace);
      if (!op.has_output(o) || recipe.output_layout(o) == Layout::kPlain) continue;
      output_offsets_.back() = before_.Reserve(op.output(o).bytes());
    }
    after_.Reserve(before_.scratch_bytes());
    for (size_t i = 0; i < input_offsets_.size(); ++i) {
      if (input_offsets_[i] == kInPlace) continue;
      before_.AddReorder(Place::Input(i), Describe(op.input(i), recipe.input_layout(i)),
                         Place::Scratch(input_offsets_[i]), Describe(op.input(i), Layout::kPlain));
    }
    for (size_t o = 0; o < output_offsets_.size(); ++o) {
      if (output_offsets_[o] == kInPlace) continue;
      after_.AddReorder(Place::Scratch(output_offsets_[o]), Describe(op.output(o), Layout::kPlain),
                        Place::Output(o), Describe(op.output(o), recipe.output_layout(o)));
    }
    return OkStatus();
  }

  Status Run(const OpView& op, const RunArgs& args) const {
    MSRT_ASSIGN_OR_RETURN(
        void* memory, args.scratch.Get(std::max(before_.scratch_bytes(), after_.scratch_bytes())));
    auto* scratch = static_cast<std::byte*>(memory);
    std::vector<TensorView> inputs(args.inputs.begin(), args.inputs.end()),
        outputs(args.outputs.begin(), args.outputs.end());
    MakePlain(input_offsets_, scratch, inputs);
    MakePlain(output_offsets_, scratch, outputs);
    MSRT_RETURN_IF_ERROR(before_.Run(args, scratch));
    MSRT_RETURN_IF_ERROR(fallback_->Evaluate(op, inputs, outputs));
    return after_.Run(args, scratch);
  }

 private:
  static constexpr size_t kInPlace = SIZE_MAX;
  static bool IsData(DType dtype) { return dtype == DType::kF32 || kLibraryIntegers.Has(dtype); }
  static void MakePlain(const std::vector<size_t>& offsets, std::byte* scratch,
                        std::vector<TensorView>& views) {
    for (size_t i = 0; i < views.size(); ++i) {
      views[i].layout = Layout::kPlain;
      if (offsets[i] != kInPlace) views[i].data = scratch + offsets[i];
    }
  }
  const Evaluator* fallback_ = nullptr;
  std::vector<size_t> input_offsets_, output_offsets_;
  Plan before_, after_;
};

// The plan for one way of sharing memory, made once, by the first thread that needs it.
struct Variant {
  std::once_flag once;
  Status status;
  Plan plan;
  std::unique_ptr<FallbackRun> fallback;  // set where the library has nothing
};

bool IsEmpty(const Type* t) { return t != nullptr && t->elements() == 0; }
bool AnyEmpty(std::span<const Type* const> types) {
  return std::any_of(types.begin(), types.end(), IsEmpty);
}
bool NothingToDo(std::span<const Type* const> outputs) {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const Type* t) { return t == nullptr || IsEmpty(t); });
}

class Bound final : public BoundKernel {
 public:
  Bound(std::shared_ptr<const Recipe> recipe, const Evaluator& fallback, const OpView& op,
        std::string refusal)
      : recipe_(std::move(recipe)),
        fallback_(fallback),
        op_(op),
        types_(op),
        refusal_(std::move(refusal)) {
    for (size_t i = 0; i < op.input_count(); ++i) {
      const ConstTensor* whole = recipe_->constants()[i];
      const bool cut = whole != nullptr && op.has_input(i) && !(op.input(i).dims == whole->dims);
      constants_.push_back(cut ? nullptr : whole);
      if (cut && refusal_.empty()) refusal_ = StrCat("a part of constant input ", i);
    }
  }

  // A residual usually dies where it is added, so the plan that shares its memory is the one to
  // have ready.
  Status Prepare() override { return Ready(recipe_->residual_input() >= 0).status; }

  Status Run(const RunArgs& args) override {
    if (NothingToDo(types_.outputs())) return OkStatus();
    const int residual = recipe_->residual_input();
    const Variant& v = Ready(residual >= 0 && args.inputs[static_cast<size_t>(residual)].data ==
                                                  args.outputs[0].data);
    if (!v.status.ok()) return v.status;
    const OpView op = View();
    try {
      if (v.fallback != nullptr) return v.fallback->Run(op, args);
      void* scratch = nullptr;
      if (v.plan.scratch_bytes() > 0) {
        MSRT_ASSIGN_OR_RETURN(scratch, args.scratch.Get(v.plan.scratch_bytes()));
      }
      return v.plan.Run(args, static_cast<std::byte*>(scratch));
    } catch (const dnnl::error& error) {
      return FromError(error, op);
    }
  }

  size_t bytes() const override { return kBytesPerPrimitive; }

 private:
  OpView View() const { return op_.WithTypes(types_.inputs(), types_.outputs(), constants_); }

  const Variant& Ready(bool shared_residual) {
    Variant& v = variants_[shared_residual ? 1 : 0];
    std::call_once(v.once, [&] { v.status = Build(shared_residual, &v); });
    return v;
  }

  Status Build(bool shared_residual, Variant* v) const {
    if (NothingToDo(types_.outputs())) return OkStatus();
    const OpView op = View();
    try {
      // A later part of a sum has neither bias nor residual.
      const size_t inputs = op.Int("partial") != 0 ? 2 : types_.inputs().size();
      Status status = AnyEmpty(types_.inputs().first(inputs)) || AnyEmpty(types_.outputs())
                          ? Unsupported("empty input")
                      : !refusal_.empty() ? Unsupported(refusal_)
                                          : BuildPlan(op, shared_residual, &v->plan);
      if (status.code() != Code::kUnsupported) return status;
      v->fallback = std::make_unique<FallbackRun>();
      return v->fallback->Build(*recipe_, op, fallback_);
    } catch (const dnnl::error& error) {
      return FromError(error, op);
    }
  }

  Status BuildPlan(const OpView& op, bool shared_residual, Plan* plan) const {
    try {
      return recipe_->Build(op, shared_residual, plan);
    } catch (const dnnl::error& error) {
      if (!IsUnimplemented(error)) throw;
      return Unsupported(std::string(error.what()));
    }
  }

  std::shared_ptr<const Recipe> recipe_;
  const Evaluator& fallback_;
  const OpView op_;  // without its types, which are below
  OwnedTypes types_;
  std::vector<const ConstTensor*> constants_;  // of the recipe; null for those that are cut
  std::string refusal_;                        // why only the fallback can compute this piece
  std::array<Variant, 2> variants_;
};

class OneDnnKernel final : public Kernel {
 public:
  OneDnnKernel(std::shared_ptr<const Recipe> recipe, const Evaluator& fallback,
               std::span<const std::string_view> local_attrs)
      : recipe_(std::move(recipe)), fallback_(fallback), local_attrs_(local_attrs) {}
  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    return std::unique_ptr<BoundKernel>(
        std::make_unique<Bound>(recipe_, fallback_, op, sdk::PieceRefusal(op, local_attrs_)));
  }
  size_t packed_bytes() const override { return recipe_->packed_bytes(); }

 private:
  std::shared_ptr<const Recipe> recipe_;
  const Evaluator& fallback_;
  const std::span<const std::string_view> local_attrs_;
};

}  // namespace

std::unique_ptr<Kernel> MakeKernel(std::shared_ptr<const Recipe> recipe, const Evaluator& fallback,
                                   std::span<const std::string_view> local_attrs) {
  return std::make_unique<OneDnnKernel>(std::move(recipe), fallback, local_attrs);
}

}  // namespace msrt::onednn
