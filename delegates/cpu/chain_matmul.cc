// MatMul, Gemm and msrt.FusedMatMul, each result one chain of fused multiply-adds over the depth
// (MSRT_ARITHMETIC_FMA). Columns of B are packed into panels: when the model is compiled if B is
// constant, once for each version if it is a parameter, otherwise in each run.
#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "delegates/cpu/chains.h"
#include "delegates/cpu/rule.h"
#include "delegates/sdk/packed_form.h"

namespace msrt::cpu {
namespace {

using sdk::CompileContext;
using sdk::Kernel;

constexpr size_t kA = 0, kB = 1, kC = 2, kZ = 3;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A stack of matrices `rows` x `columns`; stored transposed where `transposed` is set.
struct Matrices {
  Dims batch;
  int64_t rows = 1, columns = 1;
  bool transposed = false;

  int64_t count() const { return batch.elements(); }
  int64_t elements() const { return rows * columns; }
};
// A vector is one row of A or one column of B.
Matrices MatricesOf(const Dims& dims, bool transposed, bool is_a) {
  if (dims.rank() == 1) return is_a ? Matrices{{}, 1, dims[0]} : Matrices{{}, dims[0], 1};
  const int at = dims.rank() - 2;
  Matrices m{Dims(std::span<const int64_t>(dims).first(static_cast<size_t>(at))), dims[at],
             dims[at + 1], transposed};
  if (transposed) std::swap(m.rows, m.columns);
  return m;
}
Matrices AOf(const OpView& op) {
  return MatricesOf(op.input(kA).dims, op.Int("transA") != 0, true);
}
Matrices BOf(const OpView& op) {
  return MatricesOf(op.input(kB).dims, op.Int("transB") != 0, false);
}

int64_t PanelsOf(const Matrices& b) { return CeilDiv(b.columns, LoopsHere().chain_panel); }
int64_t PackedFloats(const Matrices& b) {
  return b.count() * PanelsOf(b) * b.rows * LoopsHere().chain_panel;
}

// A panel has a row of chain_panel columns for each row of the matrix.
void PackPanel(const Matrices& b, const float* from, int64_t panel, float* to) {
  const int64_t width = LoopsHere().chain_panel, first = panel * width,
                columns = std::min(width, b.columns - first);
  if (columns < width) std::fill_n(to, b.rows * width, 0.0f);
  if (b.transposed) {
    LoopsHere().transpose[2](from + first * b.rows, b.rows, to, width, columns, b.rows);
    return;
  }
  for (int64_t row = 0; row < b.rows; ++row)
    std::copy_n(from + row * b.columns + first, columns, to + row * width);
}
Status PackMatrices(const Matrices& b, const float* from, ParallelFor& parallel, float* to) {
  const int64_t panels = PanelsOf(b), step = b.rows * LoopsHere().chain_panel;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, step));
  return ParallelRanges(parallel, b.count() * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      PackPanel(b, from + i / panels * b.elements(), i % panels, to + i * step);
  });
}

// The number of the matrix that a batch of the product reads from an operand that broadcasts.
int64_t MatrixOf(int64_t index, const Dims& product, const Dims& operand) {
  int64_t matrix = 0, step = 1;
  for (int i = product.rank() - 1, o = operand.rank() - 1; o >= 0; --i, --o) {
    if (operand[o] != 1) matrix += index % product[i] * step;
    step *= operand[o];
    index /= product[i];
  }
  return matrix;
}

sdk::Packing PackingOf(const Matrices& b) {
  const Loops& loops = LoopsHere();
  return {b.transposed ? "chains of transposed" : "chains of rows", loops.name,
          static_cast<uint32_t>(loops.chain_panel), 1};
}

std::string QueryProduct(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.output(0).dtype != DType::kF32) return StrCat("elements of type ", op.output(0).dtype);
  const bool packed = op.constant(kB) != nullptr || node.parameters[kB] != 0;
  const Matrices b = BOf(*node.typical);
  const double efficiency = ChainEfficiency(b.rows, b.columns) * (packed ? 1 : 0.7);
  const double seconds = ChainSeconds(node, efficiency);
  Candidate c = PlainCandidate(node, seconds, packed ? "chains, packed" : "chains");
  c.arithmetic = ChainArithmetic(op);
  candidates->push_back(std::move(c));
  return {};
}

