#include "core/place/place.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/base/units.h"
#include "core/place/choose_arithmetic.h"
#include "core/place/order.h"
#include "core/place/owned.h"
#include "ops/control.h"

namespace msrt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The cost of a layout change: it reads and writes every byte once, some of them far apart.
constexpr double kConvertPartOfBandwidth = 0.2, kConvertSeconds = 3e-6;
constexpr uint32_t kNoOption = UINT32_MAX;

bool RunByHost(const Node& node) {
  return node.def != nullptr &&
         ((node.def->traits & (kView | kRunByExecutor)) != 0 ||
          node.def->effect == Effect::kState || node.def->effect == Effect::kComm);
}

// Whether a delegate may run it whole: control flow whose graphs are known.
bool MayBeOwned(const Node& node) {
  if (!IsControl(node)) return false;
  const ControlShape shape = ShapeOfControl(node);
  return shape.kind != ControlKind::kPartial && !shape.graphs.empty();
}

bool IsAllowed(const PlaceOptions& options, std::string_view delegate) {
  return options.delegates.empty() || std::find(options.delegates.begin(), options.delegates.end(),
                                                delegate) != options.delegates.end();
}

Status CheckDelegateNames(const PlaceOptions& options,
                          std::span<const std::shared_ptr<const Delegate>> delegates) {
  const auto check = [&](const std::string& name, bool devices_too) -> Status {
    const auto has = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const auto& d) { return d->name() == name; });
    };
    if (has(delegates)) return OkStatus();
    for (const auto& d : delegates) {
      if (devices_too && has(d->devices())) return OkStatus();
    }
    std::string known;
    for (const auto& d : delegates) StrAppend(&known, known.empty() ? "" : ", ", d->name());
    return NotFound("there is no delegate '", name, "'; this runtime has ", known);
  };
  for (const std::string& name : options.delegates) MSRT_RETURN_IF_ERROR(check(name, false));
  for (const Pin& pin : options.pins) MSRT_RETURN_IF_ERROR(check(pin.delegate, true));
  return OkStatus();
}

Status NoDelegateError(const Graph& graph, size_t n,
                       const std::vector<std::pair<std::string, std::string>>& why) {
  std::string reasons;
  for (const auto& [delegate, reason] : why)
    StrAppend(&reasons, reasons.empty() ? "" : "; ", delegate, ": ", reason);
  std::string shapes;
  for (ValueId v : graph.nodes[n].inputs) {
    if (v != kNoValue) StrAppend(&shapes, shapes.empty() ? "" : ", ", graph.value(v).type);
  }
  return Unsupported(Describe(graph, n), " on (", shapes, "): no delegate can run it (",
                     reasons.empty() ? "none is allowed" : reasons,
                     "); register a kernel for it or allow another delegate")
      .With("node", graph.nodes[n].name)
      .With("op", OpName(graph.nodes[n]))
      .With("shapes", shapes);
}

// The maximum bytes of values that are live at once, for any placement.
double PeakLiveBytes(const OfferedGraph& offered) {
  const Graph& graph = offered.graph();
  const size_t count = graph.nodes.size();
  std::vector<double> change(count + 2);
  const std::vector<int32_t> producer = graph.Producers();
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const auto v = static_cast<ValueId>(i);
    if (graph.value(v).constant != nullptr) continue;
    const auto bytes = offered.TypicalBytes(v);
    const double max_bytes = ArenaBytes(*std::max_element(bytes.begin(), bytes.end()));
    const size_t first = producer[i] < 0 ? 0 : static_cast<size_t>(producer[i]);
    const size_t last =
        offered.IsOutput(v) || offered.ReadersOf(v).empty() ? count : offered.ReadersOf(v).back();
    change[first] += max_bytes;
    change[last + 1] -= max_bytes;
  }
  double live = 0, peak = 0;
  for (double c : change) peak = std::max(peak, live += c);
  return peak;
}

