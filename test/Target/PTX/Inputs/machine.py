#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs small kernels on the interpreter of PTX and checks what they compute.

  machine.py LIBCUDA
"""
import random
import struct

from kernels import kernel, launch, load, report

RNG = random.Random(1)


def bf16(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)]
            for row in a]


def small(rows, columns):
    """Numbers that every format holds exactly."""
    return [[RNG.randrange(-8, 9) / 4 for _ in range(columns)]
            for _ in range(rows)]


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


# --- A barrier between writing and reading shared memory.
REVERSE = kernel("reverse", 1, """
shl.b32 %r1, %r0, 2; cvt.u64.u32 %rd1, %r1; add.s64 %rd2, %rd0, %rd1;
ld.global.b32 %r2, [%rd2];
mov.u32 %r3, row; add.s32 %r4, %r3, %r1; st.shared.b32 [%r4], %r2;
bar.sync 0;
mov.u32 %r5, 63; sub.s32 %r5, %r5, %r0; shl.b32 %r5, %r5, 2;
add.s32 %r6, %r3, %r5; ld.shared.b32 %r7, [%r6]; st.global.b32 [%rd2], %r7;
""".replace(";", ";\n"), ".shared .align 16 .b8 row[256];\n")
status, (found,) = launch("reverse", REVERSE, 64,
                          [struct.pack("<64i", *range(64))])
report("a block turns its row around", status == 0 and
       list(struct.unpack("<64i", found)) == list(reversed(range(64))))

# --- A [16,16] row by row in shared memory, B as [8 columns][16] of them or,
# --- transposed, as [16][8]; C straight to memory by the manual's layout.
STORE = """
shr.u32 %r40, %r0, 2; and.b32 %r41, %r0, 3; shl.b32 %r41, %r41, 1;
mad.lo.s32 %r42, %r40, 8, %r41; mul.wide.u32 %rd10, %r42, 4;
add.s64 %rd11, %rd2, %rd10;
st.global.v2.b32 [%rd11], {%r20, %r21};
st.global.v2.b32 [%rd11+256], {%r22, %r23};
"""
FILL = """
mov.u32 %r1, tile; mul.wide.u32 %rd3, %r0, 16; add.s64 %rd4, %rd0, %rd3;
shl.b32 %r2, %r0, 4; add.s32 %r3, %r1, %r2;
cp.async.cg.shared.global [%r3], [%rd4], 16;
and.b32 %r4, %r0, 15; mul.wide.u32 %rd5, %r4, 16; add.s64 %rd6, %rd1, %rd5;
shl.b32 %r5, %r4, 4; add.s32 %r6, %r1, %r5; add.s32 %r6, %r6, 512;
cp.async.cg.shared.global [%r6], [%rd6], 16;
cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
"""
# Lane l names row l % 16, half l / 16 of A: matrices 0 and 1 are the upper and
# lower eight rows of the left half, 2 and 3 those of the right one.
A_ROWS = """
and.b32 %r7, %r0, 15; shl.b32 %r7, %r7, 5; shr.u32 %r8, %r0, 4;
shl.b32 %r8, %r8, 4; add.s32 %r9, %r7, %r8; add.s32 %r9, %r9, %r1;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r9];
"""
ZERO = "mov.b32 %r30, 0f00000000;\n"
MMA = ("mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32 "
       "{{%r20, %r21, %r22, %r23}}, {{%r10, %r11, %r12, %r13}}, "
       "{{%r14, %r15}}, {{%r30, %r30, %r30, %r30}};\n")
B_COLUMNS = """
and.b32 %r16, %r0, 7; shl.b32 %r16, %r16, 5; shr.u32 %r17, %r0, 3;
and.b32 %r17, %r17, 1; shl.b32 %r17, %r17, 4; add.s32 %r18, %r16, %r17;
add.s32 %r18, %r18, %r1;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r14, %r15}, [%r18+512];
"""
B_ROWS = """
and.b32 %r16, %r0, 15; shl.b32 %r16, %r16, 4; add.s32 %r18, %r16, %r1;
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r18+512];
"""
TILE = ".shared .align 16 .b8 tile[768];\n"


def multiply(name, letters, pack, transposed):
    a, b = small(16, 16), small(16, 8)
    body = FILL + A_ROWS + (B_ROWS if transposed else B_COLUMNS) + ZERO
    text = kernel("product", 3, body + MMA.format(t=letters) + STORE, TILE)
    stored = b if transposed else list(zip(*b))
    status, (_, _, found) = launch("product", text, 32, [
        pack([x for row in a for x in row]),
        pack([x for row in stored for x in row]), bytes(16 * 8 * 4)])
    want = [x for row in product(a, b) for x in row]
    report(name, status == 0 and floats(found) == want)


multiply("ldmatrix and mma, bf16", "bf16",
         lambda values: struct.pack(f"<{len(values)}H", *map(bf16, values)),
         False)
multiply("ldmatrix.trans and mma, f16", "f16",
         lambda values: struct.pack(f"<{len(values)}e", *values), True)

# --- tf32: A [16,8] and B [8,8] straight from memory.
TF32 = """
shr.u32 %r1, %r0, 2; and.b32 %r2, %r0, 3;
mad.lo.s32 %r3, %r1, 8, %r2; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd0, %rd3;
ld.global.b32 %r10, [%rd4]; ld.global.b32 %r11, [%rd4+256];
ld.global.b32 %r12, [%rd4+16]; ld.global.b32 %r13, [%rd4+272];
mad.lo.s32 %r4, %r2, 8, %r1; mul.wide.u32 %rd5, %r4, 4; add.s64 %rd6, %rd1, %rd5;
ld.global.b32 %r14, [%rd6]; ld.global.b32 %r15, [%rd6+128];
""" + ZERO + """
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r20, %r21, %r22, %r23},
 {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r30, %r30, %r30, %r30};
