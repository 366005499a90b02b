//===- ImportedWeightsTest.cpp - Checkpoints of imported modules ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Import/Files.h"
#include "Attune/AttuneDialect.h"
#include "attune/Import/HuggingFace.h"
#include "attune/Import/ImportSpec.h"
#include "attune/Weights/WeightFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace attune;
using namespace attune::test;

/// The module of a folder needs what the description needs, and its first
/// weight, the embedding, is packed as it lies in the file.
static void checkFolder(const std::string &path) {
  SCOPED_TRACE(path);
  Recorder diags;
  auto imported = importHuggingFace(path, diags);
  ASSERT_TRUE(imported) << diags.all();
  auto checkpoint = Checkpoint::open(imported->checkpointPath, diags);
  ASSERT_TRUE(checkpoint) << diags.all();
  mlir::MLIRContext context;
  context.loadDialect<AttuneDialect, mlir::arith::ArithDialect,
                      mlir::func::FuncDialect, mlir::scf::SCFDialect,
                      mlir::tensor::TensorDialect>();
  auto module = importSpec(context, imported->model, {}, diags);
  ASSERT_TRUE(module) << diags.all();
  EXPECT_TRUE(checkWeights(*module, *checkpoint, diags, imported->model.file));
  EXPECT_EQ(diags.all(), "");

  auto layout = layoutWeights(*module);
  ASSERT_TRUE(succeeded(layout));
  std::vector<uint8_t> blob(layout->totalBytes);
  ASSERT_TRUE(packWeights(*module, {&*checkpoint, 0, 2}, blob.data(), diags))
      << diags.all();
  auto table = *module->getOps<WeightOp>().begin();
  auto source = mlir::cast<WeightSourceAttr>(table.getSources()[0]);
  const runtime::TensorInfo *info = checkpoint->find(source.getTensor());
  ASSERT_TRUE(info);
  const WeightPlace &place = *layout->lookup(table.getSymName());
  ASSERT_EQ(uint64_t(place.layerBytes), info->bytes);
  EXPECT_EQ(std::memcmp(blob.data() + place.offset, info->data, info->bytes),
            0);
}

TEST(ImportedWeights, Folders) {
  checkFolder(ATTUNE_EXAMPLES_DIR "/storyteller");
  for (const char *name :
       {"gpt2", "gpt2_f16", "llama_bf16", "llama_yarn", "llama_gqa_llama3rope"})
    checkFolder(ATTUNE_TEST_DIR "/Integration/CPU/oracle/hf/" +
                std::string(name));
}