double ConstantBytes(const Graph& graph, const Node& node) {
  double bytes = 0;
  for (ValueId v : node.inputs) {
    if (v != kNoValue && graph.value(v).constant != nullptr)
      bytes += static_cast<double>(graph.value(v).constant->bytes.size());
  }
  return bytes;
}

// Includes the graphs that control nodes call.
double ConstantBytes(const OfferedGraph& offered, std::span<const uint32_t> nodes) {
  double bytes = 0;
  for (uint32_t n : nodes) {
    const Node& node = offered.graph().nodes[n];
    bytes += ConstantBytes(offered.graph(), node);
    if (!IsControl(node)) continue;
    for (const OfferedGraph* inside : GraphsInside(offered, node)) {
      for (const Node& inner : inside->graph().nodes)
        bytes += ConstantBytes(inside->graph(), inner);
    }
  }
  return bytes;
}

// The bytes that stay on the device as long as the model lives.
double FixedBytes(const OfferedGraph& offered, const Candidate& candidate) {
  return ConstantBytes(offered, candidate.nodes) + static_cast<double>(candidate.workspace_bytes);
}

double BorderBytes(const OfferedGraph& graph, const AssignOption& option) {
  double bytes = 0;
  const auto add = [&](const auto& list) {
    for (const auto& [value, state] : list)
      bytes += ArenaBytes(graph.TypicalBytes(ValueId(value))[static_cast<size_t>(state.layout)]);
  };
  add(option.inputs);
  add(option.outputs);
  // Values inside the group belong to the delegate, but need room too.
  for (uint32_t n : option.nodes) {
    if (option.nodes.size() == 1) break;
    for (ValueId v : graph.graph().nodes[n].outputs) {
      if (v != kNoValue) bytes += ArenaBytes(graph.TypicalBytes(v)[0]);
    }
  }
  return bytes;
}

std::string LeftOutText(const std::string& reason) { return StrCat("left out: ", reason); }

// Returns why these nodes can never run as one step at the position of the last one; empty: they
// can.
std::string WhyNoGroup(const OfferedGraph& offered, const std::vector<uint32_t>& nodes) {
  const Graph& graph = offered.graph();
  for (uint32_t n : nodes) {
    for (ValueId v : graph.nodes[n].outputs) {
      if (v == kNoValue) continue;
      for (uint32_t reader : offered.ReadersOf(v)) {
        if (reader >= nodes.back() || std::binary_search(nodes.begin(), nodes.end(), reader))
          continue;
        return StrCat(Describe(graph, reader), " needs what ", Describe(graph, n), " makes before ",
                      Describe(graph, nodes.back()), ", the last of the group, has run");
      }
    }
  }
  return {};
}

// The layouts of the first input and output, which distinguish candidates of one algorithm.
std::string LayoutsOf(const Candidate& c) {
  const Layout in = c.input_layouts.empty() ? Layout::kPlain : c.input_layouts[0];
  const Layout out = c.output_layouts.empty() ? in : c.output_layouts[0];
  return in == out ? std::string(LayoutName(in)) : StrCat(LayoutName(in), " -> ", LayoutName(out));
}

}  // namespace

Placer::Placer(const OfferedGraph& graph, const Host& host,
               std::span<const std::shared_ptr<const Delegate>> delegates,
               const PlaceOptions& options, ControlPrices* prices)
    : graph_(graph),
      host_(host),
      delegates_(delegates),
      options_(options),
      given_prices_(prices),
      own_prices_(host, delegates, options),
      refusals_(graph.node_count()) {}

Status Placer::Query() {
  MSRT_RETURN_IF_ERROR(CheckDelegateNames(options_, delegates_));
  for (uint32_t d = 0; d < delegates_.size(); ++d) {
    if (!IsAllowed(options_, delegates_[d]->name())) continue;
    QueryResult answer;
    delegates_[d]->Query(host_, graph_, &answer);
    AddCandidates(d, std::move(answer));
  }
  MSRT_RETURN_IF_ERROR(AddHomes());
  return CheckEveryNodeIsCovered();
}

