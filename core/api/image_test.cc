// Images through the C API: callbacks and files against a session on the whole image.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

constexpr int64_t kChannels = 2, kRows = 37, kColumns = 29, kClasses = 3;

// y = conv(x), 3 x 3 with stride 2; z = the mean of all pixels, which does not follow the image.
msrt_graph* ImageGraph(msrt_runtime* runtime) {
  msrt_graph* graph = nullptr;
  EXPECT_EQ(msrt_graph_create(runtime, "image", &graph), MSRT_OK);
  const msrt_tensor_info x =
      InfoOf(MSRT_F32, {1, kChannels, MSRT_UNKNOWN_DIM, MSRT_UNKNOWN_DIM}, "x");
  msrt_value input = MSRT_NO_VALUE, weights = MSRT_NO_VALUE;
  EXPECT_EQ(msrt_graph_add_input(graph, &x, &input), MSRT_OK);
  std::vector<float> w(kClasses * kChannels * 9);
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::sin(static_cast<float>(i * i));
  msrt_tensor* data = FloatTensor(runtime, {kClasses, kChannels, 3, 3}, w);
  EXPECT_EQ(msrt_graph_add_constant(graph, "w", data, &weights), MSRT_OK);
  msrt_tensor_destroy(data);
  const int64_t strides[] = {2, 2}, pads[] = {1, 1, 1, 1};
  msrt_attr stride{}, pad{};
  stride.name = "strides", stride.kind = MSRT_ATTR_INTS, stride.count = 2, stride.ints = strides;
  pad.name = "pads", pad.kind = MSRT_ATTR_INTS, pad.count = 4, pad.ints = pads;
  const msrt_value y = AddNode(graph, "Conv", "y", {input, weights}, {stride, pad});
  const msrt_value z = AddNode(graph, "GlobalAveragePool", "z", {y});
  EXPECT_EQ(msrt_graph_add_output(graph, y, nullptr), MSRT_OK);
  EXPECT_EQ(msrt_graph_add_output(graph, z, nullptr), MSRT_OK);
  return graph;
}

uint8_t PixelOf(int64_t channel, int64_t row, int64_t column) {
  return static_cast<uint8_t>((channel * 37 + row * 11 + column * 7 + row * column % 13) % 251);
}

