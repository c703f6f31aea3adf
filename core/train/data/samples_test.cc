// Sources of samples: folders and files that the tests write, damaged ones included.
#include <filesystem>

#include "core/image/files/npy_header.h"
#include "core/train/data/data_testing.h"
#include "core/train/data/npy_pair.h"
#include "core/train/data/open_samples.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

std::string Data(const std::string& name) { return std::string(MSRT_IMAGE_DATA) + "/" + name; }

std::unique_ptr<SampleSource> MustOpenSamples(const std::string& path,
                                              const OpenSamplesOptions& options = {}) {
  auto source = OpenSamples(path, options);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() ? *std::move(source) : nullptr;
}

Picture MustRead(const SampleSource& source, int64_t index) {
  Picture picture;
  const Status status = source.Read(index, SampleRandom(1, 2, index), &picture);
  EXPECT_TRUE(status.ok()) << status.message();
  return picture;
}

void ExpectError(const Status& status, const std::string& part) {
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}
void ExpectOpenError(const std::string& path, const std::string& part,
                     const OpenSamplesOptions& options = {}) {
  ExpectError(OpenSamples(path, options).status(), part);
}

// Writes a .npy file of any dims.
template <typename T>
void WriteArray(const std::string& path, const std::string& type, const std::string& shape,
                const std::vector<T>& values) {
  std::string dictionary =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string text = "\x93NUMPY";
  text += '\1';
  text += '\0';
  text += static_cast<char>(dictionary.size());
  text += '\0';
  text += dictionary;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  WriteText(path, text);
}

class ImageFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"cherry", "apple", "banana"})
      fs::create_directories(folder_.File(name));
    fs::copy(Data("rgb.png"), folder_.File("apple/b.png"));
    fs::copy(Data("gray.jpg"), folder_.File("apple/a.JPG"));
    fs::copy(Data("palette.png"), folder_.File("banana/a.png"));
    fs::copy(Data("sub_ifds_u8.tif"), folder_.File("cherry/a.tif"));
    WriteText(folder_.File("cherry/notes.txt"), "not an image");
    WriteText(folder_.File("cherry/.hidden.png"), "not an image");
  }
  std::string root() const { return folder_.File(""); }
  TestFolder folder_;
};

#if MSRT_HAS_IMAGES  // these decode pictures

TEST_F(ImageFolderTest, ClassesAndFilesAreSorted) {
  const auto source = MustOpenSamples(root());
  EXPECT_EQ(source->class_names(), (std::vector<std::string>{"apple", "banana", "cherry"}));
  ASSERT_EQ(source->samples(), 4);
  EXPECT_NE(source->NameOf(0).find("apple/a.JPG"), std::string::npos);
  for (int64_t i = 0; i < 4; ++i) {
    const Picture picture = MustRead(*source, i);
    EXPECT_EQ(picture.channels, 3);
    EXPECT_EQ(picture.label, std::max<int64_t>(i - 1, 0));
  }
}

TEST_F(ImageFolderTest, PixelsAreThoseOfTheFile) {
  const auto source = MustOpenSamples(root());
  const Picture picture = MustRead(*source, 1);
  ASSERT_EQ(picture.rows, 45);
  for (int64_t channel = 0; channel < 3; ++channel)
    EXPECT_EQ(picture.Plane(channel)[7 * 61 + 9],
              static_cast<float>(PatternValue(DType::kU8, channel, 7, 9)));
}

TEST_F(ImageFolderTest, OtherChannelsAreConverted) {
  OpenSamplesOptions options;
  options.folder.channels = 1;
  const auto source = MustOpenSamples(root(), options);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(MustRead(*source, i).channels, 1);
}

TEST_F(ImageFolderTest, EvaluationHasTheClassesOfTraining) {
  OpenSamplesOptions options;
  options.folder.class_names = {"apple", "apricot", "banana", "cherry"};
  const auto source = MustOpenSamples(root(), options);
  EXPECT_EQ(source->class_names().size(), 4u);
  EXPECT_EQ(MustRead(*source, 2).label, 2);
  options.folder.class_names = {"apple", "banana"};
  ExpectOpenError(root(), "no class 'cherry'", options);
}

