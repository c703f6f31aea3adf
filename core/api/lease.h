// Lease of the application's memory, which the library uses in place. `release` runs when the last
// holder of the lease is gone, but only after Accept: if the call that took the memory fails, the
// caller keeps it.
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
