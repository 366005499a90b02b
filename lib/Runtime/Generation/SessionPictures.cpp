//===- SessionPictures.cpp - What a session sees --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors stand in the places of tokens with a certain id, in their order. A
// step takes all vectors of the text, and is told how many of these tokens came
// before.
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Picture.h"

#include <algorithm>

namespace attune::runtime {

const ArgInfo *findImageInput(const ModelInfo &model) {
  const EntryInfo *encode = model.find("encode");
  const EntryInfo *decode = model.find("decode");
  if (!encode || !decode || !decode->findInserted() ||
      decode->findInserted()->each <= 0)
    return nullptr;
  for (const ArgInfo &arg : encode->args)
    if (arg.kind == ArgKind::Input && arg.shape.size() == 4 &&
        arg.shape[1].size > 0 && arg.shape[1].size % 3 == 0 &&
        arg.shape[2].size > 0 && arg.shape[3].size > 0)
      return &arg;
  return nullptr;
}

/// Leaves the vectors of these numbers, in their order.
static bool putInOrder(CompiledModel &model, const std::vector<int64_t> &order,
                       std::vector<Picture::Vectors> &vectors, Error &error) {
  for (Picture::Vectors &all : vectors) {
    uint64_t row = dtypeBytes(all.decl.dtype) * uint64_t(all.decl.shape.back());
    ModelMemory ordered;
    if (!ordered.reserve(model, row * order.size(), "a picture's vectors",
                         error))
      return false;
    // One copy for all that stand side by side.
    for (size_t from = 0, end; from < order.size(); from = end) {
      for (end = from + 1; end < order.size();)
        if (order[end] == order[end - 1] + 1)
          ++end;
        else
          break;
      if (!model.copy(ordered.data() + from * row,
                      all.memory.data() + uint64_t(order[from]) * row,
                      (end - from) * row, error))
        return false;
    }
    all.memory = std::move(ordered);
  }
  return true;
}

bool Session::encode(Picture &picture, Error &error) {
  const ArgInfo *input = findImageInput(model.info());
  if (!input || !encoder)
    return error.badInput("model '" + model.info().name + "' sees no pictures");
  std::vector<float> numbers;
  std::vector<Picture::Vectors> vectors;
  InputTensor pixels;
  pixels.name = input->name;
  pixels.dtype = DType::F32;
  pixels.shape = {1, input->shape[1].size, picture.height, picture.width};
  int64_t tiles = picture.countTiles();
  // One by one: the memory that a step takes does not depend on the picture.
  for (int64_t tile = 0; tile < tiles; ++tile) {
    picture.fill(tile, input->shape[1].size, numbers);
    pixels.data = numbers.data();
    encoder->reset();
    if (!encoder->bindInput(pixels, error) ||
        !encoder->resolve(/*past=*/0, "the picture", error))
      return false;
    vectors.resize(encoder->outputs().size());
    for (unsigned i = 0; i < vectors.size(); ++i) {
      const TensorDecl &decl = vectors[i].decl = encoder->outputs()[i];
      std::vector<int64_t> all = decl.shape;
      all[0] *= tiles;
      uint64_t bytes, whole;
      if (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes) ||
          !byteSize(all, dtypeBytes(decl.dtype), whole))
        return error.set(ExitResourceLimit,
                         "no memory for '" + decl.name + "'");
      if (tile == 0 && !vectors[i].memory.reserve(model, whole,
                                                  "a picture's vectors", error))
        return false;
      encoder->setOutput(i, vectors[i].memory.data() +
                                static_cast<uint64_t>(tile) * bytes);
    }
    if (!encoder->run(error))
      return false;
  }
  if (!picture.order.empty() &&
      !putInOrder(model, picture.order, vectors, error))
    return false;
  picture.vectors = std::move(vectors);
  return true;
}

bool Session::mayTurnTo(const std::vector<PicturePtr> &pictures) const {
  auto tokens = static_cast<size_t>(
      std::count_if(insertedAt.begin(), insertedAt.end(),
                    [&](int64_t position) { return position < past; }));
  if (tokens == 0 || pictures == seen)
    return true;
  // Every row has as many; those that no picture was for are tokens.
  size_t read = 0;
  for (; tokens > 0 && read < seen.size(); ++read)
    tokens -= std::min(
        tokens,
        static_cast<size_t>(seen[read]->countTokens(inserted->each) * batch));
  return tokens == 0 && read <= pictures.size() &&
         std::equal(seen.begin(), seen.begin() + read, pictures.begin());
}

