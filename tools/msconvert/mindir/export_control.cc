// Control flow in MindSpore's form: functions are values. Switch chooses between two functions
// whose arguments are bound, and the result is called. A loop is a header function that chooses
// between the body, which ends by calling the header again, and the code after the loop.
#include <algorithm>
#include <functional>

#include "ops/control.h"
#include "tools/msconvert/mindir/export_failure.h"
#include "tools/msconvert/mindir/export_module.h"

namespace msrt::mindir_export {
namespace {

struct Variable {
  std::string name;
  Type type;
};

Type CountType() { return Type::Tensor(DType::kI64, {}); }
Type TruthType() { return Type::Tensor(DType::kBool, {}); }

Ref AsScalar(FunctionWriter& out, const Ref& x, const Type& type) {
  return type.rank_known && type.rank() == 0 ? x : out.Op("Reshape", {x, Ints{}});
}

Ref Count(FunctionWriter& out, int64_t value) {
  return out.Constant(NumberTensor(DType::kI64, static_cast<double>(value)));
}

// Writes the nodes of one control node.
class ControlLowering {
 public:
  ControlLowering(ModuleExport* module, GraphNames* names, StateNames* state, const Node& node)
      : module_(*module),
        names_(*names),
        out_(names->out()),
        state_(*state),
        node_(node),
        shape_(ShapeOfControl(node)) {}

  Status Run() {
    switch (shape_.kind) {
      case ControlKind::kIf:
        return If();
      case ControlKind::kSwitch:
        return SwitchN();
      case ControlKind::kLoop:
        return Loop();
      case ControlKind::kScan:
        return Scan();
      case ControlKind::kWhile:
        return While();
      case ControlKind::kCall:
        return Call();
      case ControlKind::kPartial:
        return Partial();
    }
    return OkStatus();
  }

 private:
  // ---- calls ------------------------------------------------------------------------------------

  const Graph& graph(size_t g) const { return module_.module().graphs[shape_.graphs[g]]; }
  bool Effects() const {
    return std::any_of(shape_.graphs.begin(), shape_.graphs.end(),
                       [&](uint32_t g) { return module_.TouchesState(g); });
  }
  Ref In(size_t input) { return names_.Of(node_.inputs[input]); }
  const Type& TypeOf(size_t input) const { return names_.graph().value(node_.inputs[input]).type; }

  Args Inputs(size_t from) {
    Args args;
    for (size_t i = from; i < node_.inputs.size(); ++i) args.emplace_back(In(i));
    return args;
  }
  static void Append(Args* args, const StateNames& state) {
    args->insert(args->end(), state.slots.begin(), state.slots.end());
    args->emplace_back(state.token);
  }

  // Returns graph g with all its arguments bound.
  Ref Bound(size_t g, Args args) {
    args.insert(args.begin(), module_.FunctionOf(shape_.graphs[g]));
    if (module_.TouchesState(shape_.graphs[g])) Append(&args, state_);
    return out_.Prim("Partial", {}, args);
  }

  // Makes the results of a call those of the node.
  Status Finish(const Ref& result) {
    if (Effects()) state_.token = out_.Prim("UpdateState", {}, {state_.token, result});
    std::vector<Type> types;
    for (ValueId v : node_.outputs) {
      if (v == kNoValue) return Unsupported("an output is left out");
      types.push_back(names_.graph().value(v).type);
    }
    out_.Describe(result, types);
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      const Ref item = node_.outputs.size() == 1 ? result : out_.Item(result, i);
      out_.Describe(item, {&types[i], 1});
      names_.Set(node_.outputs[i], item);
    }
    return OkStatus();
  }

  Status If() {
    const Ref condition = AsScalar(out_, In(0), TypeOf(0));
    const std::span<const ValueId> handed = std::span(node_.inputs).subspan(1);
    const auto fails = [&](size_t g) {
      return CertainFailure(module_.module(), shape_.graphs[g], names_.graph(), handed);
    };
    const std::string failures[] = {fails(0), fails(1)};
    Ref branches[2];
    for (size_t g = 0; g < 2; ++g) {
      const bool alone =
          !failures[g].empty() && failures[1 - g].empty() && CanBeOutputs(graph(1 - g));
      branches[g] = alone ? Failing(graph(g).name, failures[g], condition, graph(1 - g))
                          : Bound(g, Inputs(1));
    }
    return Finish(out_.Call(out_.Prim("Switch", {}, {condition, branches[0], branches[1]}), {}));
  }

