//===- DescribeProduct.cpp - Self-description of a product ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneShapes.h"
#include "attune/Runtime/Metadata.h"
#include "attune/Target/CPU/CPUBackend.h"
#include "attune/Target/Entries.h"
#include "attune/Weights/WeightLayout.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace attune {

/// A size as shapes have it: a name or a number.
static llvm::json::Value describeSize(Attribute size) {
  if (auto symbol = dyn_cast<StringAttr>(size))
    return symbol.getValue();
  return cast<IntegerAttr>(size).getInt();
}

/// One argument of an entry; null if it lacks what the runtime must know.
static std::optional<llvm::json::Object> describeArgument(func::FuncOp entry,
                                                          unsigned number) {
  auto kind = entry.getArgAttrOfType<StringAttr>(number, "attune.kind");
  if (!kind)
    return std::nullopt;
  llvm::json::Object object{{"kind", kind.getValue()}};
  for (const char *name : {"window", "slack", "sharers"})
    if (auto size = entry.getArgAttrOfType<IntegerAttr>(
            number, (Twine("attune.") + name).str()))
      object[name] = size.getInt();
  if (kind.getValue() == "weights" || kind.getValue() == "past")
    return object;
  auto name = entry.getArgAttrOfType<StringAttr>(number, "attune.name");
  if (kind.getValue() == "size") {
    if (!name)
      return std::nullopt;
    object["name"] = name.getValue();
    return object;
  }
  auto type = dyn_cast<MemRefType>(entry.getArgumentTypes()[number]);
  auto shape = entry.getArgAttrOfType<ArrayAttr>(number, "attune.shape");
  if (!type || !name || !shape || !nameOfElement(type.getElementType()))
    return std::nullopt;
  object["name"] = name.getValue();
  object["dtype"] = nameOfElement(type.getElementType());
  llvm::json::Array sizes;
  for (Attribute size : shape)
    if (!isa<StringAttr, IntegerAttr>(size))
      return std::nullopt;
    else
      sizes.push_back(describeSize(size));
  object["shape"] = std::move(sizes);
  if (Attribute places = entry.getArgAttr(number, "attune.places");
      isa_and_nonnull<StringAttr, IntegerAttr>(places))
    object["places"] = describeSize(places);
  if (auto bound = entry.getArgAttrOfType<IntegerAttr>(number, "attune.max"))
    object["max"] = bound.getInt();
  if (auto id = entry.getArgAttrOfType<IntegerAttr>(number, "attune.ignored"))
    object["ignored"] = id.getInt();
  for (const char *key : {"inserted", "each"})
    if (auto value = entry.getArgAttrOfType<IntegerAttr>(
            number, (Twine("attune.") + key).str()))
      object[key] = value.getInt();
  if (auto value =
          entry.getArgAttrOfType<StringAttr>(number, "attune.bidirectional"))
    object["bidirectional"] = value.getValue();
  if (SmallVector<int64_t> most = longestSizes(entry, number); !most.empty())
    object["longest"] = llvm::json::Array(most);
  if (auto value = entry.getArgAttrOfType<StringAttr>(number, "attune.default"))
    object["default"] = value.getValue();
  if (entry.getArgAttr(number, "attune.of_rank"))
    object["of_rank"] = true;
  return object;
}

void attachDescription(ModuleOp module, StringRef metadata,
                       ArrayRef<StringRef> entries, const ProductInfo &info) {
  Builder b(module.getContext());
  module->setAttr("attune.metadata", b.getStringAttr(metadata));
  module->setAttr("attune.entries", b.getStrArrayAttr(entries));
  // Without a tokenizer nobody can talk with it.
  if (!info.tokenizer.empty()) {
    module->setAttr("attune.serves", b.getUnitAttr());
    module->setAttr("attune.tokenizer", b.getStringAttr(info.tokenizer));
  }
  if (!info.imagesJson.empty())
    module->setAttr("attune.sees", b.getUnitAttr());
}

/// The entries, whose names go to `names` too.
static FailureOr<llvm::json::Array>
describeEntries(ModuleOp module, SmallVectorImpl<StringRef> &names) {
  llvm::json::Array entries;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr("attune.entry"))
      continue;
    if (func.getNumResults() > 0) {
      func.emitError("'@") << func.getSymName()
                           << "' gives back memory of its own, but callers "
                              "have memory for all results: no two of them "
                              "can be the same cache";
      return failure();
    }
    llvm::json::Array arguments;
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      std::optional<llvm::json::Object> argument = describeArgument(func, i);
      if (!argument) {
        func.emitOpError("argument ")
            << i << " of an entry does not say its kind, name, type or shape";
        return failure();
      }
      arguments.push_back(std::move(*argument));
    }
    llvm::json::Object entry{{"name", func.getSymName()},
                             {"args", std::move(arguments)}};
    if (auto length =
            func->getAttrOfType<IntegerAttr>("attune.recompute_beyond"))
      entry["recompute_beyond"] = length.getInt();
    entries.push_back(std::move(entry));
    names.push_back(func.getSymName());
    func->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                  UnitAttr::get(module.getContext()));
  }
  return entries;
}

