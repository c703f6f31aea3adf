#include "core/train/data/data_loader.h"

#include <algorithm>

#include "core/train/data/data_testing.h"

namespace msrt::testing {
namespace {

std::unique_ptr<DataLoader> MustMake(std::shared_ptr<const SampleSource> source,
                                     LoaderOptions options) {
  auto loader = DataLoader::Make(std::move(source), std::move(options));
  EXPECT_TRUE(loader.ok()) << loader.status().message();
  return loader.ok() ? *std::move(loader) : nullptr;
}

std::vector<Batch> Read(const DataLoader& loader, int64_t epoch, int64_t first = 0) {
  auto reader = loader.Batches(epoch, first);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  std::vector<Batch> batches;
  while (reader.ok()) {
    auto batch = (*reader)->Next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || !batch->has_value()) break;
    batches.push_back(**std::move(batch));
  }
  return batches;
}

std::vector<std::byte> BytesOfBatch(const Batch& batch) {
  std::vector<std::byte> bytes;
  for (const ConstTensor& tensor : batch.tensors)
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

LoaderOptions Options(std::string_view augmentation = "crop:2:1 hflip rotate:30") {
  LoaderOptions options;
  options.batch = 10;
  options.seed = 99;
  options.shuffle = true;
  options.threads = 0;
  options.augmentation = *ParseAugmentation(augmentation);
  return options;
}

TEST(DataLoader, EachEpochHasEverySampleOnce) {
  LoaderOptions options = Options("");
  const auto loader = MustMake(NumberedSamples(47), options);
  EXPECT_EQ(loader->batches_per_epoch(), 5);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> seen;
    const std::vector<Batch> batches = Read(*loader, epoch);
    ASSERT_EQ(batches.size(), 5u);
    EXPECT_EQ(batches.back().samples, 7);
    for (const Batch& batch : batches) {
      ASSERT_EQ(batch.tensors[0].dims, (Dims{batch.samples, 1, 2, 3}));
      ASSERT_EQ(batch.tensors[1].dims, (Dims{batch.samples}));
      for (int64_t i = 0; i < batch.samples; ++i) {
        const float first = batch.tensors[0].As<float>()[static_cast<size_t>(6 * i)];
        seen.push_back(static_cast<int64_t>(first) / 10);
        EXPECT_EQ(batch.tensors[1].As<int64_t>()[static_cast<size_t>(i)], seen.back() % 4);
      }
    }
    orders.push_back(seen);
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < 47; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
}

TEST(DataLoader, UnshuffledDataKeepsItsOrder) {
  LoaderOptions options = Options("");
  options.shuffle = false;
  options.drop_last = true;
  const auto loader = MustMake(NumberedSamples(25), options);
  const std::vector<Batch> batches = Read(*loader, 3);
  ASSERT_EQ(batches.size(), 2u);
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(batches[static_cast<size_t>(i / 10)]
                  .tensors[0]
                  .As<float>()[static_cast<size_t>(6 * (i % 10))],
              static_cast<float>(10 * i));
}

TEST(DataLoader, ThreadsAndPrefetchDoNotChangeBatches) {
  for (const char* augmentation : {"crop:2:1 hflip rotate:30", "hflip mixup:0.5"}) {
    const auto expected = Read(*MustMake(NumberedSamples(53), Options(augmentation)), 4);
    for (const int threads : {1, 2, 5}) {
      LoaderOptions options = Options(augmentation);
      options.threads = threads;
      options.prefetch = threads;
      const auto batches = Read(*MustMake(NumberedSamples(53), options), 4);
      ASSERT_EQ(batches.size(), expected.size());
      for (size_t i = 0; i < batches.size(); ++i)
        EXPECT_EQ(BytesOfBatch(batches[i]), BytesOfBatch(expected[i]));
    }
  }
}

TEST(DataLoader, RanksTogetherReadTheBatchOfOne) {
  for (const char* augmentation : {"crop:2:1 hflip rotate:30", "hflip mixup:0.5"}) {
    const auto whole = Read(*MustMake(NumberedSamples(53), Options(augmentation)), 1);
    for (const int ranks : {2, 3, 4, 7, 8, 13}) {
      std::vector<std::vector<std::byte>> values(whole.size()), targets(whole.size());
      for (int rank = 0; rank < ranks; ++rank) {
        LoaderOptions options = Options(augmentation);
        options.rank = rank, options.ranks = ranks, options.threads = 1;
        const auto part = Read(*MustMake(NumberedSamples(53), options), 1);
        ASSERT_EQ(part.size(), whole.size());
        for (size_t b = 0; b < part.size(); ++b) {
          EXPECT_EQ(part[b].global_samples, whole[b].samples);
          const auto append = [](const ConstTensor& tensor, std::vector<std::byte>* bytes) {
            bytes->insert(bytes->end(), tensor.bytes.begin(), tensor.bytes.end());
          };
          append(part[b].tensors[0], &values[b]);
          append(part[b].tensors[1], &targets[b]);
        }
      }
      for (size_t b = 0; b < whole.size(); ++b) {
        values[b].insert(values[b].end(), targets[b].begin(), targets[b].end());
        EXPECT_EQ(values[b], BytesOfBatch(whole[b])) << ranks << " ranks, batch " << b;
      }
    }
  }
}

TEST(DataLoader, RangesOfRanksAreThoseOfVirtualShards) {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 9, 20}) {
    for (const int64_t samples : {0, 1, 7, 8, 32, 33}) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const SampleRange range = SamplesOfRank(samples, rank, ranks);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.last, range.first);
        next = range.last;
      }
      EXPECT_EQ(next, samples);
    }
  }
  EXPECT_EQ(SamplesOfRank(32, 1, 4).first, 8);
  EXPECT_EQ(SamplesOfRank(32, 1, 4).last, 16);
}

