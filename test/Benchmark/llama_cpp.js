// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// llama_cpp.js FILE THREADS PROMPT TOKENS: ids of a prompt, with commas, and
// how many tokens follow; prints seconds of the prompt and of the tokens.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

const require = createRequire(process.env.NODE_PATH + '/');
const {getLlama} =
    await import(pathToFileURL(require.resolve('node-llama-cpp')).href);
const [file, threads, prompt, tokens] = process.argv.slice(2);
const ids = prompt.split(',').map(Number);
const llama = await getLlama({gpu: false, build: 'never', logLevel: 'error'});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({
  contextSize: ids.length + Number(tokens) + 8,
  batchSize: ids.length,
  threads: Number(threads),
  flashAttention: true,
});
const sequence = context.getSequence();
const start = performance.now();
await sequence.evaluateWithoutGeneratingNewTokens(ids.slice(0, -1));
const read = performance.now();
let count = 0, first = read;
for await (const _ of sequence.evaluate(
    ids.slice(-1), {temperature: 0, yieldEogToken: true})) {
  if (count === 0)
    first = performance.now();
  if (++count > Number(tokens))
    break;
}
const end = performance.now();
console.log((read - start) / 1000, (end - first) / 1000);
process.exit(0);
