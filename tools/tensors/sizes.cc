#include "tools/tensors/sizes.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/graph/outline.h"

namespace msrt {
namespace {

constexpr int64_t kGuessedImage = 224, kGuessedExtent = 128;

const NamedType* FindInput(std::span<const NamedType> inputs, const std::string& name) {
  const auto it = std::find_if(inputs.begin(), inputs.end(),
                               [&](const NamedType& i) { return i.name == name; });
  return it == inputs.end() ? nullptr : &*it;
}

// Returns the type of the tensors that a list, perhaps of lists, contains.
const Type& TensorIn(const Type& type) {
  const Type* inner = &type;
  while (inner->kind == TypeKind::kList) inner = inner->element.get();
  return *inner;
}

template <typename List, typename NameOf>
std::string Joined(const List& list, const NameOf& name_of) {
  std::string text;
  for (const auto& item : list) StrAppend(&text, text.empty() ? "" : ", ", name_of(item));
  return text.empty() ? "none" : text;
}

Status UnknownName(std::string_view option, const std::string& name,
                   std::span<const NamedType> inputs, const Module& module) {
  return NotFound(option, " ", name,
                  ": the model has no input or symbol of that name; its inputs are ",
                  Joined(inputs, [](const NamedType& i) { return i.name; }), ", its symbols ",
                  Joined(module.symbols, [](const std::string& s) { return s; }));
}

// Returns the text of one option, for messages.
std::string OptionText(const std::string& name, const Dims& dims) {
  return StrCat(name, "=", ShapeText(dims));
}

// Collects the sizes of symbols, and the option that set each.
class SymbolSizes {
 public:
  SymbolSizes(std::string_view option, const Module& module) : option_(option), module_(module) {}

  Status Set(int64_t symbol, int64_t size, const std::string& said) {
    const auto [it, added] = sizes_.try_emplace(symbol, size, said);
    if (added || it->second.first == size) return OkStatus();
    return InvalidArgument(option_, ": symbol '", module_.symbols[SymbolOf(symbol)], "' is ",
                           it->second.first, " by ", it->second.second, " and ", size, " by ", said,
                           "; give it one size");
  }

  std::map<int64_t, int64_t> Sizes() const {
    std::map<int64_t, int64_t> sizes;
    for (const auto& [symbol, size] : sizes_) sizes[symbol] = size.first;
    return sizes;
  }

 private:
  const std::string_view option_;
  const Module& module_;
  std::map<int64_t, std::pair<int64_t, std::string>> sizes_;
};

// Sets the symbols of an input from the dims given for the whole input.
Status BindInput(std::string_view option, const NamedType& input, const Dims& dims,
                 const Module& module, SymbolSizes* symbols) {
  const auto wrong = [&](const auto&... why) {
    return InvalidArgument(option, " ", OptionText(input.name, dims), ": the model declares ",
                           TypeText(input.type, module), ": ", why...);
  };
  const Type& declared = TensorIn(input.type);
  if (!declared.is_tensor()) return wrong("only tensors have sizes");
  if (!declared.rank_known) return OkStatus();
  if (declared.rank() != dims.rank())
    return wrong("rank must be ", declared.rank(), ", is ", dims.rank());
  for (int d = 0; d < dims.rank(); ++d) {
    const int64_t dim = declared.dims[d];
    if (IsKnown(dim) && dim != dims[d]) return wrong("dim ", d, " must be ", dim, ", is ", dims[d]);
    if (IsSymbol(dim))
      MSRT_RETURN_IF_ERROR(symbols->Set(dim, dims[d], OptionText(input.name, dims)));
  }
  return OkStatus();
}

// Guesses the sizes of dims that are still open. A symbol has the same size in all inputs.
class Guesser {
 public:
  explicit Guesser(const Module& module) : module_(module) {}

  Dims Fill(const Type& type) {
    Dims dims = type.dims;
    for (int d = 0; d < dims.rank(); ++d) {
      if (!IsKnown(dims[d])) dims[d] = SizeOf(dims[d], d, dims.rank());
    }
    return dims;
  }

 private:
  int64_t SizeOf(int64_t dim, int axis, int rank) {
    const int64_t guess = axis == 0 ? 1 : rank == 4 ? kGuessedImage : kGuessedExtent;
    if (!IsSymbol(dim)) return guess;
    if (const auto known = sizes_.find(dim); known != sizes_.end()) return known->second;
    const int64_t size = SumOf(module_.symbols[SymbolOf(dim)], axis, rank).value_or(guess);
    sizes_[dim] = size;
    return size;
  }