class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "msrt_api_images" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime_));
    msrt_graph* graph = ImageGraph(runtime_);
    model_ = folder_ + "/model.msrt";
    MSRT_ASSERT_OK(msrt_graph_save(graph, model_.c_str()));
    msrt_graph_destroy(graph);
    source_.dtype = MSRT_U8;
    source_.channels = kChannels, source_.rows = kRows, source_.columns = kColumns;
    output_.write = WriteBox, output_.write_user = this;
    config_.model = model_.c_str();
    config_.source = &source_;
    config_.read = ReadBox, config_.read_user = this;
    config_.outputs = &output_, config_.output_count = 1;
    config_.normalize = "mean=100,120 std=50";
    config_.memory_limit_bytes = size_t{64} << 20;
  }
  void TearDown() override {
    msrt_runtime_destroy(runtime_);
    std::filesystem::remove_all(folder_);
  }

  static msrt_status ReadBox(void* user, const msrt_image_box* box, void* data,
                             int64_t channel_stride, int64_t row_stride) {
    auto* const self = static_cast<Images*>(user);
    if (self->read_status_ != MSRT_OK) return self->read_status_;
    for (int64_t c = 0; c < box->channels; ++c) {
      for (int64_t r = 0; r < box->rows; ++r) {
        uint8_t* const row = static_cast<uint8_t*>(data) + c * channel_stride + r * row_stride;
        for (int64_t x = 0; x < box->columns; ++x)
          row[x] = PixelOf(box->channel + c, box->row + r, box->column + x);
      }
    }
    return MSRT_OK;
  }

  static msrt_status WriteBox(void* user, const msrt_image_box* box, const void* data,
                              int64_t channel_stride, int64_t row_stride) {
    auto* const self = static_cast<Images*>(user);
    for (int64_t c = 0; c < box->channels; ++c) {
      for (int64_t r = 0; r < box->rows; ++r) {
        const float* const row =
            static_cast<const float*>(data) + c * channel_stride + r * row_stride;
        for (int64_t x = 0; x < box->columns; ++x)
          self->result_[static_cast<size_t>(
              ((box->channel + c) * kOutRows + box->row + r) * kOutColumns + box->column + x)] =
              row[x];
      }
    }
    return MSRT_OK;
  }

  // The result of a session on the whole image.
  std::vector<float> Expected() {
    msrt_model_config config = MSRT_INIT(msrt_model_config);
    config.accuracy = MSRT_ACCURACY_EXACT;
    msrt_model* model = nullptr;
    EXPECT_EQ(msrt_model_load_file(runtime_, model_.c_str(), &config, &model), MSRT_OK);
    msrt_session* session = SessionOf(model);
    std::vector<float> x;
    for (int64_t c = 0; c < kChannels; ++c) {
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t k = 0; k < kColumns; ++k)
          x.push_back((static_cast<float>(PixelOf(c, r, k)) - (c == 0 ? 100.0f : 120.0f)) / 50.0f);
      }
    }
    std::vector<float> y = RunFloats(session, {1, kChannels, kRows, kColumns}, x);
    msrt_session_destroy(session);
    msrt_model_destroy(model);
    return y;
  }

  msrt_image* Create() {
    msrt_image* image = nullptr;
    EXPECT_EQ(msrt_image_create(runtime_, &config_, &image), MSRT_OK) << msrt_error_message();
    return image;
  }
  void Refused(msrt_status status, const std::string& message) {
    msrt_image* image = nullptr;
    EXPECT_EQ(msrt_image_create(runtime_, &config_, &image), status) << msrt_error_message();
    EXPECT_NE(std::string(msrt_error_message()).find(message), std::string::npos)
        << msrt_error_message();
    msrt_image_destroy(image);
  }

  static constexpr int64_t kOutRows = (kRows + 1) / 2, kOutColumns = (kColumns + 1) / 2;
  std::string folder_, model_;
  msrt_runtime* runtime_ = nullptr;
  msrt_image_info source_ = MSRT_INIT(msrt_image_info);
  msrt_image_config config_ = MSRT_INIT(msrt_image_config);
  msrt_image_output output_{};
  std::vector<float> result_ =
      std::vector<float>(static_cast<size_t>(kClasses * kOutRows * kOutColumns), -1.0f);
  msrt_status read_status_ = MSRT_OK;
};

TEST_F(Images, CallbacksGetTheBitsOfTheWhole) {
  for (const msrt_executor executor :
       {MSRT_EXECUTOR_AUTO, MSRT_EXECUTOR_STREAM, MSRT_EXECUTOR_TILES}) {
    config_.executor = executor;
    std::fill(result_.begin(), result_.end(), -1.0f);
    msrt_image* image = Create();
    msrt_image_info info = MSRT_INIT(msrt_image_info);
    MSRT_EXPECT_OK(msrt_image_get_info(image, MSRT_OUTPUT, 0, &info));
    EXPECT_EQ(info.dtype, MSRT_F32);
    EXPECT_EQ(info.channels, kClasses);
    EXPECT_EQ(info.rows, kOutRows);
    MSRT_EXPECT_OK(msrt_image_run(image));
    EXPECT_EQ(result_, Expected()) << executor;
    const char* text = nullptr;
    MSRT_EXPECT_OK(msrt_image_report(image, MSRT_IMAGE_REPORT_JSON, &text));
    const auto report = nlohmann::json::parse(text);
    EXPECT_EQ(report["recomputed_rows"], 0);
    EXPECT_EQ(report["image"]["rows"], kRows);
    EXPECT_LE(report["peak_bytes"], report["plan"]["limit_bytes"]);
    MSRT_EXPECT_OK(msrt_image_report(image, MSRT_IMAGE_REPORT_SVG, &text));
    EXPECT_EQ(std::string(text).substr(0, 4), "<svg");
    EXPECT_EQ(msrt_image_run(image), MSRT_INVALID_ARGUMENT) << "a job runs once";
    msrt_image_destroy(image);
  }
}

