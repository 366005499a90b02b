#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes UnicodeTables.inc: what the tokenizer needs to know of characters.

Each table is a list of numbers, seven bits a byte with the lowest first (the
eighth bit says that more follow), as base64. Differences are written where
numbers grow, so that most take one byte. Unicode.cpp says what each list means.

    python3 GenerateUnicodeTables.py > UnicodeTables.inc

Needs perl for the scripts, which python's unicodedata does not have; both must
know the same version of Unicode.
"""
import base64
import subprocess
import sys
import textwrap
import unicodedata

CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk "
              "So Zs Zl Zp Cc Cf Cs Co Cn").split()
# The scripts of Unicode 14, in the order of their numbers.
SCRIPTS = (
    "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum "
    "Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid "
    "Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee "
    "Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret "
    "Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan "
    "Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati "
    "Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew "
    "Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi "
    "Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li "
    "Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha "
    "Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam "
    "Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek "
    "Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian "
    "Mro Multani Myanmar Nabataean Nandinagari New_Tai_Lue Newa Nko Nushu "
    "Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic "
    "Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian "
    "Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene "
    "Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan "
    "Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian "
    "Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa "
    "Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai "
    "Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_Citi "
    "Yezidi Yi Zanabazar_Square").split()
LAST = 0x110000


def runs(values):
    """(start, value) of each run of equal values."""
    out, before = [], None
    for c, value in enumerate(values):
        if value != before:
            out.append((c, value))
            before = value
    return out


def categories():
    numbers, last = [], 0
    for start, value in runs(CATEGORIES.index(unicodedata.category(chr(c)))
                             for c in range(LAST)):
        numbers += [start - last, value]
        last = start
    return numbers


def perl_sets(names, pattern):
    """The code points that perl's properties hold."""
    script = ("for my $n (@ARGV) { my $r = eval 'qr/^%s$/u'; die $n unless $r;"
              " my $on = 0; print $n; for my $c (0 .. 0x110000) {"
              " my $in = $c < 0x110000 && chr($c) =~ $r ? 1 : 0;"
              " print ' ', $c if $in != $on; $on = $in; } print \"\\n\"; }"
              % pattern)
    text = subprocess.run(["perl", "-e", script] + names, check=True,
                          capture_output=True, text=True).stdout
    sets = {}
    for line in text.splitlines():
        name, *edges = line.split()
        sets[name] = [int(edge) for edge in edges]
    return sets


def scripts():
    """0 is no script; the rest are numbered from 1."""
    of = bytearray(LAST)
    for name, edges in perl_sets(SCRIPTS, "\\p{Script='.$n.'}").items():
        for start, end in zip(edges[::2], edges[1::2]):
            of[start:end] = bytes([SCRIPTS.index(name) + 1]) * (end - start)
    numbers, last = [], 0
    for start, value in runs(of):
        numbers += [start - last, value]
        last = start
    return numbers


def combining():
    numbers, last = [], 0
    for start, value in runs(unicodedata.combining(chr(c))
                             for c in range(LAST)):
        numbers += [start - last, value]
        last = start
    return numbers


def signed(number):
    return number * 2 if number >= 0 else -number * 2 - 1


def decompositions():
    """Gap to the character, 2 n + compatibility, then n characters as
    differences from the one before. Hangul's are computed, not listed."""
    numbers, last, before = [], 0, 0
    for c in range(LAST):
        text = unicodedata.decomposition(chr(c))
        if not text:
            continue
        parts = text.split()
        compat = parts[0].startswith("<")
        parts = [int(part, 16) for part in parts[compat:]]
        numbers += [c - last, 2 * len(parts) + compat]
        last = c
        for part in parts:
            numbers.append(signed(part - before))
            before = part
    return numbers


def exclusions():
    """Characters of canonical pairs that composition leaves apart."""
    numbers, last = [], 0
    for c in range(LAST):
        text = unicodedata.decomposition(chr(c))
        if not text or text[0] == "<" or 0xAC00 <= c <= 0xD7A3:
            continue
        pair = "".join(chr(int(part, 16)) for part in text.split())
        if len(pair) == 2 and unicodedata.normalize("NFC", pair) != chr(c):
            numbers.append(c - last)
            last = c
    return numbers


def mapping(function):
    """Runs of characters that lie equally far from what they map to: gap,
    2 length + (1 if only every second character counts), difference."""
    pairs = [(c, ord(function(chr(c)))) for c in range(LAST)
             if len(function(chr(c))) == 1 and function(chr(c)) != chr(c)]
    numbers, last, i = [], 0, 0
    while i < len(pairs):
        start, delta = pairs[i][0], pairs[i][1] - pairs[i][0]
        best, step = 1, 1
        for stride in (1, 2):
            n = 1
            while (i + n < len(pairs) and
                   pairs[i + n] == (start + n * stride,
                                    start + n * stride + delta)):
                n += 1
            if n > best:
                best, step = n, stride
        numbers += [start - last, 2 * best + (step == 2), signed(delta)]
        last = pairs[i + best - 1][0]
        i += best
    return numbers


def fold(character):
    """Simple case folding, by way of the full one where that is one long."""
    folded = character.casefold()
    if len(folded) == 1:
        return folded
    lower = character.lower()
    return lower if len(lower) == 1 else character


def sets(pattern):
    (edges,) = perl_sets(["x"], pattern).values()
    return [b - a for a, b in zip([0] + edges, edges)]


def main():
    version = unicodedata.unidata_version
    perl = subprocess.run(
        ["perl", "-e", "require Unicode::UCD; print Unicode::UCD::UnicodeVersion()"],
        check=True, capture_output=True, text=True).stdout
    if perl != version:
        sys.exit(f"python knows Unicode {version}, perl {perl}")
    print(f"// Generated by GenerateUnicodeTables.py from Unicode {version}.")
    for name, numbers in (
            ("categoryRuns", categories()), ("scriptRuns", scripts()),
            ("combiningRuns", combining()),
            ("decompositionList", decompositions()),
            ("exclusionList", exclusions()),
            ("lowerCaseRuns", mapping(str.lower)),
            ("caseFoldRuns", mapping(fold)), ("wordEdges", sets(r"\w")),
            ("extendEdges", sets(r"\p{Grapheme_Cluster_Break=Extend}")),
            ("spacingMarkEdges",
             sets(r"\p{Grapheme_Cluster_Break=SpacingMark}")),
            ("prependEdges", sets(r"\p{Grapheme_Cluster_Break=Prepend}")),
            ("pictographicEdges", sets(r"\p{Extended_Pictographic}"))):
        packed = bytearray()
        for number in numbers:
            while number >= 128:
                packed.append(number & 127 | 128)
                number >>= 7
            packed.append(number)
        text = base64.b64encode(packed).decode()
        print(f"static constexpr char {name}[] =")
        lines = textwrap.wrap(text, 116)
        print("\n".join(f'    "{line}"' for line in lines) + ";")
    print("static constexpr const char *const scriptNames[] = {")
    print(textwrap.fill(", ".join(f'"{name}"' for name in SCRIPTS) + ",", 116,
                        initial_indent="    ", subsequent_indent="    "))
    print("};")


if __name__ == "__main__":
    sys.exit(main())
