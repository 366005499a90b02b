//===- CodeFile.cpp - Codes of a sound in a file --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeFile.h"

#include "attune/Runtime/Safetensors.h"

#include <cstring>

namespace attune::runtime {

bool loadCodes(const std::string &path, PieceCodes &codes, Error &error) {
  SafetensorsFile file;
  std::string reason;
  if (!file.open(path, reason))
    return error.badInput(reason);
  auto bad = [&](const std::string &why) {
    return error.badInput(file.path() + ": " + why);
  };
  const TensorInfo *tensor = file.find("audio_codes");
  if (!tensor)
    return bad("there is no tensor 'audio_codes'");
  std::vector<int64_t> shape = tensor->shape;
  bool inPieces = shape.size() == 4;
  bool fits =
      tensor->dtype == DType::I64 && shape.size() >= 2 && shape.size() <= 4;
  // One sound: [codebooks, frames] behind pieces and a batch.
  for (size_t i = inPieces ? 1 : 0; fits && i + 2 < shape.size(); ++i)
    fits = shape[i] == 1;
  for (int64_t size : shape)
    fits = fits && size > 0;
  if (!fits)
    return bad("'audio_codes' is " + std::string(dtypeName(tensor->dtype)) +
               " " + formatShape(shape) +
               ", expected I64 [codebooks, frames], [1, codebooks, frames] or "
               "[pieces, 1, codebooks, frames]");
  codes.pieces = inPieces ? shape[0] : 1;
  codes.books = shape[shape.size() - 2];
  codes.frames = shape.back();
  codes.codes.resize(tensor->bytes / sizeof(int64_t));
  std::memcpy(codes.codes.data(), tensor->data, tensor->bytes);

  if (const TensorInfo *cut = file.find("last_frame_pad_length")) {
    uint64_t bytes = 0;
    bool isOne = cut->dtype == DType::I64 && byteSize(cut->shape, 8, bytes) &&
                 bytes == 8;
    if (isOne)
      std::memcpy(&codes.missing, cut->data, sizeof(int64_t));
    if (!isOne || codes.missing < 0 || codes.missing >= codes.frames)
      return bad("expected one I64 'last_frame_pad_length', less than the " +
                 std::to_string(codes.frames) + " frames of a piece");
  }
  if (const TensorInfo *scales = file.find("audio_scales")) {
    uint64_t bytes = 0;
    if (scales->dtype != DType::F32 || !byteSize(scales->shape, 4, bytes) ||
        bytes != uint64_t(codes.pieces) * 4)
      return bad("'audio_scales' is " + std::string(dtypeName(scales->dtype)) +
                 " " + formatShape(scales->shape) +
                 ", expected F32 and a number for each of " +
                 std::to_string(codes.pieces) + " pieces");
    codes.scales.resize(size_t(codes.pieces));
    std::memcpy(codes.scales.data(), scales->data, bytes);
  }
  return true;
}

bool saveCodes(const std::string &path, const PieceCodes &codes, Error &error) {
  std::vector<TensorDecl> tensors(1);
  tensors[0].name = "audio_codes";
  tensors[0].dtype = DType::I64;
  tensors[0].shape = {codes.pieces, codes.books, codes.frames};
  bool isScaled = !codes.scales.empty();
  if (codes.pieces > 1 || isScaled) {
    tensors[0].shape.insert(tensors[0].shape.begin() + 1, 1);
    tensors.push_back({"last_frame_pad_length", DType::I64, {}});
  }
  if (isScaled)
    tensors.push_back({"audio_scales", DType::F32, {codes.pieces, 1}});
  SafetensorsWriter writer;
  std::string reason;
  if (!writer.create(path, tensors, reason))
    return error.badInput(reason);
  std::memcpy(writer.data(0), codes.codes.data(), writer.bytes(0));
  if (tensors.size() > 1)
    std::memcpy(writer.data(1), &codes.missing, writer.bytes(1));
  if (isScaled)
    std::memcpy(writer.data(2), codes.scales.data(), writer.bytes(2));
  return writer.commit(reason) || error.badInput(reason);
}

} // namespace attune::runtime
