// Everything that stands in the way of a conversion, collected so that a user sees all of it at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msrt::onnx_import {

// One kind of trouble with one op; nodes with the same trouble share an entry.
struct Problem {
  std::string op;                  // "Conv", "com.microsoft.FusedConv"; empty: the file as a whole
  int64_t opset = 0;               // that the model imports for the op's domain
  std::string reason;              // "attribute 'layout' = 1 is not supported"
  std::string cure;                // what the user can do
  std::vector<std::string> nodes;  // names of the first few
  size_t count = 0;
};

class Problems {
 public:
  // Without a cure it gets the one that its reason calls for (cures.h).
  void Add(std::string_view op, int64_t opset, std::string_view node, std::string reason, std::string cure = {});
  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const { return list_; }

  // A table for people: op, how often, where, why, what to do.
  std::string Text() const;
  // {"problems": [{"op", "opset", "count", "nodes", "attribute", "reason", "cure"}]}.
  std::string Json() const;

 private:
  static constexpr size_t kNamedNodes = 8;  // beyond these only the count grows
  static constexpr size_t kMostKinds = 100;
  std::vector<Problem> list_;
  size_t left_out_ = 0;  // nodes with further kinds
};

}  // namespace msrt::onnx_import
