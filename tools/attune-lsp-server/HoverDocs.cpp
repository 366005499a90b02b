//===- HoverDocs.cpp - Documentation of operations in hovers --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HoverDocs.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <unistd.h>

static constexpr char pages[] =
#include "OperationDocs.inc"
    ;

llvm::StringRef attune::findOperationDocs(llvm::StringRef operation) {
  llvm::StringRef all(pages, sizeof(pages) - 1);
  size_t heading = all.find(("\n### `" + operation + "` (").str());
  if (heading == llvm::StringRef::npos)
    return "";
  llvm::StringRef docs = all.substr(heading + 1);
  docs = docs.substr(docs.find('\n'));
  // The operation's verifier says the rest, too.
  size_t end = docs.size();
  for (llvm::StringRef next : {"\n## ", "\n### ", "\n#### ",
                               "\nTraits: ", "\nInterfaces: ", "\nEffects: "})
    end = std::min(end, docs.find(next));
  return docs.take_front(end).trim();
}

std::string attune::addHoverDocs(llvm::StringRef message) {
  // Most messages are of other kinds.
  if (!message.contains("\\\"attune."))
    return message.str();
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(message);
  if (!json) {
    llvm::consumeError(json.takeError());
    return message.str();
  }
  llvm::json::Object *answer = json->getAsObject();
  llvm::json::Object *result = answer ? answer->getObject("result") : nullptr;
  llvm::json::Object *contents =
      result ? result->getObject("contents") : nullptr;
  auto value = contents ? contents->getString("value") : std::nullopt;
  if (!value || !value->consume_front("\""))
    return message.str();
  auto [operation, rest] = value->split('"');
  llvm::StringRef docs = findOperationDocs(operation);
  if (docs.empty())
    return message.str();
  auto [title, generic] = rest.split("\n\n");
  (*contents)["value"] =
      ("\"" + operation + "\"" + title + "\n\n" + docs + "\n\n" + generic)
          .str();
  return llvm::formatv("{0}", *json).str();
}

static bool writeAll(int file, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR)
      return false;
    text = text.drop_front(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return true;
}

bool attune::HoverDocs::start() {
  int ends[2];
  output = ::dup(STDOUT_FILENO);
  if (output < 0 || ::pipe(ends) != 0)
    return false;
  input = ends[0];
  bool done = ::dup2(ends[1], STDOUT_FILENO) >= 0;
  ::close(ends[1]);
  if (done)
    reader = std::thread([this] { copy(); });
  return done;
}

/// Messages are headers, an empty line and a body of "Content-Length" bytes.
/// Anything else passes as it is.
void attune::HoverDocs::copy() {
  static constexpr llvm::StringLiteral header = "Content-Length: ";
  std::string held;
  char buffer[4096];
  ssize_t count;
  while ((count = ::read(input, buffer, sizeof(buffer))) != 0) {
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      break;
    held.append(buffer, static_cast<size_t>(count));
    for (;;) {
      llvm::StringRef rest = held;
      size_t size, body = rest.find("\r\n\r\n");
      if (header.starts_with(rest.take_front(header.size())) &&
          body == llvm::StringRef::npos)
        break; // half a header
      if (!rest.consume_front(header) || rest.consumeInteger(10, size)) {
        writeAll(output, held);
        held.clear();
        break;
      }
      body += 4;
      if (held.size() < body + size)
        break;
      std::string message =
          addHoverDocs(llvm::StringRef(held).substr(body, size));
      writeAll(
          output,
          (header + llvm::Twine(message.size()) + "\r\n\r\n" + message).str());
      held.erase(0, body + size);
    }
  }
  writeAll(output, held);
}

void attune::HoverDocs::finish() {
  if (!reader.joinable())
    return;
  std::fflush(stdout);
  // The last one that could write to the pipe.
  ::dup2(output, STDOUT_FILENO);
  reader.join();
}
