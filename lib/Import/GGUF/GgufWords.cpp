//===- GgufWords.cpp - How texts are cut into words -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file names the model whose tokenizer it has, not the patterns of that. They
// are those of the model's own tokenizer.json. llama.cpp cuts a few otherwise,
// where its patterns are approximations: marks and capitals of words of o200k,
// digits of other scripts.
//
//===----------------------------------------------------------------------===//

#include "GgufWords.h"

#include "../WordPatterns.h"

namespace attune::gguf {

static constexpr char kDigit[] = "\\p{N}", kThree[] = "\\p{N}{1,3}";
/// Letters of scripts that DeepSeek's first models tell apart.
static constexpr char kAlphabets[] =
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"
    "\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f"
    "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-"
    "\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba"
    "\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-"
    "\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-"
    "\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-"
    "\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-"
    "\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b"
    "\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-"
    "\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"
    "\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943]+";
static constexpr char kSigns[] = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e"
                                 "\u2018-\u201f\u3000-\u3002]+";
static constexpr char kHanAndHangul[] =
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";
static constexpr char kHanAndKana[] =
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
static constexpr char kDeepSeekWords[] =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static constexpr char kSparkWords[] =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\\r\\n]"
    "|\\s+(?!\\S)|\\s+";
/// Qwen 2's without English endings, so that those of Turkish stay whole.
static constexpr char kUfakzekaWords[] =
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static constexpr char kQwen35Words[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+"
    "|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)"
    "|\\s+";
/// Words of o200k, but texts in Chinese characters are words of their own.
static constexpr char kKimiWords[] =
    "[\\p{Han}]+"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)"
    "|\\s+";
static constexpr char kFalconSigns[] = "[\\p{P}\\$\\+<=>\\^~\\|`]+";
static constexpr char kBloomWords[] =
    " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+";
