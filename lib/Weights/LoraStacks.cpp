//===- LoraStacks.cpp - Tensors that stacks of adapters are made of -------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/TensorNames.h"
#include "attune/Weights/LoraBranches.h"
#include "attune/Weights/WeightFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace attune {
namespace {
/// One source of a stack of one layer.
struct Piece {
  std::string tensor, stacked; ///< of the base, and the source's own
  int64_t begin, rank, total;
  int64_t rows, columns; ///< of the matrix that the stack is for
  bool isUp;
};
} // namespace

static void addPiece(const Piece &piece, const LoraBranches &branches,
                     Checkpoint &checkpoint) {
  const CheckpointTensor *base = checkpoint.find(piece.tensor);
  if (!base) // which the check of all weights says
    return;
  int64_t count = 1;
  for (int64_t size : base->shape)
    count *= size;
  // A tensor may have more rows than the matrix takes.
  int64_t outer = count / piece.columns;
  for (size_t adapter = 0; adapter < branches.names().size(); ++adapter) {
    std::string name =
        substitutePart(piece.stacked, static_cast<int64_t>(adapter));
    if (checkpoint.find(name))
      continue;
    if (piece.isUp)
      checkpoint.addValues(name, {outer, piece.total},
                           branches.makeUp(piece.tensor, adapter, outer,
                                           piece.begin, piece.total));
    else
      checkpoint.addValues(
          name, {piece.rank, piece.columns},
          branches.makeDown(piece.tensor, adapter, piece.rank, piece.columns));
  }
}

void addLoraStacks(mlir::ModuleOp module, const LoraBranches &branches,
                   Checkpoint &checkpoint) {
  constexpr llvm::StringLiteral down = ".lora_A.{e}", up = ".lora_B.{e}";
  for (WeightOp stack : module.getOps<WeightOp>()) {
    auto lora = stack->getAttrOfType<mlir::DictionaryAttr>("attune.lora");
    if (!lora)
      continue;
    auto numbers = [&](llvm::StringRef name) {
      return lora.getAs<mlir::DenseI64ArrayAttr>(name).asArrayRef();
    };
    auto total = lora.getAs<mlir::IntegerAttr>("total").getInt();
    for (auto [number, source] :
         llvm::enumerate(stack.getSources().getAsRange<WeightSourceAttr>())) {
      llvm::StringRef name = source.getTensor(), base = name;
      bool isUp = base.consume_back(up);
      if (!isUp)
        base.consume_back(down);
      for (int64_t layer = 0; layer < stack.getNumLayers(); ++layer)
        addPiece({substituteLayer(base.str(), layer),
                  substituteLayer(name.str(), layer), numbers("begins")[number],
                  numbers("ranks")[number], total, numbers("matrix")[0],
                  numbers("matrix")[1], isUp},
                 branches, checkpoint);
    }
  }
}

} // namespace attune
