//===- Split.cpp - attune split ---------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A product for several ranks holds what all of them read, and then each rank's
// own part. A rank's file is the same program with the first, one of the others
// and a cache line that says whose it is: see lib/Runtime/Mesh/README.md.

#include "../OutputFile.h"
#include "Inspect.h"
#include "Verbs.h"

#include "attune/Runtime/Safetensors.h"
#include "attune/Runtime/WeightSection.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace attune;
using namespace attune::driver;

namespace {
/// What the trailer of a product says, and what its metadata does.
struct CutProduct {
  llvm::StringRef file;
  uint64_t offset = 0; ///< of the weights
  uint64_t shared = 0, each = 0, ranks = 0;
};
} // namespace

static constexpr size_t trailerBytes = 32;
static constexpr llvm::StringLiteral magic = "ATTUNEW1";

/// Finds the parts of the weights; says what is wrong otherwise.
static std::string findParts(const runtime::ModelInfo &info,
                             CutProduct &product) {
  if (info.ranks < 2 && info.hasRanks())
    return "has weights that each of its ranks reads whole, and nothing to "
           "split; copy it to all machines";
  if (info.ranks < 2)
    return "is not cut for several ranks; compile it with --mesh=tp=N";
  llvm::StringRef trailer = product.file.take_back(trailerBytes);
  if (trailer.size() < trailerBytes || !trailer.ends_with(magic))
    return "has no weights to split; compile it with --weights=PATH";
  uint64_t size = llvm::support::endian::read64le(trailer.data() + 8);
  product.offset = llvm::support::endian::read64le(trailer.data());
  product.ranks = uint64_t(info.ranks);
  product.shared = info.sharedBytes;
  product.each = info.weightsBytes - info.sharedBytes;
  if (size == info.weightsBytes + runtime::rankLineBytes)
    return "has the weights of one rank alone already";
  uint64_t room = product.file.size() - trailerBytes;
  if (product.offset > room || size > room - product.offset ||
      size != product.shared + product.ranks * product.each)
    return "has weights of another size than its code reads";
  return "";
}

/// Writes one rank's file; returns errno, or 0.
static int writeRank(const CutProduct &product, uint64_t rank,
                     const std::string &path) {
  std::error_code problem;
  llvm::raw_fd_ostream out(path, problem, llvm::sys::fs::CD_OpenExisting,
                           llvm::sys::fs::FA_Write, llvm::sys::fs::OF_None);
  if (problem)
    return problem.value();
  uint64_t own = product.offset + product.shared + rank * product.each;
  out << product.file.take_front(product.offset + product.shared)
      << product.file.substr(own, product.each);
  char line[runtime::rankLineBytes] = {};
  llvm::support::endian::write64le(line, rank);
  out.write(line, sizeof line);
  uint64_t size = product.shared + product.each + sizeof line;
  std::string trailer = product.file.take_back(trailerBytes).str();
  llvm::support::endian::write64le(trailer.data() + 8, size);
  out << trailer;
  out.close();
  if (out.has_error()) {
    problem = out.error();
    out.clear_error();
    return problem.value();
  }
  // So that `strip` and its kin keep the weights.
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return errno;
  uint64_t all = product.offset + size + trailerBytes;
  int code = runtime::coverWithWeightSection(file, all, product.offset,
                                             size + trailerBytes)
                 ? 0
                 : errno;
  ::close(file);
  return code;
}

ExitCode driver::runSplit(const Options &options, Report &report) {
  auto wrong = [&](const std::string &what) {
    return report.fail("'" + options.model + "' " + what, ExitCode::BadInput);
  };
  if (!isBinary(options.model))
    return wrong("is no compiled program; split takes what compile --mesh=tp=N "
                 "has made");
  std::optional<runtime::ModelInfo> info = readProduct(options.model, report);
  if (!info)
    return ExitCode::BadInput;
  runtime::MappedFile file;
  std::string problem;
  if (!file.open(options.model, problem))
    return report.fail(problem, ExitCode::BadInput);
  CutProduct product;
  product.file = {reinterpret_cast<const char *>(file.data()), file.size()};
  problem = findParts(*info, product);
  if (!problem.empty())
    return wrong(problem);
  std::string name = options.output.empty() ? options.model : options.output;
  OutputFiles files(report);
  for (uint64_t rank = 0; rank < product.ranks; ++rank) {
    std::string path = name + "." + std::to_string(rank);
    std::string *temporary = files.reserve(path, /*executable=*/true);
    if (!temporary)
      return ExitCode::BadInput;
    if (int code = writeRank(product, rank, *temporary))
      return report.fail(path + ": cannot be written: " + std::strerror(code),
                         ExitCode::BadInput);
  }
  return files.commit() ? ExitCode::Success : ExitCode::BadInput;
}
