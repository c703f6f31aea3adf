#include "core/train/non_finite.h"

#include <bit>

#include "core/run/session.h"
#include "core/train/training_module.h"

namespace msrt {
namespace {

// Compares bits, which compilers make vectors of: a checkpoint waits for this.
template <typename T, typename Bits>
bool AllFinite(const void* data, int64_t elements, Bits exponent) {
  const T* const values = static_cast<const T*>(data);
  Bits found = 0;
  for (int64_t i = 0; i < elements; ++i)
    found |= Bits{(std::bit_cast<Bits>(values[i]) & exponent) == exponent};
  return found == 0;
}

// Other types than f32 and f64 count as finite.
bool IsFinite(DType dtype, const void* data, int64_t elements) {
  if (dtype == DType::kF32) return AllFinite<float, uint32_t>(data, elements, 0x7f800000);
  return dtype != DType::kF64 || AllFinite<double, uint64_t>(data, elements, 0x7ff0000000000000);
}
bool IsFinite(const ConstTensor& tensor) {
  return IsFinite(tensor.dtype, tensor.bytes.data(), tensor.dims.elements());
}

// Makes every float that a node computes an output. Returns descriptions in the order of the
// outputs, the nodes before the original outputs.
std::vector<std::string> ShowValues(Graph* graph) {
  std::vector<std::string> shown;
  std::vector<ValueId> outputs;
  for (const Node& node : graph->nodes) {
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      Value& value = graph->value(v);
      const bool floats = value.type.is_tensor() &&
                          (value.type.dtype == DType::kF32 || value.type.dtype == DType::kF64);
      if (!floats) continue;
      shown.push_back(StrCat("'", node.name, "' (", node.op, ")"));
      // The outputs of an entry have names, each its own.
      value.name = StrCat("shown ", outputs.size());
      outputs.push_back(v);
    }
  }
  graph->outputs = std::move(outputs);
  return shown;
}

Status SetStates(const Checkpoint& before, Session* session) {
  const std::vector<StateSlot>& slots = session->model().module.states;
  for (const CheckpointTensor& tensor : before.tensors) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].name != tensor.name) continue;
      const ConstTensor& t = tensor.data;
      MSRT_RETURN_IF_ERROR(session->WriteState(
          i, {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())}));
    }
  }
  return OkStatus();
}

Status SetBatch(const Batch& batch, double rate, Session* session) {
  for (size_t i = 0; i < batch.tensors.size(); ++i) {
    const ConstTensor& t = batch.tensors[i];
    MSRT_RETURN_IF_ERROR(session->SetInput(
        i, {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())}, t.owner));
  }
  const Graph& graph = session->graph();
  const size_t last = batch.tensors.size();
  if (graph.inputs.size() != last + 1)
    return InvalidArgument("a batch of ", last, " tensors for a step with ", graph.inputs.size(),
                           " inputs");
  const DType dtype = graph.value(graph.inputs[last]).type.dtype;
  const ConstTensor number =
      dtype == DType::kF64 ? ConstTensor::Of<double>(dtype, {}, std::span<const double>(&rate, 1))
                           : ConstTensor::Floats({}, std::vector<float>{static_cast<float>(rate)});
  return session->SetInput(
      last, {dtype, {}, Layout::kPlain, const_cast<std::byte*>(number.bytes.data())}, number.owner);
}

}  // namespace

Result<std::string> FindNonFinite(std::shared_ptr<const Environment> environment, Module training,
                                  const Checkpoint& before, const Batch& batch, double rate) {
  for (const CheckpointTensor& tensor : before.tensors) {
    if (!IsFinite(tensor.data)) return StrCat("state '", tensor.name, "'");
  }
  MSRT_ASSIGN_OR_RETURN(const size_t entry, FindEntry(training, kTrainEntry));
  Graph& graph = training.graphs[training.entries[entry]];
  for (size_t i = 0; i < batch.tensors.size() && i < graph.inputs.size(); ++i) {
    if (!IsFinite(batch.tensors[i]))
      return StrCat("input '", graph.value(graph.inputs[i]).name, "'");
  }
  const std::vector<std::string> shown = ShowValues(&graph);
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const CompiledModel> model,
                        CompileModule(std::move(environment), std::move(training), {}));
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model, entry, {}));
  MSRT_RETURN_IF_ERROR(SetStates(before, session.get()));
  MSRT_RETURN_IF_ERROR(SetBatch(batch, rate, session.get()));
  MSRT_RETURN_IF_ERROR(session->Run({}));
  for (size_t i = 0; i < shown.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(const TensorView value, session->Output(i));
    if (!IsFinite(value.dtype, value.data, value.elements())) return shown[i];
  }
  return std::string();
}

std::string NonFiniteParameter(const Checkpoint& checkpoint) {
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    const bool counts =
        tensor.role == StateRole::kParameter || tensor.role == StateRole::kStatistic;
    if (counts && !IsFinite(tensor.data)) return tensor.name;
  }
  return {};
}

Result<StepResult> SafeStep(Trainer* trainer, const std::shared_ptr<const Environment>& environment,
                            const Batch& batch, const RunOptions& run) {
  MSRT_ASSIGN_OR_RETURN(const Checkpoint before, trainer->MakeCheckpoint());
  Result<StepResult> result = trainer->Step(batch, run);
  if (result.ok()) return result;
  MSRT_RETURN_IF_ERROR(trainer->Restore(before));
  Status status = std::move(result).status();
  if (status.code() != Code::kInvalidArgument) return status;
  // A batch that does not fit fails here too, and then has no such value.
  const Result<std::string> first =
      FindNonFinite(environment, trainer->module(), before, batch, trainer->rate());
  if (!first.ok() || first->empty()) return status;
  return MakeStatus(status.code(), status.message(), "; the first value that is not finite is ",
                    *first);
}

}  // namespace msrt
