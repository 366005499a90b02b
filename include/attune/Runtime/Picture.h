//===- Picture.h - Pictures in texts ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model that sees reads a picture as vectors, which stand in the places of so
// many image tokens. From a file to vectors a picture is a Picture; texts,
// sessions and caches know it by its number.
//
// Some models see a picture in tiles of one size, of which each has as many
// vectors: how many tokens it takes depends on its size then.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_PICTURE_H
#define ATTUNE_RUNTIME_PICTURE_H

#include "attune/Runtime/CompiledModel.h"
#include "attune/Runtime/Tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

struct Picture {
  Picture();
  Picture(const Picture &) = delete;

  int64_t number;                ///< that no other picture of the process has
  std::string name;              ///< of its file, or empty
  int64_t height = 0, width = 0; ///< of a tile
  /// Tiles that it was cut into, row by row; the whole picture, as small as one
  /// of them, is the last one. 0: there is nothing but the whole.
  int64_t rows = 0, columns = 0;
  int64_t countTiles() const { return rows * columns + 1; }
  /// Of the file, as it is turned.
  int64_t fileHeight = 0, fileWidth = 0;
  /// The numbers of those of all tiles' vectors that the text model reads, in
  /// their order. Empty: all are read.
  std::vector<int64_t> order;
  /// Image tokens in a prompt, of a model that has so many for each tile.
  int64_t countTokens(int64_t each) const {
    return order.empty() ? countTiles() * each
                         : static_cast<int64_t>(order.size());
  }
  /// Of each tile rows from the top, each from the left: red, green, blue, a
  /// byte each.
  std::vector<uint8_t> pixels;
  /// The number that the encoder reads for each byte of each colour.
  float values[3][256];
  /// The encoder's outputs for the picture, as a session encoded them: those of
  /// one tile behind those of another, or in the order that is read.
  struct Vectors {
    TensorDecl decl; ///< of one tile
    ModelMemory memory;
  };
  std::vector<Vectors> vectors;

  /// Whether a model sees the same in both.
  bool looksLike(const Picture &other) const;
  /// The encoder's input [channels, height, width] for a tile. More than three
  /// channels are frames of a film, each color of all frames after another,
  /// which are all the picture.
  void fill(int64_t tile, int64_t channels, std::vector<float> &numbers) const;
};

/// Whether the model sees pictures, and says how they become its input.
bool canSee(const ModelInfo &model, Error &error);

/// Reads a PNG or JPEG file for a model that can see.
PicturePtr readPicture(const ModelInfo &model, const std::string &path,
                       Error &error);
/// The same of bytes, which messages call `name`. It may have `pixelsLeft`
/// pixels, less those of the picture afterwards.
PicturePtr parsePicture(const ModelInfo &model, const uint8_t *bytes,
                        uint64_t size, const std::string &name,
                        uint64_t &pixelsLeft, Error &error);

/// The image token of a model that can see, and how many of them stand for a
/// picture, or for each of its tiles.
const ArgInfo &imageToken(const ModelInfo &model);
/// Writes a prompt's text as the model's processor does where there are
/// pictures; `images` is ModelInfo's. True: the text has its first token, and
/// none is to be added.
bool layOutPictures(const JsonValue &images, size_t pictures,
                    std::string &text);
/// Whether a text says where pictures are.
bool namesPictures(const ModelInfo &model, const Tokenizer &tokenizer,
                   const std::string &text);
/// Repeats each image token of the prompt as often as its picture has vectors,
/// with the tokens between that the model's processor writes. Without a
/// tokenizer the model's own is opened where it is needed for them.
bool placePictures(const ModelInfo &model, const Tokenizer *tokenizer,
                   const std::vector<PicturePtr> &pictures,
                   std::vector<int64_t> &ids, Error &error);
/// The key of a cache of these ids: a picture's tokens become a negative number
/// that is the picture's.
std::vector<int64_t> cacheKeys(const ModelInfo &model,
                               const std::vector<int64_t> &ids,
                               const std::vector<PicturePtr> &pictures);

/// Where a prompt of these keys can be cut at about `length` tokens, before or
/// after that: not among tokens that see each other in both directions, and so
/// that the parts of the texts between pictures have fewRows or more.
size_t placeToCut(const ModelInfo &model, const std::vector<int64_t> &keys,
                  size_t length, bool after);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_PICTURE_H
