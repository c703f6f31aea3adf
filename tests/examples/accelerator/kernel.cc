#include "tests/examples/accelerator/kernel.h"

#include <chrono>
#include <thread>

#include "tests/examples/accelerator/counters.h"
#include "tests/examples/accelerator/stream.h"

namespace accelerator {

Failure BoundKernel::Enqueue(const msrt_run_args& args) const {
  if (args.input_count != input_bytes_.size() || args.output_count != output_bytes_.size()) {
    return {MSRT_INTERNAL, "a kernel is run with a wrong number of arguments"};
  }
  ++Count().kernels;
  Arguments arguments;
  arguments.inputs.assign(args.inputs, args.inputs + args.input_count);
  arguments.outputs.assign(args.outputs, args.outputs + args.output_count);
  if (Failure failure = FindForms(args, &arguments.forms); !failure.ok()) return failure;
  return static_cast<Stream*>(args.stream)
      ->Do([this, arguments = std::move(arguments)](Stream* stream) {
        return Launch(arguments, stream);
      });
}

Failure BoundKernel::FindForms(const msrt_run_args& args, FormList* out) const {
  out->resize(args.input_count);
  for (size_t i = 0; i < has_form_.size() && args.input_versions != nullptr; ++i) {
    if (!has_form_[i] || args.input_versions[i] == 0) continue;
    if (Failure f = kernel_.forms().Get(static_cast<Stream*>(args.stream), &memory(), i,
                                        args.input_versions[i], args.inputs[i], input_bytes_[i],
                                        &(*out)[i]);
        !f.ok())
      return f;
  }
  return {};
}

Failure BoundKernel::Launch(const Arguments& arguments, Stream* stream) const {
  Accelerator& a = accelerator();
  const bool late = a.options.fails_late;
  if (!late) {
    if (Failure failure = a.faults.OnRun(); !failure.ok()) return failure;
  }
  auto tensors = std::make_shared<Tensors>();
  tensors->inputs.resize(arguments.inputs.size());
  tensors->outputs.resize(arguments.outputs.size());
  for (size_t i = 0; i < tensors->inputs.size(); ++i) {
    if (Failure f =
            memory().Find(arguments.inputs[i], input_bytes_[i], "an input", &tensors->inputs[i]);
        !f.ok())
      return f;
  }
  for (size_t i = 0; i < tensors->outputs.size(); ++i) {
    if (Failure f = memory().Find(arguments.outputs[i], output_bytes_[i], "an output",
                                  &tensors->outputs[i]);
        !f.ok())
      return f;
  }
  tensors->forms = arguments.forms;
  const Piece piece = stream->NextPiece();
  for (size_t i = 0; i < tensors->inputs.size(); ++i)
    memory().Touch(tensors->inputs[i], input_bytes_[i], piece, false);
  for (size_t i = 0; i < tensors->outputs.size(); ++i)
    memory().Touch(tensors->outputs[i], output_bytes_[i], piece, true);
  stream->Enqueue([this, &a, late, tensors] {
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
