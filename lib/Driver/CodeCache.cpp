//===- CodeCache.cpp - Code of earlier compilations -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeCache.h"

#include "attune/Support/Version.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace attune;
using namespace attune::driver;

namespace {
/// In front of each file; changes with the format.
constexpr llvm::StringLiteral kMagic = "attune code 1\n";
using Digest = llvm::BLAKE3Result<>;

std::string hashOf(llvm::StringRef text) {
  Digest digest = llvm::BLAKE3::hash(llvm::arrayRefFromStringRef(text));
  return std::string(digest.begin(), digest.end());
}

void writeText(std::string &out, llvm::StringRef text) {
  char size[8];
  llvm::support::endian::write64le(size, text.size());
  out.append(size, sizeof(size));
  out += text;
}

/// Takes a text off the front of `rest`; false if it is cut short.
bool readText(llvm::StringRef &rest, llvm::StringRef &text) {
  if (rest.size() < 8)
    return false;
  uint64_t size = llvm::support::endian::read64le(rest.data());
  rest = rest.drop_front(8);
  if (size > rest.size())
    return false;
  text = rest.take_front(size);
  rest = rest.drop_front(size);
  return true;
}

/// The content of a file, if nobody changed it.
std::optional<llvm::StringRef> check(llvm::StringRef file) {
  Digest digest;
  if (!file.consume_front(kMagic) || file.size() < digest.size())
    return std::nullopt;
  llvm::StringRef content = file.drop_front(digest.size());
  if (hashOf(content) != file.take_front(digest.size()))
    return std::nullopt;
  return content;
}
} // namespace

std::string CachedCode::write() const {
  std::string content;
  writeText(content, metadata);
  writeText(content, llvm::join(entries, "\n"));
  writeText(content, {object.data(), object.size()});
  return content;
}

std::optional<CachedCode> CachedCode::read(llvm::StringRef content) {
  llvm::StringRef metadata, entries, object, rest = content;
  if (!readText(rest, metadata) || !readText(rest, entries) ||
      !readText(rest, object) || !rest.empty())
    return std::nullopt;
  CachedCode code;
  code.metadata = metadata.str();
  for (llvm::StringRef name : llvm::split(entries, '\n'))
    code.entries.push_back(name.str());
  code.object.assign(object.begin(), object.end());
  return code;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

CodeKey::CodeKey() {
  add(ATTUNE_VERSION_STRING);
  add(ATTUNE_LLVM_VERSION_STRING);
  // A version is kept through many builds, so the program is known by its size
  // and time as well.
  std::string program = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&hashOf));
  add(program);
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(program, status))
    return;
  add(llvm::utostr(status.getSize()));
  add(llvm::itostr(
      status.getLastModificationTime().time_since_epoch().count()));
}

void CodeKey::add(llvm::StringRef part) {
  // With its size in front, no other parts look the same side by side.
  std::string whole;
  writeText(whole, part);
  hash.update(whole);
}

std::string CodeKey::finish() {
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

std::optional<CodeCache> CodeCache::open(const Options &options,
                                         Report &report) {
  std::string folder = options.cache;
  if (folder.empty())
    folder = llvm::sys::Process::GetEnv("ATTUNE_CACHE").value_or("");
  if (folder.empty() || folder == "off")
    return std::nullopt;
  return CodeCache(std::move(folder), options.cacheSize, report);
}

std::string CodeCache::getPath(const std::string &key) const {
  // LLVM leaves files alone that begin with anything else.
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, "llvmcache-attune-" + key);
  return path.str().str();
}

void CodeCache::warn(const std::string &problem) {
  static std::once_flag warned;
  std::call_once(warned, [&] {
    report->warning({}, "the cache '" + folder + "' cannot be written: " +
                            problem + "; what is compiled is not kept");
  });
}

std::optional<std::string> CodeCache::find(const std::string &key) const {
  std::string path = getPath(key);
  int file;
  if (llvm::sys::fs::openFileForRead(path, file))
    return std::nullopt;
  llvm::scope_exit close(
      [&] { llvm::sys::Process::SafelyCloseFileDescriptor(file); });
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      llvm::sys::fs::convertFDToNativeFile(file), path, /*FileSize=*/-1,
      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return std::nullopt;
  std::optional<llvm::StringRef> content = check((*buffer)->getBuffer());
  if (!content)
    return std::nullopt;
  // File systems need not note who reads. Where this fails, an entry leaves
  // earlier than it should.
  (void)llvm::sys::fs::setLastAccessAndModificationTime(
      file, std::chrono::system_clock::now());
  return content->str();
}

void CodeCache::add(const std::string &key, llvm::StringRef content) {
  if (std::error_code problem = llvm::sys::fs::create_directories(folder))
    return warn(problem.message());
  std::string path = getPath(key);
  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(path + ".%%%%%%.tmp");
  if (!file)
    return warn(llvm::toString(file.takeError()));
  std::error_code problem;
  {
    llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    stream << kMagic << hashOf(content) << content;
    stream.flush();
    problem = stream.error();
    stream.clear_error(); // else the stream ends the program
  }
  if (problem) {
    llvm::consumeError(file->discard());
    return warn(problem.message());
  }
  if (llvm::Error failed = file->keep(path))
    warn(llvm::toString(std::move(failed)));
}

void CodeCache::prune() const {
  llvm::CachePruningPolicy policy;
  policy.Interval = std::chrono::seconds(0);
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeFiles = 0;
  policy.MaxSizeBytes = limit;
  llvm::pruneCache(folder, policy);
}