TEST_F(Images, PartsOnRanksHaveTheBitsOfTheWhole) {
  config_.split_rows = 2, config_.split_columns = 2;
  config_.memory_limit_bytes = size_t{1} << 30;
  for (const msrt_executor executor :
       {MSRT_EXECUTOR_HALO, MSRT_EXECUTOR_STREAM, MSRT_EXECUTOR_TILES, MSRT_EXECUTOR_AUTO}) {
    config_.executor = executor;
    std::fill(result_.begin(), result_.end(), -1.0f);
    msrt_image* image = Create();
    ASSERT_NE(image, nullptr);
    MSRT_EXPECT_OK(msrt_image_run(image));
    EXPECT_EQ(result_, Expected()) << executor;
    const char* text = nullptr;
    MSRT_EXPECT_OK(msrt_image_report(image, MSRT_IMAGE_REPORT_JSON, &text));
    EXPECT_EQ(nlohmann::json::parse(text)["ranks"].size(), 4u);
    MSRT_EXPECT_OK(msrt_image_report(image, MSRT_IMAGE_REPORT_SVG, &text));
    EXPECT_EQ(std::string(text).substr(0, 4), "<svg");
    msrt_image_destroy(image);
  }
}

TEST_F(Images, FailingCallbackEndsAllRanks) {
  config_.split_rows = 3;
  config_.memory_limit_bytes = size_t{1} << 30;
  read_status_ = MSRT_IO;
  for (const msrt_executor executor : {MSRT_EXECUTOR_HALO, MSRT_EXECUTOR_STREAM}) {
    config_.executor = executor;
    msrt_image* image = Create();
    EXPECT_EQ(msrt_image_run(image), MSRT_IO) << msrt_error_message();
    EXPECT_NE(std::string(msrt_error_message()).find("config.read returned 9"), std::string::npos)
        << msrt_error_message();
    msrt_image_destroy(image);
  }
}

TEST_F(Images, FileHasTheBitsOfTheWhole) {
  const std::string path = folder_ + "/result.npy";
  output_.write = nullptr, output_.path = path.c_str();
  msrt_image* image = Create();
  MSRT_ASSERT_OK(msrt_image_run(image));
  msrt_image_destroy(image);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::vector<float> expected = Expected();
  const size_t data = expected.size() * sizeof(float);
  ASSERT_GT(bytes.size(), data);
  EXPECT_EQ(std::memcmp(bytes.data() + bytes.size() - data, expected.data(), data), 0);
  Refused(MSRT_INVALID_ARGUMENT, "exists already and is complete");
  config_.overwrite = 1;
  image = Create();
  MSRT_EXPECT_OK(msrt_image_run(image));
  msrt_image_destroy(image);
}

TEST_F(Images, ProgressCanCancel) {
  struct Seen {
    msrt_image* image = nullptr;
    int calls = 0;
  } seen;
  config_.executor = MSRT_EXECUTOR_TILES;
  const std::string path = folder_ + "/cancelled.npy";
  output_.write = nullptr, output_.path = path.c_str();
  config_.progress = [](void* user, const msrt_image_progress* progress) {
    auto* const s = static_cast<Seen*>(user);
    ++s->calls;
    EXPECT_GT(progress->fraction, 0);
    EXPECT_EQ(msrt_image_cancel(s->image), MSRT_OK);
  };
  config_.progress_user = &seen;
  // A small limit makes several tiles.
  for (config_.memory_limit_bytes = 1 << 20; seen.image == nullptr; config_.memory_limit_bytes *= 2)
    (void)msrt_image_create(runtime_, &config_, &seen.image);
  const msrt_status status = msrt_image_run(seen.image);
  EXPECT_EQ(seen.calls, 1);
  // A single tile is done before it can be cancelled.
  if (status != MSRT_OK) {
    EXPECT_EQ(status, MSRT_CANCELLED) << msrt_error_message();
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(std::filesystem::exists(path + ".part"));
  }
  msrt_image_destroy(seen.image);
}

