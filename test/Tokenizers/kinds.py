# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small tokenizers of every kind, laid out as published ones are, and texts.

Vocabularies come from the corpus below, so that texts meet tokens of several
characters. Everything is a function of fixed seeds.
"""
import base64
import collections
import random
import struct
import unicodedata

# A sentence or two in each of 33 languages and 30 scripts.
CORPUS = """All human beings are born free and equal in dignity and rights. They aren't alone, it's 2024!
Tous les êtres humains naissent libres et égaux en dignité et en droits: où ça, déjà?
Alle Menschen sind frei und gleich an Würde und Rechten geboren; GROẞE Straße.
Todos los seres humanos nacen libres e iguales, ¿verdad? ¡Año nuevo!
Tüm insanlar özgür, İstanbul ve ılık: haklar bakımından eşit doğarlar.
Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.
Все люди рождаются свободными и равными в своем достоинстве и правах. Ёлка.
Всі люди народжуються вільними і рівними у своїй гідності та правах, її ґанок.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. ΣΊΣΥΦΟΣ
Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ։
ყველა ადამიანი იბადება თავისუფალი და თანასწორი. ᲗᲑᲘᲚᲘᲡᲘ
כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם. שָׁלוֹם
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق، ٢٠٢٤ ﷺ
تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔
ܟܠ ܒܪܢܫܐ ܒܪܝܠܗ ܚܐܪܐ
ސުލްހަވެރިކަން ދިވެހި
ߞߎ߲߬ߛߌ߲߬ߠߊ ߡߎ߰ߡߍ ߓߍ߯
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता। २०२४
সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।
ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ
પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો જન્મથી સ્વતંત્ર
ସବୁ ମନୁଷ୍ୟ ଜନ୍ମକାଳରୁ ସ୍ୱାଧୀନ
மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்
ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులు
ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ
മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും അന്തസ്സോടും
සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในศักดิ์ศรี ๒๕๖๗
ມະນຸດທຸກຄົນເກີດມາມີສິດເສລີພາບ
འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས
လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့်
មនុស្សទាំងអស់ កើតមកមានសេរីភាព និងសមភាព
ሰው ሁሉ ነጻና በክብርና በመብት እኩል ሆኖ የተወለደ ነው።
ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ
ᖃᐅᔨᒪᓗᒍ ᓱᓕᔪᕐᓂᖓᓄᑦ
ᠬᠦᠮᠦᠨ ᠪᠦᠷ ᠲᠥᠷᠥᠵᠦ ᠮᠡᠨᠳᠡᠯᠡᠬᠦ
人人生而自由，在尊严和权利上一律平等。“引用”——㍿ １２３ 豈
人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心
すべての人間は、生まれながらにして自由であり、ｶﾀｶﾅ、ラーメン、がぎぐ。
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 각
ꉢꊨꇬꄊ ꊿꂷꃅꄿꐨꐥ
𐌰𐌻𐌻𐌰𐌹 𐌼𐌰𐌽𐌽𐌰 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 𐐔𐐇𐐝
😀 👩‍👩‍👧 🇫🇷🇩🇪 👍🏽 ✈️ #️⃣ don't I'LL we've ﬁne ½ x² №5 ™
def f(x):\n    return x**2 + 0x1F  # comment\t\ttabs\r\n\n\nif (a != b) { c += 12345.678; }
camelCase HTTPServer snake_case 100,000,000 http://example.com/a?b=c&d=e MiXeD iPhone"""

BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
             "Contiguous"]
GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
        r"|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
          r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
            r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?"
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CLIP = (r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")


def byte_alphabet():
    visible = (list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) +
               list(range(0xAE, 0x100)))
    table, unused = {}, 0x100
    for byte in range(256):
        table[byte] = chr(byte) if byte in visible else chr(unused)
        unused += byte not in visible
    return table


BYTES = byte_alphabet()


def spell(text):
    return "".join(BYTES[b] for b in text.encode())


def learn(words, count, start):
    """Merges of the most frequent pairs, and the vocabulary they make."""
    words = [(list(start(word)), n) for word, n in words.items()]
    vocab, merges = sorted({c for word, _ in words for c in word}), []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, n in words:
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        tail = best[1][2:] if best[1].startswith("##") else best[1]
        joined = best[0] + tail
        if joined not in vocab:
            vocab.append(joined)
        for word, _ in words:
            i = 0
            while i + 1 < len(word):
                if (word[i], word[i + 1]) == best:
                    word[i:i + 2] = [joined]
                i += 1
    return vocab, merges


