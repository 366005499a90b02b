//===- ErrorTest.cpp - What a wrong description is told -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsing.h"

using namespace attune;
using namespace attune::test;

static std::string errorsOf(const std::string &text) {
  return parseText(text).text();
}

/// Messages, without places, for one float stream of 64 channels.
static std::string layerErrors(const std::string &layers,
                               const std::string &rest = "") {
  Parsed parsed = parseText(
      R"({"attune": 1, "inputs": {"x": {"dtype": "f32", "shape": ["b", "t", 64]}},)"
      R"( "layers": [)" +
      layers + "]" + rest + "}");
  std::string result;
  for (const Diagnostic &diagnostic : parsed.diagnostics)
    result += (result.empty() ? "" : "\n") + diagnostic.message;
  return result;
}

static std::string bareErrors(const std::string &query, const std::string &key,
                              const std::string &value,
                              const std::string &options = "") {
  Parsed parsed = parseText(
      R"({"attune": 1, "inputs": {"q": {"dtype": "f32", "shape": )" + query +
      R"(}, "k": {"dtype": "f32", "shape": )" + key +
      R"(}, "v": {"dtype": "f32", "shape": )" + value +
      R"(}, "m": {"dtype": "bool", "shape": ["b", 1, "m", "n"]}},)"
      R"( "layers": [{"attention": {"query": "q", "key": "k", "value": "v")" +
      options + "}}]}");
  std::string result;
  for (const Diagnostic &diagnostic : parsed.diagnostics)
    result += (result.empty() ? "" : "\n") + diagnostic.message;
  return result;
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

TEST(SyntaxErrors, PointAtTheToken) {
  EXPECT_EQ(errorsOf(""), "1:1 error: not valid JSON: unexpected end of input; "
                          "expected '[', '{', or a literal\n");
  EXPECT_EQ(errorsOf("{\"attune\" 1}"),
            "1:11 error: not valid JSON: unexpected number literal; expected "
            "':'\n");
  EXPECT_EQ(errorsOf("{\"dims\": {\"D\": 1,}}"),
            "1:18 error: /dims: not valid JSON: unexpected '}'; expected "
            "string literal\n");
  EXPECT_EQ(errorsOf("{\"a\": 1e999}").find("1:"), 0u);
  EXPECT_NE(errorsOf("{\"a\": 1e999}").find("number is too large"),
            std::string::npos);
}

TEST(SyntaxErrors, BrokenUtf8) {
  std::string errors = errorsOf("{\"attune\": 1, \"name\": \"\xff\xfe\"}");
  EXPECT_EQ(errors, "1:24 error: not valid JSON: invalid string: ill-formed "
                    "UTF-8 byte\n");
}

TEST(SyntaxErrors, DuplicateKeysShowBothPlaces) {
  std::string errors = errorsOf("{\"attune\": 1,\n\"name\": \"a\", \"layers\": "
                                "[{\"embedding\": {\"vocab\": 9, \"width\": "
                                "4}}],\n\"name\": \"b\"}");
  EXPECT_EQ(errors, "3:1 error: /name: duplicate key 'name'\n"
                    "2:1 note: /name: it was first given here\n");
}

TEST(SyntaxErrors, DeepNestingEnds) {
  std::string errors = errorsOf(std::string(1000000, '['));
  EXPECT_NE(errors.find("nested deeper than the limit of 64 levels"),
            std::string::npos)
      << errors;
  errors = errorsOf("{\"attune\": 1, \"dims\": {\"D\": \"" +
                    std::string(1000000, '(') + "\"}}");
  EXPECT_NE(errors.find("nested deeper than 256 levels"), std::string::npos);
  errors = errorsOf("{\"attune\": 1, \"dims\": {\"D\": \"" +
                    std::string(1000000, '-') + "\"}}");
  EXPECT_NE(errors.find("nested deeper than 256 levels"), std::string::npos);
}

TEST(SyntaxErrors, MegabyteStringsAreCut) {
  std::string big(3000000, 'x');
  for (const std::string &text :
       {"{\"attune\": 1, \"" + big + "\": 1}", "{\"attune\": " + big,
        "{\"attune\": 1, \"dtype\": \"" + big + "\"}",
        "{\"attune\": 1, \"dims\": {\"" + big + "\": \"" + big + "\"}}",
        "{\"attune\": 1, \"layers\": [{\"embedding\": {\"vocab\": \"" + big +
            "\", \"width\": \"" + big + "*1\"}, \"name\": \"" + big +
            "\"}], \"outputs\": {\"" + big + "\": \"" + big + "y\"}}"}) {
    Parsed parsed = parseText(text);
    EXPECT_FALSE(parsed.model);
    for (const Diagnostic &diagnostic : parsed.diagnostics) {
      EXPECT_LT(diagnostic.message.size(), 1000u);
      EXPECT_LT(formatDiagnostic(diagnostic).size(), 2000u);
    }
  }
}

TEST(SyntaxErrors, LongChainsOfDimsEnd) {
  std::string dims = "\"d0\": 1";
  for (int i = 1; i < 20000; ++i)
    dims +=
        ", \"d" + std::to_string(i) + "\": \"d" + std::to_string(i - 1) + "\"";
  // In this order each is known before it is used.
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"dims\": {" + dims +
                     "}, \"layers\": [{\"embedding\": {\"vocab\": 9, "
                     "\"width\": 4}}]}"),
            "");
  dims = "\"d0\": \"d1\"";
  for (int i = 1; i < 20000; ++i)
    dims +=
        ", \"d" + std::to_string(i) + "\": \"d" + std::to_string(i + 1) + "\"";
  EXPECT_NE(errorsOf("{\"attune\": 1, \"dims\": {" + dims + "}}")
                .find("more than 256 levels deep"),
            std::string::npos);
}