#endif  // MSRT_HAS_IMAGES

TEST_F(ImageFolderTest, FingerprintChangesWithTheFiles) {
  const uint64_t before = MustOpenSamples(root())->fingerprint();
  EXPECT_EQ(MustOpenSamples(root() + "/")->fingerprint(), before);
  fs::rename(folder_.File("apple/b.png"), folder_.File("banana/b.png"));
  EXPECT_NE(MustOpenSamples(root())->fingerprint(), before);
}

TEST_F(ImageFolderTest, EmptyClassIsAnError) {
  fs::create_directories(folder_.File("dates"));
  ExpectOpenError(root(), "class 'dates' is empty");
  WriteText(folder_.File("dates/readme.txt"), "soon");
  ExpectOpenError(root(), "class 'dates' is empty");
}

TEST_F(ImageFolderTest, CorruptImageIsNamed) {
  const std::vector<std::byte> whole = ReadBytes(folder_.File("apple/b.png"));
  WriteBytes(folder_.File("apple/b.png"), std::span(whole).first(whole.size() / 2));
  const auto source = MustOpenSamples(root());
  Picture picture;
  ExpectError(source->Read(1, SampleRandom(0, 0, 0), &picture), "apple/b.png");
  WriteText(folder_.File("apple/b.png"), "");
  ExpectError(source->Read(1, SampleRandom(0, 0, 0), &picture), "apple/b.png");
}

TEST(ImageFolder, FoldersThatAreNoDataAreRefused) {
  TestFolder folder;
  ExpectOpenError(folder.File("missing"), "no such folder");
  ExpectOpenError(folder.File(""), "no folders in it");
}

std::string CifarRecord(int coarse, int label, char pixel) {
  std::string record;
  if (coarse >= 0) record += static_cast<char>(coarse);
  record += static_cast<char>(label);
  for (int channel = 0; channel < 3; ++channel)
    record += std::string(1024, static_cast<char>(pixel + channel));
  return record;
}

TEST(PackedImages, Cifar10IsRead) {
  TestFolder folder;
  WriteText(folder.File("data_batch_1.bin"), CifarRecord(-1, 3, 10) + CifarRecord(-1, 9, 20));
  WriteText(folder.File("data_batch_2.bin"), CifarRecord(-1, 0, 30));
  WriteText(folder.File("test_batch.bin"), CifarRecord(-1, 5, 40));
  const auto train = MustOpenSamples(folder.File(""));
  ASSERT_EQ(train->samples(), 3);
  EXPECT_EQ(train->class_names().size(), 10u);
  const Picture picture = MustRead(*train, 1);
  EXPECT_EQ(picture.label, 9);
  EXPECT_EQ(picture.rows, 32);
  EXPECT_EQ(picture.Plane(2)[5], 22);
  EXPECT_EQ(MustRead(*train, 2).Plane(0)[0], 30);
  OpenSamplesOptions options;
  options.split = DataSplit::kTest;
  EXPECT_EQ(MustRead(*MustOpenSamples(folder.File(""), options), 0).label, 5);
  WriteText(folder.File("data_batch_2.bin"), CifarRecord(-1, 0, 30).substr(1));
  ExpectOpenError(folder.File(""), "data_batch_2.bin");
  WriteText(folder.File("batches.meta.txt"), "cat\ndog\n");
  WriteText(folder.File("data_batch_2.bin"), CifarRecord(-1, 0, 30));
  ExpectOpenError(folder.File(""), "label 9 of 2 classes");
}

TEST(PackedImages, Cifar100HasFineLabels) {
  TestFolder folder;
  WriteText(folder.File("train.bin"), CifarRecord(4, 77, 1));
  const auto source = MustOpenSamples(folder.File(""));
  EXPECT_EQ(source->class_names().size(), 100u);
  EXPECT_EQ(MustRead(*source, 0).label, 77);
  EXPECT_EQ(MustRead(*source, 0).Plane(1)[1023], 2);
}