/// How texts begin and end, and are chosen.
static llvm::json::Object describeGeneration(const ProductInfo &info) {
  llvm::json::Object generation;
  if (!info.eos.empty())
    generation["eos"] = llvm::json::Array(info.eos);
  if (info.bos)
    generation["bos"] = *info.bos;
  if (info.pad)
    generation["pad"] = *info.pad;
  if (info.decoderStart)
    generation["decoder_start"] = *info.decoderStart;
  if (info.forcedBos)
    generation["forced_bos"] = *info.forcedBos;
  if (!info.suppress.empty())
    generation["suppress"] = llvm::json::Array(info.suppress);
  if (!info.beginSuppress.empty())
    generation["begin_suppress"] = llvm::json::Array(info.beginSuppress);
  llvm::json::Object sampling;
  for (const auto &[name, value] : info.sampling)
    sampling[name] = value;
  if (!sampling.empty())
    generation["sampling"] = std::move(sampling);
  return generation;
}

/// How many processes share the model, if several do.
static std::optional<llvm::json::Object>
describeMesh(ModuleOp module, const WeightLayout &layout) {
  auto groups = module->getAttrOfType<IntegerAttr>("attune.groups");
  auto sharers = module->getAttrOfType<IntegerAttr>("attune.sharers");
  if (layout.ranks <= 1 && !groups && !sharers)
    return std::nullopt;
  llvm::json::Object mesh{{"ranks", layout.ranks},
                          {"shared_bytes", layout.sharedBytes}};
  if (sharers)
    mesh["sharers"] = sharers.getInt();
  if (groups)
    mesh["groups"] = groups.getInt();
  return mesh;
}

static llvm::json::Object describeEmbedding(const ProductInfo &info) {
  llvm::json::Object embedding;
  if (!info.pooling.empty())
    embedding["pooling"] = info.pooling;
  if (info.normalizes)
    embedding["normalize"] = true;
  if (info.mostTokens)
    embedding["max_tokens"] = *info.mostTokens;
  llvm::json::Object prompts;
  for (const auto &[name, prompt] : info.prompts)
    prompts[name] = prompt;
  if (!prompts.empty())
    embedding["prompts"] = std::move(prompts);
  if (!info.defaultPrompt.empty())
    embedding["default_prompt"] = info.defaultPrompt;
  return embedding;
}

/// What the code takes for granted of the CPU.
static llvm::json::Array describeNeeds(ModuleOp module,
                                       const ProductInfo &info) {
  llvm::json::Array needs(info.needs);
  bool hasPairs = false, hasQuads = false;
  module.walk([&](Operation *op) {
    hasPairs |= isa<amx::TileMulFOp>(op);
    hasQuads |= isa<amx::TileMulIOp>(op);
  });
  if (hasPairs)
    needs.push_back("amx_bf16");
  if (hasQuads)
    needs.push_back("amx_int8");
  if (hasPairs || hasQuads)
    needs.push_back("amx_tile");
  return needs;
}

/// Adds what others have described as JSON.
static LogicalResult addGiven(ModuleOp module, const ProductInfo &info,
                              llvm::json::Object &metadata) {
  auto add = [&](llvm::StringRef key, llvm::StringRef text,
                 const char *what) -> LogicalResult {
    if (text.empty())
      return success();
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
    if (!value) {
      llvm::consumeError(value.takeError());
      return module.emitError(what) << " is not JSON";
    }
    metadata[key] = std::move(*value);
    return success();
  };
  return success(
      succeeded(add("chat", info.chatJson, "the chat template")) &&
      succeeded(add("audio", info.audioJson, "what it hears")) &&
      succeeded(add("codes", info.codesJson, "what it plays")) &&
      succeeded(add("playback", info.playbackJson, "how it is played")) &&
      succeeded(add("images", info.imagesJson, "preprocessor_config.json")) &&
      succeeded(add("inspect", info.inspectJson, "the inspection report")));
}

LogicalResult describeProduct(ModuleOp module, const ProductInfo &info) {
  FailureOr<WeightLayout> layout = layoutWeights(module);
  if (failed(layout))
    return failure();
  SmallVector<StringRef> names;
  FailureOr<llvm::json::Array> entries = describeEntries(module, names);
  if (failed(entries))
    return failure();
  llvm::json::Object metadata{
      {"name", info.name},
      {"abi", ATTUNE_ABI_VERSION},
      {"entries", std::move(*entries)},
      {"context", info.context},
      {"weights_bytes", layout->seenBytes()},
      {"weights_layout", llvm::utohexstr(layout->fingerprint,
                                         /*LowerCase=*/true,
                                         /*Width=*/16)},
      {"generation", describeGeneration(info)}};
  if (!info.decodesAlone.empty())
    metadata["decodes_alone"] = info.decodesAlone;
  if (!info.adapters.empty())
    metadata["adapters"] = llvm::json::Array(info.adapters);
  if (auto mesh = describeMesh(module, *layout))
    metadata["mesh"] = std::move(*mesh);
  if (auto embedding = describeEmbedding(info); !embedding.empty())
    metadata["embedding"] = std::move(embedding);
  if (auto needs = describeNeeds(module, info); !needs.empty())
    metadata["needs"] = std::move(needs);
  if (!info.tokenizer.empty())
    metadata["tokenizer"] = llvm::json::Object{
        {"bytes", static_cast<int64_t>(info.tokenizer.size())},
        {"kind", info.tokenizerKind}};
  if (failed(addGiven(module, info, metadata)))
    return failure();
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(metadata));
  // Handwritten IR may say what no product can read.
  runtime::ModelInfo read;
  runtime::Error problem;
  if (!runtime::parseModelInfo(text, names.size(), read, problem))
    return module.emitError(problem.message);
  // The translation to LLVM IR has no use for what now stands in the metadata.
  for (auto func : module.getOps<func::FuncOp>()) {
    func.removeArgAttrsAttr();
    func->removeDiscardableAttr("attune.entry");
  }
  attachDescription(module, text, names, info);
  return success();
}

} // namespace attune