TEST(SyntaxErrors, TheFirstHundredAreShown) {
  std::string keys;
  for (int i = 0; i < 1000; ++i)
    keys += ", \"zz" + std::to_string(i) + "\": 1";
  Parsed parsed = parseText("{\"attune\": 1" + keys + "}");
  EXPECT_EQ(parsed.diagnostics.size(), 101u);
  EXPECT_EQ(parsed.diagnostics.back().message,
            "too many errors, the rest is not shown");
}

//===----------------------------------------------------------------------===//
// Form
//===----------------------------------------------------------------------===//

TEST(FormErrors, EveryIndependentErrorIsReportedOnce) {
  EXPECT_EQ(errorsOf("{\"attune\": 2,\n"
                     " \"nam\": \"x\",\n"
                     " \"layers\": [\n"
                     "  {\"embedding\": {\"vocb\": 9, \"width\": 4}},\n"
                     "  {\"block\": {\"attention\": {\"heads\": true,\n"
                     "    \"causal\": \"left\"}, \"fnn\": {}}},\n"
                     "  {\"linear\": {\"out\": 2.5}, \"rms_norm\": {}},\n"
                     "  {\"name\": \"what\"}]}"),
            "1:12 error: /attune: out of range: expected 1\n"
            "2:2 error: /nam: unknown key 'nam'; did you mean 'name'?\n"
            "4:18 error: /layers/0/embedding/vocb: unknown key 'vocb'; did you "
            "mean 'vocab'?\n"
            "5:37 error: /layers/1/block/attention/heads: expected an integer "
            "or arithmetic over dims, got true\n"
            "6:15 error: /layers/1/block/attention/causal: unknown value "
            "'left'; expected true or false or one of bottom_right, "
            "top_left\n"
            "6:24 error: /layers/1/block/fnn: unknown key 'fnn'; did you mean "
            "'ffn'?\n"
            "7:22 error: /layers/2/linear/out: expected an integer, got a "
            "fraction\n"
            "7:28 error: /layers/2/rms_norm: is a second kind beside "
            "'linear'\n"
            "8:3 error: /layers/3: has no kind; expected one of embedding, "
            "positions, block, cycle, attention, ffn, moe, norm, layer_norm, "
            "rms_norm, linear, pool, class_tokens, conv, batch_norm, "
            "instance_norm, add, l2_norm, "
            "similarity, insert, activation, softmax, rotary, cross_entropy, "
            "recurrent, scan, "
            "mamba, modulate, timestep, chunk, swap, overlap_add, slice, "
            "concat, layer_inputs, spread, unite, windows, whole, merge, "
            "unpatch\n");
}

