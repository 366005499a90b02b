"""Writes Inputs/pictures and pictures.txt, what Pillow makes of them.

    pictures.py PILLOW    # 9.4 made what is checked in; tests need none

A line of pictures.txt is a file, a width, a height and one of Pillow's numbers
of filters (0 0 0: as it is), then the size and the bytes of red, green and blue.
The last line is what CLIP's processor makes of rgb.jpg with a shortest edge of 7
and a crop of 6 rows by 12 columns, which pads columns.
"""

import pathlib
import random
import struct
import sys
import zlib

sys.path.insert(0, sys.argv[1])
from PIL import Image, ImageOps  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "Inputs/pictures"
rng = random.Random(3)


def noise(mode, width, height):
    channels = {"1": 1, "L": 1, "LA": 2, "P": 1, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    small = (width // 2, height // 2) if mode not in ("1", "P") else (width, height)
    data = bytes(rng.randrange(256) for _ in range(channels * small[0] * small[1]))
    if mode == "1":
        return Image.frombytes("L", small, data).convert("1")
    picture = Image.frombytes(mode, small, data)
    if mode == "P":
        picture.putpalette(bytes(rng.randrange(256) for _ in range(768)))
        return picture
    return picture.resize((width, height), 3)


def sixteen_bits(width, height):
    """RGB of 16 bits, which Pillow reads and does not write."""
    rows = b"".join(b"\0" + bytes(rng.randrange(256) for _ in range(6 * width)) for _ in range(height))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def prepared():
    """The published steps on one picture: 18 x 12 becomes 10 x 7."""
    picture = Image.open(FOLDER / "rgb.jpg").resize((int(7 * 18 / 12), 7), 3)
    means, deviations = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    for channel in range(3):
        for row in range(6):
            for column in range(-1, 11):
                inside = 0 <= column < 10
                pixel = picture.getpixel((column, row))[channel] if inside else 0
                yield (pixel / 255 - means[channel]) / deviations[channel]


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        noise(mode, 7, 5).save(FOLDER / f"{mode.lower()}.png")
    (FOLDER / "rgb16.png").write_bytes(sixteen_bits(4, 3))
    noise("L", 9, 6).save(FOLDER / "l.jpg", quality=80)
    noise("RGB", 18, 12).save(FOLDER / "rgb.jpg", quality=90)
    noise("RGB", 17, 10).save(FOLDER / "progressive.jpg", quality=60, progressive=True)
    noise("CMYK", 8, 6).save(FOLDER / "cmyk.jpg", quality=90, subsampling=0)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        picture = noise("RGB", 4, 2)
        picture.save(FOLDER / f"turned{orientation}.{'png' if orientation % 2 else 'jpg'}", exif=exif)
    lines = []
    for path in sorted(FOLDER.iterdir()):
        picture = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        sizes = [(0, 0, 0)]
        if path.name == "rgb.jpg":
            sizes += [(5, 4, number) for number in range(1, 6)] + [(29, 3, 3), (18, 20, 2), (3, 12, 3)]
        for width, height, number in sizes:
            result = picture.resize((width, height), number) if number else picture
            lines.append(f"{path.name} {width} {height} {number} {result.width} {result.height} "
                         f"{result.tobytes().hex()}\n")
    lines.append("prepared " + " ".join(f"{x:.9g}" for x in prepared()) + "\n")
    (HERE / "pictures.txt").write_text("".join(lines))


main()