def words_of(text, mark):
    return collections.Counter(mark + word for word in text.split())


def added(tokens, first, **flags):
    base = {"single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True}
    return [{"id": first + i, "content": token, **base, **flags}
            for i, token in enumerate(tokens)]


def tokenizer(model, **parts):
    out = {"version": "1.0", "truncation": None, "padding": None,
           "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
           "post_processor": None, "decoder": None, **parts}
    out["model"] = model
    return out


def bpe(vocab, merges, **flags):
    model = {"type": "BPE", "dropout": None, "unk_token": None,
             "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False,
             "ignore_merges": False}
    model.update(flags)
    model["vocab"] = {token: i for i, token in enumerate(vocab)}
    model["merges"] = merges
    return model


def sequence(kind, *items):
    return {"type": "Sequence", kind: list(items)}


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern},
            "behavior": behavior, "invert": invert}


def byte_level(**flags):
    return {"type": "ByteLevel", "add_prefix_space": False,
            "trim_offsets": True, "use_regex": False, **flags}


def template(single, pair, tokens):
    def part(item):
        name, _, kind = item.partition(":")
        where = {"id": name.lstrip("$"), "type_id": int(kind or 0)}
        return {("Sequence" if name[0] == "$" else "SpecialToken"): where}
    return {"type": "TemplateProcessing",
            "single": [part(item) for item in single.split()],
            "pair": [part(item) for item in pair.split()],
            "special_tokens": {name: {"id": name, "ids": [number],
                                      "tokens": [name]}
                               for name, number in tokens.items()}}


def charsmap(pairs):
    """A double-array trie as SentencePiece writes it, one child at a time."""
    blob, where = b"", {}
    for text in sorted(set(pairs.values())):
        where[text] = len(blob)
        blob += text.encode() + b"\0"
    keys = sorted((key.encode(), where[value]) for key, value in pairs.items())
    units, used = [0] * 256, [False] * 256
    used[0] = True

    def grow(size):
        while len(units) < size:
            units.append(0)
            used.append(False)

    def build(node, begin, end, depth):
        value, labels, i = None, [], begin
        if len(keys[begin][0]) == depth:
            value = keys[begin][1]
            labels.append(0)
            i += 1
        while i < end:
            label, first = keys[i][0][depth], i
            while i < end and keys[i][0][depth] == label:
                i += 1
            labels.append((label, first, i))
        plain = [entry if entry == 0 else entry[0] for entry in labels]
        base = 1
        while True:
            grow((base | 255) + 256)
            if not any(used[base ^ label] for label in plain):
                break
            base += 1
        offset = base ^ node
        if offset >= 1 << 21:
            assert offset % 256 == 0
            units[node] |= (offset >> 8) << 10 | 0x200
        else:
            units[node] |= offset << 10
        for label in plain:
            used[base ^ label] = True
        if value is not None:
            units[node] |= 0x100
            units[base] = value | 0x80000000
        for entry in labels:
            if entry != 0:
                units[base ^ entry[0]] = entry[0]
        for entry in labels:
            if entry != 0:
                build(base ^ entry[0], entry[1], entry[2], depth + 1)

    build(0, 0, len(keys), 0)
    packed = struct.pack(f"<{len(units)}I", *units)
    return base64.b64encode(struct.pack("<I", len(packed)) + packed +
                            blob).decode()


def nmt_nfkc():
    """Part of SentencePiece's nmt_nfkc."""
    pairs = {}
    for first, last in ((0xA0, 0x250), (0x1E00, 0x1F00), (0x2000, 0x2200),
                        (0x2460, 0x2500), (0x3000, 0x3100), (0x3300, 0x3400),
                        (0xF900, 0xFB00), (0xFB00, 0xFB50), (0xFE00, 0x10000)):
        for c in range(first, last):
            text = unicodedata.normalize("NFKC", chr(c))
            if text != chr(c) and "\0" not in text:
                pairs[chr(c)] = text
    for base in "aeiouAEIOUcnCN":
        for mark in "\u0300\u0301\u0302\u0308\u0327\u0303":
            text = unicodedata.normalize("NFKC", base + mark)
            if len(text) == 1:
                pairs[base + mark] = text
    for c in "\t\n\r\u1680\u200b\u200e\u2028\ufeff\ufffd":
        pairs[c] = " "
    for c in range(1, 9):
        pairs[chr(c)] = ""
    return charsmap(pairs)