TEST(FormErrors, WrongTopLevels) {
  EXPECT_EQ(errorsOf("[]"), "1:1 error: expected an object, got an array\n");
  EXPECT_EQ(errorsOf("{\"layers\": [{\"embedding\": {\"vocab\": 1, \"width\": "
                     "1}}]}"),
            "1:1 error: missing key 'attune': the schema's version: 1\n");
  // Another kind of file, but not one with a slip in a key.
  EXPECT_EQ(errorsOf("{\"version\": 1, \"vocab\": {}}"),
            "1:1 error: is no description of a model: it has neither 'attune' "
            "(the schema's version, 1) nor 'layers'\n");
  EXPECT_EQ(errorsOf("{\"atune\": 1}").find("is no description"),
            std::string::npos);
  EXPECT_EQ(errorsOf("{\"attune\": 1}"),
            "1:1 error: has no way to give its layers; expected one of layers, "
            "streams\n");
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"layers\": []}"),
            "1:25 error: /layers: has no layer\n");
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"streams\": {}}"),
            "1:26 error: /streams: has no stream\n");
}

TEST(FormErrors, Numbers) {
  EXPECT_EQ(layerErrors(R"({"rms_norm": {"eps": 0}})"),
            "/layers/0/rms_norm/eps: expected a number above 0");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 3000000000}})"),
            "/layers/0/ffn/width: out of range: expected 1 to 2147483647");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 99999999999999999999999}})"),
            "/layers/0/ffn/width: out of range: expected 1 to 2147483647");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 0}})"),
            "/layers/0/ffn/width: out of range: expected 1 to 2147483647");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 8}, "repeat": 1000000})"),
            "/layers/0/repeat: out of range: expected 1 to 100000");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "causal": true,
                            "window": 0}})"),
            "/layers/0/attention/window: out of range: expected 1 to "
            "2147483647");
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

static std::string dimError(const std::string &dims) {
  return errorsOf("{\"attune\": 1, \"dims\": {" + dims +
                  "}, \"layers\": [{\"embedding\": {\"vocab\": 9, \"width\": "
                  "4}}]}");
}

TEST(DimErrors, PointIntoTheExpression) {
  EXPECT_EQ(dimError("\"A\": \"1 + B\""),
            "1:34 error: /dims/A: unknown dimension 'B'; write a number, or "
            "name it in 'dims'\n");
  EXPECT_EQ(dimError("\"DIM\": 1, \"A\": \"1 + DIN\""),
            "1:44 error: /dims/A: unknown dimension 'DIN'; did you mean "
            "'DIM'?\n");
  EXPECT_EQ(dimError("\"A\": \"7/2\""),
            "1:31 error: /dims/A: 7 / 2 is not a whole number\n");
  EXPECT_EQ(dimError("\"A\": \"7/(2-2)\""),
            "1:31 error: /dims/A: division by zero\n");
  EXPECT_EQ(dimError("\"A\": \"B\", \"B\": \"A+1\""),
            "1:40 error: /dims/B: dimension 'A' is defined by itself\n");
  EXPECT_EQ(dimError("\"A\": \"9223372036854775807 + 1\""),
            "1:50 error: /dims/A: overflows 64 bits\n");
  EXPECT_EQ(dimError("\"A\": \"9223372036854775808\""),
            "1:48 error: /dims/A: overflows 64 bits\n");
  EXPECT_EQ(dimError("\"A\": \"1 - 2\""),
            "1:29 error: /dims/A: is -1, out of range: expected 0 to "
            "2147483647\n");
  EXPECT_EQ(dimError("\"A\": \"(1\""), "1:32 error: /dims/A: expected ')'\n");
  EXPECT_EQ(dimError("\"A\": \"1 2\""),
            "1:32 error: /dims/A: expected an operator, got '2'\n");
  EXPECT_EQ(dimError("\"A\": \"\""),
            "1:30 error: /dims/A: expected a number or a dimension\n");
  EXPECT_EQ(dimError("\"A\": \"%\""), "1:30 error: /dims/A: expected a number "
                                      "or a dimension, got '%'\n");
  EXPECT_EQ(dimError("\"4x\": 1"),
            "1:24 error: /dims/4x: a dimension's name is letters, digits and "
            "underscores, not starting with a digit\n");
}

