//===- TokenizerTest.cpp - Text to ids and back ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Utf8.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace attune::runtime;

namespace {

std::string readFile(const std::string &path) {
  std::string text;
  if (FILE *file = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    while (size_t n = std::fread(buffer, 1, sizeof(buffer), file))
      text.append(buffer, n);
    std::fclose(file);
  }
  return text;
}

const std::string storyteller = ATTUNE_EXAMPLES_DIR "/storyteller/";

std::unique_ptr<Tokenizer> load(const std::string &json) {
  Error error;
  auto tokenizer = Tokenizer::create(json, error);
  EXPECT_NE(tokenizer, nullptr) << error.message;
  return tokenizer;
}

std::string failure(const std::string &json) {
  Error error;
  return Tokenizer::create(json, error) ? "" : error.message;
}

/// A tokenizer of the 256 bytes, with the given parts put in.
std::string bytesOnly(const std::string &parts,
                      const std::string &moreVocab = "",
                      const std::string &merges = "",
                      const std::string &modelParts = "") {
  std::string vocab;
  unsigned next = 0x100;
  for (unsigned b = 0; b < 256; ++b) {
    bool visible = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) ||
                   (b >= 0xAE && b <= 0xFF);
    std::string character;
    appendUtf8(character, visible ? b : next++);
    vocab += b ? "," : "";
    appendJsonString(vocab, character);
    vocab += ":" + std::to_string(b);
  }
  std::string all = parts;
  auto add = [&](const char *key, const char *value) {
    if (parts.find(key) == std::string::npos)
      all += (all.empty() ? "" : ",") + std::string(key) + value;
  };
  add("\"pre_tokenizer\"", R"(:{"type":"ByteLevel","add_prefix_space":false,)"
                           R"("use_regex":false})");
  add("\"decoder\"", R"(:{"type":"ByteLevel"})");
  return "{" + all + ",\"model\":{\"type\":\"BPE\"," + modelParts +
         "\"vocab\":{" + vocab + moreVocab + "},\"merges\":[" + merges + "]}}";
}

/// Where the pre-tokenizer cuts: a merge never crosses a cut, so a vocabulary
/// that merges everything into known words would hide it. Instead, every pair
/// of the bytes a, space, digit, mark is merged once and pieces are counted.
std::vector<std::string> pieces(const Tokenizer &tokenizer,
                                const std::string &text) {
  std::vector<int64_t> ids;
  Error error;
  EXPECT_TRUE(tokenizer.encode(text, ids, error)) << error.message;
  std::vector<std::string> out;
  for (int64_t id : ids)
    out.emplace_back(tokenizer.bytesOf(id));
  return out;
}

TEST(Tokenizer, AllStorytellerCases) {
  auto tokenizer = load(readFile(storyteller + "tokenizer.json"));
  JsonValue root;
  std::string problem;
  ASSERT_TRUE(
      parseJson(readFile(storyteller + "tokenizer_cases.json"), root, problem))
      << problem;
  const JsonValue *cases = root.find("cases");
  ASSERT_EQ(cases->items.size(), 200u);
  for (const JsonValue &item : cases->items) {
    const std::string &text = item.find("text")->string;
    std::vector<int64_t> want, got;
    for (const JsonValue &id : item.find("ids")->items)
      want.push_back(id.integer);
    Error error;
    ASSERT_TRUE(tokenizer->encode(text, got, error)) << error.message;
    EXPECT_EQ(got, want) << text;
    EXPECT_EQ(tokenizer->decode(want, false), text);
    StreamDecoder stream(*tokenizer, false);
    std::string streamed;
    for (int64_t id : want) {
      std::string part = stream.push(id);
      EXPECT_EQ(sanitizeUtf8(part), part);
      streamed += part;
    }
    EXPECT_EQ(streamed + stream.finish(), text);
  }
}

