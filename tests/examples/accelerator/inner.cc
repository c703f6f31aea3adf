#include "tests/examples/accelerator/inner.h"

#include <algorithm>
#include <new>

#include "tests/examples/accelerator/chain.h"

namespace accelerator {
namespace {

// The host interface for inner kernels that run in a stream: no threads but the stream's own, and a
// buffer for the text of an error. The host's own table must not be used there: its `fail` applies
// to the thread in which the host called.
class StreamHost {
 public:
  StreamHost() : api_(MSRT_INIT(msrt_host_api)) {
    api_.threads = 1;
    api_.host = this;
    api_.fail = [](void* host, const char* message) {
      static_cast<StreamHost*>(host)->text_ = message;
    };
    api_.log = [](void*, int32_t, const char*) {};
    api_.allocate = [](void*, size_t bytes, size_t alignment) {
      return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    };
    api_.deallocate = [](void*, void* pointer, size_t, size_t alignment) {
      ::operator delete(pointer, std::align_val_t(alignment));
    };
    api_.parallel_for = [](void*, int64_t count, void (*task)(void*, int64_t),
                           void* context) -> msrt_status {
      for (int64_t i = 0; i < count; ++i) task(context, i);
      return MSRT_OK;
    };
  }
  const msrt_host_api* api() const { return &api_; }
  Failure Take(msrt_status code) { return {code, code == MSRT_OK ? "" : std::move(text_)}; }
  void* Scratch(size_t bytes) {
    scratch_.resize(bytes + 64);
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch_.data()) + 63) / 64 * 64);
  }

 private:
  msrt_host_api api_;
  std::string text_;
  std::vector<std::byte> scratch_;
};

// The answer of the inner delegate. Its refusals are passed on at once.
struct InnerAnswer {
  const msrt_query_sink* outer;
  std::vector<InnerOffer> offers;  // by node
  void Refuse(uint32_t node, const std::string& reason) {
    offers[node].seconds = -1;
    if (outer != nullptr) outer->refuse(outer->sink, node, reason.c_str());
  }
};

}  // namespace

std::vector<InnerOffer> AskInner(const Accelerator& a, const msrt_host_api* host,
                                 const msrt_graph_view& graph, const msrt_query_sink* sink) {
  InnerAnswer answer{sink, std::vector<InnerOffer>(graph.node_count)};
  msrt_query_sink inner = MSRT_INIT(msrt_query_sink);
  inner.sink = &answer;
  inner.candidate = [](void* self, const msrt_candidate* c) {
    static_cast<InnerAnswer*>(self)->offers[c->nodes[0]] = {
        c->seconds,
        c->arithmetic == nullptr ? "" : c->arithmetic,
        {c->in_place, c->in_place + c->in_place_count}};
  };
  inner.refuse = [](void* self, uint32_t node, const char* reason) {
    static_cast<InnerAnswer*>(self)->Refuse(node, reason);
  };
  if (a.inner.api.query(a.inner.self, host, &graph, &inner) != MSRT_OK)
    std::fill(answer.offers.begin(), answer.offers.end(), InnerOffer());
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    const std::string op = NodeAt(graph, n).op;
    const bool unsupported = std::find(a.options.unsupported.begin(), a.options.unsupported.end(),
                                       op) != a.options.unsupported.end();
    if (unsupported && answer.offers[n].seconds >= 0)
      answer.Refuse(n, "the accelerator has no " + op);
  }
  return std::move(answer.offers);
}

InnerKernel::~InnerKernel() {
  if (kernel_ != nullptr) inner_->api.kernel_destroy(inner_->self, kernel_);
}

Failure InnerKernel::Compile(const Accelerator& a, const msrt_host_api* host,
                             const msrt_graph_view& graph, uint32_t node) {
  inner_ = &a.inner;
  // It supports single nodes only, in plain layouts.
  msrt_candidate one = MSRT_INIT(msrt_candidate);
  one.nodes = &node;
  one.node_count = 1;
  one.input_count = NodeAt(graph, node).input_count;
  one.output_count = NodeAt(graph, node).output_count;
  one.algorithm = "";
  // The inner delegate has set the text of the error: it uses the same host.
  const msrt_status code = inner_->api.compile(inner_->self, host, &graph, &one, &kernel_);
  return {code, code == MSRT_OK ? "" : "an inner kernel failed to compile"};
}

size_t InnerKernel::bytes() const { return inner_->api.kernel_bytes(inner_->self, kernel_); }

InnerBound::~InnerBound() {
  if (bound_ != nullptr) inner_->api.bound_destroy(inner_->self, bound_);
}

Failure InnerBound::Bind(const InnerKernel& kernel, const msrt_host_api* host,
                         const msrt_bound_node& node) {
  inner_ = kernel.inner_;
  const msrt_status code = inner_->api.bind(inner_->self, host, kernel.kernel_, &node, 1, &bound_);
  return {code, code == MSRT_OK ? "" : "an inner kernel cannot be bound"};
}

Failure InnerBound::Prepare(const msrt_host_api* host) const {
  const msrt_status code = inner_->api.prepare(inner_->self, host, bound_);
  return {code, code == MSRT_OK ? "" : "an inner kernel failed to prepare"};
}

size_t InnerBound::bytes() const { return inner_->api.bound_bytes(inner_->self, bound_); }

Failure InnerBound::Run(const std::vector<const void*>& inputs,
                        const std::vector<void*>& outputs) const {
  StreamHost host;
  const msrt_scratch scratch{
      &host, [](void* h, size_t bytes) { return static_cast<StreamHost*>(h)->Scratch(bytes); }};
  msrt_run_args args = MSRT_INIT(msrt_run_args);
  args.host = host.api();
  args.inputs = inputs.data();
  args.input_count = inputs.size();
  args.outputs = outputs.data();
  args.output_count = outputs.size();
  args.scratch = &scratch;
  return host.Take(inner_->api.run(inner_->self, bound_, &args));
}

}  // namespace accelerator
