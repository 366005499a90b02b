//===- Ranks.cpp - Machines that share a model ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include "Pointers.h"

#include "Attune/AttuneMeshOps.h"

#include <cmath>
#include <limits>
#include <thread>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

Ranks::Ranks(ModuleOp module, WeightCache *cache) {
  auto countOf = [&](StringRef name) {
    auto count = module->getAttrOfType<IntegerAttr>(name);
    return count ? std::max<int64_t>(count.getInt(), 1) : 1;
  };
  parts = countOf("attune.ranks");
  for (int64_t rank = 0; rank < parts * countOf("attune.sharers"); ++rank) {
    machines.push_back(std::make_unique<Machine>(module, cache));
    machines.back()->rank = rank % parts;
    machines.back()->sharer = rank / parts;
    machines.back()->ranks = this;
  }
}

void Ranks::reset(int64_t work) {
  culprit = 0;
  for (auto &machine : machines)
    machine->reset(work);
}

int64_t Ranks::spent(int64_t work) const {
  int64_t sum = 0;
  for (const auto &machine : machines)
    sum += work - std::max<int64_t>(machine->budget, 0);
  return sum;
}

bool Ranks::run(llvm::function_ref<bool(Machine &)> body) {
  exchanges.assign(size(), 0);
  for (Round &round : rounds)
    round = {std::vector<Datum>(size()), std::vector<Operation *>(size()),
             std::vector<int64_t>(size())};
  // A rank alone meets itself at collectives, and needs no thread.
  if (size() == 1)
    return body(*machines[0]);
  turn = 0;
  done.assign(size(), false);
  bool good = true;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size(); ++rank)
    threads.emplace_back([&, rank] {
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return turn == rank; });
      }
      bool own = body(*machines[rank]);
      std::unique_lock<std::mutex> lock(mutex);
      if (!own && good)
        culprit = rank;
      good &= own;
      done[rank] = true;
      passOn(rank);
    });
  for (std::thread &thread : threads)
    thread.join();
  return good;
}

void Ranks::passOn(int64_t rank) {
  for (int64_t step = 1; step <= size(); ++step) {
    turn = (rank + step) % size();
    if (!done[turn])
      break;
  }
  changed.notify_all();
}

void Ranks::yield(int64_t rank) {
  std::unique_lock<std::mutex> lock(mutex);
  passOn(rank);
  changed.wait(lock, [&] { return turn == rank; });
}

llvm::ArrayRef<Datum> Ranks::exchange(Machine &machine, Operation *op,
                                      Datum own) {
  int64_t rank = numberOf(machine), number = ++exchanges[rank];
  Round &round = rounds[number % 2];
  round.values[rank] = std::move(own);
  round.ops[rank] = op;
  round.numbers[rank] = number;
  if (size() > 1)
    yield(rank);
  for (int64_t other = 0; other < size(); ++other)
    if (round.numbers[other] != number || round.ops[other] != op) {
      machine.fail(op, Failure::Illegal,
                   "rank " + llvm::Twine(rank) + " waits for rank " +
                       llvm::Twine(other) + ", which is not here");
      return {};
    }
  return round.values;
}

SmallVector<Datum> Ranks::exchangeParts(Machine &machine, Operation *op,
                                        Datum own) {
  llvm::ArrayRef<Datum> all = exchange(machine, op, std::move(own));
  if (all.empty())
    return {};
  return SmallVector<Datum>(all.slice(machine.sharer * parts, parts));
}

SmallVector<Datum> Ranks::exchangePositions(Machine &machine, Operation *op,
                                            Datum own) {
  llvm::ArrayRef<Datum> all = exchange(machine, op, std::move(own));
  SmallVector<Datum> given;
  for (int64_t at = machine.rank; at < int64_t(all.size()); at += parts)
    given.push_back(all[at]);
  return given;
}

//===----------------------------------------------------------------------===//
// Ops and calls
//===----------------------------------------------------------------------===//

/// The sum in the order of ranks, behind what `dest` has if it counts. False if
/// ranks give tensors of different sizes.
static bool addRanks(Step &step, llvm::ArrayRef<Datum> given, bool accumulate,
                     llvm::MutableArrayRef<Scalar> dest) {
  for (auto [rank, datum] : llvm::enumerate(given)) {
    const std::vector<Scalar> &part = datum.array().data;
    if (part.size() != dest.size())
      return step.machine.illegal(step, "sums " + llvm::Twine(part.size()) +
                                            " numbers of one rank and " +
                                            llvm::Twine(dest.size()) +
                                            " of another");
    for (size_t i = 0; i < dest.size(); ++i)
      dest[i].f = rank == 0 && !accumulate
                      ? part[i].f
                      : float(float(dest[i].f) + float(part[i].f));
  }
  return true;
}

