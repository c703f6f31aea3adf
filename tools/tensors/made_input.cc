#include "tools/tensors/made_input.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "core/base/countable.h"
#include "core/base/half.h"
#include "core/base/platform.h"
#include "tools/tensors/sizes.h"

namespace msrt {
namespace {

constexpr int64_t kFewTokens = 100;  // if no table limits them

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool Mentions(const std::string& name, std::string_view word) {
  return name.find(word) != std::string::npos;
}

// Ops whose outputs contain elements of their first input only.
constexpr std::string_view kCopies[] = {"Cast",    "Identity", "Unsqueeze", "Squeeze",
                                        "Reshape", "Flatten",  "Slice",     "Transpose",
                                        "Expand",  "Tile",     "Gather",    "Split"};

int64_t ScalarOf(const Graph& graph, ValueId v) {
  if (v == kNoValue || graph.value(v).constant == nullptr) return INT64_MIN;
  const ConstTensor& t = *graph.value(v).constant;
  if (t.dims.elements() != 1) return INT64_MIN;
  if (t.dtype == DType::kI64) return *reinterpret_cast<const int64_t*>(t.bytes.data());
  if (t.dtype == DType::kI32) return *reinterpret_cast<const int32_t*>(t.bytes.data());
  return INT64_MIN;
}

// Returns the number of rows of the table that a Gather along the first axis reads; 0 if the node
// is not such a Gather or the number is not known.
int64_t TableRows(const Graph& graph, const Node& node) {
  const AttrValue* given = node.attrs.Find("axis");
  const int64_t* axis = given == nullptr ? nullptr : std::get_if<int64_t>(given);
  if (node.op != "Gather" || (axis != nullptr && *axis != 0)) return 0;
  const Type& table = graph.value(node.inputs[0]).type;
  return table.rank_known && table.rank() > 0 && table.dims[0] > 0 ? table.dims[0] : 0;
}

// Returns how many different numbers an input of integers may hold, so that it stays within every
// table that it indexes, by itself, as a copy in another shape or type, or after adding a constant.
// 0: it indexes none.
int64_t TokensOf(const Graph& graph, ValueId input) {
  int64_t tokens = 0;
  std::unordered_map<ValueId, int64_t> copies{{input, 0}};  // to the constant that was added
  for (const Node& node : graph.nodes) {
    const auto added = [&](size_t i) -> const int64_t* {
      const auto it = i < node.inputs.size() ? copies.find(node.inputs[i]) : copies.end();
      return it == copies.end() ? nullptr : &it->second;
    };
    if (const int64_t* offset = added(1); offset != nullptr) {
      const int64_t rows = TableRows(graph, node) - *offset;
      if (rows > 0) tokens = tokens == 0 ? rows : std::min(tokens, rows);
    }
    const bool copy =
        std::find(std::begin(kCopies), std::end(kCopies), node.op) != std::end(kCopies);
    if (const int64_t* offset = added(0); offset != nullptr && copy) {
      for (ValueId v : node.outputs) copies.emplace(v, *offset);
    }
    if (node.op != "Add") continue;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t constant = ScalarOf(graph, node.inputs[1 - i]);
      if (const int64_t* offset = added(i); offset != nullptr && constant >= 0)
        copies.emplace(node.outputs[0], *offset + constant);
    }
  }
  return tokens;
}

// The numbers of an input, by the index of an element.
class Numbers {
 public:
  Numbers(const Graph& graph, ValueId id, const Dims& dims, std::mt19937_64& random,
          const InputHints& hints)
      : input_(graph.value(id)),
        role_(RoleOf(input_)),
        last_(dims.empty() ? 1 : dims.back()),
        random_(random),
        hints_(hints) {
    const int64_t rows = TokensOf(graph, id);
    const bool bytes = input_.type.dtype == DType::kU8 && rows == 0;
    tokens_ = rows > 0 ? rows : bytes ? 256 : kFewTokens;
  }

  int64_t Integer(int64_t i) {
    const int64_t k = last_ == 0 ? 0 : i % last_;
    switch (role_) {
      case InputRole::kMask:
        return Mask(k);
      case InputRole::kPositions:
        return k % tokens_;
      case InputRole::kSegments:
        return std::min<int64_t>(k >= (last_ + 1) / 2, tokens_ - 1);
      case InputRole::kLengths:  // the first sequence is whole, the others are shorter
        return hints_.length == 0 ? Random()
                                  : std::max<int64_t>(1, hints_.length - i % 4 * hints_.length / 4);
      default:
        return Random();
    }
  }

