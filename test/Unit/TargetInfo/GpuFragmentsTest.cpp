//===- GpuFragmentsTest.cpp - Products of what lanes read -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Matrices lie in memory as copies put them there. Each lane reads what the
// kernel's index maps tell it, and instructions that do what the PTX manual
// says have to give the product.

#include "Warp.h"
#include "attune/TargetInfo/GpuAttention.h"

#include "gtest/gtest.h"

#include <set>

using namespace attune;

namespace {

/// Rows of activations, [rows][depth] in slices of 64 bytes, as a stage has
/// one.
std::vector<double> stageOfRows(const SwizzledRows &rows,
                                const Numbers &matrix) {
  std::vector<double> stage(16 * rows.elementsOfRow());
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t k = 0; k < rows.elementsOfRow(); ++k)
      stage[rows.placeOf(row, k / rows.elementsOfChunk()) +
            k % rows.elementsOfChunk()] = matrix.at(row, k);
  return stage;
}

/// Panels of a stage, [depth][8] each; `wide` ones as wideRowAt says.
std::vector<double> stageOfPanels(int64_t panels, int64_t depth, bool wide,
                                  const Numbers &matrix) {
  std::vector<double> stage;
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t place = 0; place < depth; ++place)
      for (int64_t n = 0; n < 8; ++n)
        stage.push_back(
            matrix.at(wide ? wideRowAt(place) : place, 8 * panel + n));
  return stage;
}

/// A stage of keys or values [keys][width] of attention.
std::vector<double> stageOfHeads(const AttentionTile &tile, int64_t width,
                                 const Numbers &matrix) {
  std::vector<double> stage(tile.stageOf(width));
  int64_t each = tile.swizzle().elementsOfRow(),
          chunk = tile.swizzle().elementsOfChunk();
  for (int64_t key = 0; key < tile.keys; ++key)
    for (int64_t at = 0; at < width; ++at)
      stage[at / each * tile.keys * each +
            tile.swizzle().placeOf(key, at % each / chunk) + at % chunk] =
          matrix.at(key, at);
  return stage;
}

/// What a lane has of sums has to be the product of `depth`.
void expectProduct(const Held<4> &sums, int64_t depth,
                   const std::function<double(int64_t row, int64_t k)> &a,
                   const std::function<double(int64_t k, int64_t column)> &b) {
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 4; ++i) {
      PlaceIn<int64_t> place = placeInSum(lane, i / 2);
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += a(place.row, k) * b(k, place.column + i % 2);
      EXPECT_EQ(sums[lane][i], sum);
    }
}

/// The two registers of B of columns 8 n to 8 n + 7.
template <size_t count>
Held<4> registersOfB(const Held<count> &matrices, int64_t n) {
  Held<4> registers;
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 4; ++i)
      registers[lane][i] = matrices[lane][2 * matrixOfB(n, i / 2) + i % 2];
  return registers;
}

/// The four pairs of f32 that a lane has of 16 columns from `k` on.
Held<8> pairsOfRows(const SwizzledRows &rows, const std::vector<double> &stage,
                    int64_t k) {
  Held<8> pairs;
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 8; ++i) {
      PlaceIn<int64_t> first = placeInA(lane, i / 2);
      pairs[lane][i] =
          stage[rows.placeOfElement(first.row, first.column + k) + i % 2];
    }
  return pairs;
}
/// A of tf32 of those from pair `half` on, 0 or 2.
Held<4> halfOfPairs(const Held<8> &pairs, int64_t half) {
  Held<4> words;
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 4; ++i) {
      WordOfA word = wordOfA(i);
      words[lane][i] = pairs[lane][2 * (half + word.half) + word.number];
    }
  return words;
}
/// B of tf32 is one pair.
Held<2> pairOf(const Held<4> &registers, int64_t pair) {
  Held<2> words;
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 2; ++i)
      words[lane][i] = registers[lane][2 * pair + i];
  return words;
}

} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