/// Rows of `from` columns, of which `columns` of each rank go side by side into
/// rows of `to` columns.
static bool placeRanks(Step &step, llvm::ArrayRef<Datum> given, int64_t from,
                       int64_t columns, int64_t to,
                       llvm::MutableArrayRef<Scalar> dest) {
  int64_t rows = to > 0 ? int64_t(dest.size()) / to : 0;
  for (auto [rank, datum] : llvm::enumerate(given)) {
    const std::vector<Scalar> &part = datum.array().data;
    if (int64_t(part.size()) != rows * from)
      return step.machine.illegal(step, "ranks gather rows of different sizes");
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0, at = int64_t(rank) * columns; i < columns && at < to;
           ++i, ++at)
        dest[row * to + at] = part[row * from + i];
  }
  return true;
}

/// What attention over the keys of all ranks gives, of `width` numbers a row.
/// Each rank gives rows, and behind all of them the logarithms of their sums.
static bool mergeRanks(Step &step, llvm::ArrayRef<Datum> given, int64_t width,
                       llvm::MutableArrayRef<Scalar> dest) {
  int64_t rows = width > 0 ? int64_t(dest.size()) / width : 0;
  for (const Datum &datum : given)
    if (int64_t(datum.array().data.size()) != rows * (width + 1))
      return step.machine.illegal(step, "ranks merge rows of different sizes");
  for (int64_t row = 0; row < rows; ++row) {
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    auto lseOf = [&](const Datum &datum) {
      return datum.array().data[rows * width + row].f;
    };
    for (const Datum &datum : given)
      most = std::max(most, lseOf(datum));
    std::vector<double> sums(width, 0);
    for (const Datum &datum : given) {
      double weight = std::isinf(most) ? 0 : std::exp(lseOf(datum) - most);
      total += weight;
      for (int64_t i = 0; i < width; ++i)
        if (weight != 0)
          sums[i] += weight * datum.array().data[row * width + i].f;
    }
    for (int64_t i = 0; i < width; ++i)
      dest[row * width + i].f = total == 0 ? 0 : float(sums[i] / total);
  }
  return true;
}

/// Rows, and what is to be behind all of them.
static Datum append(const Datum &rows, const Datum &more) {
  std::vector<Scalar> all = rows.array().data;
  llvm::append_range(all, more.array().data);
  Datum result = makeArray({int64_t(all.size())}, real(0));
  result.array().data = std::move(all);
  return result;
}

/// Puts zeros in the rows of which all numbers of `experts` are other ranks'.
static void keepGiven(Array &rows, const Array &experts, int64_t active,
                      int64_t below) {
  int64_t count = active > 0 ? int64_t(experts.data.size()) / active : 0;
  int64_t width = count > 0 ? int64_t(rows.data.size()) / count : 0;
  for (int64_t row = 0; row < count; ++row) {
    auto numbers = llvm::ArrayRef(experts.data).slice(row * active, active);
    if (llvm::none_of(numbers, [&](Scalar number) {
          return uint64_t(number.i) < uint64_t(below);
        }))
      std::fill_n(rows.data.begin() + row * width, width, real(0));
  }
}

static bool runRank(Step &step) {
  auto op = dyn_cast<RankOp>(step.op);
  step.give(whole(op && op.getOfPositions() ? step.machine.sharer
                                            : step.machine.rank));
  return true;
}

/// Runs an op on tensors or buffers: `combine` writes into the destination.
template <typename Combine>
static bool runCollective(Step &step, Combine combine) {
  // (input, ..., destination)
  Value input = step.op->getOperand(0);
  Value dest = step.op->getOperands().back();
  bool tensors = isa<TensorType>(dest.getType());
  Type element = step.elementOf(dest);
  Datum own = tensors ? step.in[0] : readView(step.in[0].view(), element);
  Datum into =
      tensors ? step.in.back() : readView(step.in.back().view(), element);
  int64_t from = cast<ShapedType>(input.getType()).getRank() > 0
                     ? own.array().shape.back()
                     : 1;
  if (isa<AllMergeOp>(step.op))
    own = append(own,
                 tensors ? step.in[1] : readView(step.in[1].view(), element));
  if (auto reduce = dyn_cast<AllReduceOp>(step.op);
      reduce && reduce.getExperts()) {
    Type number = step.elementOf(reduce.getExperts());
    Datum experts = tensors ? step.in[1] : readView(step.in[1].view(), number);
    keepGiven(own.ownArray(), experts.array(), experts.array().shape.back(),
              *reduce.getBelow());
  }
  Ranks &ranks = *step.machine.ranks;
  auto gather = dyn_cast<AllGatherOp>(step.op);
  SmallVector<Datum> given =
      isa<AllMergeOp>(step.op) || (gather && gather.getOfPositions())
          ? ranks.exchangePositions(step.machine, step.op, std::move(own))
          : ranks.exchangeParts(step.machine, step.op, std::move(own));
  if (tensors)
    step.in.back() = Datum(); // so that `into` may have no other owner
  if (given.empty() || !combine(given, from, into.ownArray()))
    return false;
  if (!step.machine.spend(step,
                          int64_t(into.array().data.size() * given.size())))
    return false;
  if (tensors)
    step.give(into);
  else
    writeView(step.in.back().view(), element, into.array());
  return true;
}