  double Float(int64_t i) {
    return role_ == InputRole::kMask ? static_cast<double>(Integer(i)) : normal_(random_);
  }
  bool Bool(int64_t i) { return role_ == InputRole::kMask ? Integer(i) != 0 : random_() % 2 == 0; }

 private:
  int64_t Random() { return static_cast<int64_t>(random_() % static_cast<uint64_t>(tokens_)); }
  int64_t Mask(int64_t k) const {
    const int64_t hidden = (last_ + 3) / 4 * (last_ > 1 ? 1 : 0);
    if (hints_.masks == MaskPattern::kOnesFirst) return k < last_ - hidden;
    if (hints_.masks == MaskPattern::kZerosFirst) return k >= hidden;
    return hints_.masks == MaskPattern::kOnes;
  }

  const Value& input_;
  const InputRole role_;
  const int64_t last_;
  int64_t tokens_;
  std::mt19937_64& random_;
  const InputHints& hints_;
  std::normal_distribution<float> normal_;
};

template <typename T, typename Draw>
ConstTensor Fill(DType dtype, const Dims& dims, Draw draw) {
  std::vector<T> values(static_cast<size_t>(dims.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(draw(static_cast<int64_t>(i)));
  return ConstTensor::Of<T>(dtype, dims, values);
}

Result<ConstTensor> DrawTensor(DType t, const Dims& dims, Numbers& numbers) {
  const auto integer = [&](int64_t i) { return numbers.Integer(i); };
  const auto real = [&](int64_t i) { return numbers.Float(i); };
  const auto narrow = [&](int64_t i) { return static_cast<float>(numbers.Float(i)); };
  switch (t) {
    case DType::kF64:
      return Fill<double>(t, dims, real);
    case DType::kF32:
      return Fill<float>(t, dims, real);
    case DType::kF16:
      return Fill<Half>(t, dims, narrow);
    case DType::kBF16:
      return Fill<BFloat16>(t, dims, narrow);
    case DType::kI64:
    case DType::kU64:
      return Fill<int64_t>(t, dims, integer);
    case DType::kI32:
    case DType::kU32:
      return Fill<int32_t>(t, dims, integer);
    case DType::kI16:
    case DType::kU16:
      return Fill<int16_t>(t, dims, integer);
    case DType::kI8:
    case DType::kU8:
      return Fill<int8_t>(t, dims, integer);
    case DType::kBool:
      return Fill<uint8_t>(t, dims, [&](int64_t i) { return numbers.Bool(i); });
    default:
      return Unsupported("type ", t, " has no random values: give the input with --input");
  }
}

}  // namespace

InputRole RoleOf(const Value& input) {
  const std::string name = Lower(input.name);
  const bool floats = IsFloat(input.type.dtype);
  if (Mentions(name, "mask")) return InputRole::kMask;
  if (input.type.dtype == DType::kBool)
    return input.type.rank() >= 2 ? InputRole::kMask : InputRole::kData;
  if (floats) return InputRole::kData;
  if (Mentions(name, "len") && input.type.rank_known && input.type.rank() <= 1)
    return InputRole::kLengths;
  if (Mentions(name, "position")) return InputRole::kPositions;
  if (Mentions(name, "token_type") || Mentions(name, "segment")) return InputRole::kSegments;
  return InputRole::kTokens;
}

int64_t SequenceLength(const Graph& graph, const std::vector<Dims>& sizes) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Type& declared = graph.value(graph.inputs[i]).type;
    if (sizes[i].rank() < 2) continue;
    for (int d = 1;
         d < sizes[i].rank() && declared.is_tensor() && declared.rank() == sizes[i].rank(); ++d) {
      if (!IsKnown(declared.dims[d])) return sizes[i][d];
    }
    return sizes[i][1];
  }
  return 0;
}

Result<ConstTensor> RandomInput(const Graph& graph, ValueId id, const Dims& dims,
                                std::mt19937_64& random, const InputHints& hints) {
  const DType dtype = graph.value(id).type.dtype;
  const std::string what = StrCat("input '", graph.value(id).name, "' of dims ", ShapeText(dims));
  if (!IsCountable(dims)) return LimitExceeded(what, " has more elements than a tensor may have");
  // An allocation beyond the machine's memory may succeed and end the process when it is filled.
  const uint64_t bytes = BytesOf(dtype, dims.elements());
  if (bytes > PhysicalMemoryBytes()) return OutOfMemory(bytes, what);
  try {
    Numbers numbers(graph, id, dims, random, hints);
    Result<ConstTensor> drawn = DrawTensor(dtype, dims, numbers);
    if (!drawn.ok()) return std::move(drawn).status().Within(what);
    return drawn;
  } catch (const std::bad_alloc&) {
    return OutOfMemory(bytes, what);
  }
}

}  // namespace msrt
