#include "core/delegate/state_forms.h"

namespace msrt {
namespace {

std::string_view TextOf(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

StateForm StateForm::Make(const msrt_packing& packing, Block data) {
  return {std::string(TextOf(packing.kernel)), std::string(TextOf(packing.isa)), packing.block,
          packing.version, std::move(data)};
}

bool StateForm::Is(const msrt_packing& packing, size_t bytes) const {
  return version == packing.version && block == packing.block && data.bytes() == bytes &&
         kernel == TextOf(packing.kernel) && isa == TextOf(packing.isa);
}

Result<std::shared_ptr<const StateForm>> StateForms::Get(Allocator* allocator, size_t slot,
                                                         uint64_t version,
                                                         const msrt_packing& packing, size_t bytes,
                                                         FunctionRef<Status(std::byte*)> pack) {
  const Key key{slot, version};
  {
    const std::lock_guard lock(mutex_);
    if (auto form = Find(key, packing, bytes); form != nullptr) return form;
  }
  MSRT_ASSIGN_OR_RETURN(Block data, Block::Make(allocator, bytes, "packed state"));
  MSRT_RETURN_IF_ERROR(pack(data.data()));
  auto made = std::make_shared<const StateForm>(StateForm::Make(packing, std::move(data)));
  const std::lock_guard lock(mutex_);
  if (auto form = Find(key, packing, bytes); form != nullptr) return form;
  // Forms of versions that no session holds any more.
  const auto end = forms_.lower_bound({slot + 1, 0});
  for (auto it = forms_.lower_bound({slot, 0}); it != end;)
    it = it->second.expired() ? forms_.erase(it) : std::next(it);
  forms_.emplace(key, made);
  return std::shared_ptr<const StateForm>(std::move(made));
}

std::shared_ptr<const StateForm> StateForms::Find(const Key& key, const msrt_packing& packing,
                                                  size_t bytes) const {
  for (auto [it, end] = forms_.equal_range(key); it != end; ++it) {
    if (auto form = it->second.lock(); form != nullptr && form->Is(packing, bytes)) return form;
  }
  return nullptr;
}

}  // namespace msrt
