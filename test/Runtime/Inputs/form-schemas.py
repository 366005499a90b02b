# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""form-schemas.py PRODUCT COUNT: texts of random schemas are valid.

Each schema is drawn from its number, and so are the model's tokens. What is
written is judged by a validator that follows the JSON Schema specification
(draft 2020-12) and knows nothing of the product. A schema that the product
refuses is none that it got wrong, but most must be taken.
"""

import json
import random
import re
import sys

import serving

# Rather to the end of a text than on and on.
CLOSING = ['"', "]", "}", ",", ":", "0"]


class Schemas:
    """Random schemas, all of whose keywords may stand beside each other."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.definitions = {}

    def maybe(self, share):
        return self.random.random() < share

    def pick(self, *values):
        return self.random.choice(values)

    def number(self):
        return self.pick(-7, -1, 0, 1, 3, 12, 99, 100, 250)

    def value(self):
        return self.pick(1, "x", None, True, [1, 2], {"a": 1}, 2.5, -3, "é\n",
                         "abc", 12, [], {"a": "x", "b": True}, 100, False)

    def numbers(self, kind):
        schema = {"type": kind}
        if self.maybe(0.6):
            schema[self.pick("minimum", "exclusiveMinimum")] = self.number()
        if self.maybe(0.6):
            schema[self.pick("maximum", "exclusiveMaximum")] = self.number()
        if kind == "integer" and len(schema) == 1 and self.maybe(0.4):
            schema["multipleOf"] = self.pick(1, 2, 3, 7, 10)
        return schema

    def string(self):
        schema = {"type": "string"}
        kind = self.pick("length", "length", "pattern", "format", "any")
        if kind == "length" and self.maybe(0.7):
            schema["minLength"] = self.random.randrange(4)
        if kind == "length":
            schema["maxLength"] = self.random.randrange(3, 8)
        if kind == "pattern":
            schema["pattern"] = self.pick("^[a-c]+$", "^x?y{2,4}$", "^a\\.b$",
                                          "^(ab|c\\d)*$", "^\\w{3}$")
        if kind == "format":
            schema["format"] = self.pick("date", "time", "uuid", "ipv4")
        return schema

    def array(self, depth):
        schema = {"type": "array"}
        if self.maybe(0.5):
            schema["prefixItems"] = [self.schema(depth + 1) for _ in
                                     range(self.random.randrange(1, 3))]
        if "prefixItems" not in schema or self.maybe(0.5):
            schema["items"] = self.pick(False, self.schema(depth + 1),
                                        self.schema(depth + 1))
        if self.maybe(0.4):
            schema["minItems"] = self.random.randrange(3)
        if self.maybe(0.6):
            schema["maxItems"] = self.random.randrange(1, 4)
        return schema

    def object(self, depth):
        names = self.random.sample("abc", self.random.randrange(3))
        schema = {"type": "object", "properties": {
            name: self.schema(depth + 1) for name in names}}
        if self.maybe(0.6):
            schema["required"] = [name for name in "abcd" if self.maybe(0.3)]
        if self.maybe(0.3):
            schema["additionalProperties"] = self.pick(
                False, self.schema(depth + 1))
        if self.maybe(0.3):
            del schema["type"]
        return schema

    def leaf(self, kind):
        if kind in ("integer", "number"):
            return self.numbers(kind)
        if kind == "string":
            return self.string()
        if kind == "listed":
            if self.maybe(0.3):
                return {"const": self.value()}
            return {"enum": [self.value() for _ in
                             range(self.random.randrange(1, 5))]}
        if kind == "boolean":
            return {"type": "boolean"}
        return {"type": self.random.sample(
            ["string", "integer", "null", "boolean", "number"], 2)}

    def schema(self, depth=0, kind=None):
        if not kind:
            kind = self.pick("integer", "number", "string", "listed", "boolean",
                             "several")
            if depth <= 2 and self.maybe(0.65):
                kind = self.pick("array", "object")
        schema = (self.array(depth) if kind == "array"
                  else self.object(depth) if kind == "object"
                  else self.leaf(kind))
        if depth > 1 or not self.maybe(0.5):
            return schema

        def part():
            # Those of other types exclude each other.
            return self.schema(depth + 1, kind if self.maybe(0.8) else None)

        key = self.pick("anyOf", "oneOf", "allOf", "$ref", "listed", "both")
        if key == "$ref":
            name = f"s{len(self.definitions) + 1}"
            self.definitions[name] = True  # the name is taken
            self.definitions[name] = part()
            return {**self.beside(schema), "$ref": f"#/$defs/{name}"}
        if key == "listed":
            return {**schema, **self.leaf("listed")}
        if key == "both":  # keywords of two schemas in one
            return {**schema, **part()}
        parts = [part() for _ in range(self.random.randrange(1, 4))]
        return {**self.beside(schema), key: parts}

    def beside(self, schema):
        return schema if self.maybe(0.6) else {}

    def whole(self):
        schema = self.schema()
        if self.definitions:
            schema["$defs"] = self.definitions
        return schema


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES = {
    "integer": lambda value: is_number(value) and value == int(value),
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
}
FORMATS = {
    "date": r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
    "time": r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "ipv4": r"((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?=\d)|$)){4}",
}


