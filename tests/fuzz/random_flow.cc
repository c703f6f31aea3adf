#include "tests/fuzz/random_flow.h"

#include <random>

#include "tests/conformance/module_builder.h"

namespace msrt::testing {
namespace {

constexpr int kDeepest = 3;
constexpr size_t kMaxGraphs = 40;
constexpr int64_t kModulus = 1009;  // keeps numbers small, however often they are added

enum Kind : size_t { kNumbers, kFlags, kVectors, kElements, kKinds };

// A graph that can be called, with the kinds of its inputs and outputs.
struct Callable {
  uint32_t graph = 0;
  std::vector<Kind> takes, gives;
};

class FlowGrower {
 public:
  FlowGrower(uint64_t seed, FlowKind kind) : smooth_(kind == FlowKind::kSmooth), random_(seed) {}

  RandomFlow Grow() {
    b_.module.states.push_back({"count", kNumber, Number(1)});
    b_.module.states.push_back({"total", kNumber, Number(2)});
    const std::vector<Kind> takes = {kNumbers, kNumbers, kFlags, kVectors, kVectors, kElements};
    Fill(0, takes, Results(), 0, Below(8) + 4);
    RandomFlow flow{std::move(b_.module), {}};
    for (Kind kind : takes) flow.inputs.push_back(SomeConstant(kind));
    return flow;
  }

 private:
  // A graph under construction: its values by kind.
  struct Scope {
    uint32_t graph;
    int depth;
    std::vector<ValueId> values[kKinds];
  };

  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  bool OneIn(size_t n) { return Below(n) == 0; }
  std::vector<Kind> SomeKinds(size_t least, size_t most) {
    std::vector<Kind> kinds(least + Below(most - least + 1));
    for (Kind& kind : kinds) kind = static_cast<Kind>(Below(kKinds));
    return kinds;
  }
  std::vector<Kind> Results() {
    std::vector<Kind> kinds = SomeKinds(2, 5);
    if (smooth_) kinds.push_back(kVectors);
    return kinds;
  }
  Type TypeOf(Kind kind) const {
    const DType dtype = smooth_ ? DType::kF64 : DType::kF32;
    switch (kind) {
      case kNumbers:
        return kNumber;
      case kFlags:
        return kFlag;
      case kVectors:
        return Type::Tensor(dtype, {4});
      default:
        return Type::Tensor(dtype, {});
    }
  }
  std::vector<Type> TypesOf(const std::vector<Kind>& kinds) const {
    std::vector<Type> types;
    for (Kind kind : kinds) types.push_back(TypeOf(kind));
    return types;
  }

