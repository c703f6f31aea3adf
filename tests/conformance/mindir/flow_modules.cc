// Control flow that ONNX cannot express, as .msrt files for export_test.py:
//   mindir_flow_modules FOLDER
// All inputs are whole numbers of rank 0.
#include <iostream>

#include "core/model/write.h"
#include "ops/validate.h"
#include "tests/conformance/module_builder.h"

namespace msrt {
namespace {

using testing::kFlag;
using testing::kNumber;
using testing::ModuleBuilder;

Module Choices() {
  ModuleBuilder m(4);
  const ValueId index = m.Input(0), x = m.Input(0);
  m.Output(0, m.Control(0, "msrt", "SwitchN", {index, x},
                        {{"branches", std::vector<GraphRef>{{1}, {2}, {3}}}}, {kNumber})[0]);
  for (const uint32_t g : {1u, 2u, 3u}) m.Output(g, m.Op(g, "Mul", {m.Input(g), m.Number(g, g)}));
  return m.module;
}

// in0 < 2 ? 1 : in0 * f(in0 - 1)
Module Factorial() {
  ModuleBuilder m(4);
  m.Output(0, m.Call(0, 1, {m.Input(0)}));
  const ValueId n = m.Input(1);
  m.Output(1, m.If(1, m.Op(1, "Less", {n, m.Number(1, 2)}), {n}, 2, 3));
  m.Input(2);
  m.Output(2, m.Number(2, 1));
  const ValueId k = m.Input(3);
  m.Output(3, m.Op(3, "Mul", {k, m.Call(3, 1, {m.Op(3, "Sub", {k, m.Number(3, 1)})})}));
  return m.module;
}

// A function that has captured one number, called with another.
Module Closure() {
  ModuleBuilder m(2);
  const ValueId a = m.Input(0), b = m.Input(0);
  const Type function = Type::Function({kNumber}, {kNumber});
  const ValueId bound =
      m.Control(0, "msrt", "Partial", {a}, {{"graph", GraphRef{1}}}, {function})[0];
  m.Output(0, m.Control(0, "msrt", "Call", {bound, b}, {}, {kNumber})[0]);
  const ValueId x = m.Input(1), y = m.Input(1);
  m.Output(1, m.Op(1, "Sub", {m.Op(1, "Mul", {x, m.Number(1, 10)}), y}));
  return m.module;
}

ValueId Read(ModuleBuilder& m, uint32_t g) {
  return m.Control(g, "msrt", "StateRead", {},
                   {{"slot", int64_t{0}}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}},
                   {kNumber})[0];
}
void Write(ModuleBuilder& m, uint32_t g, ValueId value) {
  m.Control(g, "msrt", "StateWrite", {value}, {{"slot", int64_t{0}}}, {});
}

// A loop adds to a state, in two ways by turns; returns the state before and after.
Module StateInLoop() {
  ModuleBuilder m(4);
  const int64_t five = 5;
  m.module.states.push_back(
      {"count", kNumber, ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&five, 1))});
  const ValueId trips = m.Input(0);
  const ValueId before = Read(m, 0);
  const ValueId sum = m.Control(0, "", "Loop", {trips, kNoValue, m.Number(0, 0)},
                                {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kNumber})[0];
  m.Output(0, before);
  m.Output(0, Read(m, 0));
  m.Output(0, sum);
  const ValueId i = m.Input(1), go_on = m.Input(1, kFlag), carried = m.Input(1);
  const ValueId odd = m.Op(1, "Equal", {m.Op(1, "Mod", {i, m.Number(1, 2)}), m.Number(1, 1)});
  const ValueId added = m.If(1, odd, {i}, 2, 3);
  m.Output(1, go_on);
  m.Output(1, m.Op(1, "Add", {carried, added}));
  for (const uint32_t g : {2u, 3u}) {
    const ValueId old = Read(m, g);
    const ValueId fresh =
        m.Op(g, g == 2 ? "Add" : "Sub", {old, m.Op(g, "Mul", {m.Input(g), m.Number(g, 3)})});
    Write(m, g, fresh);
    m.Output(g, fresh);
  }
  return m.module;
}

int Main(const std::string& folder) {
  const std::pair<const char*, Module> modules[] = {{"choices", Choices()},
                                                    {"factorial", Factorial()},
                                                    {"closure", Closure()},
                                                    {"state_in_loop", StateInLoop()},
                                                    {"counting", testing::CountingLoop()}};
  for (auto [name, module] : modules) {
    Status status = Validate(&module);
    if (status.ok()) status = WriteModel(module, StrCat(folder, "/", name, ".msrt"), DefaultIo());
    if (!status.ok()) {
      std::cerr << name << ": " << status.message() << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  if (argc == 2) return msrt::Main(argv[1]);
  std::cerr << "usage: mindir_flow_modules FOLDER\n";
  return 2;
}