TEST(DimErrors, OneMistakeOneMessage) {
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"dims\": {\"D\": \"1/0\", \"E\": "
                     "\"2*D\"}, \"layers\": [{\"embedding\": {\"vocab\": "
                     "\"E\", \"width\": \"D\"}}, {\"block\": {\"attention\": "
                     "{\"heads\": \"E\", \"kv_heads\": 7}}}, {\"linear\": "
                     "{\"out\": \"D\"}}]}"),
            "1:31 error: /dims/D: division by zero\n");
}

//===----------------------------------------------------------------------===//
// Meaning
//===----------------------------------------------------------------------===//

TEST(LayerErrors, Attention) {
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 8, "kv_heads": 5}})"),
            "/layers/0/attention/kv_heads: 5 does not divide the 8 query "
            "heads");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 7}})"),
            "/layers/0/attention/heads: the width 64 is not a multiple of 7 "
            "heads; give head_dim");
  EXPECT_EQ(layerErrors(R"({"attention": {}})"),
            "/layers/0/attention: missing key 'heads': query heads");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "window": 5}})"), "");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "scale": 0}})"),
            "/layers/0/attention/scale: expected a number other than 0");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "lse": true}})"),
            "/layers/0/attention/lse: belongs to the bare op, which has query, "
            "key and value");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "source": "enc"}})"),
            "/layers/0/attention/source: there is no stream 'enc' before this "
            "one");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "source": "main"}})"),
            "/layers/0/attention/source: is this very stream; leave it out for "
            "self-attention");
}

TEST(LayerErrors, Rope) {
  auto rope = [](const std::string &options) {
    return layerErrors(R"({"attention": {"heads": 4, "rope": )" + options +
                       "}}");
  };
  EXPECT_EQ(rope(R"({"channels": 7})"),
            "/layers/0/attention/rope/channels: is 7, but channels turn in "
            "pairs");
  EXPECT_EQ(rope(R"({"channels": 18})"),
            "/layers/0/attention/rope/channels: 18 is more than the head_dim "
            "16");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "head_dim": 15,
                            "rope": {}}})"),
            "/layers/0/attention/rope: head_dim 15 is odd; give an even "
            "'channels'");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4,
                            "qk_norm": {"after_rotary": true}}})"),
            "/layers/0/attention/qk_norm/after_rotary: needs 'rope', which it "
            "comes after");
  EXPECT_EQ(layerErrors(R"({"attention": {"heads": 4, "rope": {}, "qk_norm": {
                            "after_rotary": true, "scope": "projection"}}})"),
            "/layers/0/attention/qk_norm/after_rotary: is for norms of heads; "
            "with \"projection\" they are not cut apart yet");
  EXPECT_EQ(rope(R"({"scaling": {"type": "llama3"}})"),
            "/layers/0/attention/rope/scaling: missing key 'original_length': "
            "the length the model was trained at, which llama3 scaling needs");
  EXPECT_EQ(rope(R"({"scaling": {"type": "linear", "beta_fast": 3}})"),
            "/layers/0/attention/rope/scaling/beta_fast: belongs to yarn "
            "scaling");
  EXPECT_EQ(rope(R"({"scaling": {"type": "llama3", "original_length": 9,
                     "low_freq_factor": 4}})"),
            "/layers/0/attention/rope/scaling: must be more than "
            "low_freq_factor");
}

