//===- TokenizerTable.cpp - A tokenizer that needs no parsing -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerTable.h"
#include "../TextHash.h"
#include "TokenizerData.h"
#include "attune/Runtime/Metadata.h"

#include <cstring>

namespace attune::runtime {

uint64_t TokenizerTable::sumOf(const char *base, const Header &header) {
  TextHash hash;
  hash.add(
      {reinterpret_cast<const char *>(header.places), sizeof header.places});
  for (size_t i = 0; i <= AddedTexts; ++i)
    hash.add({base + header.places[i].offset, header.places[i].bytes});
  return hash.finish();
}

bool TokenizerTable::open(std::string_view bytes) {
  base = bytes.data();
  header = reinterpret_cast<const Header *>(base);
  if (bytes.size() < sizeof(Header) ||
      std::memcmp(header->magic, magic, sizeof magic) != 0 ||
      header->bytes != bytes.size())
    return false;
  for (const Place &place : header->places)
    if (place.offset % 8 != 0 || place.offset > bytes.size() ||
        place.bytes > bytes.size() - place.offset)
      return false;
  return header->places[Numbers].bytes == sizeof(Counts) &&
         sumOf(base, *header) == header->sum;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

bool Tokenizer::Data::takeAdded(const TokenizerTable &table) {
  Column<TokenizerTable::AddedRecord> records;
  if (!table.get(TokenizerTable::Added, records))
    return false;
  std::string_view texts = table.text(TokenizerTable::AddedTexts);
  added.reserve(records.size());
  for (const TokenizerTable::AddedRecord &record : records) {
    size_t bytes = size_t(record.textBytes) + record.patternBytes;
    if (record.id >= Vocabulary::maxTokens || bytes > texts.size())
      return false;
    AddedToken &token = added.emplace_back();
    token.id = record.id;
    token.text = texts.substr(0, record.textBytes);
    token.pattern = texts.substr(record.textBytes, record.patternBytes);
    texts.remove_prefix(bytes);
    token.takeFlags(record.flags);
    if (token.id >= addedOf.size())
      addedOf.resize(token.id + 1);
    addedOf[token.id] = static_cast<uint32_t>(added.size());
  }
  listAdded();
  return true;
}

std::unique_ptr<Tokenizer> Tokenizer::open(std::string_view bytes,
                                           Error &error) {
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer());
  LoadError problem;
  TokenizerTable table;
  if (table.open(bytes) &&
      tokenizer->data->load(table.text(TokenizerTable::Parts), &table, problem))
    return tokenizer;
  error.set(ExitInternalError,
            "the product is damaged: its tokenizer cannot be read" +
                (problem.message.empty() ? "" : " (" + problem.message + ")"));
  return nullptr;
}

std::unique_ptr<Tokenizer> Tokenizer::open(const ModelInfo &info,
                                           Error &error) {
  return info.tokenizerJson.empty() ? open(info.tokenizerTable, error)
                                    : create(info.tokenizerJson, error);
}

} // namespace attune::runtime
