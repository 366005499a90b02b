# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Caches that hold a window, against a reference that has none.

    window_caches.py make TEST_LIB MODEL WORK     weights, and what is expected
    window_caches.py check WORK LIBRARY [TOLERANCE [WHOLE_LIBRARY]]

`make` computes the logits of a whole text in double precision. `check` asks a
library for them in ways that let rings move their rows: token by token, by
prompts of several lengths, in two rows, after going back, as sets of sequences.
WHOLE_LIBRARY is of the same model with caches of all positions, which a text is
the same as.
"""

import array
import ctypes
import json
import os
import sys

TOKENS = 660
I64, VOID = ctypes.c_int64, ctypes.c_void_p


def make(test_lib, model_path, work):
    sys.path.insert(0, test_lib)
    import reference
    import tensors
    with open(model_path, encoding="utf-8") as file:
        model = reference.Model(json.load(file), {"batch": 1, "seq": TOKENS})
    logits = model.run()["logits"]
    os.makedirs(work, exist_ok=True)
    model.weights.save(f"{work}/weights.safetensors")
    tensors.save(f"{work}/expected.safetensors", {
        "ids": ("I64", [TOKENS], model.inputs["input_ids"][1].tobytes()),
        "logits": ("F32", [TOKENS, len(logits) // TOKENS],
                   array.array("f", logits).tobytes())})


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32),
                ("memory_limit", ctypes.c_uint64), ("weights_path", VOID),
                ("weights", VOID), ("weights_bytes", ctypes.c_uint64)]


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(os.path.abspath(path))
        for name, result in [
                ("open", VOID), ("session_open", VOID), ("set_open", VOID),
                ("last_error", ctypes.c_char_p),
                ("session_logits", ctypes.POINTER(ctypes.c_float)),
                ("set_logits", ctypes.POINTER(ctypes.c_float)),
                ("set_save", I64), ("session_length", I64),
                ("set_length", I64)]:
            self.call(name).restype = result
        descriptor = ctypes.c_char.in_dll(self.library, "attune_model")
        self.model = VOID(self("open", VOID(ctypes.addressof(descriptor)),
                               ctypes.byref(Options(ctypes.sizeof(Options), 1))))

    def call(self, name):
        return getattr(self.library, "attune_" + name)

    def __call__(self, name, *args):
        return self.call(name)(*args)

    def must(self, name, *args):
        status = self(name, *args)
        assert status == 0, (name, self("last_error").decode())


class Session:
    """Rows that all have the same text, but for an offset of the first ids."""

    def __init__(self, library, rows, capacity=TOKENS + 20):
        self.library, self.rows = library, rows
        self.handle = VOID(library("session_open", library.model, I64(rows),
                                   I64(capacity)))

    def step(self, *texts):
        ids = [i for text in texts for i in text]
        self.library.must("session_step", self.handle, (I64 * len(ids))(*ids),
                          I64(len(texts[0])))

    def logits(self):
        return self.library("session_logits", self.handle)[:self.rows * WIDTH]

    def length(self):
        return self.library("session_length", self.handle)

    def rewind(self, length):
        return self.library("session_rewind", self.handle, I64(length)) == 0


class Set:
    def __init__(self, library, count, capacity=TOKENS + 20):
        self.library = library
        self.handle = VOID(library("set_open", library.model,
                                   ctypes.c_uint32(count), I64(capacity)))
        assert library("set_steps_together", self.handle) == 1

    def append(self, sequence, ids):
        self.library.must("set_append", self.handle, sequence,
                          (I64 * len(ids))(*ids), I64(len(ids)))

    def step(self, members, ids):
        self.library.must("set_step", self.handle,
                          (ctypes.c_uint32 * len(members))(*members),
                          (I64 * len(ids))(*ids), len(ids))

    def logits(self, sequence):
        return self.library("set_logits", self.handle, sequence)[:WIDTH]


def expect(at, got, row=0):
    """The logits behind token `at` of the text."""
    global WORST
    wanted = LOGITS[at * WIDTH:(at + 1) * WIDTH]
    got = got[row * WIDTH:(row + 1) * WIDTH]
    error = max(abs(a - b) for a, b in zip(wanted, got)) / TOP
    WORST = max(WORST, error)
    assert error <= TOLERANCE, (at, error)


def one_by_one(library):
    session = Session(library, 1)
    for i, token in enumerate(IDS):
        session.step([token])
        expect(i, session.logits())
    print("ok one_by_one")


def pieces(library):
    session, at = Session(library, 1), 0
    for count in [1, 30, 400, 17, 1, 1, 120, 90]:
        session.step(IDS[at:at + count])
        at += count
        expect(at - 1, session.logits())
    session = Session(library, 1)
    session.step(IDS)
    expect(TOKENS - 1, session.logits())
    print("ok pieces")


def rows(library):
    """The second row's text is the first one's from another token on."""
    session, alone = Session(library, 2), Session(library, 1)
    other = IDS[::-1]
    for first, last in [(0, 300), (300, 301), (301, 640), (640, 650)]:
        session.step(IDS[first:last], other[first:last])
        alone.step(other[first:last])
        expect(last - 1, session.logits())
        apart = max(abs(a - b) for a, b in zip(session.logits()[WIDTH:],
                                               alone.logits()))
        assert apart <= TOLERANCE * TOP, apart
    print("ok rows")


def going_back(library):
    session = Session(library, 1)
    session.step(IDS[:600])
    for length in [590, 560, 530]:
        assert session.rewind(length), library("last_error")
        session.step([5, 9, 2])
        assert session.rewind(length)
        session.step(IDS[length:length + 1])
        expect(length, session.logits())
        session.step(IDS[length + 1:600])
        expect(599, session.logits())
    assert not session.rewind(100)
    print(library("last_error").decode())
    assert session.length() == 600
    session.step(IDS[600:610])
    expect(609, session.logits())
    assert session.rewind(0)
    session.step(IDS[:40])
    expect(39, session.logits())
    assert session.rewind(3)  # nothing was dropped
    session.step(IDS[3:4])
    expect(3, session.logits())
    print("ok going_back")


def sets(library):
    group = Set(library, 4)
    lengths = [0, 250, 13, 380]
    for sequence, length in enumerate(lengths):
        if length:
            group.append(sequence, IDS[:length])
    for i in range(200):
        members = [m for m in range(4) if (i + m) % 3] if i % 7 else [0, 3]
        group.step(members, [IDS[lengths[m]] for m in members])
        for m in members:
            lengths[m] += 1
            expect(lengths[m] - 1, group.logits(m))
    # A fork goes on as what it is of; so do bytes, in another place.
    library.must("set_fork", group.handle, 3, 2)
    size = library("set_save", group.handle, 1, None, I64(0))
    saved = ctypes.create_string_buffer(size)
    assert library("set_save", group.handle, 1, saved, I64(size)) == size
    library.must("set_restore", group.handle, 0, saved, I64(size))
    lengths[2], lengths[0] = lengths[3], lengths[1]
    for i in range(80):
        group.step([0, 1, 2, 3], [IDS[length] for length in lengths])
        lengths = [length + 1 for length in lengths]
        for m in range(4):
            expect(lengths[m] - 1, group.logits(m))
    print("saved:", size)
    for at in range(8, 56, 8):  # what a head says of the rings
        broken = ctypes.create_string_buffer(saved.raw)
        broken[at] = bytes([broken.raw[at] ^ 0xff])
        broken[at + 6] = b"\x7f"
        assert library("set_restore", group.handle, 0, broken, I64(size)) != 0
    print("ok sets")


def as_whole(library, whole):
    """The same bits as without rings."""
    ours, theirs = Session(library, 1, 1500), Session(whole, 1, 1500)
    text, at = (IDS * 3)[:1400], 0
    for count in [100, 128, 1, 128, 128, 77, 1, 1] + [128, 1, 1] * 4 + [1] * 200:
        for session in (ours, theirs):
            session.step(text[at:at + count])
        at += count
        assert ours.logits() == theirs.logits(), at
    print("ok as_whole")


def load(work):
    global IDS, LOGITS, WIDTH, TOP, WORST
    with open(f"{work}/expected.safetensors", "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()

    def values(name, code):
        first, last = header[name]["data_offsets"]
        return list(array.array(code, data[first:last]))
    IDS, LOGITS = values("ids", "q"), values("logits", "f")
    WIDTH, TOP, WORST = len(LOGITS) // TOKENS, max(map(abs, LOGITS)), 0


if sys.argv[1] == "make":
    make(*sys.argv[2:5])
else:
    load(sys.argv[2])
    TOLERANCE = float((sys.argv[4:] + ["2e-5"])[0])
    tested = Library(sys.argv[3])
    if len(sys.argv) > 5:
        as_whole(tested, Library(sys.argv[5]))
    else:
        for test in (one_by_one, pieces, rows, going_back, sets):
            test(tested)
        print(f"largest error: {WORST:.1e}", file=sys.stderr)
