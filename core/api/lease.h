// Memory of the application's that is used in place. It is given back when nobody holds the lease
// any more, but only once the call that took it has succeeded: until Accept, the memory stays the
// caller's.
#pragma once

#include <memory>
#include <utility>

namespace msrt {

template <typename Release>
class Lease {
 public:
  explicit Lease(Release release) : release_(std::move(release)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (accepted_) release_();
  }
  void Accept() { accepted_ = true; }

 private:
  Release release_;
  bool accepted_ = false;
};

template <typename Release>
std::shared_ptr<Lease<Release>> MakeLease(Release release) {
  return std::make_shared<Lease<Release>>(std::move(release));
}

}  // namespace msrt
