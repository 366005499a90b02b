"""Writes a program that prints FUNCTION of many numbers, or checks its output.

FUNCTION is an op of the math dialect, with -afn behind it if it need not be
exact.

Usage: math_case.py FUNCTION            prints the program
       math_case.py FUNCTION OUTPUT     compares with libm in double precision
"""

import math
import re
import struct
import sys

LANES = 32


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def numbers(function):
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 100.0, -100.0, 1e-45,
               -1e-45, 1e-39, -1e-39, 1e30, -1e30, 88.0, -87.0, 126.5, 127.9,
               -125.5, 0.5, -0.5, 1.0, -1.0, 7.9, -7.9, 1e-4, -1e-4]
    if function == "rsqrt":
        # All there is; three of the special ones would spoil a vector of usual
        # numbers that did not choose by lane.
        special = [0.0, -0.0, -1.0, math.inf, math.nan, 1e-45, 1e-39, 1e-5, 1.0,
                   4.0, 3.4e38, 2.0 ** -126]
        grid = [2.0 ** (-126 + 253 * i / 970) for i in range(970)]
        values = [single(value) for value in special + grid]
        return values + [1.0] * (-len(values) % LANES)
    # Where neither overflows; the special ones go beyond.
    edge = {"exp": 86.9, "exp2": 125.0, "exp2-afn": 125.0}.get(function, 8.0)
    grid = [edge * (2 * i / 970 - 1) for i in range(971)]
    values = [single(value) for value in special + grid]
    return values + [0.0] * (-len(values) % LANES)


def bits(value):
    return "0x%08X" % struct.unpack("I", struct.pack("f", value))[0]


def program(function):
    values = numbers(function)
    n = len(values)
    op, _, fast = function.partition("-")
    flags = f" fastmath<{fast}>" if fast else ""
    compute = f"math.{op} %v{flags} : vector<{LANES}xf32>"
    print(f"""memref.global "private" constant @x : memref<{n}xf32> = dense<[{', '.join(map(bits, values))}]>
func.func private @printMemrefF32(memref<*xf32>) attributes {{llvm.emit_c_interface}}
func.func @main() {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {LANES} : index
  %n = arith.constant {n} : index
  %x = memref.get_global @x : memref<{n}xf32>
  %y = memref.alloc() : memref<{n}xi32>
  %r = memref.alloc() : memref<{2 * n}xf32>
  %two = arith.constant 2 : index
  %one = arith.constant 1 : index
  %low = arith.constant 65535 : i32
  %half = arith.constant 16 : i32
  scf.for %i = %c0 to %n step %step {{
    %v = vector.load %x[%i] : memref<{n}xf32>, vector<{LANES}xf32>
    %f = {compute}
    %b = arith.bitcast %f : vector<{LANES}xf32> to vector<{LANES}xi32>
    vector.store %b, %y[%i] : memref<{n}xi32>, vector<{LANES}xi32>
  }}
  // As two halves of 16 bits: printing f32 would round to six digits.
  scf.for %i = %c0 to %n step %one {{
    %b = memref.load %y[%i] : memref<{n}xi32>
    %h = arith.shrui %b, %half : i32
    %l = arith.andi %b, %low : i32
    %hf = arith.uitofp %h : i32 to f32
    %lf = arith.uitofp %l : i32 to f32
    %j = arith.muli %i, %two : index
    %k = arith.addi %j, %one : index
    memref.store %hf, %r[%j] : memref<{2 * n}xf32>
    memref.store %lf, %r[%k] : memref<{2 * n}xf32>
  }}
  %u = memref.cast %r : memref<{2 * n}xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}}""")


def rsqrt(x):
    if x < 0:
        return math.nan
    return 1 / math.sqrt(x) if x else math.copysign(math.inf, x)


def reference(function, x):
    if math.isnan(x):
        return x
    try:
        return {"exp": math.exp, "exp2": lambda v: 2.0 ** v,
                "rsqrt": rsqrt, "tanh": math.tanh,
                "erf": math.erf}[function.partition("-")[0]](x)
    except OverflowError:
        return math.inf


def check(function, output):
    with open(output, encoding="utf-8") as file:
        text = file.read().split("data =")[1]
    halves = [int(float(word)) for word in re.findall(r"[\d.e+]+", text)]
    got = [struct.unpack("f", struct.pack("I", high << 16 | low))[0]
           for high, low in zip(halves[::2], halves[1::2])]
    values = numbers(function)
    relative = function in ("exp", "exp2", "exp2-afn", "rsqrt")
    assert len(got) == len(values), (len(got), len(values))
    worst, at, wrong = 0.0, 0.0, []
    for x, y in zip(values, got):
        expected = reference(function, x)
        if math.isnan(expected) or math.isinf(expected) or expected > 3.4e38:
            infinite = math.copysign(math.inf, expected)
            same = math.isnan(y) if math.isnan(expected) else y == infinite
            wrong += [] if same else [(x, y, expected)]
            continue
        if relative and expected <= 2.0 ** -125.5 and x != math.inf:
            # The last half octave of normal numbers may be zero.
            wrong += [] if 0.0 <= y < 2.0 ** -125 else [(x, y, expected)]
            continue
        error = abs(y - expected) / (expected if relative and expected else 1.0)
        if not error <= worst:
            worst, at = error, x
    # Of rsqrt: what a root and a quotient, each rounded once, are sure to keep.
    bound = {"rsqrt": 2.0 ** -23, "exp2-afn": 1.1e-4}.get(
        function, 4e-7 if relative else 5e-7)
    kind = "relative" if relative else "absolute"
    print(f"largest {kind} error of {function}: {worst:.3g} at {at!r}")
    for case in wrong:
        print("f(%r) is %r, not %r" % case)
    print("within the bound" if worst < bound and not wrong else "TOO LARGE")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        program(sys.argv[1])
    else:
        check(*sys.argv[1:3])
