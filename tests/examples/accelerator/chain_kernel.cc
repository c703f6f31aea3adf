// One node, or several in a row: kernels of the inner delegate, one after the other.
#include "delegates/sdk/graph_image.h"
#include "tests/examples/accelerator/chain.h"
#include "tests/examples/accelerator/inner.h"
#include "tests/examples/accelerator/kernel.h"
#include "tests/examples/accelerator/strided.h"

namespace accelerator {
namespace {

using Place = Wiring::Place;

class ChainKernel final : public Kernel {
 public:
  using Kernel::Kernel;
  Failure Compile(const msrt_host_api* host, const msrt_graph_view& graph,
                  const msrt_candidate& candidate) {
    wiring = WiringOf(graph, candidate.nodes, candidate.node_count);
    if (accelerator().options.forms && candidate.node_count == 1) {
      const msrt_node_view& node = NodeAt(graph, candidate.nodes[0]);
      for (size_t i = 0; i < node.input_count; ++i) {
        has_form.push_back(node.inputs[i].state_slot >= 0 &&
                           node.inputs[i].state_role == MSRT_STATE_PARAMETER);
      }
    }
    for (size_t n = 0; n < candidate.node_count; ++n) {
      if (Failure f = inner.emplace_back().Compile(accelerator(), host, graph, candidate.nodes[n]);
          !f.ok())
        return f;
    }
    return {};
  }
  Failure Bind(const msrt_host_api* host, const msrt_bound_node* nodes,
               std::unique_ptr<BoundKernel>* out) const override;
  size_t bytes() const override {
    size_t bytes = 0;
    for (const InnerKernel& k : inner) bytes += k.bytes();
    return bytes;
  }

  Wiring wiring;
  std::vector<bool> has_form;      // by input; see BoundKernel
  std::vector<InnerKernel> inner;  // by node of the candidate
};

class BoundChain final : public BoundKernel {
 public:
  BoundChain(const ChainKernel& kernel) : BoundKernel(kernel), wiring_(kernel.wiring) {
    input_bytes_.resize(wiring_.input_count);
    output_bytes_.resize(wiring_.output_count);
    inside_bytes_.resize(wiring_.inside_count);
    has_form_ = kernel.has_form;
  }

  Failure Add(const InnerKernel& kernel, const msrt_host_api* host, const msrt_bound_node& node) {
    const Wiring::NodePlaces& places = wiring_.nodes[inner_.size()];
    const auto strides = [](const msrt_strides* all, size_t i) {
      return all == nullptr ? nullptr : &all[i];
    };
    for (size_t i = 0; i < node.input_count; ++i)
      Note(places.inputs[i], {node.inputs[i], strides(node.input_strides, i)}, &inputs_);
    for (size_t i = 0; i < node.output_count; ++i)
      Note(places.outputs[i], {node.outputs[i], strides(node.output_strides, i)}, &outputs_);
    msrt_bound_node dense = node;
    dense.input_strides = dense.output_strides = nullptr;
    return inner_.emplace_back().Bind(kernel, host, dense);
  }

  size_t bytes() const override {
    size_t bytes = 0;
    for (const InnerBound& b : inner_) bytes += b.bytes();
    return bytes;
  }

  Failure Prepare(const msrt_host_api* host) const override {
    for (const InnerBound& b : inner_) {
      if (Failure failure = b.Prepare(host); !failure.ok()) return failure;
    }
    return {};
  }