  static bool CanBeOutputs(const Graph& like) {
    return std::all_of(like.outputs.begin(), like.outputs.end(),
                       [&](ValueId v) { return like.value(v).type.concrete(); });
  }

  // Returns a function in place of a branch that always fails. It fails too, but its results have
  // the types of the other branch. It reshapes a tensor of two elements to three or five, which
  // MindSpore notices only at run time.
  Ref Failing(const std::string& name, const std::string& why, const Ref& condition,
              const Graph& like) {
    FunctionWriter stub(&module_.file(), module_.file().AddFunction(name + "_fails"));
    stub.SetScope(why);
    const Ref truth =
        stub.Op("Cast", {stub.Input("condition", TruthType()), TypeIdOf(DType::kI64)});
    const Ref odd = stub.Op("Add", {stub.Op("Mul", {truth, Count(stub, 2)}), Count(stub, 3)});
    const Ref two = stub.Constant(ConstTensor::Int64s(Ints{0, 0}));
    const Ref never = stub.Op(
        "Reshape", {two, stub.Prim("TensorToTuple", {}, {stub.Op("Reshape", {odd, Ints{1}})})});
    std::vector<Ref> results;
    std::vector<Type> types;
    for (ValueId v : like.outputs) {
      types.push_back(like.value(v).type);
      const Dims& dims = types.back().dims;
      results.push_back(stub.Op("Reshape", {stub.Op("Cast", {never, TypeIdOf(types.back().dtype)}),
                                            Ints(dims.begin(), dims.end())}));
    }
    stub.Return(Bundle(&stub, results), types);
    return out_.Prim("Partial", {}, {stub.self(), condition});
  }

  Status SwitchN() {
    Ref index = AsScalar(out_, In(0), TypeOf(0));
    if (TypeOf(0).dtype != DType::kI32) index = out_.Op("Cast", {index, TypeIdOf(DType::kI32)});
    std::vector<Ref> branches;
    for (uint32_t g : shape_.graphs) branches.push_back(module_.FunctionOf(g));
    Args args = Inputs(1);
    if (Effects()) Append(&args, state_);
    return Finish(out_.Call(out_.Prim("switch_layer", {}, {index, out_.Tuple(branches)}), args));
  }

  Status Call() {
    if (shape_.graphs.empty()) return Finish(out_.Call(In(0), Inputs(1)));
    Args args = Inputs(0);
    if (Effects()) Append(&args, state_);
    return Finish(out_.Call(module_.FunctionOf(shape_.graphs[0]), args));
  }

  Status Partial() {
    if (Effects())
      return Unsupported("a function that touches state is a value here; call it directly");
    Args args = Inputs(0);
    args.insert(args.begin(), module_.FunctionOf(shape_.graphs[0]));
    names_.Set(node_.outputs[0], out_.Prim("Partial", {}, args));
    return OkStatus();
  }

  // ---- loops ------------------------------------------------------------------------------------

  // One function of a loop. Its inputs are the loop's variables, then the state.
  struct Part {
    Part(ControlLowering& loop, std::string_view role)
        : proto(loop.module_.file().AddFunction(
              StrCat(loop.node_.name.empty() ? "loop" : loop.node_.name, role))),
          out(&loop.module_.file(), proto) {
      out.SetScope(loop.node_.name);
      for (const Variable& v : loop.variables_) args.push_back(out.Input(v.name, v.type));
      if (!loop.Effects()) return;
      for (const StateSlot& slot : loop.module_.module().states)
        state.slots.push_back(out.Input(slot.name, slot.type));
      state.token = out.MonadInput();
    }
    Args All() const {
      Args all(args.begin(), args.end());
      if (!state.token.name.empty()) Append(&all, state);
      return all;
    }
    mindir::GraphProto* proto;
    FunctionWriter out;
    std::vector<Ref> args;
    StateNames state;
  };