def byte_level_kinds():
    gpt2_words = collections.Counter()
    for line in CORPUS.split("\n"):
        for i, word in enumerate(line.split(" ")):
            gpt2_words[spell((" " if i else "") + word)] += 1
    vocab, merges = learn(gpt2_words, 1200, lambda word: word)
    vocab = sorted(BYTES.values()) + [t for t in vocab if len(t) > 1]
    strings = [" ".join(merge) for merge in merges]
    specials = added(["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                     len(vocab))
    decoder = {"type": "ByteLevel", "add_prefix_space": True,
               "trim_offsets": True, "use_regex": True}

    def made(pre, normalizer=None, model=None, **parts):
        parts.setdefault("added_tokens", specials)
        return tokenizer(model or bpe(vocab, strings), normalizer=normalizer,
                         pre_tokenizer=pre, decoder=decoder, **parts)

    yield "gpt2", made(byte_level(use_regex=True),
                       post_processor=byte_level())
    bos = len(vocab)
    ids = {"<|endoftext|>": bos}
    yield "roberta", made(
        byte_level(use_regex=True, add_prefix_space=True),
        post_processor={"type": "RobertaProcessing", "add_prefix_space": True,
                        "trim_offsets": True, "cls": ["<|im_start|>", bos + 1],
                        "sep": ["<|im_end|>", bos + 2]},
        added_tokens=added(["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                           bos, lstrip=True))
    yield "llama3", made(
        sequence("pretokenizers", split(LLAMA3), byte_level()),
        model=bpe(vocab, [list(merge) for merge in merges],
                  ignore_merges=True),
        post_processor=sequence("processors", byte_level(), template(
            "<|endoftext|> $A", "<|endoftext|> $A <|endoftext|>:1 $B:1", ids)))
    yield "qwen", made(sequence("pretokenizers", split(QWEN), byte_level()),
                       {"type": "NFC"})
    for name, pattern in (("o200k", O200K), ("cl100k", CL100K),
                          ("kimi", KIMI), ("bloom", BLOOM)):
        yield name, made(sequence("pretokenizers", split(pattern),
                                  byte_level()))
    yield "deepseek", made(sequence(
        "pretokenizers", *[split(pattern) for pattern in DEEPSEEK],
        byte_level()), sequence("normalizers"))
    yield "starcoder", made(sequence(
        "pretokenizers", {"type": "Digits", "individual_digits": True},
        byte_level(use_regex=True)))
    yield "modernbert", made(
        byte_level(use_regex=True), {"type": "NFC"},
        added_tokens=added(["<|endoftext|>"], bos) + added(
            ["   ", "  ", "Hello", "freE", "año"], bos + 1, special=False,
            normalized=True))
    yield "normalizer-bytes", made(
        split(r"[^\r\nĠ]+|Ġ+"), sequence(
            "normalizers", {"type": "NFKC"}, {"type": "ByteLevel"}))
    clip_words = collections.Counter()
    for word, n in words_of(CORPUS.lower(), "").items():
        clip_words[spell(word)] += n
    letters = [*sorted(BYTES.values()),
               *[c + "</w>" for c in sorted(BYTES.values())]]
    clip, clip_merges = learn(
        clip_words, 500, lambda word: list(word[:-1]) + [word[-1] + "</w>"])
    clip = letters + [token for token in clip if token not in letters]
    end = len(clip)
    yield "clip", tokenizer(
        bpe(clip, [" ".join(merge) for merge in clip_merges],
            unk_token="<|endoftext|>", end_of_word_suffix="</w>"),
        normalizer=sequence("normalizers", {"type": "NFC"},
                            {"type": "Replace", "pattern": {"Regex": r"\s+"},
                             "content": " "}, {"type": "Lowercase"}),
        pre_tokenizer=sequence(
            "pretokenizers", split(CLIP, "Removed", True), byte_level()),
        post_processor={"type": "RobertaProcessing", "trim_offsets": False,
                        "add_prefix_space": False,
                        "cls": ["<|startoftext|>", end],
                        "sep": ["<|endoftext|>", end + 1]},
        decoder={"type": "BPEDecoder", "suffix": "</w>"},
        added_tokens=added(["<|startoftext|>", "<|endoftext|>"], end))


def sentencepiece_kinds():
    merged = collections.Counter()
    for line in CORPUS.split("\n")[:20]:
        for word in line.split():
            merged["▁" + word] += 1
    vocab, merges = learn(merged, 700, lambda word: word)
    head = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    vocab = head + vocab
    strings = [" ".join(merge) for merge in merges]
    specials = [{**token, "normalized": False}
                for token in added(["<unk>", "<s>", "</s>"], 0)]
    bos = template("<s> $A", "<s> $A <s>:1 $B:1", {"<s>": 1})
    llama_decoder = sequence(
        "decoders", {"type": "Replace", "pattern": {"String": "▁"},
                     "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1,
                           "stop": 0})
    model = bpe(vocab, strings, unk_token="<unk>", fuse_unk=True,
                byte_fallback=True)
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    yield "llama2", tokenizer(
        model, added_tokens=specials, decoder=llama_decoder,
        post_processor=bos, normalizer=sequence(
            "normalizers", {"type": "Prepend", "prepend": "▁"}, space))
    for scheme in ("first", "always", "never"):
        yield "mistral-" + scheme, tokenizer(
            model, added_tokens=specials, decoder=llama_decoder,
            post_processor=bos,
            pre_tokenizer={"type": "Metaspace", "replacement": "▁",
                           "prepend_scheme": scheme, "split": False})
    yield "gemma", tokenizer(
        {**model, "merges": [list(merge) for merge in merges]},
        added_tokens=specials + added(["\n\n", "\t"], len(vocab),
                                      special=False),
        normalizer=space, post_processor=bos, decoder=sequence(
            "decoders", {"type": "Replace", "pattern": {"String": "▁"},
                         "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}),
        pre_tokenizer={"type": "Split", "pattern": {"String": " "},
                       "behavior": "MergedWithPrevious", "invert": False})
    yield "bpe-unknown", tokenizer(
        bpe(vocab[:400], [m for m in strings
                          if m.replace(" ", "") in vocab[:400]
                          and set(m.split()) <= set(vocab[:400])],
            unk_token="<unk>", fuse_unk=False),
        pre_tokenizer={"type": "Metaspace", "replacement": "▁",
                       "add_prefix_space": True},
        decoder={"type": "Metaspace", "replacement": "▁",
                 "add_prefix_space": True})


def unigram_vocab(bytes_too):
    counts = collections.Counter()
    for word, n in words_of(CORPUS, "▁").items():
        for i in range(len(word)):
            for j in range(i + 1, min(len(word), i + 8) + 1):
                counts[word[i:j]] += n
    chosen = [t for t, n in counts.most_common() if len(t) == 1][:500]
    chosen += [t for t, n in counts.most_common() if len(t) > 1][:900]
    import math
    total = sum(counts[t] for t in chosen)
    head = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
    if bytes_too:
        head += [[f"<0x{b:02X}>", 0.0] for b in range(256)]
    return head + [[t, round(math.log(counts[t] / total) * len(t) ** 0.2, 6)]
                   for t in chosen]


def unigram_kinds():
    specials = added(["<pad>", "</s>", "<unk>"], 0)
    vocab = unigram_vocab(False)
    model = {"type": "Unigram", "unk_id": 2, "vocab": vocab,
             "byte_fallback": False}
    end = template("$A </s>", "$A </s> $B:1 </s>:1", {"</s>": 1})
    old = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    new = {"type": "Metaspace", "replacement": "▁",
           "prepend_scheme": "always", "split": True}
    precompiled = {"type": "Precompiled", "precompiled_charsmap": nmt_nfkc()}
    extra = added([f"<extra_id_{i}>" for i in range(3)], len(vocab))
    yield "t5", tokenizer(
        model, added_tokens=specials + extra, normalizer=precompiled,
        pre_tokenizer=sequence("pretokenizers", {"type": "WhitespaceSplit"},
                               old), post_processor=end, decoder=old)
    yield "xlm-roberta", tokenizer(
        model, added_tokens=specials + added(
            ["<mask>"], len(vocab), lstrip=True),
        normalizer=sequence("normalizers", precompiled, {
            "type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}),
        pre_tokenizer=new, post_processor=end, decoder=new)
    yield "albert", tokenizer(
        model, added_tokens=specials, normalizer=sequence(
            "normalizers",
            {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
            {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
            {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
            precompiled),
        pre_tokenizer=sequence("pretokenizers", {"type": "WhitespaceSplit"},
                               {**new, "prepend_scheme": "first"}),
        decoder=new)
    with_bytes = unigram_vocab(True)
    yield "unigram-bytes", tokenizer(
        {**model, "vocab": with_bytes, "byte_fallback": True},
        normalizer=sequence("normalizers", {"type": "Nmt"}, {"type": "NFKC"},
                            {"type": "Strip", "strip_left": True,
                             "strip_right": True}),
        pre_tokenizer={**new, "prepend_scheme": "first"}, decoder=sequence(
            "decoders", {"type": "ByteFallback"}, new))


def word_kinds():
    lowered = CORPUS.lower()
    vocab, _ = learn(words_of(lowered, ""), 600, lambda word: [
        word[0]] + ["##" + c for c in word[1:]])
    letters = sorted(set(lowered) - set(" \n"))
    head = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = head + [t for t in vocab] + [
        t for c in letters for t in (c, "##" + c) if t not in vocab]
    specials = added(head, 0)
    model = {"type": "WordPiece", "unk_token": "[UNK]",
             "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100,
             "vocab": {token: i for i, token in enumerate(vocab)}}
    wordpiece = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    bert = template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1",
                    {"[CLS]": 2, "[SEP]": 3})

    def normalizer(**flags):
        return {"type": "BertNormalizer", "clean_text": True,
                "handle_chinese_chars": True, "strip_accents": None,
                "lowercase": True, **flags}
    yield "bert", tokenizer(
        model, added_tokens=specials, normalizer=normalizer(),
        pre_tokenizer={"type": "BertPreTokenizer"}, post_processor=bert,
        decoder=wordpiece)
    yield "bert-cased", tokenizer(
        {**model, "max_input_chars_per_word": 8}, added_tokens=specials,
        normalizer=normalizer(lowercase=False),
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor={"type": "BertProcessing", "sep": ["[SEP]", 3],
                        "cls": ["[CLS]", 2]},
        decoder={**wordpiece, "cleanup": False})
    yield "bert-fitted", tokenizer(
        model, added_tokens=specials, post_processor=bert,
        normalizer=normalizer(strip_accents=True),
        pre_tokenizer={"type": "BertPreTokenizer"}, decoder=wordpiece,
        truncation={"direction": "Right", "max_length": 16, "stride": 0,
                    "strategy": "LongestFirst"},
        padding={"strategy": {"Fixed": 16}, "direction": "Right",
                 "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
                 "pad_token": "[PAD]"})
    words = sorted(set(lowered.split()))
    level = {"type": "WordLevel", "unk_token": "[UNK]",
             "vocab": {t: i for i, t in enumerate(head + words)}}
    yield "words", tokenizer(
        level, added_tokens=specials + added(
            ["Dignity", "Rechten"], 5 + len(words), special=False,
            single_word=True, normalized=True),
        normalizer=sequence("normalizers", {"type": "Lowercase"},
                            {"type": "NFC"}),
        pre_tokenizer={"type": "WhitespaceSplit"})
    characters = {t: i for i, t in enumerate(
        head + letters + sorted(set(CORPUS) - set(letters)))}
    small = {**level, "vocab": characters}
    for name, pre in (
            ("whitespace", {"type": "Whitespace"}),
            ("digits", {"type": "Digits", "individual_digits": False}),
            ("delimiter", {"type": "CharDelimiterSplit", "delimiter": "e"}),
            ("nested", sequence(
                "pretokenizers", {"type": "Punctuation"},
                sequence("pretokenizers", {"type": "Whitespace"},
                         {"type": "Digits", "individual_digits": True})))):
        yield "pre-" + name, tokenizer(
            {**model, "max_input_chars_per_word": 1000}, pre_tokenizer=pre)
    for behavior in BEHAVIORS:
        yield "pre-split-" + behavior, tokenizer(
            {**model, "max_input_chars_per_word": 1000},
            pre_tokenizer=sequence(
                "pretokenizers", split(r"[aeiou]+(?=[a-z])|\b\w\b", behavior),
                split(r"(?<![a-z])[a-z]{1,2}?|(?<=\d)\d", behavior, True),
                {"type": "Punctuation", "behavior": behavior}))
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield "form-" + form, tokenizer(
            bpe(sorted(BYTES.values()), []), normalizer={"type": form},
            pre_tokenizer=byte_level(), decoder=byte_level())
    yield "ctc", tokenizer(
        small, added_tokens=specials, pre_tokenizer=split("", "Isolated"),
        decoder={"type": "CTC", "pad_token": "[PAD]",
                 "word_delimiter_token": "e", "cleanup": True})


def kinds():
    for group in (byte_level_kinds, sentencepiece_kinds, unigram_kinds,
                  word_kinds):
        yield from group()


SCRIPTS = [(0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370),
           (0x370, 0x530), (0x530, 0x600), (0x600, 0x780), (0x900, 0xE00),
           (0xE00, 0x1100), (0x1100, 0x1200), (0x1200, 0x1800),
           (0x1E00, 0x2000), (0x2000, 0x2200), (0x2200, 0x2800),
           (0x3000, 0x3400), (0x4E00, 0x5200), (0xAC00, 0xAF00),
           (0xF900, 0xFB50), (0xFE00, 0xFFFE), (0x10000, 0x10400),
           (0x1D400, 0x1D800), (0x1F1E0, 0x1F200), (0x1F300, 0x1F700),
           (0x20000, 0x20100), (0x2F800, 0x2F900)]
PIECES = [" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "’", "...", "12", "3456",
          "\u0301", "\u0308", "\u200d", "\ufe0f", "\u3000", "\u00a0", "ſ",
          "K", "İ", "ß", "ﬁ", "``", "''", "_", "<s>", "</s>", "<|im_end|>",
          "[MASK]", "<mask>", "<extra_id_1>", "[SEP]", "<0x41>", "▁", "Ġ", "e"]


def is_settled(character):
    """Parts of the reference have tables of different versions of Unicode. They
    agree on what has been there, and has been the same, for long."""
    old = unicodedata.ucd_3_2_0
    return (old.category(character) != "Cn" and
            old.category(character) == unicodedata.category(character) and
            old.combining(character) == unicodedata.combining(character))


def texts(count, seed):
    """The corpus by lines and words, then random texts: a few of any
    characters, or many of settled ones."""
    random_of = random.Random(seed)
    few = count < 10000
    words = CORPUS.split()
    lines = CORPUS.split("\n")
    yield from ("", " ", "  ", "\n", "a", " a", "a ", "   a  b   ")
    yield from lines
    for _ in range(count):
        how, out = random_of.randrange(4), []
        if how == 0:
            for _ in range(random_of.randrange(1, 12)):
                out.append(random_of.choice(words))
                out.append(random_of.choice((" ", " ", "", "  ")))
        else:
            ranges = random_of.sample(SCRIPTS, how)
            for _ in range(random_of.randrange(1, 24)):
                if random_of.random() < 0.25:
                    out.append(random_of.choice(PIECES))
                elif random_of.random() < 0.2:
                    out.append(random_of.choice(words))
                else:
                    first, last = random_of.choice(ranges)
                    character = chr(random_of.randrange(first, last))
                    if few or is_settled(character):
                        out.append(character)
        yield "".join(out)


def write(folder, count, seed):
    """A file for each kind, and one with the texts: some are pairs."""
    import json
    import os
    for name, content in kinds():
        with open(os.path.join(folder, name + ".json"), "w",
                  encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False)
    lines = list(texts(count, seed))
    with open(os.path.join(folder, "texts.jsonl"), "w",
              encoding="utf-8") as file:
        for i, text in enumerate(lines):
            pair = [lines[i * 31 % len(lines)]] if i % 7 == 3 else []
            file.write(json.dumps([text] + pair) + "\n")


if __name__ == "__main__":
    import sys
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