"""
A, B = small(16, 8), small(8, 8)
status, (_, _, found) = launch("product", kernel("product", 3, TF32 + STORE),
                               32, [
    struct.pack("<128f", *[x for row in A for x in row]),
    struct.pack("<64f", *[x for row in B for x in row]), bytes(512)])
report("mma, tf32", status == 0 and
       floats(found) == [x for row in product(A, B) for x in row])

# --- Each of two warps on its own; numbers of both signs.
REDUX = """
shl.b32 %r1, %r0, 2; cvt.u64.u32 %rd1, %r1; add.s64 %rd2, %rd0, %rd1;
ld.global.b32 %r2, [%rd2];
redux.sync.max.s32 %r3, %r2, -1; redux.sync.min.s32 %r4, %r2, -1;
st.global.b32 [%rd2], %r3; st.global.b32 [%rd2+256], %r4;
"""
NUMBERS = [RNG.randrange(-2**31, 2**31) for _ in range(64)]
status, (found,) = launch("redux", kernel("redux", 1, REDUX), 64,
                          [struct.pack("<64i", *NUMBERS) + bytes(256)])
report("redux of signed numbers",
       status == 0 and list(struct.unpack("<128i", found)) ==
       [fold(NUMBERS[at:at + 32]) for fold in (max, min)
        for at in (0, 32) for _ in range(32)])

# --- The rest of a copy whose source ends early.
SHORT = """
mov.u32 %r1, tile; mov.u32 %r2, 8; mov.u32 %r7, 4;
cp.async.ca.shared.global [%r1], [%rd0], 16, %r2;
cp.async.ca.shared.global [%r1+8], [%rd0+4], 4, %r7;
cp.async.wait_all; ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r1];
st.global.v4.b32 [%rd1], {%r3, %r4, %r5, %r6};
"""
status, (_, found) = launch("short", kernel("short", 2, SHORT, TILE), 1,
                            [struct.pack("<2i", 5, 6), bytes(16)])
report("cp.async fills with zeros",
       status == 0 and struct.unpack("<4i", found) == (5, 6, 6, 0))

# --- Pairs of f32: each half is rounded once, and a fused product only once.
PAIRS = """
ld.global.b64 %rd3, [%rd0]; ld.global.b64 %rd4, [%rd0+8]; ld.global.b64 %rd5, [%rd0+16];
add.rn.f32x2 %rd6, %rd3, %rd4; sub.rn.f32x2 %rd7, %rd3, %rd4;
mul.rn.f32x2 %rd8, %rd3, %rd4; fma.rn.f32x2 %rd9, %rd3, %rd4, %rd5;
st.global.b64 [%rd1], %rd6; st.global.b64 [%rd1+8], %rd7;
st.global.b64 [%rd1+16], %rd8; st.global.b64 [%rd1+24], %rd9;
"""
# 1 + 2^-12, whose square needs a bit more than f32 has; the fused product keeps
# it once the rest is gone.
ONE = 1 + 2.0 ** -12
status, (_, found) = launch(
    "pairs", kernel("pairs", 2, PAIRS).replace("sm_80", "sm_100").replace(
        ".version 7.0", ".version 8.6"), 1,
    [struct.pack("<6f", ONE, 3, ONE, -0.5, -1 - 2.0 ** -11, 0.25), bytes(32)])
report("pairs of f32", status == 0 and floats(found) == [
    2 * ONE, 2.5, 0, 3.5, 1 + 2.0 ** -11, -1.5, 2.0 ** -24, -1.25])
status, _ = load(kernel("pairs", 1, "add.rz.f32x2 %rd1, %rd0, %rd0;"))
report("pairs of f32, rounded otherwise", status == 218)

# --- Numbers of 16 bits with f32: widened before, not rounded in between.
MIXED = """
ld.global.b16 %rs1, [%rd0]; ld.global.b16 %rs2, [%rd0+2]; ld.global.b32 %r1, [%rd0+4];
ld.global.b16 %rs3, [%rd0+8]; ld.global.b16 %rs4, [%rd0+10];
add.rn.f32.bf16 %r2, %rs1, %r1; sub.rn.f32.bf16 %r3, %rs1, %r1;
fma.rn.f32.bf16 %r4, %rs1, %rs2, %r1;
add.f32.f16 %r5, %rs3, %r1; fma.rn.f32.f16 %r6, %rs3, %rs4, %r1;
st.global.v4.b32 [%rd1], {%r2, %r3, %r4, %r5}; st.global.b32 [%rd1+16], %r6;
"""
status, (_, found) = launch("mixed", kernel("mixed", 2, MIXED), 1, [
    struct.pack("<2Hf2e", bf16(2.5), bf16(-0.5), 2.0 ** -20, 1.5, 3),
    bytes(20)])
report("16 bits with f32", status == 0 and floats(found) == [
    x + sign * 2.0 ** -20
    for x, sign in ((2.5, 1), (2.5, -1), (-1.25, 1), (1.5, 1), (4.5, 1))])

# --- Weights may be read before what another kernel writes is there.
AHEAD = """
ld.global.b32 %r1, [%rd0]; griddepcontrol.wait; griddepcontrol.launch_dependents;
st.global.b32 [%rd1], %r1;
"""
status, (_, found) = launch("ahead", kernel("ahead", 2, AHEAD), 1,
                            [struct.pack("<i", 7), bytes(4)])
report("a load before griddepcontrol.wait",
       status == 0 and struct.unpack("<i", found) == (7,))

# --- What cannot be.
STUCK = """
setp.eq.b32 %p1, %r0, 0;
@%p1 shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;
@!%p1 bar.sync 0;
"""
status, _ = launch("stuck", kernel("stuck", 0, STUCK), 32, [])
report("a barrier that some never reach", status == 700)
status, _ = load(kernel("new", 0, "wgmma.unknown %r1, %r2;"))
report("an unknown instruction", status == 218)
