//===- RunTool.cpp - Linkers and assemblers -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/RunTool.h"

#include "attune/Runtime/TemporaryFiles.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cerrno>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace attune {

/// The variables of this program, with the folder for temporary files replaced.
static std::vector<std::string> getEnvironment(const TemporaryFolder &folder) {
  std::vector<std::string> variables = {"TMPDIR=" + folder.getPath()};
  for (char **variable = environ; *variable; ++variable)
    if (!llvm::StringRef(*variable).starts_with("TMPDIR="))
      variables.push_back(*variable);
  return variables;
}

static std::vector<char *> getPointers(std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (std::string &text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int runTool(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments,
            const TemporaryFolder &folder, std::string &messages) {
  std::vector<std::string> texts(arguments.begin(), arguments.end());
  std::vector<std::string> variables = getEnvironment(folder);
  std::vector<char *> argv = getPointers(texts);
  std::vector<char *> environment = getPointers(variables);
  std::string name = program.str(), output = folder.file("messages");

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  // A group with all that it starts: a C compiler's driver starts the linker.
  // LLVM's functions make no group that a signal could be sent to.
  posix_spawnattr_setpgroup(&attributes, 0);

  runtime::TemporaryTool tool;
  posix_spawnattr_setsigmask(&attributes, &tool.mask());
  pid_t child = 0;
  int error = posix_spawn(&child, name.c_str(), &files, &attributes,
                          argv.data(), environment.data());
  tool.start(error ? 0 : child);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error)
    return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  if (auto buffer = llvm::MemoryBuffer::getFile(output))
    messages = (*buffer)->getBuffer().trim().str();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

} // namespace attune
