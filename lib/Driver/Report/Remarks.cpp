//===- Remarks.cpp - Remarks of passes --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Remarks.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Remarks/RemarkSerializer.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;
using mlir::remark::detail::MLIRRemarkStreamerBase;
using mlir::remark::detail::Remark;

namespace {
/// `model.json:5:28: passed: attention: causal`, with the numbers behind.
class TextStreamer final : public MLIRRemarkStreamerBase {
public:
  explicit TextStreamer(std::string &text) : out(text) {}

  void streamOptimizationRemark(const Remark &remark) override {
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

private:
  llvm::raw_string_ostream out;
};

class YamlStreamer final : public MLIRRemarkStreamerBase {
public:
  explicit YamlStreamer(std::string &text)
      : out(text),
        serializer(llvm::cantFail(llvm::remarks::createRemarkSerializer(
            llvm::remarks::Format::YAML, out))) {}

  void streamOptimizationRemark(const Remark &remark) override {
    serializer->emit(remark.generateRemark());
  }

private:
  llvm::raw_string_ostream out;
  std::unique_ptr<llvm::remarks::RemarkSerializer> serializer;
};
} // namespace

bool driver::collectRemarks(mlir::MLIRContext &context, llvm::StringRef path,
                            std::string &text) {
  mlir::remark::RemarkCategories all;
  all.passed = all.missed = all.analysis = all.failed = ".*";
  std::unique_ptr<MLIRRemarkStreamerBase> streamer;
  if (path.ends_with(".yaml") || path.ends_with(".yml"))
    streamer = std::make_unique<YamlStreamer>(text);
  else
    streamer = std::make_unique<TextStreamer>(text);
  return mlir::succeeded(mlir::remark::enableOptimizationRemarks(
      context, std::move(streamer),
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), all));
}
