//===- CHeader.cpp - The header of a compiled library -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CHeader.h"

#include "attune/Runtime/Metadata.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace attune;
using namespace attune::driver;

/// The text of the runtime's C headers, from EmbeddedHeader.cpp.in.
extern const char *const attuneEmbeddedHeader;

/// A name as it may stand in a comment.
static std::string quote(const std::string &text) {
  std::string result;
  for (char c : text)
    result += c == '*' || c == '/' || c == '\n' ? '_' : c;
  return result;
}

static void describe(const runtime::EntryInfo &entry, std::string &text) {
  for (const runtime::ArgInfo &arg : entry.args) {
    bool input = arg.kind == runtime::ArgKind::Input;
    if (!input && arg.kind != runtime::ArgKind::Output)
      continue;
    text += std::string(" *   ") + (input ? "in   " : "out  ") +
            quote(arg.name) + ": " + runtime::dtypeLowerName(arg.dtype) + " " +
            quote(arg.formatShape());
    if (arg.defaultValue != runtime::DefaultValue::None)
      text += ", optional";
    text += "\n";
  }
}

std::string driver::makeHeader(mlir::ModuleOp module) {
  std::string text = "/* Made by Attune";
  auto metadata = module->getAttrOfType<mlir::StringAttr>("attune.metadata");
  auto entries = module->getAttrOfType<mlir::ArrayAttr>("attune.entries");
  runtime::ModelInfo info;
  runtime::Error error;
  if (metadata && entries &&
      runtime::parseModelInfo(metadata.getValue(), entries.size(), info,
                              error)) {
    text += " for the model '" + quote(info.name) + "'.\n *\n";
    if (const runtime::EntryInfo *forward = info.find("forward")) {
      text += " * attune_run takes and gives:\n";
      describe(*forward, text);
    }
    if (info.find("decode"))
      text += " * It can generate: attune_generate, attune_session_open.\n";
    text += " */\n\n";
  } else {
    text += ". */\n\n";
  }
  return text + attuneEmbeddedHeader;
}
