// Every op case as a MindIR file of one node, for tests/bench/mindir_ops.py:
//   mindir_case_export FOLDER
// writes FOLDER/<case>.mindir, and prints each refused case with its reason, separated by a tab.
#include <iostream>

#include "ops/validate.h"
#include "tests/conformance/case_module.h"
#include "tools/msconvert/mindir/export.h"

namespace msrt {
namespace {

int Main(const std::string& folder) {
  for (const testing::OpCase& c : testing::AllOpCases()) {
    testing::CaseModule made = testing::ModuleOf(c, false);
    Status status = Validate(&made.module);
    if (status.ok()) {
      const auto refused = mindir_export::WriteFile(
          made.module, StrCat(folder, "/", c.name, ".mindir"), DefaultIo());
      if (!refused.ok()) status = refused.status();
      else if (!refused->empty()) status = Unsupported(refused->front().reason);
    }
    if (!status.ok()) std::cout << c.name << "\t" << status.message() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  if (argc == 2) return msrt::Main(argv[1]);
  std::cerr << "usage: mindir_case_export FOLDER\n";
  return 2;
}
