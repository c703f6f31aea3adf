#include "delegates/onednn/weights.h"

namespace msrt::onednn {

Result<const void*> PackedWeights::Get(const memory::desc& wanted) {
  if (wanted == desc_) return data_;
  const std::lock_guard lock(mutex_);
  for (const Form& form : forms_) {
    if (form.desc == wanted) return static_cast<const void*>(form.block.data());
  }
  MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(allocator_, wanted.get_size(), "packed weights"));
  const dnnl::reorder::primitive_desc descriptor(Engine(), desc_, Engine(), wanted);
  dnnl::stream stream(Engine());
  memory from(desc_, Engine(), const_cast<void*>(data_)), to(wanted, Engine(), block.data());
  dnnl::reorder(descriptor).execute(stream, from, to);
  stream.wait();
  forms_.push_back({wanted, std::move(block)});
  return static_cast<const void*>(forms_.back().block.data());
}

size_t PackedWeights::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const Form& form : forms_) bytes += form.block.bytes();
  return bytes;
}

Result<Place> PlaceWeights(PackedWeights* packed, size_t input, const memory::desc& plain, const memory::desc& wanted, Plan* plan) {
  if (packed != nullptr) {
    MSRT_ASSIGN_OR_RETURN(const void* data, packed->Get(wanted));
    return Place::Fixed(data);
  }
  if (plain == wanted) return Place::Input(input);
  const Place converted = Place::Scratch(plan->Reserve(wanted.get_size()));
  plan->AddReorder(Place::Input(input), plain, converted, wanted);
  return converted;
}

}  // namespace msrt::onednn