Status Placer::AddHomes() {
  for (const auto& [value, name] : graph_.homes()) {
    std::shared_ptr<const Device> device;
    for (const auto& d : delegates_) {
      for (const auto& candidate : d->devices()) {
        if (candidate->name() == name) device = candidate;
      }
    }
    const std::string& what = graph_.graph().value(value).name;
    if (device == nullptr)
      return NotFound("'", what, "' is to be on device '", name, "', which no delegate uses");
    // An output that is an input or a view must be copied there.
    if (!device->Reaches(*device))
      return Unsupported("'", what, "' is to be on device '", name, "', which has no copy_peer");
    uint16_t index = 0;
    const std::string unusable = AddDevice(device, &index);
    // A device that failed keeps no values: they are on the host, and copied at the border.
    const bool failed =
        std::any_of(options_.failed_delegates.begin(), options_.failed_delegates.end(),
                    [&](const FailedDelegate& f) { return f.name == name; });
    if (unusable.empty() && !failed) homes_.emplace_back(value, index);
  }
  return OkStatus();
}

void Placer::AddCandidates(uint32_t d, QueryResult answer) {
  const Graph& graph = graph_.graph();
  const std::string name(delegates_[d]->name());
  for (Refusal& r : answer.refusals) {
    const Node& node = graph.nodes[r.node];
    if (!RunByHost(node) || MayBeOwned(node))
      refusals_[r.node].emplace_back(name, std::move(r.reason));
  }
  std::vector<Option> options;
  for (Candidate& c : answer.candidates) {
    const bool whole = c.nodes.size() == 1 && MayBeOwned(graph.nodes[c.nodes[0]]);
    if (c.nodes.size() == 1 && RunByHost(graph.nodes[c.nodes[0]]) && !whole) continue;
    std::string refused = WhyRefused(d, c);
    if (refused.empty()) refused = WhyNoGroup(graph_, c.nodes);
    // A cost key does not include the graphs that a node calls.
    const double* measured = options_.costs == nullptr || whole
                                 ? nullptr
                                 : options_.costs->Find(CostKey(graph_, name, c));
    if (measured != nullptr) c.seconds = *measured;
    options.push_back(
        {static_cast<int32_t>(d), 0, std::move(c), std::move(refused), measured != nullptr});
  }
  AddDevices(*delegates_[d], options);
  std::move(options.begin(), options.end(), std::back_inserter(candidates_));
}

// A device that no candidate may run on is not used: it may be the reason why its delegate was
// excluded.
void Placer::AddDevices(const Delegate& delegate, std::span<Option> options) {
  for (size_t i = 0; i < delegate.devices().size(); ++i) {
    const auto is_for = [&](const Option& o) {
      return static_cast<size_t>(o.candidate.device) == i;
    };
    const bool usable = std::any_of(options.begin(), options.end(), [&](const Option& o) {
      return is_for(o) && o.refused.empty();
    });
    if (!usable) continue;
    uint16_t device = 0;
    const std::string unusable = AddDevice(delegate.devices()[i], &device);
    for (Option& o : options) {
      if (!is_for(o)) continue;
      o.device = device;
      if (o.refused.empty()) o.refused = unusable;
    }
  }
}

std::string Placer::AddDevice(const std::shared_ptr<const Device>& device, uint16_t* index) {
  const auto known = std::find(devices_.begin(), devices_.end(), device);
  if (known != devices_.end()) {
    *index = static_cast<uint16_t>(known - devices_.begin());
    return {};
  }
  if (devices_.size() == kMaxDevices) return StrCat("there are already ", kMaxDevices, " devices");
  auto free = device->FreeBytes();
  if (!free.ok()) return StrCat("its device does not answer: ", free.status().message());
  *index = static_cast<uint16_t>(devices_.size());
  devices_.push_back(device);
  free_bytes_.push_back(*free);
  return {};
}