TEST(LayerErrors, BareAttention) {
  const char *q = R"(["b", 8, "m", 64])", *k = R"(["b", 2, "n", 64])",
             *v = R"(["b", 2, "n", 32])";
  EXPECT_EQ(bareErrors(q, k, v), "");
  EXPECT_EQ(bareErrors(q, k, v, R"(, "mask": "m")"), "");
  EXPECT_EQ(bareErrors(q, k, v, R"(, "mask": "q")"),
            "/layers/0/attention/mask: input 'q' is f32, expected bool");
  EXPECT_EQ(bareErrors(q, k, v, R"(, "bias_input": "x")"),
            "/layers/0/attention/bias_input: unknown input 'x'; name it in "
            "'inputs'");
  EXPECT_EQ(bareErrors(q, R"(["b", 3, "n", 64])", R"(["b", 3, "n", 64])"),
            "/layers/0/attention/key: 3 does not divide the 8 query heads");
  EXPECT_EQ(bareErrors(q, R"(["b", 2, "n", 60])", v),
            "/layers/0/attention/key: input 'k' has 60 channels, expected 64");
  EXPECT_EQ(bareErrors(q, k, R"(["b", 4, "n", 32])"),
            "/layers/0/attention/value: input 'v' has 4 heads, expected 2");
  EXPECT_EQ(bareErrors(q, R"(["b", 2, 9, 64])", R"(["b", 2, 8, 32])"),
            "/layers/0/attention/value: input 'v' has 8 rows, expected 9");
  EXPECT_EQ(bareErrors(q, R"(["b", "n", 64])", v),
            "/layers/0/attention/key: input 'k' has 3 dimensions, expected 4");
  EXPECT_EQ(bareErrors(R"(["b", "h", "m", 64])", k, v),
            "/layers/0/attention/query: has no fixed number of heads; give "
            "'heads'");
  EXPECT_EQ(bareErrors(q, k, v, R"(, "rope": {})"),
            "/layers/0/attention/rope: the bare op on inputs has no "
            "projections");
  EXPECT_EQ(layerErrors(R"({"block": {"attention": {"query": "x", "heads": 1,
                            "key": "x", "value": "x"}}})")
                .substr(0, 60),
            "/layers/0/block/attention/query: the attention of a block ma");
}

TEST(LayerErrors, Kinds) {
  EXPECT_EQ(layerErrors(R"({"block": {}})"),
            "/layers/0/block: block has no sublayer; give it attention, "
            "mamba, short_conv, delta_rule, time_mix, cross, ffn or moe");
  EXPECT_EQ(layerErrors(R"({"block": {"placement": "parallel",
                            "ffn": {"width": 4}}})"),
            "/layers/0/block/placement: a parallel block needs attention and "
            "ffn");
  EXPECT_EQ(layerErrors(R"({"block": {"cross": {"heads": 4}}})"),
            "/layers/0/block/cross: missing key 'source': the stream that keys "
            "and values come from");
  EXPECT_EQ(layerErrors(R"({"norm": {"kind": "rms_norm", "bias": true}})"),
            "/layers/0/norm/bias: an rms_norm has no bias");
  EXPECT_EQ(layerErrors(R"({"positions": {}})"),
            "/layers/0/positions: missing key 'length': rows of the learned "
            "table");
  EXPECT_EQ(layerErrors(R"({"positions": {"kind": "sinusoidal",
                            "length": 4}})"),
            "/layers/0/positions/length: belongs to learned positions");
  EXPECT_EQ(layerErrors(R"({"positions": {"length": 4, "offset": 4}})"),
            "/layers/0/positions/offset: row 4 is not in a table of 4 rows");
  EXPECT_EQ(layerErrors(R"({"linear": {}})"),
            "/layers/0/linear: missing key 'out': channels of the result");
  EXPECT_EQ(layerErrors(R"({"linear": {"tied": "wte"}})"),
            "/layers/0/linear/tied: there is no embedding layer 'wte' before "
            "this one");
  EXPECT_EQ(layerErrors(R"({"linear": {"out": 7}, "repeat": 2})"),
            "/layers/0/repeat: takes 64 channels and gives 7, so it cannot "
            "follow itself");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 4}},
                           {"embedding": {"vocab": 4, "width": 4,
                            "input": "x"}})"),
            "/layers/1/embedding/width: is 4, but it is added to a stream of "
            "width 64\n"
            "/layers/1/embedding/input: input 'x' cannot serve as ids; "
            "expected i64 [batch, tokens]");
}

