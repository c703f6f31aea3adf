// Optimizers: every element is updated by itself in double precision.
#include <algorithm>
#include <array>
#include <cmath>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr std::string_view kDomain = "ai.onnx.preview.training";
constexpr size_t kFirst = 2;

struct Progress {
  double rate;
  int64_t updates;
};

Progress ProgressOf(const KernelArgs& args) {
  Progress progress;
  LoadElements(args.inputs[0].dtype, args.inputs[0].data, 0, 1, 1, &progress.rate);
  progress.updates = IntValues(args.inputs[1].dtype, args.inputs[1].data, 1)[0];
  return progress;
}

// Calls update(state) for every element of every tensor, where state is {x, gradient, memory...}
// and leaves as {x, -, memory...}.
template <size_t kLists, typename Update>
Status UpdateAll(const KernelArgs& args, Update update) {
  const size_t tensors = (args.inputs.size() - kFirst) / kLists;
  for (size_t t = 0; t < tensors; ++t) {
    MSRT_RETURN_IF_ERROR(ForEachBlock(
        args.parallel, args.inputs[kFirst + t].elements(), [&](int64_t first, int64_t count) {
          double blocks[kLists][kBlockElements];
          for (size_t list = 0; list < kLists; ++list) {
            const TensorView& in = args.inputs[kFirst + list * tensors + t];
            LoadElements(in.dtype, in.data, first, 1, count, blocks[list]);
          }
          for (int64_t i = 0; i < count; ++i) {
            std::array<double, kLists> state;
            for (size_t list = 0; list < kLists; ++list) state[list] = blocks[list][i];
            update(&state);
            for (size_t list = 0; list < kLists; ++list) blocks[list][i] = state[list];
          }
          for (size_t list = 0; list < kLists; ++list) {
            if (list == 1) continue;  // the gradient
            const size_t output = (list == 0 ? 0 : list - 1) * tensors + t;
            if (!args.has_output(output)) continue;
            StoreElements(args.outputs[output].dtype, args.outputs[output].data, first, count,
                          blocks[list]);
          }
        }));
  }
  return OkStatus();
}

Status Adagrad(const KernelArgs& args) {
  const auto [rate, updates] = ProgressOf(args);
  const double norm = args.op.Float("norm_coefficient"), epsilon = args.op.Float("epsilon");
  const double decayed = rate / (1 + static_cast<double>(updates) * args.op.Float("decay_factor"));
  return UpdateAll<3>(args, [=](std::array<double, 3>* state) {
    auto& [x, gradient, squares] = *state;
    const double g = norm * x + gradient;
    squares += g * g;
    x -= decayed * g / (std::sqrt(squares) + epsilon);
  });
}

Status Adam(const KernelArgs& args) {
  const auto [rate, updates] = ProgressOf(args);
  const double norm = args.op.Float("norm_coefficient"),
               after = args.op.Float("norm_coefficient_post");
  const double alpha = args.op.Float("alpha"), beta = args.op.Float("beta"),
               epsilon = args.op.Float("epsilon");
  // Corrects the averages, which began at zero and are too small at first.
  const auto count = static_cast<double>(updates);
  const double corrected =
      updates > 0 ? rate * std::sqrt(1 - std::pow(beta, count)) / (1 - std::pow(alpha, count))
                  : rate;
  return UpdateAll<4>(args, [=](std::array<double, 4>* state) {
    auto& [x, gradient, average, squares] = *state;
    const double g = norm * x + gradient;
    average = alpha * average + (1 - alpha) * g;
    squares = beta * squares + (1 - beta) * g * g;
    x = (1 - after) * (x - corrected * average / (std::sqrt(squares) + epsilon));
  });
}

Status Momentum(const KernelArgs& args) {
  const auto [rate, updates] = ProgressOf(args);
  const double norm = args.op.Float("norm_coefficient"), alpha = args.op.Float("alpha");
  const double beta = updates > 0 ? args.op.Float("beta") : 1.0;
  const bool nesterov = args.op.String("mode") == "nesterov";
  return UpdateAll<3>(args, [=, rate = rate](std::array<double, 3>* state) {
    auto& [x, gradient, momentum] = *state;
    const double g = norm * x + gradient;
    momentum = alpha * momentum + beta * g;
    x -= rate * (nesterov ? g + alpha * momentum : momentum);
  });
}

constexpr KernelDef kOptimizerKernels[] = {
    {kDomain, "Adagrad", Adagrad}, {kDomain, "Adam", Adam}, {kDomain, "Momentum", Momentum}};

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> OptimizerInPlace(const OpView& op) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  if (op.domain() != kDomain) return pairs;
  // All lists but the gradients have outputs.
  const size_t gradients = op.input_count() - kFirst - op.output_count();
  for (uint32_t output = 0; output < op.output_count(); ++output) {
    const size_t input = kFirst + output + (output < gradients ? 0 : gradients);
    pairs.emplace_back(static_cast<uint32_t>(input), output);
  }
  return pairs;
}

std::span<const KernelDef> OptimizerKernels() { return kOptimizerKernels; }

}  // namespace msrt::reference