std::string Placer::WhyRefused(uint32_t d, const Candidate& c) const {
  const std::shared_ptr<const Device> device = delegates_[d]->DeviceOf(c);
  for (const FailedDelegate& failed : options_.failed_delegates) {
    if (failed.name == delegates_[d]->name() ||
        (device != nullptr && failed.name == device->name()))
      return LeftOutText(failed.reason);
  }
  if (options_.exact && c.arithmetic.empty())
    return "it does not name its arithmetic, which accuracy 'exact' requires";
  if (c.reduced && !options_.reduced)
    return "it rounds to fewer bits, which only accuracy 'fast' allows";
  if (options_.single_nodes && c.nodes.size() > 1)
    return "it joins nodes, and single nodes are required";
  const auto is_plain = [](Layout layout) { return layout == Layout::kPlain; };
  if (options_.plain_layouts &&
      !(std::all_of(c.input_layouts.begin(), c.input_layouts.end(), is_plain) &&
        std::all_of(c.output_layouts.begin(), c.output_layouts.end(), is_plain)))
    return "it uses another layout, and plain ones are required";
  for (uint32_t n : c.nodes) {
    const Node& node = graph_.graph().nodes[n];
    if (node.def != nullptr && node.def->effect == Effect::kState)
      return "it holds state, which is the session's";
    if (node.def != nullptr && node.def->effect == Effect::kComm)
      return "it communicates, which is the session's";
    std::string why;
    if (c.nodes.size() == 1 && IsControl(node)) why = WhyNotTaken(node);
    else if (node.def != nullptr && (node.def->traits & kRunByExecutor) != 0)
      why = "it works on frames, which are the session's";
    if (why.empty())
      why = WhyPinnedAway(d, device == nullptr ? std::string_view() : device->name(), node);
    if (!why.empty()) return why;
  }
  return {};
}

std::string Placer::WhyNotTaken(const Node& control) const {
  // A whole loop has no arithmetic that the host's way to run it could have too.
  if (options_.exact && FindExcludingPin(options_.pins, control, "") == nullptr)
    return "accuracy 'exact' runs control flow on the host";
  return WhyNotOwned(graph_, control);
}

// If a delegate runs a control node whole, pins of the nodes inside count too.
std::string Placer::WhyPinnedAway(uint32_t d, std::string_view device, const Node& node) const {
  const auto against = [&](const Node& n) -> std::string {
    const Pin* pin = FindExcludingPin(options_.pins, n, delegates_[d]->name(), device);
    return pin == nullptr ? "" : StrCat("pinned by the user: ", Describe(*pin));
  };
  std::string why = against(node);
  if (!IsControl(node) || options_.pins.empty()) return why;
  for (const OfferedGraph* inside : GraphsInside(graph_, node)) {
    for (const Node& inner : inside->graph().nodes) {
      if (why.empty() && (IsControl(inner) || !RunByHost(inner))) why = against(inner);
    }
  }
  return why;
}

std::vector<std::string_view> Placer::Arithmetics() const {
  std::vector<NamedCandidate> candidates;
  for (const Option& o : candidates_) {
    if (options_.exact && o.refused.empty())
      candidates.push_back({&o.candidate, static_cast<uint32_t>(o.delegate)});
  }
  const std::vector<Node>& nodes = graph_.graph().nodes;
  std::vector<bool> on_host(nodes.size());
  std::transform(nodes.begin(), nodes.end(), on_host.begin(), RunByHost);
  std::vector<std::string_view> names = ChooseArithmetic(on_host, candidates);
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (!nodes[n].arithmetic.empty()) names[n] = nodes[n].arithmetic;
  }
  return names;
}

std::string Placer::WhyNotUsed(const Option& option,
                               std::span<const std::string_view> arithmetics) const {
  if (!option.refused.empty()) return option.refused;
  for (uint32_t n : option.candidate.nodes) {
    if (!arithmetics[n].empty() && arithmetics[n] != option.candidate.arithmetic)
      return StrCat("its arithmetic is '", option.candidate.arithmetic,
                    "'; accuracy 'exact' uses '", arithmetics[n], "'");
  }
  return {};
}