TEST(LayerErrors, WithoutAStream) {
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"layers\": [{\"attention\": {\"heads\": "
                     "8, \"kv_heads\": 5, \"head_dim\": 64}}]}"),
            "1:40 error: /layers/0/attention: needs a float stream [batch, "
            "tokens, width]; start with an embedding, or give an input of that "
            "shape\n"
            "1:65 error: /layers/0/attention/kv_heads: 5 does not divide the 8 "
            "query heads\n");
}

TEST(LayerErrors, Names) {
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 4}, "name": "a"},
                           {"ffn": {"width": 4}, "name": "a"})"),
            "/layers/1/name: layer name 'a' is already taken\n"
            "/layers/0: by this layer");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 4}, "name": "h.3"},
                           {"ffn": {"width": 4}, "name": "h.{i}", "repeat": 4})"),
            "/layers/1/name: layer name 'h.3' is already taken\n"
            "/layers/0: by this layer");
  // Same pattern, other numbers: fine but for outputs, which name patterns.
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 4}, "name": "h.{i}", "repeat": 3},
                           {"ffn": {"width": 4}, "name": "h.{i}.b", "first": 3,
                            "repeat": 4})"),
            "");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 4}, "name": "h", "repeat": 3})"),
            "/layers/0/name: needs {i}, the number of the repeat, since the "
            "layer repeats 3 times");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 4}, "name": "h.{n}"})"),
            "/layers/0/name: braces in a name hold only {i}, the number of the "
            "repeat");
}

TEST(LayerErrors, Weights) {
  auto weights = [](const std::string &map) {
    return layerErrors(R"({"ffn": {"width": 8}, "weights": )" + map + "}");
  };
  EXPECT_EQ(weights(R"({"up.wieght": "w"})"),
            "/layers/0/weights/up.wieght: the layer has no weight 'up.wieght'; "
            "did you mean 'up.weight'?");
  EXPECT_EQ(weights(R"({"z": "w"})"),
            "/layers/0/weights/z: the layer has no weight 'z'; it has "
            "up.weight, up.bias, down.weight, down.bias");
  EXPECT_EQ(weights(R"({"up.weight": {"tensor": "w", "rows": [0, 7]}})"),
            "/layers/0/weights/up.weight: gives 7 rows, expected 8");
  EXPECT_EQ(weights(R"({"up.weight": [{"tensor": "w", "rows": [0, 4]},
                                      {"tensor": "w", "rows": [6, 10]}]})"),
            "");
  EXPECT_EQ(weights(R"({"up.weight": {"tensor": "w", "rows": [4, 4]}})"),
            "/layers/0/weights/up.weight/rows: row 4 is not before 4");
  EXPECT_EQ(weights(R"({"up.weight": {"tensor": "w", "rows": [4]}})"),
            "/layers/0/weights/up.weight/rows: has 1 elements, expected 2");
  EXPECT_EQ(weights(R"({"up.weight": []})"),
            "/layers/0/weights/up.weight: names no tensor");
  EXPECT_EQ(weights(R"({"up.weight": "h.{j}.w"})"),
            "/layers/0/weights/up.weight: braces in a name hold only {i}, the "
            "number of the repeat");
  EXPECT_EQ(weights(R"({"up.weight": {"rows": [0, 8]}})"),
            "/layers/0/weights/up.weight: missing key 'tensor': its name; {i} "
            "is the layer's number, {e} an expert's");
}

