//===- LinkProduct.cpp - Executables and shared libraries -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/TemporaryFiles.h"
#include "attune/Target/CPU/CPUBackend.h"
#include "attune/Target/RunTool.h"

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

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::make_error<Refusal>(why.str());
}

llvm::Expected<ProductBytes> linkProduct(llvm::ArrayRef<char> object,
                                         LinkKind kind, bool serves) {
  llvm::ErrorOr<std::string> linker = findLinker();
  if (!linker)
    return refuse(
        "linking needs a C compiler (cc, gcc or clang on PATH, or named by "
        "ATTUNE_CC), and there is none; --emit=obj needs no linker");
  std::string runtime = findRuntime();
  auto archive = [&](const char *name) {
    return runtime + "/lib" + name + ".a";
  };
  for (const char *name : {"AttuneRuntime", "AttuneRuntimeMain",
                           "AttuneRuntimeServe", "AttuneRuntimeStandalone"})
    if (!llvm::sys::fs::exists(archive(name)))
      return refuse("the runtime library " + archive(name) + " is missing");

  // Temporary files of fixed names in a folder of their own: linkers record
  // input names, and the same model must give the same bytes.
  llvm::SmallString<256> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("attune-link", folder))
    return refuse("cannot make a temporary folder: " + error.message());
  llvm::scope_exit cleanup([&] { llvm::sys::fs::remove_directories(folder); });
  runtime::TemporaryFile watchedFolder(folder.str().str());
  std::string objectPath = (folder + "/model.o").str();
  std::string messages = (folder + "/messages").str();
  std::string path = (folder + "/product").str();
  std::string exports = (folder + "/exports").str();
  runtime::TemporaryFile watched[4];
  watched[0].watch(objectPath);
  watched[1].watch(messages);
  watched[2].watch(path);
  watched[3].watch(exports);
  {
    std::error_code error;
    llvm::raw_fd_ostream out(objectPath, error);
    if (!error)
      out.write(object.data(), object.size());
    out.close();
    if (error || out.has_error()) {
      out.clear_error();
      return refuse("cannot write " + objectPath);
    }
  }
  std::vector<std::string> arguments = {*linker, "-o", path, objectPath};
  if (kind == LinkKind::SharedLibrary) {
    // Only the C interface is visible: what stands in for the C++ library must
    // not be found by the program that loads this.
    std::error_code error;
    llvm::raw_fd_ostream(exports, error)
        << "{ global: attune_*; local: *; };\n";
    arguments.push_back("-Wl,--version-script=" + exports);
    arguments.insert(arguments.end(),
                     {"-shared", "-Wl,--whole-archive",
                      archive("AttuneRuntime"), "-Wl,--no-whole-archive"});
  } else {
    arguments.push_back(archive("AttuneRuntimeMain"));
    if (serves)
      arguments.insert(arguments.end(), {"-Wl,--undefined=attune_rt_serves",
                                         archive("AttuneRuntimeServe")});
    arguments.insert(arguments.end(), {archive("AttuneRuntime"), "-pie"});
  }
  arguments.insert(arguments.end(), {archive("AttuneRuntimeStandalone"),
                                     "-pthread", "-lm", "-Wl,--gc-sections",
                                     "-Wl,--build-id=none", "-Wl,--as-needed"});
  llvm::SmallVector<llvm::StringRef> views(arguments.begin(), arguments.end());
  if (runTool(*linker, views, messages) != 0) {
    std::string text;
    if (auto buffer = llvm::MemoryBuffer::getFile(messages))
      text = (*buffer)->getBuffer().trim().str();
    return refuse(*linker + " failed to link:\n" + text);
  }
  auto product = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
  if (!product)
    return refuse("cannot read " + path + ": " + product.getError().message());
  llvm::StringRef bytes = (*product)->getBuffer();
  return ProductBytes(bytes.begin(), bytes.end());
}

} // namespace attune