Status Placer::CheckFixedArithmetics() const {
  const Graph& graph = graph_.graph();
  std::vector<bool> is_met(graph.nodes.size());
  std::vector<std::string> offered(graph.nodes.size());
  for (const Option& o : candidates_) {
    if (!o.refused.empty()) continue;
    for (uint32_t n : o.candidate.nodes) {
      if (o.candidate.arithmetic == graph.nodes[n].arithmetic) is_met[n] = true;
      StrAppend(&offered[n], offered[n].empty() ? "'" : ", '", o.candidate.arithmetic, "'");
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.arithmetic.empty() || is_met[n] || RunByHost(node)) continue;
    return Unsupported(Describe(graph, n), ": the whole node has the arithmetic '", node.arithmetic,
                       "', but no candidate for this piece has it (they have ", offered[n],
                       "); run it unsplit, or without the delegate of that arithmetic");
  }
  return OkStatus();
}

std::vector<bool> Placer::CoveredNodes(int32_t without) const {
  const std::vector<Node>& nodes = graph_.graph().nodes;
  std::vector<bool> covered(nodes.size());
  std::transform(nodes.begin(), nodes.end(), covered.begin(), RunByHost);
  for (const Option& o : candidates_) {
    if (!o.refused.empty() || o.delegate == without) continue;
    for (uint32_t n : o.candidate.nodes) covered[n] = true;
  }
  return covered;
}

bool Placer::HasAlternatives(int32_t delegate) const {
  const std::vector<bool> covered = CoveredNodes(delegate);
  return std::find(covered.begin(), covered.end(), false) == covered.end();
}

Status Placer::CheckEveryNodeIsCovered() const {
  const Graph& graph = graph_.graph();
  const std::vector<bool> covered = CoveredNodes();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (covered[n]) continue;
    auto why = refusals_[n];
    for (const Option& o : candidates_) {
      if (o.refused.empty() ||
          !std::binary_search(o.candidate.nodes.begin(), o.candidate.nodes.end(), n))
        continue;
      why.emplace_back(delegates_[static_cast<size_t>(o.delegate)]->name(), o.refused);
    }
    return NoDelegateError(graph, n, why);
  }
  return OkStatus();
}

void Placer::Ban(uint32_t option, std::string reason) {
  candidates_[option].refused = std::move(reason);
}

void Placer::BanDelegate(int32_t delegate, const std::string& reason) {
  for (Option& o : candidates_) {
    if (o.delegate == delegate) o.refused = LeftOutText(reason);
  }
}

std::vector<bool> Placer::OfferedWhole() const {
  std::vector<bool> offered(graph_.node_count());
  for (const Option& o : candidates_) {
    const uint32_t n = o.candidate.nodes[0];
    if (o.refused.empty() && IsControl(graph_.graph().nodes[n])) offered[n] = true;
  }
  return offered;
}

double Placer::HostSeconds(const Node& node, bool offered) const {
  if (!IsControl(node) || (!offered && given_prices_ == nullptr)) return 0;
  // The node is pinned to a delegate that can run it.
  if (offered && FindExcludingPin(options_.pins, node, "") != nullptr) return kInfinity;
  return (given_prices_ == nullptr ? own_prices_ : *given_prices_).SecondsOf(graph_, node);
}

