#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in which something is missing between writing and reading, which the
interpreter of PTX has to find, and the same with it.

  order.py LIBCUDA
"""
import os

from kernels import kernel, launch, report

ATOMS = ".shared .align 1024 .b8 tile[16384];\n"


def order(name, threads, missing, body, together=0):
    """`missing` is the line without which it is an error."""
    assert missing in body
    for text, good in ((body.replace(missing, "", 1), False), (body, True)):
        # A failed launch spoils the device for all that come after it.
        child = os.fork()
        if child == 0:
            status, _ = launch(
                "order", kernel("order", 1, text, ATOMS).replace(
                    "sm_80", "sm_90a"), threads, [bytes(4096)], together)
            os._exit(0 if status == (0 if good else 700) else 1)
        report(name + (" there" if good else " missing"),
               os.waitpid(child, 0)[1] == 0)


HERE = """
mov.u32 %r1, tile; shl.b32 %r2, %r0, 4; add.s32 %r3, %r1, %r2;
mov.u32 %r4, 31; sub.s32 %r4, %r4, %r0; shl.b32 %r4, %r4, 4; add.s32 %r5, %r1, %r4;
"""
COPY = HERE + """
cp.async.cg.shared.global [%r3], [%rd0], 16;
cp.async.commit_group;
"""
order("a wait for copies", 32, "cp.async.wait_group 0;\n",
      COPY + "cp.async.wait_group 0;\nbar.sync 0;\nld.shared.b32 %r6, [%r3];")
order("a wait for all groups of copies", 32, "cp.async.wait_group 0;\n",
      COPY + "cp.async.wait_group 1;\ncp.async.wait_group 0;\n"
      "bar.sync 0;\nld.shared.b32 %r6, [%r3];")
order("a barrier behind copies", 32, "bar.sync 0;\n",
      COPY + "cp.async.wait_all;\nbar.sync 0;\nld.shared.b32 %r6, [%r5];\n"
      "bar.sync 0;")
order("a barrier behind stores", 32, "bar.warp.sync -1;\n",
      HERE + "st.shared.b32 [%r3], %r0;\nbar.warp.sync -1;\n"
      "ld.shared.b32 %r6, [%r5];\nbar.sync 0;")

order("a barrier behind mbarrier.init", 32, "bar.warp.sync -1;\n",
      "mov.u32 %r1, tile; mov.u32 %r2, 32; setp.eq.b32 %p1, %r0, 0;\n"
      "@%p1 mbarrier.init.shared.b64 [%r1], %r2;\nbar.warp.sync -1;\n"
      "mbarrier.arrive.shared.b64 %rd1, [%r1];")

# Rows of zeros by wgmma: what they multiply does not matter.
ROWS = """
mov.u32 %r1, tile; shl.b32 %r2, %r0, 7; add.s32 %r3, %r1, %r2; mov.u32 %r6, 0;
""" + "\n".join(f"st.shared.v4.b32 [%r3+{at}], {{%r6, %r6, %r6, %r6}};"
                for at in range(0, 128, 16)) + """
fence.proxy.async.shared::cta;
bar.sync 0;
"""
SUMS = "{" + ", ".join(f"%r{20 + at}" for at in range(4)) + "}"
GROUP = ROWS + "".join(f"mov.b32 %r{at}, 0f00000000;\n"
                       for at in range(20, 24)) + """
shr.u32 %r4, %r1, 4; cvt.u64.u32 %rd1, %r4; or.b64 %rd1, %rd1, 4611686293305294848;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 %SUMS, %rd1, %rd1, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.rn.f32 %r5, %r20, %r21;
""".replace("%SUMS", SUMS)
order("a fence between the ways to memory", 128,
      "fence.proxy.async.shared::cta;\n", GROUP)
order("a barrier before wgmma", 128, "bar.sync 0;\n", GROUP)
order("a fence of registers", 128, "wgmma.fence.sync.aligned;\n", GROUP)
order("a wait for sums", 128, "wgmma.wait_group.sync.aligned 0;\n", GROUP)
order("a group of products", 128, "wgmma.commit_group.sync.aligned;\n", GROUP)
HELD = GROUP.replace("%rd1, %rd1, 1, 1, 1, 0, 0;", "{%r30, %r31, %r32, %r33}, "
                     "%rd1, 1, 1, 1, 0;").replace(
    "wgmma.fence", "".join(f"mov.b32 %r{at}, 0;\n" for at in range(30, 34)) +
    "wgmma.fence")
order("a wait for rows in registers", 128, "wgmma.wait_group.sync.aligned 0;\n",
      HELD.replace("add.rn.f32 %r5, %r20, %r21;", "mov.b32 %r30, 1;"))

# What the kernel before writes; the second wait is for a kernel to wait at all.
order("a wait for the kernel before", 1, "griddepcontrol.wait;\n",
      "griddepcontrol.wait;\nst.global.b32 [%rd0], %r0; griddepcontrol.wait;")

# Blocks that run together: block 0 writes a row, block 1 reads it turned around,
# and block 0 writes it again. Counters are behind it.
BEGIN = """
mov.u32 %r1, %ctaid.x; setp.eq.b32 %p1, %r1, 0; setp.eq.b32 %p2, %r0, 0;
mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1;
mov.u32 %r4, 31; sub.s32 %r4, %r4, %r0; mul.wide.u32 %rd2, %r4, 4;
add.s64 %rd2, %rd0, %rd2;
"""
TELL = "@%p2 red.release.gpu.global.add.u32 [%rd0+{}], 1;\n"
LOOK = ("@!%p2 bra went{0};\nagain{0}: ld.acquire.gpu.global.u32 %r7, "
        "[%rd0+{0}]; setp.ne.b32 %p3, %r7, 1; @%p3 bra again{0};\n"
        "went{0}:\n")
WRITE = "st.global.b32 [%rd1], %r4;\n"
TOLD, TOLD_AGAIN = TELL.format(128), TELL.format(132)
SEEN, SEEN_AGAIN = LOOK.format(128), LOOK.format(132)
TURNS = (BEGIN + "@!%p1 bra other;\n" + WRITE + "bar.sync 0;\n" + TOLD +
         SEEN_AGAIN + "bar.sync 0;\n" + WRITE + "bra done;\n" + "other:\n" +
         SEEN + "bar.sync 0, 32;\nld.global.b32 %r6, [%rd2];\n"
         "bar.sync 1;\n" + TOLD_AGAIN + "done:\n")
for what, line in (("a wait for another block", SEEN),
                   ("a barrier before telling", "bar.sync 0;\n"),
                   ("a barrier behind the wait", "bar.sync 0, 32;\n"),
                   ("a wait for readers", SEEN_AGAIN),
                   ("a barrier behind reading", "bar.sync 1;\n"),
                   ("a word to another block", TOLD)):
    order(what, 32, line, TURNS, 2)
