//===- Invocation.cpp - One call of an entry ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/CompiledModel.h"
#include "attune/Runtime/Formula.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace attune::runtime {

static std::string quote(std::string_view name) {
  return "'" + std::string(name) + "'";
}

Invocation::Invocation(CompiledModel &model, const EntryInfo &entry)
    : model(model), info(entry), slots(entry.args.size()) {
  for (unsigned i = 0; i < entry.args.size(); ++i) {
    const ArgInfo &arg = entry.args[i];
    if (arg.kind == ArgKind::Output)
      outputArgs.push_back(i);
    if (arg.kind == ArgKind::Cache)
      cacheArgs.push_back(i);
    if (arg.kind == ArgKind::Size && !hasDim(arg.name))
      dims.push_back({arg.name, -1, ""});
    for (const DimInfo &dim : arg.shape)
      if (!dim.symbol.empty() && !hasDim(dim.symbol))
        dims.push_back({dim.symbol, -1, ""});
  }
}

void Invocation::reset() {
  for (Slot &slot : slots)
    slot.bound = false;
  for (Dim &dim : dims)
    dim.value = -1;
  lengths = nullptr;
}

Invocation::Dim *Invocation::findDim(std::string_view symbol) {
  for (Dim &dim : dims)
    if (dim.symbol == symbol)
      return &dim;
  return nullptr;
}

bool Invocation::hasDim(std::string_view symbol) const {
  for (const Dim &dim : dims)
    if (dim.symbol == symbol)
      return true;
  return false;
}

int64_t Invocation::dim(std::string_view symbol) const {
  for (const Dim &dim : dims)
    if (dim.symbol == symbol)
      return dim.value;
  return -1;
}

bool Invocation::bindDim(std::string_view symbol, int64_t value,
                         std::string_view origin, Error &error) {
  for (Dim &dim : dims) {
    if (dim.symbol != symbol)
      continue;
    if (value <= 0)
      return error.badInput("size " + quote(symbol) + " is " +
                            std::to_string(value) + " in " +
                            std::string(origin) + ", but must be positive");
    if (dim.value >= 0 && dim.value != value)
      return error.badInput("size " + quote(symbol) + " is " +
                            std::to_string(dim.value) + " in " + dim.origin +
                            " but " + std::to_string(value) + " in " +
                            std::string(origin));
    if (dim.value < 0) {
      dim.value = value;
      dim.origin.assign(origin.data(), origin.size());
    }
    return true;
  }
  std::string known;
  for (const Dim &dim : dims)
    known += (known.empty() ? "" : ", ") + dim.symbol;
  return error.badInput("the model has no size " + quote(symbol) +
                        (known.empty() ? "; all its sizes are fixed"
                                       : "; its sizes are " + known));
}

static bool allBelow2(const void *data, uint64_t bytes) {
  auto *p = static_cast<const uint8_t *>(data);
  uint8_t seen = 0;
  for (uint64_t i = 0; i < bytes; ++i)
    seen |= p[i];
  return seen < 2;
}

