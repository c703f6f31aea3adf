#include "core/delegate/delegate.h"

#include <algorithm>

#include "core/base/copy_known_fields.h"
#include "core/delegate/arithmetic.h"
#include "core/delegate/boundary.h"
#include "core/delegate/name.h"
#include "core/delegate/offered_graph.h"

namespace msrt {
namespace {

Status CheckTable(const msrt_delegate_api& api) {
  if (api.plugin_abi != MSRT_PLUGIN_ABI) {
    return Unsupported("delegate '", api.name, "' speaks plugin ABI ", api.plugin_abi,
                       ", this library ", MSRT_PLUGIN_ABI,
                       "; build it with this library's msrt_plugin.h");
  }
  const bool complete = api.query != nullptr && api.compile != nullptr &&
                        api.kernel_destroy != nullptr && api.bind != nullptr &&
                        api.bound_destroy != nullptr && api.run != nullptr;
  if (!complete)
    return InvalidArgument(
        "delegate '", api.name,
        "' lacks one of query, compile, kernel_destroy, bind, bound_destroy, run");
  return OkStatus();
}

// Finds the devices that the delegate refers to.
Result<std::vector<std::shared_ptr<const Device>>> FindDevices(
    const msrt_delegate_api& api, std::span<const std::shared_ptr<const Device>> registered) {
  std::vector<std::shared_ptr<const Device>> devices;
  if (api.device_count != 0 && api.devices == nullptr) {
    return InvalidArgument("delegate '", api.name, "': devices is NULL, but device_count ",
                           api.device_count);
  }
  for (size_t i = 0; i < api.device_count; ++i) {
    const std::string_view name = api.devices[i] == nullptr ? "" : api.devices[i];
    const auto found = std::find_if(registered.begin(), registered.end(),
                                    [&](const auto& d) { return d->name() == name; });
    if (found == registered.end()) {
      return NotFound("delegate '", api.name, "': there is no device '", name,
                      "'; register it before the delegate");
    }
    if (std::find(devices.begin(), devices.end(), *found) != devices.end())
      return InvalidArgument("delegate '", api.name, "' names device '", name, "' twice");
    devices.push_back(*found);
  }
  return devices;
}

// Collects the candidates and refusals of a query. Its callbacks must not throw, so it records that
// memory ran out.
struct Sink {
  const OfferedGraph& graph;
  int32_t device_count;  // of the delegate
  QueryResult& out;
  bool out_of_memory = false;
  bool offered_nothing = false;  // a candidate names no valid node

  template <typename F>
  void Guarded(F&& body) noexcept {
    try {
      body();
    } catch (...) {
      out_of_memory = true;
    }
  }
  void RefuseAll(const std::string& reason) {
    for (uint32_t n = 0; n < graph.node_count(); ++n) out.refusals.push_back({n, reason});
  }
  void Refuse(uint32_t node, const char* reason) {
    if (node < graph.node_count()) out.refusals.push_back({node, reason == nullptr ? "" : reason});
  }
  void Add(const msrt_candidate* given) {
    const msrt_candidate c = given == nullptr ? msrt_candidate{} : CopyKnownFields(*given);
    if (const std::string wrong = Malformed(c); !wrong.empty())
      return RefuseMalformed(c, StrCat("its candidate is malformed: ", wrong));
    Candidate copy;
    copy.nodes.assign(c.nodes, c.nodes + c.node_count);
    copy.input_layouts = Layouts(c.input_layouts, c.input_count);
    copy.output_layouts = Layouts(c.output_layouts, c.output_count);
    copy.seconds = c.seconds;
    copy.workspace_bytes = c.workspace_bytes;
    copy.arithmetic = c.arithmetic == nullptr ? "" : c.arithmetic;
    copy.packs_constants = c.packs_constants != 0;
    copy.reduced = c.reduced != 0;
    copy.algorithm = c.algorithm == nullptr ? "" : c.algorithm;
    for (size_t i = 0; i < c.in_place_count; ++i)
      copy.in_place.emplace_back(c.in_place[i].input, c.in_place[i].output);
    copy.tag = c.tag;
    copy.asynchronous = c.asynchronous != 0;
    copy.device = c.device == MSRT_ANY_DEVICE ? 0 : c.device;
    copy.strided_inputs = c.strided_inputs;
    copy.strided_outputs = c.strided_outputs;
    copy.granule = GranuleOf(c);
    out.candidates.push_back(std::move(copy));
    if (c.device != MSRT_ANY_DEVICE) return;
    for (int32_t d = 1; d < device_count; ++d) {
      out.candidates.push_back(Candidate(out.candidates.back()));
      out.candidates.back().device = d;
    }
  }