// The PTX manual's formulas for mma.m16n8k16 with 16 bits, element by element.
TEST(Fragments, AreTheManuals) {
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t group = lane >> 2, member = lane % 4;
    for (int64_t i = 0; i < 8; ++i) {
      int64_t row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      int64_t column = member * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      PlaceIn<int64_t> place = placeInA(lane, i / 2);
      EXPECT_EQ(place.row, row);
      EXPECT_EQ(place.column + i % 2, column);
      seen.insert({row, column});
    }
    for (int64_t i = 0; i < 4; ++i) {
      PlaceIn<int64_t> place = placeInSum(lane, i / 2);
      EXPECT_EQ(place.row, i < 2 ? group : group + 8);
      EXPECT_EQ(place.column + i % 2, member * 2 + (i & 1));
    }
  }
  EXPECT_EQ(seen.size(), 256u);
}

// Sums of two tiles of eight keys, pair by pair, are A of sixteen.
TEST(Fragments, SumsAreA) {
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t pair = 0; pair < 4; ++pair) {
      SumOfA from = sumOfA(pair);
      PlaceIn<int64_t> sum = placeInSum(lane, from.pair),
                       a = placeInA(lane, pair);
      EXPECT_EQ(sum.row, a.row);
      EXPECT_EQ(8 * from.matrix + sum.column, a.column);
    }
}

// Sums of wgmma (PTX manual, 9.7.15.5.1.1) are sums of mma.sync side by side:
// number 4 n + 2 half + i of a thread is element i of pair `half` of tile n,
// and its A in registers is that of mma.m16n8k16. So tiles 2 s and 2 s + 1 are
// A of step s.
TEST(Fragments, SumsOfWarpgroupsAreA) {
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t number = 0; number < 64; ++number) {
      // By the manual's figure of D.
      int64_t row = lane / 4 + 8 * (number / 2 % 2);
      int64_t column = number / 4 * 8 + lane % 4 * 2 + number % 2;
      PlaceIn<int64_t> sum = placeInSum(lane, number / 2 % 2);
      EXPECT_EQ(sum.row, row);
      EXPECT_EQ(sum.column + number / 4 * 8 + number % 2, column);
      PlaceIn<int64_t> a = placeInA(lane, number / 2 % 4);
      EXPECT_EQ(a.row, row);
      EXPECT_EQ(a.column + number / 8 * 16 + number % 2, column);
    }
}

// Of tf32 weights are A of the keys whose scores the lane has.
TEST(Fragments, KeysOfScores) {
  std::set<int64_t> keys;
  for (int64_t column = 0; column < 8; ++column)
    keys.insert(keyOfColumn(column));
  EXPECT_EQ(keys.size(), 8u);
  EXPECT_EQ(*keys.rbegin(), 7);
  for (int64_t member = 0; member < 4; ++member) {
    EXPECT_EQ(keyOfColumn(2 * member), member);
    EXPECT_EQ(keyOfColumn(2 * member + 1), 4 + (member ^ 1));
  }
}

//===----------------------------------------------------------------------===//
// Products with panels
//===----------------------------------------------------------------------===//

// A by ldmatrix, B by ldmatrix.trans.
TEST(PanelProducts, Of16Bits) {
  SwizzledRows rows{2};
  int64_t depth = rows.elementsOfRow();
  Numbers a(16, depth), b(depth, 32);
  auto stageA = stageOfRows(rows, a),
       stageB = stageOfPanels(4, depth, false, b);
  for (int64_t n = 0; n < 4; n += 2) {
    Held<4> sums[2] = {};
    for (int64_t k = 0; k < depth; k += 16) {
      auto left = ldmatrix<4>(
          stageA,
          [&](int64_t lane) {
            PlaceIn<int64_t> named = namedDown(lane);
            return rows.placeOf(named.row, named.column + k / 8);
          },
          /*transpose=*/false);
      auto right = ldmatrix<4>(
          stageB,
          [&](int64_t lane) {
            PlaceIn<int64_t> named = namedDown(lane);
            return placeInPanels(named.column + n, named.row + k, depth);
          },
          /*transpose=*/true);
      for (int64_t i = 0; i < 2; ++i)
        mma16(left, registersOfB(right, i), sums[i]);
    }
    for (int64_t i = 0; i < 2; ++i)
      expectProduct(
          sums[i], depth, [&](int64_t m, int64_t k) { return a.at(m, k); },
          [&](int64_t k, int64_t c) { return b.at(k, 8 * (n + i) + c); });
  }
}

