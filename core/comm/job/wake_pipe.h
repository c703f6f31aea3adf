// Wakes a thread that waits in poll. Any thread, or a signal handler, may call Wake.
#pragma once

#include "core/comm/job/socket.h"

namespace msrt {

class WakePipe {
 public:
  static Result<WakePipe> Open();
  int fd() const { return reading_.fd(); }
  void Wake() const;
  void Drain() const;

 private:
  // Sockets own descriptors of any kind.
  WakePipe(Socket reading, Socket writing)
      : reading_(std::move(reading)), writing_(std::move(writing)) {}
  Socket reading_, writing_;
};

}  // namespace msrt
