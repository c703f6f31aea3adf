#include "core/comm/job/wake_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace msrt {

Result<WakePipe> WakePipe::Open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return IoError("pipe: ", std::strerror(errno));
  return WakePipe(Socket(ends[0]), Socket(ends[1]));
}

void WakePipe::Wake() const {
  const int saved = errno;
  const char byte = 0;
  // A full pipe wakes as well.
  (void)!write(writing_.fd(), &byte, 1);
  errno = saved;
}

void WakePipe::Drain() const {
  char bytes[64];
  while (read(reading_.fd(), bytes, sizeof bytes) > 0) {
  }
}

}  // namespace msrt
