# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacks of transformer blocks as ONNX files, for runtimes that read those.

An ONNX file is one message of Protocol Buffers: fields as a varint key
(number << 3 | wire type) and a varint, four bytes or a length and bytes. Field
numbers are those of onnx.proto3. Weights are random; norms keep their sizes.
"""
import array
import random
import struct

FLOAT, INT64 = 1, 7  # TensorProto.DataType


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, *parts):
    data = b"".join(part.encode() if isinstance(part, str) else part
                    for part in parts)
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    if isinstance(value, float):
        kind = varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    elif isinstance(value, int):
        kind = number(3, value) + number(20, 2)
    elif isinstance(value, str):
        kind = message(4, value) + number(20, 3)
    else:
        kind = b"".join(number(8, each) for each in value) + number(20, 7)
    return message(5, message(1, name), kind)


def tensor(name, kind, shape, data):
    return (b"".join(number(1, size) for size in shape) + number(2, kind) +
            message(8, name) + message(9, data))


def value_info(field, name, shape):
    dims = b"".join(message(1, number(1, size)) for size in shape)
    return message(field, message(1, name), message(
        2, message(1, number(1, FLOAT), message(2, dims))))


class Stack:
    """A graph that grows op by op; the last result is `self.value`."""

    def __init__(self, tokens, width, heads, ffn, activation, causal, post_norm):
        self.tokens, self.width, self.heads, self.ffn = tokens, width, heads, ffn
        self.activation, self.causal, self.post_norm = activation, causal, post_norm
        self.nodes, self.weights, self.count = [], [], 0
        self.value = "x"
        draw = random.Random(1)
        self.some = array.array("f", (draw.uniform(-0.05, 0.05)
                                      for _ in range(4099)))

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [f"v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(message(
            1, *(message(1, name) for name in inputs),
            *(message(2, name) for name in names), message(4, kind),
            message(7, domain),
            *(attribute(*each) for each in attributes.items())))
        return names[0] if outputs == 1 else names

    def weight(self, *shape):
        size = 1
        for each in shape:
            size *= each
        values = (self.some * (size // len(self.some) + 1))[:size]
        name = f"w{len(self.weights)}"
        self.weights.append(tensor(name, FLOAT, shape, values.tobytes()))
        return name

    def sizes(self, *values):
        name = f"w{len(self.weights)}"
        self.weights.append(tensor(name, INT64, [len(values)],
                                   struct.pack(f"<{len(values)}q", *values)))
        return name

    def norm(self, x):
        return self.op("LayerNormalization", x, self.weight(self.width),
                       self.weight(self.width), axis=-1 & (1 << 64) - 1)

    def linear(self, x, depth, width):
        product = self.op("MatMul", x, self.weight(depth, width))
        return self.op("Add", product, self.weight(width))

    def attention(self, x):
        qkv = self.linear(x, self.width, 3 * self.width)
        q, k, v = self.op("Split", qkv, self.sizes(*[self.width] * 3), outputs=3,
                          axis=2)
        y = self.op("MultiHeadAttention", q, k, v, domain="com.microsoft",
                    num_heads=self.heads, unidirectional=int(self.causal))
        return self.linear(y, self.width, self.width)

    def feed_forward(self, x):
        hidden = self.linear(x, self.width, self.ffn)
        hidden = self.op("Gelu", hidden, approximate=self.activation)
        return self.linear(hidden, self.ffn, self.width)

    def block(self):
        for part in (self.attention, self.feed_forward):
            if self.post_norm:
                self.value = self.norm(self.op("Add", self.value,
                                               part(self.value)))
            else:
                self.value = self.op("Add", self.value,
                                     part(self.norm(self.value)))

    def write(self, path, vocabulary=0):
        shape = [1, self.tokens, self.width]
        if vocabulary:
            self.value = self.op("MatMul", self.norm(self.value),
                                 self.weight(self.width, vocabulary))
            shape[2] = vocabulary
        graph = [*self.nodes, message(2, "stack"),
                 *(message(5, weight) for weight in self.weights),
                 value_info(11, "x", [1, self.tokens, self.width]),
                 value_info(12, self.value, shape)]
        with open(path, "wb") as file:
            file.write(number(1, 8) + message(7, *graph) +
                       message(8, number(2, 20)) +
                       message(8, message(1, "com.microsoft"), number(2, 1)))
