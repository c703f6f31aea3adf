// Fuzzing of image readers: a file in memory is opened as an image and read in windows.
#pragma once

#include "tests/fuzz/driver.h"

namespace msrt::testing {

// Opens the bytes by their contents and reads some windows. Returns whether all were read.
bool FuzzImage(std::span<const std::byte> bytes);

// The same with GDAL, whatever the format.
bool FuzzGdalImage(std::span<const std::byte> bytes);

// The files of tests/data/images that end in `extension`.
std::vector<FuzzFile> ImageSeeds(const char* extension);

// Changes, moves and repeats bytes, mostly near the beginning, where headers are.
FuzzFile MutateBytes(std::span<const std::byte> file, uint64_t seed);

// Corrects the checksums of PNG chunks.
void RepairPng(FuzzFile* file);

}  // namespace msrt::testing
