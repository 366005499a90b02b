//===- Validation.cpp - Did a pass keep the function? -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Validation/Validation.h"

#include "Run.h"
#include "Trace.h"

#include "Attune/AttuneCachedRows.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

std::optional<std::string>
attune::parseValidationOptions(llvm::StringRef text,
                               ValidationOptions &options) {
  llvm::SmallVector<llvm::StringRef> items;
  text.split(items, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef item : items) {
    auto [key, value] = item.split('=');
    double number;
    bool bad;
    if (key == "verbose") {
      options.verbose = true;
      continue;
    }
    if (key == "atol" || key == "rtol") {
      bad = value.getAsDouble(number) || !(number >= 0);
      (key == "atol" ? options.atol : options.rtol) = number;
    } else if (key == "seed") {
      bad = value.getAsInteger(10, options.seed);
    } else if (key == "budget") {
      bad = value.getAsInteger(10, options.budget);
    } else if (key == "total") {
      bad = value.getAsInteger(10, options.total);
    } else if (key == "lengths") {
      options.lengths.clear();
      llvm::SmallVector<llvm::StringRef> lengths;
      value.split(lengths, '/');
      bad = false;
      for (llvm::StringRef length : lengths)
        bad |= length.getAsInteger(10, options.lengths.emplace_back()) ||
               options.lengths.back() < 1;
    } else {
      return "'" + key.str() +
             "' is no option of validation: atol, rtol, seed, budget, "
             "total, lengths=1/7/19 and verbose are";
    }
    if (bad)
      return "'" + value.str() + "' is no value for '" + key.str() + "'";
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The tolerance that the narrowest float of a module's functions and weights
/// explains.
static Tolerance findTolerance(ModuleOp module) {
  Tolerance tolerance{5e-5, 1e-4};
  auto consider = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    // A byte of a key that is rounded the other way moves a result as much.
    // (Bytes of caches are [layers, batch, heads, capacity, width].)
    auto tensor = dyn_cast<ShapedType>(type);
    bool bytes = tensor && tensor.hasRank() && tensor.getRank() == 5 &&
                 isInBytes(element);
    if (element.isBF16() || bytes)
      tolerance = {2e-2, 2e-2};
    else if (element.isF16() && tolerance.rtol < 4e-3)
      tolerance = {4e-3, 4e-3};
  };
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      consider(type);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          consider(type);
  });
  return tolerance;
}

/// Functions with a body that are public, or that nobody calls.
static llvm::SmallVector<FunctionOpInterface> findRoots(ModuleOp module) {
  llvm::DenseSet<StringRef> called;
  module.walk([&](CallOpInterface call) {
    auto callee = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
    if (callee)
      called.insert(callee.getRootReference().getValue());
  });
  llvm::SmallVector<FunctionOpInterface> roots;
  for (auto func : module.getOps<FunctionOpInterface>())
    if (!func.isExternal() &&
        (func.isPublic() || !called.count(func.getName())))
      roots.push_back(func);
  return roots;
}

/// Whether calls lead from one function to another.
static bool reaches(ModuleOp module, FunctionOpInterface from, Operation *to) {
  llvm::SetVector<Operation *> reached;
  reached.insert(from);
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == to)
      return true;
    reached[i]->walk([&](CallOpInterface call) {
      auto callee = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
      if (Operation *next =
              callee ? module.lookupSymbol(callee.getRootReference()) : nullptr)
        reached.insert(next);
    });
  }
  return false;
}

