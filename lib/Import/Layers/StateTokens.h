//===- StateTokens.h - Tokens that states run over --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_LAYERS_STATETOKENS_H
#define ATTUNE_LIB_IMPORT_LAYERS_STATETOKENS_H

#include "LayerImporter.h"

namespace attune {

/// `count` columns from `first` on.
mlir::Value columns(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value tokens, int64_t first, int64_t count);
/// `count` tokens from number `first` on.
mlir::Value rows(mlir::OpBuilder &builder, mlir::Location loc,
                 mlir::Value tokens, mlir::OpFoldResult first,
                 mlir::OpFoldResult count);
/// Which tokens a mask [batch, 1, 1, tokens] shows: [batch, tokens].
mlir::Value tokensToKeep(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value mask);
/// `tokens` with zeros where the mask hides them.
mlir::Value showTokens(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value tokens, mlir::Value mask);
/// `tokens` behind `past` ones.
mlir::Value joinTokens(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value past, mlir::Value tokens);
/// Tokens behind those that `cache` kept of them, which then keeps the last.
mlir::Value afterCached(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value tokens, LayerScope &scope,
                        mlir::Value &cache);

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_LAYERS_STATETOKENS_H
