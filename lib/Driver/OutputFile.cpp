//===- OutputFile.cpp - Results that appear whole or not at all -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputFile.h"

#include "attune/Runtime/WholeFile.h"
#include "attune/Weights/GgufFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

OutputFiles::~OutputFiles() {
  for (const auto &file : files) {
    sys::fs::remove(file->temporary);
    sys::DontRemoveFileOnSignal(file->temporary);
  }
}

void OutputFiles::fail(const std::string &path, const std::string &problem) {
  auto file = std::make_shared<SourceFile>();
  file->path = path;
  diags.error({file, 0, 0}, problem);
}

/// The same text for `a`, `./a` and the whole path of `a`.
static std::string plain(SmallString<128> path) {
  sys::fs::make_absolute(path);
  sys::path::remove_dots(path);
  return path.str().str();
}

std::string *OutputFiles::reserve(const std::string &asked, bool executable) {
  runtime::OutputPlace place;
  std::string reason;
  if (!runtime::findOutputPlace(asked, place, reason)) {
    fail(asked, "cannot be written: " + reason);
    return nullptr;
  }
  if (place.isFolder) {
    fail(asked, "is a folder; name the file to write");
    return nullptr;
  }
  if (place.isStream && !place.exists) {
    fail(asked, "cannot be written: nothing is open under this name");
    return nullptr;
  }
  for (const auto &other : files)
    if (!other->inPlace && !place.isStream &&
        plain(StringRef(other->path)) == plain(StringRef(place.path))) {
      fail(asked, "is named for two results of this command; give each a file "
                  "of its own");
      return nullptr;
    }
  auto file = std::make_unique<File>();
  file->path = place.path;
  file->executable = executable;
  file->inPlace = place.isStream;
  // Output for a device waits in the folder for temporary files.
  SmallString<128> temporary;
  std::error_code problem =
      file->inPlace
          ? sys::fs::createTemporaryFile("attune", "out", temporary)
          : sys::fs::createUniqueFile(place.path + ".%%%%%%.tmp", temporary);
  if (problem) {
    fail(asked, "cannot be written: " + problem.message());
    return nullptr;
  }
  file->temporary = temporary.str().str();
  sys::RemoveFileOnSignal(file->temporary);
  files.push_back(std::move(file));
  return &files.back()->temporary;
}

bool OutputFiles::write(const std::string &path, StringRef text) {
  if (path == "-") {
    standardOutput += text;
    return true;
  }
  std::string *temporary = reserve(path);
  if (!temporary)
    return false;
  std::error_code problem;
  raw_fd_ostream stream(*temporary, problem, sys::fs::OF_None);
  if (!problem) {
    stream << text;
    stream.close();
    problem = stream.error();
    stream.clear_error();
  }
  if (problem)
    fail(path, "cannot be written: " + problem.message());
  return !problem;
}

static std::error_code copyTo(const std::string &from, const std::string &to) {
  auto buffer = MemoryBuffer::getFile(from, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return buffer.getError();
  std::error_code problem;
  raw_fd_ostream stream(to, problem, sys::fs::CD_OpenExisting,
                        sys::fs::FA_Write, sys::fs::OF_None);
  if (problem)
    return problem;
  stream << (*buffer)->getBuffer();
  stream.close();
  problem = stream.error();
  stream.clear_error();
  return problem;
}

/// Gives a file that is there a second name, so that it can come back; nothing
/// if there is none. A file system without links keeps what replaces it.
static std::string keep(const std::string &path) {
  SmallString<128> second;
  sys::fs::createUniquePath(path + ".%%%%%%.old", second,
                            /*MakeAbsolute=*/false);
  return link(path.c_str(), second.c_str()) == 0 ? second.str().str() : "";
}

bool OutputFiles::commit() {
  mode_t mask = umask(0);
  umask(mask);
  /// A file that has its name, and the second name of what had it before.
  struct Done {
    std::string path, before;
    bool isNew;
  };
  std::vector<Done> done;
  auto finish = [&](bool good) {
    for (const auto &[path, before, isNew] : done) {
      if (!good && isNew)
        sys::fs::remove(path);
      else if (!good && !before.empty())
        sys::fs::rename(before, path);
      else if (!before.empty())
        sys::fs::remove(before);
    }
    return good;
  };
  for (const auto &file : files) {
    std::error_code problem;
    if (file->inPlace) {
      problem = copyTo(file->temporary, file->path);
    } else {
      mode_t mode = (file->executable ? 0755 : 0644) & ~mask;
      chmod(file->temporary.c_str(), mode);
      bool isNew = !sys::fs::exists(file->path);
      std::string before = files.size() > 1 ? keep(file->path) : "";
      problem = sys::fs::rename(file->temporary, file->path);
      if (!problem)
        done.push_back({file->path, before, isNew});
      else if (!before.empty())
        sys::fs::remove(before);
    }
    if (problem) {
      fail(file->path, "cannot be written: " + problem.message());
      return finish(false);
    }
  }
  finish(true);
  // The text goes last: it is there only if everything is.
  outs() << standardOutput;
  outs().flush();
  standardOutput.clear();
  if (std::error_code problem = outs().error()) {
    outs().clear_error();
    fail("stdout", "cannot be written: " + problem.message());
    return false;
  }
  return true;
}

bool driver::keepsInputs(const Options &options, DiagnosticEngine &diags) {
  std::vector<std::string> inputs = {options.model,    options.tokenizer,
                                     options.weights,  options.chatTemplate,
                                     options.schedule, options.run.inputs};
  gguf::Pair pair = gguf::splitPair(options.model);
  inputs.push_back(pair.model);
  inputs.push_back(pair.sight);
  for (const char *name : {"config.json", "generation_config.json",
                           "tokenizer.json", "tokenizer_config.json",
                           "model.safetensors", "model.safetensors.index.json"})
    inputs.push_back(options.model + "/" + name);
  for (const std::string &output : {options.output, options.remarks,
                                    options.run.outputs, options.embed.outputs})
    for (const std::string &input : inputs) {
      if (output.empty() || input.empty() ||
          !runtime::isSameFile(input, output))
        continue;
      auto file = std::make_shared<SourceFile>();
      file->path = output;
      diags.error({file, 0, 0}, "is read by this command and would be replaced "
                                "by its result; name another file");
      return false;
    }
  // Here, too, so that nothing is compiled for it.
  OutputFiles files(diags);
  return options.output.empty() || options.remarks.empty() ||
         options.output == "-" || options.remarks == "-" ||
         (files.reserve(options.output) && files.reserve(options.remarks));
}

bool driver::makeFolder(const std::string &path, DiagnosticEngine &diags) {
  std::error_code problem = sys::fs::create_directories(path);
  if (!problem)
    return true;
  auto file = std::make_shared<SourceFile>();
  file->path = path;
  diags.error({file, 0, 0}, "cannot be made a folder: " + problem.message());
  return false;
}