 protected:
  Failure Run(const Tensors& tensors) const override {
    std::vector<Temporary> inside;
    for (size_t bytes : inside_bytes_) {
      if (Failure failure = inside.emplace_back(&memory()).Allocate(bytes); !failure.ok())
        return failure;
    }
    // Dense copies of the tensors with strides.
    std::vector<Temporary> dense_inputs, dense_outputs;
    if (Failure f = MakeDense(inputs_, tensors.inputs, true, &dense_inputs); !f.ok()) return f;
    for (size_t i = 0; i < tensors.forms.size(); ++i) {
      const Form* const form = tensors.forms[i].get();
      if (form == nullptr || dense_inputs[i].data() != nullptr) continue;  // or strided
      if (Failure f = dense_inputs[i].Allocate(form->bytes()); !f.ok()) return f;
      form->Unpack(dense_inputs[i].data());
    }
    if (Failure f = MakeDense(outputs_, tensors.outputs, false, &dense_outputs); !f.ok()) return f;
    const auto at = [&](const Place& place) -> void* {
      if (place.kind == Place::kNone) return nullptr;
      if (place.kind == Place::kInside) return inside[place.index].data();
      const bool input = place.kind == Place::kInput;
      const Temporary& dense = (input ? dense_inputs : dense_outputs)[place.index];
      if (dense.data() != nullptr) return dense.data();
      return (input ? tensors.inputs : tensors.outputs)[place.index].data();
    };
    for (size_t n = 0; n < inner_.size(); ++n) {
      std::vector<const void*> inputs;
      std::vector<void*> outputs;
      for (const Place& p : wiring_.nodes[n].inputs) inputs.push_back(at(p));
      for (const Place& p : wiring_.nodes[n].outputs) outputs.push_back(at(p));
      if (Failure failure = inner_[n].Run(inputs, outputs); !failure.ok()) return failure;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (dense_outputs[i].data() != nullptr)
        outputs_[i].Scatter(dense_outputs[i].data(), tensors.outputs[i].data());
    }
    return {};
  }

 private:
  void Note(const Place& place, StridedTensor tensor, std::vector<StridedTensor>* all) {
    if (place.kind == Place::kInput) input_bytes_[place.index] = tensor.extent_bytes();
    if (place.kind == Place::kOutput) output_bytes_[place.index] = tensor.extent_bytes();
    if (place.kind == Place::kInside) inside_bytes_[place.index] = tensor.dense_bytes();
    if (place.kind == Place::kNone || place.kind == Place::kInside) return;
    if (all->size() <= place.index) all->resize(place.index + 1);
    (*all)[place.index] = std::move(tensor);
  }

  // One entry for each tensor, without memory for those that are dense already.
  Failure MakeDense(const std::vector<StridedTensor>& tensors,
                    const std::vector<DeviceMemory::Use>& memory, bool gather,
                    std::vector<Temporary>* out) const {
    out->reserve(memory.size());
    for (size_t i = 0; i < memory.size(); ++i) {
      Temporary& dense = out->emplace_back(&this->memory());
      if (i >= tensors.size() || !tensors[i].is_strided() || memory[i].data() == nullptr) continue;
      if (Failure failure = dense.Allocate(tensors[i].dense_bytes()); !failure.ok()) return failure;
      if (gather) tensors[i].Gather(memory[i].data(), dense.data());
    }
    return {};
  }

  const Wiring& wiring_;
  std::vector<StridedTensor> inputs_, outputs_;  // of the candidate
  std::vector<InnerBound> inner_;
  std::vector<size_t> inside_bytes_;
};

Failure ChainKernel::Bind(const msrt_host_api* host, const msrt_bound_node* nodes,
                          std::unique_ptr<BoundKernel>* out) const {
  auto bound = std::make_unique<BoundChain>(*this);
  for (size_t n = 0; n < inner.size(); ++n) {
    if (Failure failure = bound->Add(inner[n], host, nodes[n]); !failure.ok()) return failure;
  }
  *out = std::move(bound);
  return {};
}

}  // namespace

Failure MakeChainKernel(Accelerator* a, const msrt_host_api* host, const msrt_graph_view& graph,
                        const msrt_candidate& candidate, std::unique_ptr<Kernel>* out) {
  auto kernel = std::make_unique<ChainKernel>(a, candidate);
  Failure failure = kernel->Compile(host, graph, candidate);
  if (failure.ok()) *out = std::move(kernel);
  return failure;
}

}  // namespace accelerator
