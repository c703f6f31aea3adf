#include "tests/fuzz/image_subject.h"

namespace {

using msrt::testing::FuzzFile;

// Most edits keep the checksums right, so that they reach the decoder.
FuzzFile MutatePng(std::span<const std::byte> file, uint64_t seed) {
  FuzzFile out = msrt::testing::MutateBytes(file, seed);
  if (seed % 8 != 0) msrt::testing::RepairPng(&out);
  return out;
}

}  // namespace

const msrt::testing::FuzzSubject msrt::testing::kFuzzSubject = {
    FuzzImage, [] { return ImageSeeds(".png"); }, MutatePng, RepairPng};
