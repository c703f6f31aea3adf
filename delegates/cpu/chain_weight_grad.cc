// msrt.ConvWeightGrad in channels-last, each weight one chain of fused multiply-adds ("fma"): it
// begins with 0 and adds, image by image and there output by output in row-major order, the input
// that the weight multiplies times the gradient; inputs outside the image are left out. A task is a
// panel of output channels with a block of input channels. Its gradients are packed part by part,
// so that they stay in the cache while kernel positions and input channels go by.
#include <algorithm>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/chains.h"
#include "delegates/cpu/rule.h"
#include "ops/conv.h"
#include "ops/window.h"

namespace msrt::cpu {
namespace {

constexpr size_t kImages = 0, kGradient = 1;

std::string QueryWeightChains(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView &op = *node.op, &typical = *node.typical;
  if (op.input(kImages).dtype != DType::kF32)
    return StrCat("elements of type ", op.input(kImages).dtype);
  if (op.constant(kImages) != nullptr || op.constant(kGradient) != nullptr)
    return "a constant operand";
  const Dims& w = typical.output(0).dims;
  const Dims& grad = typical.input(kGradient).dims;
  const double efficiency = ChainEfficiency(
      grad[0] * grad.product(2, grad.rank()), w[0] / std::max<int64_t>(1, op.Int("group")));
  Candidate c = PlainCandidate(node, ChainSeconds(node, efficiency), "chains");
  c.input_layouts[kImages] = c.input_layouts[kGradient] = Layout::kChannelsLast;
  c.arithmetic = MSRT_ARITHMETIC_FMA;
  candidates->push_back(std::move(c));
  return {};
}

// The outputs of an axis that read inside the input at kernel position `tap`.
Interval OutputsInside(const WindowAxis& a, int64_t tap) {
  const int64_t first = a.start(0) + a.dilation * tap;
  const int64_t begin = first >= 0 ? 0 : CeilDiv(-first, a.stride);
  return {begin, std::min(a.out, first >= a.in ? 0 : CeilDiv(a.in - first, a.stride))};
}

class BoundWeightChains final : public BoundKernel {
 public:
  BoundWeightChains(const OpView& op, const Windows& windows)
      : channels_(ConvChannelsOf(op, op.input(kImages).dims, op.output(0).dims, false)),
        inputs_(op.input(kImages).dims[1]) {
    // Rows are the last axis, whatever the rank.
    for (int i = 0; i < windows.rank; ++i)
      axis_[kMaxSpace - windows.rank + i] = windows.axis[static_cast<size_t>(i)];
    taps_ = axis_[0].kernel * axis_[1].kernel * axis_[2].kernel;
    lines_ = op.input(kImages).dims[0] * axis_[0].out * axis_[1].out;
  }

  Status Run(const RunArgs& args) override {
    const int64_t width = LoopsHere().chain_panel;
    std::vector<Task> tasks;
    for (int64_t m = 0; m < channels_.outputs;) {
      const int64_t group = channels_.group_of(m);
      const int64_t end =
          std::min({m + width, channels_.outputs,
                    (group + 1) * channels_.group_outputs - channels_.first_output});
      for (int64_t c = 0; c < channels_.group_inputs; c += kInputBlock)
        tasks.push_back({group,
                         {m, end},
                         {c, std::min(c + kInputBlock, channels_.group_inputs)}});
      m = end;
    }
    const Tensors t{args.inputs[kImages].As<float>(), args.inputs[kGradient].As<float>(),
                    args.outputs[0].As<float>()};
    return ParallelRanges(
        args.parallel, static_cast<int64_t>(tasks.size()), 1, [&](int64_t begin, int64_t end) {
          Scratch scratch;
          scratch.gradients.resize(
              static_cast<size_t>(std::min(kMaxChainTerms, lines_ * axis_[2].out) * width));
          scratch.weights.resize(
              static_cast<size_t>(std::min(kInputBlock, channels_.group_inputs) * taps_ * width));
          for (int64_t i = begin; i < end; ++i)
            RunTask(t, tasks[static_cast<size_t>(i)], &scratch);
        });
  }

 private:
  // Input channels of a task: their sums stay in the second-level cache.
  static constexpr int64_t kInputBlock = 96;

  struct Tensors {
    const float *images, *gradient;
    float* weights;
  };
  struct Task {
    int64_t group;
    Interval outputs, inputs;  // inputs: of the group
  };
  struct Scratch {
    std::vector<float> gradients;  // rows of a panel, one for each term of a part
    std::vector<float> weights;    // [input][tap][panel]
    std::vector<ChainRun> runs;
  };