/// Rows of vectors that are none: they fill up the last tile, and stand before
/// all others, so that the last row is that of the last vector. A token that
/// comes behind it finds none.
static int64_t countFilled(const std::vector<int64_t> &shape, int64_t vectors) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d)
    rows *= shape[d];
  return rows - vectors;
}

bool Session::see(const std::vector<PicturePtr> &pictures, Error &error) {
  if (pictures == seen)
    return true;
  seen.clear();
  memory.clear();
  encoded = false;
  if (pictures.empty())
    return true;
  for (const PicturePtr &picture : pictures)
    if (picture->vectors.empty() && !encode(*picture, error))
      return false;
  int64_t rows = 0, each = inserted->each;
  for (const PicturePtr &picture : pictures)
    rows += picture->countTokens(each);
  for (size_t i = 0; i < pictures[0]->vectors.size(); ++i) {
    const TensorDecl &one = pictures[0]->vectors[i].decl;
    Memory all;
    all.name = one.name;
    all.dtype = one.dtype;
    all.shape = one.shape;
    uint64_t bytes = dtypeBytes(one.dtype) * uint64_t(one.shape.back()), whole;
    all.shape[0] = (rows * batch + each - 1) / each;
    if (!byteSize(all.shape, dtypeBytes(one.dtype), whole))
      return error.set(ExitResourceLimit, "no memory for '" + one.name + "'");
    if (!all.made.reserve(model, whole, "pictures' vectors", error))
      return false;
    uint8_t *to = all.made.data() +
                  uint64_t(countFilled(all.shape, rows * batch)) * bytes;
    // Every row of the session reads the same text.
    for (int64_t row = 0; row < batch; ++row)
      for (const PicturePtr &picture : pictures) {
        uint64_t size = bytes * uint64_t(picture->countTokens(each));
        if (!model.copy(to, picture->vectors[i].memory.data(), size, error))
          return false;
        to += size;
      }
    memory.push_back(std::move(all));
  }
  seen = pictures;
  encoded = true;
  return true;
}

/// A step takes vectors for its rows one after the other, and goes on where the
/// last one stopped: those of a text that several rows read, in several steps,
/// are in the order of steps, then rows.
bool Session::orderVectors(const int64_t *ids, int64_t count, Error &error) {
  if (!inserted || !encoded || batch == 1 || seen.empty())
    return true;
  forgetTakenBack();
  auto before = static_cast<int64_t>(insertedAt.size()) / batch;
  int64_t next = std::count(ids, ids + count, inserted->inserted);
  for (size_t i = 0; i < memory.size() && next > 0; ++i) {
    const TensorDecl &one = seen[0]->vectors[i].decl;
    uint64_t bytes = dtypeBytes(one.dtype) * uint64_t(one.shape.back());
    int64_t to = countFilled(memory[i].shape, countVectors()) + before * batch;
    for (int64_t row = 0; row < batch; ++row) {
      // Tokens beyond all vectors are tokens.
      int64_t start = 0, end = before + next;
      for (const PicturePtr &picture : seen) {
        int64_t count = picture->countTokens(inserted->each);
        int64_t from = std::max(before - start, int64_t(0));
        int64_t run = std::min(end - start, count) - from;
        start += count;
        if (run <= 0)
          continue;
        if (!model.copy(memory[i].made.data() + uint64_t(to) * bytes,
                        picture->vectors[i].memory.data() +
                            uint64_t(from) * bytes,
                        uint64_t(run) * bytes, error))
          return false;
        to += run;
      }
    }
  }
  return true;
}

/// How many vectors were taken by tokens before: what the size is called that
/// stands beside them. Without vectors there are those of one picture, and more
/// were taken than there are: nothing is seen.
bool Session::bindInserted(Invocation &call, Error &error) {
  if (!inserted)
    return true;
  forgetTakenBack();
  for (const ArgInfo &arg : call.entry().args) {
    if (arg.kind != ArgKind::Input || arg.inserted < 0)
      continue;
    auto before = static_cast<int64_t>(insertedAt.size());
    if (!encoded && !bindNothingSeen(call, arg, before, error))
      return false;
    if (encoded && !seen.empty())
      for (const Memory &vectors : memory)
        if (vectors.name == arg.name)
          before += countFilled(vectors.shape, countVectors());
    std::string size = arg.name;
    size.replace(size.rfind('.') + 1, std::string::npos, "before");
    // A size that nobody says is 0.
    if (before != 0 && call.hasDim(size) &&
        !call.bindDim(size, before, "the session", error))
      return false;
  }
  return true;
}

