//===- QuadProduct.h - Products of four bytes at once -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_QUADPRODUCT_H
#define ATTUNE_CONVERSION_QUADPRODUCT_H

#include "attune/Conversion/KernelBuilder.h"
#include "attune/TargetInfo/TargetDescription.h"

/// VNNI has one instruction for bytes: each i32 lane adds the products of four
/// unsigned bytes of one register and the four signed bytes at the same place
/// of another. So operands lie in quads along the depth of a product (VNNI-4
/// layout). Other CPUs compute the same sums from the same layout, bit by bit.
namespace attune {

/// `4 * lanes` bytes of a tensor.
mlir::Value loadQuads(KernelBuilder &k, mlir::Value tensor,
                      mlir::ValueRange indices, int64_t lanes);
/// The four bytes of a tensor at `indices`, in every lane.
mlir::Value splatQuad(KernelBuilder &k, mlir::Value tensor,
                      mlir::ValueRange indices, int64_t lanes);

/// `sums` of i32, as many as a register holds, plus in each lane the products
/// of the four unsigned bytes in `weights` by the four signed ones in `inputs`.
mlir::Value addQuadProducts(KernelBuilder &k, ByteProducts how,
                            mlir::Value sums, mlir::Value weights,
                            mlir::Value inputs);

/// Whether products of numbers of 4 bits are summed in 16 bits first: that is
/// for CPUs that multiply bytes in pairs only, which AVX2 and AVX-512BW do.
bool sumsNibblesInWords(ByteProducts how, int64_t lanes);
/// `sums` of i16, as many as a register holds, plus in each lane the products
/// of two small unsigned numbers in `weights` by two signed bytes in `inputs`.
mlir::Value addNibblePairs(KernelBuilder &k, mlir::Value sums,
                           mlir::Value weights, mlir::Value inputs);
/// `sums` of i32 plus in each lane two neighbours of `words` of i16.
mlir::Value addPairsOfWords(KernelBuilder &k, mlir::Value sums,
                            mlir::Value words);

/// The values of codes of e2m1, 0 to 15 in integers of any width, twice and
/// plus `kFloatZero`: integers from 0 to 24. `lanes` is how many numbers of 32
/// bits a register of bytes holds, or 0 if there is none.
constexpr int64_t kFloatZero = 12;
mlir::Value doublesOfFloats(KernelBuilder &k, mlir::Value codes,
                            ByteProducts how = ByteProducts::Any,
                            int64_t lanes = 0);

/// Floats of 8 bits are those of 16 with fewer bits of exponent and mantissa,
/// and an exponent that counts from 7 and not from 15: read as such they are
/// too small by this factor.
constexpr double kByteFloatInHalf = 0x1p8;
/// Floats of 8 bits so read, as f32, which holds them: `codes` are i32 with a
/// float in the upper 8 bits.
mlir::Value halvesOfByteFloats(KernelBuilder &k, mlir::Value codes);

} // namespace attune

#endif // ATTUNE_CONVERSION_QUADPRODUCT_H