TEST(Tokenizer, SpecialTokensAreCutOutAndSkipped) {
  auto tokenizer = load(readFile(storyteller + "tokenizer.json"));
  std::vector<int64_t> ids;
  Error error;
  ASSERT_TRUE(tokenizer->encode("a<|endoftext|>b<|endoftext", ids, error));
  EXPECT_EQ(ids[1], 1023);
  EXPECT_NE(ids.back(), 1023);
  EXPECT_TRUE(tokenizer->isSpecial(1023));
  EXPECT_FALSE(tokenizer->isSpecial(1));
  EXPECT_FALSE(tokenizer->isSpecial(-1));
  EXPECT_EQ(tokenizer->decode({64, 1023, 65, 99999, -5}, true), "ab");
  EXPECT_EQ(tokenizer->decode({64, 1023}, false), "a<|endoftext|>");
}

TEST(Tokenizer, HoldsBackHalfCharacters) {
  auto tokenizer = load(bytesOnly(""));
  StreamDecoder stream(*tokenizer, true);
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.push('x'), "\xEF\xBF\xBDx"); // it can no longer complete
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, MergesInRankOrder) {
  // "ab" is learned before "bc": a b c -> ab c, though "abc" would be shorter
  // by way of "bc".
  auto tokenizer = load(bytesOnly("", R"(,"ab":300,"bc":301,"abc":302)",
                                  R"("a b",["b","c"],["a","bc"])"));
  EXPECT_EQ(pieces(*tokenizer, "abcbc"),
            (std::vector<std::string>{"ab", "c", "bc"}));
}

TEST(Tokenizer, WholeWordsSkipMergesWhenAsked) {
  auto tokenizer = load(bytesOnly("", R"(,"ab":300,"bc":301,"abc":302)",
                                  R"("a b","b c")", "\"ignore_merges\":true,"));
  EXPECT_EQ(pieces(*tokenizer, "abc"), (std::vector<std::string>{"abc"}));
}

TEST(Tokenizer, AddsAPrefixSpace) {
  auto tokenizer = load(bytesOnly(
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true})"));
  EXPECT_EQ(tokenizer->decode({32, 97}, true), " a");
  EXPECT_EQ(pieces(*tokenizer, "a").front(), " ");
  EXPECT_EQ(pieces(*tokenizer, " a").size(), 2u);
  EXPECT_TRUE(pieces(*tokenizer, "").empty());
}

/// With all words in the vocabulary and merges ignored, pieces are the words.
std::vector<std::string> split(const std::string &preTokenizer,
                               const std::string &text,
                               const std::vector<std::string> &words) {
  std::string vocab;
  unsigned id = 300;
  for (const std::string &word : words) {
    if (word.size() < 2)
      continue;
    std::string spelled;
    for (unsigned char c : word)
      spelled += c == ' '    ? "\xC4\xA0"
                 : c == '\n' ? "\xC4\x8A"
                 : c == '\r' ? "\xC4\x8D"
                             : std::string(1, static_cast<char>(c));
    vocab += ",";
    appendJsonString(vocab, spelled);
    vocab += ":" + std::to_string(id++);
  }
  auto tokenizer = load(bytesOnly("\"pre_tokenizer\":" + preTokenizer, vocab,
                                  "", "\"ignore_merges\":true,"));
  return pieces(*tokenizer, text);
}

void expectSplit(const std::string &preTokenizer,
                 const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += word;
  EXPECT_EQ(split(preTokenizer, text, words), words) << text;
}

TEST(PreTokenizer, Gpt2Pattern) {
  std::string gpt2 = R"({"type":"ByteLevel","add_prefix_space":false})";
  expectSplit(gpt2, {"Hello", ",", " world", "!!", " ", " it", "'s", " 2024",
                     "x", "  ", " y", "\n"});
  expectSplit(gpt2, {"we", "'ll", " we", "'", "LL", "'", "\n", "\n", "a"});
}

TEST(PreTokenizer, Llama3Pattern) {
  std::string regex =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)"
      R"({"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+)"
      R"(|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+)"
      R"(|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  expectSplit(regex,
              {"Hello", ",", " world", "!!\n\n", "we", "'LL", " (", "ok", ")",
               " ", "123", "45", "  \n\n", " ", " a", "\n", "b", "_c", "  "});
}

