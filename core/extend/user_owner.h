// Who ends what an application registered: its user pointer, with the library that its callbacks
// are in.
#pragma once

#include <memory>

namespace msrt {

// The application's pointer, and the library that its functions are in.
class UserOwner {
 public:
  UserOwner(void* user, void (*destroy)(void*), std::shared_ptr<const void> library)
      : user_(user), destroy_(destroy), library_(std::move(library)) {}
  UserOwner(const UserOwner&) = delete;
  UserOwner& operator=(const UserOwner&) = delete;
  ~UserOwner() {
    if (owns_user_ && destroy_ != nullptr) destroy_(user_);
  }
  // From now on `user` ends with this object; until then it is the caller's.
  void TakeOver() { owns_user_ = true; }

 private:
  void* const user_;
  void (*const destroy_)(void*);
  const std::shared_ptr<const void> library_;
  bool owns_user_ = false;
};

}  // namespace msrt
