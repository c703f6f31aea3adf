#include "delegates/onednn/plan.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace msrt::onednn {

struct Plan::Handles {
  dnnl::stream stream;
  std::vector<memory> memories;  // arguments of all steps in order, the scratchpad after each
                                 // step's arguments if it has one
  std::vector<dnnl_exec_arg_t> arguments;
};

const void* LoopArgs::At(const Place& place) const {
  switch (place.kind) {
    case Place::kInput:
      return static_cast<const std::byte*>(inputs[place.number].data) + place.offset;
    case Place::kOutput:
      return static_cast<const std::byte*>(outputs[place.number].data) + place.offset;
    case Place::kScratch:
      return scratch + place.number;
    case Place::kFixed:
      return place.data;
    case Place::kForm:
      return forms[place.number];
  }
  return nullptr;
}

Plan::~Plan() { delete spare_.load(std::memory_order_acquire); }

size_t Plan::Reserve(size_t bytes) {
  const size_t offset = reserved_;
  reserved_ += AlignUp(bytes, kTensorAlignment);
  return offset;
}

void Plan::Append(dnnl::primitive primitive, const memory::desc& scratchpad,
                  std::vector<Argument> arguments) {
  scratchpad_ = std::max(scratchpad_, scratchpad.get_size());
  steps_.push_back({std::move(primitive), std::move(arguments), scratchpad, nullptr});
}

void Plan::AddReorder(Place from, const memory::desc& from_desc, Place to,
                      const memory::desc& to_desc) {
  const dnnl::reorder::primitive_desc descriptor(Engine(), from_desc, Engine(), to_desc,
                                                 UserScratchpad());
  Add<dnnl::reorder::primitive_desc, dnnl::reorder>(
      descriptor, {{DNNL_ARG_FROM, from, from_desc}, {DNNL_ARG_TO, to, to_desc}});
}

Place Plan::Converted(Place from, const memory::desc& desc, const memory::desc& wanted) {
  if (desc == wanted) return from;
  const Place converted = Place::Scratch(Reserve(wanted.get_size()));
  AddReorder(from, desc, converted, wanted);
  return converted;
}

Place Plan::ParameterForm(size_t input, const memory::desc& desc, const memory::desc& wanted,
                          sdk::Packing packing) {
  if (desc == wanted) return Place::Input(input);
  const dnnl::reorder::primitive_desc descriptor(Engine(), desc, Engine(), wanted);
  forms_.push_back({input, desc, wanted, dnnl::reorder(descriptor), std::move(packing)});
  return Place::Form(forms_.size() - 1);
}

Result<const void*> Plan::Find(const Form& form, const sdk::RunArgs& args) {
  return args.forms.Get(form.input, form.packing, form.to.get_size(), [&](std::byte* packed) {
    dnnl::stream stream(Engine());
    memory from(form.from, Engine(), args.inputs[form.input].data), to(form.to, Engine(), packed);
    form.reorder.execute(stream, from, to);
    stream.wait();
    return OkStatus();
  });
}

std::unique_ptr<Plan::Handles> Plan::MakeHandles() const {
  auto handles = std::make_unique<Handles>();
  handles->stream = dnnl::stream(Engine());
  const auto add = [&](int id, const memory::desc& desc) {
    handles->memories.emplace_back(desc, Engine(), nullptr);
    handles->arguments.push_back({id, handles->memories.back().get()});
  };
  for (const Step& step : steps_) {
    for (const Argument& a : step.arguments) add(a.id, a.desc);
    if (step.has_scratchpad()) add(DNNL_ARG_SCRATCHPAD, step.scratchpad);
  }
  return handles;
}

Status Plan::Run(const sdk::RunArgs& args, std::byte* scratch) const {
  std::vector<const void*> forms;
  for (const Form& form : forms_) {
    MSRT_ASSIGN_OR_RETURN(const void* data, Find(form, args));
    forms.push_back(data);
  }
  std::unique_ptr<Handles> handles(spare_.exchange(nullptr, std::memory_order_acq_rel));
  if (handles == nullptr) handles = MakeHandles();
  size_t at = 0;
  const auto set = [&](void* data) { handles->memories[at++].set_data_handle(data); };
  Status status;
  const LoopArgs all{args.inputs, args.outputs, scratch, args.parallel, forms};
  for (const Step& step : steps_) {
    if (step.loop) {
      status = step.loop(all);
      if (!status.ok()) break;
      continue;
    }
    const size_t first = at;
    for (const Argument& a : step.arguments) set(const_cast<void*>(all.At(a.place)));
    if (step.has_scratchpad()) set(scratch + reserved_);
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(step.primitive.get(), handles->stream.get(),
                               static_cast<int>(at - first), handles->arguments.data() + first),
        "could not execute a primitive");
  }
  Handles* mine = handles.release();
  Handles* expected = nullptr;
  if (!spare_.compare_exchange_strong(expected, mine, std::memory_order_acq_rel)) delete mine;
  return status;
}

}  // namespace msrt::onednn