void Placer::AddHostWork(uint32_t n, double seconds, AssignProblem* problem,
                         std::vector<uint32_t>* option_of) const {
  const Graph& graph = graph_.graph();
  const Node& node = graph.nodes[n];
  const auto constant = [&](ValueId v) {
    return v == kNoValue || graph.value(v).constant != nullptr;
  };
  // A view of device memory costs as little as one of host memory. State, and constants before they
  // are uploaded, are on the host.
  const bool anywhere = (node.def->traits & kView) != 0 && !constant(node.inputs[0]);
  for (uint16_t device = 0; device < (anywhere ? devices_.size() : 1); ++device) {
    AssignOption option;
    option.nodes = {n};
    option.seconds = seconds;
    option.device = device;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      // The other inputs of a view are small numbers that the host reads.
      const TensorState state{i == 0 ? device : uint16_t{0}, Layout::kPlain};
      if (!constant(node.inputs[i])) option.inputs.emplace_back(IndexOf(node.inputs[i]), state);
    }
    for (ValueId v : node.outputs) {
      if (v != kNoValue)
        option.outputs.emplace_back(IndexOf(v), TensorState{device, Layout::kPlain});
    }
    problem->options.push_back(std::move(option));
    option_of->push_back(kNoOption);
  }
}

AssignProblem Placer::MakeProblem(std::vector<uint32_t>* option_of) const {
  const Graph& graph = graph_.graph();
  AssignProblem problem;
  problem.node_count = static_cast<uint32_t>(graph.nodes.size());
  problem.values.resize(graph.value_count());
  const std::vector<int32_t> producers = graph.Producers();
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    if (graph.value(ValueId(v)).constant != nullptr) continue;
    problem.values[v] = {graph_.MovedBytes(ValueId(v)), producers[v], graph_.ReadersOf(ValueId(v)),
                         graph_.IsOutput(ValueId(v))};
  }
  // A delegate is launched for each of its devices.
  std::vector<uint32_t> first_launcher;
  for (const auto& d : delegates_) {
    first_launcher.push_back(static_cast<uint32_t>(problem.launch_seconds.size()));
    for (const auto& device : d->devices())
      problem.launch_seconds.push_back(device->launch_seconds());
    if (d->devices().empty()) problem.launch_seconds.push_back(0);
  }
  problem.transfers = MakeTransferCosts();
  const std::vector<bool> offered = OfferedWhole();
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (!RunByHost(graph.nodes[n])) continue;
    const double seconds = HostSeconds(graph.nodes[n], offered[n]);
    if (seconds < kInfinity) AddHostWork(n, seconds, &problem, option_of);
  }
  const std::vector<std::string_view> arithmetics = Arithmetics();
  for (uint32_t c = 0; c < candidates_.size(); ++c) {
    const Option& o = candidates_[c];
    if (!WhyNotUsed(o, arithmetics).empty()) continue;
    const uint32_t launcher =
        first_launcher[static_cast<size_t>(o.delegate)] + static_cast<uint32_t>(o.candidate.device);
    AssignOption option{o.candidate.nodes, launcher, {}, {}, o.candidate.seconds, 0, o.device};
    const CandidateBorder border = graph_.BorderOf(o.candidate.nodes);
    for (size_t i = 0; i < border.inputs.size(); ++i) {
      const ValueId v = border.inputs[i];
      if (v == kNoValue || graph.value(v).constant != nullptr) continue;
      option.inputs.emplace_back(IndexOf(v), TensorState{o.device, o.candidate.input_layouts[i]});
    }
    for (size_t i = 0; i < border.outputs.size(); ++i) {
      if (border.outputs[i] != kNoValue)
        option.outputs.emplace_back(IndexOf(border.outputs[i]),
                                    TensorState{o.device, o.candidate.output_layouts[i]});
    }
    problem.options.push_back(std::move(option));
    option_of->push_back(c);
  }
  for (const auto& [value, device] : homes_)
    problem.values[IndexOf(value)].home = {device, Layout::kPlain};
  AddCarried(&problem);
  SetCaps(*option_of, &problem);
  return problem;
}

TransferCosts Placer::MakeTransferCosts() const {
  TransferCosts costs{
      kConvertSeconds, kConvertPartOfBandwidth * host_.machine().bytes_per_second, {}, {}};
  costs.links.resize(devices_.size());
  for (size_t d = 1; d < devices_.size(); ++d) costs.links[d] = devices_[d]->LinkCosts(host_);
  std::vector<std::vector<TransferCosts::Path>> paths(
      devices_.size(), std::vector<TransferCosts::Path>(devices_.size()));
  bool any = false;
  for (size_t to = 1; to < devices_.size(); ++to) {
    for (size_t from = 1; from < devices_.size(); ++from) {
      if (to == from && !devices_[to]->converts()) continue;
      paths[to][from] = devices_[to]->PeerCosts(*devices_[from]);
      any |= paths[to][from].bytes_per_second > 0;
    }
  }
  if (any) costs.paths = std::move(paths);
  return costs;
}

