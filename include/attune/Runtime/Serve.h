//===- Serve.h - A model behind HTTP ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `serve` answers requests of OpenAI's interface, many at a time. It is a
// library of its own (AttuneRuntimeServe), which products without a tokenizer
// are not linked with.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_SERVE_H
#define ATTUNE_RUNTIME_SERVE_H

#include "attune/Runtime/Chat.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attune::runtime {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int64_t port = 8080;      ///< 0: one that is free
  int64_t slots = 4;        ///< sequences at a time
  int64_t queue = 64;       ///< requests that wait for one
  uint64_t cacheMemory = 0; ///< bytes of a GPU's; 0: what is free
  /// Bytes of the host's for caches of texts that gave way; none: as many.
  std::optional<uint64_t> swapMemory;
  int64_t connections = 256;
  uint64_t maxBody = uint64_t(8) << 20;
  double timeout = 600;    ///< seconds for a request
  double readTimeout = 30; ///< seconds for a client to send or to read
  std::vector<std::string> apiKeys;
  std::string apiKeyFile;
  std::string allowOrigin; ///< empty: no page of another origin
  bool webPage = true;     ///< at /
  bool quiet = false;
  /// The chat template, the context, and what requests leave open.
  ChatOptions chat;

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
  bool finish(Error &error);
};

/// Serves until SIGTERM or SIGINT. The address goes to `out` as one line, the
/// log to `messages`: as JSON, a request is {"time", "method", "path",
/// "status", "seconds"} and, where it has them, "prompt_tokens",
/// "cached_tokens", "new_tokens", "finish_reason".
bool executeServe(CompiledModel &model, const ServeOptions &options, FILE *out,
                  const Messages &messages, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_SERVE_H
