//===- LinkProduct.cpp - Executables and shared libraries -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/CPUBackend.h"
#include "attune/Target/RunTool.h"
#include "attune/Target/TemporaryFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <optional>

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

namespace {
/// What links a product.
struct Linker {
  std::string program;
  /// A C compiler's driver knows where the C library is. A linker does not:
  /// then this is the folder of the C library's start files.
  std::string startFiles;

  bool isDriver() const { return startFiles.empty(); }
};
} // namespace

/// The loader of dynamic programs, by the ABI of this architecture; empty if it
/// is not known here.
static llvm::StringRef findLoader() {
  switch (llvm::Triple(llvm::sys::getProcessTriple()).getArch()) {
  case llvm::Triple::x86_64:
    return "/lib64/ld-linux-x86-64.so.2";
  case llvm::Triple::aarch64:
    return "/lib/ld-linux-aarch64.so.1";
  default:
    return "";
  }
}

/// A C compiler, which only links here, or else LLVM's linker with the start
/// files of the C library (Debian's libc6-dev).
static std::optional<Linker> findLinker() {
  if (auto chosen = llvm::sys::Process::GetEnv("ATTUNE_CC")) {
    llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(*chosen);
    return found ? std::optional<Linker>({*found, ""}) : std::nullopt;
  }
  for (const char *name : {"cc", "gcc", "clang", "clang-22"})
    if (auto found = llvm::sys::findProgramByName(name))
      return Linker{*found, ""};
  std::string triple =
      llvm::Triple(llvm::sys::getProcessTriple()).getArchName().str();
  for (const char *name : {"ld.lld-22", "ld.lld"})
    if (auto found = llvm::sys::findProgramByName(name))
      for (const std::string &folder :
           {"/usr/lib/" + triple + "-linux-gnu", std::string("/usr/lib64"),
            std::string("/usr/lib")})
        if (!findLoader().empty() && llvm::sys::fs::exists(folder + "/Scrt1.o"))
          return Linker{*found, folder};
  return std::nullopt;
}

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::make_error<Refusal>(why.str());
}

/// The path of one of the runtime's archives.
static std::string archive(const char *name) {
  return findRuntime() + "/lib" + name + ".a";
}

static void addArguments(const Linker &linker, LinkKind kind, LinkParts parts,
                         const std::string &object, const std::string &exports,
                         std::vector<std::string> &arguments) {
  // What a driver hands to its linker.
  auto option = [&](const std::string &text) {
    arguments.push_back((linker.isDriver() ? "-Wl," : "") + text);
  };
  auto startFile = [&](const char *name) {
    if (!linker.isDriver())
      arguments.push_back(linker.startFiles + "/" + name);
  };
  if (!linker.isDriver()) {
    arguments.insert(arguments.end(),
                     {"--eh-frame-hdr", "--hash-style=gnu", "-z", "relro",
                      "-L" + linker.startFiles});
    if (kind != LinkKind::SharedLibrary) {
      arguments.push_back("--dynamic-linker=" + findLoader().str());
      startFile("Scrt1.o");
    }
  }
  // Before the runtime, which refers to it weakly.
  auto addSight = [&] {
    if (!parts.sees)
      return;
    option("--undefined=attune_rt_sees");
    arguments.push_back(archive("AttuneRuntimeSight"));
  };
  startFile("crti.o");
  arguments.push_back(object);
  if (kind == LinkKind::SharedLibrary) {
    option("--version-script=" + exports);
    arguments.push_back("-shared");
    addSight();
    option("--whole-archive");
    arguments.push_back(archive("AttuneRuntime"));
    option("--no-whole-archive");
  } else {
    arguments.push_back(archive("AttuneRuntimeMain"));
    if (parts.serves) {
      option("--undefined=attune_rt_serves");
      arguments.push_back(archive("AttuneRuntimeServe"));
    }
    addSight();
    arguments.insert(arguments.end(), {archive("AttuneRuntime"), "-pie"});
  }
  arguments.insert(arguments.end(),
                   {archive("AttuneRuntimeStandalone"),
                    linker.isDriver() ? "-pthread" : "-lpthread", "-lm"});
  for (const char *text :
       {"--gc-sections", "--build-id=none", "--as-needed", "--no-undefined"})
    option(text);
  if (!linker.isDriver())
    arguments.push_back("-lc");
  startFile("crtn.o");
}

LinkParts findLinkParts(mlir::ModuleOp module) {
  return {module->hasAttr("attune.serves"), module->hasAttr("attune.sees")};
}

llvm::Expected<ProductBytes> linkProduct(llvm::ArrayRef<char> object,
                                         LinkKind kind, LinkParts parts) {
  std::optional<Linker> linker = findLinker();
  if (!linker)
    return refuse(
        "linking needs a C compiler (cc, gcc or clang on PATH, or named by "
        "ATTUNE_CC), or ld.lld and the C library's start files (Debian: "
        "lld-22, libc6-dev), and there is none; --emit=obj needs no linker");
  for (const char *name :
       {"AttuneRuntime", "AttuneRuntimeMain", "AttuneRuntimeServe",
        "AttuneRuntimeSight", "AttuneRuntimeStandalone"})
    if (!llvm::sys::fs::exists(archive(name)))
      return refuse("the runtime library " + archive(name) + " is missing");

  // Temporary files of fixed names in a folder of their own: linkers record
  // input names, and the same model must give the same bytes.
  TemporaryFolder folder("attune-link");
  if (folder.error()) {
    llvm::SmallString<64> parent;
    llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, parent);
    return refuse(llvm::Twine("cannot make a folder for temporary files in ") +
                  parent +
                  " (TMPDIR names another place): " + folder.error().message());
  }
  std::string objectPath = folder.file("model.o");
  std::string messages;
  std::string path = folder.file("product");
  std::string exports = folder.file("exports");
  // Only the C interface is visible: what stands in for the C++ library must
  // not be found by the program that loads this.
  std::error_code problem =
      folder.write("model.o", llvm::StringRef(object.data(), object.size()));
  if (!problem && kind == LinkKind::SharedLibrary)
    problem = folder.write("exports", "{ global: attune_*; local: *; };\n");
  if (problem)
    return refuse("cannot write into " + folder.getPath() + ": " +
                  problem.message());
  std::vector<std::string> arguments = {linker->program, "-o", path};
  addArguments(*linker, kind, parts, objectPath, exports, arguments);
  llvm::SmallVector<llvm::StringRef> views(arguments.begin(), arguments.end());
  if (runTool(linker->program, views, folder, messages) != 0) {
    // Linkers that write through a mapping die of a full disk without a word,
    // and take back what they wrote.
    constexpr uint64_t roomOfRuntime = 16 << 20;
    auto space = llvm::sys::fs::disk_space(folder.getPath());
    if (space && space->available < object.size() + roomOfRuntime)
      messages += "\nonly " + std::to_string(space->available) +
                  " bytes are free in " + folder.getPath() +
                  "; TMPDIR may name another place";
    return refuse(linker->program + " failed to link:\n" + messages);
  }
  auto product = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
  if (!product)
    return refuse("cannot read " + path + ": " + product.getError().message());
  llvm::StringRef bytes = (*product)->getBuffer();
  return ProductBytes(bytes.begin(), bytes.end());
}

} // namespace attune