TEST(PreTokenizer, DigitsAlone) {
  std::string digits = R"({"type":"Sequence","pretokenizers":[)"
                       R"({"type":"Digits","individual_digits":true},)"
                       R"({"type":"ByteLevel","add_prefix_space":false}]})";
  expectSplit(digits, {"ab", " ", "1", "2", "3", " cd"});
}

TEST(Tokenizer, PutsTheTemplateAround) {
  auto tokenizer = load(bytesOnly(
      R"("added_tokens":[{"id":300,"content":"<s>","special":true}],)"
      R"("post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},)"
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>",)"
      R"("type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)"
      R"("special_tokens":{"<s>":{"id":"<s>","ids":[300],"tokens":["<s>"]}}}]})"));
  std::vector<int64_t> ids;
  Error error;
  ASSERT_TRUE(tokenizer->encode("a", ids, error));
  EXPECT_EQ(ids, (std::vector<int64_t>{300, 97}));
  ids.clear();
  ASSERT_TRUE(tokenizer->encode("a", ids, error, /*addSpecial=*/false));
  EXPECT_EQ(ids, (std::vector<int64_t>{97}));
}

TEST(Tokenizer, AddedTokensStripAndStandAlone) {
  auto tokenizer = load(bytesOnly(
      R"("added_tokens":[{"id":300,"content":"<m>","lstrip":true,"rstrip":true},)"
      R"({"id":301,"content":"one","single_word":true},)"
      R"({"id":302,"content":"<m>x"}])"));
  EXPECT_EQ(pieces(*tokenizer, "a  <m> b"),
            (std::vector<std::string>{"a", "<m>", "b"}));
  EXPECT_EQ(pieces(*tokenizer, "<m>x"), (std::vector<std::string>{"<m>x"}));
  EXPECT_EQ(pieces(*tokenizer, "one"), (std::vector<std::string>{"one"}));
  EXPECT_EQ(pieces(*tokenizer, "ones").size(), 4u);
  EXPECT_EQ(pieces(*tokenizer, "(one)").size(), 3u);
}

TEST(Tokenizer, MegabytesInAMoment) {
  auto tokenizer = load(readFile(storyteller + "tokenizer.json"));
  for (std::string unit : {"a", "ab", " ", "0", "\n", "<|endoftext", "\xFF"}) {
    std::string text;
    while (text.size() < (1u << 20))
      text += unit;
    std::vector<int64_t> ids;
    Error error;
    ASSERT_TRUE(tokenizer->encode(text, ids, error)) << error.message;
    EXPECT_EQ(tokenizer->decode(ids, false), text);
  }
}

TEST(Tokenizer, TakesAnyBytes) {
  auto tokenizer = load(readFile(storyteller + "tokenizer.json"));
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    std::vector<int64_t> ids;
    Error error;
    ASSERT_TRUE(tokenizer->encode(text, ids, error));
    EXPECT_EQ(tokenizer->decode(ids, false), text);
  }
}

