//===- attune-reduce.cpp - A small module that a pass still breaks --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Import/IRGuard.h"
#include "attune/InitAll.h"
#include "attune/Support/BugReport.h"

#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static const char usage[] =
    "Makes a module smaller as long as a pass changes what it computes.\n\n"
    "  attune-reduce [-o OUT.mlir] IN.mlir ARGUMENTS-OF-ATTUNE-OPT...\n\n"
    "as in: attune-reduce -o small.mlir big.mlir --pass-pipeline=...\n";

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// An op whose result has the type of an operand: the operand in its place.
static bool bypass(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return false;
  for (Value operand : op->getOperands())
    if (operand.getType() == op->getResult(0).getType()) {
      op->replaceAllUsesWith(ValueRange(operand));
      op->erase();
      return true;
    }
  return false;
}

/// An op without the last of its optional operands that is there.
static bool dropOperand(Operation *op) {
  auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
  if (!sizes || !isa_and_nonnull<attune::AttuneDialect>(op->getDialect()))
    return false;
  llvm::SmallVector<int32_t> left(sizes.asArrayRef());
  unsigned place = op->getNumOperands();
  for (size_t segment = left.size(); segment-- > 1;) {
    place -= left[segment];
    if (left[segment] != 1)
      continue;
    left[segment] = 0;
    op->eraseOperand(place);
    op->setAttr("operandSegmentSizes",
                DenseI32ArrayAttr::get(op->getContext(), left));
    return true;
  }
  return false;
}

/// A function that nobody calls, a weight that nobody reads.
static bool dropSymbol(Operation *op) {
  if (!isa<SymbolOpInterface>(op) ||
      !SymbolTable::symbolKnownUseEmpty(op, op->getParentOfType<ModuleOp>()))
    return false;
  op->erase();
  return true;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
constexpr int kMismatch = 3;

/// Asks attune-opt whether validation still finds a mismatch.
class Reducer {
public:
  Reducer(std::string tool, llvm::ArrayRef<char *> arguments)
      : tool(std::move(tool)), arguments(arguments) {}

  /// The exit code of attune-opt, which says nothing unless `speaks`.
  int validate(ModuleOp module, bool speaks = false);
  bool isBroken(ModuleOp module) { return validate(module) == kMismatch; }
  /// Tries a step on every op in turn and keeps what stays broken. Returns
  /// whether anything did.
  bool tryAll(OwningOpRef<ModuleOp> &module, bool (*step)(Operation *));

private:
  std::string tool;
  llvm::ArrayRef<char *> arguments;
};
} // namespace

int Reducer::validate(ModuleOp module, bool speaks) {
  int descriptor;
  llvm::SmallString<128> path;
  if (llvm::sys::fs::createTemporaryFile("attune-reduce", "mlir", descriptor,
                                         path))
    return -1;
  {
    llvm::raw_fd_ostream file(descriptor, /*shouldClose=*/true);
    module.print(file);
    file.close();
    if (file.has_error()) {
      llvm::errs() << "attune-reduce: " << path
                   << " cannot be written: " << file.error().message() << '\n';
      file.clear_error();
      llvm::sys::fs::remove(path);
      return -1;
    }
  }
  llvm::SmallVector<llvm::StringRef> command{tool, path, "--attune-validate",
                                             "-o", "/dev/null"};
  command.append(arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> silent[] = {"", "", ""};
  llvm::ArrayRef<std::optional<llvm::StringRef>> streams;
  if (!speaks)
    streams = silent;
  int code = llvm::sys::ExecuteAndWait(tool, command, std::nullopt, streams);
  llvm::sys::fs::remove(path);
  return code;
}

static size_t countOps(ModuleOp module) {
  size_t count = 0;
  module.walk([&](Operation *op) { ++count; });
  return count - 1; // the module itself
}

/// Removes what nothing uses.
static void clean(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createSymbolDCEPass());
  passes.addPass(createCSEPass());
  (void)passes.run(module);
}

bool Reducer::tryAll(OwningOpRef<ModuleOp> &module, bool (*step)(Operation *)) {
  bool changed = false;
  // From the back: what is gone makes what stands before it useless.
  for (size_t number = countOps(*module); number-- > 0;) {
    OwningOpRef<ModuleOp> smaller(module->clone());
    size_t at = 0;
    Operation *target = nullptr;
    smaller->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != *smaller && at++ == number)
        target = op;
    });
    // A mistake of a step is no module, and no message for anybody.
    ScopedDiagnosticHandler quiet(module->getContext(),
                                  [](Diagnostic &) { return success(); });
    if (!target || !step(target) || failed(verify(*smaller)))
      continue;
    clean(*smaller);
    if (!isBroken(*smaller))
      continue;
    module = std::move(smaller);
    number = std::min(number, countOps(*module));
    changed = true;
  }
  return changed;
}

int main(int argc, char **argv) {
  attune::installBugReport();
  llvm::InitLLVM init(argc, argv);
  int at = 1;
  std::string output = "-";
  if (argc > 2 && llvm::StringRef(argv[1]) == "-o") {
    output = argv[2];
    at = 3;
  }
  if (at < argc && llvm::StringRef(argv[at]) == "--help") {
    llvm::outs() << usage;
    return 0;
  }
  if (at >= argc || argv[at][0] == '-') {
    llvm::errs() << usage;
    return 2;
  }
  std::string input = argv[at];
  auto fail = [](const llvm::Twine &message) {
    llvm::errs() << "attune-reduce: " << message << '\n';
    return 1;
  };

  llvm::SmallString<128> tool(
      llvm::sys::path::parent_path(llvm::sys::fs::getMainExecutable(
          argv[0], reinterpret_cast<void *>(&countOps))));
  llvm::sys::path::append(tool, "attune-opt");
  Reducer reducer(tool.str().str(), llvm::ArrayRef(argv + at + 1, argv + argc));

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  attune::registerAllDialects(registry);
  MLIRContext context(registry);
  std::string problem;
  auto file = openInputFile(input, &problem);
  if (!file)
    return fail(problem);
  if (auto bad = attune::findIRProblem(file->getBuffer(), registry))
    return fail(bad->in(input));
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(source, ParserConfig(&context));
  if (!module)
    return fail("'" + input + "' cannot be read");
  int code = reducer.validate(*module);
  if (code == 0)
    return fail("no pass changes what '" + input + "' computes");
  if (code != kMismatch) {
    reducer.validate(*module, /*speaks=*/true);
    return fail("attune-opt does not run these passes on '" + input + "'");
  }

  size_t start = countOps(*module);
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto step : {dropSymbol, bypass, dropOperand})
      changed |= reducer.tryAll(module, step);
  }

  auto target = openOutputFile(output, &problem);
  if (!target)
    return fail(problem);
  module->print(target->os());
  target->os().flush();
  if (target->os().has_error()) {
    problem = target->os().error().message();
    target->os().clear_error();
    return fail("'" + output + "' cannot be written: " + problem);
  }
  target->keep();
  llvm::errs() << "attune-reduce: " << start << " operations became "
               << countOps(*module) << '\n';
  return 0;
}
