// Guard of objects that belong to one thread at a time: a second thread gets an error instead of a
// data race.
#pragma once

#include <atomic>
#include <memory>

#include "core/api/handles.h"

namespace msrt {

// An object, kept alive and reserved for one call. Object has a member `std::atomic<bool> busy`.
template <typename Object>
class Exclusive {
 public:
  static Result<Exclusive> Enter(const typename HandleOf<Object>::Type* handle,
                                 std::string_view argument) {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<Object> object, ObjectOf<Object>(handle, argument));
    if (object->busy.exchange(true, std::memory_order_acquire)) {
      return InvalidArgument(argument,
                             " is in use by another call; it belongs to one thread at a time");
    }
    return Exclusive(std::move(object));
  }
  Exclusive(Exclusive&&) noexcept = default;
  Exclusive& operator=(Exclusive&&) = delete;
  ~Exclusive() {
    if (object_ != nullptr) object_->busy.store(false, std::memory_order_release);
  }

  Object* operator->() const { return object_.get(); }
  Object& operator*() const { return *object_; }

 private:
  explicit Exclusive(std::shared_ptr<Object> object) : object_(std::move(object)) {}
  std::shared_ptr<Object> object_;
};

}  // namespace msrt
