#include "tests/conformance/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/half.h"
#include "core/base/io.h"
#include "core/base/small_float.h"

namespace msrt::testing {
namespace {

using Json = nlohmann::json;

struct CaseFile {
  Bytes bytes;
  size_t data_start = 0;
};

ConstTensor ReadTensor(const Json& j, const CaseFile& file) {
  ConstTensor t;
  t.dtype = DTypeFromName(j.at("dtype").get<std::string>()).value();
  for (int64_t d : j.at("dims")) t.dims.push_back(d);
  const size_t bytes = BytesOf(t.dtype, t.dims.elements());
  t.bytes = file.bytes.data.subspan(file.data_start + j.at("offset").get<size_t>(), bytes);
  t.owner = file.bytes.owner;
  return t;
}

AttrValue ReadAttr(const Json& j, const CaseFile& file) {
  const auto kind = j.at("kind").get<std::string>();
  const Json& v = j.at("value");
  if (kind == "int") return v.get<int64_t>();
  if (kind == "float") return v.get<double>();
  if (kind == "string") return v.get<std::string>();
  if (kind == "ints") return v.get<std::vector<int64_t>>();
  if (kind == "floats") return v.get<std::vector<double>>();
  if (kind == "strings") return v.get<std::vector<std::string>>();
  if (kind == "type") return DTypeFromName(v.get<std::string>()).value();
  return ReadTensor(v, file);
}

OpCase ReadCase(const Json& j, const CaseFile& file) {
  OpCase c;
  c.name = j.at("name");
  c.domain = j.at("domain");
  c.op = j.at("op");
  c.oracle = j.at("oracle");
  c.rtol = j.at("rtol");
  c.atol = j.at("atol");
  for (const auto& [name, value] : j.at("attrs").items()) c.attrs.Set(name, ReadAttr(value, file));
  for (const Json& i : j.at("inputs")) {
    CaseInput input;
    if (!i.is_null()) input = {ReadTensor(i, file), i.at("constant").get<bool>()};
    c.inputs.push_back(std::move(input));
  }
  for (const Json& o : j.at("outputs")) {
    c.expected.push_back(o.is_null() ? std::nullopt : std::optional(ReadTensor(o, file)));
  }
  return c;
}

void ReadFileInto(const std::string& path, std::vector<OpCase>* out) {
  auto bytes = DefaultIo()->ReadFile(path, DefaultAllocator());
  if (!bytes.ok() || bytes->data.size() < 16 ||
      std::memcmp(bytes->data.data(), "MSRTCASE", 8) != 0) {
    std::cerr << "cannot read op cases from " << path << "\n";
    std::exit(1);
  }
  uint64_t json_bytes;
  std::memcpy(&json_bytes, bytes->data.data() + 8, 8);
  const char* text = reinterpret_cast<const char*>(bytes->data.data()) + 16;
  const Json all = Json::parse(text, text + json_bytes);
  CaseFile file{*bytes, (16 + json_bytes + 63) / 64 * 64};
  for (const Json& j : all.at("cases")) out->push_back(ReadCase(j, file));
}

double ElementAsDouble(const ConstTensor& t, size_t i) {
  switch (t.dtype) {
    case DType::kF64:
      return t.As<double>()[i];
    case DType::kF32:
      return t.As<float>()[i];
    case DType::kF16:
      return t.As<Half>()[i];
    case DType::kBF16:
      return t.As<BFloat16>()[i];
    case DType::kI8:
      return t.As<int8_t>()[i];
    case DType::kI16:
      return t.As<int16_t>()[i];
    case DType::kI32:
      return t.As<int32_t>()[i];
    case DType::kI64:
      return static_cast<double>(t.As<int64_t>()[i]);
    case DType::kU8:
      return t.As<uint8_t>()[i];
    case DType::kU16:
      return t.As<uint16_t>()[i];
    case DType::kU32:
      return t.As<uint32_t>()[i];
    case DType::kU64:
      return static_cast<double>(t.As<uint64_t>()[i]);
    case DType::kBool:
      return t.As<uint8_t>()[i];
    case DType::kF8E4M3FN:
      return DecodeSmallFloat(t.As<uint8_t>()[i], kE4M3FN);
    case DType::kF8E4M3FNUZ:
      return DecodeSmallFloat(t.As<uint8_t>()[i], kE4M3FNUZ);
    case DType::kF8E5M2:
      return DecodeSmallFloat(t.As<uint8_t>()[i], kE5M2);
    case DType::kF8E5M2FNUZ:
      return DecodeSmallFloat(t.As<uint8_t>()[i], kE5M2FNUZ);
    default:
      std::cerr << "no comparison for " << DTypeName(t.dtype) << "\n";
      std::exit(1);
  }
}

}  // namespace

const std::vector<OpCase>& AllOpCases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(MSRT_TEST_DATA "/ops")) {
      if (entry.path().extension() == ".cases") paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<OpCase> all;
    for (const std::string& p : paths) ReadFileInto(p, &all);
    return all;
  }();
  return cases;
}

std::vector<OpCase> OpCasesOf(const std::string& file) {
  std::vector<OpCase> cases;
  ReadFileInto(MSRT_TEST_DATA "/" + file, &cases);
  return cases;
}

std::string Difference(const ConstTensor& got, const ConstTensor& expected, double rtol,
                       double atol) {
  if (got.dtype != expected.dtype || !(got.dims == expected.dims)) {
    return StrCat("type ", got.type(), ", expected ", expected.type());
  }
  const bool bitwise = rtol == 0 && atol == 0;
  if (bitwise && got.bytes.size() == expected.bytes.size() &&
      (got.bytes.empty() ||
       std::memcmp(got.bytes.data(), expected.bytes.data(), got.bytes.size()) == 0)) {
    return "";
  }
  if (BitsOf(got.dtype) < 8) {  // no NaN, no addressable elements: comparing bytes is enough
    const auto differ =
        std::mismatch(got.bytes.begin(), got.bytes.end(), expected.bytes.begin()).first -
        got.bytes.begin();
    return differ == std::ssize(got.bytes)
               ? ""
               : StrCat("byte ", differ, " of ", got.type(), " differs");
  }
  const size_t element_bytes = static_cast<size_t>(BitsOf(got.dtype)) / 8;
  for (size_t i = 0; i < static_cast<size_t>(got.dims.elements()); ++i) {
    if (std::memcmp(got.bytes.data() + i * element_bytes, expected.bytes.data() + i * element_bytes,
                    element_bytes) == 0)
      continue;
    const double a = ElementAsDouble(got, i), b = ElementAsDouble(expected, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (!bitwise && a == b) continue;  // infinities, and zeros of both signs
    if (!bitwise && std::abs(a - b) <= atol + rtol * std::abs(b)) continue;
    return StrCat("element ", i, " of ", got.type(), " is ", a, ", expected ", b, ", difference ",
                  std::abs(a - b));
  }
  return "";
}

}  // namespace msrt::testing