std::string Idx(std::initializer_list<int> dims, const std::string& data) {
  std::string text("\0\0\x08", 3);
  text += static_cast<char>(dims.size());
  for (const int dim : dims) text += std::string("\0\0\0", 3) + static_cast<char>(dim);
  return text + data;
}

TEST(PackedImages, MnistIsRead) {
  TestFolder folder;
  WriteText(folder.File("train-images-idx3-ubyte"), Idx({2, 2, 3}, "abcdefghijkl"));
  WriteText(folder.File("train-labels-idx1-ubyte"), Idx({2}, "\x07\x02"));
  const auto source = MustOpenSamples(folder.File(""));
  ASSERT_EQ(source->samples(), 2);
  EXPECT_EQ(source->class_names().size(), 10u);
  const Picture picture = MustRead(*source, 1);
  EXPECT_EQ(picture.label, 2);
  EXPECT_EQ(picture.pixels, (std::vector<float>{'g', 'h', 'i', 'j', 'k', 'l'}));
  WriteText(folder.File("train-labels-idx1-ubyte"), Idx({1}, "\x07"));
  ExpectOpenError(folder.File(""), "2 images and 1 labels");
  WriteText(folder.File("train-labels-idx1-ubyte"), Idx({2}, "\x07"));
  ExpectOpenError(folder.File(""), "train-labels-idx1-ubyte");
  WriteText(folder.File("train-labels-idx1-ubyte"), "\x1f\x8b");
  ExpectOpenError(folder.File(""), "unpack");
}

TEST(NpyPair, PicturesAndLabelsAreRead) {
  TestFolder folder;
  WriteArray<uint8_t>(folder.File("train_images.npy"), "|u1", "(2, 2, 3)",
                      {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15});
  WriteArray<int64_t>(folder.File("train_labels.npy"), "<i8", "(2,)", {4, -1});
  const auto source = MustOpenSamples(folder.File(""));
  EXPECT_EQ(source->samples(), 2);
  EXPECT_EQ(source->class_names().size(), 5u);
  const Picture picture = MustRead(*source, 1);
  EXPECT_EQ(picture.rows, 2);
  EXPECT_EQ(picture.pixels, (std::vector<float>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(picture.label, kIgnoredLabel);
  EXPECT_EQ(MustRead(*source, 0).label, 4);
  WriteArray<int64_t>(folder.File("train_labels.npy"), "<i8", "(3,)", {4, 0, 1});
  ExpectOpenError(folder.File(""), "do not fit");
  WriteArray<int64_t>(folder.File("train_labels.npy"), "<i8", "(2,)", {4, -2});
  ExpectOpenError(folder.File(""), "label -2");
  WriteArray<float>(folder.File("train_labels.npy"), "<f4", "(2,)", {4, 2});
  ExpectOpenError(folder.File(""), "astype");
  WriteArray<int64_t>(folder.File("train_labels.npy"), "<i8", "(2,)", {4});
  ExpectOpenError(folder.File(""), "cut off");
}

TEST(NpyPair, VectorsKeepTheirDims) {
  TestFolder folder;
  WriteArray<double>(folder.File("x.npy"), "<f8", "(3, 2)", {1, 2, 3, 4, 5, 6});
  WriteArray<int32_t>(folder.File("y.npy"), "<i4", "(3,)", {0, 1, 0});
  std::shared_ptr<const SampleSource> source =
      MustOpenSamples(folder.File("x.npy") + "," + folder.File("y.npy"));
  auto loader = DataLoader::Make(source, {});
  ASSERT_TRUE(loader.ok()) << loader.status().message();
  EXPECT_EQ((*loader)->types()[0], Type::Tensor(DType::kF32, {kUnknownDim, 2}));
  auto batch = (*(*loader)->Batches(0))->Next();
  EXPECT_EQ((*batch)->tensors[0].As<float>()[5], 6);
  LoaderOptions options;
  options.augmentation = *ParseAugmentation("hflip");
  EXPECT_FALSE(DataLoader::Make(source, options).ok());
}

TEST(NpyPair, LabelsOfPixelsAreRead) {
  TestFolder folder;
  WriteArray<float>(folder.File("x.npy"), "<f4", "(1, 2, 2, 2)", {1, 2, 3, 4, 5, 6, 7, 8});
  WriteArray<uint8_t>(folder.File("y.npy"), "|u1", "(1, 2, 2)", {0, 1, 2, 1});
  const auto source = MustOpenSamples(folder.File("x.npy") + "," + folder.File("y.npy"));
  EXPECT_TRUE(source->has_label_maps());
  EXPECT_EQ(MustRead(*source, 0).label_map, (std::vector<int32_t>{0, 1, 2, 1}));
  std::shared_ptr<const SampleSource> shared(
      MustOpenSamples(folder.File("x.npy") + "," + folder.File("y.npy")));
  auto loader = DataLoader::Make(shared, {});
  EXPECT_EQ((*loader)->types()[1], Type::Tensor(DType::kI64, {kUnknownDim, 2, 2}));
}

class ImageWindowsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 10, kCols = 7;
  void SetUp() override {
    fs::create_directories(folder_.File("images"));
    fs::create_directories(folder_.File("labels"));
    std::vector<uint8_t> labels;
    std::vector<float> pixels;
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      labels.push_back(static_cast<uint8_t>(i));
      pixels.push_back(static_cast<float>(i));
    }
    WriteArray(folder_.File("images/a.npy"), "<f4", "(1, 10, 7)", pixels);
    WriteArray(folder_.File("labels/a.npy"), "|u1", "(10, 7)", labels);
    options_.windows.rows = 4, options_.windows.cols = 3;
  }
  TestFolder folder_;
  OpenSamplesOptions options_;
};