  void RunTask(const Tensors& t, const Task& task, Scratch* scratch) const {
    const int64_t width = LoopsHere().chain_panel, terms = lines_ * axis_[2].out;
    const float* const images = t.images + task.group * channels_.group_inputs + task.inputs.begin;
    int64_t first = 0;
    do {  // also without terms: sums begin with 0
      const Interval part{first, std::min(first + kMaxChainTerms, terms)};
      PackGradients(t.gradient, task.outputs, part, scratch->gradients.data());
      for (int64_t tap = 0; tap < taps_; ++tap) {
        FindRuns(tap, part, &scratch->runs);
        LoopsHere().weight_chains({.x = images,
                                   .x_step = axis_[2].stride * inputs_,
                                   .w = scratch->gradients.data(),
                                   .runs = scratch->runs.data(),
                                   .run_count = static_cast<int64_t>(scratch->runs.size()),
                                   .y = scratch->weights.data() + tap * width,
                                   .y_step = taps_ * width,
                                   .rows = task.inputs.size(),
                                   .begins = first == 0});
      }
      first = part.end;
    } while (first < terms);
    const int64_t row = channels_.group_inputs * taps_;
    LoopsHere().transpose[2](scratch->weights.data(), width,
                             t.weights + task.outputs.begin * row + task.inputs.begin * taps_, row,
                             task.inputs.size() * taps_, task.outputs.size());
  }

  // Unused columns are zeros.
  void PackGradients(const float* gradient, Interval outputs, Interval part, float* to) const {
    const int64_t width = LoopsHere().chain_panel, used = outputs.size();
    const float* from = gradient + part.begin * channels_.outputs + outputs.begin;
    for (int64_t i = part.begin; i < part.end; ++i, from += channels_.outputs, to += width) {
      std::copy_n(from, used, to);
      std::fill(to + used, to + width, 0.0f);
    }
  }

  // The terms of `part` at a kernel position. Lines that follow each other in both operands are one
  // run.
  void FindRuns(int64_t tap, Interval part, std::vector<ChainRun>* runs) const {
    runs->clear();
    const WindowAxis &depth = axis_[0], &height = axis_[1], &row = axis_[2];
    const int64_t k = tap % row.kernel, j = tap / row.kernel % height.kernel,
                  i = tap / (row.kernel * height.kernel);
    const Interval columns = OutputsInside(row, k), rows = OutputsInside(height, j),
                   planes = OutputsInside(depth, i);
    if (columns.size() <= 0 || part.size() <= 0) return;
    const int64_t step = row.stride * inputs_;
    for (int64_t line = part.begin / row.out; line * row.out < part.end; ++line) {
      const int64_t y = line % height.out, z = line / height.out % depth.out,
                    image = line / (height.out * depth.out);
      if (y < rows.begin || y >= rows.end || z < planes.begin || z >= planes.end) continue;
      const int64_t begin = std::max(columns.begin, part.begin - line * row.out),
                    end = std::min(columns.end, part.end - line * row.out);
      if (begin >= end) continue;
      const int64_t in_line =
          (image * depth.in + depth.start(z) + i * depth.dilation) * height.in + height.start(y) +
          j * height.dilation;
      const ChainRun run{(in_line * row.in + row.start(begin) + k * row.dilation) * inputs_,
                         line * row.out + begin - part.begin, end - begin};
      if (!runs->empty()) {
        ChainRun& last = runs->back();
        if (last.w_row + last.count == run.w_row &&
            last.x_offset + last.count * step == run.x_offset) {
          last.count += run.count;
          continue;
        }
      }
      runs->push_back(run);
    }
  }

  const ConvChannels channels_;
  const int64_t inputs_;  // channels of the images
  WindowAxis axis_[kMaxSpace];
  int64_t taps_ = 1;
  int64_t lines_ = 0;  // of outputs, of all images
};

Result<std::unique_ptr<BoundKernel>> BindWeightChains(const OpView& op, const Candidate&) {
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        WindowsOf(op, op.input(kImages).dims, op.Ints("kernel_shape")));
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundWeightChains>(op, windows));
}

constexpr Rule kChainWeightGradRules[] = {{.domain = "msrt",
                                           .op = "ConvWeightGrad",
                                           .query = QueryWeightChains,
                                           .bind = BindWeightChains,
                                           .takes_pieces = true}};

}  // namespace

std::span<const Rule> ChainWeightGradRules() { return kChainWeightGradRules; }

}  // namespace msrt::cpu