class BoundMatMul final : public BoundKernel {
 public:
  // `packed`: B, if it is constant. `parameter`: B is a parameter of the model.
  BoundMatMul(const OpView& op, const float* packed, bool parameter)
      : finish_(op),
        a_(AOf(op)),
        b_(BOf(op)),
        packed_(packed),
        parameter_(parameter),
        packing_(PackingOf(b_)),
        alpha_(op.op() == "MatMul" ? 1.0f : static_cast<float>(op.Float("alpha"))),
        beta_(op.op() == "Gemm" ? static_cast<float>(op.Float("beta")) : 1.0f),
        out_(op.output(0).dims),
        has_c_(op.has_input(kC) && beta_ != 0),
        has_z_(op.has_input(kZ)) {
    const int vectors = (op.input(kA).rank() == 1) + (op.input(kB).rank() == 1);
    batch_ =
        Dims(std::span<const int64_t>(out_).first(static_cast<size_t>(out_.rank() - 2 + vectors)));
    batches_ = batch_.elements();
    rows_ = a_.rows;
    // One B for all: the rows of all A are those of one matrix.
    if (b_.count() == 1 && a_.count() == batches_) rows_ *= batches_, batches_ = 1;
    if (has_c_) c_ = Extended(op.input(kC).dims, out_.rank());
    row_of_c_ = has_c_ && c_.elements() == b_.columns && !c_.empty() && c_.back() == b_.columns;
    plain_ = alpha_ == 1 && (!has_c_ || (row_of_c_ && beta_ == 1));
    block_rows_ = std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, a_.columns), 64, 512);
  }

  Status Run(const RunArgs& args) override {
    if (args.outputs[0].elements() == 0) return OkStatus();
    const float* packed = packed_;
    if (parameter_ && packed == nullptr) {
      MSRT_ASSIGN_OR_RETURN(packed, PackedParameter(args));
    }
    const size_t packed_floats = packed == nullptr ? static_cast<size_t>(PackedFloats(b_)) : 0;
    const size_t a_floats =
        a_.transposed ? static_cast<size_t>(a_.count() * a_.elements()) : size_t{0};
    Tensors t{args.inputs[kA].As<float>(), packed, has_c_ ? args.inputs[kC].As<float>() : nullptr,
              has_z_ ? args.inputs[kZ].As<float>() : nullptr, args.outputs[0].As<float>()};
    if (packed_floats + a_floats != 0) {
      MSRT_ASSIGN_OR_RETURN(void* memory,
                            args.scratch.Get((packed_floats + a_floats) * sizeof(float)));
      auto* scratch = static_cast<float*>(memory);
      if (packed == nullptr) {
        MSRT_RETURN_IF_ERROR(PackMatrices(b_, args.inputs[kB].As<float>(), args.parallel, scratch));
        t.b = scratch;
      }
      if (a_.transposed) {
        for (int64_t m = 0; m < a_.count(); ++m) {
          LoopsHere().transpose[2](t.a + m * a_.elements(), a_.rows,
                                   scratch + packed_floats + m * a_.elements(), a_.columns,
                                   a_.columns, a_.rows);
        }
        t.a = scratch + packed_floats;
      }
    }
    const int64_t row_blocks = CeilDiv(rows_, block_rows_), panels = PanelsOf(b_);
    const int64_t tasks = batches_ * row_blocks * panels;
    const double terms = static_cast<double>(args.outputs[0].elements()) *
                         static_cast<double>(std::max<int64_t>(1, a_.columns));
    const auto grain = static_cast<int64_t>(1 + kGrainTerms * static_cast<double>(tasks) / terms);
    return ParallelRanges(args.parallel, tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = task / panels, row = block % row_blocks * block_rows_;
        RunPanel(t, block / row_blocks, {row, std::min(row + block_rows_, rows_)}, task % panels);
      }
    });
  }

 private:
  static constexpr int64_t kBlockFloats = 1 << 16;
  static constexpr double kGrainTerms = 100'000;

  struct Tensors {
    const float *a, *b, *c, *z;
    float* y;
  };

  Result<const float*> PackedParameter(const RunArgs& args) const {
    const size_t bytes = static_cast<size_t>(PackedFloats(b_)) * sizeof(float);
    MSRT_ASSIGN_OR_RETURN(const void* const form,
                          args.forms.Get(kB, packing_, bytes, [&](std::byte* to) {
                            return PackMatrices(b_, args.inputs[kB].As<float>(), args.parallel,
                                                reinterpret_cast<float*>(to));
                          }));
    return static_cast<const float*>(form);
  }

  void RunPanel(const Tensors& t, int64_t batch, Interval rows, int64_t panel) const {
    const int64_t width = LoopsHere().chain_panel, depth = a_.columns, first = panel * width;
    const int64_t columns = std::min(width, b_.columns - first);
    const bool one = batches_ == 1;
    const int64_t a_matrix = one ? 0 : MatrixOf(batch, batch_, a_.batch),
                  b_matrix = one ? 0 : MatrixOf(batch, batch_, b_.batch);
    const int64_t at = (batch * rows_ + rows.begin) * b_.columns + first;
    ChainRun run{};
    ChainTile tile{.x = t.a + a_matrix * a_.elements() + rows.begin * depth,
                   .x_step = depth,
                   .w = t.b + (b_matrix * PanelsOf(b_) + panel) * depth * width,
                   .runs = &run,
                   .run_count = 1,
                   .y = t.y + at,
                   .y_step = b_.columns,
                   .rows = rows.size(),
                   .columns = columns,
                   .begins = true,
                   .start = nullptr,
                   .ends = false,
                   .addend = plain_ && has_c_ ? t.c + first : nullptr,
                   .residual = plain_ && has_z_ ? t.z + at : nullptr,
                   .residual_step = b_.columns,
                   .low = plain_ ? finish_.low : -kInfinity,
                   .high = plain_ ? finish_.high : kInfinity};
    do {
      run.x_offset = run.w_row += run.count;
      run.count = std::min(kMaxChainTerms, depth - run.w_row);
      tile.begins = run.w_row == 0;
      tile.ends = run.w_row + run.count == depth;
      LoopsHere().chains(tile);
    } while (!tile.ends);
    if (!plain_) FinishRows(t, batch * rows_ + rows.begin, rows.size(), first, columns);
    finish_.Apply(t.y + at, rows.size(), b_.columns, columns);
  }

  // Factors and addends of other kinds, one operation after the other.
  void FinishRows(const Tensors& t, int64_t first_row, int64_t rows, int64_t first,
                  int64_t columns) const {
    const auto apply = [&](Binary op, Spread spread, const float* a, const float* b, float* y) {
      LoopsHere().binary[static_cast<size_t>(op)][static_cast<size_t>(spread)](
          {a, b, y, 1, columns, 0, 0});
    };
    std::vector<float> scaled(static_cast<size_t>(columns));
    for (int64_t row = first_row; row < first_row + rows; ++row) {
      float* y = t.y + row * b_.columns + first;
      if (alpha_ != 1) apply(Binary::kMul, Spread::kSecond, y, &alpha_, y);
      if (has_c_) {
        const bool one = c_.empty() || b_.columns == 1 || c_.back() == 1;
        const float* c = t.c + OffsetInC(row) + (one ? 0 : first);
        if (one) {
          const float value = beta_ == 1 ? *c : beta_ * *c;
          apply(Binary::kAdd, Spread::kSecond, y, &value, y);
        } else {
          if (beta_ != 1) apply(Binary::kMul, Spread::kSecond, c, &beta_, scaled.data());
          apply(Binary::kAdd, Spread::kNone, y, beta_ == 1 ? c : scaled.data(), y);
        }
      }
      if (has_z_) apply(Binary::kAdd, Spread::kNone, y, t.z + row * b_.columns + first, y);
      LoopsHere().unary[static_cast<size_t>(Unary::kClip)](y, y, columns, finish_.low,
                                                           finish_.high);
    }
  }
  // Where C begins for a row of the product; rows are counted over all batches. Where A or B is a
  // vector, the result has no dim for it, but as many rows.
  int64_t OffsetInC(int64_t row) const {
    const int64_t columns = out_.empty() || b_.columns == 1 ? 1 : b_.columns;
    int64_t index = row * columns, offset = 0, step = 1;
    for (int i = out_.rank() - 1; i >= 0; --i) {
      if (c_[i] != 1) offset += index % out_[i] * step;
      step *= c_[i];
      index /= out_[i];
    }
    return offset;
  }

  const ChainFinish finish_;
  const Matrices a_, b_;
  const float* packed_;
  const bool parameter_;
  const sdk::Packing packing_;
  const float alpha_, beta_;
  const Dims out_;
  const bool has_c_, has_z_;
  Dims batch_, c_;
  int64_t batches_ = 1, rows_ = 1, block_rows_ = 1;
  bool row_of_c_ = false, plain_ = false;
};

class MatMulKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Make(const NodeInfo& node, const CompileContext& context) {
    auto kernel = std::make_unique<MatMulKernel>();
    kernel->parameter_ = node.parameters[kB] != 0;
    const ConstTensor* b = node.op->constant(kB);
    if (b == nullptr) return std::unique_ptr<Kernel>(std::move(kernel));
    const Matrices matrices = BOf(*node.op);
    MSRT_ASSIGN_OR_RETURN(
        kernel->packed_,
        sdk::PackedForm::Make(
            context, b->bytes.data(), PackingOf(matrices),
            static_cast<size_t>(PackedFloats(matrices)) * sizeof(float), [&](std::byte* to) {
              return PackMatrices(matrices, b->As<float>().data(), *context.parallel,
                                  reinterpret_cast<float*>(to));
            }));
    kernel->packed_dims_ = b->dims;
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    const bool packed = packed_.data() != nullptr && op.input(kB).dims == packed_dims_;
    return std::unique_ptr<BoundKernel>(std::make_unique<BoundMatMul>(
        op, packed ? reinterpret_cast<const float*>(packed_.data()) : nullptr, parameter_));
  }
  size_t packed_bytes() const override { return packed_.own_bytes(); }

 private:
  sdk::PackedForm packed_;
  Dims packed_dims_;
  bool parameter_ = false;
};

constexpr Rule Of(std::string_view domain, std::string_view op) {
  return {domain, op, QueryProduct, nullptr, MatMulKernel::Make};
}
constexpr Rule kChainMatMulRules[] = {Of("", "MatMul"), Of("", "Gemm"), Of("msrt", "FusedMatMul")};

}  // namespace

std::span<const Rule> ChainMatMulRules() { return kChainMatMulRules; }

}  // namespace msrt::cpu
