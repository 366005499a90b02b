//===- CalibratedEncoding.h - Matrices rounded with their inputs ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_CALIBRATEDENCODING_H
#define ATTUNE_LIB_WEIGHTS_CALIBRATEDENCODING_H

#include "WeightPacker.h"
#include "attune/Weights/CompensatedRounding.h"
#include "attune/Weights/TensorEncoding.h"

#include <memory>
#include <mutex>

namespace attune {

/// One layer of a matrix in few bits.
class CalibratedMatrix final : public SharedResult {
public:
  /// `whole` is read row by row as f32; `products` are those of all columns of
  /// the matrix that it is a part of, and outlive this.
  CalibratedMatrix(std::unique_ptr<PackedMatrix> whole, const float *products,
                   const StoredForm &form)
      : whole(std::move(whole)), products(products), form(form) {}

  const RoundedMatrix &get();

  // After the last task.
  const RoundedMatrix &getErrors() const { return rounded; }
  const StoredForm &getForm() const { return form; }
  const PackedMatrix &getWhole() const { return *whole; }

private:
  void release() override;

  std::unique_ptr<PackedMatrix> whole;
  const float *products;
  StoredForm form;
  std::once_flag once;
  RoundedMatrix rounded;
};

/// Its numbers and scales as a tensor.
struct CalibratedEncoding final : TensorEncoding {
  explicit CalibratedEncoding(std::shared_ptr<CalibratedMatrix> matrix)
      : matrix(std::move(matrix)) {}

  const char *name() const override { return "calibrated"; }
  bool isQuantized() const override { return false; }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override;
  StoredForm form() const override { return matrix->getForm(); }
  GroupScale readGroup(const CheckpointTensor &, int64_t first,
                       uint8_t *numbers) const override;

  std::shared_ptr<CalibratedMatrix> matrix;
  CheckpointTensor tensor; ///< that has this encoding
};

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_CALIBRATEDENCODING_H
