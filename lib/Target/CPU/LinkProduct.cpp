//===- LinkProduct.cpp - Executables and shared libraries -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/CPUBackend.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

namespace attune {

/// Where the runtime's archives lie: beside the running program, as the build
/// and the install tree have them.
static std::string findRuntime() {
  std::string program = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&findRuntime));
  llvm::SmallString<256> folder(program);
  llvm::sys::path::remove_filename(folder);
  llvm::sys::path::append(folder, "..", "lib");
  llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
  return folder.str().str();
}

/// A C compiler's driver knows where the C library is; it only links here.
static llvm::ErrorOr<std::string> findLinker() {
  if (auto chosen = llvm::sys::Process::GetEnv("ATTUNE_CC"))
    return llvm::sys::findProgramByName(*chosen);
  for (const char *name : {"cc", "gcc", "clang", "clang-22"})
    if (auto found = llvm::sys::findProgramByName(name))
      return found;
  return std::make_error_code(std::errc::no_such_file_or_directory);
}

llvm::Error linkProduct(llvm::ArrayRef<char> object, LinkKind kind,
                        const std::string &path) {
  llvm::ErrorOr<std::string> linker = findLinker();
  if (!linker)
    return llvm::createStringError(
        "linking needs a C compiler (cc, gcc or clang on PATH, or named by "
        "ATTUNE_CC), and there is none; --emit=obj needs no linker");
  std::string runtime = findRuntime();
  auto archive = [&](const char *name) {
    return runtime + "/lib" + name + ".a";
  };
  for (const char *name :
       {"AttuneRuntime", "AttuneRuntimeMain", "AttuneRuntimeStandalone"})
    if (!llvm::sys::fs::exists(archive(name)))
      return llvm::createStringError("the runtime library %s is missing",
                                     archive(name).c_str());

  // Temporary files of fixed names in a folder of their own: linkers record
  // input names, and the same model must give the same bytes.
  llvm::SmallString<256> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("attune-link", folder))
    return llvm::createStringError(error, "cannot make a temporary folder");
  llvm::scope_exit cleanup([&] { llvm::sys::fs::remove_directories(folder); });
  std::string objectPath = (folder + "/model.o").str();
  std::string messages = (folder + "/messages").str();
  {
    std::error_code error;
    llvm::raw_fd_ostream out(objectPath, error);
    if (!error)
      out.write(object.data(), object.size());
    out.close();
    if (error || out.has_error()) {
      out.clear_error();
      return llvm::createStringError("cannot write %s", objectPath.c_str());
    }
  }
  std::vector<std::string> arguments = {*linker, "-o", path, objectPath};
  if (kind == LinkKind::SharedLibrary) {
    // Only the C interface is visible: what stands in for the C++ library must
    // not be found by the program that loads this.
    std::string exports = (folder + "/exports").str();
    std::error_code error;
    llvm::raw_fd_ostream(exports, error)
        << "{ global: attune_*; local: *; };\n";
    arguments.push_back("-Wl,--version-script=" + exports);
    arguments.insert(arguments.end(),
                     {"-shared", "-Wl,--whole-archive",
                      archive("AttuneRuntime"), "-Wl,--no-whole-archive"});
  } else {
    arguments.insert(arguments.end(), {archive("AttuneRuntimeMain"),
                                       archive("AttuneRuntime"), "-pie"});
  }
  arguments.insert(arguments.end(), {archive("AttuneRuntimeStandalone"),
                                     "-pthread", "-lm", "-Wl,--gc-sections",
                                     "-Wl,--build-id=none", "-Wl,--as-needed"});
  llvm::SmallVector<llvm::StringRef> views(arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(), llvm::StringRef(messages), llvm::StringRef(messages)};
  int code = llvm::sys::ExecuteAndWait(*linker, views, std::nullopt, redirects);
  if (code != 0) {
    std::string text;
    if (auto buffer = llvm::MemoryBuffer::getFile(messages))
      text = (*buffer)->getBuffer().trim().str();
    llvm::sys::fs::remove(path);
    return llvm::createStringError("%s failed to link:\n%s", linker->c_str(),
                                   text.c_str());
  }
  return llvm::Error::success();
}

} // namespace attune
