//===- ServeOptions.cpp - Options of serve --------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Serve.h"

#include <algorithm>

namespace attune::runtime {

const OptionSpecs &ServeOptions::specs() {
  static const OptionSpecs specs = [] {
    OptionSpecs all = {
        {"host", "ADDRESS",
         "address to listen on (default: 127.0.0.1, this machine alone)"},
        {"port", "N", "port to listen on (default: 8080); 0: any free one"},
        {"slots", "N",
         "texts that are generated at a time (default: 4), in one step of the "
         "model where it can do that, which 'inspect' says"},
        {"cache-memory", "SIZE",
         "on a GPU: most memory of keys and values, such as 8G, which texts "
         "take as they grow (by default what is free, but a twentieth of the "
         "GPU's)"},
        {"swap-memory", "SIZE",
         "on a GPU: most memory of the host for what texts have that make room "
         "for others (by default as much as on the GPU, at most half of the "
         "host's); 0: they are computed again"},
        {"queue", "N",
         "requests that may wait for a slot, beyond which they are refused "
         "(default: 64)"},
        {"connections", "N", "connections at a time (default: 256)"},
        {"max-body", "SIZE", "most bytes of a request's body (default: 8M)"},
        {"timeout", "SECONDS",
         "time for a request, from its end to the end of its answer (default: "
         "600)"},
        {"read-timeout", "SECONDS",
         "time for a client to send a request or to read on (default: 30)"},
        {"api-key", "KEY",
         "answer only who sends 'Authorization: Bearer KEY'; may be repeated"},
        {"api-key-file", "FILE", "file with such keys, a line each"},
        {"allow-origin", "ORIGIN",
         "let pages of this origin, or * for any, use the server (CORS)"},
        {"no-web", "", "show no page to talk with the model at /"},
        {"quiet", "", "log no requests"},
    };
    for (const OptionSpec &spec : ChatOptions::specs())
      if (spec.name != "system" && spec.name != "stats" && spec.name != "image")
        all.push_back(spec);
    return all;
  }();
  return specs;
}

bool ServeOptions::set(const ParsedOption &option, bool &mine, Error &error) {
  const std::string &name = option.name;
  mine = true;
  auto seconds = [&](double &value) {
    return parseReal(option, 0.01, 1e6, value, error);
  };
  if (name == "host")
    host = option.value;
  else if (name == "port")
    return parseInteger(option, 0, 65535, port, error);
  else if (name == "slots")
    return parseInteger(option, 1, 1024, slots, error);
  else if (name == "cache-memory")
    return parseBytes(option, cacheMemory, error);
  else if (name == "swap-memory")
    return parseBytes(option, swapMemory.emplace(0), error, /*least=*/0);
  else if (name == "queue")
    return parseInteger(option, 0, 1000000, queue, error);
  else if (name == "connections")
    return parseInteger(option, 1, 100000, connections, error);
  else if (name == "max-body")
    return parseBytes(option, maxBody, error);
  else if (name == "timeout")
    return seconds(timeout);
  else if (name == "read-timeout")
    return seconds(readTimeout);
  else if (name == "api-key")
    apiKeys.push_back(option.value);
  else if (name == "api-key-file")
    apiKeyFile = option.value;
  else if (name == "allow-origin")
    allowOrigin = option.value;
  else if (name == "no-web")
    webPage = option.value != "true";
  else if (name == "quiet")
    quiet = option.value == "true";
  else
    return chat.set(option, mine, error);
  return true;
}

bool ServeOptions::finish(Error &error) {
  if (std::find(apiKeys.begin(), apiKeys.end(), "") != apiKeys.end())
    return error.set(ExitBadCommandLine, "--api-key: the key is empty");
  for (char c : allowOrigin)
    if (c <= ' ' || c > '~')
      return error.set(ExitBadCommandLine,
                       "--allow-origin: expected an origin such as "
                       "https://example.org, or *");
  return chat.finish(error);
}

} // namespace attune::runtime
