// Owns a user pointer that an application registered; keeps its library loaded.
#pragma once

#include <memory>

namespace msrt {

// The application's pointer, and the library that contains its callbacks.
class UserOwner {
 public:
  UserOwner(void* user, void (*destroy)(void*), std::shared_ptr<const void> library)
      : user_(user), destroy_(destroy), library_(std::move(library)) {}
  UserOwner(const UserOwner&) = delete;
  UserOwner& operator=(const UserOwner&) = delete;
  ~UserOwner() {
    if (owns_user_ && destroy_ != nullptr) destroy_(user_);
  }
  // From now on this object owns `user`; until then the caller does.
  void TakeOver() { owns_user_ = true; }

 private:
  void* const user_;
  void (*const destroy_)(void*);
  const std::shared_ptr<const void> library_;
  bool owns_user_ = false;
};

}  // namespace msrt
