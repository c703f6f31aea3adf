// The reader of what GDAL reads. A crash may be one of GDAL itself, so this is no test of the
// suite. Without GDAL it ends at once.
#include <cstdio>
#include <cstdlib>

#include "core/image/files/gdal_reader.h"
#include "tests/fuzz/image_subject.h"

namespace {

std::vector<msrt::testing::FuzzFile> Seeds() {
  if (!msrt::GdalIsInstalled()) {
    std::puts("GDAL is not installed; nothing to do");
    std::exit(0);
  }
  auto seeds = msrt::testing::ImageSeeds(".jp2");
  for (const char* other : {".tif", ".png", ".jpg"}) {
    for (auto& seed : msrt::testing::ImageSeeds(other)) seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace

const msrt::testing::FuzzSubject msrt::testing::kFuzzSubject = {FuzzGdalImage, Seeds, MutateBytes,
                                                                nullptr};
