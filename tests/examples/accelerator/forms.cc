#include "tests/examples/accelerator/forms.h"

#include "tests/examples/accelerator/counters.h"

namespace accelerator {

Failure Forms::Get(Stream* stream, DeviceMemory* memory, size_t input, uint64_t version,
                   const void* address, size_t bytes, std::shared_ptr<const Form>* out) {
  std::lock_guard lock(mutex_);
  Packed& packed = forms_[{stream, input}];
  if (packed.form != nullptr && packed.version == version && packed.form->bytes() == bytes) {
    *out = packed.form;
    return {};
  }
  auto form = std::make_shared<Form>(memory);
  if (Failure failure = form->Allocate(bytes); !failure.ok()) return failure;
  Failure failure = stream->Do([form, memory, address, bytes](Stream* s) -> Failure {
    auto use = std::make_shared<DeviceMemory::Use>();
    if (Failure f = memory->Find(address, bytes, "a parameter", use.get()); !f.ok()) return f;
    memory->Touch(*use, bytes, s->NextPiece(), false);
    s->Enqueue([form, use]() -> Failure {
      form->Pack(use->data());
      return {};
    });
    return {};
  });
  if (!failure.ok()) return failure;
  ++Count().packings;
  packed = {version, form};
  *out = form;
  return {};
}

}  // namespace accelerator
