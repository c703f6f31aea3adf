// TfIdfVectorizer: counts known sequences of numbers (n-grams) in a row, as a vector with an
// element for each of them.
#include <algorithm>

#include "ops/families.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// The pool holds all 1-grams, then all 2-grams and so on; ngram_counts says where each length
// begins. Returns the number of n-grams.
Result<int64_t> NgramsInPool(std::span<const int64_t> begins, int64_t pool) {
  int64_t grams = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1,
                  end = i + 1 < begins.size() ? begins[i + 1] : pool;
    if (begins[i] > end || (end - begins[i]) % length != 0) {
      return InvalidModel("ngram_counts[", i, "] = ", begins[i], ": from there to ", end,
                          " must be a whole number of ", length, "-grams");
    }
    grams += (end - begins[i]) / length;
  }
  return grams;
}

Status CheckPool(const OpView& op) {
  const auto pool = op.Ints("pool_int64s"), begins = op.Ints("ngram_counts"),
             indexes = op.Ints("ngram_indexes");
  const int64_t shortest = op.Int("min_gram_length"), longest = op.Int("max_gram_length");
  if (shortest > longest)
    return InvalidModel("min_gram_length = ", shortest,
                        ", must be at most max_gram_length = ", longest);
  if (longest > static_cast<int64_t>(begins.size())) {
    return InvalidModel("max_gram_length = ", longest, ", but ngram_counts has only ",
                        begins.size(), " lengths");
  }
  MSRT_ASSIGN_OR_RETURN(const int64_t grams,
                        NgramsInPool(begins, static_cast<int64_t>(pool.size())));
  if (indexes.empty() || grams != static_cast<int64_t>(indexes.size())) {
    return InvalidModel("ngram_indexes has ", indexes.size(),
                        " elements, must have one for each of the ", grams, " n-grams of the pool");
  }
  const size_t weights = op.Floats("weights").size();
  if (weights != 0 && weights != indexes.size()) {
    return InvalidModel("weights has ", weights, " elements, must have one for each of the ",
                        indexes.size(), " n-grams");
  }
  return OkStatus();
}

Status InferTfIdf(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckPool(c.op()));
  const auto indexes = c.op().Ints("ngram_indexes");
  const int64_t places = *std::max_element(indexes.begin(), indexes.end()) + 1;
  if (!c.input(0).rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(DType::kF32));
    return OkStatus();
  }
  const Dims& x = c.dims(0);
  if (x.rank() != 1 && x.rank() != 2)
    return InvalidModel("input 0 has shape ", x, ", must have rank 1 or 2");
  c.SetOutput(0, DType::kF32, x.rank() == 1 ? Dims{places} : Dims{x[0], places});
  return OkStatus();
}

// Rows are independent.
Status TfIdfAxes(const OpView& op, IterationSpace* space) {
  if (op.input(0).rank() != 2) return Unsupported("one row cannot be cut");
  space->Add(AxisKind::kParallel, op.input(0).dims[0]);
  return OkStatus();
}

Status TfIdfOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  inputs[0] = Box::Whole(op.input(0).dims);
  inputs[0][0] = box[0];
  return OkStatus();
}

constexpr SpaceDef kTfIdfSpace{
    .axes = TfIdfAxes, .operands = TfIdfOperands, .results = OutputBeginsWithBox};

constexpr int kMaxGrams = 1 << 24, kMaxGramLength = 64;
constexpr std::string_view kCountModes[] = {"TF", "IDF", "TFIDF"};
constexpr AttrDef kTfIdfAttrs[] = {
    {.name = "max_gram_length", .required = true, .min_int = 1, .max_int = kMaxGramLength},
    {.name = "max_skip_count", .required = true, .min_int = 0},
    {.name = "min_gram_length", .required = true, .min_int = 1, .max_int = kMaxGramLength},
    {.name = "mode", .kind = AttrKind::kString, .required = true, .choices = kCountModes},
    {.name = "ngram_counts",
     .kind = AttrKind::kInts,
     .required = true,
     .min_int = 0,
     .max_count = kMaxGramLength},
    {.name = "ngram_indexes",
     .kind = AttrKind::kInts,
     .required = true,
     .min_int = 0,
     .max_int = 2147483647,
     .max_count = kMaxGrams},
    {.name = "pool_int64s", .kind = AttrKind::kInts, .required = true, .max_count = kMaxGrams},
    {.name = "weights", .kind = AttrKind::kFloats, .max_count = kMaxGrams},
};
constexpr ParamDef kTfIdfInputs[] = {{.name = "X", .types = kIndexTypes}};

constexpr OpDef kNgramOps[] = {
    {.name = "TfIdfVectorizer",
     .attrs = kTfIdfAttrs,
     .inputs = kTfIdfInputs,
     .infer = InferTfIdf,
     .space = &kTfIdfSpace},
};

}  // namespace

std::span<const OpDef> NgramOps() { return kNgramOps; }

}  // namespace msrt
