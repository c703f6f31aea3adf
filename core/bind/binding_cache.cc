#include "core/bind/binding_cache.h"

namespace msrt {
namespace {

// Kinds and element types belong to the key, so that an input of the wrong type never finds a
// binding of the right one.
void AppendKey(const Type& type, std::string* key) {
  key->push_back(static_cast<char>(type.kind));
  if (type.kind == TypeKind::kList && type.element != nullptr) return AppendKey(*type.element, key);
  key->push_back(static_cast<char>(type.dtype));
  key->push_back(static_cast<char>(type.rank()));
  key->append(reinterpret_cast<const char*>(type.dims.begin()), type.dims.size() * sizeof(int64_t));
}

std::string KeyOf(const BindRequest& request) {
  std::string key;
  for (const Type& t : request.inputs) AppendKey(t, &key);
  for (const Type& t : request.states) AppendKey(t, &key);
  return key;
}

}  // namespace

Result<std::shared_ptr<const Binding>> BindingCache::Get(
    const BindRequest& request, FunctionRef<Result<std::shared_ptr<const Binding>>()> make) {
  std::string key = KeyOf(request);
  {
    std::lock_guard lock(mutex_);
    const auto it = index_.find(key);
    if (it != index_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return it->second->binding;
    }
  }
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const Binding> made, make());
  std::list<Entry> dropped;  // destroyed without the lock: a binding's destructor calls delegates
  std::lock_guard lock(mutex_);
  if (const auto it = index_.find(key); it != index_.end()) return it->second->binding;
  entries_.push_front({key, made});
  index_.emplace(std::move(key), entries_.begin());
  bytes_ += made->bytes;
  while (bytes_ > max_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().binding->bytes;
    index_.erase(entries_.back().key);
    dropped.splice(dropped.end(), entries_, std::prev(entries_.end()));
  }
  return made;
}

size_t BindingCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

size_t BindingCache::count() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace msrt
