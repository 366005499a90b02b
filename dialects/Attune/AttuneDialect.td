//===- AttuneDialect.td - The dialect and its op base class --*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_DIALECT_TD
#define ATTUNE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Attune_Dialect : Dialect {
  let name = "attune";
  let cppNamespace = "::attune";
  let summary = "Transformers as their authors write them: attention, norms, "
                "feed-forward layers, positions, weights and caches";
  let description = [{
    Tensors in, tensors out. Every op states a formula and where it rounds;
    statistics of softmax and norms are in f32 whatever the storage type.
    Weights are symbols that name tensors of a checkpoint, never constants.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let extraClassDeclaration = [{
    /// Discardable string attribute of the last op of an attention chain:
    /// "auto" (the default), "off" or "required".
    static constexpr ::llvm::StringLiteral kFusionAttr = "attune.fusion";

    void registerAttributes();
    void registerAttentionOps();
    void registerCacheOps();
    void registerEmbeddingOps();
    void registerFFNOps();
    void registerIntoOps();
    void registerLinearAttentionOps();
    void registerMoEOps();
    void registerLossOps();
    void registerNormOps();
    void registerQuantizationOps();
    void registerRecurrentOps();
    void registerSamplingOps();
    void registerStateSpaceOps();
    void registerTileOps();
    void registerTokenOps();
    void registerViewOps();
    void registerWeightOps();
  }];
}

class Attune_Op<string mnemonic, list<Trait> traits = []>
    : Op<Attune_Dialect, mnemonic, traits>;

#endif // ATTUNE_DIALECT_TD
