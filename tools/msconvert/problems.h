// Everything that blocks a conversion, collected so that a user sees all of it at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msrt {

// One kind of problem with one op; nodes with the same problem share an entry.
struct Problem {
  std::string op;      // "Conv", "com.microsoft.FusedConv"; empty: the file as a whole
  int64_t opset = 0;   // that an ONNX model imports for the op's domain; 0: ops have no versions
  std::string reason;  // "attribute 'layout' = 1 is not supported"
  std::string cure;    // what the user can do
  std::vector<std::string> nodes;  // names of the first few
  size_t count = 0;
};

class Problems {
 public:
  using CureFn = std::string (*)(std::string_view reason);
  // `cure_for` returns what a user of that kind of model can do if the importer does not say it.
  explicit Problems(CureFn cure_for) : cure_for_(cure_for) {}

  void Add(std::string_view op, int64_t opset, std::string_view node, std::string reason,
           std::string cure = {});
  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const { return list_; }

  // Returns a readable table: op, how often, where, why, what to do.
  std::string Text() const;
  // {"problems": [{"op", "opset", "count", "nodes", "attribute", "reason", "cure"}]}.
  std::string Json() const;

 private:
  static constexpr size_t kNamedNodes = 8;  // further nodes are only counted
  static constexpr size_t kMaxKinds = 100;
  CureFn cure_for_;
  std::vector<Problem> list_;
  size_t left_out_ = 0;  // nodes with further kinds of problems
};

}  // namespace msrt