// Rows of f32 as tf32 with weights of f16: the depth is taken in another order
// on both sides.
TEST(PanelProducts, OfWideRowsAsTF32) {
  SwizzledRows rows{4};
  int64_t depth = rows.elementsOfRow();
  Numbers a(16, depth), b(depth, 16);
  auto stageA = stageOfRows(rows, a),
       stageB = stageOfPanels(2, depth, false, b);
  ASSERT_EQ(depth, 16);
  Held<8> left = pairsOfRows(rows, stageA, 0);
  auto right = ldmatrix<4>(
      stageB,
      [&](int64_t lane) {
        PlaceIn<int64_t> named = namedDown(lane);
        return placeInPanels(named.column, named.row, depth);
      },
      /*transpose=*/true);
  for (int64_t i = 0; i < 2; ++i) {
    Held<4> sums = {};
    for (int64_t half = 0; half < 2; ++half)
      mma8(halfOfPairs(left, 2 * half), pairOf(registersOfB(right, i), half),
           sums);
    expectProduct(
        sums, depth, [&](int64_t m, int64_t k) { return a.at(m, k); },
        [&](int64_t k, int64_t c) { return b.at(k, 8 * i + c); });
  }
}

// Rows and panels of f32, in parts of bf16 or rounded to tf32.
TEST(PanelProducts, OfWidePanels) {
  SwizzledRows rows{4};
  int64_t depth = rows.elementsOfRow();
  Numbers a(16, depth), b(depth, 8);
  auto stageA = stageOfRows(rows, a), stageB = stageOfPanels(1, depth, true, b);
  Held<8> left = pairsOfRows(rows, stageA, 0);
  Held<4> right, sums16 = {}, sums8 = {};
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 4; ++i)
      right[lane][i] = stageB[placeInWidePanel(lane, i / 2 * 8 + i % 2)];
  mma16(left, right, sums16);
  for (int64_t half = 0; half < 2; ++half)
    mma8(halfOfPairs(left, 2 * half), pairOf(right, half), sums8);
  for (const Held<4> &sums : {sums16, sums8})
    expectProduct(
        sums, depth, [&](int64_t m, int64_t k) { return a.at(m, k); },
        [&](int64_t k, int64_t c) { return b.at(k, c); });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

// Keys by ldmatrix: what lies along the depth is one row.
TEST(AttentionProducts, QueriesWithKeys) {
  for (int64_t width : {64, 80}) {
    AttentionTile tile = chooseAttentionTile(2, width, width, false);
    Numbers query(16, width), key(tile.keys, width);
    auto stage = stageOfHeads(tile, width, key);
    for (int64_t n = 0; n < tile.keys / 8; n += 2) {
      Held<4> sums[2] = {};
      for (int64_t step = 0; step < width / 16; ++step) {
        Held<8> left;
        for (int64_t lane = 0; lane < 32; ++lane)
          for (int64_t i = 0; i < 8; ++i) {
            PlaceIn<int64_t> first = placeInA(lane, i / 2);
            left[lane][i] =
                query.at(first.row, 16 * step + first.column + i % 2);
          }
        auto right = ldmatrix<4>(
            stage,
            [&](int64_t lane) {
              PlaceIn<int64_t> named = namedAcross(lane);
              return tile.placeOf(8 * n, named.row, 2 * step, named.column);
            },
            /*transpose=*/false);
        for (int64_t i = 0; i < 2; ++i)
          mma16(left, registersOfB(right, i), sums[i]);
      }
      for (int64_t i = 0; i < 2; ++i)
        expectProduct(
            sums[i], width,
            [&](int64_t m, int64_t k) { return query.at(m, k); },
            [&](int64_t k, int64_t c) { return key.at(8 * (n + i) + c, k); });
    }
  }
}