static bool runAllReduce(Step &step) {
  auto op = cast<AllReduceOp>(step.op);
  return runCollective(
      step, [&](llvm::ArrayRef<Datum> given, int64_t, Array &dest) {
        return addRanks(step, given, op.getAccumulate(), dest.data);
      });
}

static bool runAllGather(Step &step) {
  int64_t columns = step.in[1].integer();
  return runCollective(step, [&](llvm::ArrayRef<Datum> given, int64_t from,
                                 Array &dest) {
    return placeRanks(step, given, from, columns, dest.shape.back(), dest.data);
  });
}

static bool runAllMerge(Step &step) {
  return runCollective(
      step, [&](llvm::ArrayRef<Datum> given, int64_t width, Array &dest) {
        return mergeRanks(step, given, width, dest.data);
      });
}

/// Numbers of a type that lie one behind the other from an address on.
static Datum loadNumbers(Step &step, Type type, const Datum &address,
                         int64_t count) {
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  const uint8_t *place = count < 0 || count > (int64_t(1) << 32)
                             ? nullptr
                             : bytesAt(step, address, bytes * count);
  if (!place)
    return {};
  Datum result = makeArray({count}, real(0));
  for (Scalar &value : result.array().data) {
    value = loadScalar(type, place);
    place += bytes;
  }
  return result;
}

static Datum loadFloats(Step &step, const Datum &address, int64_t count) {
  return loadNumbers(step, Float32Type::get(step.op->getContext()), address,
                     count);
}

static bool storeFloats(Step &step, const Datum &address, const Array &array) {
  uint8_t *place = bytesAt(step, address, 4 * int64_t(array.data.size()));
  if (!place)
    return false;
  Type f32 = Float32Type::get(step.op->getContext());
  for (Scalar value : array.data) {
    storeScalar(f32, place, value);
    place += 4;
  }
  return true;
}

/// (input, lse, dest, rows, width)
static bool callMerge(Step &step) {
  int64_t rows = step.in[3].integer(), width = step.in[4].integer();
  Datum own = loadFloats(step, step.in[0], rows * width);
  Datum lse = loadFloats(step, step.in[1], rows);
  Datum dest = loadFloats(step, step.in[2], rows * width);
  if (!own.box || !lse.box || !dest.box)
    return false;
  SmallVector<Datum> given = step.machine.ranks->exchangePositions(
      step.machine, step.op, append(own, lse));
  return !given.empty() && mergeRanks(step, given, width, dest.array().data) &&
         storeFloats(step, step.in[2], dest.array());
}

/// (input, dest, rows, columns, accumulate, experts, active, below)
static bool callReduceRows(Step &step) {
  auto number = [&](unsigned i) { return step.in[i].integer(); };
  int64_t rows = number(2), count = rows * number(3), active = number(6);
  Datum own = loadFloats(step, step.in[0], count);
  Datum dest = loadFloats(step, step.in[1], count);
  Datum experts = loadNumbers(step, IntegerType::get(step.op->getContext(), 64),
                              step.in[5], rows * active);
  if (!own.box || !dest.box || !experts.box)
    return false;
  keepGiven(own.array(), experts.array(), active, number(7));
  SmallVector<Datum> given =
      step.machine.ranks->exchangeParts(step.machine, step.op, std::move(own));
  return !given.empty() &&
         addRanks(step, given, number(4) != 0, dest.array().data) &&
         storeFloats(step, step.in[1], dest.array());
}

std::optional<bool> validation::callMesh(Step &step, llvm::StringRef name) {
  if (name == "attune_rt_rank")
    return runRank(step);
  if (name == "attune_rt_rank_of_positions") {
    step.give(whole(step.machine.sharer));
    return true;
  }
  if (name == "attune_rt_all_merge")
    return callMerge(step);
  if (name == "attune_rt_all_reduce_rows")
    return callReduceRows(step);
  bool sum = name == "attune_rt_all_reduce";
  if (!sum && name != "attune_rt_all_gather")
    return std::nullopt;
  // (input, dest, count, accumulate), or
  // (input, dest, rows, input's columns, columns, dest's columns)
  auto number = [&](unsigned i) { return step.in[i].integer(); };
  int64_t count = number(2);
  Datum own = loadFloats(step, step.in[0], sum ? count : count * number(3));
  Datum dest = loadFloats(step, step.in[1], sum ? count : count * number(5));
  if (!own.box || !dest.box)
    return false;
  SmallVector<Datum> given =
      step.machine.ranks->exchangeParts(step.machine, step.op, std::move(own));
  if (given.empty())
    return false;
  bool good = sum ? addRanks(step, given, number(3) != 0, dest.array().data)
                  : placeRanks(step, given, number(3), number(4), number(5),
                               dest.array().data);
  return good && storeFloats(step, step.in[1], dest.array());
}

void validation::addMesh(Handlers &handlers) {
  handlers["attune.rank"] = runRank;
  handlers["attune.all_reduce"] = runAllReduce;
  handlers["attune.all_gather"] = runAllGather;
  handlers["attune.all_merge"] = runAllMerge;
}