TEST_F(Images, FailingCallbackEndsTheRun) {
  read_status_ = MSRT_IO;
  msrt_image* image = Create();
  EXPECT_EQ(msrt_image_run(image), MSRT_IO);
  EXPECT_NE(std::string(msrt_error_message()).find("config.read returned 9"), std::string::npos);
  msrt_image_destroy(image);
}

TEST_F(Images, ConfigsAreRefusedWithTheReason) {
  const msrt_image_config good = config_;
  source_.channels = 3;
  Refused(MSRT_INVALID_ARGUMENT, "takes 2; choose as many bands");
  source_.channels = kChannels;
  config_.split_rows = -2;
  Refused(MSRT_INVALID_ARGUMENT, "has no parts");
  config_ = good, config_.split_rows = kRows + 1;
  Refused(MSRT_INVALID_ARGUMENT, "cannot be split into");
  config_ = good, config_.executor = MSRT_EXECUTOR_HALO;
  Refused(MSRT_INVALID_ARGUMENT, "needs several ranks");
  config_ = good, config_.executor = 9;
  Refused(MSRT_INVALID_ARGUMENT, "config.executor is 9");
  config_ = good, config_.normalize = "mean=1,2,3";
  Refused(MSRT_INVALID_ARGUMENT, "mean has 3 numbers");
  config_ = good, config_.normalize = "std=0";
  Refused(MSRT_INVALID_ARGUMENT, "std is 0");
  config_ = good, config_.bands = "1,0";
  Refused(MSRT_INVALID_ARGUMENT, "'0' is no band");
  config_ = good, config_.bands = "1,3";
  Refused(MSRT_INVALID_ARGUMENT, "there is no band 3");
  config_ = good, config_.output_count = 0;
  Refused(MSRT_INVALID_ARGUMENT, "no output");
  config_ = good, config_.resume = 1;
  Refused(MSRT_INVALID_ARGUMENT, "its source has an identity");
  config_ = good, config_.read = nullptr;
  Refused(MSRT_INVALID_ARGUMENT, "config.read are both NULL");
  config_ = good, config_.model = "/no/such/model.msrt";
  Refused(MSRT_NOT_FOUND, "/no/such/model.msrt");
  config_ = good, output_.name = "z";
  Refused(MSRT_UNSUPPORTED, "does not follow the rows and columns");
  output_.name = "nothing";
  Refused(MSRT_NOT_FOUND, "no output 'nothing'; it has 'y', 'z'");
  output_.name = nullptr, output_.class_bits = 4;
  Refused(MSRT_INVALID_ARGUMENT, "class_bits is 4");
  config_.struct_size = 1;
  Refused(MSRT_INVALID_ARGUMENT, "struct_size");
}

TEST_F(Images, InsufficientLimitNamesTheAmountThatSuffices) {
  config_.memory_limit_bytes = 1000;
  msrt_image* image = nullptr;
  ASSERT_EQ(msrt_image_create(runtime_, &config_, &image), MSRT_LIMIT_EXCEEDED);
  const std::string message = msrt_error_message(), mark = "set the limit to ";
  const size_t at = message.find(mark);
  ASSERT_NE(at, std::string::npos) << message;
  config_.memory_limit_bytes = std::stoull(message.substr(at + mark.size()));
  image = Create();
  MSRT_EXPECT_OK(msrt_image_run(image));
  EXPECT_EQ(result_, Expected());
  msrt_image_destroy(image);
}

}  // namespace
}  // namespace msrt::testing
