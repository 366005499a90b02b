//===- Tokenize.cpp - attune tokenize ---------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "Verbs.h"

#include "attune/Import/Tokenizers.h"
#include "attune/Runtime/Cli.h"
#include "attune/Weights/GgufFile.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace attune;
using namespace attune::driver;

/// MODEL itself, if it is no model's file but a tokenizer's.
static bool isTokenizerFile(llvm::StringRef path) {
  llvm::StringRef name = llvm::sys::path::filename(path);
  return name.starts_with("tokenizer") || name.starts_with("tekken") ||
         name.ends_with(".model") || name.ends_with(".tiktoken") ||
         name == "vocab.txt" || name == "vocab.json" ||
         (name.starts_with("rwkv_vocab") && name.ends_with(".txt"));
}

static bool isCompiledBinary(const std::string &path) {
  if (!llvm::sys::fs::is_regular_file(path))
    return false;
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  return file && (*file)->getBuffer().starts_with("\x7f"
                                                  "ELF");
}

ExitCode driver::runTokenize(const Options &options, Report &report) {
  if (!llvm::sys::fs::exists(gguf::splitPair(options.model).model))
    return report.fail("'" + options.model + "': no such file or folder");
  std::string path = options.tokenizer;
  if (path.empty() && !llvm::sys::fs::is_directory(options.model) &&
      isTokenizerFile(options.model))
    path = options.model;
  if (path.empty())
    path = findTokenizerFile(options.model);
  if (path.empty() && isCompiledBinary(options.model))
    return report.fail("'" + options.model +
                       "' is a compiled binary, not a model; run it itself");
  if (path.empty())
    return report.fail("'" + options.model +
                       "' has no tokenizer beside it; name one with "
                       "--tokenizer=FILE");
  std::optional<TokenizerFile> file = readTokenizer(path, report);
  if (!file || !file->tokenizer)
    return ExitCode::BadInput;
  // As a product has it, so that the ids are a product's.
  runtime::Error error;
  std::string table;
  std::unique_ptr<runtime::Tokenizer> tokenizer =
      file->tokenizer->pack(file->json, table, error)
          ? runtime::Tokenizer::open(table, error)
          : nullptr;
  if (!tokenizer ||
      !runtime::executeTokenize(*tokenizer, options.tokenize, stdout, error)) {
    // A line of a file of texts is named already.
    if (options.tokenize.hasText)
      error.message = "'" + path + "': " + error.message;
    return reportError(error, report);
  }
  return ExitCode::Success;
}
