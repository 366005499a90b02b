//===- TensorMaker.cpp - What makers of tensors share ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMaker.h"

#include "../RealNumbers.h"

namespace attune {

using runtime::DType;
using runtime::formatShape;

const CheckpointTensor *
TensorMaker::needShape(const std::string &name, bool hasType, const char *type,
                       const std::vector<int64_t> &shape) {
  const CheckpointTensor *tensor = find(name);
  if (!hasType) {
    fail(name, std::string("has elements of type ") +
                   runtime::dtypeName(tensor->dtype) + ", expected " + type);
    return nullptr;
  }
  if (tensor->shape != shape) {
    fail(name, "has shape " + formatShape(tensor->shape) + ", expected " +
                   formatShape(shape));
    return nullptr;
  }
  result.used.push_back(name);
  return tensor;
}

const CheckpointTensor *TensorMaker::need(const std::string &name, bool words,
                                          const std::vector<int64_t> &shape) {
  const CheckpointTensor *tensor = find(name);
  if (!tensor) {
    fail(name, "is missing; quantization_config asks for it");
    return nullptr;
  }
  return needShape(name, words ? tensor->dtype == DType::I32 : isReal(*tensor),
                   words ? "I32" : "F16, BF16 or F32", shape);
}

const CheckpointTensor *TensorMaker::need(const std::string &name, DType dtype,
                                          const std::vector<int64_t> &shape) {
  const CheckpointTensor *tensor = find(name);
  if (!tensor) {
    fail(name, "is missing; quantization_config asks for it");
    return nullptr;
  }
  return needShape(name, tensor->dtype == dtype, runtime::dtypeName(dtype),
                   shape);
}

bool TensorMaker::finish(const std::string &base, const CheckpointTensor &data,
                         int64_t rows, int64_t columns,
                         std::unique_ptr<TensorEncoding> encoding,
                         DType dtype) {
  CheckpointTensor tensor;
  tensor.name = base + ".weight";
  tensor.shape = {rows, columns};
  tensor.dtype = dtype;
  tensor.data = data.data;
  tensor.offset = data.offset;
  tensor.bytes = data.bytes;
  tensor.encoding = encoding.get();
  result.encodings.push_back(std::move(encoding));
  result.made.push_back(std::move(tensor));
  return true;
}

bool TensorMaker::refuseScales(const std::string &name) {
  return fail(name, config.method == QuantizationMethod::Dense
                        ? "scales weights of the format dense, which tools "
                          "round when they compute; save the folder "
                          "compressed, or without quantization"
                        : "scales what a layer reads (AWQ before another "
                          "quantization), which is not read");
}

} // namespace attune