TEST_F(ImageWindowsTest, GridCoversEveryPixelOnce) {
  const auto source = MustOpenSamples("windows:" + folder_.File(""), options_);
  EXPECT_EQ(source->samples(), 9);
  EXPECT_EQ(source->class_names().size(), 70u);
  std::vector<int> seen(70);
  for (int64_t i = 0; i < source->samples(); ++i) {
    const Picture picture = MustRead(*source, i);
    ASSERT_EQ(picture.label_map.size(), 12u);
    for (size_t p = 0; p < 12; ++p) {
      if (picture.label_map[p] == kIgnoredLabel) continue;
      EXPECT_EQ(picture.pixels[p], static_cast<float>(picture.label_map[p]));
      ++seen[static_cast<size_t>(picture.label_map[p])];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(70, 1));
}

TEST_F(ImageWindowsTest, RandomWindowsFollowTheSample) {
  options_.windows.windows = 50;
  const auto source = MustOpenSamples("windows:" + folder_.File(""), options_);
  EXPECT_EQ(source->samples(), 50);
  std::set<int32_t> first_pixels;
  for (int64_t i = 0; i < 50; ++i) {
    const Picture picture = MustRead(*source, i);
    EXPECT_EQ(picture.pixels, MustRead(*source, i).pixels);
    EXPECT_EQ(picture.pixels[5], static_cast<float>(picture.label_map[5]));
    first_pixels.insert(picture.label_map[0]);
  }
  EXPECT_GT(first_pixels.size(), 15u);
}

TEST_F(ImageWindowsTest, WrongPairsAreRefused) {
  options_.windows.rows = 11;
  ExpectOpenError("windows:" + folder_.File(""), "do not fit", options_);
  options_.windows.rows = 4;
  WriteArray<uint8_t>(folder_.File("labels/a.npy"), "|u1", "(1, 1)", {1});
  ExpectOpenError("windows:" + folder_.File(""), "labels/a.npy", options_);
  fs::remove(folder_.File("labels/a.npy"));
  WriteArray<uint8_t>(folder_.File("labels/b.npy"), "|u1", "(1, 1)", {1});
  ExpectOpenError("windows:" + folder_.File(""), "no labels", options_);
}

}  // namespace
}  // namespace msrt::testing
