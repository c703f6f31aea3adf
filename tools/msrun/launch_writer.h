// Writes text to a descriptor on a thread, in order, so that whoever reads it slowly (a pager, a
// full pipe) does not keep the launcher from its work.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace msrt {

// Thread-safe.
class LaunchWriter {
 public:
  // `changed` is called on the writer's thread when everything is written, when a full writer takes
  // text again, and when writing fails. It may be called after the writer is gone.
  LaunchWriter(int to, std::function<void()> changed);
  // Does not wait for what is not written yet.
  ~LaunchWriter();
  LaunchWriter(const LaunchWriter&) = delete;
  LaunchWriter& operator=(const LaunchWriter&) = delete;

  int descriptor() const;
  // Never waits. Text after a failure is dropped.
  void Write(std::string text);
  // More than enough waits to be written: the caller reads nothing more for now.
  bool full() const;
  // Everything is written, or cannot be.
  bool idle() const;
  bool failed() const;

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

}  // namespace msrt
