//===- SentencePiece.cpp - Models of SentencePiece ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fields of sentencepiece_model.proto that matter: pieces (1) with text
// (1), score (2) and type (3); the trainer's model_type (3), byte_fallback (35)
// and unk_id (40); the normalizer's charsmap (2), add_dummy_prefix (3) and
// remove_extra_whitespaces (4).
//
//===----------------------------------------------------------------------===//

#include "SentencePiece.h"

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attune {

namespace {

/// Reads one message of the protobuf wire format, field by field.
class Message {
public:
  Message(std::string_view bytes, size_t start) : bytes(bytes), start(start) {}

  bool failed = false;
  unsigned field = 0;
  uint64_t number = 0;   ///< of a varint or a fixed field
  std::string_view text; ///< of a field with a length
  size_t place() const { return start + at; }

  bool next() {
    if (failed || at >= bytes.size())
      return false;
    uint64_t key;
    if (!varint(key))
      return false;
    field = static_cast<unsigned>(key >> 3);
    switch (key & 7) {
    case 0:
      return varint(number);
    case 1:
      return fixed(8);
    case 2: {
      uint64_t size;
      if (!varint(size) || size > bytes.size() - at)
        return fail();
      text = bytes.substr(at, size);
      at += size;
      return true;
    }
    case 5:
      return fixed(4);
    }
    return fail();
  }
  /// A message inside this one, of the field just read.
  Message inner() const { return {text, start + at - text.size()}; }
  float real() const {
    auto bits = static_cast<uint32_t>(number);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

private:
  std::string_view bytes;
  size_t start, at = 0;

  bool fail() {
    failed = true;
    return false;
  }
  bool varint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at >= bytes.size())
        return fail();
      auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return fail();
  }
  bool fixed(size_t size) {
    if (size > bytes.size() - at)
      return fail();
    number = 0;
    for (size_t i = 0; i < size; ++i)
      number |= uint64_t(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
    at += size;
    return true;
  }
};

} // namespace

static bool readModel(std::string_view bytes, PieceModel &model,
                      runtime::Error &error) {
  auto broken = [&](const Message &message) {
    return error.badInput(
        "a SentencePiece model that is cut off or damaged at byte " +
        std::to_string(message.place()));
  };
  Message root(bytes, 0);
  while (root.next()) {
    Message inner = root.inner();
    if (root.field == 1) {
      if (model.pieces.size() >= (1u << 22))
        return error.badInput("more than 4194304 pieces");
      Piece piece;
      while (inner.next()) {
        if (inner.field == 1)
          piece.text = inner.text;
        else if (inner.field == 2)
          piece.score = inner.real();
        else if (inner.field == 3)
          piece.type = inner.number;
      }
      if (runtime::sanitizeUtf8(piece.text) != piece.text ||
          !std::isfinite(piece.score))
        return broken(inner);
      model.pieces.push_back(std::move(piece));
    } else if (root.field == 2) {
      while (inner.next()) {
        if (inner.field == 3)
          model.type = inner.number;
        else if (inner.field == 35)
          model.byteFallback = inner.number != 0;
        else if (inner.field == 40)
          model.unknown = inner.number;
      }
    } else if (root.field == 3) {
      while (inner.next()) {
        if (inner.field == 2)
          model.charsmap = inner.text;
        else if (inner.field == 3)
          model.dummyPrefix = inner.number != 0;
        else if (inner.field == 4)
          model.removesSpace = inner.number != 0;
      }
    }
    if (inner.failed)
      return broken(inner);
  }
  if (root.failed)
    return broken(root);
  if (model.pieces.empty())
    return error.badInput("no pieces: this is no SentencePiece model");
  if (model.type != 1 && model.type != 2)
    return error.notSupported("a SentencePiece model of words or characters is "
                              "not supported; Unigram and BPE are");
  for (size_t i = 0; i < model.pieces.size(); ++i)
    if (model.pieces[i].type == Unknown)
      model.unknown = i;
  return true;
}

static std::string encodeBase64(std::string_view bytes) {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 |
             (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      out += j <= count ? digits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

/// The merges that make the pieces: each way to cut a piece into two pieces,
/// in the order of the pieces' scores.
static bool appendMerges(const PieceModel &model, std::string &json,
                         runtime::Error &error) {
  std::unordered_map<std::string_view, uint32_t> ids;
  for (uint32_t i = 0; i < model.pieces.size(); ++i)
    ids.emplace(model.pieces[i].text, i);
  struct Merge {
    float score;
    uint32_t piece, left, right;
  };
  std::vector<Merge> merges;
  constexpr size_t maxMerges = size_t(1) << 22; // of a tokenizer.json, too
  for (uint32_t i = 0; i < model.pieces.size(); ++i) {
    const Piece &piece = model.pieces[i];
    if (piece.type != Normal && piece.type != UserDefined &&
        piece.type != Unused)
      continue;
    std::string_view text = piece.text;
    for (size_t cut = 1; cut < text.size() && cut < 256; ++cut) {
      if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80)
        continue;
      auto left = ids.find(text.substr(0, cut)),
           right = ids.find(text.substr(cut));
      if (left == ids.end() || right == ids.end())
        continue;
      if (merges.size() >= maxMerges)
        return error.badInput("pieces that can be cut into two others in more "
                              "than 4194304 ways");
      merges.push_back({piece.score, i, left->second, right->second});
    }
  }
  std::sort(merges.begin(), merges.end(), [](const Merge &a, const Merge &b) {
    return a.score != b.score   ? a.score > b.score
           : a.piece != b.piece ? a.piece < b.piece
           : a.left != b.left   ? a.left < b.left
                                : a.right < b.right;
  });
  json += "\"merges\":[";
  for (size_t i = 0; i < merges.size(); ++i) {
    json += i ? ",[" : "[";
    runtime::appendJsonString(json, model.pieces[merges[i].left].text);
    json += ",";
    runtime::appendJsonString(json, model.pieces[merges[i].right].text);
    json += "]";
  }
  json += "]";
  return true;
}

static void appendAdded(const PieceModel &model, std::string &json) {
  json += "\"added_tokens\":[";
  bool first = true;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece &piece = model.pieces[i];
    if (piece.type != Unknown && piece.type != Control &&
        piece.type != UserDefined)
      continue;
    json += first ? "" : ",";
    first = false;
    json += "{\"id\":" + std::to_string(i) + ",\"content\":";
    runtime::appendJsonString(json, piece.text);
    json += std::string(",\"single_word\":false,\"lstrip\":false,"
                        "\"rstrip\":false,\"normalized\":false,\"special\":") +
            (piece.type == UserDefined ? "false}" : "true}");
  }
  json += "],";
}

/// Spaces become U+2581, and one stands in front.
static void appendParts(const PieceModel &model, std::string &json) {
  json += "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[";
  bool bpe = model.type == 2;
  if (!model.charsmap.empty())
    json += "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"" +
            encodeBase64(model.charsmap) + "\"},";
  if (model.removesSpace)
    json += "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\A +| +\\\\z\"},"
            "\"content\":\"\"},"
            "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},"
            "\"content\":\" \"},";
  if (model.dummyPrefix)
    json += "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},";
  json += "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
          "\"content\":\"\xE2\x96\x81\"}]},";
  json += "\"pre_tokenizer\":";
  // The prefix stands there already.
  json += bpe ? "null,"
              : "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\","
                "\"prepend_scheme\":\"never\",\"split\":true},";
  json += "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":"
          "\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},"
          "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}";
  if (model.dummyPrefix)
    json += ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}";
  json += "]},";
}