bool Invocation::bindInput(const InputTensor &tensor, Error &error) {
  unsigned i = 0;
  while (i < info.args.size() && !(info.args[i].kind == ArgKind::Input &&
                                   info.args[i].name == tensor.name))
    ++i;
  if (i == info.args.size())
    return error.badInput("the model has no input " + quote(tensor.name));
  const ArgInfo &arg = info.args[i];
  Slot &slot = slots[i];
  auto fail = [&](const std::string &what) {
    return error.badInput("input " + quote(tensor.name) + " " + what);
  };
  if (slot.bound)
    return fail("is given twice");
  if (tensor.shape.size() != arg.shape.size())
    return fail("has shape " + formatShape(tensor.shape) +
                ", but the model expects " + arg.formatShape());
  for (size_t d = 0; d < arg.shape.size(); ++d) {
    const DimInfo &dim = arg.shape[d];
    if (dim.symbol.empty()) {
      if (dim.size != tensor.shape[d])
        return fail("has shape " + formatShape(tensor.shape) +
                    ", but the model expects " + arg.formatShape());
    } else if (!bindDim(dim.symbol, tensor.shape[d],
                        "input " + quote(tensor.name), error)) {
      return false;
    }
  }
  for (size_t d = 0; d < arg.shape.size(); ++d)
    if (int64_t most = arg.mostOf(d); most && tensor.shape[d] > most)
      return fail("has a size " + quote(arg.shape[d].symbol) + " of " +
                  std::to_string(tensor.shape[d]) +
                  ", but the model takes at most " + std::to_string(most));
  uint64_t bytes, fileBytes;
  if (!byteSize(tensor.shape, dtypeBytes(arg.dtype), bytes) ||
      !byteSize(tensor.shape, dtypeBytes(tensor.dtype), fileBytes))
    return fail("of shape " + formatShape(tensor.shape) + " is too large");
  slot.shape = tensor.shape;
  bool aligned =
      reinterpret_cast<uintptr_t>(tensor.data) % dtypeBytes(arg.dtype) == 0;
  bool boolean = arg.dtype == DType::Bool;
  // A byte other than 0 and 1 is no boolean to compiled code.
  bool valid = !boolean || tensor.fromModel ||
               (tensor.dtype == arg.dtype && allBelow2(tensor.data, bytes));
  if (tensor.fromModel && tensor.dtype != arg.dtype)
    return error.set(ExitInternalError,
                     "entry '" + info.name + "' takes " + quote(tensor.name) +
                         " as " + dtypeName(arg.dtype) +
                         ", but it was made as " + dtypeName(tensor.dtype));
  if (tensor.fromModel || (tensor.dtype == arg.dtype && aligned && valid)) {
    describe(slot, const_cast<void *>(tensor.data));
  } else {
    if (!slot.copy.reserve(bytes))
      return error.set(ExitResourceLimit,
                       "no memory for a copy of input " + quote(tensor.name));
    uint64_t count = bytes / dtypeBytes(arg.dtype);
    DType from =
        boolean && tensor.dtype == DType::Bool ? DType::U8 : tensor.dtype;
    if (!convertElements(from, tensor.data, arg.dtype, slot.copy.data(), count))
      return fail(std::string("is ") + dtypeName(tensor.dtype) +
                  ", but the model expects " + dtypeName(arg.dtype));
    describe(slot, slot.copy.data());
  }
  slot.bound = true;
  return arg.max < 0 || tensor.fromModel || checkIds(arg, slot, error);
}

bool Invocation::checkIds(const ArgInfo &arg, const Slot &slot,
                          Error &error) const {
  uint64_t bytes = 0;
  byteSize(slot.shape, dtypeBytes(arg.dtype), bytes);
  auto *ids = reinterpret_cast<const uint8_t *>(slot.words[1]);
  unsigned step = dtypeBytes(arg.dtype);
  for (uint64_t i = 0; i < bytes / step; ++i) {
    int64_t id;
    convertElements(arg.dtype, ids + i * step, DType::I64, &id, 1);
    if ((id >= 0 && id < arg.max) || id == arg.ignored)
      continue;
    std::string index;
    uint64_t rest = i;
    for (size_t d = slot.shape.size(); d-- > 0;) {
      index = std::to_string(rest % slot.shape[d]) +
              (index.empty() ? "" : ", ") + index;
      rest /= slot.shape[d];
    }
    return error.badInput(
        "input '" + arg.name + "' holds " + std::to_string(id) + " at [" +
        index + "], but its values must be from 0 to " +
        std::to_string(arg.max - 1) +
        (arg.ignored ? ", or " + std::to_string(*arg.ignored) : ""));
  }
  return true;
}

bool Invocation::bindLengths(const int64_t *given, Error &error) {
  lengths = given;
  return bindHeld(/*window=*/0, /*most=*/0, given, error);
}

bool Invocation::bindHeld(int64_t window, int64_t most, const int64_t *given,
                          Error &error) {
  bool found = !given;
  for (size_t i = 0; i < info.args.size(); ++i) {
    const ArgInfo &arg = info.args[i];
    std::string unknown;
    if (arg.window != window)
      continue;
    if (arg.kind == ArgKind::Past && window > 0)
      slots[i].words.assign(1, most);
    if (arg.kind != ArgKind::Lengths || !given ||
        !shapeOf(arg, slots[i].shape, unknown))
      continue;
    describe(slots[i], const_cast<int64_t *>(given));
    slots[i].bound = found = true;
  }
  return found || error.set(ExitInternalError,
                            "entry '" + info.name + "' takes no lengths");
}

bool Invocation::bindCache(unsigned i, void *data, Error &error) {
  const ArgInfo &arg = info.args[cacheArgs[i]];
  Slot &slot = slots[cacheArgs[i]];
  std::string unknown;
  if (!shapeOf(arg, slot.shape, unknown))
    return error.set(ExitInternalError, "size " + quote(unknown) +
                                            " of cache '" + arg.name +
                                            "' is unknown");
  describe(slot, data);
  slot.bound = true;
  return true;
}

