#include "core/run/measure.h"

#include <algorithm>
#include <deque>
#include <random>

#include "core/base/checked_math.h"
#include "core/base/half.h"
#include "core/delegate/state_forms.h"
#include "core/run/convert.h"
#include "core/run/packed_inputs.h"

namespace msrt {
namespace {

// A kernel runs repeatedly for this many seconds, at least kMinRuns times unless one run takes
// longer than kLongRun.
constexpr double kSecondsEach = 0.02, kLongRun = 0.1;
constexpr int kMinRuns = 3, kMaxRuns = 50;

// Fills with numbers like those of activations; with ones where a number may be an index, an axis
// or a divisor.
void FillRandom(const TensorView& t) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto fill = [&](auto* data, auto draw) {
    for (int64_t i = 0; i < t.elements(); ++i) data[i] = draw();
  };
  switch (t.dtype) {
    case DType::kF64:
      return fill(t.As<double>(), [&] { return static_cast<double>(uniform(random)); });
    case DType::kF32:
      return fill(t.As<float>(), [&] { return uniform(random); });
    case DType::kF16:
      return fill(t.As<Half>(), [&] { return Half(uniform(random)); });
    case DType::kBF16:
      return fill(t.As<BFloat16>(), [&] { return BFloat16(uniform(random)); });
    case DType::kI64:
    case DType::kU64:
      return fill(t.As<int64_t>(), [] { return int64_t{1}; });
    case DType::kI32:
    case DType::kU32:
      return fill(t.As<int32_t>(), [] { return 1; });
    case DType::kI16:
    case DType::kU16:
      return fill(t.As<int16_t>(), [] { return int16_t{1}; });
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return fill(t.As<int8_t>(), [] { return int8_t{1}; });
    default:
      std::fill_n(t.As<std::byte>(), Type::Tensor(t.dtype, t.dims).bytes(), std::byte{0});
  }
}

struct GrowingScratch {
  Allocator* allocator;
  Block block;
  static void* Get(void* self, size_t bytes) {
    auto& scratch = *static_cast<GrowingScratch*>(self);
    if (scratch.block.bytes() >= bytes && scratch.block.data() != nullptr)
      return scratch.block.data();
    auto grown = Block::Make(scratch.allocator, bytes, "scratch memory");
    if (!grown.ok()) return nullptr;
    scratch.block = *std::move(grown);
    return scratch.block.data();
  }
};

// Forms are packed once and kept, as those of a parameter are.
class MeasuredForms final : public PackedInputs {
 public:
  MeasuredForms(Allocator* allocator, size_t input_count)
      : allocator_(allocator), forms_(input_count) {}

 private:
  Result<const void*> Get(size_t input, const msrt_packing& packing, size_t bytes,
                          Pack pack) override {
    if (input >= forms_.size()) return InvalidArgument("packed_input: there is no input ", input);
    for (const StateForm& form : forms_[input]) {
      if (form.Is(packing, bytes)) return static_cast<const void*>(form.data.data());
    }
    MSRT_ASSIGN_OR_RETURN(Block data, Block::Make(allocator_, bytes, "a packed form"));
    MSRT_RETURN_IF_ERROR(pack(data.data()));
    forms_[input].push_back(StateForm::Make(packing, std::move(data)));
    return static_cast<const void*>(forms_[input].back().data.data());
  }

  Allocator* const allocator_;
  std::vector<std::deque<StateForm>> forms_;  // by input; references stay valid
};

// One candidate with memory for everything that it reads and writes.
class Trial {
 public:
  Trial(const CompiledModel& model, const Program& program, const Delegate& delegate,
        const Candidate& candidate)
      : allocator_(model.environment->allocator),
        host_(*program.host),
        placed_(*program.offered),
        delegate_(delegate),
        candidate_(candidate),
        border_(placed_.BorderOf(candidate.nodes)) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() { (void)Synchronize(); }  // before its memory is freed

