//===- TokenizerPack.cpp - Writing the table of a tokenizer ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler calls this; no product has it.
//
//===----------------------------------------------------------------------===//

#include "TokenizerData.h"

#include <cstring>

namespace attune::runtime {

std::string TokenizerTableWriter::finish() {
  add(TokenizerTable::Numbers,
      std::string(reinterpret_cast<const char *>(&counts), sizeof counts));
  TokenizerTable::Header header = {};
  std::memcpy(header.magic, TokenizerTable::magic, sizeof header.magic);
  size_t bytes = sizeof header;
  for (std::string_view content : contents)
    bytes += content.size() + 7;
  std::string out;
  out.reserve(bytes);
  out.resize(sizeof header);
  for (size_t i = 0; i < TokenizerTable::NumSections; ++i) {
    out.resize((out.size() + 7) / 8 * 8);
    header.places[i] = {out.size(), contents[i].size()};
    out.append(contents[i].data(), contents[i].size());
  }
  header.bytes = out.size();
  header.sum = TokenizerTable::sumOf(out.data(), header);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

bool Tokenizer::pack(std::string_view json, std::string &table,
                     Error &error) const {
  std::string parts;
  if (!data->pickParts(json, parts, error))
    return false;
  TokenizerTableWriter writer;
  writer.add(TokenizerTable::Parts, std::move(parts));
  std::string records, texts;
  for (const AddedToken &token : data->added) {
    TokenizerTable::AddedRecord record = {
        token.id, static_cast<uint32_t>(token.text.size()),
        static_cast<uint32_t>(token.pattern.size()), token.flags()};
    records.append(reinterpret_cast<const char *>(&record), sizeof record);
    texts += token.text + token.pattern;
  }
  writer.add(TokenizerTable::Added, std::move(records));
  writer.add(TokenizerTable::AddedTexts, std::move(texts));
  data->model->write(writer);
  table = writer.finish();
  return true;
}

} // namespace attune::runtime