bool Invocation::shapeOf(const ArgInfo &arg, std::vector<int64_t> &shape,
                         std::string &unknown) const {
  shape.clear();
  for (const DimInfo &size : arg.shape) {
    int64_t value = size.symbol.empty() ? size.size : dim(size.symbol);
    if (value < 0)
      value = Formula(size.symbol,
                      [this](std::string_view name) { return dim(name); })
                  .value()
                  .value_or(-1);
    if (value < 0) {
      unknown = size.symbol;
      return false;
    }
    shape.push_back(value);
  }
  return true;
}

/// Points the slot's memref descriptor at row-major data of the slot's shape.
void Invocation::describe(Slot &slot, void *data) {
  size_t rank = slot.shape.size();
  slot.words.resize(3 + 2 * rank);
  slot.words[0] = slot.words[1] = reinterpret_cast<intptr_t>(data);
  slot.words[2] = 0;
  int64_t stride = 1;
  for (size_t d = rank; d-- > 0;) {
    slot.words[3 + d] = slot.shape[d];
    slot.words[3 + rank + d] = stride;
    stride *= slot.shape[d];
  }
}

/// The mask that hides tokens of the stream whose positions `arg` holds:
/// "attention_mask" of "position_ids", with the same prefix. Null if every
/// token is shown.
const uint8_t *Invocation::maskBeside(const ArgInfo &arg,
                                      const Slot &slot) const {
  std::string name = arg.name;
  size_t at = name.rfind("position_ids");
  if (at == std::string::npos)
    return nullptr;
  name.replace(at, std::string::npos, "attention_mask");
  for (size_t i = 0; i < info.args.size(); ++i)
    if (info.args[i].name == name && info.args[i].kind == ArgKind::Input &&
        info.args[i].dtype == DType::Bool && slots[i].bound &&
        slots[i].shape == slot.shape)
      return reinterpret_cast<const uint8_t *>(slots[i].words[1]);
  return nullptr;
}

bool Invocation::fillDefault(const ArgInfo &arg, Slot &slot, int64_t past,
                             Error &error) {
  std::string unknown;
  if (!shapeOf(arg, slot.shape, unknown))
    return error.badInput("size " + quote(unknown) + " of input '" + arg.name +
                          "' cannot be read off the inputs; give it with "
                          "--dim " +
                          unknown + "=N");
  uint64_t bytes;
  if (!byteSize(slot.shape, dtypeBytes(arg.dtype), bytes) ||
      !slot.copy.reserve(bytes))
    return error.set(ExitResourceLimit, "no memory for input '" + arg.name +
                                            "' of shape " +
                                            formatShape(slot.shape));
  unsigned step = dtypeBytes(arg.dtype);
  uint64_t count = bytes / step;
  int64_t width = slot.shape.empty() ? 1 : slot.shape.back();
  if (arg.defaultValue == DefaultValue::Iota && arg.max >= 0 &&
      (past > arg.max || width > arg.max - past))
    return error.badInput("the sequence has " + std::to_string(past + width) +
                          " positions, but '" + arg.name +
                          "' must be from 0 to " + std::to_string(arg.max - 1));
  const uint8_t *mask = arg.defaultValue == DefaultValue::CountMask
                            ? maskBeside(arg, slot)
                            : nullptr;
  const Slot *source = nullptr;
  if (arg.defaultValue == DefaultValue::Shifted) {
    std::string name = arg.name.substr(arg.name.find('_') + 1);
    for (size_t i = 0; i < info.args.size(); ++i)
      if (info.args[i].name == name && info.args[i].dtype == arg.dtype &&
          slots[i].bound && slots[i].shape == slot.shape)
        source = &slots[i];
    if (!source || model.info().decoderStart < 0)
      return error.badInput("input '" + arg.name + "' is missing");
  }
  int64_t seen = 0;
  uint64_t ofSequence = lengths ? count / slot.shape[0] : count;
  for (uint64_t i = 0; i < count; ++i) {
    if (lengths)
      past = lengths[i / ofSequence];
    int64_t value = past + static_cast<int64_t>(i % width);
    if (arg.defaultValue == DefaultValue::Zeros)
      value = 0;
    else if (arg.defaultValue == DefaultValue::Ones)
      value = 1;
    else if (arg.defaultValue == DefaultValue::Adapter)
      value = model.adapter();
    if (mask) {
      // Hidden tokens before the first shown one stand where that one does.
      if (i % width == 0)
        seen = 0;
      seen += mask[i] != 0;
      value = past + (seen ? seen - 1 : 0);
    }
    if (source && i % width == 0)
      value = model.info().decoderStart;
    else if (source)
      value = reinterpret_cast<const int64_t *>(source->words[1])[i - 1];
    // A count, or an id of another input, may have no row in a table.
    bool bounded = arg.max < 0 || (value >= 0 && value < arg.max);
    if (!bounded && value != arg.ignored)
      return error.badInput(
          "input '" + arg.name + "' would hold " + std::to_string(value) +
          ", but its values must be from 0 to " + std::to_string(arg.max - 1));
    convertElements(DType::I64, &value, arg.dtype, slot.copy.data() + i * step,
                    1);
  }
  describe(slot, slot.copy.data());
  slot.bound = true;
  return true;
}

