#include "core/train/optimizer_node.h"

#include <cmath>
#include <cstdlib>
#include <memory>

#include "core/graph/constants.h"

namespace msrt {
namespace {

// A state list: the end of its slots' names, and the number that they begin with.
struct StateList {
  std::string_view suffix;
  double initial = 0;
};

struct Method {
  std::string_view op;
  AttrList attrs;
  std::vector<StateList> lists;
};

Method MomentumMethod(const OptimizerSpec& o) {
  Method m{"Momentum", {{"momentum", o.momentum}}, {{".momentum"}}};
  if (o.dampening != 0) m.attrs.Set("dampening", o.dampening);
  if (o.kind == OptimizerKind::kNesterov) m.attrs.Set("nesterov", int64_t{1});
  return m;
}

Method RmsPropMethod(const OptimizerSpec& o) {
  Method m{"RmsProp", {{"alpha", o.alpha}, {"epsilon", o.epsilon.value_or(1e-8)}}, {{".squares"}}};
  if (o.centered) {
    m.attrs.Set("centered", int64_t{1});
    m.lists.push_back({".average"});
  }
  if (o.rmsprop_momentum != 0) {
    m.attrs.Set("momentum", o.rmsprop_momentum);
    m.lists.push_back({".momentum"});
  }
  return m;
}

Method AdamMethod(std::string_view op, const OptimizerSpec& o, double epsilon) {
  return {op,
          {{"beta1", o.beta1}, {"beta2", o.beta2}, {"epsilon", o.epsilon.value_or(epsilon)}},
          {{".moment1"}, {".moment2"}}};
}

Method MethodOf(const OptimizerSpec& o) {
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return {"Sgd", {}, {}};
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
      return MomentumMethod(o);
    case OptimizerKind::kRmsProp:
      return RmsPropMethod(o);
    case OptimizerKind::kAdagrad:
      return {"Adagrad",
              {{"rate_decay", o.rate_decay}, {"epsilon", o.epsilon.value_or(1e-10)}},
              {{".squares", o.initial_sum}}};
    case OptimizerKind::kAdam:
      return AdamMethod("Adam", o, 1e-8);
    case OptimizerKind::kAdamW:
      return AdamMethod("AdamW", o, 1e-8);
    case OptimizerKind::kLamb:
      return AdamMethod("Lamb", o, 1e-6);
    case OptimizerKind::kLars:
      break;
  }
  return {"Lars",
          {{"momentum", o.momentum}, {"trust", o.trust}, {"epsilon", o.epsilon.value_or(1e-8)}},
          {{".momentum"}}};
}

// Zeros that take no memory where they are many: the system maps one page of zeros for all pages of
// a new allocation, until they are written.
Result<ConstTensor> Zeros(DType dtype, const Dims& dims) {
  constexpr size_t kAlignment = 64;
  const size_t bytes = BytesOf(dtype, dims.elements());
  std::shared_ptr<void> owner(std::calloc(1, bytes + kAlignment), std::free);
  if (owner == nullptr) return OutOfMemory(bytes, "a constant");
  void* aligned = owner.get();
  size_t space = bytes + kAlignment;
  std::align(kAlignment, bytes, aligned, space);
  return ConstTensor{dtype, dims, {static_cast<const std::byte*>(aligned), bytes}, owner};
}

// Sets the attributes with one element for each parameter, where they differ from the default.
void SetPerParameter(const TrainingSpec& spec, const std::vector<Parameter>& parameters,
                     Method* method) {
  std::vector<double> decays, factors;
  std::vector<int64_t> adapted;
  bool any_decay = false, any_factor = false, any_vector = false;
  for (const Parameter& p : parameters) {
    decays.push_back(p.weight_decay);
    factors.push_back(p.rate_factor);
    adapted.push_back(p.is_vector ? 0 : 1);
    any_decay |= p.weight_decay != 0;
    any_factor |= p.rate_factor != 1;
    any_vector |= p.is_vector;
  }
  if (any_decay) method->attrs.Set("weight_decay", std::move(decays));
  if (any_factor) method->attrs.Set("rate_factor", std::move(factors));
  const OptimizerKind kind = spec.optimizer.kind;
  if (any_vector && (kind == OptimizerKind::kLamb || kind == OptimizerKind::kLars))
    method->attrs.Set("adapted", std::move(adapted));
  if (spec.clip_value != 0) method->attrs.Set("clip", spec.clip_value);
}

// The slot of an optimizer by its name; -1: there is none yet.
int64_t FindOptimizerSlot(const Module& module, std::string_view name) {
  for (size_t i = 0; i < module.states.size(); ++i) {
    if (module.states[i].role == StateRole::kOptimizer && module.states[i].name == name)
      return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace

int64_t AddSlot(Module* module, std::string name, ConstTensor initial, StateRole role) {
  Type type = initial.type();
  module->states.push_back({std::move(name), std::move(type), std::move(initial), role});
  return static_cast<int64_t>(module->states.size() - 1);
}

ValueId ReadSlot(const Module& module, int64_t slot, GradBuilder* builder) {
  const StateSlot& state = module.states[static_cast<size_t>(slot)];
  const std::vector<int64_t> dims(state.type.dims.begin(), state.type.dims.end());
  const std::vector<ValueId> read = builder->AddNode(
      "msrt", "StateRead", {}, {{"slot", slot}, {"dtype", state.type.dtype}, {"dims", dims}}, 1);
  return read[0];
}

void WriteSlot(int64_t slot, ValueId value, GradBuilder* builder) {
  builder->AddNode("msrt", "StateWrite", {value}, {{"slot", slot}}, 0);
}

Result<ConstTensor> FilledConstant(DType dtype, const Dims& dims, double number) {
  const bool is_kept = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI64;
  if (is_kept && number == 0 && !std::signbit(number)) return Zeros(dtype, dims);
  MSRT_ASSIGN_OR_RETURN(NewConstant made, MakeConstant(dtype, dims));
  const auto elements = static_cast<size_t>(dims.elements());
  if (dtype == DType::kF32) {
    std::fill_n(reinterpret_cast<float*>(made.bytes.data()), elements, static_cast<float>(number));
  } else if (dtype == DType::kF64) {
    std::fill_n(reinterpret_cast<double*>(made.bytes.data()), elements, number);
  } else if (dtype == DType::kI64) {
    std::fill_n(reinterpret_cast<int64_t*>(made.bytes.data()), elements,
                static_cast<int64_t>(number));
  } else {
    return Unsupported("training keeps f32 and f64 parameters, not ", dtype,
                       "; convert the model to f32 first");
  }
  return std::move(made.tensor);
}

Result<std::vector<ValueId>> AddOptimizer(Module* module, const TrainingSpec& spec,
                                          const std::vector<Parameter>& parameters,
                                          const OptimizerInputs& inputs, GradBuilder* builder) {
  Method method = MethodOf(spec.optimizer);
  SetPerParameter(spec, parameters, &method);
  std::vector<ValueId> all{inputs.rate, inputs.updates, inputs.factor, inputs.skip};
  all.insert(all.end(), inputs.parameters.begin(), inputs.parameters.end());
  all.insert(all.end(), inputs.gradients.begin(), inputs.gradients.end());
  std::vector<int64_t> slots = inputs.slots;
  for (const StateList& list : method.lists) {
    for (size_t p = 0; p < parameters.size(); ++p) {
      const Type type = module->states[static_cast<size_t>(inputs.slots[p])].type;
      const std::string name = StrCat(parameters[p].name, list.suffix);
      slots.push_back(FindOptimizerSlot(*module, name));
      if (slots.back() < 0) {
        MSRT_ASSIGN_OR_RETURN(ConstTensor initial,
                              FilledConstant(type.dtype, type.dims, list.initial));
        slots.back() = AddSlot(module, name, std::move(initial), StateRole::kOptimizer);
      }
      all.push_back(ReadSlot(*module, slots.back(), builder));
    }
  }
  std::vector<ValueId> updated =
      builder->AddNode("msrt", method.op, std::move(all), std::move(method.attrs), slots.size());
  for (size_t i = 0; i < slots.size(); ++i) WriteSlot(slots[i], updated[i], builder);
  updated.resize(parameters.size());
  return updated;
}

}  // namespace msrt