// Values by ldmatrix.trans, of four matrices, or two for the last channels.
// Weights are sums of a product before.
TEST(AttentionProducts, WeightsWithValues) {
  for (int64_t width : {64, 72}) {
    AttentionTile tile = chooseAttentionTile(2, width, width, false);
    Numbers weights(16, tile.keys), values(tile.keys, width);
    auto stage = stageOfHeads(tile, width, values);
    for (int64_t n = 0; n < width / 8; n += 2) {
      int64_t count = std::min<int64_t>(2, width / 8 - n);
      Held<4> sums[2] = {};
      for (int64_t k = 0; k < tile.keys / 8; k += 2) {
        Held<8> left;
        for (int64_t lane = 0; lane < 32; ++lane)
          for (int64_t i = 0; i < 8; ++i) {
            SumOfA sum = sumOfA(i / 2);
            PlaceIn<int64_t> place = placeInSum(lane, sum.pair);
            left[lane][i] = weights.at(place.row, 8 * (k + sum.matrix) +
                                                      place.column + i % 2);
          }
        auto place = [&](int64_t lane) {
          PlaceIn<int64_t> named = namedDown(lane);
          return tile.placeOf(8 * k, named.row, n, named.column);
        };
        if (count == 2) {
          auto right = ldmatrix<4>(stage, place, /*transpose=*/true);
          for (int64_t i = 0; i < 2; ++i)
            mma16(left, registersOfB(right, i), sums[i]);
        } else {
          auto right = ldmatrix<2>(stage, place, /*transpose=*/true);
          mma16(left, registersOfB(right, 0), sums[0]);
        }
      }
      for (int64_t i = 0; i < count; ++i)
        expectProduct(
            sums[i], tile.keys,
            [&](int64_t m, int64_t k) { return weights.at(m, k); },
            [&](int64_t k, int64_t c) {
              return values.at(k, 8 * (n + i) + c);
            });
    }
  }
}

// Of f32 as tf32: scores are those of keys in their order, so that they are A.
TEST(AttentionProducts, OfF32) {
  AttentionTile tile = chooseAttentionTile(4, 32, 32, false);
  Numbers query(16, 32), key(tile.keys, 32), values(tile.keys, 32);
  auto keyStage = stageOfHeads(tile, 32, key),
       valueStage = stageOfHeads(tile, 32, values);
  auto fragmentOf = [](const Held<8> &numbers, int64_t first) {
    // Four numbers of each half, or two.
    Held<4> words;
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < 4; ++i) {
        WordOfA word = wordOfA(i);
        words[lane][i] = numbers[lane][4 * word.half + first + word.number];
      }
    return words;
  };
  std::vector<Held<4>> scores;
  for (int64_t n = 0; n < tile.keys / 8; ++n) {
    Held<4> &sums = scores.emplace_back();
    sums = {};
    for (int64_t step = 0; step < 2; ++step) {
      Held<8> left;
      Held<4> right;
      for (int64_t lane = 0; lane < 32; ++lane) {
        PlaceIn<int64_t> mine = wideKeysOf(lane);
        for (int64_t i = 0; i < 4; ++i) {
          for (int64_t half = 0; half < 2; ++half)
            left[lane][4 * half + i] =
                query.at(placeInSum(lane, half).row,
                         wideQueryChannel(lane) + 16 * step + i);
          right[lane][i] =
              keyStage[tile.placeOf(8 * n, mine.row, 4 * step, mine.column) +
                       i];
        }
      }
      for (int64_t i = 0; i < 2; ++i)
        mma8(fragmentOf(left, 2 * i), pairOf(right, i), sums);
    }
    expectProduct(
        sums, 32, [&](int64_t m, int64_t k) { return query.at(m, k); },
        [&](int64_t k, int64_t c) {
          return key.at(8 * n + keyOfColumn(c), k);
        });
  }
  for (int64_t n = 0; n < 4; ++n) {
    Held<4> sums = {};
    for (int64_t k = 0; k < tile.keys / 8; ++k) {
      Held<8> left = {};
      Held<2> right;
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t i = 0; i < 2; ++i) {
          for (int64_t half = 0; half < 2; ++half)
            left[lane][4 * half + i] = scores[k][lane][2 * half + i];
          PlaceIn<int64_t> mine = wideValueOf(lane, i);
          right[lane][i] =
              valueStage[tile.placeOf(8 * k, mine.row, 2 * n, mine.column / 4) +
                         mine.column % 4];
        }
      mma8(fragmentOf(left, 0), right, sums);
    }
    expectProduct(
        sums, tile.keys,
        [&](int64_t m, int64_t k) {
          double score = 0;
          for (int64_t i = 0; i < 32; ++i)
            score += query.at(m, i) * key.at(k, i);
          return score;
        },
        [&](int64_t k, int64_t c) { return values.at(k, 8 * n + c); });
  }
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

