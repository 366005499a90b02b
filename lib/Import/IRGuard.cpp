//===- IRGuard.cpp - Guards before MLIR's parser ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/IRGuard.h"

#include "attune/Support/IRText.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace attune {

/// Whether a process that reads `bytecode` lives; whether it takes it is for
/// the reader after this.
static bool survivesReading(llvm::StringRef bytecode,
                            const DialectRegistry &registry) {
  pid_t child = fork();
  if (child < 0)
    return true;
  if (child == 0) {
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP})
      std::signal(signal, SIG_DFL);
    // The reader after this one reports errors, once.
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    // A reader that loops ends, too.
    constexpr unsigned seconds = 60;
    alarm(seconds);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.allowUnregisteredDialects();
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(bytecode, ParserConfig(&context));
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string IRProblem::in(llvm::StringRef file) const {
  std::string place =
      line ? ":" + std::to_string(line) + ":" + std::to_string(column) : "";
  return file.str() + place + ": error: " + message;
}

std::optional<IRProblem> findIRProblem(llvm::StringRef text,
                                       const DialectRegistry &registry) {
  if (isBytecode(text)) {
    if (survivesReading(text, registry))
      return std::nullopt;
    return IRProblem{0, 0,
                     "the bytecode is damaged: a trial process died of reading "
                     "it; use the text of the module"};
  }
  size_t at = findTooDeep(text);
  if (at == llvm::StringRef::npos)
    return std::nullopt;
  llvm::StringRef before = text.take_front(at);
  size_t line = before.rfind('\n');
  return IRProblem{unsigned(before.count('\n') + 1),
                   unsigned(line == llvm::StringRef::npos ? at + 1 : at - line),
                   "is nested deeper than " + std::to_string(kMaxIRDepth) +
                       " levels, which the parser does not take"};
}

} // namespace attune
