# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""form-schemas.py PRODUCT COUNT: texts of random schemas are valid.

Each schema is drawn from its number, and so are the model's tokens. What is
written is judged by a validator that follows the JSON Schema specification
(draft 2020-12) and knows nothing of the product. A schema that the product
refuses is none that it got wrong, but most must be taken.
"""

import ipaddress
import json
import random
import re
import sys
from fractions import Fraction

import serving

# Rather to the end of a text than on and on.
CLOSING = ['"', "]", "}", ",", ":", "0"]

# Keywords with values that say nothing.
IDLE = {"uniqueItems": False, "minProperties": 0, "not": False,
        "patternProperties": {}, "title": "x", "x-order": 1,
        "propertyNames": {"type": "string"}, "if": {"const": 1}}


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
        return self.pick(-7, -1, 0, 1, 3, 12, 99, 100, 250, 1.0, 0.5, -2.25,
                         7.125, 99.99)

    def value(self):
        return self.pick(1, "x", None, True, [1, 2], {"a": 1}, 2.5, -3, "é\n",
                         "abc", 12, [], {"a": "x", "b": True}, 100, False)

    def numbers(self, kind):
        schema = {"type": kind}
        if self.maybe(0.6):
            schema[self.pick("minimum", "exclusiveMinimum")] = self.number()
        if self.maybe(0.6):
            schema[self.pick("maximum", "exclusiveMaximum")] = self.number()
        if self.maybe(0.3):
            schema["multipleOf"] = self.pick(1, 2, 3, 7, 10, 0.01, 0.25, 1.5)
        return schema

    def string(self):
        schema = {"type": "string"}
        kind = self.pick("length", "length", "pattern", "format", "any",
                         "several", "several")
        if kind in ("length", "several") and self.maybe(0.7):
            schema["minLength"] = self.random.randrange(4)
        if kind in ("length", "several"):
            schema["maxLength"] = self.pick(3, 4, 5, 6, 7, 8, 8.0, 20000)
        if kind in ("pattern", "several"):
            schema["pattern"] = self.pick(
                "^[a-c]+$", "^x?y{2,4}$", "^a\\.b$", "^(ab|c\\d)*$", "^\\w{3}$",
                *["[0-9]", "^[^-]*$"] * (kind == "several"))
        if kind == "format" or (kind == "several" and self.maybe(0.2)):
            schema["format"] = self.pick(*FORMATS)
        if kind == "format" and self.maybe(0.4):
            schema["maxLength"] = self.random.randrange(8, 40)
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
        if "prefixItems" in schema and self.maybe(0.3):  # as once
            if "items" in schema:
                schema["additionalItems"] = schema["items"]
            schema["items"] = schema.pop("prefixItems")
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
        if self.maybe(0.2):
            key = self.pick(*IDLE)
            schema[key] = IDLE[key]
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
    return (isinstance(value, (int, float, Fraction))
            and not isinstance(value, bool))


def exact(number):
    """The decimal that JSON has."""
    return number if isinstance(number, Fraction) else Fraction(str(number))


TYPES = {
    "integer": lambda value: is_number(value) and value == int(value),
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
}


def is_ipv6(text):
    try:
        return "%" not in text and bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def is_date(text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    year, month, day = map(int, text.split("-"))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def of_pattern(pattern):
    return lambda text: bool(re.fullmatch(pattern, text, re.ASCII))


is_time = of_pattern(
    r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)")
LABEL = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
FORMATS = {
    "date": is_date,
    "time": is_time,
    "date-time": lambda text: (is_date(text[:10]) and text[10:11] == "T"
                               and is_time(text[11:])),
    "duration": of_pattern(
        r"P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+S)?)?)"),
    "uuid": of_pattern(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "ipv4": of_pattern(r"((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?=\d)|$)){4}"),
    "ipv6": is_ipv6,
    "hostname": of_pattern(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*"),
    "email": of_pattern(rf"[\w.+-]{{1,64}}@{LABEL}(\.{LABEL})*"),
    "uri": of_pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*:([\w.~:/?#@!$&'()*+,;=-]|"
                      r"%[0-9a-fA-F]{2})+"),
    "json-pointer": of_pattern(r"(?s)(/([^~/]|~[01])*)*"),
    "color": lambda text: True,  # nobody knows it
}


def equal(one, other):
    """1 is 1.0 and not true, at any depth."""
    if is_number(one) and is_number(other):
        return exact(one) == exact(other)
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
        good &= says("minimum", lambda bound: value >= exact(bound))
        good &= says("maximum", lambda bound: value <= exact(bound))
        good &= says("exclusiveMinimum", lambda bound: value > exact(bound))
        good &= says("exclusiveMaximum", lambda bound: value < exact(bound))
        good &= says("multipleOf", lambda divisor: value % exact(divisor) == 0)
    if isinstance(value, str):
        good &= says("minLength", lambda count: len(value) >= count)
        good &= says("maxLength", lambda count: len(value) <= count)
        good &= says("pattern", lambda pattern: re.search(
            pattern.replace("$", r"\Z"), value, re.ASCII) is not None)
        good &= says("format", lambda name: FORMATS[name](value))
    if isinstance(value, list):
        good &= says("minItems", lambda count: len(value) >= count)
        good &= says("maxItems", lambda count: len(value) <= count)
        first = schema.get("prefixItems", [])
        rest = schema.get("items", True)
        if isinstance(rest, list):
            first, rest = rest, schema.get("additionalItems", True)
        good &= all(map(lambda part, item: holds(part, item), first, value))
        good &= all(holds(rest, item) for item in value[len(first):])
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
            value = json.loads(choice["text"], parse_float=Fraction)
            assert is_valid(schema, schema, value), (seed, schema, value)
            numbers["valid"] += 1
    assert numbers["valid"] > count / 2, numbers
    print(numbers)
    print("all texts are valid")


main()