// A loop can keep a value on a device if the body makes it there. A view does not: it would pass on
// the memory of another value.
void Placer::AddCarried(AssignProblem* problem) const {
  if (devices_.size() == 1) return;
  for (const CarriedPair& pair : graph_.carried()) {
    const AssignValue& end = problem->values[IndexOf(pair.end)];
    if (end.producer < 0 || RunByHost(graph_.graph().nodes[static_cast<size_t>(end.producer)]))
      continue;
    const TransferPrices begins(problem->transfers, problem->values[IndexOf(pair.begin)].bytes),
        ends(problem->transfers, end.bytes);
    AssignCarried carried{IndexOf(pair.begin), IndexOf(pair.end), {0}};
    for (uint16_t d = 1; d < devices_.size(); ++d) {
      const TensorState there{d, Layout::kPlain};
      const double back = ends.copy_from(there);
      carried.seconds.push_back((begins.copy_to(there) + back) / kTypicalTrips +
                                (pair.read_by_condition ? back : 0));
    }
    problem->carried.push_back(std::move(carried));
  }
}

// Weights and workspaces add up; tensors share memory over time. If the device can also hold the
// maximum that is live at once, only weights count against the rest; otherwise every tensor counts
// in full, which is an upper bound. A weight that several nodes read counts for each of them,
// though it is uploaded once. Counting it once would take a variable that says whether the device
// has it, and a share for each reader would be too little if only one of them is on the device.
void Placer::SetCaps(std::span<const uint32_t> option_of, AssignProblem* problem) const {
  problem->device_caps.assign(devices_.size(), kInfinity);
  const double peak = devices_.size() > 1 ? PeakLiveBytes(graph_) * kArenaSlack : 0;
  for (uint16_t d = 1; d < devices_.size(); ++d) {
    if (free_bytes_[d] == SIZE_MAX) continue;
    const auto free = static_cast<double>(free_bytes_[d]);
    const bool in_turn = free > 2 * peak;
    problem->device_caps[d] = free - (in_turn ? peak : 0);
    for (size_t i = 0; i < problem->options.size(); ++i) {
      AssignOption& option = problem->options[i];
      if (option.device != d || option.delegate == kHostWork) continue;
      option.memory_bytes = FixedBytes(graph_, candidates_[option_of[i]].candidate) +
                            (in_turn ? 0 : BorderBytes(graph_, option));
    }
  }
}

std::vector<double> Placer::RoomsForTensors(const Placement& placement) const {
  std::vector<double> rooms;
  for (size_t free : free_bytes_)
    rooms.push_back(free == SIZE_MAX ? kInfinity : static_cast<double>(free));
  for (const Placement::Step& step : placement.steps) {
    if (step.device != 0 && step.candidate != nullptr)
      rooms[step.device] -= FixedBytes(graph_, *step.candidate);
  }
  for (const auto& [value, device] : placement.device_values)
    rooms[device] -= ArenaBytes(graph_.TypicalBytes(value)[0]);
  return rooms;
}

// Adds the names of devices, which the assignment knows by number only.
Status Placer::WithDeviceNames(Status status) const {
  if (status.code() != Code::kLimitExceeded) return status;
  std::string names;
  for (size_t d = 1; d < devices_.size(); ++d) {
    if (free_bytes_[d] == SIZE_MAX) continue;
    StrAppend(&names, names.empty() ? "" : ", ", "device ", d, " is ", devices_[d]->name(),
              " with ", free_bytes_[d], " bytes free");
  }
  return LimitExceeded(status.message(), " (", names, ")");
}

