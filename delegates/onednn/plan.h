// A plan: the primitives that compute one node at one set of shapes, in order, and where each of
// their arguments lies.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/graph/tensor.h"
#include "delegates/onednn/library.h"
#include "delegates/sdk/delegate.h"

namespace msrt::onednn {

// Where an argument's bytes are when the plan runs.
struct Place {
  enum Kind : uint8_t { kInput, kOutput, kScratch, kFixed, kForm } kind;
  size_t number = 0;           // of the input, output or form; byte offset into scratch memory
  const void* data = nullptr;  // kFixed: packed weights and constants, which outlive the plan
  size_t offset = 0;           // bytes into the input or output

  static Place Input(size_t i, size_t offset = 0) { return {kInput, i, nullptr, offset}; }
  static Place Output(size_t i, size_t offset = 0) { return {kOutput, i, nullptr, offset}; }
  static Place Scratch(size_t offset) { return {kScratch, offset}; }
  static Place Fixed(const void* data) { return {kFixed, 0, data}; }
  static Place Form(size_t i) { return {kForm, i}; }
};

struct Argument {
  int id;  // DNNL_ARG_...
  Place place;
  memory::desc desc;
};

// Arguments of a loop of our own between primitives.
struct LoopArgs {
  std::span<const TensorView> inputs, outputs;
  std::byte* scratch;
  ParallelFor& parallel;
  std::span<const void* const> forms;  // of parameters

  const void* At(const Place& place) const;
};
using Loop = std::function<Status(const LoopArgs&)>;

class Plan {
 public:
  Plan() = default;
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Bytes of scratch memory for the whole run; returns their offset.
  size_t Reserve(size_t bytes);
  // Appends a primitive. All primitives share one scratchpad, since they run one after the other.
  template <typename Descriptor, typename Primitive = dnnl::primitive>
  void Add(const Descriptor& descriptor, std::vector<Argument> arguments) {
    Append(Primitive(descriptor), descriptor.scratchpad_desc(), std::move(arguments));
  }
  // Appends a copy from one form to another.
  void AddReorder(Place from, const memory::desc& from_desc, Place to, const memory::desc& to_desc);

  // A tensor in the form `wanted`: where it is, or a copy in scratch memory that is made there.
  Place Converted(Place from, const memory::desc& desc, const memory::desc& wanted);

  // A parameter in the form `wanted`, which the host keeps while the parameter does not change.
  Place ParameterForm(size_t input, const memory::desc& desc, const memory::desc& wanted,
                      sdk::Packing packing);

  void AddLoop(Loop loop) { steps_.push_back({{}, {}, {}, std::move(loop)}); }

  bool empty() const { return steps_.empty(); }
  size_t primitives() const { return steps_.size(); }
  size_t scratch_bytes() const { return reserved_ + scratchpad_; }
  // `scratch` has scratch_bytes(). May be called from several threads at once. Throws dnnl::error.
  Status Run(const sdk::RunArgs& args, std::byte* scratch) const;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
    memory::desc scratchpad;
    Loop loop;  // in place of a primitive
    bool has_scratchpad() const { return !loop && scratchpad.get_size() > 0; }
  };
  struct Form {
    size_t input;
    memory::desc from, to;
    dnnl::reorder reorder;
    sdk::Packing packing;
  };
  static Result<const void*> Find(const Form& form, const sdk::RunArgs& args);
  // The library's handles of one running call. Making them costs half a microsecond each, setting
  // their pointers almost nothing; so each plan keeps one set for the next call, and a second call
  // at the same time makes its own.
  struct Handles;
  void Append(dnnl::primitive primitive, const memory::desc& scratchpad,
              std::vector<Argument> arguments);
  std::unique_ptr<Handles> MakeHandles() const;

  std::vector<Step> steps_;
  std::vector<Form> forms_;
  size_t reserved_ = 0, scratchpad_ = 0;
  mutable std::atomic<Handles*> spare_{nullptr};
};

}  // namespace msrt::onednn
