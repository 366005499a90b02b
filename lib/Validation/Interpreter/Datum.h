//===- Datum.h - Values that the interpreter computes with ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_DATUM_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_DATUM_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace attune::validation {

using Shape = llvm::SmallVector<int64_t, 4>;

/// One number: floats of every type as a double, integers sign-extended (i1 is
/// 0 or 1).
union Scalar {
  double f;
  int64_t i;
};
inline Scalar real(double value) {
  Scalar s;
  s.f = value;
  return s;
}
inline Scalar whole(int64_t value) {
  Scalar s;
  s.i = value;
  return s;
}

/// The nearest value of the type: what storing it there would leave.
double roundTo(mlir::Type type, double value);
int64_t wrapTo(mlir::Type type, int64_t value);
/// Bits as an unsigned number.
uint64_t unsignedOf(mlir::Type type, int64_t value);
unsigned bitsOf(mlir::Type type);
int64_t bytesOf(mlir::Type type);

Scalar loadScalar(mlir::Type type, const uint8_t *from);
void storeScalar(mlir::Type type, uint8_t *to, Scalar value);
/// The contents of memory that nobody wrote: NaN, or a number that stands out.
Scalar poison(mlir::Type type);

int64_t volume(llvm::ArrayRef<int64_t> shape);
/// Steps to the next index in row-major order; false behind the last one.
bool advance(llvm::MutableArrayRef<int64_t> index,
             llvm::ArrayRef<int64_t> shape);
int64_t flatten(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape);

struct Box : llvm::RefCountedBase<Box> {
  virtual ~Box() = default;
};

/// A tensor or a vector.
struct Array final : Box {
  Array(llvm::ArrayRef<int64_t> shape, Scalar fill)
      : shape(shape.begin(), shape.end()), data(volume(shape), fill) {}
  Shape shape;
  std::vector<Scalar> data;
};

/// A block of bytes that one operation allocated.
struct Memory final : Box {
  explicit Memory(int64_t bytes) : bytes(bytes, 0xff) {}
  std::vector<uint8_t> bytes;
};

/// A memref. The bounds are those of the block it is a view of.
struct View final : Box {
  llvm::IntrusiveRefCntPtr<Memory> memory;
  uint8_t *base = nullptr; ///< of element 0, without `offset`
  int64_t offset = 0;      ///< in elements
  Shape shape, strides;
};

/// An element of `llvm.struct` and `llvm.array`.
struct Datum;
struct Aggregate final : Box {
  std::vector<Datum> items;
};

struct Datum {
  Scalar scalar = whole(0);
  llvm::IntrusiveRefCntPtr<Box> box;

  Datum() = default;
  Datum(Scalar scalar) : scalar(scalar) {}
  explicit Datum(Box *box) : box(box) {}

  int64_t integer() const { return scalar.i; }
  Array &array() const { return static_cast<Array &>(*box); }
  View &view() const { return static_cast<View &>(*box); }
  /// The array, copied first if somebody else holds it too.
  Array &ownArray() {
    if (box->UseCount() > 1)
      box = new Array(array());
    return array();
  }
};

inline Datum makeArray(llvm::ArrayRef<int64_t> shape, Scalar fill) {
  return Datum(new Array(shape, fill));
}

/// A fresh memref in row-major order.
Datum allocate(mlir::Type element, llvm::ArrayRef<int64_t> shape);
/// The values of a memref as an array.
Datum readView(const View &view, mlir::Type element);
void writeView(const View &view, mlir::Type element, const Array &array);
/// The place of an element, or null if it is outside the view or its memory.
uint8_t *addressOf(const View &view, mlir::Type element,
                   llvm::ArrayRef<int64_t> index);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_DATUM_H
