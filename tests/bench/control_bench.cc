// The cost of control flow: an If, an iteration of a loop over numbers, a tail call.
//   control_bench [ROUNDS]
// Prints the minimum and the median time of each, in nanoseconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/clock.h"
#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "control_bench: %s\n", result.status().message().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

using Numbers = testing::ModuleBuilder;

Module Plain() {
  Numbers m(1);
  m.Output(0, m.Op(0, "Add", {m.Input(0), m.Number(0, 1)}));
  return m.module;
}

Module Branch() {
  Numbers m(3);
  const ValueId x = m.Input(0);
  m.Output(0, m.If(0, m.Op(0, "Less", {x, m.Number(0, 0)}), {x}, 1, 2));
  m.Output(1, m.Op(1, "Sub", {m.Input(1), m.Number(1, 1)}));
  m.Output(2, m.Op(2, "Add", {m.Input(2), m.Number(2, 1)}));
  return m.module;
}

Module TailCall() {
  Numbers m(3);
  const ValueId n = m.Input(0);
  m.Input(0);
  m.Output(0, m.If(0, m.Op(0, "Equal", {n, m.Number(0, 0)}), {n}, 1, 2));
  m.Output(1, m.Input(1));
  const ValueId left = m.Op(2, "Sub", {m.Input(2), m.Number(2, 1)});
  m.Output(2, m.Call(2, 0, {left, left}));
  return m.module;
}

// Prints the nanoseconds of one run, divided by `parts`. All inputs are numbers.
void Measure(const char* name, const Module& module, std::vector<int64_t> inputs, double parts,
             int rounds) {
  auto model = Must(CompileModule(testing::UserEnvironment(), module, {}));
  auto session = Must(Session::Create(std::move(model), 0, {}));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!session->SetInput(i, {DType::kI64, {}, Layout::kPlain, &inputs[i]}, nullptr).ok())
      std::exit(1);
  }
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
  const int64_t count =
      rounds > 1 ? 1'000'000 : 20'000;  // one round is a trial, also under sanitizers
  std::printf("%-28s %10s %10s\n", "nanoseconds", "minimum", "median");
  msrt::Measure("a run of one Add", msrt::Plain(), {5}, 1, rounds);
  msrt::Measure("a run of Less, If, Add", msrt::Branch(), {5}, 1, rounds);
  msrt::Measure("an iteration of a While", msrt::testing::CountingLoop(), {0, count},
                static_cast<double>(count), rounds);
  msrt::Measure("a tail call (If and Call)", msrt::TailCall(), {count, 0},
                static_cast<double>(count), rounds);
  return 0;
}