TEST(DataLoader, ResumesAtTheExactBatch) {
  LoaderOptions options = Options();
  options.threads = 2;
  const auto loader = MustMake(NumberedSamples(53), options);
  const auto whole = Read(*loader, 2);
  for (size_t first = 0; first <= whole.size(); ++first) {
    const auto rest = Read(*loader, 2, static_cast<int64_t>(first));
    ASSERT_EQ(rest.size(), whole.size() - first);
    for (size_t i = 0; i < rest.size(); ++i)
      EXPECT_EQ(BytesOfBatch(rest[i]), BytesOfBatch(whole[first + i]));
  }
  EXPECT_FALSE(loader->Batches(0, 7).ok());
}

TEST(DataLoader, ReaderThatIsNotFinishedStopsItsThreads) {
  LoaderOptions options = Options();
  options.threads = 4;
  const auto loader = MustMake(NumberedSamples(500), options);
  for (int i = 0; i < 20; ++i) {
    auto reader = loader->Batches(i);
    ASSERT_TRUE((*reader)->Next().ok());
  }
}

TEST(DataLoader, MixupMakesProbabilities) {
  LoaderOptions options = Options("mixup:1");
  options.shuffle = false;
  const auto loader = MustMake(NumberedSamples(10), options);
  EXPECT_EQ(loader->types()[1], Type::Tensor(DType::kF32, {kUnknownDim, 4}));
  const std::vector<Batch> batches = Read(*loader, 0);
  const auto values = batches[0].tensors[0].As<float>(),
             targets = batches[0].tensors[1].As<float>();
  for (size_t i = 0; i < 10; ++i) {
    const size_t next = (i + 1) % 10;
    const float ratio = targets[4 * i + i % 4];
    // 9 and 0 have labels 1 and 0, like all neighbours different ones.
    EXPECT_NEAR(ratio + targets[4 * i + next % 4], 1, 1e-6);
    EXPECT_NEAR(values[6 * i],
                ratio * static_cast<float>(10 * i) + (1 - ratio) * static_cast<float>(10 * next),
                1e-3);
  }
}

TEST(DataLoader, DenseTargetsAreOneForTheLabel) {
  LoaderOptions options = Options("");
  options.shuffle = false;
  options.dense_targets = true;
  const auto batches = Read(*MustMake(NumberedSamples(10), options), 0);
  ASSERT_EQ(batches[0].tensors[1].dims, (Dims{10, 4}));
  const auto targets = batches[0].tensors[1].As<float>();
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(targets[i], i % 4 == i / 4 % 4 ? 1 : 0);
}