namespace {
struct Checked {
  Case check;
  std::vector<Argument> args;
  Outputs before;
  int64_t cost = 0; ///< of its last run
  bool tooLong = false;
};

/// The result of a pass on a nested operation.
struct PassStep {
  std::string pass;
  /// Symbols from the module down to the operation.
  llvm::SmallVector<StringAttr> path;
  OwningOpRef<Operation *> after;
};

using ModuleState = std::shared_ptr<OwningOpRef<ModuleOp>>;

/// How a function became another: by which passes, between which states.
struct Blame {
  std::vector<std::string> passes;
  ModuleOp before, after;
  /// States that nobody else keeps.
  llvm::SmallVector<ModuleState> kept;
  bool wrong = false;
  std::string message;
  /// The operation in `after` that cannot be executed.
  Operation *culprit = nullptr;
  std::optional<Mismatch> mismatch;
};

/// A function on its way through the passes.
struct Watched {
  explicit Watched(FunctionOpInterface func) : signature(func) {}
  Signature signature;
  std::vector<Checked> cases;
  /// The module when the answers were computed, and the passes since then that
  /// could not be judged.
  ModuleState module;
  std::vector<std::string> unjudged;
  bool done = false;
};

} // namespace

class Validation::Watch {
public:
  Watch(const ValidationOptions &options,
        std::shared_ptr<ValidationResult> result)
      : options(options), result(std::move(result)) {}

  void runBeforePass(Pass *pass, Operation *op);
  void runAfterPass(Pass *pass, Operation *op);

private:
  void start(ModuleOp module);
  bool watch(ModuleOp module, FunctionOpInterface func, std::string &why);
  void tryWaiting(ArrayRef<std::string> passes, ModuleOp module);
  /// Leaves out inputs until the rest cost no more than the function's share.
  void thin(StringRef name, Watched &watched);
  void leaveOut(FunctionOpInterface func, Watched *watched,
                const llvm::Twine &from, StringRef why);
  /// The cost of all ranks since their budget was reset to `allowed`.
  int64_t account(const Ranks &ranks, int64_t allowed) {
    int64_t cost = ranks.spent(allowed);
    left -= cost;
    return cost;
  }
  /// Judges all functions that lead to one of `changed`, after `passes`.
  void judgeAll(ArrayRef<std::string> passes, ModuleOp module,
                ArrayRef<Operation *> changed);
  void judge(ArrayRef<std::string> passes, ModuleOp module,
             FunctionOpInterface func, Watched &watched);
  bool judgeCase(ArrayRef<std::string> passes, ModuleOp module, Ranks &ranks,
                 FunctionOpInterface func, Watched &watched, Checked &checked);
  /// Runs the function in `module`; true if there was an answer, which agrees
  /// or is described in `blame`.
  bool runCase(ModuleOp module, Ranks &ranks, FunctionOpInterface func,
               const Watched &watched, Checked &checked, Blame &blame);
  /// Finds the first of the passes on nested operations that `func` did not
  /// survive.
  std::optional<Blame> narrow(const Watched &watched, Checked &checked,
                              StringRef name);
  void report(FunctionOpInterface func, Watched &watched,
              const Checked &checked, const Blame &blame);
  std::optional<Outputs> moved(const Watched &watched, const Checked &checked,
                               StringRef name);
  void say(const llvm::Twine &text) {
    if (options.verbose)
      llvm::errs() << "validate: " << text << '\n';
  }

  ValidationOptions options;
  std::shared_ptr<ValidationResult> result;
  ModuleOp current;
  Tolerance tolerance{0, 0};
  WeightCache weights;
  int64_t left = 0;  ///< of all work
  int64_t share = 0; ///< of a function for one pass
  llvm::MapVector<StringAttr, Watched> functions;
  /// Functions of ops that are not known, and which.
  llvm::MapVector<StringAttr, std::string> waiting;
  std::optional<OperationFingerPrint> fingerprint;
  /// Results of passes on nested operations. They are judged when the last of
  /// these passes has seen the last operation; otherwise a module of many
  /// functions would be run for each of them.
  std::vector<PassStep> steps;
  /// The module as it is judged, if one of its functions has agreed.
  ModuleState state;
};

static std::string nameOf(Pass *pass) {
  return (pass->getArgument().empty() ? pass->getName() : pass->getArgument())
      .str();
}

/// A pass that only runs others on nested operations.
static bool isAdaptor(Pass *pass) {
  return pass->getName().ends_with("OpToOpPassAdaptor");
}

