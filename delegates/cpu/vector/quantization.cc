// Loops between f32 and bytes. A quotient is clamped before it is rounded, to numbers that rounding
// leaves alone; then adding kRound rounds it to even and leaves it in the low bits.
#include "delegates/cpu/vector/math.h"
#include "delegates/cpu/vector/parts.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

constexpr float kRound = 12582912.0f;  // 1.5 * 2^23

template <typename Byte>
struct Range {
  static constexpr float kLow = Byte(-1) < Byte(0) ? -128.0f : 0.0f, kHigh = kLow + 255.0f;
};

// `value` is NaN or between `low` and `high` after this: NaN becomes the byte 0, as in a conversion
// that saturates.
template <typename Byte>
inline Byte ToByte(float value, float low, float high, int32_t zero) {
  const float rounded = AtMost(AtLeast(value, low), high) + kRound;
  return static_cast<Byte>(value == value ? AsInt(rounded) - AsInt(kRound) + zero : 0);
}

template <typename Byte>
void QuantizeOf(const float* x, void* y, int64_t count, float scale, int32_t zero) {
  auto* bytes = static_cast<Byte*>(y);
  const float low = Range<Byte>::kLow - static_cast<float>(zero),
              high = Range<Byte>::kHigh - static_cast<float>(zero);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) bytes[i] = ToByte<Byte>(x[i] / scale, low, high, zero);
}

template <typename Byte>
void DequantizeOf(const void* x, float* y, int64_t count, float scale, int32_t zero) {
  const auto* bytes = static_cast<const Byte*>(x);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(int32_t{bytes[i]} - zero) * scale;
}

// One pair for each lane, since a compiler does not reorder the comparisons of a single one.
void MinMax(const float* x, int64_t count, float* least, float* greatest) {
  constexpr int64_t kLanes = 64;
  float low[kLanes], high[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) low[l] = *least, high[l] = *greatest;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      low[l] = x[i + l] < low[l] ? x[i + l] : low[l];
      high[l] = x[i + l] > high[l] ? x[i + l] : high[l];
    }
  }
  for (; i < count; ++i)
    low[0] = x[i] < low[0] ? x[i] : low[0], high[0] = x[i] > high[0] ? x[i] : high[0];
  for (int64_t l = 0; l < kLanes; ++l) {
    *least = low[l] < *least ? low[l] : *least;
    *greatest = high[l] > *greatest ? high[l] : *greatest;
  }
}

template <typename A, typename B, typename Y>
void AddBytesOf(const ByteSum& s) {
  const auto* a = static_cast<const A*>(s.a);
  const auto* b = static_cast<const B*>(s.b);
  auto* y = static_cast<Y*>(s.y);
  const float zero = static_cast<float>(s.y_zero), high = Range<Y>::kHigh - zero;
  const float low = s.relu && Range<Y>::kLow < zero ? 0.0f : Range<Y>::kLow - zero;
  const int32_t a_zero = s.a_zero, b_zero = s.b_zero, y_zero = s.y_zero;
  const float a_scale = s.a_scale, b_scale = s.b_scale, y_scale = s.y_scale;
  const int64_t count = s.count;  // a byte that is stored might be part of `s`
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float sum = static_cast<float>(int32_t{a[i]} - a_zero) * a_scale +
                      static_cast<float>(int32_t{b[i]} - b_zero) * b_scale;
    y[i] = ToByte<Y>(sum / y_scale, low, high, y_zero);
  }
}

#if defined(__AVX512BW__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// Columns stay in a register while the taps are gone through: loops over an array of them do not.
template <typename Byte, int Columns>
inline void MaxOfColumns(const void* const* taps, int64_t count, Byte* y, int64_t first) {
  typedef Byte Vector __attribute__((vector_size(Columns)));
  Vector largest = Vector{} + static_cast<Byte>(Range<Byte>::kLow);
  for (int64_t t = 0; t < count; ++t) {
    Vector tap;
    __builtin_memcpy(&tap, static_cast<const Byte*>(taps[t]) + first, Columns);
    largest = tap > largest ? tap : largest;
  }
  __builtin_memcpy(y + first, &largest, Columns);
}

template <typename Byte>
void MaxOfBytes(const void* const* taps, int64_t count, void* y, int64_t columns) {
  auto* bytes = static_cast<Byte*>(y);
  int64_t first = 0;
  for (; first + kVectorBytes <= columns; first += kVectorBytes)
    MaxOfColumns<Byte, kVectorBytes>(taps, count, bytes, first);
  for (; first + 8 <= columns; first += 8) MaxOfColumns<Byte, 8>(taps, count, bytes, first);
  for (; first < columns; ++first) MaxOfColumns<Byte, 1>(taps, count, bytes, first);
}

template <typename A, typename B>
void FillSums(AddBytesLoop* by_result) {
  by_result[0] = AddBytesOf<A, B, uint8_t>;
  by_result[1] = AddBytesOf<A, B, int8_t>;
}

}  // namespace

void FillQuantization(Loops* loops) {
  loops->quantize[0] = QuantizeOf<uint8_t>;
  loops->quantize[1] = QuantizeOf<int8_t>;
  loops->dequantize[0] = DequantizeOf<uint8_t>;
  loops->dequantize[1] = DequantizeOf<int8_t>;
  loops->min_max = MinMax;
  loops->max_of_bytes[0] = MaxOfBytes<uint8_t>;
  loops->max_of_bytes[1] = MaxOfBytes<int8_t>;
  FillSums<uint8_t, uint8_t>(loops->add_bytes[0][0]);
  FillSums<uint8_t, int8_t>(loops->add_bytes[0][1]);
  FillSums<int8_t, uint8_t>(loops->add_bytes[1][0]);
  FillSums<int8_t, int8_t>(loops->add_bytes[1][1]);
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
