#include "core/train/data/sample.h"

namespace msrt {
namespace {

class CallbackSource final : public SampleSource {
 public:
  explicit CallbackSource(CallbackSamples callback) : callback_(std::move(callback)) {}
  int64_t samples() const override { return callback_.samples; }
  const std::vector<std::string>& class_names() const override { return callback_.class_names; }
  Dims sample_dims() const override { return callback_.sample_dims; }
  bool has_label_maps() const override { return callback_.has_label_maps; }
  std::string NameOf(int64_t index) const override { return StrCat("sample ", index); }
  Status Read(int64_t index, SampleRandom, Picture* out) const override {
    MSRT_RETURN_IF_ERROR(callback_.read(index, out));
    if (out->pixels.size() != static_cast<size_t>(out->channels * out->rows * out->cols))
      return InvalidArgument("the application returned ", out->pixels.size(), " values for ",
                             out->channels, " x ", out->rows, " x ", out->cols);
    return OkStatus();
  }
  uint64_t fingerprint() const override {
    Fingerprint hash;
    hash.Add(callback_.samples);
    for (const std::string& name : callback_.class_names) hash.Add(name);
    return hash.value();
  }

 private:
  const CallbackSamples callback_;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> MakeCallbackSamples(CallbackSamples callback) {
  if (callback.samples < 1 || callback.read == nullptr)
    return InvalidArgument("a dataset of the application needs a function and at least one sample");
  return std::unique_ptr<SampleSource>(std::make_unique<CallbackSource>(std::move(callback)));
}

}  // namespace msrt