namespace {
/// Where a stage starts: what the swizzle does depends on it.
constexpr int64_t kStage = 5 * kTileAlignment;

uint64_t startingAt(uint64_t descriptor, int64_t address) {
  return descriptor | uint64_t(address) >> 4;
}
} // namespace

// Rows of 128 bytes in boxes swizzled by tensor maps, or by threads that copy
// or store chunks; panels as they are, [depth][8], which run across.
TEST(WarpgroupProducts, DescriptorsOfTilesFindEachElement) {
  for (const WarpgroupTile &tile :
       {kNarrowGroupTile, kGroupTile, kWideGroupTile})
    for (int64_t step = 0; step < tile.depth / 16; ++step)
      for (int64_t k = 0; k < 16; ++k) {
        int64_t depth = 16 * step + k;
        for (int64_t row = 0; row < tile.rows; ++row)
          EXPECT_EQ(wgmmaElement(startingAt(tile.rowDescriptor(),
                                            kStage + tile.rowStep(step)),
                                 row, k, /*across=*/false),
                    kStage + placeInAtom(row, depth / 8) + depth % 8 * 2);
        for (int64_t n = 0; n < tile.columns; ++n)
          EXPECT_EQ(wgmmaElement(startingAt(tile.panelDescriptor(),
                                            kStage + tile.panelStep(step)),
                                 n, k, WarpgroupTile::kPanelsAcross),
                    kStage + ((n / 8 * tile.depth + depth) * 8 + n % 8) * 2);
      }
}

// What lies in boxes of 64 channels, one behind the other: queries and keys
// along the depth, values across.
TEST(WarpgroupProducts, DescriptorsOfAttentionFindEachElement) {
  using Tile = WarpgroupAttentionTile;
  for (const Tile &tile : {Tile{128, 128, 128}, Tile{256, 192, 64}}) {
    auto inBoxes = [](int64_t rows, int64_t row, int64_t channel) {
      return kStage + channel / 64 * rows * 128 +
             placeInAtom(row, channel % 64 / 8) + channel % 8 * 2;
    };
    for (int64_t k = 0; k < 16; ++k) {
      for (int64_t step = 0; step < tile.width / 16; ++step) {
        for (int64_t key = 0; key < tile.keys; ++key)
          EXPECT_EQ(wgmmaElement(startingAt(tile.rowDescriptor(),
                                            kStage + tile.keyStep(step)),
                                 key, k, Tile::kKeysAcross),
                    inBoxes(tile.keys, key, 16 * step + k));
        for (int64_t row = 0; row < 64; ++row) // of the second warpgroup
          EXPECT_EQ(
              wgmmaElement(startingAt(tile.rowDescriptor(),
                                      kStage + 64 * 128 + tile.queryStep(step)),
                           row, k, /*across=*/false),
              inBoxes(tile.rows(), 64 + row, 16 * step + k));
      }
      for (int64_t step = 0; step < tile.keys / 16; ++step)
        for (int64_t channel = 0; channel < tile.valueWidth; ++channel)
          EXPECT_EQ(wgmmaElement(startingAt(tile.valueDescriptor(),
                                            kStage + tile.valueStep(step)),
                                 channel, k, Tile::kValuesAcross),
                    inBoxes(tile.keys, 16 * step + k, channel));
    }
  }
}