TEST(Tokenizer, NamesWhatItCannotDo) {
  auto expect = [](const std::string &json, const char *message) {
    EXPECT_NE(failure(json).find(message), std::string::npos) << failure(json);
  };
  expect("", "not valid JSON");
  expect("[]", "expected an object");
  expect("{}", "no 'model' object");
  expect(R"({"model":{"type":"Wordy","vocab":{}}})", "model type 'Wordy'");
  expect(R"({"model":{"type":"BPE"}})", "no 'model.vocab'");
  expect(R"({"model":{"type":"BPE","vocab":{"a":0}}})", "no 'model.merges'");
  expect(R"({"model":{"vocab":{"a":-1},"merges":[]}})", "token \"a\"");
  expect(R"({"model":{"vocab":{"a":99999999},"merges":[]}})", "token \"a\"");
  expect(R"({"model":{"vocab":{"a":1,"b":1},"merges":[]}})", "have id 1");
  expect(R"({"model":{"type":"Unigram","vocab":[["a",0],["b"]]}})",
         "token 1 of 'model.vocab': expected a token and its score");
  expect(R"({"model":{"type":"Unigram","unk_id":1,"vocab":[["a",0]]}})",
         "'model.unk_id'");
  expect(bytesOnly("", "", "\"ab\""), "merge 0 \"ab\" is not two tokens");
  expect(bytesOnly("", "", "\"a b c\""), "is not two tokens");
  expect(bytesOnly("", "", "7"), "merge 0 is no merge: expected a string");
  expect(bytesOnly("", "", "\"a b\""), "makes \"ab\", which is not");
  expect(bytesOnly("", "", "\"ax b\""), "uses \"ax\", which is not");
  expect(bytesOnly("", "", "", "\"dropout\":0.1,"), "'dropout'");
  expect(bytesOnly(R"("normalizer":{"type":"Shout"})"), "normalizer 'Shout'");
  expect(bytesOnly(R"("normalizer":{"type":"Precompiled",)"
                   R"("precompiled_charsmap":"!"})"),
         "without a valid 'precompiled_charsmap'");
  expect(bytesOnly(R"("pre_tokenizer":{"type":"Metaspace"})"),
         "'Metaspace' without a 'replacement'");
  expect(
      bytesOnly(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"x("},)"
                R"("behavior":"Isolated"})"),
      "a group without its ')' at byte 2 of the pattern");
  expect(bytesOnly(R"("decoder":{"type":"Morse"})"), "decoder 'Morse'");
  expect(bytesOnly(R"("post_processor":{"type":"BertProcessing"})"),
         "without 'cls'");
  expect(bytesOnly(R"("added_tokens":[{"id":1}])"), "an added token without");
}

TEST(Tokenizer, SaysWhereTheFileIsWrong) {
  auto place = [](const std::string &json) {
    Error error;
    size_t where = 0;
    EXPECT_EQ(Tokenizer::create(json, error, &where), nullptr);
    return json.substr(where, 6);
  };
  EXPECT_EQ(place(R"({"model":{"vocab":{"a":-1},"merges":[]}})"), "-1},\"m");
  EXPECT_EQ(place(R"({"decoder":{"type":"No"},"model":)"
                  R"({"vocab":{"a":1},"merges":[]}})"),
            "{\"type");
  EXPECT_EQ(place(R"({"model":{"vocab":{"a":1},"merges":[)"), "");
}

/// What a product has of a tokenizer.
std::string packed(const std::string &json) {
  Error error;
  std::string table;
  EXPECT_TRUE(load(json)->pack(json, table, error)) << error.message;
  return table;
}

TEST(Tokenizer, ATableGivesTheSameIds) {
  const std::string unigram =
      R"({"added_tokens":[{"id":4,"content":"<x>","special":true,"rstrip":true},
          {"id":9,"content":"Key","normalized":true}],
          "normalizer":{"type":"Lowercase"},
          "model":{"type":"Unigram","unk_id":0,"byte_fallback":false,
          "vocab":[["<unk>",0],["a",-1.5],["ab",-2.25],["b",-1.75]]}})";
  // The type of this one shows by its merges alone.
  const std::string old = R"({"model":{"unk_token":"?","vocab":{"?":7,"a":0,
      "b":1,"c":2,"ab":3,"abc":4},"merges":["a b","ab c"]}})";
  const std::string wordPiece =
      R"({"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordPiece",
          "unk_token":"?","continuing_subword_prefix":"++",
          "max_input_chars_per_word":4,
          "vocab":{"?":0,"a":1,"++b":2,"++bc":3}}})";
  const std::string words =
      R"({"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",
          "unk_token":"?","vocab":{"?":0,"abc":5}}})";
  for (const std::string &json :
       {readFile(storyteller + "tokenizer.json"), bytesOnly(""), unigram, old,
        wordPiece, words}) {
    auto made = load(json);
    std::string table = packed(json);
    Error error;
    auto opened = Tokenizer::open(table, error);
    ASSERT_NE(opened, nullptr) << error.message;
    EXPECT_EQ(opened->describe(), made->describe());
    EXPECT_EQ(opened->size(), made->size());
    for (std::string text :
         {"", "Once upon a time, the cat", "ab abc abab <x>  c key Key",
          "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc", "\xFF\xFE z"}) {
      std::vector<int64_t> ids, same;
      ASSERT_EQ(made->encode(text, ids, error),
                opened->encode(text, same, error));
      EXPECT_EQ(ids, same) << text;
      EXPECT_EQ(made->decode(ids, false), opened->decode(ids, false));
    }
    for (int64_t id = -1; id <= made->size(); ++id) {
      EXPECT_EQ(made->tokenOf(id), opened->tokenOf(id));
      EXPECT_EQ(made->isSpecial(id), opened->isSpecial(id));
      EXPECT_EQ(made->bytesOf(id), opened->bytesOf(id));
    }
    EXPECT_EQ(opened->tokenToId("ab"), made->tokenToId("ab"));
  }
}