bool convertSentencePiece(const std::string &bytes, std::string &json,
                          runtime::Error &error) {
  PieceModel model;
  return readModel(bytes, model, error) && convertPieces(model, json, error);
}

bool convertPieces(const PieceModel &model, std::string &json,
                   runtime::Error &error) {
  json = "{\"version\":\"1.0\",";
  appendAdded(model, json);
  appendParts(model, json);
  bool bpe = model.type == 2;
  json += std::string("\"model\":{\"type\":\"") + (bpe ? "BPE" : "Unigram") +
          "\",\"byte_fallback\":" + (model.byteFallback ? "true" : "false");
  if (bpe) {
    json += ",\"fuse_unk\":true,\"unk_token\":";
    const char *fallback = "<unk>";
    runtime::appendJsonString(
        json, model.unknown < model.pieces.size()
                  ? model.pieces[static_cast<size_t>(model.unknown)].text
                  : fallback);
  } else {
    json += ",\"unk_id\":" + std::to_string(model.unknown);
  }
  json += std::string(",\"vocab\":") + (bpe ? "{" : "[");
  std::unordered_map<std::string_view, bool> seen;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece &piece = model.pieces[i];
    if (bpe && !seen.emplace(piece.text, true).second)
      continue;
    json += i ? "," : "";
    json += bpe ? "" : "[";
    runtime::appendJsonString(json, piece.text);
    if (bpe) {
      json += ":" + std::to_string(i);
    } else {
      char score[40];
      std::snprintf(score, sizeof(score), ",%.17g]",
                    static_cast<double>(piece.score));
      json += score;
    }
  }
  json += bpe ? "}," : "]";
  if (bpe && !appendMerges(model, json, error))
    return false;
  json += "}}";
  return true;
}

} // namespace attune