static ModuleOp moduleOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  return module ? module : op->getParentOfType<ModuleOp>();
}

/// The symbols that lead from the module to an operation in it; none for one
/// that has no name.
static llvm::SmallVector<StringAttr> pathTo(Operation *op, ModuleOp module) {
  llvm::SmallVector<StringAttr> path;
  for (; op != module; op = op->getParentOp())
    if (auto name = SymbolTable::getSymbolName(op))
      path.push_back(name);
  std::reverse(path.begin(), path.end());
  return path;
}

static Operation *findByPath(ModuleOp module, ArrayRef<StringAttr> path) {
  Operation *op = path.empty() ? nullptr : module.getOperation();
  for (StringAttr name : path)
    op = op ? SymbolTable::lookupSymbolIn(op, name) : nullptr;
  return op;
}

/// Passes that a function goes through on its way to LLVM's dialect, about.
static constexpr int64_t usualPasses = 50;

void Validation::Watch::leaveOut(FunctionOpInterface func, Watched *watched,
                                 const llvm::Twine &from, StringRef why) {
  if (watched)
    watched->done = true;
  say("@" + func.getName() + " is not watched" + from + ": " + why);
  if (options.warn)
    emitWarning(func.getLoc()) << "@" << func.getName() << " is not validated"
                               << from.str() << ": " << why;
}

void Validation::Watch::thin(StringRef name, Watched &watched) {
  llvm::erase_if(watched.cases,
                 [](const Checked &checked) { return checked.tooLong; });
  int64_t cost = 0;
  for (const Checked &checked : watched.cases)
    cost += checked.cost;
  while (watched.cases.size() > 1 && cost > share) {
    auto most = llvm::max_element(
        watched.cases, [](auto &a, auto &b) { return a.cost < b.cost; });
    say("@" + name + " is run no more with " + most->check.name +
        ", which costs " + Twine(most->cost) + " of " + Twine(share));
    cost -= most->cost;
    watched.cases.erase(most);
  }
}

bool Validation::Watch::watch(ModuleOp module, FunctionOpInterface func,
                              std::string &why) {
  Ranks ranks(module, &weights);
  Watched watched(func);
  why = "takes what cannot be made up";
  std::string unknown;
  // The first of cases with one name that the function is defined for.
  std::string last;
  for (Case &check : makeCases(func, options)) {
    if (!watched.cases.empty() && check.name == last)
      continue;
    auto args = makeArguments(func, check);
    if (!args)
      break;
    ranks.reset(options.budget);
    if (options.progress)
      options.progress(("@" + func.getName() + " as it is").str());
    auto outputs = run(ranks, func, watched.signature, *args, /*like=*/nullptr);
    int64_t cost = account(ranks, options.budget);
    if (outputs) {
      last = check.name;
      watched.cases.push_back(
          {check, std::move(*args), std::move(*outputs), cost});
      continue;
    }
    why = ranks.failed().message;
    if (ranks.failed().failure == Failure::Unsupported) {
      unknown = ranks.failed().culprit->getName().getStringRef().str();
      break; // no input changes that
    }
  }
  thin(func.getName(), watched);
  if (watched.cases.empty()) {
    // A pass may lower what is not known.
    if (!unknown.empty())
      waiting[func.getNameAttr()] = unknown;
    return false;
  }
  watched.module = std::make_shared<OwningOpRef<ModuleOp>>(module.clone());
  functions.insert({func.getNameAttr(), std::move(watched)});
  return true;
}