  // Returns the value of a name such as "past_length + 1", as exporters call dims that depend on
  // others; nullopt if the name is not such a sum.
  std::optional<int64_t> SumOf(std::string_view name, int axis, int rank) {
    if (name.find('+') == std::string_view::npos) return std::nullopt;
    int64_t sum = 0;
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('+', begin), name.size());
      std::string_view part = name.substr(begin, end - begin);
      part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
      part = part.substr(0, part.find_last_not_of(' ') + 1);
      int64_t number = 0;
      const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
      const auto symbol = std::find(module_.symbols.begin(), module_.symbols.end(), part);
      if (error == std::errc() && rest == part.data() + part.size()) sum += number;
      else if (symbol != module_.symbols.end() && part != name)
        sum +=
            SizeOf(SymbolDim(static_cast<uint32_t>(symbol - module_.symbols.begin())), axis, rank);
      else return std::nullopt;
      begin = end + 1;
    }
    return sum;
  }

  const Module& module_;
  std::map<int64_t, int64_t> sizes_;
};

}  // namespace

Result<Dims> ParseShape(const std::string& text) {
  Dims dims;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    int64_t dim = -1;
    const auto [next, error] = std::from_chars(p, end, dim);
    if (error != std::errc() || dim < 0 || dims.rank() == kMaxRank ||
        (next != end && *next != 'x')) {
      return InvalidArgument("shape '", text, "' must be like 1x3x224x224, with at most ", kMaxRank,
                             " dims");
    }
    dims.push_back(dim);
    p = next == end ? end : next + 1;
  }
  return dims;
}

std::string ShapeText(const Dims& dims) {
  std::string out;
  for (int i = 0; i < dims.rank(); ++i) StrAppend(&out, i == 0 ? "" : "x", dims[i]);
  return dims.empty() ? "scalar" : out;
}

Result<GivenSizes> ParseSizes(std::string_view option, std::span<const std::string> texts) {
  GivenSizes sizes;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    auto dims = equals == std::string::npos ? Result<Dims>(InvalidArgument(""))
                                            : ParseShape(text.substr(equals + 1));
    if (!dims.ok() || equals == 0)
      return InvalidArgument(option, " ", text, ": must look like NAME=1x3x224x224 or SYMBOL=8");
    const auto [it, added] = sizes.try_emplace(text.substr(0, equals), *dims);
    if (!added && !(it->second == *dims)) {
      return InvalidArgument(option, ": '", it->first, "' is ", ShapeText(it->second), " and ",
                             ShapeText(*dims), "; give it one size");
    }
  }
  return sizes;
}

Result<BoundSizes> BoundSizes::Bind(std::string_view option, const GivenSizes& given,
                                    std::span<const NamedType> inputs, const Module& module) {
  SymbolSizes symbols(option, module);
  BoundSizes bound;
  for (const auto& [name, dims] : given) {
    if (const NamedType* input = FindInput(inputs, name); input != nullptr) {
      MSRT_RETURN_IF_ERROR(BindInput(option, *input, dims, module, &symbols));
      bound.inputs_[name] = dims;
      continue;
    }
    const auto symbol = std::find(module.symbols.begin(), module.symbols.end(), name);
    if (symbol == module.symbols.end()) return UnknownName(option, name, inputs, module);
    if (dims.rank() != 1)
      return InvalidArgument(option, " ", OptionText(name, dims), ": '", name,
                             "' is a symbol, which has one size");
    const int64_t dim = SymbolDim(static_cast<uint32_t>(symbol - module.symbols.begin()));
    MSRT_RETURN_IF_ERROR(symbols.Set(dim, dims[0], OptionText(name, dims)));
  }
  bound.symbols_ = symbols.Sizes();
  return bound;
}

Type BoundSizes::OfInput(const std::string& name, Type type) const {
  const auto given = inputs_.find(name);
  if (given == inputs_.end() || !type.is_tensor()) return Apply(std::move(type));
  return Type::Tensor(type.dtype, given->second);
}

Type BoundSizes::Apply(Type type) const {
  if (!type.is_tensor()) return type;
  for (int64_t& dim : type.dims) {
    if (const auto size = symbols_.find(dim); size != symbols_.end()) dim = size->second;
  }
  return type;
}

std::vector<NamedType> InputsOf(const Module& module) {
  std::vector<NamedType> inputs;
  for (ValueId v : module.main().inputs)
    inputs.push_back({module.main().value(v).name, module.main().value(v).type});
  return inputs;
}

Result<std::vector<Dims>> SizesToRun(std::string_view option, const GivenSizes& given,
                                     const Module& module) {
  const std::vector<NamedType> inputs = InputsOf(module);
  MSRT_ASSIGN_OR_RETURN(const BoundSizes bound, BoundSizes::Bind(option, given, inputs, module));
  Guesser guesser(module);
  std::vector<Dims> sizes;
  for (const NamedType& input : inputs) {
    const Type type = bound.OfInput(input.name, TensorIn(input.type));
    if (!type.rank_known)
      return InvalidArgument("input '", input.name, "' has no declared rank: give ", option, " ",
                             input.name, "=...");
    sizes.push_back(guesser.Fill(type));
  }
  return sizes;
}

}  // namespace msrt