def equal(one, other):
    """1 is 1.0 and not true, at any depth."""
    if is_number(one) and is_number(other):
        return one == other
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            equal(one[name], other[name]) for name in one)
    return one == other


def is_valid(root, schema, value):
    if isinstance(schema, bool):
        return schema

    def holds(part, of=value):
        return is_valid(root, part, of)

    def says(key, test):
        return key not in schema or test(schema[key])

    types = schema.get("type", list(TYPES))
    good = any(TYPES[name](value) for name in
               ([types] if isinstance(types, str) else types))
    good &= says("const", lambda other: equal(value, other))
    good &= says("enum", lambda all_: any(equal(value, x) for x in all_))
    good &= says("anyOf", lambda parts: any(map(holds, parts)))
    good &= says("oneOf", lambda parts: sum(map(holds, parts)) == 1)
    good &= says("allOf", lambda parts: all(map(holds, parts)))
    good &= says("$ref", lambda path: holds(
        root["$defs"][path.removeprefix("#/$defs/")]))
    if is_number(value):
        good &= says("minimum", lambda bound: value >= bound)
        good &= says("maximum", lambda bound: value <= bound)
        good &= says("exclusiveMinimum", lambda bound: value > bound)
        good &= says("exclusiveMaximum", lambda bound: value < bound)
        good &= says("multipleOf", lambda divisor: value % divisor == 0)
    if isinstance(value, str):
        good &= says("minLength", lambda count: len(value) >= count)
        good &= says("maxLength", lambda count: len(value) <= count)
        good &= says("pattern", lambda pattern: re.search(
            pattern.replace("$", r"\Z"), value, re.ASCII) is not None)
        good &= says("format", lambda name: re.fullmatch(
            FORMATS[name], value) is not None)
    if isinstance(value, list):
        good &= says("minItems", lambda count: len(value) >= count)
        good &= says("maxItems", lambda count: len(value) <= count)
        first = schema.get("prefixItems", [])
        good &= all(map(lambda part, item: holds(part, item), first, value))
        good &= all(holds(schema.get("items", True), item)
                    for item in value[len(first):])
    if isinstance(value, dict):
        good &= says("required", lambda names: all(n in value for n in names))
        named = schema.get("properties", {})
        good &= all(
            holds(named.get(name, schema.get("additionalProperties", True)),
                  item) for name, item in value.items())
    return good


def main():
    product, count = sys.argv[1], int(sys.argv[2])
    numbers = {"valid": 0, "refused": 0, "unfinished": 0}
    with serving.Server([product]) as server:
        bias = {}
        for text in CLOSING:
            for token in server.post("/tokenize", {"content": text})["tokens"]:
                bias[str(token)] = 3
        for seed in range(count):
            schema = Schemas(seed).whole()
            status, _, reply = server.request("POST", "/v1/completions", {
                "prompt": [1], "max_tokens": 150, "temperature": 1,
                "seed": seed, "logit_bias": bias, "response_format": {
                    "type": "json_schema", "json_schema": {"schema": schema}}})
            if status == 400:
                assert reply["error"]["param"] == "response_format", reply
                numbers["refused"] += 1
                if "--say" in sys.argv:
                    print(seed, reply["error"]["message"], json.dumps(schema))
                continue
            assert status == 200, (seed, schema, reply)
            choice = reply["choices"][0]
            if choice["finish_reason"] != "stop":
                numbers["unfinished"] += 1
                continue
            value = json.loads(choice["text"])
            assert is_valid(schema, schema, value), (seed, schema, value)
            numbers["valid"] += 1
    assert numbers["valid"] > count / 2, numbers
    print(numbers)
    print("all texts are valid")


main()