void Validation::Watch::start(ModuleOp module) {
  current = module;
  steps.clear();
  functions.clear();
  waiting.clear();
  tolerance = findTolerance(module);
  if (options.atol)
    tolerance.atol = *options.atol;
  if (options.rtol)
    tolerance.rtol = *options.rtol;
  llvm::SmallVector<FunctionOpInterface> roots = findRoots(module);
  left = options.total;
  share =
      options.total / usualPasses / std::max<int64_t>(int64_t(roots.size()), 1);
  // If a function costs too much, those that it calls may still be run.
  llvm::SetVector<Operation *> queue;
  for (FunctionOpInterface func : roots)
    queue.insert(func);
  for (size_t i = 0; i < queue.size(); ++i) {
    auto func = cast<FunctionOpInterface>(queue[i]);
    std::string why;
    if (watch(module, func, why))
      continue;
    if (why.find(Machine::tooLong) != std::string::npos)
      func.walk([&](CallOpInterface call) {
        auto callee =
            dyn_cast_or_null<FunctionOpInterface>(call.resolveCallable());
        if (callee && !callee.isExternal())
          queue.insert(callee);
      });
    if (i < roots.size())
      leaveOut(func, nullptr,
               waiting.contains(func.getNameAttr())
                   ? " before a pass changes what it is made of"
                   : "",
               why);
  }
}

/// Functions that could not be run before.
void Validation::Watch::tryWaiting(ArrayRef<std::string> passes,
                                   ModuleOp module) {
  if (waiting.empty())
    return;
  llvm::StringSet<> present;
  module.walk(
      [&](Operation *op) { present.insert(op->getName().getStringRef()); });
  auto before = waiting.takeVector();
  for (const auto &[name, unknown] : before) {
    if (present.contains(unknown)) {
      waiting[name] = unknown;
      continue;
    }
    auto func =
        dyn_cast_or_null<FunctionOpInterface>(module.lookupSymbol(name));
    std::string why;
    if (func && !func.isExternal() && left > 0 && watch(module, func, why))
      say("@" + func.getName() + " is watched from " + passes.back() + " on");
  }
}

void Validation::Watch::runBeforePass(Pass *pass, Operation *op) {
  ModuleOp module = moduleOf(op);
  if (isAdaptor(pass) || !module)
    return;
  if (module != current)
    start(module);
  fingerprint.emplace(op);
}

void Validation::Watch::runAfterPass(Pass *pass, Operation *op) {
  ModuleOp module = moduleOf(op);
  if (!module || module != current)
    return;
  if (isAdaptor(pass)) {
    if (op != module || steps.empty())
      return;
    std::vector<std::string> passes;
    llvm::SmallVector<Operation *> changed;
    for (const PassStep &step : steps) {
      if (!llvm::is_contained(passes, step.pass))
        passes.push_back(step.pass);
      if (Operation *target = findByPath(module, step.path))
        changed.push_back(target);
    }
    judgeAll(passes, module, changed);
    return;
  }
  // Most passes change most modules not at all.
  if (fingerprint && *fingerprint == OperationFingerPrint(op))
    return;
  fingerprint.reset();
  // This pass makes another function on purpose: from here on, that one must
  // stay the same.
  if (pass->getArgument() == "attune-quantize" ||
      pass->getArgument() == "attune-low-rank" ||
      pass->getArgument() == "attune-prune-heads")
    return start(module);
  if (op != module) {
    steps.push_back({nameOf(pass), pathTo(op, module), op->clone()});
    return;
  }
  // Passes that it ran on nested operations are a part of it.
  steps.clear();
  judgeAll(nameOf(pass), module, op);
}

void Validation::Watch::judgeAll(ArrayRef<std::string> passes, ModuleOp module,
                                 ArrayRef<Operation *> changed) {
  for (auto &[name, watched] : functions) {
    auto func =
        dyn_cast_or_null<FunctionOpInterface>(module.lookupSymbol(name));
    if (watched.done || !func || func.isExternal())
      continue;
    if (llvm::any_of(changed, [&](Operation *op) {
          return op == module || reaches(module, func, op);
        }))
      judge(passes, module, func, watched);
  }
  tryWaiting(passes, module);
  steps.clear();
  state.reset();
}