TEST(ModelErrors, Outputs) {
  auto outputs = [](const std::string &map) {
    return layerErrors(R"({"ffn": {"width": 8}, "name": "mlp"})",
                       ", \"outputs\": " + map);
  };
  EXPECT_EQ(outputs(R"({"y": "mpl"})"),
            "/outputs/y: there is no layer 'mpl'; did you mean 'mlp'?");
  EXPECT_EQ(outputs(R"({"y": "other"})"),
            "/outputs/y: there is no layer 'other'; expected a layer's name, "
            "'<layer>.lse' or hidden_states");
  EXPECT_EQ(outputs(R"({"y": "mlp.lse"})"),
            "/outputs/y: layer 'mlp' gives no log-sum-exp; only the bare "
            "attention op with 'lse' does");
  EXPECT_EQ(outputs(R"({"y": "hidden_states"})"),
            "/outputs/y: hidden_states are what blocks give, and the model has "
            "none");
  EXPECT_EQ(outputs("{}"), "/outputs: names no output");
}

TEST(ModelErrors, ContextAndGeneration) {
  auto model = [](const std::string &rest) {
    return errorsOf("{\"attune\": 1, \"layers\": [{\"embedding\": {\"vocab\": "
                    "9, \"width\": 4}}, {\"positions\": {\"length\": 12, "
                    "\"offset\": 2}, \"name\": \"p\"}],\n" +
                    rest + "}");
  };
  EXPECT_EQ(model("\"context\": 11"),
            "2:12 error: /context: is 11, but the learned positions of layer "
            "'p' end after 10\n");
  EXPECT_EQ(model("\"generation\": {\"eos\": [8, 9], \"bos\": 10}"),
            "2:27 error: /generation/eos/1: token 9 is not in the vocabulary "
            "of 9\n"
            "2:38 error: /generation/bos: token 10 is not in the vocabulary of "
            "9\n");
}

TEST(ModelErrors, Inputs) {
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"inputs\": {\"x\": {\"dtype\": \"f32\", "
                     "\"shape\": [\"b\", \"t\", \"w\"]}},\n\"layers\": "
                     "[{\"rms_norm\": {}}]}"),
            "1:1 error: input 'x' cannot start a stream; expected float "
            "[batch, tokens, width] or [batch, width] with a fixed width\n");
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"inputs\": {\"x\": {\"dtype\": \"i64\", "
                     "\"shape\": [\"b\", \"t\"]}},\n\"streams\": {\"s\": "
                     "{\"input\": \"y\", \"layers\": [{\"embedding\": "
                     "{\"vocab\": 4, \"width\": 4}}]}}}"),
            "2:28 error: /streams/s/input: unknown input 'y'; name it in "
            "'inputs', or name an earlier stream or layer\n");
}

TEST(ModelErrors, AbsurdSizes) {
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 2147483647}, "name": "f"},
                           {"linear": {"out": 2147483647}})"),
            "");
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"layers\": [{\"embedding\": {\"vocab\": "
                     "2147483647, \"width\": 2147483647}}]}"),
            "1:26 error: /layers/0: weight 'weight' [2147483647, 2147483647] "
            "has more than 2^40 elements\n");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 1000000000}, "repeat": 100000})"),
            "the model has more than 2^50 parameters");
  EXPECT_EQ(layerErrors(R"({"ffn": {"width": 4}, "repeat": 100000},
                           {"ffn": {"width": 4}, "repeat": 100000})"),
            "/layers/1/repeat: the model has more than 100000 layers");
  EXPECT_EQ(errorsOf("{\"attune\": 1, \"inputs\": {\"x\": {\"dtype\": \"f32\", "
                     "\"shape\": [2000000000, 2000000000, 64]}}, \"layers\": "
                     "[{\"rms_norm\": {}}]}"),
            "1:57 error: /inputs/x/shape: has more than 2^40 elements\n");
}
