// Images in memory, for tests of the executors.
#pragma once

#include <cstring>
#include <random>

#include "core/image/executors/image_runner.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {

inline ConstTensor RandomImage(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& v : values) v = normal(random);
  return ConstTensor::Floats(dims, values);
}

// Calls `copy` with the offset in the whole, the offset in the part and the count of elements of
// each line of the box.
template <typename Copy>
void ForEachLine(const Dims& whole, const Box& box, const TensorView& part, const Copy& copy) {
  const Dims outer = RowMajorStrides(whole);
  const Dims inner = part.strides != nullptr ? Dims({part.strides, static_cast<size_t>(box.rank())})
                                             : RowMajorStrides(box.dims());
  const int last = box.rank() - 1;
  const int64_t lines = box.volume() / box[last].size();
  for (int64_t i = 0; i < lines; ++i) {
    int64_t at = box[last].begin, from = 0, rest = i;
    for (int d = last - 1; d >= 0; --d) {
      at += (box[d].begin + rest % box[d].size()) * outer[d];
      from += rest % box[d].size() * inner[d];
      rest /= box[d].size();
    }
    copy(at, from, box[last].size());
  }
}

struct ImageResult {
  Status status;
  ImageReport report;
  std::vector<ConstTensor> outputs;
  std::vector<int64_t> written;  // elements of each output
  int64_t read = 0;              // elements of the image
};

// `wanted`: of the first output; null: everything is.
inline ImageResult RunImage(ImageRunner& runner, const ConstTensor& image,
                            const ImageRunOptions& options = {},
                            const std::function<bool(const Box&)>& wanted = {}) {
  ImageResult result;
  for (size_t o = 0; o < runner.graph().outputs.size(); ++o) {
    const Type& type = runner.output_type(o);
    result.outputs.push_back(
        ConstTensor::Copy(type.dtype, type.dims, std::vector<std::byte>(type.bytes())));
    result.written.push_back(0);
  }
  ImageIo io;
  io.read = [&](const Box& box, const TensorView& memory) {
    result.read += box.volume();
    ForEachLine(image.dims, box, memory, [&](int64_t at, int64_t to, int64_t count) {
      std::memcpy(memory.As<float>() + to, image.As<float>().data() + at,
                  static_cast<size_t>(count) * sizeof(float));
    });
    return OkStatus();
  };
  io.write = [&](size_t output, const Box& box, const TensorView& memory) {
    result.written[output] += box.volume();
    const ConstTensor& to = result.outputs[output];
    const size_t size = BytesOf(to.dtype, 1);
    ForEachLine(to.dims, box, memory, [&](int64_t at, int64_t from, int64_t count) {
      std::memcpy(const_cast<std::byte*>(to.bytes.data()) + static_cast<size_t>(at) * size,
                  memory.As<std::byte>() + static_cast<size_t>(from) * size,
                  static_cast<size_t>(count) * size);
    });
    return OkStatus();
  };
  if (wanted)
    io.wanted = [&](std::span<const ValueBox> boxes) -> Result<bool> {
      return wanted(boxes[0].box);
    };
  auto report = runner.Run(io, options);
  result.status = report.status();
  if (report.ok()) result.report = *std::move(report);
  return result;
}

}  // namespace msrt::testing
