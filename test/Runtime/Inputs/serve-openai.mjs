// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// serve-openai.mjs PARROT_URL EMBEDDING_URL: OpenAI's own client talks to the
// server. The parrot repeats what it is told.

import assert from "node:assert";
import {createRequire} from "node:module";

const modules = createRequire(process.env.ATTUNE_NODE_MODULES + "/");
const {OpenAI} = modules("openai");
const [parrot, embedding] = process.argv.slice(2).map(
    url => new OpenAI({baseURL: url + "/v1", apiKey: "any", maxRetries: 0}));

assert.deepEqual((await parrot.models.list()).data.map(model => model.id),
                 ["fake"]);

const said = '{"name": "Wren", "age": 7}';
const chat = {model: "fake", messages: [{role: "user", content: said}]};
const schema = {
  type: "object", required: ["name", "age"], additionalProperties: false,
  properties: {name: {type: "string"}, age: {type: "integer"}}};
const whole = await parrot.chat.completions.create({
  ...chat, response_format: {type: "json_schema",
                             json_schema: {name: "person", schema}}});
assert.equal(whole.choices[0].message.content, said);
assert.equal(whole.choices[0].finish_reason, "stop");

let text = "", usage = null;
for await (const event of await parrot.chat.completions.create({
  ...chat, stream: true, stream_options: {include_usage: true}})) {
  text += event.choices[0]?.delta?.content ?? "";
  usage = event.usage ?? usage;
}
assert.equal(text, said);
assert.equal(usage.prompt_tokens, whole.usage.prompt_tokens);

const called = {
  model: "fake", tools: [{type: "function", function: {name: "add"}}],
  messages: [{role: "user", content: '<tool_call>{"name": "add", ' +
                                     '"arguments": {"x": 1}}</tool_call>'}]};
const streamed = parrot.chat.completions.stream(called);
for (const reply of [await parrot.chat.completions.create(called),
                     await streamed.finalChatCompletion()]) {
  const call = reply.choices[0].message.tool_calls[0];
  assert.equal(call.function.name, "add");
  assert.deepEqual(JSON.parse(call.function.arguments), {x: 1});
  assert.equal(reply.choices[0].finish_reason, "tool_calls");
}

const asked = {model: "fake", input: "Hello there"};
assert.equal((await parrot.responses.create(asked)).output_text, "Hello there");
const response = await parrot.responses.stream(asked).finalResponse();
assert.equal(response.output_text, "Hello there");
assert.equal(response.status, "completed");
const calling = await parrot.responses.stream({
  model: "fake", input: called.messages[0].content,
  tools: [{type: "function", name: "add", parameters: null, strict: false}],
}).finalResponse();
assert.equal(calling.output[0].type, "function_call");
assert.deepEqual(JSON.parse(calling.output[0].arguments), {x: 1});
const parsed = await parrot.responses.create({
  ...asked, input: said, text: {format: {type: "json_schema", name: "person",
                                         schema, strict: true}}});
assert.equal(parsed.output_text, said);

await assert.rejects(
    parrot.completions.create({model: "fake", prompt: "a", temperature: -1}),
    error => error.status === 400 && error.param === "temperature");

// '$' and '"' are the tokens 3 and 1; the vector of token n is 1 at n + 1.
const vectors = await embedding.embeddings.create({model: "fake",
                                                   input: ["$", '"']});
assert.deepEqual(vectors.data.map(item => item.embedding.indexOf(1)), [4, 2]);
console.log("OpenAI's client is content");
