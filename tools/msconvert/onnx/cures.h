// Advice on what a user can do about a part of a model that cannot be converted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msrt::onnx_import {

// `opset` is the one that the model imports for the domain; 0: none. `op` is prefixed by its
// domain.
std::string CureForUnknownOp(std::string_view domain, std::string_view op, int64_t opset);

// By words in the reason: shapes, constants, text, sparse tensors, training ...
std::string CureFor(std::string_view reason);

inline constexpr const char* kCureForWrongFile =
    "the file breaks ONNX's rules here: onnx.checker.check_model(model, full_check=True) says "
    "more; export it again";

}  // namespace msrt::onnx_import
