//===- Remarks.cpp - Remarks of passes --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Remarks.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Remark/RemarkStreamer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace attune;
using namespace attune::driver;

namespace {
/// `model.json:5:28: passed: attention: causal`, with the numbers behind.
class TextStreamer final : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit TextStreamer(std::unique_ptr<llvm::ToolOutputFile> file)
      : file(std::move(file)) {}

  void streamOptimizationRemark(
      const mlir::remark::detail::Remark &remark) override {
    llvm::raw_ostream &out = file->os();
    if (auto place =
            remark.getLocation()->findInstanceOf<mlir::FileLineColLoc>())
      out << place.getFilename().getValue() << ':' << place.getLine() << ':'
          << place.getColumn() << ": ";
    out << remark.getRemarkTypeString().trim().lower() << ": "
        << remark.getRemarkName() << ":";
    for (const auto &argument : remark.getArgs())
      if (argument.key == "Remark")
        out << ' ' << argument.val;
    const char *between = " (";
    for (const auto &argument : remark.getArgs()) {
      if (argument.key == "Remark")
        continue;
      out << between << argument.key << '=' << argument.val;
      between = ", ";
    }
    out << (*between == ',' ? ")\n" : "\n");
  }
  void finalize() override { file->keep(); }

private:
  std::unique_ptr<llvm::ToolOutputFile> file;
};
} // namespace

bool driver::writeRemarks(mlir::MLIRContext &context, const std::string &path,
                          Report &report) {
  auto fail = [&](const std::string &why) {
    report.fail("--remarks: '" + path + "' cannot be written: " + why);
    return false;
  };
  mlir::remark::RemarkCategories all;
  all.passed = all.missed = all.analysis = all.failed = ".*";
  auto policy = std::make_unique<mlir::remark::RemarkEmittingPolicyAll>();
  std::error_code problem;
  auto file = std::make_unique<llvm::ToolOutputFile>(path, problem,
                                                     llvm::sys::fs::OF_Text);
  if (problem)
    return fail(problem.message());
  if (llvm::StringRef(path).ends_with(".yaml") ||
      llvm::StringRef(path).ends_with(".yml")) {
    file.reset(); // the streamer opens it itself
    return mlir::succeeded(
               mlir::remark::enableOptimizationRemarksWithLLVMStreamer(
                   context, path, llvm::remarks::Format::YAML,
                   std::move(policy), all)) ||
           fail("LLVM refuses");
  }
  return mlir::succeeded(mlir::remark::enableOptimizationRemarks(
             context, std::make_unique<TextStreamer>(std::move(file)),
             std::move(policy), all)) ||
         fail("MLIR refuses");
}