  size_t Add(std::string_view name, Type type, Ref first) {
    variables_.push_back({std::string(name), std::move(type)});
    first_.push_back(std::move(first));
    return variables_.size() - 1;
  }

  Ref CallBody(Part& part, size_t g, Args args) {
    const bool effects = module_.TouchesState(shape_.graphs[g]);
    if (effects) Append(&args, part.state);
    const Ref result = part.out.Call(module_.FunctionOf(shape_.graphs[g]), args);
    if (effects) part.state.token = part.out.Prim("UpdateState", {}, {part.state.token, result});
    return result;
  }
  // Returns the results of a call of graph g, one by one.
  std::vector<Ref> ResultsOf(Part& part, size_t g, const Ref& call) {
    const size_t count = graph(g).outputs.size();
    if (count == 1) return {call};
    std::vector<Ref> results;
    for (size_t i = 0; i < count; ++i) results.push_back(part.out.Item(call, i));
    return results;
  }

  // `condition` returns a scalar from the variables, `next` their values for the next iteration,
  // and `results` the results after the last one.
  using ConditionFn = std::function<Ref(Part&)>;
  using ManyFn = std::function<std::vector<Ref>(Part&)>;
  Status EmitLoop(const ConditionFn& condition, const ManyFn& next, const ManyFn& results) {
    Part header(*this, "_header"), body(*this, "_body"), after(*this, "_after");
    std::vector<Type> types;
    for (ValueId v : node_.outputs)
      types.push_back(v == kNoValue ? UndeclaredType() : names_.graph().value(v).type);

    const Ref truth = condition(header);
    Args to_body = header.All(), to_after = header.All();
    to_body.insert(to_body.begin(), body.out.self());
    to_after.insert(to_after.begin(), after.out.self());
    const Ref chosen = header.out.Prim(
        "Switch", {},
        {truth, header.out.Prim("Partial", {}, to_body), header.out.Prim("Partial", {}, to_after)});
    header.out.Return(header.out.Call(chosen, {}), types);

    const std::vector<Ref> again = next(body);
    Args round(again.begin(), again.end());
    if (Effects()) Append(&round, body.state);
    Ref turned = body.out.Call(header.out.self(), round);
    if (Effects()) {
      turned = body.out.Prim(
          "Depend", {}, {turned, body.out.Prim("UpdateState", {}, {body.state.token, turned})});
    }
    body.out.Return(turned, types);

    Ref rest = Bundle(&after.out, results(after));
    if (Effects()) rest = after.out.Prim("Depend", {}, {rest, after.state.token});
    after.out.Return(rest, types);

    Args first(first_.begin(), first_.end());
    if (Effects()) Append(&first, state_);
    return Finish(out_.Call(header.out.self(), first));
  }

  // MindSpore infers the types of a loop by iterating until nothing changes, and a shape that grows
  // changes every time. So the initial value of a dim that the loop may change is made unknown to
  // MindSpore.
  Status AddCarried() {
    carried_at_ = variables_.size();
    for (size_t i = 0; i < shape_.carried; ++i) {
      const ValueId v = node_.outputs[i];
      if (v == kNoValue) return Unsupported("output ", i, " is left out");
      const Type &begin = TypeOf(shape_.leading + i), &end = names_.graph().value(v).type;
      Ref first = In(shape_.leading + i);
      for (int d = 0; begin.is_tensor() && begin.rank_known && end.rank_known &&
                      d < std::min(begin.rank(), end.rank());
           ++d) {
        if (begin.dims[d] != end.dims[d]) first = Opened(first, begin, d);
      }
      Add(StrCat("carried", i), end, first);
    }
    return OkStatus();
  }

  // Returns the indices of the elements of `flags` that are not zero. MindSpore learns their number
  // only at run time.
  Ref IndicesOf(const Ref& flags) {
    return out_.Op("Reshape", {out_.Op("NonZero", {flags}), Ints{-1}});
  }
  Ref Flags(const Arg& shape, double value) {
    return out_.Prim("FillV2", {}, {shape, out_.Constant(NumberTensor(DType::kF32, value))});
  }