  // Returns the minimum of several runs.
  Result<double> Seconds(size_t max_bytes) {
    MSRT_RETURN_IF_ERROR(CheckTypes(max_bytes));
    MSRT_ASSIGN_OR_RETURN(const Kernel kernel, delegate_.Compile(host_, placed_, candidate_));
    MSRT_ASSIGN_OR_RETURN(const BoundKernel bound, Bind(kernel));
    MSRT_RETURN_IF_ERROR(bound.Prepare(host_));
    if (device() != nullptr) {
      MSRT_ASSIGN_OR_RETURN(stream_, device()->MakeStream(host_));
    }
    for (size_t i = 0; i < border_.inputs.size(); ++i) MSRT_RETURN_IF_ERROR(AddInput(i));
    for (size_t i = 0; i < border_.outputs.size(); ++i) MSRT_RETURN_IF_ERROR(AddOutput(i));
    auto seconds = Repeat(bound);
    (void)Synchronize();  // before the kernel is destroyed
    return seconds;
  }

 private:
  Status Synchronize() const {
    return stream_ == nullptr ? OkStatus() : stream_->Synchronize(host_);
  }
  const Device* device() const { return delegate_.DeviceOf(candidate_).get(); }
  const Type& TypeOf(ValueId v) const { return placed_.typical().types[IndexOf(v)]; }

  // Rejects guessed sizes, which may differ from those that the kernel finds in the data.
  Status CheckTypes(size_t max_bytes) const {
    size_t total = 0;
    for (uint32_t n : candidate_.nodes) {
      if (!placed_.IsSettled(n)) return Unsupported("its sizes depend on data");
    }
    for (const auto* values : {&border_.inputs, &border_.outputs}) {
      for (ValueId v : *values) {
        if (v == kNoValue) continue;
        if (!TypeOf(v).concrete()) return Unsupported("a tensor has no typical shape");
        if (!CheckedAdd(total, BytesIn(Layout::kPlain, TypeOf(v).dtype, TypeOf(v).dims), &total) ||
            total > max_bytes) {
          return LimitExceeded("its tensors have more than ", max_bytes, " bytes");
        }
      }
    }
    return OkStatus();
  }

  Result<BoundKernel> Bind(const Kernel& kernel) const {
    std::vector<msrt_shape> shapes;
    std::vector<const void*> known;
    const Graph& graph = placed_.graph();
    for (uint32_t n : candidate_.nodes) {
      for (ValueId v : graph.nodes[n].inputs) {
        shapes.push_back(v == kNoValue ? msrt_shape{} : ShapeOf(TypeOf(v)));
        const ConstTensor* data = v == kNoValue ? nullptr : placed_.typical().known[IndexOf(v)];
        known.push_back(data == nullptr ? nullptr : data->bytes.data());
      }
      for (ValueId v : graph.nodes[n].outputs)
        shapes.push_back(v == kNoValue ? msrt_shape{} : ShapeOf(TypeOf(v)));
    }
    std::vector<msrt_bound_node> nodes;
    size_t shape = 0, value = 0;
    for (uint32_t n : candidate_.nodes) {
      const size_t inputs = graph.nodes[n].inputs.size(), outputs = graph.nodes[n].outputs.size();
      msrt_bound_node& node = nodes.emplace_back(msrt_bound_node{});
      node.inputs = &shapes[shape], node.input_count = inputs;
      node.outputs = &shapes[shape] + inputs, node.output_count = outputs;
      node.known = known.data() + value;
      shape += inputs + outputs;
      value += inputs;
    }
    return kernel.Bind(host_, nodes);
  }

  Result<std::byte*> HostMemory(size_t bytes) {
    MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(allocator_, bytes, "a tensor to measure with"));
    return blocks_.emplace_back(std::move(block)).data();
  }

  Result<std::byte*> DeviceMemory(size_t bytes) {
    MSRT_ASSIGN_OR_RETURN(DeviceBlock block,
                          device()->Allocate(host_, bytes, "a tensor to measure with"));
    return device_blocks_.emplace_back(std::move(block)).data();
  }

