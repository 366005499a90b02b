// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// oracle.mjs FOLDER NAME: the ids that the reference gives for each line of
// FOLDER/texts.jsonl with FOLDER/NAME.json, as `attune tokenize --texts --fit`
// prints them. Needs `npm install @anush008/tokenizers` (0.6.0: the library
// tokenizers 0.22.2, in Rust) in a folder above the working one.
import {createRequire} from 'module';
import fs from 'fs';
const {Tokenizer} =
    createRequire(process.cwd() + '/x.js')('@anush008/tokenizers');
const [, , folder, name] = process.argv;
const tokenizer =
    Tokenizer.fromString(fs.readFileSync(`${folder}/${name}.json`, 'utf8'));
const out = [];
for (const line of fs.readFileSync(`${folder}/texts.jsonl`, 'utf8').split('\n')) {
  if (!line)
    continue;
  const [text, pair] = JSON.parse(line);
  const made = await tokenizer.encode(text, pair ?? null,
                                      {addSpecialTokens: true});
  out.push(made.getIds().join(','));
}
fs.writeFileSync(1, out.join('\n') + '\n');
