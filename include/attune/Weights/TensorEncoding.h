//===- TensorEncoding.h - Values that a file keeps in few bits --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_TENSORENCODING_H
#define ATTUNE_WEIGHTS_TENSORENCODING_H

#include "attune/Runtime/Safetensors.h"
#include "attune/Weights/StoredForm.h"

#include <cstdint>
#include <vector>

namespace attune {

class TensorEncoding;

/// A tensor of a checkpoint. `data` is what the file holds; with an `encoding`
/// only that knows what it means, `dtype` is the narrowest of F32 and BF16 that
/// holds every value, and `bytes` is the size in the file.
struct CheckpointTensor : runtime::TensorInfo {
  const TensorEncoding *encoding = nullptr;
};

/// How values are kept: blocks of GGUF, packed integers with scales beside
/// them, ... Decoding is a function of the tensor alone, so that several
/// threads may decode parts of one tensor, each a little at a time.
class TensorEncoding {
public:
  virtual ~TensorEncoding() = default;

  /// As the format calls it: "Q4_0".
  virtual const char *name() const = 0;
  /// Whether the file keeps the values in fewer bits than floats have.
  virtual bool isQuantized() const { return true; }
  /// Values [first, first + count) in row-major order.
  virtual void decode(const CheckpointTensor &tensor, int64_t first,
                      int64_t count, float *out) const = 0;
  /// Whether all values are numbers times the scale of their group, from
  /// column 0 on.
  virtual StoredForm form() const { return {}; }
  /// The order in which columns make groups, if they do not as they stand: the
  /// column that comes at each place. Else empty.
  virtual const std::vector<int32_t> &order() const;
  /// The numbers of the group that starts at value `first`, with columns in
  /// that order, as they are stored: unsigned, zero points not subtracted; of
  /// floats their codes. A scale is NaN if one of them is no number.
  virtual GroupScale readGroup(const CheckpointTensor &tensor, int64_t first,
                               uint8_t *numbers) const {
    return {};
  }
  /// The scale of that group, of a form with scales in two levels. Numbers are
  /// those that readGroup gives, except where this scale is 0.
  virtual GroupLevels readLevels(const CheckpointTensor &tensor,
                                 int64_t first) const {
    return {};
  }
};

/// The stored form of a tensor that has an encoding.
StoredTensor storedAs(const CheckpointTensor &tensor);

} // namespace attune

#endif // ATTUNE_WEIGHTS_TENSORENCODING_H