/// A model that counts positions, or takes ids, has its sequence on the last
/// axis of those inputs.
bool Invocation::checkContext(int64_t past, Error &error) const {
  int64_t context = model.info().context;
  if (context < 0)
    return true;
  for (size_t i = 0; i < info.args.size(); ++i) {
    const ArgInfo &arg = info.args[i];
    bool sequence =
        arg.kind == ArgKind::Input && !arg.shape.empty() &&
        (arg.defaultValue == DefaultValue::Iota ||
         arg.defaultValue == DefaultValue::CountMask || arg.max >= 0) &&
        !arg.shape.back().symbol.empty();
    if (!sequence || !slots[i].bound)
      continue;
    int64_t length = slots[i].shape.back();
    if (past > context || length > context - past)
      return error.badInput(
          "the sequence has " + std::to_string(past + length) +
          " positions, but the model's context is " + std::to_string(context));
  }
  return true;
}

/// "ceil(seq/64)" is a size that follows from 'seq', and so is "(seq-3)/2+1".
bool Invocation::checkDerived(Error &error) const {
  for (const Dim &derived : dims) {
    std::optional<int64_t> value =
        Formula(derived.symbol, [this](std::string_view name) {
          return dim(name);
        }).value();
    if (!value)
      continue;
    if (*value < 1)
      return error.badInput("size " + quote(derived.symbol) +
                            " is less than 1: the input is shorter than the "
                            "kernels of the model's convolutions");
    if (derived.value >= 0 && derived.value != *value)
      return error.badInput(
          "size " + quote(derived.symbol) + " is " +
          std::to_string(derived.value) + " in " + derived.origin +
          ", but follows from the inputs: " + std::to_string(*value));
  }
  constexpr std::string_view prefix = "ceil(";
  for (const Dim &derived : dims) {
    std::string_view text = derived.symbol;
    size_t slash = text.rfind('/');
    if (text.substr(0, prefix.size()) != prefix ||
        slash == std::string_view::npos || derived.value < 0)
      continue;
    std::string_view base = text.substr(prefix.size(), slash - prefix.size());
    int64_t block = 0;
    for (char c : text.substr(slash + 1, text.size() - slash - 2))
      block = block * 10 + (c - '0');
    int64_t size = dim(base);
    if (size < 0 || block < 1 || derived.value == (size + block - 1) / block)
      continue;
    return error.badInput("size " + quote(text) + " is " +
                          std::to_string(derived.value) + " in " +
                          derived.origin + ", but " + quote(base) + " is " +
                          std::to_string(size) + ", which makes it " +
                          std::to_string((size + block - 1) / block));
  }
  return true;
}

/// Rows and columns of images must leave a token for each place.
bool Invocation::checkPlaces(Error &error) const {
  for (size_t i = 0; i < info.args.size(); ++i) {
    const ArgInfo &arg = info.args[i];
    const Slot &slot = slots[i];
    if (!arg.places || !slot.bound || arg.dtype != DType::I64 ||
        slot.shape.size() != 2 || slot.shape[1] != 2)
      continue;
    int64_t most =
        arg.places->symbol.empty() ? arg.places->size : dim(arg.places->symbol);
    auto *sizes = reinterpret_cast<const int64_t *>(slot.words[1]);
    for (int64_t image = 0; image < slot.shape[0]; ++image) {
      int64_t rows = sizes[2 * image], columns = sizes[2 * image + 1];
      if (rows > 0 && columns > 0 && rows <= most / columns)
        continue;
      return error.badInput(
          "input '" + arg.name + "' says that image " + std::to_string(image) +
          " has " + std::to_string(rows) + " x " + std::to_string(columns) +
          " places, but there must be at least one and not "
          "more than the " +
          std::to_string(most) + " tokens of an image");
    }
  }
  return true;
}