TEST(Tokenizer, ATableIsWhole) {
  const std::string json = bytesOnly("");
  std::string whole = packed(json);
  // Equal files give equal products.
  EXPECT_EQ(packed(json), whole);
  auto refuses = [](std::string table) {
    Error error;
    bool opened = Tokenizer::open(table, error) != nullptr;
    EXPECT_TRUE(opened || error.message.find("the product is damaged") == 0)
        << error.message;
    return !opened;
  };
  EXPECT_FALSE(refuses(whole));
  EXPECT_TRUE(refuses(""));
  EXPECT_TRUE(refuses(whole + "x"));
  EXPECT_TRUE(refuses(json));
  for (size_t size : {size_t(1), size_t(100), whole.size() - 1})
    EXPECT_TRUE(refuses(whole.substr(0, size)));
  // The header and what is read at each start.
  for (size_t at = 0; at < 260; ++at) {
    std::string changed = whole;
    changed[at] ^= 64;
    EXPECT_TRUE(refuses(changed)) << at;
  }
}

TEST(Tokenizer, SurvivesDamage) {
  std::string good = readFile(storyteller + "tokenizer.json");
  uint32_t state = 7;
  for (int round = 0; round < 200; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) {
      state = state * 1664525 + 1013904223;
      bad[(state >> 8) % bad.size()] = static_cast<char>(state >> 3);
    }
    Error error;
    auto tokenizer = Tokenizer::create(bad, error);
    std::vector<int64_t> ids;
    if (tokenizer)
      (void)tokenizer->encode("Once upon a time", ids, error);
    else
      EXPECT_FALSE(error.message.empty());
  }
}

TEST(Tokenizer, Composes) {
  auto tokenizer = load(bytesOnly(R"("normalizer":{"type":"NFC"},)"
                                  R"("pre_tokenizer":{"type":"ByteLevel",)"
                                  R"("add_prefix_space":false})"));
  EXPECT_EQ(pieces(*tokenizer, "e\xCC\x81"),
            (std::vector<std::string>{"\xC3", "\xA9"}));
}

/// Whether a text starts where the section starts decides on Metaspace's "▁".
/// A normal form may move a mark in front of what the first character became.
TEST(Tokenizer, StartsWhereTheFirstCharacterWent) {
  auto tokenizer = load(bytesOnly(
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},)"
      R"({"type":"Strip","strip_left":true,"strip_right":true}]},)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)"
      R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})"));
  auto text = [&](const std::string &source) {
    std::string joined;
    for (const std::string &piece : pieces(*tokenizer, source))
      joined += piece;
    return joined;
  };
  EXPECT_EQ(text("a"), "_a");
  EXPECT_EQ(text(" a"), "a");
  // U+1FBF is a space and U+0313, of class 230; U+0323 is of class 220.
  EXPECT_EQ(text("\u1FBFa"), "_\u0313a");
  EXPECT_EQ(text("\u1FBF\u0323a"), "\u0323\u0313a");
  EXPECT_EQ(text("\u037A\u0341"), "\u0301\u0345");
  EXPECT_EQ(text("\u00E9\u0323"), "_\u1EB9\u0301");
}

} // namespace