 private:
  static std::vector<Layout> Layouts(const msrt_layout* given, size_t count) {
    std::vector<Layout> layouts(count, Layout::kPlain);
    for (size_t i = 0; given != nullptr && i < count; ++i)
      layouts[i] = static_cast<Layout>(given[i]);
    return layouts;
  }

  static Dims GranuleOf(const msrt_candidate& c) {
    Dims granule;
    if (std::all_of(std::begin(c.granule), std::end(c.granule), [](int64_t g) { return g <= 1; }))
      return granule;
    for (const int64_t g : c.granule) granule.push_back(std::max<int64_t>(g, 1));
    return granule;
  }

  // A candidate that names no valid node is refused for every node, once.
  void RefuseMalformed(const msrt_candidate& c, const std::string& reason) {
    if (c.nodes != nullptr && c.node_count != 0 && c.nodes[0] < graph.node_count())
      return Refuse(c.nodes[0], reason.c_str());
    if (!offered_nothing) RefuseAll(reason);
    offered_nothing = true;
  }

  std::string Malformed(const msrt_candidate& c) const {
    if (c.nodes == nullptr || c.node_count == 0) return "it has no nodes";
    for (size_t i = 0; i < c.node_count; ++i) {
      if (c.nodes[i] >= graph.node_count()) return StrCat("node ", c.nodes[i], " does not exist");
      if (i != 0 && c.nodes[i] <= c.nodes[i - 1]) return "its nodes are not in ascending order";
    }
    if (c.node_count > 1 && !graph.CanBindAtOnce({c.nodes, c.node_count}))
      return "a size in it depends on data that it makes itself";
    if (!(c.seconds >= 0 && c.seconds < 1e9)) return StrCat("its estimate is ", c.seconds, " s");
    const CandidateBorder border = graph.BorderOf({c.nodes, c.node_count});
    if (c.input_count != border.inputs.size() || c.output_count != border.outputs.size()) {
      return StrCat("it has layouts for ", c.input_count, " inputs and ", c.output_count,
                    " outputs, there are ", border.inputs.size(), " and ", border.outputs.size());
    }
    if (c.device < MSRT_ANY_DEVICE || c.device >= std::max(device_count, 1))
      return StrCat("it is for device ", c.device, ", the delegate has ", device_count);
    if (c.asynchronous != 0 && device_count != 0) return "it is asynchronous, but on a device";
    if (c.in_place == nullptr && c.in_place_count != 0)
      return StrCat("in_place is NULL, but in_place_count ", c.in_place_count);
    for (size_t i = 0; i < c.in_place_count; ++i) {
      if (c.in_place[i].input >= c.input_count || c.in_place[i].output >= c.output_count)
        return "in_place names what does not exist";
    }
    if (const Status name = CheckArithmetic(c.arithmetic); !name.ok()) return name.message();
    for (const int64_t g : c.granule) {
      if (g < 0) return StrCat("a granule is ", g, ", must be at least 0");
    }
    std::string wrong = WrongLayout(c.input_layouts, border.inputs);
    return wrong.empty() ? WrongLayout(c.output_layouts, border.outputs) : wrong;
  }

