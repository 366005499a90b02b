//===- Places.h - Places of images, alone and among tokens ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_PLACES_H
#define ATTUNE_SPEC_PLACES_H

#include <cstdint>
#include <string>
#include <vector>

namespace attune::spec {

/// Rotary positions of texts with images (M-RoPE, Wang et al. 2024): how many
/// pairs of channels turn by a token's number, how many by its row and how many
/// by its column. A token of a text has one number for all three; the places of
/// an image that starts at number n have n, n + row and n + column; what
/// follows goes on behind the largest of them. Frequencies go on from section
/// to section.
struct RopeSections {
  std::vector<int64_t> pairs; ///< three, or none: all turn by the number
  /// Pair 3 i + 1 turns by the row and pair 3 i + 2 by the column, up to as
  /// many as there are of each.
  bool interleaved = false;
};
// `Rope::places`: of an image's tokens the first half of the pairs turns by the
// row and the second by the column, each half with the frequencies of half as
// many channels. `Rope::alternating`: frequencies are those of all channels, of
// which rows have every other one from the first on and columns those between
// (Pixtral).

/// Rotary positions of several numbers per token, the axes; each turns a share
/// of the channels, with the frequencies of a head that wide. The numbers are
/// those of inputs [tokens, axes], one behind the other; without inputs, of an
/// image's row and column: place i of n has 2 pi ((2 i + 1) / n - 1), and
/// tokens before the image are not turned.
struct RopeAxes {
  std::vector<int64_t> channels; ///< even; none: one number turns all
  std::vector<std::string> inputs;
};

/// The way in which a table of an image's places serves another size.
/// Corners: bilinear with the first and last place of each where they were.
/// Centre: as much of the table's middle as the image has places.
/// Antialias: bilinear, over as many places as one of the image covers.
/// AntialiasBicubic: the same with a cubic of a = -1/2.
enum class Interpolation {
  None,
  Bilinear,
  Bicubic,
  Corners,
  Centre,
  Antialias,
  AntialiasBicubic
};

/// Which tokens see each other in both directions although attention is causal:
/// those of each image, or all of a prompt (prefix-LM, Raffel et al. 2020).
enum class Bidirectional { None, Image, Prompt };

/// Rows of `source`, which is of an earlier stream, in the places of the tokens
/// with this id: the first token of the batch with it takes the first row.
struct Insert {
  std::string source;
  int64_t id = 0;
  /// Rows and columns that an image's vectors are, row by row: rotary positions
  /// in sections go by them. Empty: no places.
  std::vector<int64_t> grid;
  bool add = false; ///< rows are added to such tokens
  Bidirectional bidirectional = Bidirectional::None;
};

/// Windows of an image's places, each a sequence of its own, row by row. Those
/// at its right and lower edge may be smaller: places beyond the image are
/// hidden.
struct Windows {
  int64_t rows = 0, columns = 0;
};
/// The places of whole images, undoing the windows.
struct Whole {};
/// Squares of places as one, their channels side by side, row by row, or the
/// mean of their places.
struct Merge {
  int64_t size = 2;
  bool mean = false;
};

const char *stringify(Bidirectional tokens);

} // namespace attune::spec

#endif // ATTUNE_SPEC_PLACES_H