TEST(DataLoader, NormalizationComesLast) {
  LoaderOptions options = Options("");
  options.shuffle = false;
  options.normalization = *ParseNormalization("mean=10 std=2");
  const auto batches = Read(*MustMake(NumberedSamples(10), options), 0);
  EXPECT_EQ(batches[0].tensors[0].As<float>()[7], 0.5F);
}

TEST(DataLoader, BadSampleIsNamedAndRefused) {
  LoaderOptions options = Options("");
  options.threads = 3;
  const auto loader = MustMake(NumberedSamples(30, 4, 17), options);
  auto reader = loader->Batches(0);
  Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) {
    auto batch = (*reader)->Next();
    if (!batch.ok()) status = std::move(batch).status();
  }
  EXPECT_NE(status.message().find("sample 17"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("damaged"), std::string::npos) << status.message();
}

TEST(DataLoader, SkippedSampleIsReplacedAndNamedOnce) {
  std::vector<std::string> lines;
  std::mutex mutex;
  LoaderOptions options = Options("");
  options.bad_samples = BadSamples::kSkip;
  options.threads = 2;
  options.log = Log(
      [&](LogLevel, const std::string& line) {
        const std::lock_guard lock(mutex);
        lines.push_back(line);
      },
      LogLevel::kWarning);
  const auto loader = MustMake(NumberedSamples(30, 4, 17), options);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> seen;
    for (const Batch& batch : Read(*loader, epoch)) {
      for (int64_t i = 0; i < batch.samples; ++i)
        seen.push_back(
            static_cast<int64_t>(batch.tensors[0].As<float>()[static_cast<size_t>(6 * i)]) / 10);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 17), 0);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 18), 2);
    EXPECT_EQ(seen.size(), 30u);
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("sample 17"), std::string::npos);
  EXPECT_EQ(loader->SkippedSamples(), std::vector<std::string>{"sample 17"});
}

TEST(DataLoader, SkippedSampleOfAnEvaluationIsIgnored) {
  LoaderOptions options = Options("");
  options.shuffle = false;
  options.bad_samples = BadSamples::kSkip;
  const auto batches = Read(*MustMake(NumberedSamples(10, 4, 3), options), 0);
  EXPECT_EQ(batches[0].tensors[1].As<int64_t>()[3], kIgnoredLabel);
  EXPECT_EQ(batches[0].tensors[1].As<int64_t>()[2], 2);
  EXPECT_EQ(batches[0].tensors[0].As<float>()[18], 0);
}

TEST(DataLoader, DataWithoutReadableSampleIsAnError) {
  LoaderOptions options = Options("");
  options.bad_samples = BadSamples::kSkip;
  EXPECT_FALSE(DataLoader::Make(NumberedSamples(1, 1, 0), options).ok());
}

TEST(DataLoader, PicturesOfDifferentSizesNeedAResize) {
  CallbackSamples callback;
  callback.samples = 2;
  callback.read = [](int64_t index, Picture* out) {
    out->Resize(1, 2 + index, 3);
    return OkStatus();
  };
  std::shared_ptr<const SampleSource> source = *MakeCallbackSamples(callback);
  LoaderOptions options = Options("");
  options.shuffle = false;
  const auto loader = MustMake(source, options);
  const auto batch = (*loader->Batches(0))->Next();
  EXPECT_NE(batch.status().message().find("sample 1"), std::string::npos);
  EXPECT_NE(batch.status().message().find("resize"), std::string::npos);
  options.augmentation = *ParseAugmentation("resize:4");
  EXPECT_EQ(Read(*MustMake(source, options), 0).size(), 1u);
}

TEST(DataLoader, WrongOptionsAreRefused) {
  const auto refused = [](LoaderOptions options) {
    return !DataLoader::Make(NumberedSamples(5), std::move(options)).ok();
  };
  EXPECT_FALSE(refused({}));
  LoaderOptions options;
  options.batch = 0;
  EXPECT_TRUE(refused(options));
  options = {};
  options.rank = 1;
  EXPECT_TRUE(refused(options));
  options = {};
  options.drop_last = true;
  EXPECT_TRUE(refused(options));
  options = {};
  options.normalization = *ParseNormalization("mean=1,2");
  EXPECT_TRUE(refused(options));
}

}  // namespace
}  // namespace msrt::testing
