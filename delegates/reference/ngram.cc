// TfIdfVectorizer: puts the n-grams of the pool into a map and counts those that occur in each row.
#include <map>
#include <vector>

#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

using Gram = std::vector<int64_t>;

// Returns the index of each n-gram whose length is wanted; of two equal ones, the last counts.
std::map<Gram, size_t> GramsOf(const OpView& op) {
  const auto pool = op.Ints("pool_int64s"), begins = op.Ints("ngram_counts");
  std::map<Gram, size_t> grams;
  size_t number = 0;
  for (size_t level = 0; level < begins.size(); ++level) {
    const size_t length = level + 1, end = level + 1 < begins.size()
                                               ? static_cast<size_t>(begins[level + 1])
                                               : pool.size();
    const auto signed_length = static_cast<int64_t>(length);
    const bool wanted =
        signed_length >= op.Int("min_gram_length") && signed_length <= op.Int("max_gram_length");
    for (auto at = static_cast<size_t>(begins[level]); at < end; at += length, ++number) {
      const auto gram = pool.subspan(at, length);
      if (wanted) grams[Gram(gram.begin(), gram.end())] = number;
    }
  }
  return grams;
}

// Returns how often each n-gram occurs in a row, with up to max_skip_count elements skipped between
// neighbours; a 1-gram has no neighbours.
std::vector<double> CountGrams(const OpView& op, const std::map<Gram, size_t>& grams,
                               std::span<const int64_t> row, size_t gram_count) {
  std::vector<double> counts(gram_count, 0.0);
  const auto columns = static_cast<int64_t>(row.size());
  for (int64_t length = op.Int("min_gram_length"); length <= op.Int("max_gram_length"); ++length) {
    for (int64_t skip = 0; skip <= (length == 1 ? 0 : op.Int("max_skip_count")); ++skip) {
      // Longer skips fit even less; checked by division, as a skip may be any number.
      if (length > 1 && skip + 1 > (columns - 1) / (length - 1)) break;
      Gram gram(static_cast<size_t>(length));
      for (int64_t start = 0; start + (length - 1) * (skip + 1) < columns; ++start) {
        for (int64_t i = 0; i < length; ++i)
          gram[static_cast<size_t>(i)] = row[static_cast<size_t>(start + i * (skip + 1))];
        const auto found = grams.find(gram);
        if (found != grams.end()) ++counts[found->second];
      }
    }
  }
  return counts;
}

Status RunTfIdf(const KernelArgs& args) {
  const OpView& op = args.op;
  const TensorView& x = args.inputs[0];
  const Dims& out = args.outputs[0].dims;
  const int64_t rows = x.dims.rank() == 1 ? 1 : x.dims[0], columns = x.dims[x.dims.rank() - 1],
                places = out[out.rank() - 1];
  const auto indexes = op.Ints("ngram_indexes");
  const auto weights = op.Floats("weights");
  const auto mode = op.String("mode");
  const std::map<Gram, size_t> grams = GramsOf(op);
  const std::vector<int64_t> all = IntValues(x.dtype, x.data, x.elements());
  float* y = args.outputs[0].As<float>();
  return ParallelRanges(args.parallel, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto row =
          std::span(all).subspan(static_cast<size_t>(r * columns), static_cast<size_t>(columns));
      const std::vector<double> counts = CountGrams(op, grams, row, indexes.size());
      std::vector<double> sums(static_cast<size_t>(places), 0.0);
      for (size_t i = 0; i < counts.size(); ++i) {
        const double weight = mode == "TF" || weights.empty() ? 1.0 : weights[i];
        sums[static_cast<size_t>(indexes[i])] +=
            weight * (mode == "IDF" && counts[i] > 1 ? 1.0 : counts[i]);
      }
      for (int64_t i = 0; i < places; ++i)
        y[r * places + i] = static_cast<float>(sums[static_cast<size_t>(i)]);
    }
  });
}

constexpr KernelDef kNgramKernels[] = {{"", "TfIdfVectorizer", RunTfIdf}};

}  // namespace

std::span<const KernelDef> NgramKernels() { return kNgramKernels; }

}  // namespace msrt::reference
