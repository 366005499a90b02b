//===- Machine.h - Runs functions op by op ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_MACHINE_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_MACHINE_H

#include "Datum.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace attune::validation {

class Machine;
class Ranks;

/// One op with the values of its operands, about to get those of its results.
struct Step {
  Machine &machine;
  mlir::Operation *op;
  llvm::MutableArrayRef<Datum> in;
  llvm::SmallVectorImpl<Datum> &out;

  /// The type of an operand's or a result's elements, or the type itself.
  mlir::Type elementOf(mlir::Value value) const {
    return mlir::getElementTypeOrSelf(value.getType());
  }
  void give(Datum datum) { out.push_back(std::move(datum)); }
};

/// False if the machine has failed.
using Handler = bool (*)(Step &);

/// Why a function has no value.
enum class Failure {
  None,
  Unsupported, ///< an op that the machine does not know
  Illegal,     ///< these inputs are none that the function is defined for
  OutOfBounds, ///< memory that no buffer has, or an index out of its range
  Budget,      ///< it takes longer than was allowed
};

/// The numbers of weights, shared by all machines of a module: passes change
/// few.
struct WeightCache {
  /// By what the op says of the weight, and its layer.
  llvm::DenseMap<std::pair<mlir::Attribute, int64_t>, Datum> values;
  int64_t held = 0; ///< numbers
};

/// Runs functions of one module, each op as its dialect defines it: floats of a
/// type are rounded to it after every op, buffers are bytes of their own and
/// start as NaN. It shares no code with the lowering, which is what it judges.
class Machine {
public:
  explicit Machine(mlir::ModuleOp module, WeightCache *cache = nullptr);
  ~Machine();

  /// Calls a function. Arguments that are memrefs are written to in place.
  bool call(mlir::FunctionOpInterface func, llvm::MutableArrayRef<Datum> args,
            llvm::SmallVectorImpl<Datum> &results);

  /// Runs the ops of a block; `results` are the operands of its terminator. The
  /// arguments are moved from, so that a value with one owner is updated in
  /// place.
  bool runBlock(mlir::Block &block, llvm::MutableArrayRef<Datum> args,
                llvm::SmallVectorImpl<Datum> &results);
  /// Runs a region of blocks that branch to each other.
  bool runRegion(mlir::Region &region, llvm::MutableArrayRef<Datum> args,
                 llvm::SmallVectorImpl<Datum> &results);
  /// The current value.
  const Datum &valueOf(mlir::Value value) { return values[slotOf(value)]; }

  bool fail(mlir::Operation *op, Failure why, const llvm::Twine &message);
  bool illegal(Step &step, const llvm::Twine &message) {
    return fail(step.op, Failure::Illegal, message);
  }
  bool outOfBounds(Step &step, const llvm::Twine &message) {
    return fail(step.op, Failure::OutOfBounds, message);
  }
  /// Takes `work` from the budget.
  bool spend(mlir::Operation *op, int64_t work);
  bool spend(Step &step, int64_t work) { return spend(step.op, work); }

  mlir::ModuleOp getModule() { return module; }
  /// Forgets a failure; `work` may be spent from now on.
  void reset(int64_t work);

  /// The message of Failure::Budget.
  static constexpr llvm::StringLiteral tooLong =
      "costs more than 'budget' allows";

  /// Which one of the ranks that share the weights it is, and of those that
  /// share the positions of a sequence.
  int64_t rank = 0, sharer = 0;
  Ranks *ranks = nullptr;

  Failure failure = Failure::None;
  std::string message;
  mlir::Operation *culprit = nullptr;
  int64_t budget = 0;

  /// The value of one layer of a weight, row-major or in panels as its type
  /// says, and the bytes of all of them. Nothing if there is no such weight, or
  /// it takes too long to make it up.
  Datum getWeight(llvm::StringRef name, int64_t layer);
  Datum getWeightBytes();

  /// The indices of the linalg ops that are being run, innermost last.
  std::vector<Shape> linalgIndices;
  /// Where the next block goes to, of a branch that was just run.
  mlir::Block *nextBlock = nullptr;
  llvm::StringMap<Datum> globals;
  /// Frames of attune_rt_frame_push.
  std::vector<llvm::IntrusiveRefCntPtr<Memory>> frames;
  /// Iterations claimed since the last barrier.
  int64_t claimed = 0;
  /// The address of a block of memory as a number; the block lives on.
  Datum expose(Memory *memory);
  /// The exposed block that has these bytes, or null.
  Memory *owner(const uint8_t *place, int64_t count) const;

  /// Called with each result, if set: a trace.
  void (*onResult)(void *, mlir::Operation *, llvm::ArrayRef<Datum>) = nullptr;
  void *onResultState = nullptr;

private:
  struct Code;
  Code &compile(mlir::Block &block);
  unsigned slotOf(mlir::Value value);

  mlir::ModuleOp module;
  WeightCache *cache;
  llvm::DenseMap<mlir::Block *, std::unique_ptr<Code>> codes;
  llvm::DenseMap<mlir::Value, unsigned> slots;
  std::vector<Datum> values;
  llvm::StringMap<Datum> weights;
  Datum weightBytes;
  std::map<const uint8_t *, llvm::IntrusiveRefCntPtr<Memory>> exposed;
  int depth = 0;
};

/// Adds the handlers of one family of dialects.
using Handlers = llvm::StringMap<Handler>;
void addControl(Handlers &);
void addArith(Handlers &);
void addMath(Handlers &);
void addTensor(Handlers &);
void addLinalg(Handlers &);
void addVector(Handlers &);
void addMemRef(Handlers &);
void addLLVM(Handlers &);
void addPointers(Handlers &);
void addAttention(Handlers &);
void addLinear(Handlers &);
void addNorms(Handlers &);
void addExperts(Handlers &);
void addTokens(Handlers &);
void addRecurrent(Handlers &);
void addPairProducts(Handlers &);
void addMatrixTiles(Handlers &);
void addMesh(Handlers &);

/// Runs a call of the runtime by which ranks exchange something; nothing if the
/// function is none of those.
std::optional<bool> callMesh(Step &step, llvm::StringRef name);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_MACHINE_H