void Validation::Watch::judge(ArrayRef<std::string> passes, ModuleOp module,
                              FunctionOpInterface func, Watched &watched) {
  // Layouts that are gone are not needed again.
  if (weights.held > 2 * options.budget)
    weights = WeightCache();
  Ranks ranks(module, &weights);
  bool judged = true;
  std::string why;
  for (Checked &checked : watched.cases) {
    bool answered = judgeCase(passes, module, ranks, func, watched, checked);
    if (watched.done)
      return;
    judged &= answered || checked.tooLong;
    if (!answered)
      why = ranks.failed().message;
  }
  thin(func.getName(), watched);
  std::string names = llvm::join(passes, ", ");
  std::string from = " from '" + names + "' on";
  if (watched.cases.empty())
    return leaveOut(func, &watched, from, why);
  if (left < 0)
    return leaveOut(func, &watched, from, "all that it may cost is spent");
  if (!judged) {
    if (watched.unjudged.empty() && options.warn)
      emitWarning(func.getLoc())
          << "@" << func.getName() << " is not validated after '" << names
          << "': " << why;
    llvm::append_range(watched.unjudged, passes);
    return;
  }
  watched.unjudged.clear();
  if (!state)
    state = std::make_shared<OwningOpRef<ModuleOp>>(module.clone());
  watched.module = state;
  say("after " + names + ", @" + func.getName() + " is the same on " +
      Twine(watched.cases.size()) + " inputs");
}

/// Whether there was an answer to compare.
bool Validation::Watch::judgeCase(ArrayRef<std::string> passes, ModuleOp module,
                                  Ranks &ranks, FunctionOpInterface func,
                                  Watched &watched, Checked &checked) {
  Blame blame;
  if (options.progress)
    options.progress(
        ("@" + func.getName() + " after '" + passes.back() + "'").str());
  if (!runCase(module, ranks, func, watched, checked, blame)) {
    say("after " + llvm::join(passes, ", ") + ", @" + func.getName() +
        " cannot be run: " + ranks.failed().message);
    return false;
  }
  if (!blame.wrong)
    return true;
  if (steps.size() > 1)
    if (auto narrowed = narrow(watched, checked, func.getName())) {
      report(func, watched, checked, *narrowed);
      return true;
    }
  blame.passes = watched.unjudged;
  llvm::append_range(blame.passes, passes);
  blame.before = watched.module->get();
  blame.after = module;
  report(func, watched, checked, blame);
  return true;
}

bool Validation::Watch::runCase(ModuleOp module, Ranks &ranks,
                                FunctionOpInterface func,
                                const Watched &watched, Checked &checked,
                                Blame &blame) {
  // The function was defined within the budget; a little more is no bug.
  ranks.reset(4 * options.budget);
  auto outputs =
      run(ranks, func, watched.signature, checked.args, &checked.before);
  checked.cost = account(ranks, 4 * options.budget);
  if (!outputs) {
    checked.tooLong = ranks.failed().failure == Failure::Budget;
    blame.wrong = ranks.failed().failure == Failure::Illegal ||
                  ranks.failed().failure == Failure::OutOfBounds;
    blame.message = ranks.failed().message;
    blame.culprit = ranks.failed().culprit;
    return blame.wrong;
  }
  blame.mismatch =
      compare(checked.before, *outputs, checked.check, tolerance, nullptr);
  if (blame.mismatch) {
    // A function may be worse conditioned than the bound expects.
    auto nearby = moved(watched, checked, func.getName());
    blame.mismatch = compare(checked.before, *outputs, checked.check, tolerance,
                             nearby ? &*nearby : nullptr);
  }
  blame.wrong = blame.mismatch.has_value();
  if (blame.wrong)
    blame.message = blame.mismatch->text();
  return true;
}