  // Returns the same tensor with an extent that is not known before the run.
  Ref Opened(const Ref& x, const Type& type, int axis) {
    Arg extent = Ints{type.dims[axis]};
    if (!IsKnown(type.dims[axis])) extent = out_.ShapeTuple({out_.DimOf(x, axis)});
    return out_.Op("Gather", {x, IndicesOf(Flags(extent, 1)), axis, 0});
  }

  void AddFrom(size_t input, std::string_view name) {
    for (size_t i = input; i < node_.inputs.size(); ++i)
      Add(StrCat(name, i - input), TypeOf(i), In(i));
  }
  Status While() {
    MSRT_RETURN_IF_ERROR(AddCarried());
    AddFrom(shape_.captured_from(), "captured");
    const auto condition = [&](Part& p) {
      const Graph& g = graph(0);
      return AsScalar(p.out, CallBody(p, 0, Args(p.args.begin(), p.args.end())),
                      g.value(g.outputs[0]).type);
    };
    const auto next = [&](Part& p) {
      std::vector<Ref> values = ResultsOf(p, 1, CallBody(p, 1, Args(p.args.begin(), p.args.end())));
      values.insert(values.end(), p.args.begin() + static_cast<ptrdiff_t>(shape_.carried),
                    p.args.end());
      return values;
    };
    const auto results = [&](Part& p) {
      return std::vector<Ref>(p.args.begin(),
                              p.args.begin() + static_cast<ptrdiff_t>(shape_.carried));
    };
    return EmitLoop(condition, next, results);
  }

  // ---- stacked outputs of loops -----------------------------------------------------------------

  // Slices are collected in a tensor that has room for all of them from the beginning, or, if their
  // number is not known, in one that grows.
  struct Stack {
    size_t variable = 0, output = 0;  // output of the node
    int64_t axis = 0;
    bool reversed = false, grows = false;
  };

  Status AddStack(size_t g, size_t result, size_t output, int64_t length, int64_t axis,
                  bool reversed) {
    const Type& slice = graph(g).value(graph(g).outputs[result]).type;
    if (!slice.concrete())
      return Unsupported("the shape of what it collects for output ", output,
                         " is not known before the run");
    Type whole = slice;
    if (whole.rank() == kMaxRank)
      return Unsupported("output ", output, " would have too many dims");
    const bool grows = length <= 0;
    whole.dims.insert(0, grows ? 1 : length);
    Ref room = out_.Prim(
        "FillV2", {},
        {Ints(whole.dims.begin(), whole.dims.end()), out_.Constant(NumberTensor(slice.dtype, 0))});
    if (grows) {
      room = out_.Op("Gather", {room, IndicesOf(Flags(Ints{1}, 0)), 0, 0});
      whole.dims[0] = kUnknownDim;
    }
    stacks_.push_back({Add(StrCat("collected", output), whole, room), output,
                       FromFront(axis, whole.rank()), reversed, grows});
    return OkStatus();
  }

  static Ref Placed(Part& p, const Ref& stack, const Ref& at, const Ref& slice) {
    return p.out.Prim(
        "TensorScatterUpdate", {},
        {stack, p.out.Op("Reshape", {at, Ints{1, 1}}), p.out.Op("ExpandDims", {slice, 0})});
  }

  static Ref Appended(Part& p, const Ref& stack, const Ref& slice) {
    return p.out.Op("Concat", {p.out.Tuple({stack, p.out.Op("ExpandDims", {slice, 0})}), 0});
  }

  // Moves the stacking axis, which is the first while slices are collected, to its position.
  static Ref Turned(Part& p, const Ref& whole, int rank, int64_t axis) {
    if (axis == 0) return whole;
    Ints perm;
    for (int64_t i = 1; i < rank; ++i) perm.push_back(i);
    perm.insert(perm.begin() + axis, 0);
    return p.out.Op("Transpose", {whole, perm});
  }