bool Invocation::resolve(int64_t past, std::string_view origin, Error &error) {
  pastLength = past;
  for (size_t i = 0; i < info.args.size(); ++i) {
    const ArgInfo &arg = info.args[i];
    if (arg.kind != ArgKind::Input || slots[i].bound)
      continue;
    if (arg.defaultValue == DefaultValue::None)
      return error.badInput(
          "input '" + arg.name + "' of shape " + arg.formatShape() +
          " is missing" + (origin.empty() ? "" : " in ") + std::string(origin));
  }
  if (!checkDerived(error) || !checkPlaces(error))
    return false;
  // Before defaults are filled, so that their values are in range too.
  if (!checkContext(past, error))
    return false;
  for (size_t i = 0; i < info.args.size(); ++i) {
    const ArgInfo &arg = info.args[i];
    if (arg.kind != ArgKind::Input || slots[i].bound)
      continue;
    if (!fillDefault(arg, slots[i], past, error))
      return false;
  }
  if (!checkContext(past, error))
    return false;
  // A size that nobody gives is 0.
  for (const ArgInfo &arg : info.args)
    if (arg.kind == ArgKind::Size && dim(arg.name) < 0)
      findDim(arg.name)->value = 0;
  outputDecls.resize(outputArgs.size());
  for (size_t i = 0; i < outputArgs.size(); ++i) {
    const ArgInfo &arg = info.args[outputArgs[i]];
    TensorDecl &decl = outputDecls[i];
    decl.name = arg.name;
    decl.dtype = arg.dtype;
    std::string unknown;
    if (!shapeOf(arg, decl.shape, unknown))
      return error.badInput("size " + quote(unknown) + " of output '" +
                            arg.name +
                            "' cannot be read off the inputs; give it with "
                            "--dim " +
                            unknown + "=N");
    uint64_t bytes;
    if (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes))
      return error.set(ExitResourceLimit,
                       "output '" + arg.name + "' of shape " +
                           formatShape(decl.shape) + " is too large");
  }
  return true;
}

void Invocation::setOutput(unsigned i, void *data) {
  Slot &slot = slots[outputArgs[i]];
  slot.shape = outputDecls[i].shape;
  describe(slot, data);
  slot.bound = true;
}

bool Invocation::bindOutputs(std::vector<Buffer> &buffers, Error &error) {
  buffers = std::vector<Buffer>(outputDecls.size());
  for (unsigned i = 0; i < buffers.size(); ++i) {
    const TensorDecl &decl = outputDecls[i];
    uint64_t bytes = 0;
    if (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes) ||
        !buffers[i].reserve(bytes))
      return error.set(ExitResourceLimit, "no memory for output '" + decl.name +
                                              "' of shape " +
                                              formatShape(decl.shape));
    setOutput(i, buffers[i].data());
  }
  return true;
}

bool Invocation::collectArguments(std::vector<void *> &args, Error &error) {
  args.resize(info.args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    Slot &slot = slots[i];
    switch (info.args[i].kind) {
    case ArgKind::Weights:
      slot.shape.assign(1, static_cast<int64_t>(model.weightsBytes()));
      describe(slot, const_cast<uint8_t *>(model.weights()));
      args[i] = slot.words.data();
      continue;
    case ArgKind::Past:
      args[i] = slot.words.empty() ? &pastLength : slot.words.data();
      continue;
    case ArgKind::Size:
      args[i] = &findDim(info.args[i].name)->value;
      continue;
    default:
      if (!slot.bound)
        return error.set(ExitInternalError, "argument '" + info.args[i].name +
                                                "' of entry '" + info.name +
                                                "' was not bound");
      args[i] = slot.words.data();
    }
  }
  return true;
}

bool Invocation::run(Error &error) {
  std::vector<void *> args;
  return collectArguments(args, error) && model.call(info, args.data(), error);
}

bool Invocation::rehearse(Error &error) {
  std::vector<void *> args;
  return collectArguments(args, error) &&
         model.rehearse(info, args.data(), error);
}

} // namespace attune::runtime
