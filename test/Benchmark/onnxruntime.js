// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// onnxruntime.js FILE THREADS: runs a model with an input x once for each line
// that it reads, and answers with a line.
const onnx = require('onnxruntime-node');
const [file, threads] = process.argv.slice(2);

(async () => {
  const session = await onnx.InferenceSession.create(file, {
    intraOpNumThreads: Number(threads),
    interOpNumThreads: 1,
  });
  const [, tokens, width] = session.inputMetadata[0].shape;
  const values = Float32Array.from(
      {length: tokens * width}, (_, i) => ((i * 7919) % 1001) / 1001 - 0.5);
  const x = new onnx.Tensor('float32', values, [1, tokens, width]);
  const lines = require('readline').createInterface({input: process.stdin});
  console.log('ready');
  for await (const _ of lines) {
    await session.run({x});
    console.log('done');
  }
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