  // Returns the first `count` slices.
  static Ref Taken(Part& p, const Ref& whole, int rank, const Ref& count) {
    const Ref zeros = p.out.Constant(ConstTensor::Int64s(Ints(static_cast<size_t>(rank - 1), 0)));
    const Ref first = p.out.Op("Reshape", {count, Ints{1}});
    const Ref ends = rank == 1 ? first : p.out.Op("Concat", {p.out.Tuple({first, zeros}), 0});
    const int64_t others = ((int64_t{1} << rank) - 1) & ~int64_t{1};
    return p.out.Op("StridedSlice", {whole, Ints(static_cast<size_t>(rank), 0),
                                     p.out.Prim("TensorToTuple", {}, {ends}),
                                     Ints(static_cast<size_t>(rank), 1), others, others, 0, 0, 0});
  }

  // ---- Loop -------------------------------------------------------------------------------------

  bool Given(size_t input) const { return node_.inputs[input] != kNoValue; }
  const ConstTensor* ConstantIn(size_t input) const {
    return Given(input) ? names_.graph().value(node_.inputs[input]).constant.get() : nullptr;
  }
  // Returns whether the condition can never become false.
  bool RunsToTheEnd() const {
    const Graph& body = graph(0);
    const ConstTensor* first = ConstantIn(1);
    if (Given(1) && (first == nullptr || first->bytes[0] == std::byte{0})) return false;
    const ValueId last = body.outputs[0];
    if (last == body.inputs[1]) return true;
    const ConstTensor* constant = body.value(last).constant.get();
    if (constant != nullptr) return constant->bytes[0] != std::byte{0};
    return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& n) {
      return n.op == "Identity" && n.outputs[0] == last && n.inputs[0] == body.inputs[1];
    });
  }

  Status Loop() {
    const ConstTensor* trips = ConstantIn(0);
    const int64_t length = trips != nullptr ? trips->As<int64_t>()[0] : -1;
    const bool to_the_end = RunsToTheEnd();
    const size_t i = Add("iteration", CountType(), Count(out_, 0));
    const size_t truth = Add(
        "condition", TruthType(),
        Given(1) ? AsScalar(out_, In(1), TypeOf(1)) : out_.Constant(NumberTensor(DType::kBool, 1)));
    const size_t max_trips =
        Given(0) ? Add("trip_count", CountType(), AsScalar(out_, In(0), TypeOf(0))) : SIZE_MAX;
    MSRT_RETURN_IF_ERROR(AddCarried());
    for (size_t r = 1 + shape_.carried; r < graph(0).outputs.size(); ++r) {
      MSRT_RETURN_IF_ERROR(AddStack(0, r, r - 1, length, 0, false));
    }
    const size_t captured = variables_.size();
    AddFrom(shape_.captured_from(), "captured");

    const auto condition = [&](Part& p) {
      if (max_trips == SIZE_MAX) return p.args[truth];
      const Ref more = p.out.Op("Less", {p.args[i], p.args[max_trips]});
      return to_the_end ? more : p.out.Op("LogicalAnd", {more, p.args[truth]});
    };
    const auto next = [&](Part& p) {
      Args args{p.args[i], p.args[truth]};
      args.insert(args.end(), p.args.begin() + static_cast<ptrdiff_t>(carried_at_),
                  p.args.begin() + static_cast<ptrdiff_t>(carried_at_ + shape_.carried));
      args.insert(args.end(), p.args.begin() + static_cast<ptrdiff_t>(captured), p.args.end());
      const std::vector<Ref> given = ResultsOf(p, 0, CallBody(p, 0, args));
      std::vector<Ref> values = p.args;
      values[i] = p.out.Op("Add", {p.args[i], Count(p.out, 1)});
      values[truth] = AsScalar(p.out, given[0], graph(0).value(graph(0).outputs[0]).type);
      for (size_t c = 0; c < shape_.carried; ++c) values[carried_at_ + c] = given[1 + c];
      for (const Stack& s : stacks_) {
        const Ref &stack = p.args[s.variable], &slice = given[1 + s.output];
        values[s.variable] =
            s.grows ? Appended(p, stack, slice) : Placed(p, stack, p.args[i], slice);
      }
      return values;
    };
    const auto results = [&](Part& p) {
      std::vector<Ref> values(
          p.args.begin() + static_cast<ptrdiff_t>(carried_at_),
          p.args.begin() + static_cast<ptrdiff_t>(carried_at_ + shape_.carried));
      for (const Stack& s : stacks_) {
        const Ref& whole = p.args[s.variable];
        values.push_back(to_the_end || s.grows
                             ? whole
                             : Taken(p, whole, variables_[s.variable].type.rank(), p.args[i]));
      }
      return values;
    };
    return EmitLoop(condition, next, results);
  }

  // ---- Scan -------------------------------------------------------------------------------------

  int64_t ListAttr(std::string_view name, size_t at) const {
    const AttrValue* given = node_.attrs.Find(name);
    if (given == nullptr) return 0;
    const auto& values = std::get<std::vector<int64_t>>(*given);
    return at < values.size() ? values[at] : 0;
  }

  Status Scan() {
    const Type& scanned = TypeOf(shape_.carried);
    if (!scanned.rank_known)
      return Unsupported("the rank of what it scans is not known before the run");
    const int64_t length =
        scanned.dims[static_cast<int>(FromFront(ListAttr("scan_input_axes", 0), scanned.rank()))];
    if (!IsKnown(length)) return Unsupported("how much it scans is not known before the run");
    const size_t i = Add("iteration", CountType(), Count(out_, 0));
    MSRT_RETURN_IF_ERROR(AddCarried());
    for (size_t r = shape_.carried; r < graph(0).outputs.size(); ++r) {
      const size_t k = r - shape_.carried;
      MSRT_RETURN_IF_ERROR(AddStack(0, r, r, length, ListAttr("scan_output_axes", k),
                                    ListAttr("scan_output_directions", k) != 0));
    }
    const size_t scans = variables_.size();
    AddFrom(shape_.leading + shape_.carried, "scanned");

    const auto place = [&](Part& p, bool reversed) {
      return reversed ? p.out.Op("Sub", {Count(p.out, length - 1), p.args[i]}) : p.args[i];
    };
    const auto condition = [&](Part& p) {
      return p.out.Op("Less", {p.args[i], Count(p.out, length)});
    };
    const auto next = [&](Part& p) {
      Args args(p.args.begin() + static_cast<ptrdiff_t>(carried_at_),
                p.args.begin() + static_cast<ptrdiff_t>(carried_at_ + shape_.carried));
      for (size_t k = 0; k < shape_.scan_inputs; ++k) {
        const int64_t axis =
            FromFront(ListAttr("scan_input_axes", k), variables_[scans + k].type.rank());
        args.emplace_back(p.out.Op(
            "Gather",
            {p.args[scans + k], place(p, ListAttr("scan_input_directions", k) != 0), axis, 0}));
      }
      args.insert(args.end(), p.args.begin() + static_cast<ptrdiff_t>(scans + shape_.scan_inputs),
                  p.args.end());
      const std::vector<Ref> given = ResultsOf(p, 0, CallBody(p, 0, args));
      std::vector<Ref> values = p.args;
      values[i] = p.out.Op("Add", {p.args[i], Count(p.out, 1)});
      for (size_t c = 0; c < shape_.carried; ++c) values[carried_at_ + c] = given[c];
      for (const Stack& s : stacks_)
        values[s.variable] = Placed(p, p.args[s.variable], place(p, s.reversed), given[s.output]);
      return values;
    };
    const auto results = [&](Part& p) {
      std::vector<Ref> values(
          p.args.begin() + static_cast<ptrdiff_t>(carried_at_),
          p.args.begin() + static_cast<ptrdiff_t>(carried_at_ + shape_.carried));
      for (const Stack& s : stacks_)
        values.push_back(Turned(p, p.args[s.variable], variables_[s.variable].type.rank(), s.axis));
      return values;
    };
    return EmitLoop(condition, next, results);
  }

  ModuleExport& module_;
  GraphNames& names_;
  FunctionWriter& out_;
  StateNames& state_;
  const Node& node_;
  const ControlShape shape_;
  std::vector<Variable> variables_;
  std::vector<Ref> first_;  // initial values of the variables
  std::vector<Stack> stacks_;
  size_t carried_at_ = 0;
};

}  // namespace

Status LowerControl(ModuleExport* module, GraphNames* names, StateNames* state, const Node& node) {
  return ControlLowering(module, names, state, node).Run();
}

}  // namespace msrt::mindir_export