bool Session::bindNothingSeen(Invocation &call, const ArgInfo &arg,
                              int64_t &before, Error &error) {
  InputTensor input;
  input.name = arg.name;
  input.dtype = DType::F32;
  input.shape = {1};
  int64_t rows = 1;
  for (size_t i = 1; i < arg.shape.size(); ++i) {
    input.shape.push_back(arg.shape[i].size);
    if (i + 1 < arg.shape.size())
      rows *= input.shape.back();
  }
  before = rows + 1;
  auto numbers = static_cast<size_t>(rows * input.shape.back());
  // All such inputs are as large, so that nothing moves.
  if (noVector.size() < numbers)
    noVector.resize(numbers);
  input.data = noVector.data();
  return call.bindInput(input, error);
}

void Session::forgetTakenBack() {
  insertedAt.erase(
      std::remove_if(insertedAt.begin(), insertedAt.end(),
                     [&](int64_t position) { return position >= past; }),
      insertedAt.end());
}

/// Those that the rows take in all.
int64_t Session::countVectors() const {
  int64_t all = 0;
  if (inserted && encoded && !seen.empty()) {
    for (const PicturePtr &picture : seen)
      all += picture->countTokens(inserted->each) * batch;
    return all;
  }
  for (const Memory &vectors : memory)
    if (inserted && encoded && vectors.name == inserted->name) {
      all = 1;
      for (size_t d = 0; d + 1 < vectors.shape.size(); ++d)
        all *= vectors.shape[d];
    }
  return all;
}

std::optional<int64_t> Session::vectorsRead() {
  forgetTakenBack();
  int64_t all = countVectors();
  if (static_cast<int64_t>(insertedAt.size()) < all)
    return std::nullopt;
  return all;
}

/// All rows have image tokens at the same places.
bool Session::checkRows(const int64_t *ids, int64_t count, int64_t length,
                        Error &error) const {
  for (int64_t row = 1; row < batch; ++row)
    for (int64_t i = 0; i < length; ++i)
      if ((ids[row * count + i] == inserted->inserted) !=
          (ids[i] == inserted->inserted))
        return error.badInput("rows of a batch have their pictures at "
                              "different places");
  return true;
}

/// Tokens of a picture that see each other are computed in one step, alone,
/// which hides none of them: so what the step of others hides stays simple.
/// What comes in a text before they do has its own step, too. Of `left` tokens
/// `ids` has the first, and each further row `count` behind.
bool Session::findSpan(const int64_t *ids, int64_t count, int64_t left,
                       Span &span, Error &error) {
  if (!spans)
    return true;
  if (inserted->bidirectional == Bidirectional::Prompt) {
    span.seeEachOther = past == 0;
    for (const Ring &ring : rings)
      if (past == 0 && left > ring.window)
        return error.badInput(
            "the prompt has " + std::to_string(left) +
            " tokens, which all see each other, but layers with a window of " +
            std::to_string(ring.window) + " would not show them all");
    return true;
  }
  forgetTakenBack();
  int64_t each = inserted->each;
  auto taken = static_cast<int64_t>(insertedAt.size()) / batch;
  if (taken >= countVectors() / batch)
    return true; // such tokens are like others
  if (taken % each != 0)
    return error.badInput("the text ends within a picture, whose " +
                          std::to_string(each) +
                          " tokens are computed together: rewind to the first "
                          "of them");
  int64_t first = std::find(ids, ids + left, inserted->inserted) - ids;
  int64_t next = first > 0 ? first : each, together = 0;
  while (first == 0 && together < std::min(each, left) &&
         ids[together] == inserted->inserted)
    ++together;
  if (first == 0 && together < each)
    return error.badInput(
        "a step has " + std::to_string(together) + " of a picture's " +
        std::to_string(each) +
        " tokens next to each other; they are computed together");
  if (!checkRows(ids, count, next, error))
    return false;
  span = {next, first == 0};
  return true;
}

void Session::noteInserted(const int64_t *ids, int64_t count) {
  for (int64_t i = 0; inserted && i < batch * count; ++i)
    if (ids[i] == inserted->inserted)
      insertedAt.push_back(past + i % count);
}

} // namespace attune::runtime
