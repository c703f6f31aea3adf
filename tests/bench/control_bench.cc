// What control flow costs: an If, an iteration of a loop over numbers, a call, a tail call.
//   control_bench [ROUNDS]
// Prints the least and the median time of each, in nanoseconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/clock.h"
#include "ops/builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

const Type kNumber = Type::Tensor(DType::kI64, {});

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "control_bench: %s\n", result.status().message().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

// Graphs over i64 numbers.
struct Numbers {
  Module module;
  explicit Numbers(size_t graphs) {
    module.graphs.resize(graphs);
    module.entries = {0};
  }
  ValueId In(uint32_t g) { return module.graphs[g].AddInput(StrCat("i", module.graphs[g].inputs.size()), kNumber); }
  ValueId Constant(uint32_t g, int64_t v) {
    return module.graphs[g].AddConstant(StrCat("c", module.graphs[g].value_count()),
                                        ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&v, 1)));
  }
  ValueId Op(uint32_t g, std::string_view op, std::vector<ValueId> inputs) {
    return Must(GraphBuilder(&module.graphs[g]).Add(op, StrCat(op, module.graphs[g].value_count()), std::move(inputs)));
  }
  ValueId Control(uint32_t g, std::string_view domain, std::string_view op, std::vector<ValueId> inputs, AttrList attrs) {
    return Must(GraphBuilder(&module.graphs[g]).Add(domain, op, std::string(op), std::move(inputs), std::move(attrs), 1, {kNumber}))[0];
  }
  void Out(uint32_t g, ValueId v) { module.graphs[g].outputs.push_back(v); }
};

Module Plain() {
  Numbers m(1);
  m.Out(0, m.Op(0, "Add", {m.In(0), m.Constant(0, 1)}));
  return m.module;
}

Module Branch() {
  Numbers m(3);
  const ValueId x = m.In(0);
  m.Out(0,
        m.Control(0, "", "If", {m.Op(0, "Less", {x, m.Constant(0, 0)}), x}, {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}));
  m.Out(1, m.Op(1, "Sub", {m.In(1), m.Constant(1, 1)}));
  m.Out(2, m.Op(2, "Add", {m.In(2), m.Constant(2, 1)}));
  return m.module;
}

// while (i < n) i += 1
Module While() {
  Numbers m(3);
  m.Out(0, m.Control(0, "msrt", "While", {m.Constant(0, 0), m.In(0)},
                     {{"condition", GraphRef{1}}, {"body", GraphRef{2}}, {"carried", int64_t{1}}}));
  const ValueId i = m.In(1);
  m.Out(1, m.Op(1, "Less", {i, m.In(1)}));
  const ValueId j = m.In(2);
  m.In(2);
  m.Out(2, m.Op(2, "Add", {j, m.Constant(2, 1)}));
  return m.module;
}

Module TailCall() {
  Numbers m(3);
  const ValueId n = m.In(0);
  m.Out(0,
        m.Control(0, "", "If", {m.Op(0, "Equal", {n, m.Constant(0, 0)}), n}, {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}));
  m.Out(1, m.In(1));
  m.Out(2, m.Control(2, "msrt", "Call", {m.Op(2, "Sub", {m.In(2), m.Constant(2, 1)})}, {{"graph", GraphRef{0}}}));
  return m.module;
}

// Nanoseconds of one run, divided by `parts`.
void Measure(const char* name, const Module& module, int64_t input, double parts, int rounds) {
  auto model = Must(CompileModule(testing::TestEnvironment(), module, {}));
  auto session = Must(Session::Create(std::move(model), 0, {}));
  if (!session->SetInput(0, {DType::kI64, {}, Layout::kPlain, &input}, nullptr).ok()) std::exit(1);
  std::vector<double> nanos;
  const int runs = parts > 1 ? 1 : 2000;
  for (int r = 0; r <= rounds; ++r) {
    const int64_t begin = MonotonicNanos();
    for (int k = 0; k < runs; ++k) {
      const Status status = session->Run({});
      if (!status.ok()) {
        std::fprintf(stderr, "control_bench: %s: %s\n", name, status.message().c_str());
        std::exit(1);
      }
    }
    if (r != 0) nanos.push_back(static_cast<double>(MonotonicNanos() - begin) / runs / parts);
  }
  std::sort(nanos.begin(), nanos.end());
  std::printf("%-28s %10.0f %10.0f\n", name, nanos.front(), nanos[nanos.size() / 2]);
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  const int64_t count = rounds > 1 ? 1'000'000 : 20'000;  // one round is a trial, also under sanitizers
  std::printf("%-28s %10s %10s\n", "nanoseconds", "least", "median");
  msrt::Measure("a run of one Add", msrt::Plain(), 5, 1, rounds);
  msrt::Measure("a run of Less, If, Add", msrt::Branch(), 5, 1, rounds);
  msrt::Measure("an iteration of a While", msrt::While(), count, static_cast<double>(count), rounds);
  msrt::Measure("a tail call (If and Call)", msrt::TailCall(), count, static_cast<double>(count), rounds);
  return 0;
}