static constexpr char kBailingWords[] =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
static constexpr char kSeedWords[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"
    "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static constexpr char kMiniCPM5Words[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static constexpr char kExaoneMoEWords[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
static constexpr char kJais2Words[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)"
    "|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)"
    "|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}";
static constexpr char kYoutuScripts[] =
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014"
    "\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+"
    "|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
static constexpr char kYoutuWords[] =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
/// Threes of digits, counted from the last one.
static constexpr char kThreesFromEnd[] = "\\d{1,3}(?=(?:\\d{3})*\\b)";
static constexpr char kNumbersFromEnd[] =
    "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))";
static constexpr char kAsianScripts[] =
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-"
    "\uff9f\u2f00-\u2fdf\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f"
    "\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+";

static constexpr Words kWords[] = {
    {"gpt-2", {gpt2Words}},
    {"mpt", {gpt2Words}},
    {"olmo", {gpt2Words}},
    {"phi-2", {gpt2Words}},
    {"jina-es", {gpt2Words}},
    {"jina-de", {gpt2Words}},
    {"jina-v2-es", {gpt2Words}},
    {"jina-v2-de", {gpt2Words}},
    {"jina-v1-en", {gpt2Words}},
    {"jina-v2-code", {gpt2Words}},
    {"roberta-bpe", {gpt2Words}},
    {"modern-bert", {gpt2Words}},
    {"gigachat", {gpt2Words}},
    {"a.x-4.0", {gpt2Words}},
    {"mellum", {gpt2Words}},
    {"exaone4", {gpt2Words}},
    {"jais", {gpt2Words}},
    {"trillion", {gpt2Words}},
    {"granite-docling", {gpt2Words}},
    {"llama-bpe", {llama3Words}, true, true},
    {"llama3", {llama3Words}, true, true},
    {"llama-v3", {llama3Words}, true, true},
    {"falcon3", {llama3Words}, true, true},
    {"pixtral", {llama3Words}, true, true},
    {"falcon-h1", {llama3Words}, true, true},
    {"midm-2.0", {llama3Words}, true, true},
    {"lfm2", {llama3Words}, true, true},
    {"jina-v5-nano", {llama3Words}, true, true},
    {"smaug-bpe", {llama3Words}, true},
    {"dbrx", {llama3Words}},
    {"glm4", {llama3Words}},
    {"chatglm-bpe", {llama3Words}},
    {"jais-2", {kJais2Words}},
    {"qwen2", {qwen2Words}},
    {"deepseek-r1-qwen", {qwen2Words}},
    {"kormo", {qwen2Words}},
    {"f2llmv2", {qwen2Words}},
    {"megrez", {qwen2Words}},
    {"stablelm2", {qwen2Words}},
    {"hunyuan", {qwen2Words}},
    {"solar-open", {qwen2Words}},
    {"grok-2", {qwen2Words}},
    {"qwen35", {kQwen35Words}},
    {"laguna", {"[^\\n]+|[\\n]+", qwen2Words}},
    {"starcoder", {kDigit, gpt2Words}},
    {"refact", {kDigit, gpt2Words}},
    {"command-r", {kDigit, gpt2Words}},
    {"smollm", {kDigit, gpt2Words}},
    {"codeshell", {kDigit, gpt2Words}},
    {"exaone", {kDigit, gpt2Words}},
    {"minerva-7b", {kDigit, gpt2Words}},
    {"mellum2", {kDigit, gpt2Words}},
    {"exaone-moe", {kExaoneMoEWords}},
    {"default",
     {"[\\p{P}\\$\\+<=>\\^~\\|]+", gpt2Words, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {"falcon", {kFalconSigns, gpt2Words, "[0-9][0-9][0-9]"}},
    {"deepseek-llm",
     {"[\\r\\n]", kAlphabets, kSigns, "\\s+$", kHanAndHangul, "\\p{N}+"}},
    {"deepseek-coder",
     {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kHanAndHangul, kDigit}},
    {"deepseek-v3", {kThree, kHanAndKana, kDeepSeekWords}},
    {"hunyuan-dense", {kThree, kHanAndKana, kDeepSeekWords}},
    {"joyai-llm", {kThree, kHanAndKana, kDeepSeekWords}},
    {"hy_v4", {kThree, kHanAndKana, kDeepSeekWords}},
    {"spark2_5", {kThree, kHanAndKana, kSparkWords, kDigit}},
    {"ufakzeka", {kUfakzekaWords}},
    {"youtu", {kYoutuScripts, kYoutuWords}, true},
    {"kimi-k2", {kKimiWords}, true},
    {"gpt-4o", {o200kWords}},
    {"llama4", {o200kWords}},
    {"kanana2", {o200kWords}},
    {"talkie", {o200kWords}},
    {"minimax-m2", {o200kWords}},
    {"granite-embed-multi-97m", {o200kWords}, true},
    {"tiny_aya", {kThreesFromEnd, o200kWords}},
    {"cohere2moe", {kThreesFromEnd, o200kWords}},
    {"tekken", {tekkenWords}, true, true},
    {"superbpe", {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
    {"bailingmoe", {kBailingWords}},
    {"bailingmoe2", {kBailingWords}},
    {"llada-moe", {kBailingWords}},
    {"seed-coder", {kSeedWords}},
    {"minicpm5", {kThree, kMiniCPM5Words}, true},
    {"afmoe", {kNumbersFromEnd, kAsianScripts, kDeepSeekWords}},
    {"bloom", {kBloomWords}},
    {"poro-chat", {kBloomWords}},
    {"gpt3-finnish", {kBloomWords}},
    {"viking", {kBloomWords, kDigit}},
};

const Words *findWords(std::string_view name) {
  for (const Words &words : kWords)
    if (name == words.name)
      return &words;
  return nullptr;
}

std::string knownWords() {
  std::string known;
  for (const Words &words : kWords)
    known += (known.empty() ? "" : ", ") + std::string(words.name);
  return known;
}

} // namespace attune::gguf
