# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results as points under a machine's roofline, as an SVG of its own.

S. Williams, A. Waterman, D. Patterson: Roofline, CACM 52(4), 2009: at I
operations per byte a program cannot do more than min(peak, I * bandwidth).
"""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 860, 520, 70, 50, 40, 20
COLORS = {"matmul": "#1f77b4", "attention": "#d62728", "model": "#2ca02c",
          "decode": "#9467bd"}


def decades(low, high):
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def draw(path, title, peaks, bandwidth, results):
    """`peaks`: GFLOP/s by type, one roof each; `results`: dicts with group,
    name, gflops and intensity (FLOPs/byte)."""
    xs = decades(min([r["intensity"] for r in results] + [1]),
                 max([r["intensity"] for r in results] + [100]))
    ys = decades(min([r["gflops"] for r in results] + [1]),
                 max([r["gflops"] for r in results] + [*peaks.values()]))

    def x(value):
        share = (math.log10(value) - xs[0]) / (xs[-1] - xs[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(value):
        share = (math.log10(value) - ys[0]) / (ys[-1] - ys[0])
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
           f'{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>']
    for power in xs:
        at = x(10 ** power)
        out.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" '
                   f'y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{10 ** power:g}</text>')
    for power in ys:
        at = y(10 ** power)
        out.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" '
                   f'y2="{at:.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{at + 4:.1f}" '
                   f'text-anchor="end">{10 ** power:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 12}" '
               'text-anchor="middle">FLOPs per byte</text>'
               f'<text transform="translate(18 {HEIGHT / 2}) rotate(-90)" '
               'text-anchor="middle">GFLOP/s</text>')
    # A roof: the memory's slope up to the ridge, then the type's peak.
    low = max(10 ** xs[0], 10 ** ys[0] / bandwidth)
    for name, peak in peaks.items():
        roof = [(low, low * bandwidth), (peak / bandwidth, peak),
                (10 ** xs[-1], peak)]
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in roof)
        out.append(f'<polyline points="{points}" fill="none" stroke="black" '
                   'stroke-width="2"/>'
                   f'<text x="{WIDTH - RIGHT - 4}" y="{y(peak) - 5:.1f}" '
                   f'text-anchor="end">{name}: {peak:.0f}</text>')
    for result in results:
        color = COLORS[result["group"]]
        label = f'{result["name"]}: {result["gflops"]:.0f} GFLOP/s'
        out.append(f'<circle cx="{x(result["intensity"]):.1f}" '
                   f'cy="{y(result["gflops"]):.1f}" r="4" fill="{color}" '
                   f'fill-opacity="0.7"><title>{escape(label)}</title></circle>')
    for i, (group, color) in enumerate(COLORS.items()):
        at = LEFT + 16 + 110 * i
        out.append(f'<circle cx="{at}" cy="{TOP + 14}" r="4" fill="{color}"/>'
                   f'<text x="{at + 9}" y="{TOP + 18}">{group}</text>')
    out.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))
