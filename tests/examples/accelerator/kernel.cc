#include "tests/examples/accelerator/kernel.h"

#include <chrono>
#include <thread>

#include "tests/examples/accelerator/stream.h"

namespace accelerator {

Failure BoundKernel::Enqueue(const msrt_run_args& args) const {
  Accelerator& a = accelerator();
  const bool late = a.options.fails_late;
  if (!late) {
    if (Failure failure = a.faults.OnRun(); !failure.ok()) return failure;
  }
  if (args.input_count != input_bytes_.size() || args.output_count != output_bytes_.size()) {
    return {MSRT_INTERNAL, "a kernel is run with a wrong number of arguments"};
  }
  auto tensors = std::make_shared<Tensors>();
  tensors->inputs.resize(args.input_count);
  tensors->outputs.resize(args.output_count);
  for (size_t i = 0; i < args.input_count; ++i) {
    if (Failure f = a.memory.Find(args.inputs[i], input_bytes_[i], "an input", &tensors->inputs[i]);
        !f.ok())
      return f;
  }
  for (size_t i = 0; i < args.output_count; ++i) {
    if (Failure f =
            a.memory.Find(args.outputs[i], output_bytes_[i], "an output", &tensors->outputs[i]);
        !f.ok())
      return f;
  }
  static_cast<Stream*>(args.stream)->Enqueue([this, &a, late, tensors] {
    const Failure failure = late ? a.faults.OnRun() : Failure{};
    return failure.ok() ? RunNow(*tensors) : failure;
  });
  return {};
}

Failure BoundKernel::RunNow(const Tensors& tensors) const {
  const double pretend = accelerator().options.pretend;
  if (pretend <= 0) return Run(tensors);
  std::this_thread::sleep_for(std::chrono::duration<double>(kernel_.seconds() * pretend));
  return {};
}

}  // namespace accelerator