Result<Placement> Placer::Place() const {
  MSRT_RETURN_IF_ERROR(CheckEveryNodeIsCovered());
  MSRT_RETURN_IF_ERROR(CheckFixedArithmetics());
  std::vector<uint32_t> option_of;
  const AssignProblem problem = MakeProblem(&option_of);
  auto assigned = Assign(problem);
  if (!assigned.ok()) return WithDeviceNames(std::move(assigned).status());
  const Assignment& assignment = *assigned;
  Placement placement;
  placement.seconds = assignment.seconds;
  placement.lower_bound = assignment.lower_bound;
  placement.optimal = assignment.optimal;
  placement.transfers = problem.transfers;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const uint32_t chosen = assignment.option_of_node[n];
    const AssignOption& option = problem.options[chosen];
    if (option.nodes.back() != n) continue;  // runs with its last node
    Placement::Step step{option.nodes,  -1, option_of[chosen], nullptr, option.device,
                         option.seconds};
    if (step.option != kNoOption) {
      step.delegate = candidates_[step.option].delegate;
      step.candidate = &candidates_[step.option].candidate;
    }
    placement.steps.push_back(std::move(step));
  }
  placement.device_values = homes_;
  for (size_t c = 0; c < problem.carried.size(); ++c) {
    if (assignment.carried_on[c] == 0) continue;
    placement.device_values.emplace_back(ValueId(problem.carried[c].begin),
                                         assignment.carried_on[c]);
    placement.device_values.emplace_back(ValueId(problem.carried[c].end), assignment.carried_on[c]);
  }
  Explain(&placement);
  if (devices_.size() > 1) OrderSteps(graph_, RoomsForTensors(placement), &placement);
  return placement;
}

void Placer::Explain(Placement* placement) const {
  placement->explanations.resize(graph_.node_count());
  for (size_t n = 0; n < refusals_.size(); ++n) placement->explanations[n].others = refusals_[n];
  std::vector<bool> chosen(candidates_.size());
  for (const Placement::Step& step : placement->steps) {
    for (uint32_t n : step.nodes)
      placement->explanations[n].seconds = step.seconds / static_cast<double>(step.nodes.size());
    if (step.candidate == nullptr) continue;
    chosen[step.option] = true;
    for (uint32_t n : step.nodes) {
      NodeExplanation& why = placement->explanations[n];
      why.delegate = delegates_[static_cast<size_t>(step.delegate)]->name();
      why.algorithm = step.candidate->algorithm;
      why.arithmetic = step.candidate->arithmetic;
      if (step.nodes.size() == 1) why.granule = step.candidate->granule;
      why.reduced = step.candidate->reduced;
      why.measured = candidates_[step.option].measured;
    }
  }
  const std::vector<std::string_view> arithmetics = Arithmetics();
  for (size_t c = 0; c < candidates_.size(); ++c) {
    if (chosen[c]) continue;
    const Option& o = candidates_[c];
    const std::string why = WhyNotUsed(o, arithmetics);
    const std::string cost =
        why.empty() ? StrCat(SecondsText(o.candidate.seconds), o.measured ? " measured" : "") : why;
    const std::string algorithm =
        o.candidate.algorithm.empty() ? "" : StrCat(o.candidate.algorithm, ", ");
    std::string with =
        o.candidate.nodes.size() == 1 ? "" : StrCat(" (", o.candidate.nodes.size(), " nodes)");
    if (delegates_[static_cast<size_t>(o.delegate)]->devices().size() > 1)
      StrAppend(&with, " on ",
                delegates_[static_cast<size_t>(o.delegate)]->DeviceOf(o.candidate)->name());
    for (uint32_t n : o.candidate.nodes) {
      placement->explanations[n].others.emplace_back(
          delegates_[static_cast<size_t>(o.delegate)]->name(),
          StrCat(algorithm, LayoutsOf(o.candidate), with, ": ", cost));
    }
  }
}

}  // namespace msrt