std::optional<Blame> Validation::Watch::narrow(const Watched &watched,
                                               Checked &checked,
                                               StringRef name) {
  auto copy = [](ModuleOp module) {
    return std::make_shared<OwningOpRef<ModuleOp>>(module.clone());
  };
  ModuleState before = watched.module, now = copy(before->get());
  std::vector<std::string> passes = watched.unjudged;
  for (const PassStep &step : steps) {
    Operation *old = findByPath(now->get(), step.path);
    if (!old)
      return std::nullopt;
    Operation *changed = OpBuilder(old).clone(**step.after);
    old->erase();
    auto func = now->get().lookupSymbol<FunctionOpInterface>(name);
    if (!func || !reaches(now->get(), func, changed))
      continue;
    passes.push_back(step.pass);
    Ranks ranks(now->get(), &weights);
    Blame blame;
    if (!runCase(now->get(), ranks, func, watched, checked, blame))
      continue;
    if (blame.wrong) {
      blame.passes = std::move(passes);
      blame.before = before->get();
      blame.after = now->get();
      blame.kept = {before, now};
      return blame;
    }
    passes.clear();
    before = copy(now->get());
  }
  return std::nullopt;
}

std::optional<Outputs> Validation::Watch::moved(const Watched &watched,
                                                const Checked &checked,
                                                StringRef name) {
  auto before = watched.module->get().lookupSymbol<FunctionOpInterface>(name);
  Ranks ranks(watched.module->get(), &weights);
  ranks.reset(4 * options.budget);
  double step = tolerance.rtol > 1e-3 ? 1e-3 : 1e-6;
  return run(ranks, before, watched.signature, disturb(checked.args, step),
             &checked.before);
}

/// Where the value that is returned comes from, before the pass.
static Location whereFrom(ModuleOp module, const Watched &watched,
                          FunctionOpInterface func, const Mismatch *mismatch) {
  auto before = module.lookupSymbol<FunctionOpInterface>(func.getName());
  for (size_t r = 0; mismatch && before && r < watched.signature.results.size();
       ++r) {
    Operation *end = before.getFunctionBody().back().getTerminator();
    if (watched.signature.results[r] != mismatch->name ||
        r >= end->getNumOperands())
      continue;
    if (Operation *op = end->getOperand(r).getDefiningOp())
      return op->getLoc();
  }
  return func.getLoc();
}

void Validation::Watch::report(FunctionOpInterface func, Watched &watched,
                               const Checked &checked, const Blame &blame) {
  watched.done = true;
  ++result->mismatches;
  std::string passes = blame.passes.size() == 1
                           ? "'" + blame.passes.front() + "'"
                           : "one of " + llvm::join(blame.passes, ", ");
  std::optional<Place> place;
  if (blame.mismatch)
    place = findPlace(blame.before, blame.after, func.getName(),
                      watched.signature, checked.args, checked.before,
                      tolerance.atol + tolerance.rtol, 4 * options.budget);
  Location where = blame.culprit ? blame.culprit->getLoc()
                   : place
                       ? place->location
                       : whereFrom(blame.before, watched, func,
                                   blame.mismatch ? &*blame.mismatch : nullptr);
  InFlightDiagnostic diagnostic =
      emitError(where) << passes << " changed what @" << func.getName()
                       << " computes: " << blame.message << ", with "
                       << checked.check.name;
  if (place)
    diagnostic.attachNote(place->location)
        << "the first value that differs is that of '" << place->op
        << "': " << place->text;
  else if (blame.culprit)
    diagnostic.attachNote(blame.culprit->getLoc())
        << "by '" << blame.culprit->getName().getStringRef() << "'";
}

namespace {
/// A pass manager owns one of these; what they see goes to one place.
template <typename Watch>
class Instrumentation final : public PassInstrumentation {
public:
  explicit Instrumentation(std::shared_ptr<Watch> watch)
      : watch(std::move(watch)) {}
  void runBeforePass(Pass *pass, Operation *op) override {
    watch->runBeforePass(pass, op);
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    watch->runAfterPass(pass, op);
  }

private:
  std::shared_ptr<Watch> watch;
};
} // namespace

Validation::Validation(const ValidationOptions &options,
                       std::shared_ptr<ValidationResult> result)
    : watch(std::make_shared<Watch>(options, std::move(result))) {}

void Validation::attach(PassManager &passes) {
  passes.getContext()->disableMultithreading();
  passes.addInstrumentation(std::make_unique<Instrumentation<Watch>>(watch));
}