  static ConstTensor Number(int64_t value) {
    return ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1));
  }
  ConstTensor SomeConstant(Kind kind) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    if (kind == kNumbers) return Number(static_cast<int64_t>(Below(7)));
    const auto flag = static_cast<uint8_t>(Below(2));
    if (kind == kFlags) return ConstTensor::Of<uint8_t>(DType::kBool, {}, std::span(&flag, 1));
    std::vector<float> values(kind == kVectors ? 4 : 1);
    for (float& v : values) v = uniform(random_);
    if (!smooth_) return ConstTensor::Floats(TypeOf(kind).dims, values);
    const std::vector<double> doubles(values.begin(), values.end());
    return ConstTensor::Of<double>(DType::kF64, TypeOf(kind).dims, doubles);
  }
  ValueId Constant(const Scope& s, ConstTensor data) {
    return b_.module.graphs[s.graph].AddConstant(
        StrCat("c", b_.module.graphs[s.graph].value_count()), std::move(data));
  }
  ValueId ConstantNumber(const Scope& s, int64_t value) { return Constant(s, Number(value)); }
  ValueId Any(const Scope& s, Kind kind) {
    const auto& values = s.values[kind];
    return values.empty() || OneIn(5) ? Constant(s, SomeConstant(kind))
                                      : values[Below(values.size())];
  }
  std::vector<ValueId> AnyOf(const Scope& s, const std::vector<Kind>& kinds) {
    std::vector<ValueId> values;
    for (Kind kind : kinds) values.push_back(Any(s, kind));
    return values;
  }
  // At least 0 and below `limit`.
  ValueId SmallNumber(const Scope& s, int64_t limit) {
    if (OneIn(2)) return ConstantNumber(s, static_cast<int64_t>(Below(static_cast<size_t>(limit))));
    return b_.Op(s.graph, "Mod", {Any(s, kNumbers), ConstantNumber(s, limit)});
  }
  void Give(Scope* s, const std::vector<Kind>& kinds, const std::vector<ValueId>& values) {
    for (size_t i = 0; i < kinds.size(); ++i) s->values[kinds[i]].push_back(values[i]);
  }

  uint32_t NewGraph() {
    b_.module.graphs.emplace_back().name = StrCat("g", b_.module.graphs.size() - 1);
    return static_cast<uint32_t>(b_.module.graphs.size() - 1);
  }
  Scope Enter(uint32_t graph, const std::vector<Kind>& takes, int depth) {
    Scope s{graph, depth, {}};
    for (Kind kind : takes) s.values[kind].push_back(b_.Input(graph, TypeOf(kind)));
    return s;
  }
  void Fill(uint32_t graph, const std::vector<Kind>& takes, const std::vector<Kind>& gives,
            int depth, size_t steps) {
    Scope s = Enter(graph, takes, depth);
    for (size_t i = 0; i < steps; ++i) Step(&s);
    for (Kind kind : gives) b_.Output(graph, Result(s, kind));
  }
  // Each output of an entry has its own name, so a node makes each.
  ValueId Result(const Scope& s, Kind kind) {
    const ValueId v = Any(s, kind);
    return s.graph == 0 ? b_.Op(0, "Identity", {v}) : v;
  }
  uint32_t Filled(const std::vector<Kind>& takes, const std::vector<Kind>& gives, int depth) {
    const uint32_t g = NewGraph();
    Fill(g, takes, gives, depth, Below(5) + 1);
    return g;
  }

  void Step(Scope* s) {
    const bool simple = s->depth >= kDeepest || b_.module.graphs.size() >= kMaxGraphs || OneIn(2);
    if (simple) return SimpleStep(s);
    constexpr void (FlowGrower::*kNested[])(Scope*) = {
        &FlowGrower::If,   &FlowGrower::If,        &FlowGrower::Switch,   &FlowGrower::Loop,
        &FlowGrower::Loop, &FlowGrower::Scan,      &FlowGrower::While,    &FlowGrower::Call,
        &FlowGrower::Call, &FlowGrower::CallBound, &FlowGrower::CallPick, &FlowGrower::Recursion};
    (this->*kNested[Below(std::size(kNested))])(s);
  }

  void SimpleStep(Scope* s) {
    switch (Below(9)) {
      case 0:
      case 1: {
        constexpr const char* kOps[] = {"Add", "Sub", "Mul"};
        const ValueId x = b_.Op(s->graph, kOps[Below(3)], {Any(*s, kNumbers), Any(*s, kNumbers)});
        return Give(s, {kNumbers}, {b_.Op(s->graph, "Mod", {x, ConstantNumber(*s, kModulus)})});
      }
      case 2:
        return Give(
            s, {kFlags},
            {b_.Op(s->graph, OneIn(2) ? "Less" : "Equal", {Any(*s, kNumbers), Any(*s, kNumbers)})});
      case 3:
        return Give(s, {kFlags},
                    {OneIn(2) ? b_.Op(s->graph, "Not", {Any(*s, kFlags)})
                              : b_.Op(s->graph, "And", {Any(*s, kFlags), Any(*s, kFlags)})});
      case 4: {
        if (smooth_ && OneIn(2)) return Give(s, {kVectors}, {Bounded(s, Any(*s, kVectors))});
        constexpr const char* kOps[] = {"Tanh", "Neg", "Sigmoid", "Relu"};
        return Give(s, {kVectors},
                    {b_.Op(s->graph, kOps[Below(smooth_ ? 3 : 4)], {Any(*s, kVectors)})});
      }
      case 5: {
        constexpr const char* kOps[] = {"Add", "Mul", "Max"};
        const char* const op = smooth_ && OneIn(3) ? "Sub" : kOps[Below(smooth_ ? 2 : 3)];
        const ValueId x =
            b_.Op(s->graph, op, {Any(*s, kVectors), Any(*s, OneIn(2) ? kVectors : kElements)});
        return Give(s, {kVectors}, {smooth_ ? Bounded(s, x) : b_.Op(s->graph, "Tanh", {x})});
      }
      case 6:
        if (smooth_) {
          const ValueId sum =
              b_.Op(s->graph, "ReduceSum", {Any(*s, kVectors)}, {{"keepdims", int64_t{0}}});
          return Give(s, {kElements}, {Bounded(s, sum)});
        }
        return Give(
            s, {kElements},
            {b_.Op(s->graph, "ReduceMax", {Any(*s, kVectors)}, {{"keepdims", int64_t{0}}})});
      case 7:
        return State(s);
      default:
        if (smooth_)
          return Give(s, {kVectors}, {b_.Op(s->graph, "Div", {Any(*s, kVectors), Positive(s)})});
        return Give(s, {kVectors},
                    {b_.Op(s->graph, "RandomUniform", {}, {{"shape", std::vector<int64_t>{4}}})});
    }
  }

  // 1 + x^2 of some value, and a smooth function with results of at most 1.
  ValueId Positive(Scope* s) {
    const ValueId x = Any(*s, OneIn(2) ? kVectors : kElements);
    return OnePlusSquare(*s, x);
  }
  ValueId OnePlusSquare(const Scope& s, ValueId x) {
    const double one = 1;
    return b_.Op(s.graph, "Add",
                 {b_.Op(s.graph, "Mul", {x, x}),
                  Constant(s, ConstTensor::Of<double>(DType::kF64, {}, std::span(&one, 1)))});
  }
  ValueId Bounded(Scope* s, ValueId x) {
    return b_.Op(s->graph, "Div", {b_.Op(s->graph, "Add", {x, x}), OnePlusSquare(*s, x)});
  }

  void State(Scope* s) {
    const auto slot = static_cast<int64_t>(Below(2));
    if (!smooth_ && OneIn(2)) {
      b_.Control(s->graph, "msrt", "StateWrite", {Any(*s, kNumbers)}, {{"slot", slot}}, {});
      return;
    }
    const AttrList attrs = {
        {"slot", slot}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}};
    Give(s, {kNumbers}, b_.Control(s->graph, "msrt", "StateRead", {}, attrs, {kNumber}));
  }

  void If(Scope* s) {
    const std::vector<Kind> takes = SomeKinds(0, 4), gives = SomeKinds(1, 3);
    const uint32_t yes = Filled(takes, gives, s->depth + 1),
                   no = OneIn(6) ? yes : Filled(takes, gives, s->depth + 1);
    std::vector<ValueId> inputs = AnyOf(*s, takes);
    inputs.insert(inputs.begin(), Any(*s, kFlags));
    Give(s, gives,
         b_.Control(s->graph, "", "If", inputs,
                    {{"then_branch", GraphRef{yes}}, {"else_branch", GraphRef{no}}},
                    TypesOf(gives)));
  }

  void Switch(Scope* s) {
    const std::vector<Kind> takes = SomeKinds(0, 4), gives = SomeKinds(1, 3);
    std::vector<GraphRef> branches(Below(3) + 1);
    for (GraphRef& branch : branches) branch.index = Filled(takes, gives, s->depth + 1);
    std::vector<ValueId> inputs = AnyOf(*s, takes);
    inputs.insert(inputs.begin(), SmallNumber(*s, static_cast<int64_t>(branches.size())));
    Give(s, gives,
         b_.Control(s->graph, "msrt", "SwitchN", inputs, {{"branches", branches}}, TypesOf(gives)));
  }

  // Returns the results of a loop body for the carried values; often the values unchanged.
  void Carry(const Scope& s, const std::vector<Kind>& carried, size_t first) {
    for (size_t i = 0; i < carried.size(); ++i) {
      const ValueId given = b_.module.graphs[s.graph].inputs[first + i];
      b_.Output(s.graph, OneIn(3) ? given : Any(s, carried[i]));
    }
  }

  std::vector<Type> Stacked(const std::vector<Kind>& kinds, int64_t length) const {
    std::vector<Type> types = TypesOf(kinds);
    for (Type& t : types) t.dims.insert(0, length);
    return types;
  }

  void Loop(Scope* s) {
    const std::vector<Kind> carried = SomeKinds(0, 4), captured = SomeKinds(0, 3),
                            scanned = SomeKinds(0, 2);
    const uint32_t g = NewGraph();
    std::vector<Kind> takes = {kNumbers, kFlags};
    takes.insert(takes.end(), carried.begin(), carried.end());
    takes.insert(takes.end(), captured.begin(), captured.end());
    Scope body = Enter(g, takes, s->depth + 1);
    for (size_t i = Below(4) + 1; i-- > 0;) Step(&body);
    b_.Output(g, OneIn(2) ? b_.module.graphs[g].inputs[1] : Any(body, kFlags));
    Carry(body, carried, 2);
    for (Kind kind : scanned) b_.Output(g, Any(body, kind));
    std::vector<ValueId> inputs = {SmallNumber(*s, 5), OneIn(2) ? kNoValue : Any(*s, kFlags)};
    for (const auto& kinds : {carried, captured}) {
      const std::vector<ValueId> values = AnyOf(*s, kinds);
      inputs.insert(inputs.end(), values.begin(), values.end());
    }
    std::vector<Type> results = TypesOf(carried);
    for (Type& t : Stacked(scanned, kUnknownDim)) results.push_back(t);
    const std::vector<ValueId> values = b_.Control(
        s->graph, "", "Loop", inputs,
        {{"body", GraphRef{g}}, {"carried", static_cast<int64_t>(carried.size())}}, results);
    Give(s, carried, values);
    Summarize(s, scanned, {values.begin() + static_cast<ptrdiff_t>(carried.size()), values.end()});
  }

  // Sums of scanned results, so that they are read. Sums of no elements are zero.
  void Summarize(Scope* s, const std::vector<Kind>& scanned, const std::vector<ValueId>& values) {
    for (size_t i = 0; i < scanned.size(); ++i) {
      if (scanned[i] == kFlags || OneIn(3)) continue;
      const ValueId sum = b_.Op(s->graph, "ReduceSum", {values[i]},
                                {{"keepdims", int64_t{0}}, {"axes", std::vector<int64_t>{0}}});
      s->values[scanned[i]].push_back(sum);
    }
  }

  void Scan(Scope* s) {
    const std::vector<Kind> carried = SomeKinds(0, 3), captured = SomeKinds(0, 3),
                            scanned = SomeKinds(0, 2);
    const size_t scans = Below(2) + 1;
    const uint32_t g = NewGraph();
    std::vector<Kind> takes = carried;
    takes.insert(takes.end(), scans, kElements);
    takes.insert(takes.end(), captured.begin(), captured.end());
    Scope body = Enter(g, takes, s->depth + 1);
    for (size_t i = Below(4) + 1; i-- > 0;) Step(&body);
    Carry(body, carried, 0);
    for (Kind kind : scanned) b_.Output(g, Any(body, kind));
    std::vector<ValueId> inputs;
    for (const auto& kinds : {carried, std::vector<Kind>(scans, kVectors), captured}) {
      const std::vector<ValueId> values = AnyOf(*s, kinds);
      inputs.insert(inputs.end(), values.begin(), values.end());
    }
    std::vector<Type> results = TypesOf(carried);
    for (Type& t : Stacked(scanned, 4)) results.push_back(t);
    AttrList attrs = {{"body", GraphRef{g}},
                      {"carried", static_cast<int64_t>(carried.size())},
                      {"num_scan_inputs", static_cast<int64_t>(scans)},
                      {"scan_output_directions",
                       std::vector<int64_t>(scanned.size(), static_cast<int64_t>(Below(2)))}};
    const std::vector<ValueId> values = b_.Control(s->graph, "", "Scan", inputs, attrs, results);
    Give(s, carried, values);
    Summarize(s, scanned, {values.begin() + static_cast<ptrdiff_t>(carried.size()), values.end()});
  }

  // Counts its first value up to a small number.
  void While(Scope* s) {
    std::vector<Kind> carried = SomeKinds(0, 3);
    carried.insert(carried.begin(), kNumbers);
    const std::vector<Kind> captured = SomeKinds(0, 3);
    std::vector<Kind> takes = carried;
    takes.insert(takes.end(), captured.begin(), captured.end());
    const uint32_t condition = NewGraph(), body = NewGraph();
    Scope c = Enter(condition, takes, kDeepest);
    for (size_t i = Below(3); i-- > 0;) Step(&c);
    ValueId go_on = b_.Op(
        condition, "Less",
        {b_.module.graphs[condition].inputs[0], ConstantNumber(c, static_cast<int64_t>(Below(5)))});
    if (OneIn(2)) go_on = b_.Op(condition, "And", {go_on, Any(c, kFlags)});
    b_.Output(condition, go_on);
    Scope inner = Enter(body, takes, s->depth + 1);
    for (size_t i = Below(4) + 1; i-- > 0;) Step(&inner);
    b_.Output(body,
              b_.Op(body, "Add", {b_.module.graphs[body].inputs[0], ConstantNumber(inner, 1)}));
    Carry(inner, {carried.begin() + 1, carried.end()}, 1);
    std::vector<ValueId> inputs = AnyOf(*s, takes);
    inputs[0] = SmallNumber(*s, 4);
    Give(s, carried,
         b_.Control(s->graph, "msrt", "While", inputs,
                    {{"condition", GraphRef{condition}},
                     {"body", GraphRef{body}},
                     {"carried", static_cast<int64_t>(carried.size())}},
                    TypesOf(carried)));
  }

  // Returns a graph to call: a new one, or one that is called elsewhere too.
  Callable SomeCallable(int depth) {
    if (!callables_.empty() && OneIn(2)) return callables_[Below(callables_.size())];
    Callable made{0, SomeKinds(1, 3), SomeKinds(1, 3)};
    made.graph = Filled(made.takes, made.gives, depth + 1);
    callables_.push_back(made);
    return made;
  }

  void Call(Scope* s) {
    const Callable callee = SomeCallable(s->depth);
    Give(s, callee.gives,
         b_.Control(s->graph, "msrt", "Call", AnyOf(*s, callee.takes),
                    {{"graph", GraphRef{callee.graph}}}, TypesOf(callee.gives)));
  }

  ValueId Bound(const Scope& s, const Callable& callee, size_t captured) {
    const std::vector<Kind> first(callee.takes.begin(),
                                  callee.takes.begin() + static_cast<ptrdiff_t>(captured));
    return b_.Control(s.graph, "msrt", "Partial", AnyOf(s, first),
                      {{"graph", GraphRef{callee.graph}}}, {FunctionOf(callee, captured)})[0];
  }
  Type FunctionOf(const Callable& callee, size_t captured) const {
    return Type::Function(
        TypesOf({callee.takes.begin() + static_cast<ptrdiff_t>(captured), callee.takes.end()}),
        TypesOf(callee.gives));
  }
  void CallFunction(Scope* s, ValueId function, const Callable& callee, size_t captured) {
    std::vector<ValueId> inputs =
        AnyOf(*s, {callee.takes.begin() + static_cast<ptrdiff_t>(captured), callee.takes.end()});
    inputs.insert(inputs.begin(), function);
    Give(s, callee.gives, b_.Control(s->graph, "msrt", "Call", inputs, {}, TypesOf(callee.gives)));
  }

  void CallBound(Scope* s) {
    const Callable callee = SomeCallable(s->depth);
    const size_t captured = Below(callee.takes.size() + 1);
    CallFunction(s, Bound(*s, callee, captured), callee, captured);
  }

  // Selects one of two functions, made in the branches or passed to them.
  void CallPick(Scope* s) {
    const Callable first{
        Filled({kNumbers, kVectors}, {kVectors}, s->depth + 1), {kNumbers, kVectors}, {kVectors}};
    const Callable second{
        Filled({kNumbers, kVectors}, {kVectors}, s->depth + 1), {kNumbers, kVectors}, {kVectors}};
    const Type function = FunctionOf(first, 1);
    const bool handed = OneIn(2);
    std::vector<ValueId> inputs = {Any(*s, kFlags)};
    if (handed) inputs.insert(inputs.end(), {Bound(*s, first, 1), Bound(*s, second, 1)});
    else inputs.push_back(Any(*s, kNumbers));
    uint32_t branches[2];
    for (size_t i = 0; i < 2; ++i) {
      branches[i] = NewGraph();
      if (handed) {
        for (int k = 0; k < 2; ++k) b_.Input(branches[i], function);
        b_.Output(branches[i], b_.module.graphs[branches[i]].inputs[i]);
      } else {
        const Scope inner = Enter(branches[i], {kNumbers}, s->depth + 1);
        b_.Output(branches[i], Bound(inner, i == 0 ? first : second, 1));
      }
    }
    const AttrList attrs = {{"then_branch", GraphRef{branches[0]}},
                            {"else_branch", GraphRef{branches[1]}}};
    CallFunction(s, b_.Control(s->graph, "", "If", inputs, attrs, {function})[0], first, 1);
  }

  // header(i, values...) = i < n ? body : exit, and the body finally calls the header, perhaps from
  // two branches.
  void Recursion(Scope* s) {
    std::vector<Kind> takes = SomeKinds(1, 3);
    takes.insert(takes.begin(), kNumbers);
    const std::vector<Kind> gives = SomeKinds(1, 2);
    const uint32_t header = NewGraph(), body = NewGraph(),
                   exit = Filled(takes, gives, s->depth + 1);
    Scope h = Enter(header, takes, s->depth + 1);
    for (size_t i = Below(3); i-- > 0;) SimpleStep(&h);
    const ValueId count = b_.module.graphs[header].inputs[0];
    const bool body_first = OneIn(2);
    std::vector<ValueId> inputs = AnyOf(h, takes);
    inputs[0] = count;
    const ValueId limit = ConstantNumber(h, static_cast<int64_t>(Below(5)));
    inputs.insert(inputs.begin(), body_first ? b_.Op(header, "Less", {count, limit})
                                             : b_.Op(header, "GreaterOrEqual", {count, limit}));
    for (ValueId v : b_.Control(header, "", "If", inputs,
                                {{"then_branch", GraphRef{body_first ? body : exit}},
                                 {"else_branch", GraphRef{body_first ? exit : body}}},
                                TypesOf(gives))) {
      b_.Output(header, v);
    }
    if (OneIn(2)) {
      CallAgain(body, header, takes, gives, s->depth + 1);
    } else {
      const uint32_t yes = NewGraph(), no = NewGraph();
      Scope inner = Enter(body, takes, s->depth + 1);
      SimpleStep(&inner);
      std::vector<ValueId> handed = b_.module.graphs[body].inputs;
      handed.insert(handed.begin(), Any(inner, kFlags));
      for (ValueId v : b_.Control(body, "", "If", handed,
                                  {{"then_branch", GraphRef{yes}}, {"else_branch", GraphRef{no}}},
                                  TypesOf(gives))) {
        b_.Output(body, v);
      }
      for (uint32_t g : {yes, no}) CallAgain(g, header, takes, gives, s->depth + 1);
    }
    std::vector<ValueId> begin = AnyOf(*s, takes);
    begin[0] = SmallNumber(*s, 4);
    Give(
        s, gives,
        b_.Control(s->graph, "msrt", "Call", begin, {{"graph", GraphRef{header}}}, TypesOf(gives)));
  }
  void CallAgain(uint32_t g, uint32_t header, const std::vector<Kind>& takes,
                 const std::vector<Kind>& gives, int depth) {
    Scope s = Enter(g, takes, depth);
    for (size_t i = Below(4); i-- > 0;) Step(&s);
    std::vector<ValueId> next = AnyOf(s, takes);
    next[0] = b_.Op(g, "Add", {b_.module.graphs[g].inputs[0], ConstantNumber(s, 1)});
    for (ValueId v :
         b_.Control(g, "msrt", "Call", next, {{"graph", GraphRef{header}}}, TypesOf(gives)))
      b_.Output(g, v);
  }

  const bool smooth_;
  std::mt19937_64 random_;
  ModuleBuilder b_{1};
  std::vector<Callable> callables_;
};

}  // namespace

RandomFlow MakeRandomFlow(uint64_t seed, FlowKind kind) { return FlowGrower(seed, kind).Grow(); }

}  // namespace msrt::testing