  Status AddInput(size_t i) {
    const ValueId v = border_.inputs[i];
    const bool constant = v != kNoValue && placed_.graph().value(v).constant != nullptr;
    inputs_.push_back(nullptr);
    if (v == kNoValue || (constant && candidate_.packs_constants)) return OkStatus();
    const Type& type = TypeOf(v);
    const Layout layout = candidate_.input_layouts[i];
    const size_t bytes = BytesIn(layout, type.dtype, type.dims);
    const ConstTensor* known = placed_.typical().known[IndexOf(v)];
    const std::byte* data = known == nullptr ? nullptr : known->bytes.data();
    if (known == nullptr || layout != Layout::kPlain) {
      MSRT_ASSIGN_OR_RETURN(std::byte* const filled, MakeInput(type, layout, known));
      data = filled;
    }
    if (device() != nullptr) {
      MSRT_ASSIGN_OR_RETURN(std::byte* const there, DeviceMemory(bytes));
      MSRT_RETURN_IF_ERROR(stream_->CopyToDevice(host_, there, data, bytes));
      data = there;
    }
    inputs_.back() = data;
    return OkStatus();
  }

  // Returns random numbers, or the value if it is known, in that layout.
  Result<std::byte*> MakeInput(const Type& type, Layout layout, const ConstTensor* known) {
    MSRT_ASSIGN_OR_RETURN(std::byte * plain, HostMemory(type.bytes()));
    if (known != nullptr) std::copy(known->bytes.begin(), known->bytes.end(), plain);
    else FillRandom({type.dtype, type.dims, Layout::kPlain, plain});
    if (layout == Layout::kPlain) return plain;
    MSRT_ASSIGN_OR_RETURN(std::byte * laid_out, HostMemory(BytesIn(layout, type.dtype, type.dims)));
    MSRT_RETURN_IF_ERROR(ConvertLayout({type.dtype, type.dims, Layout::kPlain, plain},
                                       {type.dtype, type.dims, layout, laid_out},
                                       host_.parallel()));
    return laid_out;
  }

  Status AddOutput(size_t i) {
    const ValueId v = border_.outputs[i];
    outputs_.push_back(nullptr);
    if (v == kNoValue) return OkStatus();
    const size_t bytes = BytesIn(candidate_.output_layouts[i], TypeOf(v).dtype, TypeOf(v).dims);
    MSRT_ASSIGN_OR_RETURN(outputs_.back(),
                          device() != nullptr ? DeviceMemory(bytes) : HostMemory(bytes));
    return OkStatus();
  }

  bool HasParameters() const {
    return std::any_of(border_.inputs.begin(), border_.inputs.end(),
                       [&](ValueId v) { return v != kNoValue && placed_.IsParameter(v); });
  }

  Result<double> Repeat(const BoundKernel& bound) {
    GrowingScratch growing{allocator_, {}};
    const msrt_scratch scratch{&growing, GrowingScratch::Get};
    msrt_run_args args = MSRT_INIT(msrt_run_args);
    args.host = host_.api();
    args.inputs = inputs_.data();
    args.input_count = inputs_.size();
    args.outputs = outputs_.data();
    args.output_count = outputs_.size();
    args.scratch = &scratch;
    args.device = candidate_.device;
    args.stream = stream_ == nullptr ? nullptr : stream_->handle();
    if (const size_t bytes = bound.workspace_bytes(); bytes != 0) {
      MSRT_ASSIGN_OR_RETURN(args.workspace,
                            device() != nullptr ? DeviceMemory(bytes) : HostMemory(bytes));
    }
    MeasuredForms forms(allocator_, inputs_.size());
    forms.AddTo(&args);
    // Parameters are packed once for many runs, so the run that packs does not count.
    const auto run_once = [&]() -> Status {
      MSRT_RETURN_IF_ERROR(bound.Run(args));
      return Synchronize();
    };
    if (HasParameters()) MSRT_RETURN_IF_ERROR(run_once());
    double least = CostTable::kMaxSeconds;
    const StopWatch all;
    for (int run = 0; run < kMaxRuns; ++run) {
      const StopWatch one;
      MSRT_RETURN_IF_ERROR(run_once());
      const double seconds = one.Millis() * 1e-3;
      least = std::min(least, std::max(seconds, 1e-9));
      if (seconds > kLongRun || (run + 1 >= kMinRuns && all.Millis() * 1e-3 > kSecondsEach)) break;
    }
    return least;
  }