  std::string WrongLayout(const msrt_layout* layouts, const std::vector<ValueId>& values) const {
    for (size_t i = 0; layouts != nullptr && i < values.size(); ++i) {
      if (layouts[i] == MSRT_LAYOUT_PLAIN) continue;
      if (!IsLayout(layouts[i])) return StrCat("layout ", layouts[i], " does not exist");
      if (values[i] != kNoValue && !graph.MayHaveLayout(values[i]))
        return "a constant or a tensor of rank other than 3 to 5 must be plain";
    }
    return {};
  }
};

// Sizes are only for reports and caches: an unknown one counts as 0.
size_t BytesFrom(size_t (*function)(void*, const void*), void* self, const void* handle) {
  size_t bytes = 0;
  if (function == nullptr || !CatchAsStatus([&] { bytes = function(self, handle); }).ok()) return 0;
  return bytes;
}

}  // namespace

bool MayRunElsewhere(Code code, bool on_device) {
  const bool full = code == Code::kOutOfMemory || code == Code::kLimitExceeded;
  return code == Code::kDelegate || (on_device && full);
}

struct Delegate::Table {
  msrt_delegate_api api;
  void* self;
  std::shared_ptr<const void> library;
  mutable bool owns_self = false;
  ~Table() {
    if (owns_self && api.destroy != nullptr) api.destroy(self);
  }
};

BoundKernel::~BoundKernel() {
  if (handle_ != nullptr) delegate_->table_->api.bound_destroy(delegate_->table_->self, handle_);
}

Status BoundKernel::Prepare(const Host& host) const {
  const Delegate::Table& table = *delegate_->table_;
  if (table.api.prepare == nullptr) return OkStatus();
  Status status = CallDelegate("delegate", delegate_->name(),
                               [&] { return table.api.prepare(table.self, host.api(), handle_); });
  const bool elsewhere = MayRunElsewhere(status.code(), !delegate_->devices().empty());
  return elsewhere ? std::move(status).With(kFailedDelegate, std::string(delegate_->name()))
                   : std::move(status);
}

Status BoundKernel::Run(const msrt_run_args& args) const {
  const Delegate::Table& table = *delegate_->table_;
  return CallDelegate("delegate", delegate_->name(),
                      [&] { return table.api.run(table.self, handle_, &args); });
}

size_t BoundKernel::workspace_bytes() const {
  return BytesFrom(delegate_->table_->api.workspace_bytes, delegate_->table_->self, handle_);
}

size_t BoundKernel::bytes() const {
  return BytesFrom(delegate_->table_->api.bound_bytes, delegate_->table_->self, handle_);
}

Kernel::~Kernel() {
  if (handle_ != nullptr) delegate_->table_->api.kernel_destroy(delegate_->table_->self, handle_);
}

Result<BoundKernel> Kernel::Bind(const Host& host, std::span<const msrt_bound_node> nodes) const {
  const Delegate::Table& table = *delegate_->table_;
  void* bound = nullptr;
  MSRT_RETURN_IF_ERROR(CallDelegate("delegate", delegate_->name(), [&] {
    return table.api.bind(table.self, host.api(), handle_, nodes.data(), nodes.size(), &bound);
  }));
  if (bound == nullptr) return DelegateError("delegate ", delegate_->name(), " bound nothing");
  return BoundKernel(delegate_, device_, bound);
}

size_t Kernel::packed_bytes() const {
  return BytesFrom(delegate_->table_->api.kernel_bytes, delegate_->table_->self, handle_);
}

Result<std::shared_ptr<const Delegate>> Delegate::Make(
    const msrt_delegate_api& given, void* self, std::shared_ptr<const void> library,
    std::span<const std::shared_ptr<const Device>> devices) {
  if (given.struct_size < offsetof(msrt_delegate_api, query)) {
    return InvalidArgument("a delegate's table has struct_size ", given.struct_size,
                           "; set it to sizeof(msrt_delegate_api)");
  }
  msrt_delegate_api api = CopyKnownFields(given);
  MSRT_RETURN_IF_ERROR(CheckName("delegate", api.name));
  MSRT_RETURN_IF_ERROR(CheckTable(api));
  std::shared_ptr<Delegate> delegate(new Delegate());
  MSRT_ASSIGN_OR_RETURN(delegate->devices_, FindDevices(api, devices));
  delegate->name_ = api.name;
  delegate->native_types_ = api.native_types;
  // The caller may free these after this call.
  api.name = nullptr;
  api.devices = nullptr;
  delegate->table_ = std::make_shared<Table>(Table{api, self, std::move(library)});
  return std::shared_ptr<const Delegate>(std::move(delegate));
}

void Delegate::TakeOver() const { table_->owns_self = true; }

void Delegate::Query(const Host& host, const OfferedGraph& graph, QueryResult* out) const {
  Sink sink{graph, static_cast<int32_t>(devices_.size()), *out};
  msrt_query_sink callbacks = MSRT_INIT(msrt_query_sink);
  callbacks.sink = &sink;
  callbacks.candidate = [](void* s, const msrt_candidate* c) {
    static_cast<Sink*>(s)->Guarded([&] { static_cast<Sink*>(s)->Add(c); });
  };
  callbacks.refuse = [](void* s, uint32_t node, const char* reason) {
    static_cast<Sink*>(s)->Guarded([&] { static_cast<Sink*>(s)->Refuse(node, reason); });
  };
  const Status status = CallDelegate("delegate", name_, [&] {
    return table_->api.query(table_->self, host.api(), graph.api(), &callbacks);
  });
  const bool host_is_full = status.code() == Code::kOutOfMemory && devices_.empty();
  if (sink.out_of_memory || host_is_full) throw std::bad_alloc();
  if (status.ok()) return;
  out->candidates.clear();
  out->refusals.clear();
  sink.RefuseAll(StrCat("its query failed: ", status.message()));
}

Result<Kernel> Delegate::Compile(const Host& host, const OfferedGraph& graph,
                                 const Candidate& candidate) const {
  const auto layouts = [](const std::vector<Layout>& from) {
    std::vector<msrt_layout> to;
    for (Layout l : from) to.push_back(static_cast<msrt_layout>(l));
    return to;
  };
  const std::vector<msrt_layout> inputs = layouts(candidate.input_layouts),
                                 outputs = layouts(candidate.output_layouts);
  std::vector<msrt_in_place> in_place;
  for (const auto& [input, output] : candidate.in_place) in_place.push_back({input, output});
  msrt_candidate c = MSRT_INIT(msrt_candidate);
  c.arithmetic = candidate.arithmetic.empty() ? nullptr : candidate.arithmetic.c_str();
  c.nodes = candidate.nodes.data();
  c.node_count = candidate.nodes.size();
  c.input_layouts = inputs.data();
  c.output_layouts = outputs.data();
  c.input_count = inputs.size();
  c.output_count = outputs.size();
  c.seconds = candidate.seconds;
  c.workspace_bytes = candidate.workspace_bytes;
  c.algorithm = candidate.algorithm.c_str();
  c.in_place = in_place.data();
  c.in_place_count = in_place.size();
  c.packs_constants = candidate.packs_constants;
  c.reduced = candidate.reduced;
  c.tag = candidate.tag;
  c.device = candidate.device;
  c.asynchronous = candidate.asynchronous;
  c.strided_inputs = candidate.strided_inputs;
  c.strided_outputs = candidate.strided_outputs;
  for (int d = 0; d < candidate.granule.rank(); ++d) c.granule[d] = candidate.granule[d];
  void* kernel = nullptr;
  MSRT_RETURN_IF_ERROR(CallDelegate("delegate", name_, [&] {
    return table_->api.compile(table_->self, host.api(), graph.api(), &c, &kernel);
  }));
  if (kernel == nullptr) return DelegateError("delegate ", name_, " compiled nothing");
  return Kernel(shared_from_this(), candidate.device, kernel);
}

}  // namespace msrt
