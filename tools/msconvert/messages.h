// Reads messages of foreign formats. They come from files and are hostile until they are checked.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include "core/base/countable.h"
#include "core/graph/tensor.h"

namespace msrt {

// Parses the whole stream as one message, of at most 2 GiB. `format` is for the error.
template <typename Message>
Status ParseMessage(google::protobuf::io::ZeroCopyInputStream* stream, std::string_view format,
                    int max_depth, Message* message) {
  google::protobuf::io::CodedInputStream coded(stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  coded.SetRecursionLimit(max_depth);
  if (message->ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage()) return OkStatus();
  return InvalidModel("the bytes are no ", format, " model: damaged, cut off, or nested more than ",
                      max_depth, " deep");
}

// Returns the dims of a constant tensor: all known, with a product that does not overflow.
template <typename TensorProto>
Result<Dims> DimsOf(const TensorProto& tensor) {
  if (tensor.dims_size() > kMaxRank) {
    return Unsupported("tensor '", tensor.name(), "' has rank ", tensor.dims_size(), ", at most ",
                       kMaxRank, " is supported");
  }
  Dims dims;
  for (int64_t d : tensor.dims()) {
    if (d < 0) return InvalidModel("tensor '", tensor.name(), "' has the dim ", d);
    dims.push_back(d);
  }
  if (!IsCountable(dims))
    return InvalidModel("tensor '", tensor.name(), "' has dims ", dims,
                        ", which are more than 2^56 elements");
  return dims;
}

}  // namespace msrt
