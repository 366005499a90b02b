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
#include "llvm/Support/Process.h"

#include <csignal>
#include <fcntl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace attune {

/// What a trial process may take. A reader that loops ends, too.
static constexpr unsigned seconds = 60;

/// What a process dies of that reads `bytecode`; empty: it lives. Whether it
/// takes it is for the reader after this.
static std::string tryToRead(llvm::StringRef bytecode,
                             const DialectRegistry &registry) {
  pid_t child = fork();
  if (child < 0)
    return "";
  if (child == 0) {
    for (int signal :
         {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGALRM})
      std::signal(signal, SIG_DFL);
    // The reader after this one reports errors, once.
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    itimerval limit = {{0, 0}, {seconds, 0}};
    if (llvm::sys::Process::GetEnv("ATTUNE_TEST_HURRY_GUARD"))
      limit.it_value = {0, 1};
    setitimer(ITIMER_REAL, &limit, nullptr);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.allowUnregisteredDialects();
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(bytecode, ParserConfig(&context));
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return "";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return "the bytecode was not read within " + std::to_string(seconds) +
           " seconds by a trial process: it may be damaged, or the machine is "
           "busy";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return "a trial process that read the bytecode was killed: it may be "
           "damaged, or memory is short";
  return "the bytecode is damaged: a trial process died of reading it";
}

std::string IRProblem::in(llvm::StringRef file) const {
  std::string place =
      line ? ":" + std::to_string(line) + ":" + std::to_string(column) : "";
  return file.str() + place + ": error: " + message;
}

std::optional<IRProblem> findIRProblem(llvm::StringRef text,
                                       const DialectRegistry &registry) {
  if (isBytecode(text)) {
    std::string problem = tryToRead(text, registry);
    if (problem.empty())
      return std::nullopt;
    return IRProblem{0, 0, problem + "; use the text of the module"};
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
