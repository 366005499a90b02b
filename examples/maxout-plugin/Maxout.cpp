//===- Maxout.cpp - A kind of layer that a plugin brings ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Import/HuggingFace/Architecture.h"
#include "attune/Import/LayerBuilder.h"
#include "attune/Pipelines/Pipelines.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

#include "MaxoutDialect.h.inc"
#define GET_OP_CLASSES
#include "MaxoutOps.h.inc"

#include "MaxoutDialect.cpp.inc"
#define GET_OP_CLASSES
#include "MaxoutOps.cpp.inc"

void maxout::MaxoutDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "MaxoutOps.cpp.inc"
      >();
}

using namespace attune;

namespace {
/// maxout.larger as arith.maximumf, which Attune's pipelines lower.
struct LowerMaxout
    : mlir::PassWrapper<LowerMaxout, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerMaxout)
  llvm::StringRef getArgument() const final { return "maxout-lower"; }
  llvm::StringRef getDescription() const final {
    return "Write maxout.larger in arith";
  }
  void getDependentDialects(mlir::DialectRegistry &registry) const final {
    registry.insert<mlir::arith::ArithDialect>();
  }
  void runOnOperation() final {
    getOperation().walk([](maxout::LargerOp op) {
      mlir::OpBuilder builder(op);
      op.replaceAllUsesWith(mlir::Value(mlir::arith::MaximumFOp::create(
          builder, op.getLoc(), op.getLhs(), op.getRhs())));
      op.erase();
    });
  }
};
} // namespace

static std::string roleOf(int64_t piece) {
  return "pieces." + std::to_string(piece) + ".weight";
}

/// What follows from {"maxout": {"out": N, "pieces": k}}.
static void describe(spec::Extension &layer, int64_t inputWidth, int64_t &width,
                     const spec::LayerKind::Report &report) {
  int64_t out = std::get<int64_t>(layer.options.at("out"));
  int64_t pieces = spec::optionOr<int64_t>(layer, "pieces", 2);
  if (pieces > 64)
    report("pieces", "more than 64 pieces are no maxout layer but a mistake");
  for (int64_t i = 0; i < std::min<int64_t>(pieces, 64); ++i)
    layer.weights.push_back({roleOf(i), out, inputWidth});
  layer.flopsPerToken = 2.0 * double(inputWidth) * double(out) * double(pieces);
  width = out;
}

/// y = max over the pieces of x W_i.
static mlir::Value build(const LayerBuilder &made, mlir::Value input) {
  mlir::OpBuilder &builder = made.builder;
  builder.getContext()->loadDialect<maxout::MaxoutDialect>();
  auto inputType = llvm::cast<mlir::RankedTensorType>(input.getType());
  llvm::SmallVector<int64_t> shape(inputType.getShape());
  shape.back() = made.width;
  auto type = inputType.clone(shape);
  mlir::Value result;
  for (const spec::WeightRole &role : made.layer.weights) {
    mlir::Value weight = made.weight(role.role);
    if (!weight)
      return {};
    mlir::Value piece =
        LinearOp::create(builder, made.loc, type, input, weight,
                         /*bias=*/mlir::Value(), /*residual=*/mlir::Value(),
                         Activation::Identity, /*gated=*/false,
                         /*scale=*/mlir::FloatAttr());
    result = result ? maxout::LargerOp::create(builder, made.loc, result, piece)
                          .getResult()
                    : piece;
  }
  return result;
}

/// Defined in OpenAIGPT.cpp.
std::optional<spec::Model> importOpenAIGPT(hf::ImportContext &context);

static void registerAll() {
  mlir::PassRegistration<LowerMaxout>();
  registerInsertion({"after-import", "maxout-lower"});
  using Form = spec::LayerOption::Form;
  registerLayer({"maxout",
                 "max over pieces of x W_i (Goodfellow et al. 2013).",
                 {{"out", Form::Integer, "channels", /*required=*/true},
                  {"pieces", Form::Integer, "products; default 2"}},
                 /*perToken=*/true,
                 describe},
                build);
  hf::registerArchitecture({"openai-gpt",
                            {{"OpenAIGPTLMHeadModel", hf::Head::LanguageModel},
                             {"OpenAIGPTModel", hf::Head::None}},
                            importOpenAIGPT});
}

extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Maxout", LLVM_VERSION_STRING, registerAll};
}

extern "C" mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Maxout", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) {
            registry->insert<maxout::MaxoutDialect>();
          }};
}