  Allocator* const allocator_;
  const Host& host_;
  const OfferedGraph& placed_;
  const Delegate& delegate_;
  const Candidate& candidate_;
  const CandidateBorder border_;
  std::vector<Block> blocks_;
  std::vector<DeviceBlock> device_blocks_;
  std::unique_ptr<Stream> stream_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

struct Offer {
  const Delegate* delegate;
  Candidate candidate;
};

// Returns all candidates of the allowed delegates, by their last node. Control flow is left out:
// its cost depends on graphs that the key of a cost does not name.
std::vector<std::vector<Offer>> OffersOf(const CompiledModel& model, const Program& program) {
  const std::vector<std::string>& allowed = model.options.place.delegates;
  std::vector<std::vector<Offer>> offers(program.offered->node_count());
  for (const auto& delegate : model.environment->delegates) {
    if (!allowed.empty() &&
        std::find(allowed.begin(), allowed.end(), delegate->name()) == allowed.end())
      continue;
    QueryResult answer;
    delegate->Query(*program.host, *program.offered, &answer);
    for (Candidate& c : answer.candidates) {
      if (!IsControl(program.graph->nodes[c.nodes.back()]))
        offers[c.nodes.back()].push_back({delegate.get(), std::move(c)});
    }
  }
  return offers;
}

void MeasureOffer(const CompiledModel& model, const Program& program, const Offer& offer,
                  size_t max_bytes, CostTable* table, MeasureReport* report) {
  std::string key = CostKey(*program.offered, offer.delegate->name(), offer.candidate);
  if (table->Find(key) != nullptr) {
    ++report->known;
    return;
  }
  const auto seconds = Trial(model, program, *offer.delegate, offer.candidate).Seconds(max_bytes);
  if (seconds.ok()) {
    ++report->measured;
    table->Set(std::move(key), *seconds);
    return;
  }
  ++report->failed;
  model.environment->log(LogLevel::kDebug, "cannot measure ", key, ": ",
                         seconds.status().message());
}

}  // namespace

MeasureReport MeasureCosts(const CompiledModel& model, const MeasureOptions& options,
                           CostTable* table) {
  MeasureReport report;
  const StopWatch watch;
  size_t all = 0, done = 0;
  const std::vector<std::shared_ptr<const EntryProgram>> programs = ProgramsOf(model);
  for (const auto& current : programs)
    all += current == nullptr ? 0 : current->program->graph->nodes.size();
  for (const auto& current : programs) {
    if (current == nullptr) continue;
    const Program& program = *current->program;
    model.parallel->OnTeam([&] {
      for (const std::vector<Offer>& offers : OffersOf(model, program)) {
        if (options.progress) options.progress(done, all);
        ++done;
        if (watch.Millis() * 1e-3 > options.budget_seconds) {
          ++report.nodes_left;
          continue;
        }
        for (const Offer& offer : offers)
          MeasureOffer(model, program, offer, options.max_bytes, table, &report);
      }
    });
  }
  return report;
}

CostOrigin CurrentOrigin(const Environment& environment, std::string_view library) {
  return {std::string(library), ProcessorName(), environment.parallel->threads(),
          environment.machine.value_or(TypicalMachine(environment.parallel->threads()))};
}

Result<std::shared_ptr<const CostTable>> ReadCosts(const Environment& environment,
                                                   const std::string& path,
                                                   std::string_view library) {
  MSRT_ASSIGN_OR_RETURN(const Bytes bytes, environment.io->ReadFile(path, environment.allocator));
  auto table =
      CostTable::Parse({reinterpret_cast<const char*>(bytes.data.data()), bytes.data.size()});
  if (!table.ok()) return std::move(table).status().Within(StrCat("costs '", path, "'"));
  const std::string difference = Difference(table->origin, CurrentOrigin(environment, library));
  if (!difference.empty()) {
    environment.log(LogLevel::kWarning, "costs '", path, "' were measured elsewhere (", difference,
                    "); measure them again with msrun calibrate");
  }
  return std::make_shared<const CostTable>(*std::move(table));
}

}  // namespace msrt
